//! `cargo xtask fuzz`: runs the fuzz targets in sequence, with seeds from the tables of the tests.
//!
//! An installed cargo-fuzz is used, otherwise it is built into the target folder. No sanitizer is used: the
//! crates have no unsafe code to watch, and a target runs several times as fast without one. cargo-fuzz needs
//! nightly features, which `RUSTC_BOOTSTRAP` enables in the stable compiler.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use xshell::cmd;

use crate::flags::Fuzz;
use crate::project::Project;

/// The default number of seconds for each target.
const SECONDS: u64 = 300;
/// Seconds after which one input counts as a hang.
const HANG: u64 = 10;
/// The maximum input length in bytes.
const MAX_INPUT_BYTES: usize = 4096;
/// The tables of commands.
const COMMANDS: &[&str] = &["allowed.txt", "refused.txt"];

pub(crate) fn run(project: &Project, flags: &Fuzz) -> Result<()> {
    let fuzz = project.root.join("fuzz");
    let program = program(project)?;
    let all = targets(project)?;
    let targets = match &flags.target {
        Some(target) => {
            ensure!(
                all.contains(target),
                "no target {target}; there are {}",
                all.join(", ")
            );
            vec![target.clone()]
        }
        None => all,
    };
    let seconds = flags.seconds.unwrap_or(SECONDS);
    for target in &targets {
        let corpus = fuzz.join("corpus").join(target);
        std::fs::create_dir_all(&corpus)?;
        for (nth, seed) in seeds(project, target)?.iter().enumerate() {
            std::fs::write(corpus.join(format!("seed-{nth}")), seed)?;
        }
        let sh = &project.sh;
        let _inside = sh.push_dir(&project.root);
        let limits = [
            format!("-max_total_time={seconds}"),
            format!("-timeout={HANG}"),
            format!("-max_len={MAX_INPUT_BYTES}"),
        ];
        cmd!(
            sh,
            "{program} fuzz run --sanitizer none {target} -- {limits...}"
        )
        .env("RUSTC_BOOTSTRAP", "1")
        .run()
        .with_context(|| {
            format!("{target}: the input is in fuzz/artifacts/{target}; make it a test")
        })?;
    }
    Ok(())
}

/// The names of the targets, which are the file names of the folder.
fn targets(project: &Project) -> Result<Vec<String>> {
    let mut targets = Vec::new();
    for entry in std::fs::read_dir(project.root.join("fuzz/fuzz_targets"))? {
        let path = entry?.path();
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        targets.extend(stem.map(str::to_owned));
    }
    targets.sort();
    Ok(targets)
}

fn program(project: &Project) -> Result<PathBuf> {
    let installed = project.cargo("fuzz --version").quiet().ignore_stderr();
    if installed.read().is_ok() {
        return Ok(PathBuf::from("cargo-fuzz"));
    }
    project.tool("cargo-fuzz", "cargo-fuzz")
}

