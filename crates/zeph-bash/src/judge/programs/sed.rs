//! Scripts of `sed`: whether they start commands with GNU's `e`, alone or as a flag of `s`.

/// Whether a script starts commands. A script with an unknown command counts as one that does. The unresolved rest
/// of a script is not judged.
pub(super) fn starts_commands(script: &str) -> bool {
    Reader::new(script).starts_commands().unwrap_or(false)
}

/// Whether a script starts no commands, and names no files that it reads or writes. An incomplete script may do both.
pub(crate) fn sed_only_reads_input(script: &str) -> bool {
    let mut reader = Reader::new(script);
    reader.starts_commands() == Some(false) && !reader.names_files
}

struct Reader<'s> {
    rest: &'s [u8],
    /// Whether a command names a file.
    names_files: bool,
}

impl<'s> Reader<'s> {
    fn new(script: &'s str) -> Self {
        Self {
            rest: script.as_bytes(),
            names_files: false,
        }
    }

    /// `None` if the script ends inside of a command.
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
                b'#' => self.skip(|byte| byte != b'\n'),
                b'r' | b'R' | b'w' | b'W' => {
                    self.names_files = true;
                    self.skip(|byte| byte != b'\n');
                }
                // Versions differ in where a label ends: the earliest end is assumed.
                b':' | b'b' | b't' | b'T' | b'v' => {
                    self.skip(|byte| byte == b' ' || byte == b'\t');
                    self.skip(|byte| !byte.is_ascii_whitespace() && !matches!(byte, b';' | b'}'));
                }
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
                                self.names_files = true;
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

    /// Skips a line number, `$`, `/…/` or `\c…c`, if one is next.
    fn address(&mut self) -> Option<()> {
        match self.peek() {
            // An unresolved part counts as a number.
            Some(b'0'..=b'9' | b'$' | 0xef) => {
                self.skip(|byte| {
                    byte.is_ascii_digit() || byte >= 0x80 || matches!(byte, b'$' | b'~')
                });
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

    /// Skips the text of `a`, `i` and `c`, to the end of a line that is not continued.
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

    /// Skips to the byte after `end`. In a bracket expression of a regular expression, `end` does not count.
    fn until(&mut self, end: u8, regex: bool) -> Option<()> {
        loop {
            match self.next()? {
                byte if byte == end => return Some(()),
                b'\\' => {
                    self.next()?;
                }
                b'[' if regex => self.brackets()?,
                _ => {}
            }
        }
    }

    /// Skips the rest of a bracket expression.
    fn brackets(&mut self) -> Option<()> {
        if self.peek() == Some(b'^') {
            self.next();
        }
        // A `]` that comes first belongs to the set.
        if self.peek() == Some(b']') {
            self.next();
        }
        loop {
            match self.next()? {
                b']' => return Some(()),
                b'[' => {
                    let Some(class @ (b':' | b'.' | b'=')) = self.peek() else {
                        continue;
                    };
                    self.next();
                    let close = self.rest.windows(2).position(|two| two == [class, b']'])?;
                    self.rest = &self.rest[close + 2..];
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
    fn only_commands_are_found() {
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
            ":a;N;$!ba;s/\\n/,/g",
            "s/[[:alpha:]/]/e/",
            "s/[^]/e]/x/g",
            "v 4.2",
            "$!{h;d};x;G",
            "/a/{n;n;s/b/c/}",
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
            "s/[[:alpha:]/]/x/e",
            ":a;e sudo",
            ":a;s/x/y/e;ta",
            "v 4.2;e sudo",
            "ba;e",
            "s/a/b/;s/c/\\\nsudo id/e",
            "1{e ls\n}",
            "0~2e",
            "/[/]/e",
            "/[[.a.]/]/e",
            "1,/x/ e ls",
            "y/abc/bcd/;1e",
            "l 5;e",
            "}e",
        ] {
            check(script, true);
        }
    }

    /// Scripts of random pieces against GNU `sed --sandbox`, which refuses `e` before it runs anything.
    #[test]
    #[allow(
        clippy::disallowed_methods,
        reason = "sed is the oracle; the sandbox runs nothing"
    )]
    fn commands_that_sed_finds_are_found() {
        const PIECES: &[&str] = &[
            "e",
            "s",
            "/",
            "a",
            "[",
            "]",
            "[:alpha:]",
            "^",
            "\\",
            "\n",
            ";",
            "}",
            "{",
            "1",
            ",",
            "$",
            "!",
            "p",
            "g",
            "N",
            ":a",
            "ba",
            "s/a/b/",
            "s/x/y/e",
            "y/a/b/",
            "i\\",
            "e ls",
            " ",
            "#",
            "v",
            "q5",
            "l 2",
            "/x/",
            "I",
            "~",
            "+",
            "|",
        ];
        let sed = |script: &str| {
            let arguments = ["--sandbox", "-n", "-e", script];
            let output = std::process::Command::new("sed")
                .args(arguments)
                .stdin(std::process::Stdio::null())
                .output();
            output
                .map(|output| String::from_utf8_lossy(&output.stderr).into_owned())
                .unwrap_or_default()
        };
        if !sed("e").contains("sandbox mode") {
            return;
        }
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut number = |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            usize::try_from(state >> 33).unwrap_or_default() % below
        };
        let mut found = 0;
        for _ in 0..400 {
            let length = 1 + number(9);
            let script: String = (0..length).map(|_| PIECES[number(PIECES.len())]).collect();
            if !sed(&script).contains("sandbox mode") {
                continue;
            }
            found += 1;
            assert!(starts_commands(&script), "{script:?}");
        }
        assert!(found > 20, "{found}");
    }
}
