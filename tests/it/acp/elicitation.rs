//! Questions of MCP servers reach the editor.

use serde_json::{Value, json};

use crate::mcp::{Served, tool};
use crate::rig::{Editor, OpenAi, Reply, openai_config};

/// A server whose tool `ask` asks for a branch, and a model that calls it once.
fn asking() -> (Served, OpenAi) {
    let served = Served::in_mode(&[tool("ask")], "", "");
    served.approve();
    let schema = json!({ "type": "object", "required": ["branch"], "properties": {
        "branch": { "type": "string", "title": "The\u{200b} branch", "minLength": 2 },
    }});
    let params = json!({ "message": "Which branch?", "schema": schema });
    let model = OpenAi::replies([
        Reply::calls("c", &[("mcp_t_ask", params)]),
        Reply::text("That is all."),
    ]);
    served.home.more_config(&format!(
        "{}\n[[tools.permissions.mcp_t_ask]]\npattern = \"*\"\naction = \"allow\"\n",
        openai_config(&model.url())
    ));
    (served, model)
}

/// The text that the model received for the call.
fn result(model: &OpenAi) -> String {
    let messages = model.requests()[1].json()["messages"].clone();
    let last = messages.as_array().and_then(|all| all.last()).cloned();
    last.unwrap()["content"].to_string().replace("\\", "")
}

/// Proves ACP-5, MCP-1b: a form of a server is an elicitation of the session. Only valid values are accepted.
#[test]
fn form_of_a_server_is_an_elicitation_of_the_session() {
    let check = |response: Value, expect: &str| {
        let (served, model) = asking();
        let capabilities = json!({ "elicitation": { "form": {} } });
        let mut editor = Editor::with_capabilities(&served.home, &[], &capabilities);
        let session = editor.session(&served.home.project());
        let prompt = editor.send_prompt(&session, "go");
        let question = editor.until(|it| it["method"] == "elicitation/create");
        let params = &question["params"];
        assert_eq!(params["sessionId"], session.as_str());
        assert_eq!(params["message"], "The MCP server t asks: Which branch?");
        let branch = &params["requestedSchema"]["properties"]["branch"];
        assert_eq!(branch["title"], "The\\u{200b} branch");
        let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": response });
        editor.line(&answer.to_string());
        assert_eq!(editor.response(prompt)["result"]["stopReason"], "end_turn");
        let result = result(&model);
        assert!(result.contains(expect), "{response}: {result}");
        editor.leave().code(0);
    };
    let accepted = "\"action\": \"accept\", \"content\": {\"branch\": \"main\"}";
    let declined = "\"action\": \"decline\"";
    check(
        json!({ "action": "accept", "content": { "branch": "main" } }),
        accepted,
    );
    check(
        json!({ "action": "accept", "content": { "branch": "m" } }),
        declined,
    );
    check(json!({ "action": "decline" }), declined);
    check(json!({ "action": "cancel" }), "\"action\": \"cancel\"");
}

/// Proves MCP-1b: a client without forms gets a notice that a question was declined.
#[test]
fn form_for_a_client_without_forms_is_declined() {
    let (served, model) = asking();
    let mut editor = Editor::open(&served.home);
    let session = editor.session(&served.home.project());
    editor.prompt(&session, "go");
    let result = result(&model);
    assert!(result.contains("\"action\": \"decline\""), "{result}");
    let notices = editor.updates("notice");
    let is_about_forms = |notice: &Value| notice.to_string().contains("the editor shows no forms");
    assert!(notices.iter().any(is_about_forms), "{notices:?}");
    editor.leave().code(0);
}
