//! `search_code` over many files: the first call, which indexes them, later calls, and one after a change.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::json;

use super::MIB;
use super::calls::Calls;
use super::report::{Figure, Unit, median};
use super::subject::Home;

/// The number of directories of the tree, and of files in each.
const DIRECTORIES: usize = 500;
const FILES: usize = 100;
/// The number of functions of a file.
const FUNCTIONS: usize = 8;
/// The number of calls of each kind.
const ROUNDS: usize = 9;

pub(super) fn measure(binary: &Path, figures: &mut Vec<Figure>) -> Result<()> {
    let home = Home::new()?;
    let project = home.project();
    for directory in 0..DIRECTORIES {
        std::fs::create_dir_all(project.join(folder(directory)))?;
        for file in 0..FILES {
            write(&project, directory, file, 0)?;
        }
    }
    let mut calls = Calls::start(&home, binary)?;
    // Each query is unique, so that none hits the cache.
    let mut find = |name: String| -> Result<Duration> {
        let (took, text) = calls.call("search_code", &json!({ "query": name, "limit": 1 }))?;
        let found = text.lines().any(|line| {
            line.contains(&name) && line.contains(": fn ") && !line.contains("partial")
        });
        ensure!(found, "{name} is not found: {text}");
        Ok(took)
    };
    let first = find(name(7, 0, 0, 0))?;
    let (mut later, mut changed) = (Vec::new(), Vec::new());
    for round in 1..=ROUNDS {
        later.push(find(name(round, 0, 0, 0))?);
        write(&project, round, 0, round)?;
        changed.push(find(name(round, 0, 0, round))?);
    }
    let memory = calls.memory();
    let (later, changed) = (median(&later), median(&changed));
    let count = DIRECTORIES * FILES;
    figures.push(
        Figure::new(
            format!("search_code over {count} files, first call"),
            Unit::Ms,
            first.as_secs_f64() * 1e3,
        )
        .at_most(60_000.0),
    );
    figures.push(Figure::new("search_code, later calls", Unit::Ms, later));
    figures.push(
        Figure::new(
            "search_code, one file changed, over a later call",
            Unit::Ms,
            changed - later,
        )
        .at_most(100.0)
        .beside("the whole call", changed),
    );
    figures.push(Figure::new(
        "search_code, peak memory",
        Unit::MiB,
        memory.peak as f64 / MIB,
    ));
    calls.end()
}

/// The path of a directory, which has three levels like real sources.
fn folder(directory: usize) -> String {
    format!(
        "dir_{}/part_{}/leaf_{directory}",
        directory % 20,
        directory / 20 % 5
    )
}

fn name(directory: usize, file: usize, function: usize, version: usize) -> String {
    format!("compute_{directory}_{file}_{function}_v{version}_end")
}

/// Writes a file of 8 functions in one of seven languages; the first one is Rust.
fn write(project: &Path, directory: usize, file: usize, version: usize) -> Result<()> {
    let (ending, begin, end) = [
        (
            "rs",
            "fn ",
            "(x: u32) -> u32 {\n    let y = x + 1;\n    y * 2\n}\n",
        ),
        ("py", "def ", "(x):\n    y = x + 1\n    return y * 2\n\n"),
        (
            "ts",
            "export function ",
            "(x: number): number {\n  const y = x + 1;\n  return y * 2;\n}\n",
        ),
        (
            "go",
            "func ",
            "(x int) int {\n\ty := x + 1\n\treturn y * 2\n}\n",
        ),
        (
            "java",
            "class Of",
            " {\n  int go(int x) {\n    int y = x + 1;\n    return y * 2;\n  }\n}\n",
        ),
        (
            "c",
            "int ",
            "(int x) {\n  int y = x + 1;\n  return y * 2;\n}\n",
        ),
        (
            "cpp",
            "int space::",
            "(int x) {\n  int y = x + 1;\n  return y * 2;\n}\n",
        ),
    ][file % 7];
    let mut text = String::new();
    for function in 0..FUNCTIONS {
        write!(
            text,
            "{begin}{}{end}",
            name(directory, file, function, version)
        )?;
    }
    std::fs::write(
        project
            .join(folder(directory))
            .join(format!("file_{file}.{ending}")),
        text,
    )?;
    Ok(())
}
