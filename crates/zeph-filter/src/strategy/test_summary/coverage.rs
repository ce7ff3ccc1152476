//! Coverage tables in the format of Istanbul: `File | % Stmts | % Branch | …`. Files with full coverage are
//! omitted.

use super::{Line, Sink};

/// State of the current table.
#[derive(Debug, Default)]
pub(super) struct Table {
    open: bool,
}

impl Table {
    /// Processes a line. Returns `false` if it is not part of a table.
    pub(super) fn line(&mut self, line: Line<'_>, out: &mut dyn Sink) -> bool {
        let text = line.text.trim_ascii();
        if !self.open && !text.starts_with('-') {
            return false;
        }
        if text.starts_with("---")
            && text.contains('|')
            && text.bytes().all(|byte| b"-|".contains(&byte))
        {
            self.open = true;
            return true;
        }
        self.open = self.open && text.contains('|');
        let mut columns = text.split('|');
        let Some(name) = self.open.then(|| columns.next()).flatten() else {
            return false;
        };
        let full = columns.take(4).all(|column| column.trim_ascii() == "100");
        if !full || name.trim_ascii() == "All files" {
            out.keep(line);
        }
        true
    }
}
