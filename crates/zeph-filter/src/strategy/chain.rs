//! Strategies one after the other.

use super::{FilterConfidence, NamedRecipe, Strategy};
use crate::line::{ExitInfo, Line, LineBlock, Sink};

/// Each takes what the one before it hands on.
pub(crate) struct Chain {
    strategies: Vec<Box<dyn Strategy>>,
    recipes: Vec<NamedRecipe>,
}

/// What came of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// The worst of those that had something to say: that one which looks at single lines found nothing to do
    /// says nothing of how well the others understood the output.
    pub(crate) confidence: FilterConfidence,
    /// The worst of all: what counts where nothing was left out.
    pub(crate) worst: FilterConfidence,
    /// One that looks at more than single lines did not understand the output.
    pub(crate) mistaken: bool,
}

/// The strategies that follow, as the sink of the one before them.
struct DownstreamSink<'c> {
    strategies: &'c mut [Box<dyn Strategy>],
    out: &'c mut dyn Sink,
}

impl Sink for DownstreamSink<'_> {
    fn keep(&mut self, line: Line<'_>) {
        pass(self.strategies, line, self.out);
    }

    fn keep_block(&mut self, block: LineBlock<'_>) {
        pass_block(self.strategies, block, self.out);
    }

    /// What a strategy says is final: the others know the command's own words alone.
    fn say(&mut self, number: u64, text: &str) {
        self.out.say(number, text);
    }
}

fn pass(strategies: &mut [Box<dyn Strategy>], line: Line<'_>, out: &mut dyn Sink) {
    match strategies.split_first_mut() {
        None => out.keep(line),
        Some((first, [])) => first.line(line, out),
        Some((first, rest)) => {
            let strategies = rest;
            first.line(line, &mut DownstreamSink { strategies, out });
        }
    }
}

fn pass_block(strategies: &mut [Box<dyn Strategy>], block: LineBlock<'_>, out: &mut dyn Sink) {
    match strategies.split_first_mut() {
        None => out.keep_block(block),
        Some((last, [])) => last.block(block, out),
        Some((first, rest)) => {
            let strategies = rest;
            first.block(block, &mut DownstreamSink { strategies, out });
        }
    }
}

impl Chain {
    /// Started anew for one output.
    pub(crate) fn start(recipes: &[NamedRecipe]) -> Self {
        Self {
            strategies: recipes.iter().map(|recipe| recipe.recipe.start()).collect(),
            recipes: recipes.to_vec(),
        }
    }

    /// Takes the next lines.
    pub(crate) fn block(&mut self, block: LineBlock<'_>, out: &mut dyn Sink) {
        pass_block(&mut self.strategies, block, out);
    }

    /// The output has ended.
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
