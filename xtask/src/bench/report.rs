//! Figures with their targets and baselines, as a table or as JSON.

use std::fmt;
use std::time::Duration;

use serde_json::{Value, json};

/// The unit of a figure, which determines the tolerance of `--check`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Unit {
    /// Milliseconds. The machine may cause a quarter more.
    Ms,
    /// A quotient of two times, with the tolerance of times.
    Ratio,
    /// A share of one core in percent, with the tolerance of times.
    Percent,
    /// Mebibytes of memory, which depend on the allocator.
    MiB,
    /// Bytes, without tolerance.
    Bytes,
    /// A count, without tolerance.
    Count,
}

impl Unit {
    fn tolerance(self) -> f64 {
        match self {
            Self::Ms | Self::Ratio | Self::Percent => 1.25,
            Self::MiB => 1.05,
            Self::Bytes | Self::Count => 1.0,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Ms => "ms",
            Self::Ratio => "x",
            Self::Percent => "%",
            Self::MiB => "MiB",
            Self::Bytes => "B",
            Self::Count => "",
        }
    }

    fn show(self, value: f64) -> String {
        match self {
            Self::Ms | Self::Ratio => format!("{value:.2} {}", self.name()),
            Self::MiB | Self::Percent => format!("{value:.1} {}", self.name()),
            Self::Bytes => format!("{value:.0} {}", self.name()),
            Self::Count => format!("{value:.0}"),
        }
    }
}

/// The comparison of a figure with its target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Verdict {
    /// The figure has no target.
    Told,
    Met,
    /// The target is missed by less than the tolerance.
    Close,
    Missed,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Told => "",
            Self::Met => "ok",
            Self::Close => "close",
            Self::Missed => "MISSED",
        })
    }
}

/// A figure of the report.
pub(crate) struct Figure {
    what: String,
    unit: Unit,
    value: f64,
    /// The maximum.
    target: Option<f64>,
    /// The compared operations with their values in the same unit.
    baseline: Vec<(String, f64)>,
}

impl Figure {
    pub(crate) fn new(what: impl Into<String>, unit: Unit, value: f64) -> Self {
        Self {
            what: what.into(),
            unit,
            value,
            target: None,
            baseline: Vec::new(),
        }
    }

    pub(crate) fn at_most(self, target: f64) -> Self {
        Self {
            target: Some(target),
            ..self
        }
    }

    pub(crate) fn beside(mut self, what: impl Into<String>, value: f64) -> Self {
        self.baseline.push((what.into(), value));
        self
    }

    fn verdict(&self) -> Verdict {
        match self.target {
            None => Verdict::Told,
            Some(target) if self.value <= target => Verdict::Met,
            Some(target) if self.value <= target * self.unit.tolerance() => Verdict::Close,
            Some(_) => Verdict::Missed,
        }
    }

    /// The message of `--check` about the figure.
    pub(crate) fn finding(&self) -> Option<String> {
        let target = self.target.filter(|_| self.verdict() == Verdict::Missed)?;
        Some(format!(
            "{}: {}, the target is {}",
            self.what,
            self.unit.show(self.value),
            self.unit.show(target)
        ))
    }

    fn json(&self) -> Value {
        let baseline: serde_json::Map<String, Value> = self
            .baseline
            .iter()
            .map(|(what, value)| (what.clone(), json!(value)))
            .collect();
        json!({
            "what": self.what,
            "unit": self.unit.name(),
            "value": self.value,
            "target": self.target,
            "verdict": match self.verdict() {
                Verdict::Told => Value::Null,
                verdict => json!(verdict.to_string().to_lowercase()),
            },
            "baseline": baseline,
        })
    }
}

pub(crate) fn json(figures: &[Figure]) -> Value {
    figures.iter().map(Figure::json).collect()
}

/// The figures as a Markdown table.
pub(crate) fn table(figures: &[Figure]) -> String {
    let mut rows = vec![["what", "value", "target", "verdict", "beside"].map(str::to_owned)];
    for figure in figures {
        let show = |value| figure.unit.show(value);
        let beside: Vec<String> = figure
            .baseline
            .iter()
            .map(|(what, value)| format!("{what}: {}", show(*value)))
            .collect();
        rows.push([
            figure.what.clone(),
            show(figure.value),
            figure.target.map(show).unwrap_or_default(),
            figure.verdict().to_string(),
            beside.join("; "),
        ]);
    }
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..5).map(|column| width(column).unwrap_or(0)).collect();
    let line = |row: &[String; 5]| {
        let [what, value, target, verdict, beside] = row;
        let [a, b, c, d, e] = widths[..] else {
            return String::new();
        };
        format!("| {what:<a$} | {value:>b$} | {target:>c$} | {verdict:<d$} | {beside:<e$} |\n")
    };
    let mut text = line(&rows[0]);
    let dashes = |column: usize, right: bool| {
        let dashes = "-".repeat(widths[column] + 1);
        if right {
            format!("{dashes}:")
        } else {
            format!("{dashes}-")
        }
    };
    let rule: Vec<String> = (0..5)
        .map(|column| dashes(column, column == 1 || column == 2))
        .collect();
    text.push_str(&format!("|{}|\n", rule.join("|")));
    for row in &rows[1..] {
        text.push_str(&line(row));
    }
    text
}

/// The median of the samples in milliseconds; 0 without samples.
pub(crate) fn median(samples: &[Duration]) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable();
    let middle = sorted.len() / 2;
    let ms = |at: usize| sorted.get(at).map_or(0.0, |took| took.as_secs_f64() * 1e3);
    if sorted.len() % 2 == 1 {
        ms(middle)
    } else {
        (ms(middle.saturating_sub(1)) + ms(middle)) / 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_is_computed() {
        let check = |samples: &[u64], expect: f64| {
            let samples: Vec<_> = samples
                .iter()
                .map(|ms| Duration::from_millis(*ms))
                .collect();
            assert!((median(&samples) - expect).abs() < 1e-9, "{samples:?}");
        };
        check(&[], 0.0);
        check(&[7], 7.0);
        check(&[9, 1], 5.0);
        check(&[900, 1, 3], 3.0);
    }

    #[test]
    fn verdict_compares_value_and_target() {
        let check = |unit, value, target, expect| {
            let figure = Figure::new("x", unit, value).at_most(target);
            assert_eq!(figure.verdict(), expect, "{value} of {target}");
            assert_eq!(figure.finding().is_some(), expect == Verdict::Missed);
        };
        check(Unit::Ms, 2.0, 2.0, Verdict::Met);
        check(Unit::Ms, 2.4, 2.0, Verdict::Close);
        check(Unit::Ms, 2.6, 2.0, Verdict::Missed);
        check(Unit::Bytes, 6145.0, 6144.0, Verdict::Missed);
        assert_eq!(Figure::new("x", Unit::Ms, 9.0).verdict(), Verdict::Told);
    }

    #[test]
    fn report_table_is_aligned() {
        let figures = [
            Figure::new("short", Unit::Ms, 1.0)
                .at_most(5.0)
                .beside("true", 0.5),
            Figure::new("much longer", Unit::Bytes, 123456.0),
        ];
        let table = table(&figures);
        let lines: Vec<_> = table.lines().collect();
        assert_eq!(lines.len(), 4);
        assert!(
            lines.iter().all(|line| line.len() == lines[0].len()),
            "{table}"
        );
        assert!(lines[2].contains("|  1.00 ms | 5.00 ms | ok"), "{table}");
        assert!(lines[2].contains("true: 0.50 ms"), "{table}");
    }
}
