//! The chat template in a model's file: a Jinja text that writes a conversation as the model was
//! trained to read it.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, Error, ErrorKind, Value, context};
use serde::Serialize;

/// The template for a model without one: ChatML.
const CHATML: &str = "{% for message in messages %}<|im_start|>{{ message.role }}\n\
    {{ message.content }}<|im_end|>\n{% endfor %}\
    {% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

/// The steps a template may take: enough for long conversations, too few to hang on one.
const FUEL: u64 = 2_000_000;

/// A message as templates know it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct ChatMessage {
    pub(super) role: &'static str,
    pub(super) content: String,
}

/// A template that was read.
#[derive(Debug)]
pub(super) struct Template {
    environment: Environment<'static>,
    beginning: String,
    end: String,
}

impl Template {
    /// Reads a template; without one, the format is ChatML. `beginning` and `end` are the names of the tokens that
    /// begin and end a text.
    ///
    /// # Errors
    /// If the template is not valid Jinja.
    pub(super) fn new(
        source: Option<&str>,
        beginning: Option<&str>,
        end: Option<&str>,
    ) -> Result<Self, String> {
        let mut environment = Environment::new();
        let syntax = SyntaxConfig::builder()
            .trim_blocks(true)
            .lstrip_blocks(true)
            .build();
        environment.set_syntax(syntax.map_err(|error| error.to_string())?);
        environment.set_fuel(Some(FUEL));
        environment
            .set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.add_function(
            "raise_exception",
            |message: String| -> Result<Value, Error> {
                Err(Error::new(ErrorKind::InvalidOperation, message))
            },
        );
        environment.add_function("strftime_now", |format: String| {
            jiff::Zoned::now().strftime(&format).to_string()
        });
        environment
            .add_template_owned("chat", source.unwrap_or(CHATML).to_owned())
            .map_err(|error| format!("its chat template cannot be parsed: {error}"))?;
        Ok(Self {
            environment,
            beginning: beginning.unwrap_or_default().to_owned(),
            end: end.unwrap_or_default().to_owned(),
        })
    }

    /// Renders a conversation, up to the start of the model's response. If the template has no system prompt, the
    /// prompt precedes the text of the first message.
    ///
    /// # Errors
    /// The template refuses the conversation.
    pub(super) fn render(&self, messages: &[ChatMessage]) -> Result<String, String> {
        self.write(messages).or_else(|error| match messages {
            [system, first, rest @ ..] if system.role == "system" => {
                let content = format!("{}\n\n{}", system.content, first.content);
                let first = ChatMessage {
                    content,
                    ..first.clone()
                };
                let merged: Vec<_> = std::iter::once(first).chain(rest.iter().cloned()).collect();
                self.write(&merged).map_err(|_| error)
            }
            _ => Err(error),
        })
    }

    fn write(&self, messages: &[ChatMessage]) -> Result<String, String> {
        let template = self.environment.get_template("chat");
        let rendered = template.and_then(|template| {
            template.render(context! {
                messages => Serde(messages),
                add_generation_prompt => true,
                enable_thinking => false,
                bos_token => self.beginning.as_str(),
                eos_token => self.end.as_str(),
            })
        });
        rendered.map_err(|error| {
            let detail = error.detail().unwrap_or_default();
            format!("the model's chat template refuses the conversation: {error}: {detail}")
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn message(role: &'static str, content: &str) -> ChatMessage {
        ChatMessage {
            role,
            content: content.to_owned(),
        }
    }

    fn talk() -> Vec<ChatMessage> {
        vec![
            message("system", "be kind"),
            message("user", "hi"),
            message("assistant", "hello"),
            message("user", "who?"),
        ]
    }

    #[test]
    fn templates_of_known_families_are_rendered() {
        let llama = "{{ bos_token }}{% for m in messages %}[{{ m['role'].upper() }}] \
             {{ m['content'].strip() }}{{ eos_token if m.role == 'assistant' else '' }}\n{% endfor %}\
             {%- if add_generation_prompt %}[ASSISTANT]{% endif %}";
        let strict = "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system here') }}\
             {% endif %}{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}\
             {{ raise_exception('roles must take turns') }}{% endif %}<{{ m.role }}>{{ m.content }}\
             {% endfor %}";
        for (source, expect) in [
            (
                None,
                "<|im_start|>system\nbe kind<|im_end|>\n<|im_start|>user\nhi<|im_end|>\n\
                 <|im_start|>assistant\nhello<|im_end|>\n<|im_start|>user\nwho?<|im_end|>\n\
                 <|im_start|>assistant\n",
            ),
            (
                Some(llama),
                "<s>[SYSTEM] be kind\n[USER] hi\n[ASSISTANT] hello</s>\n[USER] who?\n[ASSISTANT]",
            ),
            (
                Some(strict),
                "<user>be kind\n\nhi<assistant>hello<user>who?",
            ),
        ] {
            let template = Template::new(source, Some("<s>"), Some("</s>")).unwrap();
            assert_eq!(template.render(&talk()).unwrap(), expect, "{source:?}");
        }
    }

    #[test]
    fn error_of_a_template_is_reported() {
        let template = Template::new(Some("{{ raise_exception('never') }}"), None, None).unwrap();
        let error = template.render(&talk()).unwrap_err();
        assert!(error.contains("never"), "{error}");
        let endless =
            "{% for a in range(99999) %}{% for b in range(99999) %}x{% endfor %}{% endfor %}";
        let template = Template::new(Some(endless), None, None).unwrap();
        assert!(template.render(&talk()).unwrap_err().contains("fuel"));
        let error = Template::new(Some("{% if %}"), None, None).unwrap_err();
        assert!(error.contains("chat template"), "{error}");
    }
}
