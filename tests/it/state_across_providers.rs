//! Agent state over every API: tasks, facts, skills, tool calls, a summary.

use serde_json::json;

use crate::rig::{APIS, Home, OpenAi, assert_has};

const FILTER: &str = "[agent.tool_filter]\nenabled = true\ntop_k = 8\nmin_description_words = 0\n\
     always_on = [\"add_task\", \"memory_save\", \"memory_search\", \"load_skill\"]\n";
const NOTES: &str = "The lock is amber; the door is to the north.";

/// Proves AGT-1, CTX-1, NAT-1, NAT-2, NAT-4, SCH-3: one conversation in three processes, for each wire
/// format.
#[test]
fn conversation_continues_over_every_api() {
    for api in APIS {
        let server = OpenAi::start(move |n, _| match n {
            0 => api.call(
                "A plan.",
                "c0",
                "add_task",
                &json!({ "content": "Open the door" }),
            ),
            1 => api.call(
                "A fact.",
                "c1",
                "memory_save",
                &json!({ "content": "Tests run with make amber-check." }),
            ),
            2 => api.call("A skill.", "c2", "load_skill", &json!({ "name": "notes" })),
            3 => api.text("All set."),
            4 => api.text(NOTES),
            5 => api.call(
                "What was it?",
                "c5",
                "memory_search",
                &json!({ "query": "tests" }),
            ),
            _ => api.text("With make."),
        });
        let home = Home::new();
        home.config(&format!("{FILTER}{}", api.config("local", &server.url())));
        let skill =
            "---\nname: notes\ndescription: How notes are written\n---\nWrite them in verse.\n";
        home.write(".zeph/skills/notes/SKILL.md", skill);
        home.zeph(["skills", "trust", "notes", "--yes"]).code(0);
        let first = home.zeph(["-p", "add a task to the plan", "--output-format", "json"]);
        assert_eq!(first.code(0).json()["text"], "All set.", "{api:?}");
        home.zeph(["--continue", "-p", "/compact"])
            .code(0)
            .prints(&["compacted: "]);
        let last = home.zeph(["--continue", "-p", "how do tests run?"]).code(0);
        assert_has(&last.stdout, &["With make."]);

        let requests = server.requests();
        assert_eq!(requests.len(), 7, "{api:?}");
        for (at, word) in [
            (1, "task_1"),
            (2, "memory_1"),
            (3, "in verse"),
            (6, "amber-check"),
        ] {
            let (_, text) = api.last_result(&requests[at]).unwrap();
            assert!(text.contains(word), "{api:?} {at}: {text}");
        }
        let body = |at: usize| String::from_utf8_lossy(&requests[at].raw).into_owned();
        // Summarized messages are sent only as the summary, and the summary request exposes no tools.
        assert!(
            body(5).contains(NOTES) && !body(5).contains("Open the door"),
            "{api:?}"
        );
        let offered = |at: usize| requests[at].json()["tools"].as_array().map_or(0, Vec::len);
        assert_eq!((offered(0), offered(4)), (13, 0), "{api:?}");
        let status = home.zeph(["--continue", "-p", "/status"]).code(0);
        assert_has(&status.stdout, &["1 compaction", "1 fact"]);
    }
}
