//! The blocks of a prompt as the text and the images of one message.

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::{ContentBlock, EmbeddedResourceResource};
use zeph_core::ATTACHMENT_START;
use zeph_tools::ImageContent;
use zeph_tools::percent_encoding::percent_decoded;

use super::error::invalid;
use crate::host::Prompt;

/// The prompt of these blocks.
///
/// # Errors
/// If a block has a type that is not supported, if models refuse an image, or if the prompt is empty.
pub(super) fn prompt(blocks: Vec<ContentBlock>, takes_images: bool) -> Result<Prompt, Error> {
    let is_typed = matches!(blocks.as_slice(), [ContentBlock::Text(_)]);
    let mut prompt = Prompt {
        is_typed,
        ..Prompt::default()
    };
    for block in blocks {
        match block {
            ContentBlock::Text(text) => {
                prompt.text.push_str(&text.text);
                prompt.typed.push_str(&text.text);
            }
            ContentBlock::ResourceLink(link) => {
                push_reference(&mut prompt, &link.uri, &link.name);
            }
            ContentBlock::Resource(embedded) => match embedded.resource {
                EmbeddedResourceResource::TextResourceContents(resource) => {
                    push_reference(&mut prompt, &resource.uri, &resource.uri);
                    prompt.resources.push_str(&format!(
                        "{ATTACHMENT_START}resource {uri}]\n{text}\n[end of the resource {uri}]",
                        uri = resource.uri,
                        text = resource.text.trim_end_matches('\n'),
                    ));
                }
                _ => return Err(invalid("a resource without text is not supported")),
            },
            ContentBlock::Image(image) if takes_images => {
                let image = ImageContent {
                    media_type: image.mime_type,
                    data: image.data,
                };
                // A provider would refuse each later request of the session.
                if let Some(fault) = image.fault() {
                    return Err(invalid(format!("an image cannot be sent: {fault}")));
                }
                prompt.images.push(image);
            }
            ContentBlock::Image(_) => return Err(invalid("the model does not take images")),
            ContentBlock::Audio(_) => return Err(invalid("audio is not supported")),
            _ => return Err(invalid("the type of a content block is not supported")),
        }
    }
    match prompt.text.trim().is_empty() && prompt.images.is_empty() {
        true => Err(invalid("the prompt is empty")),
        false => Ok(prompt),
    }
}

/// Adds the reference to a resource. The words that the user typed before and after it remain separate.
fn push_reference(prompt: &mut Prompt, uri: &str, name: &str) {
    prompt.text.push_str(&reference(uri, name));
    prompt.typed.push(' ');
}

/// The reference to a resource: `@PATH` for a file, otherwise the name and the address.
fn reference(uri: &str, name: &str) -> String {
    match uri.strip_prefix("file://") {
        Some(path) => format!("@{}", decoded(path)),
        None if name == uri => format!("<{uri}>"),
        None => format!("[{name}]({uri})"),
    }
}

/// A path without percent-encoding. It is unchanged if the result is not UTF-8.
fn decoded(path: &str) -> String {
    String::from_utf8(percent_decoded(path)).unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn parsed(blocks: Value, takes_images: bool) -> Result<Prompt, Error> {
        prompt(serde_json::from_value(blocks).unwrap(), takes_images)
    }

    fn text(text: &str, typed: &str, resources: &str) -> Prompt {
        Prompt {
            text: text.to_owned(),
            typed: typed.to_owned(),
            resources: resources.to_owned(),
            is_typed: text == typed,
            images: Vec::new(),
        }
    }

    /// Proves ACP-5: only a prompt that the user typed completely can be a command.
    #[test]
    fn blocks_become_one_text() {
        let check = |blocks, expect| assert_eq!(parsed(blocks, false).unwrap(), expect);
        let typed = json!({"type": "text", "text": "/status"});
        check(json!([typed]), text("/status", "/status", ""));
        let link = json!({"type": "resource_link", "name": "a b", "uri": "file:///p/a%20b.rs"});
        check(
            json!([{"type": "text", "text": "see "}, link]),
            text("see @/p/a b.rs", "see  ", ""),
        );
        let web = json!({"type": "resource_link", "name": "page", "uri": "https://example.org"});
        check(
            json!([{"type": "text", "text": "@a"}, web, {"type": "text", "text": "@b"}]),
            text("@a[page](https://example.org)@b", "@a @b", ""),
        );
        let resource =
            json!({"type": "resource", "resource": {"uri": "file:///p/a", "text": "/clear\n"}});
        check(
            json!([resource]),
            text(
                "@/p/a",
                " ",
                "\n\n[the user attached the resource file:///p/a]\n/clear\n[end of the resource \
                 file:///p/a]",
            ),
        );
    }

    /// Proves ACP-7: a broken image would block the session.
    #[test]
    fn image_that_models_refuse_is_refused() {
        let image = |kind: &str, data: &str| {
            let image = json!([{"type": "image", "mimeType": kind, "data": data}]);
            parsed(image, true).map(|prompt| prompt.images.len())
        };
        let largest = "A".repeat((5 << 20) / 3 * 4);
        for kind in ["image/png", "image/jpeg", "image/gif", "image/webp"] {
            assert_eq!(image(kind, "AA==").unwrap(), 1, "{kind}");
        }
        assert_eq!(image("image/png", &format!("{largest}AAA=")).unwrap(), 1);
        let refused = [
            ("image/svg+xml", "AA=="),
            ("", "AA=="),
            ("image/png", ""),
            ("image/png", "not base64"),
            ("image/png", &format!("{largest}AAAA")),
        ];
        for (kind, data) in refused {
            let error = image(kind, data).unwrap_err();
            assert_eq!(i32::from(error.code), -32602, "{kind}");
        }
    }

    /// Proves ACP-7.
    #[test]
    fn unsupported_block_is_refused() {
        let image = json!([{"type": "image", "mimeType": "image/png", "data": "AA=="}]);
        assert_eq!(parsed(image.clone(), true).unwrap().images.len(), 1);
        let audio = json!([{"type": "audio", "mimeType": "audio/wav", "data": "AA=="}]);
        let blob = json!([{"type": "resource", "resource": {"uri": "a", "blob": "AA=="}}]);
        let blank = json!([{"type": "text", "text": " \n"}]);
        for blocks in [image, audio, blob, blank, json!([])] {
            let error = parsed(blocks.clone(), false).unwrap_err();
            assert_eq!(i32::from(error.code), -32602, "{blocks}");
        }
    }
}
