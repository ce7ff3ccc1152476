//! Whether a script of sed starts commands: GNU's `e`, alone and as a flag of `s`.

/// Whether it does; also when the script is not understood. What follows the end of a cut-off
/// script is not known and not judged.
pub(super) fn starts_commands(script: &str) -> bool {
    let mut reader = Reader {
        rest: script.as_bytes(),
    };
    reader.starts_commands().unwrap_or(false)
}

struct Reader<'s> {
    rest: &'s [u8],
}

impl Reader<'_> {
    /// `None` when the script ends within something.
    fn starts_commands(&mut self) -> Option<bool> {
        loop {
            self.skip(|byte| byte.is_ascii_whitespace() || matches!(byte, b';' | b'{' | b'}'));
            if self.rest.is_empty() {
                return Some(false);
            }
            self.address()?;
            self.skip(|byte| byte == b' ' || byte == b'\t');
            if self.peek() == Some(b',') {
                self.rest = &self.rest[1..];
                self.skip(|byte| byte.is_ascii_whitespace() || matches!(byte, b'+' | b'~'));
                self.address()?;
            }
            self.skip(|byte| matches!(byte, b' ' | b'\t' | b'!'));
            match self.next()? {
                b'{' | b'}' | b'=' | b'd' | b'D' | b'g' | b'G' | b'h' | b'H' | b'n' | b'N'
                | b'p' | b'P' | b'x' | b'z' | b'F' => {}
                b'q' | b'Q' | b'l' | b'L' => {
                    self.skip(|byte| byte == b' ' || byte.is_ascii_digit());
                }
                b'a' | b'i' | b'c' => self.text(),
                b'#' | b':' | b'r' | b'R' | b'w' | b'W' | b'v' => self.skip(|byte| byte != b'\n'),
                b'b' | b't' | b'T' => self.skip(|byte| !matches!(byte, b'\n' | b';' | b'}')),
                b'y' => {
                    let end = self.next()?;
                    self.until(end, false)?;
                    self.until(end, false)?;
                }
                b's' => {
                    let end = self.next()?;
                    self.until(end, true)?;
                    self.until(end, false)?;
                    loop {
                        match self.peek() {
                            Some(b'e') => return Some(true),
                            Some(b'w') => {
                                self.skip(|byte| byte != b'\n');
                                break;
                            }
                            Some(byte) if byte.is_ascii_alphanumeric() => {
                                self.rest = &self.rest[1..];
                            }
                            _ => break,
                        }
                    }
                }
                _ => return Some(true),
            }
        }
    }

    fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    fn skip(&mut self, passed: impl Fn(u8) -> bool) {
        let count = self.rest.iter().take_while(|byte| passed(**byte)).count();
        self.rest = &self.rest[count..];
    }

    /// A line number, `$`, `/…/` or `\c…c`, if one is next.
    fn address(&mut self) -> Option<()> {
        match self.peek() {
            Some(b'0'..=b'9' | b'$') => {
                self.skip(|byte| byte.is_ascii_digit() || matches!(byte, b'$' | b'~'));
            }
            Some(b'/') => {
                self.next()?;
                self.until(b'/', true)?;
                self.skip(|byte| matches!(byte, b'I' | b'M'));
            }
            Some(b'\\') => {
                self.next()?;
                let end = self.next()?;
                self.until(end, true)?;
                self.skip(|byte| matches!(byte, b'I' | b'M'));
            }
            _ => {}
        }
        Some(())
    }

    /// The text of `a`, `i` and `c`: to the end of a line that is not continued.
    fn text(&mut self) {
        while let Some(byte) = self.next() {
            match byte {
                b'\\' => {
                    self.next();
                }
                b'\n' => return,
                _ => {}
            }
        }
    }

    /// To behind `end`; in a regular expression one in brackets does not count.
    fn until(&mut self, end: u8, regex: bool) -> Option<()> {
        loop {
            match self.next()? {
                byte if byte == end => return Some(()),
                b'\\' => {
                    self.next()?;
                }
                b'[' if regex => {
                    // A `]` that comes first belongs to the set.
                    let first = usize::from(self.peek() == Some(b'^'));
                    let close = self
                        .rest
                        .iter()
                        .skip(first + 1)
                        .position(|byte| *byte == b']');
                    self.rest = &self.rest[close? + first + 2..];
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_found_and_nothing_else() {
        let check = |script: &str, expect| assert_eq!(starts_commands(script), expect, "{script}");
        for script in [
            "s/e/e/",
            "s/a/b/g;s/c/d/2p",
            "1,20p",
            "/a/,/e/d",
            "$!N",
            "/e;e/d",
            "\\,e,d",
            "s|e|e|gI",
            "s/[/e]/x/",
            "s/[]/e]/x/",
            "a e\\",
            "2i\\\ne",
            "y/e/f/",
            ":e;N;be",
            "/x/{s/a/b/;p}",
            "s/a/b/w e",
            "# e",
            "10q",
            "0~3d",
            "/a/I,+3d",
            "n;d",
            "s/\\/e/e/",
            "",
            "s/a/",
            "$d",
            "/a/!d",
            "s/x/a\\\ne/",
        ] {
            check(script, false);
        }
        for script in [
            "e",
            "1e ls",
            "s/x/ls/e",
            "s/x/ls/ge",
            "s/a/b/;e ls",
            "/x/{e\n}",
            "$!e",
            "s,a,b,pe",
            "a x\ne",
            "s/[/]/b/e",
            "p;s/a/b/e",
            "@",
        ] {
            check(script, true);
        }
    }
}
