//! Differences of indentation between the lines of a file and the requested ones, and their application to new lines.
//!
//! Two differences are supported: every line has the same white space more, or less; and tabs replace blanks, or the
//! other way round. The number of blanks per tab is not guessed: a new line takes the indentation of a line with the
//! same width, or a width that the first and last line imply and all others confirm.

/// A difference of indentation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum IndentDelta<'a> {
    /// The lines of the file have this prefix in addition.
    More(&'a [u8]),
    /// The requested lines have this prefix in addition.
    Less(&'a [u8]),
    /// The file has tabs and the request has blanks, or the other way round.
    Unit {
        /// The character that indents the file.
        sign: u8,
        /// Requested widths and those of the file; ascending, without duplicates.
        widths: Vec<(usize, usize)>,
    },
}

impl<'a> IndentDelta<'a> {
    /// The difference between the indentations of the file and the requested ones, as pairs by line; `None` if the
    /// lines disagree.
    pub(crate) fn between(lines: &[(&'a [u8], &'a [u8])]) -> Option<Self> {
        Self::constant(lines).or_else(|| Self::unit(lines))
    }

    fn constant(lines: &[(&'a [u8], &'a [u8])]) -> Option<Self> {
        let mut shifts = lines.iter().map(|&(here, asked)| {
            match (here.strip_suffix(asked), asked.strip_suffix(here)) {
                (Some(more), _) => Some(Self::More(more)),
                (None, Some(less)) => Some(Self::Less(less)),
                (None, None) => None,
            }
        });
        let first = shifts.next()??;
        shifts
            .all(|shift| shift.as_ref() == Some(&first))
            .then_some(first)
    }

    fn unit(lines: &[(&'a [u8], &'a [u8])]) -> Option<Self> {
        let made_of = |text: &[u8], sign: u8| text.iter().all(|byte| *byte == sign);
        let (sign, other) = [(b'\t', b' '), (b' ', b'\t')].into_iter().find(|signs| {
            lines
                .iter()
                .all(|(here, asked)| made_of(here, signs.0) && made_of(asked, signs.1))
        })?;
        let mut widths: Vec<_> = lines.iter().map(|(h, a)| (a.len(), h.len())).collect();
        widths.sort_unstable();
        widths.dedup();
        // A tab is at least as wide as a blank.
        let fits = widths.windows(2).all(|two| {
            let ((asked, here), (next_asked, next_here)) = (two[0], two[1]);
            let (run, rise) = (next_asked - asked, next_here.checked_sub(here));
            rise.is_some_and(|rise| rise > 0 && run > 0 && (run >= rise) == (other == b' '))
        });
        (fits && !widths.is_empty()).then_some(Self::Unit { sign, widths })
    }

    /// A new `line` with the indentation of the file; `None` if that is unknown.
    pub(crate) fn applied(&self, line: &[u8]) -> Option<Vec<u8>> {
        match self {
            Self::More(more) => Some([*more, line].concat()),
            Self::Less(less) => line.strip_prefix(*less).map(<[u8]>::to_vec),
            Self::Unit { sign, widths } => {
                let other = if *sign == b'\t' { b' ' } else { b'\t' };
                let width = line.iter().take_while(|byte| **byte == other).count();
                let rest = &line[width..];
                if rest.first() == Some(sign) {
                    return None;
                }
                let width = here(widths, width)?;
                Some([&vec![*sign; width][..], rest].concat())
            }
        }
    }
}

/// The width in the file for a requested one: that of a known line, or a linear interpolation through the first and
/// the last line if all others are on it.
fn here(widths: &[(usize, usize)], asked: usize) -> Option<usize> {
    if let Some((_, here)) = widths.iter().find(|(known, _)| *known == asked) {
        return Some(*here);
    }
    let (&(first, at_first), &(last, at_last)) = (widths.first()?, widths.last()?);
    let (run, rise) = (last - first, at_last - at_first);
    // `here = at_first + (asked - first) * rise / run` in integers, which must hold for every line.
    let line = |asked: usize| {
        let scaled = i64::try_from(asked).ok()? - i64::try_from(first).ok()?;
        let scaled = scaled.checked_mul(i64::try_from(rise).ok()?)?;
        let run = i64::try_from(run).ok().filter(|run| *run > 0)?;
        let steps = (scaled % run == 0).then_some(scaled / run)?;
        usize::try_from(i64::try_from(at_first).ok()?.checked_add(steps)?).ok()
    };
    let agree = widths
        .iter()
        .all(|&(asked, here)| line(asked) == Some(here));
    if agree { line(asked) } else { None }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// Proves FILE-22.
    #[test]
    fn new_lines_take_the_indentation_of_the_file() {
        let check = |lines: &[(&str, &str)], new: &str, expect: Option<&str>| {
            let lines: Vec<_> = lines
                .iter()
                .map(|(here, asked)| (here.as_bytes(), asked.as_bytes()))
                .collect();
            let shift = IndentDelta::between(&lines);
            let applied = shift.and_then(|shift| shift.applied(new.as_bytes()));
            let applied = applied.map(|line| String::from_utf8(line).unwrap());
            assert_eq!(applied.as_deref(), expect, "{lines:?} {new:?}");
        };
        check(&[("    ", "")], "  x", Some("      x"));
        check(&[("", "  "), ("  ", "    ")], "   x", Some(" x"));
        check(&[("", "  ")], " x", None);
        check(&[("\t", "    ")], "    x", Some("\tx"));
        check(&[("    ", "\t")], "\tx", Some("    x"));
        // One width alone does not determine the width of a tab.
        check(&[("\t", "    ")], "        x", None);
        check(&[("\t\t", "    ")], "  x", None);
        check(&[("", ""), ("\t", "    ")], "        x", Some("\t\tx"));
        check(
            &[("", ""), ("    ", "\t")],
            "\t\t\tx",
            Some("            x"),
        );
        check(&[("\t", "  "), ("\t\t", "    ")], "x", Some("x"));
        check(&[("\t", "    "), ("\t\t", "        ")], "      x", None);
        // The whole block may be indented further.
        check(
            &[("\t\t", "    "), ("\t", "")],
            "        x",
            Some("\t\t\tx"),
        );
        check(
            &[("\t\t", ""), ("\t\t\t\t", "    ")],
            "  x",
            Some("\t\t\tx"),
        );
        // Lines disagree, or mix both characters.
        check(&[("\t", "    "), ("\t\t", "    ")], "    x", None);
        check(&[("\t", "    "), ("\t", "  ")], "  x", None);
        check(&[("", ""), ("\t", "    "), ("\t\t", "6     ")], "x", None);
        check(&[("\t ", "     ")], "     x", None);
        check(&[("\t", "    ")], "    \tx", None);
        check(&[("\t\t", " ")], " x", Some("\t\tx"));
        check(&[("\t", " "), ("\t\t\t", "  ")], " x", None);
        check(&[], "x", None);
    }
}
