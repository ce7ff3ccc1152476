//! What the model reads of an output that went through the filters, and where all of it is.

use crate::filter::{FilterConfidence, FilteredOutput, no_longer_than, sanitize_output};
use crate::output::FilterStats;
use crate::overflow::{
    CollectedText, Omitted, Overflow, OverflowConfig, SpillBuffer, Spilled, TruncatedText,
    TruncationNotice,
};

/// The characters of an output that are read at most; a line break at its end is none of them.
pub(super) fn budget(config: &OverflowConfig) -> usize {
    config.threshold.saturating_add(1)
}

/// An output as it is read.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ModelOutput {
    /// The text; no line break at its end.
    pub(super) text: String,
    /// All of it, on its way to the store, when some of it is not in the text.
    pub(super) overflow: Option<Overflow>,
    /// What a rule took away.
    pub(super) filter: Option<FilterStats>,
}

impl ModelOutput {
    /// `printed`: what the command printed, `filtered`: what is read of that.
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
                // What is not too long stays whole.
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

/// A text from which a rule took something: that is said at its end.
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

/// A text that is too long, and from which nobody chose: its middle is missing, and that is said
/// there. `printed` has head and tail as they were printed.
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
    // All lines are there: the text was longer for its escapes, or some line is too long.
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

/// All that was printed.
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

/// The numbers of an output for which there was a rule.
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
