//! The `diagnostics` tool: the findings of cargo as structured data.

use serde_json::json;

use crate::rig::{Home, OpenAi};

fn home() -> Home {
    Home::openai(&OpenAi::replies([]))
}

fn project(home: &Home, main: &str) {
    home.write(
        "Cargo.toml",
        "[package]\nname = \"sample\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n",
    );
    home.write("src/main.rs", main);
}

/// Proves EXE-30: errors come first, with location and code; the list is limited and says so.
#[test]
fn project_diagnostics_are_listed_and_limited() {
    let home = home();
    project(
        &home,
        "fn main() {\n    let unused = 1;\n    let text: u32 = \"no\";\n    drop(text);\n}\n",
    );
    let params = json!({"max_diagnostics": 1}).to_string();
    let call = [
        "tools",
        "call",
        "diagnostics",
        params.as_str(),
        "--yes",
        "--json",
    ];
    let form = home.zeph(call).with_toolchain().code(0).json();
    let found = &form["raw_response"]["diagnostics"];
    assert_eq!(found.as_array().unwrap().len(), 1, "{form}");
    assert_eq!(found[0]["severity"], "error");
    assert_eq!(found[0]["code"], "E0308");
    assert_eq!(found[0]["file"], "src/main.rs");
    assert_eq!(
        (found[0]["line"].as_u64(), found[0]["column"].as_u64()),
        (Some(3), Some(21))
    );
    let data = form["data"].as_str().unwrap();
    assert!(
        data.contains("error[E0308] src/main.rs:3:21: mismatched types"),
        "{data}"
    );
    if form["raw_response"]["warnings"] != 0 {
        assert!(data.contains("more omitted"), "{data}");
    }
}

/// Proves EXE-31: a missing cargo is a warning, a missing project is an error, and nothing panics.
#[test]
fn missing_cargo_or_project_is_reported() {
    let home = home();
    let call = ["tools", "call", "diagnostics", "{}", "--yes", "--json"];
    let empty = home.zeph(call).env("PATH", "/nowhere").code(0).json();
    assert_eq!(empty["raw_response"]["diagnostics"], json!([]));
    assert!(
        empty["data"]
            .as_str()
            .unwrap()
            .contains("cargo is not on PATH")
    );

    let form = home.zeph(call).with_toolchain().code(1).json();
    assert_eq!(form["error_type"], "not_found", "{form}");
    assert!(
        form["error_message"]
            .as_str()
            .unwrap()
            .contains("not a Cargo project")
    );
}

/// Proves EXE-31: the shell timeout applies, and the call needs approval because a check runs code of the
/// project.
#[test]
fn shell_rules_apply_to_diagnostics() {
    let home = home();
    project(&home, "fn main() {}\n");
    home.write(
        "build.rs",
        "fn main() { std::thread::sleep(std::time::Duration::from_secs(60)) }\n",
    );
    let call = ["tools", "call", "diagnostics", "{}", "--json"];
    home.zeph(call).with_toolchain().code(3);
    let call = [
        "tools",
        "call",
        "diagnostics",
        "{}",
        "--json",
        "--yes",
        "--set",
        "tools.shell.max_timeout=2",
    ];
    let form = home.zeph(call).with_toolchain().code(1).json();
    assert_eq!(form["error_category"], "timeout", "{form}");
    home.wait_until_alone();
}
