//! `cargo xtask bench`: measurements of the built binary, compared with baselines of the machine.
//!
//! A server on loopback acts as the model and sends scripted responses, so that the time between a response
//! and the next request is Zeph's own. Each figure has a baseline of the same run, because a busy machine
//! slows both. docs/performance.md explains the figures.

mod acp;
mod baseline;
mod calls;
mod code;
mod commands;
mod logs;
pub(crate) mod model;
pub(crate) mod report;
mod search;
mod stream;
pub(crate) mod subject;
mod telemetry;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::flags::Bench;
use crate::project::{Project, verdict};
use model::Answer;
use report::{Figure, Unit, median};
use subject::{Home, Run};

/// The number of program starts that print the version, and of baseline starts.
const STARTS: usize = 50;
/// The number of conversation starts, both with a new and with an existing database.
const CONVERSATIONS: usize = 20;
/// The number of consecutive turns of one kind.
const TURNS: usize = 100;
/// The number of turns of the long conversation.
const LONG: usize = 200;
/// The number of lines of an excerpt. The excerpts of a long conversation about fill a window of 128 000
/// tokens; whole files exceed any window.
const EXCERPT: usize = 25;
/// The number of turns that are compared at each end of the conversation.
const END: usize = 20;
/// The number of repetitions. The two ends are apart in time, so a disturbance may affect only one of them.
const REPEATS: usize = 5;
/// The number of files that are read in turn: three identical calls in a row would end the conversation.
const FILES: usize = 10;

const MIB: f64 = 1024.0 * 1024.0;

/// Runs the micro-benchmarks.
fn micro(project: &Project) -> xshell::Result<()> {
    project
        .cargo("bench -p zeph-llm --features fuzzing --bench stream --bench request")
        .run()?;
    project.cargo("bench -p zeph-filter --bench speed").run()?;
    project
        .cargo("bench -p zeph-secrets --bench secrets")
        .run()?;
    project.cargo("bench -p zeph-memory --bench memory").run()?;
    project.cargo("bench -p zeph-tools --bench gates").run()
}

pub(crate) fn run(project: &Project, flags: &Bench) -> Result<()> {
    if flags.micro {
        return Ok(micro(project)?);
    }
    if flags.edits {
        let args = "test -p zeph-edit --test rates -- --nocapture";
        return Ok(project.cargo(args).run()?);
    }
    let binary = binary(project, flags)?;
    let mut figures = Vec::new();
    if let Some(with) = &flags.telemetry {
        let with = std::path::absolute(with).context("--telemetry")?;
        let script = |home: &Home| Ok(reads(&files(&home.project())?, None, TURNS));
        telemetry::measure(&binary, &with, script, &mut figures)?;
        return report(&figures, flags);
    }
    if !flags.streams {
        start(&binary, &mut figures)?;
        conversations(&binary, &mut figures)?;
        logs::measure(
            &binary,
            |home| Ok(reads(&files(&home.project())?, None, TURNS)),
            &mut figures,
        )?;
        commands::measure(&binary, &mut figures)?;
        acp::measure(&binary, &mut figures)?;
        search::measure(project, &binary, &mut figures)?;
        code::measure(&binary, &mut figures)?;
        let size = std::fs::metadata(&binary)?.len();
        figures.push(Figure::new("the binary", Unit::MiB, size as f64 / MIB).at_most(42.9));
    }
    stream::measure(&binary, &mut figures)?;
    report(&figures, flags)
}

/// Prints the figures, and fails if a target is missed and that was asked for.
fn report(figures: &[Figure], flags: &Bench) -> Result<()> {
    if flags.json {
        println!("{:#}", report::json(figures));
    } else {
        println!("{}", report::table(figures));
    }
    let findings: Vec<String> = figures.iter().filter_map(Figure::finding).collect();
    if flags.check {
        return verdict("bench", &findings);
    }
    Ok(())
}

/// The measured binary, which is built if it was not named.
fn binary(project: &Project, flags: &Bench) -> Result<PathBuf> {
    if let Some(binary) = &flags.binary {
        return std::path::absolute(binary).context("--binary");
    }
    if flags.debug {
        return project.debug_binary();
    }
    crate::ci::release_build(project)?;
    project.release_binary()
}

