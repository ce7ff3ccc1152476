//! The side panels: running and recent calls, the task list, and the resources.

use std::collections::BTreeSet;

use ratatui::style::{Color, Style};
use ratatui::text::{Line, Span};
use zeph_tools::plural::{counted_as, pluralize};

use crate::sanitize::first_line;
use crate::view::render::{DIM, Detail, call_result, call_title};
use crate::view::{Block, Call, Resources, SessionStatus, Transcript};

/// Recent calls that the panel shows.
const MAX_CALLS: usize = 30;
/// Characters of the name of a model or job.
const MAX_NAME_CHARS: usize = 40;
/// Columns of the names of values.
const NAME_COLUMNS: usize = 9;

/// A row of the tool panel, and the block of its call.
pub(super) type CallRow = (usize, Line<'static>);

/// The recent calls, the newest last. The last call and running calls are expanded; `toggled` are the exceptions.
pub(super) fn call_rows(all: &Transcript, toggled: &BTreeSet<usize>, width: usize) -> Vec<CallRow> {
    let calls: Vec<(usize, &Call)> = recent_calls(all);
    let last = calls.last().map(|(at, _)| *at);
    let mut rows = Vec::new();
    for (at, call) in calls {
        rows.push((at, call_title(call, width)));
        let is_expanded = call.is_running() || Some(at) == last;
        if is_expanded != toggled.contains(&at) {
            rows.extend(
                call_result(call, width, Detail::Excerpt)
                    .into_iter()
                    .map(|line| (at, line)),
            );
        }
    }
    rows
}

/// The number of running calls.
pub(super) fn running_calls(all: &Transcript) -> usize {
    recent_calls(all)
        .iter()
        .filter(|(_, call)| call.is_running())
        .count()
}

fn recent_calls(all: &Transcript) -> Vec<(usize, &Call)> {
    let blocks = all.blocks().iter().enumerate().rev();
    let calls = blocks.filter_map(|(at, block)| match block {
        Block::Call(call) => Some((at, &**call)),
        _ => None,
    });
    let mut calls: Vec<_> = calls.take(MAX_CALLS).collect();
    calls.reverse();
    calls
}

/// The consumed resources, one value per line.
pub(super) fn resource_lines(status: &SessionStatus, resources: &Resources) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    let mut value = |name: &str, value: String| {
        lines.push(Line::from(vec![
            Span::styled(format!("{name:<NAME_COLUMNS$}"), DIM),
            Span::raw(value),
        ]));
    };
    value("model", first_line(&status.model, MAX_NAME_CHARS));
    let usage = &status.usage;
    value(
        "tokens",
        format!(
            "{} in, {} out",
            short(usage.input_tokens),
            short(usage.output_tokens)
        ),
    );
    value("cached", format!("{} tokens", short(usage.cached_tokens)));
    let cost = status
        .cost
        .map_or_else(|| "unknown".to_owned(), |cost| cost.to_string());
    value("cost", cost);
    let context = match status.context_left() {
        Some(left) => format!(
            "{} of {}, {left}% left",
            short(status.context_used as u64),
            short(status.context_size as u64)
        ),
        None => "unknown".to_owned(),
    };
    value("context", context);
    let filters = &status.filters;
    value(
        "filters",
        format!(
            "F{} P{} B{}",
            filters.full, filters.partial, filters.fallback
        ),
    );
    value("saved", bytes(filters.bytes_saved));
    let cache = match resources.cache {
        Some((hits, misses)) => format!(
            "{}, {}",
            pluralize(hits, "hit"),
            counted_as(misses, "miss", "misses")
        ),
        None => "off".to_owned(),
    };
    value("cache", cache);
    let gates = &status.gates;
    value(
        "gates",
        format!("{} asked, {} refused", gates.asked, gates.refused),
    );
    let jobs = match resources.jobs.as_slice() {
        [] => "none".to_owned(),
        jobs => pluralize(jobs.len(), "job"),
    };
    value("jobs", jobs);
    for job in &resources.jobs {
        let job = first_line(job, MAX_NAME_CHARS);
        lines.push(Line::styled(
            format!("  {job}"),
            Style::new().fg(Color::Cyan),
        ));
    }
    lines
}

/// A number of tokens: `950`, `12.3k`, `4.1M`.
fn short(number: u64) -> String {
    #[allow(clippy::cast_precision_loss, reason = "three digits are shown")]
    let shown = number as f64;
    match number {
        0..1000 => number.to_string(),
        1000..1_000_000 => format!("{:.1}k", shown / 1000.0),
        _ => format!("{:.1}M", shown / 1_000_000.0),
    }
}

/// A size: `950 B`, `12.3 kB`, `4.1 MB`.
fn bytes(size: usize) -> String {
    let number = short(size as u64);
    let unit = match number.strip_suffix(['k', 'M']) {
        Some(shown) if number.ends_with('k') => return format!("{shown} kB"),
        Some(shown) => return format!("{shown} MB"),
        None => "B",
    };
    format!("{number} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let check = |number, expect: &str| assert_eq!(short(number), expect);
        check(0, "0");
        check(999, "999");
        check(12_345, "12.3k");
        check(4_100_000, "4.1M");
        assert_eq!(bytes(10), "10 B");
        assert_eq!(bytes(12_345), "12.3 kB");
        assert_eq!(bytes(4_100_000), "4.1 MB");
    }

    /// Proves CLI-5 for the Resources panel.
    #[test]
    fn resources_show_every_value() {
        let mut status = SessionStatus::default();
        status.filters.full = 2;
        status.filters.partial = 1;
        status.filters.bytes_saved = 2048;
        status.gates.asked = 3;
        status.gates.refused = 1;
        let resources = Resources {
            cache: Some((4, 1)),
            jobs: vec!["job-1 make\u{1b}[2J".to_owned()],
        };
        let lines = resource_lines(&status, &resources);
        let text: Vec<String> = lines.iter().map(ToString::to_string).collect();
        let text = text.join("\n");
        for word in [
            "tokens   0 in, 0 out",
            "context  unknown",
            "F2 P1 B0",
            "saved    2.0 kB",
            "4 hits, 1 miss",
            "3 asked, 1 refused",
            "1 job",
            "  job-1 make\\u{1b}[2J",
        ] {
            assert!(text.contains(word), "{word:?} is not in:\n{text}");
        }
    }
}
