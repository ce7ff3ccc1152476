//! A chain of strategies. Each strategy filters the output of the previous one.

use super::{FilterConfidence, NamedRecipe, Strategy};
use crate::line::{ExitInfo, Line, Sink};

/// A chain of strategies for one output.
pub(crate) struct Chain {
    strategies: Vec<Box<dyn Strategy>>,
    recipes: Vec<NamedRecipe>,
}

/// The outcome of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// The worst confidence, without the fallbacks of strategies that decide about each line separately.
    ///
    /// Such a fallback means that no line matched. It does not show that the output was misunderstood.
    pub(crate) confidence: FilterConfidence,
    /// The worst confidence of all strategies. It applies if nothing was omitted.
    pub(crate) worst: FilterConfidence,
    /// True if a strategy that uses several lines did not understand the output.
    pub(crate) mistaken: bool,
}

/// The sink of a strategy: the strategies after it.
struct DownstreamSink<'c> {
    strategies: &'c mut [Box<dyn Strategy>],
    out: &'c mut dyn Sink,
}

impl Sink for DownstreamSink<'_> {
    fn keep(&mut self, line: Line<'_>) {
        pass(self.strategies, line, self.out);
    }

    /// Passes a generated line directly to the output. The next strategies process only lines of the command.
    fn say(&mut self, number: u64, text: &str) {
        self.out.say(number, text);
    }
}

fn pass(strategies: &mut [Box<dyn Strategy>], line: Line<'_>, out: &mut dyn Sink) {
    match strategies.split_first_mut() {
        None => out.keep(line),
        Some((first, strategies)) => first.line(line, &mut DownstreamSink { strategies, out }),
    }
}

impl Chain {
    /// Starts the strategies for one output.
    pub(crate) fn start(recipes: &[NamedRecipe]) -> Self {
        Self {
            strategies: recipes.iter().map(|recipe| recipe.recipe.start()).collect(),
            recipes: recipes.to_vec(),
        }
    }

    /// Takes the next line.
    pub(crate) fn line(&mut self, line: Line<'_>, out: &mut dyn Sink) {
        pass(&mut self.strategies, line, out);
    }

    /// Ends the output.
    pub(crate) fn finish(&mut self, end: ExitInfo, out: &mut dyn Sink) -> Outcome {
        let mut outcome = Outcome {
            confidence: FilterConfidence::Full,
            worst: FilterConfidence::Full,
            mistaken: false,
        };
        let mut said = false;
        for (index, recipe) in self.recipes.iter().enumerate() {
            let Some((first, strategies)) = self.strategies[index..].split_first_mut() else {
                break;
            };
            let confidence = first.finish(end, &mut DownstreamSink { strategies, out });
            outcome.worst = outcome.worst.and(confidence);
            let fell_back = confidence == FilterConfidence::Fallback;
            let idle = fell_back && recipe.recipe.judges_lines_alone();
            outcome.mistaken |= fell_back && !idle;
            if !idle {
                said = true;
                outcome.confidence = outcome.confidence.and(confidence);
            }
        }
        if !said {
            outcome.confidence = outcome.worst;
        }
        outcome
    }
}