/// Measures the time from process start to the version, and to the first request.
fn start(binary: &Path, figures: &mut Vec<Figure>) -> Result<()> {
    let home = Home::new()?;
    let (mut plain, mut version) = (Vec::new(), Vec::new());
    for _ in 0..STARTS {
        plain.push(baseline::process(&mut home.command(Path::new("true")))?);
        version.push(baseline::process(home.command(binary).arg("--version"))?);
    }
    let plain = median(&plain);
    figures.push(
        Figure::new("zeph --version", Unit::Ms, median(&version))
            .at_most(5.0)
            .beside("true", plain),
    );

    let (mut new, mut existing) = (Vec::new(), Vec::new());
    let hi = || vec![Answer::text("hello")];
    let used = Home::new()?;
    let first = used.run(binary, hi())?;
    for _ in 0..CONVERSATIONS {
        new.push(Home::new()?.run(binary, hi())?.to_first_request());
        existing.push(used.run(binary, hi())?.to_first_request());
    }
    for (what, samples) in [("new", &new), ("existing", &existing)] {
        figures.push(
            Figure::new(
                format!("start to first request, {what} database"),
                Unit::Ms,
                median(samples),
            )
            .at_most(30.0)
            .beside("true", plain),
        );
    }
    let tools = definitions(&first.first_body)?;
    let request = first.first_body.len();
    figures
        .push(Figure::new("tool definitions as sent", Unit::Bytes, tools as f64).at_most(7168.0));
    figures.push(Figure::new("first request", Unit::Bytes, request as f64).at_most(12288.0));
    Ok(())
}

/// The size of the tool definitions in a request, in bytes.
fn definitions(body: &[u8]) -> Result<usize> {
    let request: Value = serde_json::from_slice(body).context("the first request")?;
    let tools = request["tools"].as_array();
    let tools = tools.filter(|tools| !tools.is_empty());
    let tools = tools.context("the first request has no tools")?;
    Ok(serde_json::to_string(tools)?.len())
}

/// Measures turns with calls: their time, and the memory of conversations.
fn conversations(binary: &Path, figures: &mut Vec<Figure>) -> Result<()> {
    let home = Home::new()?;
    let files = files(&home.project())?;

    let run = home.run(binary, ordinary(&files))?;
    let memory = run.memory.first().copied().unwrap_or_default();
    figures.push(
        Figure::new("peak memory, 20 calls", Unit::MiB, memory.peak as f64 / MIB)
            .at_most(30.0)
            .beside("its helper processes", memory.helpers as f64 / MIB),
    );

    let fresh = Home::new()?;
    let fresh_files = self::files(&fresh.project())?;
    for (what, home, files) in [("new", &fresh, &fresh_files), ("existing", &home, &files)] {
        let run = home.run(binary, reads(files, None, TURNS))?;
        let bodies: usize = run.exchanges.iter().map(|exchange| exchange.body).sum();
        let body = bodies / run.exchanges.len();
        let trips = baseline::round_trips(TURNS, body)?;
        let plain: Vec<Duration> = (0..TURNS)
            .map(|nth| baseline::read(&files[nth % files.len()].0))
            .collect::<Result<_>>()?;
        figures.push(
            Figure::new(
                format!("read turn, {what} database"),
                Unit::Ms,
                median(&run.turns()),
            )
            .at_most(2.0)
            .beside("round trip alone", median(&trips))
            .beside("plain read", median(&plain)),
        );
    }

    let run = home.run(binary, commands(TURNS))?;
    let plain: Vec<Duration> = (0..TURNS)
        .map(|nth| {
            let mut bash = home.command(Path::new("bash"));
            baseline::output(bash.args(["-c", &format!("true {nth}")]))
        })
        .collect::<Result<_>>()?;
    let (turn, plain) = (median(&run.turns()), median(&plain));
    figures.push(
        Figure::new("bash turn over the command", Unit::Ms, turn - plain)
            .at_most(2.0)
            .beside("whole turn", turn)
            .beside("bash -c true", plain),
    );

    // Each request contains the whole history, so its time grows. Within a window this must not be
    // noticeable; larger conversations are only reported.
    let long_ones = [
        ("excerpts", Some(EXCERPT), Some(1.5)),
        ("whole files", None, None),
    ];
    for (what, limit, target) in long_ones {
        let runs: Vec<Run> = (0..REPEATS)
            .map(|_| home.run(binary, long(&files, limit)))
            .collect::<Result<_>>()?;
        long_conversations(&runs, what, target, figures);
    }
    Ok(())
}

