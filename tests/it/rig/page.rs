//! A page of the book: its blocks of code and its words of code.

/// A page.
pub(crate) struct Page {
    /// The language and the text of each block.
    pub(crate) blocks: Vec<(String, String)>,
    /// The words of code outside of blocks, in order, each once.
    pub(crate) spans: Vec<String>,
}

impl Page {
    /// Reads the text of a page.
    pub(crate) fn of(text: &str) -> Self {
        let (mut blocks, mut prose) = (Vec::new(), String::new());
        for (at, part) in text.split("```").enumerate() {
            match (at % 2, part.split_once('\n')) {
                (1, Some((kind, block))) => blocks.push((kind.to_owned(), block.to_owned())),
                _ => prose.push_str(part),
            }
        }
        let mut spans: Vec<String> = Vec::new();
        for span in prose.split('`').skip(1).step_by(2) {
            let span = span.split_whitespace().collect::<Vec<_>>().join(" ");
            if !spans.contains(&span) {
                spans.push(span);
            }
        }
        Self { blocks, spans }
    }

    /// The keys of the configuration: `[section] key = value` is `section.key`.
    pub(crate) fn keys(&self) -> Vec<String> {
        let spans = self.spans.iter();
        let keys = spans.filter_map(|span| {
            let (section, rest) = span.strip_prefix('[')?.split_once("] ")?;
            let key = rest.split(' ').next()?;
            Some(format!("{section}.{key}"))
        });
        keys.collect()
    }
}
