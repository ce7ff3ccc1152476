//! The file of an agent: its front matter, and its instructions.

use std::path::PathBuf;

use zeph_tools::Mode;

use super::SubAgent;
use crate::front_matter::{MAX_TEXT_BYTES, known_keys, mapping, names, parts, text_of, words};

/// Bytes of a description.
const MAX_DESCRIPTION_BYTES: usize = 1024;
/// The supported keys, and keys of other formats that are ignored.
const KEYS: [&str; 7] = [
    "name",
    "description",
    "mode",
    "model",
    "provider",
    "tools",
    "max_iterations",
];
const OTHERS: [&str; 5] = ["license", "metadata", "version", "author", "color"];

/// Reads the text of the agent `name`, which is the name of its file.
///
/// # Errors
/// The reason why the agent is refused.
pub(super) fn read(
    name: String,
    bytes: Vec<u8>,
    file: PathBuf,
    _of_project: bool,
) -> Result<SubAgent, String> {
    const FILE: &str = "the file";
    let text = text_of(bytes, FILE)?;
    let (head, body) = parts(&text, FILE)?
        .ok_or("it does not begin with front matter: a line `---`, `description:`, a line `---`")?;
    let mut head = mapping(head, FILE)?;
    known_keys(&head, &KEYS, &OTHERS, "the front matter")?;
    let mut optional = |key: &str| {
        let value = head.remove(key);
        value
            .map(|value| words(Some(value), key, MAX_TEXT_BYTES))
            .transpose()
    };
    if let Some(given) = optional("name")?.filter(|given| *given != name) {
        return Err(format!(
            "its `name` is {given:?}; the file must be called {given}.md"
        ));
    }
    let mode = optional("mode")?.map(|mode| {
        Mode::from_name(&mode).ok_or_else(|| {
            let names: Vec<&str> = Mode::ALL.iter().map(|mode| mode.as_str()).collect();
            format!(
                "`mode` {mode:?} is not a mode; the modes are {}",
                names.join(", ")
            )
        })
    });
    let model = match (optional("model")?, optional("provider")?) {
        (Some(_), Some(_)) => {
            return Err(
                "`model` and `provider` exclude each other: name a provider, or a model of the current one"
                    .to_owned(),
            );
        }
        (model, provider) => model.or(provider),
    };
    let tools = head.remove("tools");
    let description = words(
        head.remove("description"),
        "description",
        MAX_DESCRIPTION_BYTES,
    )?;
    let max_iterations = head.remove("max_iterations").map(|value| {
        let number = value.as_u64().filter(|number| *number > 0);
        let number = number.and_then(|number| usize::try_from(number).ok());
        number.ok_or_else(|| "`max_iterations` is not a positive integer".to_owned())
    });
    Ok(SubAgent {
        name,
        description,
        mode: mode.transpose()?,
        model,
        tools: tools.map(|tools| names(tools, "tools")).transpose()?,
        max_iterations: max_iterations.transpose()?,
        instructions: body.trim().to_owned(),
        file: Some(file),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<SubAgent, String> {
        let bytes = text.as_bytes().to_vec();
        read(
            "review".to_owned(),
            bytes,
            PathBuf::from("review.md"),
            false,
        )
    }

    /// Proves CLI-12.
    #[test]
    fn front_matter_of_an_agent_is_read() {
        let agent = parsed(
            "---\nname: review\ndescription: Reviews a change\nmode: plan\nmodel: small\n\
             tools: [read, grep, mcp_*]\nmax_iterations: 7\n---\n\nFind faults.\n",
        )
        .unwrap();
        assert_eq!(agent.mode, Some(Mode::Plan));
        assert_eq!(agent.model.as_deref(), Some("small"));
        assert_eq!(agent.max_iterations, Some(7));
        assert_eq!(agent.instructions, "Find faults.");
        for (tool, has) in [("read", true), ("mcp_a_b", true), ("write", false)] {
            assert_eq!(agent.has_tool(tool), has, "{tool}");
        }
        let agent = parsed("---\ndescription: Reviews\n---\n").unwrap();
        assert_eq!((agent.mode, agent.tools.clone()), (None, None));
        assert!(agent.has_tool("write"));
    }

    /// Proves CLI-12: an error names the key and how to fix it.
    #[test]
    fn invalid_file_of_an_agent_is_refused() {
        let check = |text: &str, expect: &str| {
            let error = parsed(text).unwrap_err();
            assert!(error.contains(expect), "{error}");
        };
        check("Find faults.", "does not begin with front matter");
        check("---\nname: review\n---\nx", "`description` is missing");
        check("---\nname: other\ndescription: x\n---\n", "other.md");
        check(
            "---\ndescription: x\nmode: fast\n---\n",
            "the modes are plan, ask",
        );
        check(
            "---\ndescription: x\ntool: read\n---\n",
            "did you mean `tools`?",
        );
        check(
            "---\ndescription: x\nmax_iterations: 0\n---\n",
            "positive integer",
        );
        check(
            "---\ndescription: x\nmodel: a\nprovider: b\n---\n",
            "exclude each other",
        );
    }
}
