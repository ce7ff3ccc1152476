//! The `docker_build` strategy: it retains failed steps of an image build with the end of their output, errors,
//! warnings and results.
//!
//! BuildKit's plain progress has a number before every line of a step (`#8 0.512 …`), because steps run in
//! parallel. On a terminal it shows `=> [2/4] RUN …`. The legacy builder prints `Step 2/4 : RUN …`, then the
//! unchanged output of the step.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::excerpt::{Excerpt, keep_cut};
use super::{FilterConfidence, Strategy, StrategyFactory, no_params};
use crate::duration_tokens::without_time;
use crate::line::{ExitInfo, Line, OwnedLine, Sink};

/// Last lines of a step that are buffered in case it fails.
const TAIL: usize = 40;
/// The maximum number of parallel steps.
const MAX_STEPS: usize = 64;
/// Bytes of a line.
const MAX_LINE_BYTES: usize = 2000;
/// First and last lines of output that no builder prints.
const FOREIGN: (usize, usize) = (30, 30);

#[derive(Debug)]
struct DockerBuild;

pub(super) fn make(table: toml::Table) -> Result<Arc<dyn StrategyFactory>, String> {
    no_params(&table)?;
    Ok(Arc::new(DockerBuild))
}

impl StrategyFactory for DockerBuild {
    fn start(&self) -> Box<dyn Strategy> {
        Box::new(Build {
            steps: HashMap::default(),
            names: HashMap::default(),
            current: None,
            told: HashSet::default(),
            excerpt: Excerpt::new(FOREIGN.0, FOREIGN.1),
            source: None,
            understood: false,
        })
    }
}

#[derive(Debug)]
struct Build {
    /// BuildKit's open steps by number.
    steps: HashMap<u32, Step>,
    /// The names of open steps, if they are known.
    names: HashMap<u32, OwnedLine>,
    /// The current step of the legacy builder.
    current: Option<Step>,
    /// Results and lines of failed steps that were shown, because BuildKit repeats them.
    told: HashSet<String>,
    excerpt: Excerpt,
    /// A line of the Dockerfile, until it is known which one is meant.
    source: Option<OwnedLine>,
    understood: bool,
}

#[derive(Debug)]
struct Step {
    name: Option<OwnedLine>,
    printed: Excerpt,
}

impl Step {
    fn new(name: Option<OwnedLine>) -> Self {
        Self {
            name,
            printed: Excerpt::new(0, TAIL),
        }
    }
}

/// Parses number and text from `#8 0.512 text`, `#8 [2/4] RUN …` or `#8 DONE 1.2s`.
fn numbered(text: &str) -> Option<(u32, &str)> {
    let rest = text.strip_prefix('#')?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let number = rest[..digits].parse().ok()?;
    Some((number, rest[digits..].strip_prefix(' ')?))
}

/// Removes the seconds before the text: `0.512 text`.
fn without_seconds(text: &str) -> &str {
    let digits = text
        .bytes()
        .take_while(|byte| byte.is_ascii_digit() || *byte == b'.')
        .count();
    match text[digits..].strip_prefix(' ') {
        Some(rest) if text[..digits].contains('.') => rest,
        _ => text,
    }
}

/// Returns true for a line with the name or the digest of a result.
fn is_result(text: &str) -> bool {
    let text = text.trim_start_matches("=> ").trim_ascii();
    [
        "naming to ",
        "writing image sha256:",
        "exporting manifest list sha256:",
        "pushing manifest for ",
    ]
    .iter()
    .any(|start| text.starts_with(start))
}

impl Build {
    /// Processes a line of a BuildKit step.
    fn step(&mut self, line: Line<'_>, number: u32, rest: &str, out: &mut dyn Sink) {
        self.understood = true;
        let word = rest.split([' ', ':']).next().unwrap_or_default();
        match word {
            "DONE" | "CACHED" | "CANCELED" => {
                self.steps.remove(&number);
                self.names.remove(&number);
            }
            "ERROR" => {
                self.fail(number, out);
                keep_cut(line, MAX_LINE_BYTES, out);
            }
            "WARN" | "WARNING" => out.keep(line),
            _ if rest.starts_with('[') && !self.names.contains_key(&number) => {
                if self.names.len() < 10_000 {
                    self.names.insert(number, line.into());
                }
            }
            _ if is_result(rest) => {
                // BuildKit repeats the line when the operation is done.
                let name = rest.strip_suffix(" done").unwrap_or(rest);
                let name = without_time(name);
                if self.told.insert(name.to_owned()) {
                    out.say(line.number, name);
                }
            }
            _ if is_transfer(rest) => {}
            _ => {
                if !self.steps.contains_key(&number) && self.steps.len() < MAX_STEPS {
                    self.steps.insert(number, Step::new(None));
                }
                let text = without_seconds(rest);
                if let Some(step) = self
                    .steps
                    .get_mut(&number)
                    .filter(|_| !text.trim_ascii().is_empty())
                {
                    step.printed.line(Line { text, ..line }, out);
                }
            }
        }
    }

