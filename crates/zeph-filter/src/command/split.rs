//! Fallback parser for command texts that the shell parser rejects. It only knows quotes, nesting and words.

use std::iter::Peekable;
use std::str::Chars;

/// The pipelines of a text. Each command has its words, and true if its output is redirected.
pub(super) fn split(text: &str) -> Vec<Vec<(Vec<String>, bool)>> {
    let text = without_documents(text);
    let mut splitter = Splitter {
        rest: text.chars().peekable(),
        pipelines: vec![vec![(Vec::new(), false)]],
        word: None,
        redirects: false,
    };
    splitter.run();
    let mut pipelines = splitter.pipelines;
    for pipeline in &mut pipelines {
        pipeline.retain_mut(|(words, _)| {
            let assignments = words.iter().take_while(|word| is_assignment(word)).count();
            words.drain(..assignments);
            !words.is_empty()
        });
    }
    pipelines.retain(|pipeline| !pipeline.is_empty());
    pipelines
}

/// Returns true for an assignment `NAME=value`.
pub(super) fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

/// Removes the lines of here-documents.
fn without_documents(text: &str) -> String {
    let mut out = String::new();
    let mut waiting: Vec<String> = Vec::new();
    for line in text.split_inclusive('\n') {
        if let Some(end) = waiting.first() {
            if line.trim() == end {
                waiting.remove(0);
            }
            continue;
        }
        out.push_str(line);
        for after in line.split("<<").skip(1) {
            if after.starts_with('<') {
                break;
            }
            let word = after.trim_start_matches('-').trim_start();
            let word = word
                .split([' ', '\t', '\n', ';', '|', '&', '>', ')'])
                .next();
            let word = word.unwrap_or_default().replace(['\'', '"', '\\'], "");
            if !word.is_empty() {
                waiting.push(word);
            }
        }
    }
    out
}

struct Splitter<'t> {
    rest: Peekable<Chars<'t>>,
    pipelines: Vec<Vec<(Vec<String>, bool)>>,
    /// The current word.
    word: Option<String>,
    /// True if the next word is the target of a redirection.
    redirects: bool,
}

impl Splitter<'_> {
    fn run(&mut self) {
        while let Some(c) = self.rest.next() {
            match c {
                ' ' | '\t' | '\r' => self.end_word(),
                '\n' | ';' => self.end_pipeline(),
                '(' | ')' => self.end_pipeline(),
                '&' if self.rest.peek() == Some(&'>') => {
                    self.rest.next();
                    self.rest.next_if_eq(&'>');
                    self.redirect(true);
                }
                '&' => {
                    self.rest.next_if_eq(&'&');
                    self.end_pipeline();
                }
                '|' if self.rest.next_if_eq(&'|').is_some() => self.end_pipeline(),
                '|' => {
                    self.rest.next_if_eq(&'&');
                    self.end_word();
                    if let Some(pipeline) = self.pipelines.last_mut() {
                        pipeline.push((Vec::new(), false));
                    }
                }
                '<' => self.redirect(false),
                '>' => {
                    let descriptor = self.word.take_if(|word| word.parse::<u32>().is_ok());
                    let stdout = descriptor.is_none_or(|number| number == "1");
                    while self.rest.next_if(|c| matches!(c, '>' | '|')).is_some() {}
                    if self.rest.next_if_eq(&'&').is_some() {
                        let file = !self
                            .rest
                            .peek()
                            .is_some_and(|c| c.is_ascii_digit() || *c == '-');
                        self.redirect(stdout && file);
                    } else {
                        self.redirect(stdout);
                    }
                }
                '#' if self.word.is_none() => while self.rest.next_if(|c| *c != '\n').is_some() {},
                '\\' => match self.rest.next() {
                    Some('\n') | None => {}
                    Some(c) => self.push(c),
                },
                '\'' => self.quoted('\''),
                '"' => self.quoted('"'),
                '`' => {
                    while self.rest.next().is_some_and(|c| c != '`') {}
                    self.push('…');
                }
                '$' if self.rest.peek() == Some(&'(') => self.substitution(),
                c => self.push(c),
            }
        }
        self.end_word();
    }

    fn push(&mut self, c: char) {
        self.word.get_or_insert_default().push(c);
    }

    fn quoted(&mut self, quote: char) {
        self.word.get_or_insert_default();
        while let Some(c) = self.rest.next() {
            match c {
                _ if c == quote => return,
                '\\' if quote == '"' => {
                    if let Some(c) = self.rest.next() {
                        self.push(c);
                    }
                }
                _ => self.push(c),
            }
        }
    }

    /// Skips `$( … )`, whose value is unknown.
    fn substitution(&mut self) {
        let mut depth = 0_usize;
        for c in self.rest.by_ref() {
            match c {
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                break;
            }
        }
        self.push('…');
    }

    fn redirect(&mut self, stdout: bool) {
        self.end_word();
        self.redirects = true;
        if let Some(command) = self.pipelines.last_mut().and_then(|list| list.last_mut()) {
            command.1 |= stdout;
        }
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        if std::mem::take(&mut self.redirects) {
            return;
        }
        let command = self.pipelines.last_mut().and_then(|list| list.last_mut());
        let Some((words, _)) = command else { return };
        // Keywords and braces are not part of the command.
        const OPENS: &[&str] = &[
            "!", "{", "}", "do", "done", "elif", "else", "fi", "if", "then", "time", "until",
            "while",
        ];
        if !(words.is_empty() && OPENS.contains(&word.as_str())) {
            words.push(word);
        }
    }

    fn end_pipeline(&mut self) {
        self.end_word();
        self.redirects = false;
        self.pipelines.push(vec![(Vec::new(), false)]);
    }
}
