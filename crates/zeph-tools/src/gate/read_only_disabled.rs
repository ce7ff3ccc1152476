//! Commands that only read, in a build without `shell`: commands are not parsed, so none counts as one.

use super::parsed_call::CallSubject;
use super::rule::ToolRules;

/// Returns `false`.
pub(super) fn is_read_only(_subject: &CallSubject<'_>, _rules: Option<&ToolRules>) -> bool {
    false
}