    /// Shows the name of a failed step and the end of its output.
    fn fail(&mut self, number: u32, out: &mut dyn Sink) {
        if let Some(name) = self.names.remove(&number) {
            out.keep(name.line());
        }
        if let Some(mut step) = self.steps.remove(&number) {
            let mut lines = Telling {
                told: &mut self.told,
                out,
            };
            step.printed.flush(&mut lines);
        }
    }

    /// Ends the current step of the legacy builder.
    fn end_step(&mut self, failed: bool, out: &mut dyn Sink) {
        let Some(mut step) = self.current.take().filter(|_| failed) else {
            return;
        };
        if let Some(name) = step.name.take() {
            out.keep(name.line());
        }
        step.printed.flush(out);
    }

    /// Processes a line of the legacy builder. Returns `false` for other lines.
    fn old(&mut self, line: Line<'_>, out: &mut dyn Sink) -> bool {
        let text = line.text;
        if text.starts_with("Step ") && text.contains(" : ") {
            self.end_step(false, out);
            self.understood = true;
            self.current = Some(Step::new(Some(line.into())));
            return true;
        }
        if ["Successfully built ", "Successfully tagged "]
            .iter()
            .any(|start| text.starts_with(start))
        {
            self.end_step(false, out);
            out.keep(line);
            return true;
        }
        if text.starts_with(" ---> ")
            || text.starts_with("Removing intermediate container")
            || text.starts_with("Sending build context")
        {
            return true;
        }
        let failed = text.contains("returned a non-zero code: ") || text.starts_with("ERROR: ");
        if failed && self.current.is_some() {
            self.end_step(true, out);
            out.keep(line);
            return true;
        }
        if let Some(step) = &mut self.current {
            step.printed.line(line, out);
            return true;
        }
        false
    }

    /// Processes a line of BuildKit's summary of a failed step. Returns `false` for other lines.
    fn recap(&mut self, line: Line<'_>, trimmed: &str, out: &mut dyn Sink) -> bool {
        if trimmed.len() > 4 && trimmed.bytes().all(|byte| byte == b'-') {
            self.source = None;
            return true;
        }
        // A line of the Dockerfile: `   3 | >>> RUN npm ci`.
        let digits = trimmed.bytes().take_while(u8::is_ascii_digit).count();
        if let Some(source) = trimmed[digits..]
            .trim_ascii_start()
            .strip_prefix('|')
            .filter(|_| digits > 0)
        {
            if source.trim_ascii_start().starts_with(">>>") {
                out.keep(line);
            }
            return true;
        }
        self.told.contains(without_seconds(trimmed))
    }
}

/// A sink that records the emitted lines.
struct Telling<'t> {
    told: &'t mut HashSet<String>,
    out: &'t mut dyn Sink,
}

impl Sink for Telling<'_> {
    fn keep(&mut self, line: Line<'_>) {
        if self.told.len() < 10_000 {
            self.told.insert(line.text.trim_ascii().to_owned());
        }
        keep_cut(line, MAX_LINE_BYTES, self.out);
    }

    fn say(&mut self, number: u64, text: &str) {
        self.out.say(number, text);
    }
}

/// Returns true for the transfer of layers or of the build context.
fn is_transfer(text: &str) -> bool {
    [
        "sha256:",
        "transferring ",
        "resolve ",
        "extracting sha256:",
        "exporting ",
        "preparing ",
        "writing ",
        "unpacking ",
    ]
    .iter()
    .any(|start| text.starts_with(start))
}