/// The seeds of a target.
fn seeds(project: &Project, target: &str) -> Result<Vec<Vec<u8>>> {
    let text = |items: &[&str]| items.iter().map(|item| item.as_bytes().to_vec()).collect();
    Ok(match target {
        "shell_policy" | "extract_paths" => commands(project)?,
        "read_rules" => text(&[
            "**/.env",
            "/etc/**",
            "~/.ssh/**",
            "/a/{b,c}/*.txt",
            "**/*.{key,pem}",
        ]),
        "secrets" => text(&[
            "password = \"a1-b2-c3-d4\"\nAuthorization: Bearer a1b2c3d4e5f6a7b8\r\n",
            "x://u:a1b2c3@h/?sig= sk-a eyJhIjoxfQ.eyJh\u{1b}[m.\u{8}",
            "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEF\n\nx",
        ]),
        "url_guard" => text(&[
            "https://example.org/a?b#c",
            "https://[::ffff:127.0.0.1]/",
            "https://0x7f.1/",
            "https://a.localhost./",
        ]),
        "html" => text(&[
            "<table><tr><td>a<p><b>b</table><!-- c --><a href='x'>d</a><pre>\n e</pre>",
            "<svg><foreignObject><math><mi>x<p></svg>",
        ]),
        "sse" => text(&["event: x\ndata: a\ndata: b\n\n: c\r\rdata:x\r\n\r\n"]),
        "openai_answer" => text(&[
            "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"x\",\"arguments\":\"{}\"}}]},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n",
            "{\"choices\":[{\"message\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":1}}",
        ]),
        "claude_answer" => text(&[
            "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":1}}}\n\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"x\",\"input\":{}}}\n\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{}\"}}\n\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"}}\n\n",
            "{\"content\":[{\"type\":\"text\",\"text\":\"hi\"},{\"type\":\"thinking\",\"thinking\":\"a\",\"signature\":\"b\"}],\"stop_reason\":\"end_turn\"}",
        ]),
        "responses_answer" => text(&[
            "data: {\"type\":\"response.output_item.added\",\"output_index\":0,\"item\":{\"type\":\"function_call\",\"call_id\":\"a\",\"name\":\"x\"}}\n\ndata: {\"type\":\"response.function_call_arguments.delta\",\"output_index\":0,\"delta\":\"{}\"}\n\ndata: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\"}}\n\n",
            "{\"output\":[{\"type\":\"reasoning\",\"encrypted_content\":\"a\"},{\"type\":\"message\",\"content\":[{\"type\":\"output_text\",\"text\":\"hi\"}]}]}",
        ]),
        "ollama_answer" => text(&[
            "{\"message\":{\"content\":\"hi\",\"thinking\":\"a\"}}\n{\"message\":{\"tool_calls\":[{\"function\":{\"name\":\"x\",\"arguments\":\"{}\"}}]}}\n{\"done\":true}\n",
        ]),
        "text_calls" => text(&[
            "I look.\n```bash\nls\n```\n> ```bash\n> a\n> ```\n````md\n```scrape\n{}\n```\n````\n<!--\n-->\n1. a\n   ~~~\n",
            "```json\n{\"tool_id\": \"read\", \"params\": {\"path\": \"a\nb\"}}\n```<|im_end|>",
            "<think>\n</think>\n{\"name\": \"bash\", \"arguments\": {}",
        ]),
        "params" => text(&[
            "{\"path\":\"a\",\"offset\":\"3\",\"mode\":\"a\"}",
            "{\"tasks\":\"[{\\\"text\\\":1}]\"}",
        ]),
        "supervisor_frames" => text(&[
            "\u{c}\0\0\0{\"kill\":{\"id\":1}}",
            "{\"gone\":{\"id\":1,\"clean\":true}}",
        ]),
        "acp_lines" => text(&[
            // The first two bytes are the limit and the size of the buffer.
            "\u{7f}\u{3}{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\"}\n\n{\"id\":2}\r\nlast",
            "\u{8}\u{40}short\nmuch longer than the limit\n \n\u{e4}\n",
        ]),
        "mcp_message" => text(&[
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"read\",\"arguments\":{\"path\":\"a\"}}}",
            "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},\"clientInfo\":{\"name\":\"c\",\"version\":\"1\"}}}",
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":1}}",
            "{\"jsonrpc\":\"2.0\",\"id\":null,\"result\":{}}",
            "\u{feff}[{\"id\":1},{\"id\":1.5,\"id\":{}}]",
        ]),
        "sanitize" => text(&[
            "a 1%\na\u{1b}[1A\u{1b}[2K\rb\u{8}c\u{1b}]8;;x\u{1b}\\y\r\n\u{1b}[Jz\u{1b}7\u{1b}[3;1Hw\u{1b}8",
            "\u{9b}31m\t\u{1b}[3Cx\u{1b}[1K\u{1b}[2D\u{6f22}\n\n\n",
        ]),
        _ => text(&["fn main() {\n\tlet a = \u{201c}x\u{201d};\r\n}\n"]),
    })
}

/// The commands of the blocklist's tables.
fn commands(project: &Project) -> Result<Vec<Vec<u8>>> {
    let tables = project.root.join("crates/zeph-bash/src/tests");
    let mut commands = Vec::new();
    for table in COMMANDS {
        let text = std::fs::read_to_string(tables.join(table)).context(*table)?;
        for line in text.lines() {
            // In the table of refused commands, a letter for the expected decision precedes the command.
            let command = match *table {
                "refused.txt" => line.split_once(' ').map_or(line, |(_, command)| command),
                _ => line,
            };
            let command = command.replace("\\\\n", "\\\n").replace("\\n", "\n");
            commands.push(command.into_bytes());
        }
    }
    Ok(commands)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_has_seeds() {
        let project = Project::locate().unwrap();
        let targets = targets(&project).unwrap();
        assert!(targets.len() >= 10, "{targets:?}");
        for target in targets {
            let seeds = seeds(&project, &target).unwrap();
            assert!(
                !seeds.is_empty() && seeds.iter().all(|seed| seed.len() <= MAX_INPUT_BYTES),
                "{target}"
            );
        }
    }
}
