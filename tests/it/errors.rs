//! Error texts: each failure has one for the model and one for the user.

use serde_json::{Value, json};

use crate::rig::{Home, OpenAi, Reply, results_of};

/// Proves ERR-4, ERR-3: the model reads the block; the user's text is logged if requested.
#[test]
fn log_contains_the_text_for_the_user() {
    let home = Home::new();
    let params = json!({ "path": "nope.txt" }).to_string();
    let call = ["tools", "call", "read", &params];
    let output = home.zeph(call).arg("--verbose").code(1);
    let block = "[tool_error]\ncategory: permanent_failure\nerror: ";
    assert!(output.stdout.starts_with(block), "{output}");
    let logged = output
        .stderr
        .lines()
        .find(|line| line.contains("a call failed: "));
    let logged = logged.unwrap_or_else(|| panic!("{output}"));
    for part in ["nope.txt", "permanent_failure", "read"] {
        assert!(logged.contains(part), "{part} is not in {logged}");
    }
    assert!(!output.stderr.contains("[tool_error]"), "{output}");
    let output = home.zeph(call).code(1);
    assert!(!output.stderr.contains("a call failed"), "{output}");
}

/// Proves ERR-5: `[tools] result_format = "json"` gives the model the JSON result.
#[test]
fn model_can_read_json_results() {
    let server = OpenAi::start(|n, _| match n {
        0 => Reply::calls(
            "a",
            &[
                ("read", json!({ "path": "here.txt" })),
                ("read", json!({ "path": "nope.txt" })),
                ("nope", json!({})),
            ],
        ),
        _ => Reply::text("Done."),
    });
    let home = Home::openai(&server);
    home.more_config("[tools]\nresult_format = \"json\"\n");
    home.write("here.txt", "some words\n");
    home.zeph(["-p", "go"]).code(0);
    let body = server.last().json();
    let results: Vec<Value> = results_of(body["messages"].as_array().unwrap())
        .iter()
        .map(|(_, content)| serde_json::from_str(content).unwrap())
        .collect();
    let fields: Vec<(&Value, &Value, &Value)> = results
        .iter()
        .map(|form| {
            (
                &form["success"],
                &form["error_type"],
                &form["error_category"],
            )
        })
        .collect();
    assert_eq!(
        fields,
        [
            (&json!(true), &json!("none"), &Value::Null),
            (
                &json!(false),
                &json!("not_found"),
                &json!("permanent_failure")
            ),
            (&json!(false), &json!("not_found"), &json!("tool_not_found")),
        ]
    );
    for form in &results {
        let data = form["data"].as_str().unwrap();
        let metadata = &form["metadata"];
        assert_eq!(metadata["data_size_bytes"], json!(data.len()), "{form}");
        assert!(
            metadata["timestamp"].as_i64().unwrap() > 1_600_000_000_000,
            "{form}"
        );
        assert!(metadata["execution_time_ms"].is_u64(), "{form}");
    }
    assert!(results[0]["data"].as_str().unwrap().contains("some words"));
    assert_eq!(results[0]["error_message"], Value::Null);
    let reported = results[1]["error_message"].as_str().unwrap();
    assert!(reported.contains("nope.txt"), "{reported}");
}