impl Strategy for Build {
    fn line(&mut self, line: Line<'_>, out: &mut dyn Sink) {
        let text = line.text;
        let trimmed = text.trim_ascii();
        if trimmed.is_empty() {
            return;
        }
        if let Some((number, rest)) = numbered(text) {
            self.step(line, number, rest, out);
            return;
        }
        if let Some(rest) = trimmed.strip_prefix("=> ") {
            self.understood = true;
            if rest.starts_with("ERROR ") || rest.starts_with("=> naming to ") {
                out.keep(line);
            }
            return;
        }
        if trimmed.starts_with("[+] Building ") {
            self.understood = true;
            if trimmed.ends_with("FINISHED") || trimmed.contains("ERROR") {
                out.keep(line);
            }
            return;
        }
        if self.old(line, out) || self.recap(line, trimmed, out) {
            return;
        }
        self.excerpt.line(line, out);
        self.understood |= text.starts_with("ERROR: ") || text.starts_with("error: ");
    }

    fn finish(&mut self, _end: ExitInfo, out: &mut dyn Sink) -> FilterConfidence {
        self.end_step(true, out);
        self.excerpt.flush(out);
        // Steps without an end: the build was killed, regardless of the exit code (`docker build . | tail`).
        let open: BTreeSet<u32> = self
            .steps
            .keys()
            .chain(self.names.keys())
            .copied()
            .collect();
        for number in open {
            self.fail(number, out);
        }
        if self.understood {
            FilterConfidence::Full
        } else {
            FilterConfidence::Fallback
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::run;
    use super::*;

    fn told(input: &str, exit_code: i32) -> String {
        run(DockerBuild.start(), input, Some(exit_code)).0
    }

    /// Proves OUT-7.
    #[test]
    fn failing_step_is_shown_with_its_output() {
        let printed = "\
#1 [internal] load build definition from Dockerfile
#1 transferring dockerfile: 120B done
#1 DONE 0.0s
#5 [2/3] RUN npm ci
#6 [other 1/1] RUN make
#5 0.512 added 12 packages
#6 0.600 cc -c a.c
#5 0.700 src/a.ts(1,2): error TS1: x
#5 ERROR: process \"/bin/sh -c npm ci\" did not complete successfully: exit code: 1
------
 > [2/3] RUN npm ci:
0.512 added 12 packages
0.700 src/a.ts(1,2): error TS1: x
------
Dockerfile:2
--------------------
   1 |     FROM node
   2 | >>> RUN npm ci
--------------------
ERROR: failed to solve: process \"/bin/sh -c npm ci\" did not complete successfully: exit code: 1";
        let step = told(&printed.replace("#6 0.600", "#6 DONE 1s\n#7 0.600"), 1);
        assert!(step.starts_with(
            "#5 [2/3] RUN npm ci\nadded 12 packages\nsrc/a.ts(1,2): error TS1: x\n#5 ERROR: process"
        ), "{step}");
        assert!(step.contains("   2 | >>> RUN npm ci"), "{step}");
        assert_eq!(step.matches("added 12 packages").count(), 1, "{step}");
        assert!(!step.contains("FROM node"), "{step}");
    }

    /// Proves OUT-7b: the output of an interrupted build is not reported as a success.
    #[test]
    fn interrupted_build_names_its_last_step() {
        let killed = "#5 [2/3] RUN npm ci\n#5 DONE 1s\n#6 [3/3] RUN make\n#6 0.5 cc a.c";
        let silent = "#6 [3/3] RUN make";
        let old = "Step 1/2 : FROM node\n ---> 12ab\nStep 2/2 : RUN x\n ---> Running in 1\nnoise";
        for exit_code in [0, 137] {
            assert_eq!(told(killed, exit_code), "#6 [3/3] RUN make\ncc a.c");
            assert_eq!(told(silent, exit_code), silent);
            assert_eq!(told(old, exit_code), "Step 2/2 : RUN x\nnoise");
        }
    }

    #[test]
    fn result_of_a_successful_build_is_retained() {
        let buildkit = "#5 [2/3] RUN npm ci\n#5 0.5 added\n#5 DONE 1s\n#8 exporting to image\n#8 naming to docker.io/library/api:1 done\n#8 DONE 0.1s";
        assert_eq!(told(buildkit, 0), "naming to docker.io/library/api:1");
        let old = "Step 1/2 : FROM node\n ---> 12ab\nStep 2/2 : RUN x\n ---> Running in 1\nnoise\nSuccessfully built 12\nSuccessfully tagged api:1";
        assert_eq!(
            told(old, 0),
            "Successfully built 12\nSuccessfully tagged api:1"
        );
        let failed = "Step 2/2 : RUN x\n ---> Running in 1\nbad thing\nThe command '/bin/sh -c x' returned a non-zero code: 1";
        assert_eq!(
            told(failed, 1),
            "Step 2/2 : RUN x\nbad thing\nThe command '/bin/sh -c x' returned a non-zero code: 1"
        );
    }
}
