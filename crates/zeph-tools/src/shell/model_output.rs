//! Command output for the model, after the filters, with the location of the whole output.

use crate::filter::{FilterConfidence, FilteredOutput, no_longer_than, sanitize_output};
use crate::output::FilterStats;
use crate::overflow::{
    CollectedText, Omitted, Overflow, OverflowConfig, SpillBuffer, Spilled, TruncatedText,
    TruncationNotice,
};

/// The maximum number of characters of an output that are read: the threshold, and a final line break.
pub(super) fn budget(config: &OverflowConfig) -> usize {
    config.threshold.saturating_add(1)
}

/// An output for the model.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ModelOutput {
    /// The text without a final line break.
    pub(super) text: String,
    /// The whole output for the store, if the text does not have all of it.
    pub(super) overflow: Option<Overflow>,
    /// The statistics of the filter rule that was applied.
    pub(super) filter: Option<FilterStats>,
}

impl ModelOutput {
    /// Combines the output of a command (`printed`) and its filtered form.
    pub(super) fn new(
        printed: CollectedText,
        filtered: FilteredOutput,
        config: &OverflowConfig,
    ) -> Self {
        let filter = stats(&filtered);
        let (text, overflow) = if filtered.rule.is_some() {
            elided(printed, filtered, config)
        } else {
            match printed.shortened {
                // Short output stays whole.
                None => {
                    let mut clean = sanitize_output(&printed.text).into_owned();
                    if clean.ends_with('\n') {
                        clean.pop();
                    }
                    let text = no_longer_than(clean, filtered.max_bytes);
                    let left_out = None;
                    elided(
                        printed,
                        FilteredOutput {
                            text,
                            left_out,
                            ..filtered
                        },
                        config,
                    )
                }
                Some(shortened) => middle(printed.text, shortened, filtered),
            }
        };
        Self {
            text,
            overflow,
            filter,
        }
    }
}

/// A text from which a rule removed lines, with a notice at its end.
fn elided(
    printed: CollectedText,
    filtered: FilteredOutput,
    config: &OverflowConfig,
) -> (String, Option<Overflow>) {
    let mut text = filtered.text;
    let (omitted, lines) = match &filtered.left_out {
        Some(left_out) => (left_out.omitted(), left_out.longest),
        None if filtered.overwritten => {
            let omitted = "overwritten or overlong text omitted".to_owned();
            (omitted, (1, filtered.lines.0.max(1)))
        }
        None => return (text, None),
    };
    let elided = TruncationNotice::new(&mut text, omitted, lines, whole(printed, config));
    (text, Some(Overflow::Elided(elided)))
}

/// A text that is too long, and to which no rule applied. A notice replaces its middle. `printed` has the head and the
/// tail of the original output.
fn middle(
    mut printed: String,
    mut shortened: TruncatedText,
    filtered: FilteredOutput,
) -> (String, Option<Overflow>) {
    let mut text = filtered.text;
    if let Some(left_out) = filtered.left_out {
        let omitted = Omitted {
            first_line: left_out.longest.0,
            last_line: left_out.longest.1,
            line_breaks: left_out.lines,
            bytes: filtered.bytes.0.saturating_sub(text.len() as u64),
        };
        let place = left_out.place.min(text.len());
        let shortened = TruncatedText::at(&mut text, place, omitted, shortened.spilled);
        return (text, Some(Overflow::Spilled(shortened)));
    }
    // All lines are present: the text was longer because of its escapes, or a line is too long.
    let is_whole = filtered.confidence == FilterConfidence::Full && !filtered.overwritten;
    if is_whole {
        return (text, None);
    }
    shortened.rewrite(&mut printed, |part| {
        Some(sanitize_output(part).into_owned())
    });
    if printed.ends_with('\n') {
        printed.pop();
    }
    (printed, Some(Overflow::Spilled(shortened)))
}

/// The whole output.
fn whole(printed: CollectedText, config: &OverflowConfig) -> Spilled {
    match printed.shortened {
        Some(shortened) => shortened.spilled,
        None => {
            let mut spill = SpillBuffer::new(config.byte_limit());
            spill.push(&printed.text);
            spill.finish()
        }
    }
}

/// The statistics of an output to which a rule applied.
fn stats(filtered: &FilteredOutput) -> Option<FilterStats> {
    let number = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    filtered.rule.as_ref().map(|rule| FilterStats {
        rule: rule.clone(),
        lines_before: number(filtered.lines.0),
        lines_after: number(filtered.lines.1),
        bytes_before: number(filtered.bytes.0),
        bytes_after: number(filtered.bytes.1),
        confidence: filtered.confidence.as_str().to_owned(),
    })
}