/// Reports the turns, memory and connections of long conversations.
fn long_conversations(runs: &[Run], what: &str, target: Option<f64>, figures: &mut Vec<Figure>) {
    let (mut first, mut last) = (Vec::new(), Vec::new());
    for run in runs {
        let turns = run.turns();
        first.extend_from_slice(&turns[..END]);
        last.extend_from_slice(&turns[turns.len() - END..]);
    }
    let (first, last) = (median(&first), median(&last));
    let name = |figure: &str| format!("{LONG} reads of {what}, {figure}");
    let ratio = Figure::new(name("last 20 over first 20"), Unit::Ratio, last / first);
    figures.push(match target {
        Some(target) => ratio.at_most(target),
        None => ratio,
    });
    figures.push(Figure::new(name("last 20"), Unit::Ms, last).beside("first 20", first));
    let connections = runs.iter().map(|run| run.connections).max().unwrap_or(0);
    let connections = Figure::new(name("connections"), Unit::Count, connections as f64);
    figures.push(connections.at_most(1.0));
    let Some(run) = runs.last() else { return };
    let request = run.exchanges.last().map_or(0, |exchange| exchange.body) as f64 / MIB;
    if let [at_start, at_end] = run.memory[..] {
        figures.push(
            Figure::new(
                name("memory at the end"),
                Unit::MiB,
                at_end.now as f64 / MIB,
            )
            .beside("at the start", at_start.now as f64 / MIB)
            .beside("the last request", request),
        );
    }
}

/// A file of the project: its path, and its name in calls.
type ProjectFile = (PathBuf, String);

/// Creates sources of 5 to 20 kB.
fn files(project: &Path) -> Result<Vec<ProjectFile>> {
    std::fs::create_dir_all(project.join("src"))?;
    (0..FILES)
        .map(|nth| {
            let name = format!("src/file_{nth}.rs");
            let lines = 75 + 25 * nth;
            let text: String = (0..lines)
                .map(|line| {
                    format!(
                        "    let value_{line} = compute(&input[{line}], \"step {nth}.{line}\")?;\n"
                    )
                })
                .collect();
            let path = project.join(&name);
            std::fs::write(&path, text)?;
            Ok((path, name))
        })
        .collect()
}

/// A call that reads a file, or some of its lines.
fn read(nth: usize, files: &[ProjectFile], limit: Option<usize>) -> Answer {
    let (_, name) = &files[nth % files.len()];
    let arguments = match limit {
        Some(limit) => json!({ "path": name, "offset": 1 + nth % 50, "limit": limit }),
        None => json!({ "path": name }),
    };
    Answer::call(nth, "read", &arguments)
}

/// A command without effect, which is made unique by its number.
fn command(nth: usize) -> Answer {
    Answer::call(nth, "bash", &json!({ "command": format!("true {nth}") }))
}

/// Fifteen reads and five commands. The last response is held.
fn ordinary(files: &[ProjectFile]) -> Vec<Answer> {
    let mut script: Vec<Answer> = (0..20)
        .map(|nth| {
            if nth % 4 == 3 {
                let (_, name) = &files[nth % files.len()];
                let listing = format!("ls -l src && wc -l {name}");
                Answer::call(nth, "bash", &json!({ "command": listing }))
            } else {
                read(nth, files, None)
            }
        })
        .collect();
    script.push(Answer::text("done").held());
    script
}

/// This number of reads, then a text.
fn reads(files: &[ProjectFile], limit: Option<usize>, turns: usize) -> Vec<Answer> {
    let mut script: Vec<Answer> = (0..turns).map(|nth| read(nth, files, limit)).collect();
    script.push(Answer::text("done"));
    script
}

fn commands(turns: usize) -> Vec<Answer> {
    let mut script: Vec<Answer> = (0..turns).map(command).collect();
    script.push(Answer::text("done"));
    script
}

/// Reads with the first and the last response held, to measure the memory at both ends.
fn long(files: &[ProjectFile], limit: Option<usize>) -> Vec<Answer> {
    let mut script = reads(files, limit, LONG);
    let last = script.len() - 1;
    for at in [0, last] {
        script[at] = script[at].clone().held();
    }
    script
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definition_size_is_that_of_the_compact_array() {
        let body = br#"{"model":"x","tools":[{"type":"function","function":{"name":"a"}}]}"#;
        assert_eq!(definitions(body).unwrap(), 45);
        assert!(definitions(br#"{"tools":[]}"#).is_err());
        assert!(definitions(b"no").is_err());
    }

    #[test]
    fn project_files_have_ordinary_sizes() {
        let home = Home::new().unwrap();
        let files = files(&home.project()).unwrap();
        for (path, name) in files {
            let size = std::fs::metadata(path).unwrap().len();
            assert!((4_000..=21_000).contains(&size), "{name}: {size}");
        }
    }
}
