//! `grep` and `find_path` in comparison with ripgrep and fd, over a tree of many files.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::calls::Calls;
use super::report::{Figure, Unit};
use super::subject::Home;
use crate::project::Project;

/// The number of directories of the tree, and of files in each.
const DIRECTORIES: usize = 500;
const FILES: usize = 100;
/// The number of runs of each search. The best one counts, because disturbances only slow a run.
const ROUNDS: usize = 9;

/// A search with a tool and with another program.
struct Search {
    what: &'static str,
    tool: &'static str,
    params: Value,
    /// The other program, and its arguments.
    program: &'static str,
    arguments: &'static [&'static str],
}

pub(super) fn measure(project: &Project, binary: &Path, figures: &mut Vec<Figure>) -> Result<()> {
    let rg = project.tool("ripgrep", "rg");
    let fd = project.tool("fd-find", "fd");
    let (rg, fd) = match (rg, fd) {
        (Ok(rg), Ok(fd)) => (rg, fd),
        (Err(error), _) | (_, Err(error)) => {
            eprintln!("searches are not measured: {error:#}");
            return Ok(());
        }
    };
    let home = Home::new()?;
    tree(&home.project())?;
    let searches = [
        Search {
            what: "grep, a rare word",
            tool: "grep",
            params: json!({ "pattern": "needle_[0-9]+_found" }),
            program: "rg",
            arguments: &["--no-config", "--no-heading", "-n", "needle_[0-9]+_found"],
        },
        Search {
            what: "grep, no match, any case",
            tool: "grep",
            params: json!({ "pattern": "no such thing", "case_sensitive": false }),
            program: "rg",
            arguments: &["--no-config", "--no-heading", "-n", "-i", "no such thing"],
        },
        Search {
            what: "grep, one kind of file",
            tool: "grep",
            params: json!({ "pattern": "needle_[0-9]+_found", "glob": "*.toml" }),
            program: "rg",
            arguments: &[
                "--no-config",
                "--no-heading",
                "-n",
                "-g",
                "*.toml",
                "needle_[0-9]+_found",
            ],
        },
        Search {
            what: "find_path, some of all",
            tool: "find_path",
            params: json!({ "path": ".", "pattern": "**/file_7*.rs" }),
            program: "fd",
            arguments: &["--glob", "file_7*.rs"],
        },
    ];
    let mut calls = Calls::start(&home, binary)?;
    for search in &searches {
        let other = if search.program == "rg" { &rg } else { &fd };
        let (mut ours, mut theirs) = (Duration::MAX, Duration::MAX);
        for _ in 0..ROUNDS {
            let (took, text) = calls.call(search.tool, &search.params)?;
            ours = ours.min(took);
            let (took, lines) = run(&home, other, search.arguments)?;
            theirs = theirs.min(took);
            let found = text.lines().filter(|line| line.contains("dir_")).count();
            // Truncated results still count all matches.
            ensure!(
                found == lines
                    || (found < lines && text.contains("more: ") || text.contains(" of ")),
                "{}: {found} results, {} has {lines}",
                search.what,
                search.program
            );
        }
        let ms = |took: Duration| took.as_secs_f64() * 1e3;
        figures.push(
            Figure::new(
                format!("{} over {}", search.what, search.program),
                Unit::Ratio,
                ours.as_secs_f64() / theirs.as_secs_f64(),
            )
            .at_most(1.3),
        );
        figures
            .push(Figure::new(search.what, Unit::Ms, ms(ours)).beside(search.program, ms(theirs)));
    }
    calls.end()
}

/// The time from start to exit, and the number of printed lines. A search without matches exits with 1.
fn run(home: &Home, program: &Path, arguments: &[&str]) -> Result<(Duration, usize)> {
    let mut command = home.command(program);
    command.args(arguments).stdout(Stdio::piped());
    let start = Instant::now();
    let output = command
        .output()
        .with_context(|| program.display().to_string())?;
    let took = start.elapsed();
    ensure!(
        matches!(output.status.code(), Some(0 | 1)),
        "{}: {}",
        program.display(),
        output.status
    );
    Ok((
        took,
        output.stdout.iter().filter(|byte| **byte == b'\n').count(),
    ))
}

/// A project of 50,000 files of 200 bytes to 60 kB, a tenth of them ignored.
fn tree(project: &Path) -> Result<()> {
    std::fs::create_dir_all(project.join(".git"))?;
    std::fs::write(project.join(".gitignore"), "*.log\n/dir_1*9/\n")?;
    let mut random = 0x2545_F491_4F6C_DD1D_u64;
    let mut next = move |end: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        usize::try_from(random % end as u64).unwrap_or(0)
    };
    let mut text = String::new();
    for directory in 0..DIRECTORIES {
        // Three levels, like real sources.
        let mut path = PathBuf::from(format!("dir_{}", directory % 20));
        path.push(format!("part_{}", directory / 20 % 5));
        path.push(format!("leaf_{directory}"));
        let path = project.join(path);
        std::fs::create_dir_all(&path)?;
        for file in 0..FILES {
            let lines = match next(100) {
                0 => 1000,
                1..=10 => 5,
                _ => 15 + next(60),
            };
            text.clear();
            for line in 0..lines {
                let (name, value) = (next(1000), next(100_000));
                writeln!(
                    text,
                    "    let value_{name} = compute({value}, \"step {line}\")?;"
                )?;
            }
            if next(1000) == 0 {
                writeln!(text, "// needle_{file}_found")?;
            }
            let ending = [
                "rs", "rs", "rs", "toml", "md", "py", "js", "rs", "json", "log",
            ][file % 10];
            std::fs::write(path.join(format!("file_{file}.{ending}")), &text)?;
        }
    }
    Ok(())
}
