//! Grammars for `llguidance` that restrict a response, made from the tools or from a schema of the response.
//!
//! A response with tools is free text up to a line that opens the block of a call: ` ```json ` and then
//! `{"tool_id": NAME, "params": {…}}` of one of the tools, ` ```scrape ` and its parameters, or ` ```bash ` and a
//! command. The block is closed, and the response ends with it. The object of a call may also be the complete
//! response.
//!
//! A schema with an unsupported keyword is relaxed: first by that keyword, then as a whole. The grammar then allows
//! more than the schema does, and the executor of the call checks its arguments anyway.

use llguidance::api::TopLevelGrammar;
use llguidance::{Matcher, ParserFactory};
use serde_json::{Value, json};
use toktrie::TokEnv;

use crate::tool::ToolDefinition;

/// The tools that have blocks of their own, with the tags of these.
const BASH: (&str, &str) = ("bash", "bash");
const SCRAPE: (&str, &str) = ("web_scrape", "scrape");

/// The separators of JSON: those that most models write, so that the grammar does not change their calls.
fn layout() -> Value {
    json!({ "whitespace_flexible": false, "item_separator": ", ", "key_separator": ": " })
}

/// The form of a response.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Form {
    /// Anything.
    Free,
    /// Text, or text and then a call of one of the tools; without tools, text without a call.
    Calls(Vec<ToolDefinition>),
    /// A document of this schema.
    Document(Value),
}

/// Compiles forms for one vocabulary.
pub(super) struct Grammars {
    factory: ParserFactory,
    /// The last form and its matcher, unused: requests of a conversation have the same.
    last: Option<(Form, Matcher)>,
}

impl std::fmt::Debug for Grammars {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Grammars").finish_non_exhaustive()
    }
}

impl Grammars {
    /// Prepares a vocabulary.
    ///
    /// # Errors
    /// A vocabulary that grammars cannot work with.
    pub(super) fn new(environment: &TokEnv) -> Result<Self, String> {
        let mut factory = ParserFactory::new_simple(environment)
            .map_err(|error| format!("its vocabulary does not support grammars: {error}"))?;
        factory.quiet();
        factory.limits_mut().verbose_errors = false;
        Ok(Self {
            factory,
            last: None,
        })
    }

    /// The matcher for a response of this form; `None` if every text is allowed.
    pub(super) fn matcher(&mut self, form: Form) -> Option<Matcher> {
        if let Some((known, matcher)) = &self.last
            && *known == form
        {
            return Some(matcher.deep_clone());
        }
        let matcher = match &form {
            Form::Free => None,
            Form::Calls(tools) => self.calls(tools),
            Form::Document(schema) => self.document(schema),
        }?;
        self.last = Some((form, matcher.deep_clone()));
        Some(matcher)
    }

    /// A matcher that allows text and calls of these tools. `None` if even tools without schemas have no valid
    /// grammar.
    fn calls(&self, tools: &[ToolDefinition]) -> Option<Matcher> {
        let fits = |schema: &Value| self.compile(&format!("start: %json {schema}\n")).is_some();
        let strictest = |variants: [Value; 3]| variants.into_iter().find(fits);
        let offers = |name: &str| tools.iter().find(|tool| tool.name == name);
        let mut blocks = Blocks {
            calls: tools
                .iter()
                .filter_map(|tool| strictest(call_variants(tool)))
                .collect(),
            scrape: offers(SCRAPE.0).and_then(|tool| strictest(relaxations(&tool.parameters))),
            bash: offers(BASH.0).is_some(),
        };
        self.compile(&blocks.grammar()).or_else(|| {
            // Each schema is small enough, but all together are not.
            blocks.calls = tools
                .iter()
                .map(|tool| call_variants(tool)[2].clone())
                .collect();
            self.compile(&blocks.grammar())
        })
    }

    fn document(&self, schema: &Value) -> Option<Matcher> {
        let mut forms = relaxations(schema).into_iter();
        forms.find_map(|schema| self.compile(&format!("start: %json {schema}\n")))
    }

    fn compile(&self, grammar: &str) -> Option<Matcher> {
        let grammar = TopLevelGrammar::from_lark(grammar.to_owned());
        let mut matcher = Matcher::new(self.factory.create_parser(grammar));
        // Some errors are visible only at the first use.
        let usable = matcher.compute_mask().is_ok();
        usable.then(|| matcher.reset().is_ok().then_some(matcher))?
    }
}

