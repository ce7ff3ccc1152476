//! Reflection: after calls with wrong arguments, the model is asked to reconsider. Pure.
//!
//! Only failures of quality count (`zeph_tools::category`): invalid arguments, an edit of a text that does not exist.
//! Refusals by a gate and external failures do not.

use zeph_tools::ToolErrorCategory;

/// The start of a message of reflection, which the agent writes in the name of the user.
pub(super) const REFLECTION_MARK: &str = "[reflection] ";

/// The remaining reflections of a turn, and the tools of the next one.
#[derive(Debug, Clone)]
pub(super) struct Reflections {
    left: usize,
    tools: Vec<String>,
}

impl Reflections {
    /// Allows at most `max` reflections in a turn.
    pub(super) fn new(max: usize) -> Self {
        Self {
            left: max,
            tools: Vec::new(),
        }
    }

    /// Records the outcome of a call; `None` for success.
    pub(super) fn note(&mut self, tool: &str, failure: Option<ToolErrorCategory>) {
        let is_its_own = failure.is_some_and(|category| category.traits().quality);
        if is_its_own && self.left > 0 && !self.tools.iter().any(|known| known == tool) {
            self.tools.push(tool.to_owned());
        }
    }

    /// Returns the text before the next request, if there is a reason for one.
    pub(super) fn take(&mut self) -> Option<String> {
        if self.tools.is_empty() {
            return None;
        }
        self.left = self.left.saturating_sub(1);
        let tools = std::mem::take(&mut self.tools).join("`, `");
        Some(format!(
            "{REFLECTION_MARK}The arguments of `{tools}` were wrong. Before you continue, find the \
             wrong assumption and the information that you need first. Do not repeat the same call."
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves ERR-22: only quality failures count, and the number is limited.
    #[test]
    fn only_quality_failures_are_reflected_on() {
        use ToolErrorCategory::{InvalidParameters, TypeMismatch};
        for category in ToolErrorCategory::ALL {
            let mut reflections = Reflections::new(1);
            reflections.note("edit", Some(category));
            let words = reflections.take();
            let expect = matches!(category, InvalidParameters | TypeMismatch);
            assert_eq!(words.is_some(), expect, "{category:?}");
        }
        let mut reflections = Reflections::new(2);
        assert_eq!(reflections.take(), None);
        reflections.note("read", None);
        assert_eq!(reflections.take(), None);
        for tool in ["edit", "grep", "edit"] {
            reflections.note(tool, Some(InvalidParameters));
        }
        let words = reflections.take().unwrap_or_default();
        assert!(words.contains("`edit`, `grep` were"), "{words}");
        assert_eq!(reflections.take(), None, "each failure once");
        reflections.note("edit", Some(TypeMismatch));
        assert!(reflections.take().is_some());
        reflections.note("edit", Some(TypeMismatch));
        assert_eq!(reflections.take(), None, "no more in this turn");
        let mut off = Reflections::new(0);
        off.note("edit", Some(InvalidParameters));
        assert_eq!(off.take(), None);
    }
}
