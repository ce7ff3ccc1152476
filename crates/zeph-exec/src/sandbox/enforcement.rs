//! The restrictions that a machine enforces, and those that it lacks.

/// The first version of Landlock that prevents truncating files outside (Linux 6.2).
const WHOLE: u32 = 3;

/// The restrictions that a machine enforces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Enforcement {
    /// The version of Landlock's interface; `None` without Landlock.
    pub landlock: Option<u32>,
    /// Whether seccomp blocks the network.
    pub seccomp: bool,
    /// Whether Seatbelt (macOS) is available, which enforces all restrictions.
    pub seatbelt: bool,
}

impl Enforcement {
    /// Whether commands can write only to permitted paths.
    #[must_use]
    pub fn confines_writes(self) -> bool {
        self.seatbelt || self.landlock.is_some_and(|version| version >= WHOLE)
    }

    /// Describes the requested restrictions that are not enforced, as a sentence without its full stop. `network`
    /// states whether commands may use the network.
    #[must_use]
    pub fn lacks(self, network: bool) -> Option<String> {
        if self.seatbelt {
            return None;
        }
        let mut lacks = Vec::new();
        match self.landlock {
            None => lacks.push(
                "this system does not limit the files that commands write (it has no \
                 Landlock)"
                    .to_owned(),
            ),
            Some(version) if version < WHOLE => lacks.push(format!(
                "this system limits the files that commands write, but they can truncate any file \
                 (Landlock version {version}, version {WHOLE} is required)"
            )),
            Some(_) => {}
        }
        if !network && !self.seccomp {
            lacks.push("this system does not block the network (it has no seccomp)".to_owned());
        }
        (!lacks.is_empty()).then(|| lacks.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves SH-20.
    #[test]
    fn missing_features_are_named() {
        let check = |landlock, seccomp, network, expect: &[&str]| {
            let found = Enforcement {
                landlock,
                seccomp,
                seatbelt: false,
            };
            let lacks = found.lacks(network);
            assert_eq!(lacks.is_none(), expect.is_empty(), "{lacks:?}");
            let text = lacks.unwrap_or_default();
            for word in expect {
                assert!(text.contains(word), "{word}: {text}");
            }
        };
        check(Some(3), true, false, &[]);
        check(Some(7), false, true, &[]);
        check(Some(9), true, true, &[]);
        check(Some(2), true, false, &["truncate", "version 2"]);
        check(None, true, false, &["no Landlock"]);
        check(Some(7), false, false, &["no seccomp"]);
        check(None, false, false, &["no Landlock", "no seccomp"]);
        check(None, false, true, &["no Landlock"]);
        let confines = |landlock| {
            Enforcement {
                landlock,
                seccomp: true,
                seatbelt: false,
            }
            .confines_writes()
        };
        assert_eq!(
            [None, Some(1), Some(2), Some(3), Some(8)].map(confines),
            [false, false, false, true, true]
        );
    }
}
