//! Many short names, behind one another in one text.

/// Names in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Names {
    text: String,
    /// Where each ends.
    ends: Vec<usize>,
}

impl Names {
    pub(super) fn push(&mut self, name: &str) {
        self.text.push_str(name);
        self.ends.push(self.text.len());
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Takes in others, behind its own.
    pub(super) fn extend(&mut self, others: &Self) {
        let before = self.text.len();
        self.text.push_str(&others.text);
        self.ends.extend(others.ends.iter().map(|end| before + end));
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        let starts = [0].into_iter().chain(self.ends.iter().copied());
        starts
            .zip(&self.ends)
            .map(|(start, end)| &self.text[start..*end])
    }

    pub(super) fn last(&self) -> Option<&str> {
        let (end, before) = self.ends.split_last()?;
        Some(&self.text[before.last().copied().unwrap_or(0)..*end])
    }
}
