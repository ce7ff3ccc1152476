//! Tools and results in the types of the protocol. Pure.

use rmcp::model::{CallToolResult, ContentBlock, Implementation, Tool, ToolAnnotations};
use serde_json::Value;
use zeph_tools::schema;
use zeph_tools::{ToolDef, ToolError, ToolResult, content_for_llm};

use crate::sanitize::line;

/// Characters of a client's name in audit entries.
const MAX_CALLER_CHARS: usize = 80;

/// A tool as clients see it.
pub(super) fn tool(def: &ToolDef) -> Tool {
    let schema = schema::sent(&def.parameters);
    let schema = schema.as_object().cloned().unwrap_or_default();
    let nature = &def.annotations;
    let title = title(&def.id);
    Tool::new(def.id.clone(), def.description.clone(), schema)
        .with_title(title.clone())
        .with_annotations(ToolAnnotations::from_raw(
            Some(title),
            Some(nature.read_only),
            Some(nature.destructive),
            Some(nature.idempotent),
            Some(nature.open_world),
        ))
}

/// The title of a tool: its id as words.
fn title(id: &str) -> String {
    let mut words = id.replace('_', " ");
    if let Some(first) = words.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    words
}

/// A result as clients get it: the text for a model, the image, and the JSON result.
pub(super) fn result(result: ToolResult) -> CallToolResult {
    let mut content = vec![ContentBlock::text(content_for_llm(&result))];
    if let Err(ToolError::ConfirmationRequired(question)) = &result
        && !question.hint.is_empty()
    {
        // The hint can contain rules, which are copied line by line.
        content.push(ContentBlock::text(question.hint.clone()));
    }
    let is_error = result.is_err();
    let output = match &result {
        Ok(output) => Some(output),
        Err(error) => error.output(),
    };
    let structured = output.and_then(|output| output.raw_response.clone());
    if let Some(image) = output.and_then(|output| output.image.as_ref()) {
        content.push(ContentBlock::image(
            image.data.clone(),
            image.media_type.clone(),
        ));
    }
    let mut result = match is_error {
        true => CallToolResult::error(content),
        false => CallToolResult::success(content),
    };
    result.structured_content = structured.filter(Value::is_object);
    result
}

/// The caller in audit entries and questions: the name and the version that the client states.
pub(super) fn caller(client: Option<&Implementation>) -> String {
    let stated = client.map(|client| {
        line(
            &format!("{}/{}", client.name, client.version),
            MAX_CALLER_CHARS,
        )
    });
    stated.unwrap_or_else(|| "unknown".to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use zeph_tools::{Confirmation, ImageContent, ToolOutput};

    use super::*;

    fn sent(value: ToolResult) -> Value {
        serde_json::to_value(result(value)).unwrap()
    }

    /// Proves MCP-10: objects are structured results, other JSON is not, and images follow the text.
    #[test]
    fn result_has_text_image_and_structured_content() {
        let image = ImageContent {
            media_type: "image/png".to_owned(),
            data: "AA==".to_owned(),
        };
        let output = ToolOutput::text("t")
            .with_raw(json!({ "a": 1 }))
            .with_image(image);
        let value = sent(Ok(output));
        assert_eq!(value["structuredContent"], json!({ "a": 1 }));
        assert_eq!(value["isError"], json!(false));
        let types: Vec<_> = value["content"]
            .as_array()
            .unwrap()
            .iter()
            .map(|part| &part["type"])
            .collect();
        assert_eq!(types, ["text", "image"]);
        let value = sent(Ok(ToolOutput::text("t").with_raw(json!([1]))));
        assert!(value.get("structuredContent").is_none());
    }

    /// Proves MCP-10, ERR-4: a failure states its category, and a question its hint.
    #[test]
    fn failure_states_category_and_hint() {
        let question = Confirmation {
            tool: "bash".to_owned(),
            hint: "--yes\n[[rule]]".to_owned(),
            ..Confirmation::default()
        };
        let value = sent(Err(ToolError::ConfirmationRequired(Box::new(question))));
        assert_eq!(value["isError"], json!(true));
        let text = value["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("category: confirmation_required"), "{text}");
        assert_eq!(value["content"][1]["text"], "--yes\n[[rule]]");
    }

    /// Proves MCP-10, EXE-11.
    #[test]
    fn caller_is_name_and_version_without_hidden_characters() {
        let client = Implementation::new("my\u{202e} client\n", "1.0\u{200b}");
        assert_eq!(caller(Some(&client)), "my client /1.0");
        assert_eq!(caller(None), "unknown");
        let long = Implementation::new("x".repeat(500), "1");
        assert_eq!(caller(Some(&long)).chars().count(), MAX_CALLER_CHARS);
    }

    /// Proves MCP-10.
    #[test]
    fn title_is_the_id_as_words() {
        assert_eq!(title("find_path"), "Find path");
        assert_eq!(title(""), "");
    }
}
