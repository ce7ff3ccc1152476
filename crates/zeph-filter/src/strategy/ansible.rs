//! The `ansible` strategy: it retains the tasks of a playbook that changed something or failed, debug output,
//! and the recap.
//!
//! The format is that of the `default` callback: a line in capitals for each play and task, then a line per
//! host, `ok: [web1]`, with the result of the task after `=>`.

use std::sync::Arc;

use super::excerpt::keep_cut;
use super::{FilterConfidence, Strategy, StrategyFactory, no_params};
use crate::line::{ExitInfo, Line, OwnedLine, Sink};

/// Bytes of the result of a task.
const MAX_LINE_BYTES: usize = 1600;
/// Lines of one printed value.
const MAX_LINES: usize = 200;

#[derive(Debug)]
struct Ansible;

pub(super) fn make(table: toml::Table) -> Result<Arc<dyn StrategyFactory>, String> {
    no_params(&table)?;
    Ok(Arc::new(Ansible))
}

impl StrategyFactory for Ansible {
    fn start(&self) -> Box<dyn Strategy> {
        Box::new(Run::default())
    }

    fn judges_lines_alone(&self) -> bool {
        true
    }
}

#[derive(Debug, Default)]
struct Run {
    /// The lines of play and task, until a line below them is shown.
    play: Option<OwnedLine>,
    task: Option<OwnedLine>,
    /// The result of the current host, line by line. `last_value` is that of a previous host.
    value: Option<Vec<OwnedLine>>,
    last_value: Vec<String>,
    /// True after the place of an error: lines of the playbook follow.
    source: bool,
    understood: bool,
}

/// Parses `TASK [Make folders]`, without the trailing asterisks.
fn heading(text: &str) -> Option<&str> {
    let known = [
        "PLAY [",
        "PLAY RECAP",
        "TASK [",
        "RUNNING HANDLER [",
        "HANDLER [",
    ];
    known
        .iter()
        .any(|start| text.starts_with(start))
        .then(|| text.trim_end_matches(['*', ' ']))
}

/// Parses status and host: `changed` and `web1` from `changed: [web1] => …`.
fn result(text: &str) -> Option<(&str, &str)> {
    let (word, rest) = text.split_once(": [")?;
    let known = [
        "ok",
        "changed",
        "skipping",
        "included",
        "fatal",
        "failed",
        "unreachable",
        "rescued",
    ];
    known.contains(&word).then_some((word, rest))
}

impl Run {
    fn name_task(&mut self, out: &mut dyn Sink) {
        for held in self.play.take().into_iter().chain(self.task.take()) {
            out.keep(held.line());
        }
    }

    fn result(&mut self, line: Line<'_>, word: &str, out: &mut dyn Sink) {
        match word {
            "ok" | "skipping" | "included" => {
                if word == "ok" && line.text.ends_with("=> {") {
                    self.value = Some(vec![line.into()]);
                }
            }
            "changed" => {
                self.name_task(out);
                let text = line.text.split(" => {").next().unwrap_or(line.text);
                out.keep(Line { text, ..line });
            }
            _ => {
                self.name_task(out);
                keep_cut(line, MAX_LINE_BYTES, out);
            }
        }
    }

    /// Ends a value, and shows it unless the previous host returned an equal one.
    fn end_value(&mut self, out: &mut dyn Sink) {
        let Some(lines) = self.value.take() else {
            return;
        };
        let texts = || lines.iter().skip(1).map(|held| held.text.as_str());
        if self.task.is_none() && texts().eq(self.last_value.iter().map(String::as_str)) {
            return;
        }
        self.name_task(out);
        self.last_value = texts().map(str::to_owned).collect();
        for held in &lines {
            keep_cut(held.line(), MAX_LINE_BYTES, out);
        }
    }
}

impl Strategy for Run {
    fn line(&mut self, line: Line<'_>, out: &mut dyn Sink) {
        let text = line.text;
        if let Some(value) = &mut self.value {
            value.push(line.into());
            if text == "}" || value.len() >= MAX_LINES {
                self.end_value(out);
            }
            return;
        }
        if text.trim_ascii().is_empty() {
            return;
        }
        if let Some(heading) = heading(text) {
            self.understood = true;
            self.source = false;
            let held = OwnedLine {
                number: line.number,
                text: heading.to_owned(),
            };
            if heading == "PLAY RECAP" {
                (self.play, self.task) = (None, None);
                out.keep(held.line());
            } else if heading.starts_with("PLAY") {
                (self.play, self.task) = (Some(held), None);
            } else {
                self.task = Some(held);
            }
            return;
        }
        if let Some((word, _)) = result(text) {
            self.source = false;
            self.result(line, word, out);
            return;
        }
        if self.source && text.starts_with(|c: char| c.is_ascii_digit() || c == ' ') {
            return;
        }
        self.source = text.starts_with("Origin: ");
        self.name_task(out);
        keep_cut(line, MAX_LINE_BYTES, out);
    }

    fn finish(&mut self, _end: ExitInfo, out: &mut dyn Sink) -> FilterConfidence {
        self.end_value(out);
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

    /// Proves OUT-7.
    #[test]
    fn changes_and_failures_stay() {
        let printed = "
PLAY [all] *****************

TASK [Gathering Facts] *****
ok: [web1]
ok: [web2]

TASK [Copy] ****************
changed: [web1] => {\"changed\": true, \"dest\": \"/x\"}
ok: [web2]

TASK [Show] ****************
ok: [web1] => {
    \"msg\": \"a\"
}
ok: [web2] => {
    \"msg\": \"a\"
}

TASK [Fail] ****************
Origin: /home/user/site.yml:2:3

1 - hosts: all
2   tasks:
      ^ column 3

fatal: [web2]: FAILED! => {\"rc\": 1}

PLAY RECAP *****************
web1  : ok=3
";
        let (text, confidence) = run(Ansible.start(), printed, Some(2));
        assert_eq!(
            text,
            "PLAY [all]\nTASK [Copy]\nchanged: [web1]\nTASK [Show]\nok: [web1] => {\n    \"msg\": \"a\"\n}\n\
             TASK [Fail]\nOrigin: /home/user/site.yml:2:3\nfatal: [web2]: FAILED! => {\"rc\": 1}\nPLAY RECAP\nweb1  : ok=3"
        );
        assert_eq!(confidence, FilterConfidence::Full);
    }
}