/// A schema, then itself without keywords that are not known, then any object.
fn relaxations(schema: &Value) -> [Value; 3] {
    let any = json!({ "type": "object" });
    [
        laid_out(schema, false),
        laid_out(schema, true),
        laid_out(&any, false),
    ]
}

/// A schema with how its parts are set apart, and whether keywords that are not known are passed
/// over.
fn laid_out(schema: &Value, lenient: bool) -> Value {
    let mut fields = schema.as_object().cloned().unwrap_or_default();
    let mut options = layout();
    options["lenient"] = Value::Bool(lenient);
    fields.insert("x-guidance".to_owned(), options);
    Value::Object(fields)
}

/// The schemas of a call of a tool, from the strictest on.
fn call_variants(tool: &ToolDefinition) -> [Value; 3] {
    let any = json!({ "type": "object" });
    let parameters = match tool.parameters.is_object() {
        true => &*tool.parameters,
        false => &any,
    };
    let strict = call_schema(&tool.name, parameters);
    let bare = call_schema(&tool.name, &any);
    [
        laid_out(&strict, false),
        laid_out(&strict, true),
        laid_out(&bare, false),
    ]
}

/// The schema of a call of a tool with these parameters.
fn call_schema(name: &str, parameters: &Value) -> Value {
    let mut parameters = parameters.clone();
    let mut call = json!({
        "type": "object",
        "properties": { "tool_id": { "const": name } },
        "required": ["tool_id", "params"],
        "additionalProperties": false,
    });
    // References are resolved from the root of the whole schema.
    if let Some(fields) = parameters.as_object_mut() {
        for name in ["$defs", "definitions"] {
            if let Some(definitions) = fields.remove(name) {
                call[name] = definitions;
            }
        }
        fields.remove("$schema");
    }
    call["properties"]["params"] = parameters;
    call
}

/// The blocks that a response may end with.
struct Blocks {
    /// Schemas of whole calls.
    calls: Vec<Value>,
    /// The schema of the content of a `scrape` block.
    scrape: Option<Value>,
    /// Whether there may be a block of a command.
    bash: bool,
}

impl Blocks {
    /// The grammar of text that may end with one of them.
    fn grammar(&self) -> String {
        let mut starts = vec!["free".to_owned(), "\"\"".to_owned()];
        let mut rules = String::new();
        let mut tags = vec!["[jJ][sS][oO][nN]"];
        let mut lead = |tag: &str| {
            rules.push_str(&format!("lead_{tag}[lazy]: /([^\\r]*\\n)?```{tag}\\n/\n"));
            starts.push(format!("lead_{tag} {tag}"));
        };
        if !self.calls.is_empty() {
            lead("json");
        }
        if self.scrape.is_some() {
            lead(SCRAPE.1);
            tags.push(SCRAPE.1);
        }
        if self.bash {
            lead(BASH.1);
            tags.push(BASH.1);
            rules.push_str("bash[lazy]: /([^\\r]*\\n)?```/\n");
        }
        if let Some(schema) = &self.scrape {
            rules.push_str(&format!("scrape: scraped CLOSE\nscraped: %json {schema}\n"));
        }
        if !self.calls.is_empty() {
            starts.push("call".to_owned());
            let names: Vec<_> = (0..self.calls.len())
                .map(|at| format!("call_{at}"))
                .collect();
            rules.push_str(&format!("json: call CLOSE\ncall: {}\n", names.join(" | ")));
            for (name, call) in names.iter().zip(&self.calls) {
                rules.push_str(&format!("{name}: %json {call}\n"));
            }
        }
        if self.scrape.is_some() || !self.calls.is_empty() {
            rules.push_str("CLOSE: \"\\n```\"\n");
        }
        // Free text contains no such block at the start of a line, in any spelling. It does not start with an object,
        // neither directly nor after the thinking.
        format!(
            "start: {}\nfree: FREE\n{rules}FREE: /[^\\r]+/ \
             & ~/([^\\r]*\\n)?[^\\S\\n]*(`{{3,}}|~{{3,}})[^\\S\\n]*({})[^\\r]*/ \
             & ~/([^\\r]*<\\/think(ing)?>)?\\s*\\{{[^\\r]*/\n",
            starts.join(" | "),
            tags.join("|")
        )
    }
}
