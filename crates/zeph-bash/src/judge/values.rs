//! The possible values of variables while a command is judged.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::rc::Rc;

use super::blocklist::matches_pattern;
use super::effects::Effects;
use crate::syntax::word::{Variable, Word};

/// The maximum number of values that are stored for one variable.
const MAX_VALUES: usize = 32;
/// The maximum length of a stored value in bytes.
const MAX_VALUE_LEN: usize = 4096;
/// The maximum length in bytes of a value for which `%`, `%%`, `#` and `##` are computed.
const MAX_TRIMMED_LEN: usize = 1024;
/// Variables that bash changes automatically.
const DYNAMIC: &[&str] = &[
    "_",
    "RANDOM",
    "SRANDOM",
    "SECONDS",
    "LINENO",
    "EPOCHSECONDS",
    "EPOCHREALTIME",
    "BASHPID",
    "BASH_ARGV0",
    "BASH_COMMAND",
    "BASH_REMATCH",
    "BASH_SUBSHELL",
    "COPROC",
    "DIRSTACK",
    "FUNCNAME",
    "GROUPS",
    "HISTCMD",
    "MAPFILE",
    "OPTARG",
    "OPTIND",
    "PIPESTATUS",
    "PPID",
    "EUID",
    "UID",
    "REPLY",
    "SHELLOPTS",
    "BASHOPTS",
    "COMP_LINE",
    "COMP_WORDS",
    "READLINE_LINE",
];

/// The possible values of a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Possible {
    /// The known values.
    pub(super) texts: Vec<String>,
    /// Whether another, unknown value is possible.
    pub(super) other: bool,
    /// Whether the variable gets each of the values, in a loop.
    pub(super) every: bool,
    /// Whether commands certainly get the variable in their environment.
    pub(super) exported: bool,
    /// Known words and patterns of file names, if each value results from one of them.
    pub(super) patterns: Vec<Word>,
}

impl Possible {
    /// Collects these values; `None` is an unknown value.
    pub(super) fn of(values: impl Iterator<Item = Option<String>>) -> Self {
        let mut possible = Self {
            texts: Vec::new(),
            other: false,
            every: false,
            exported: false,
            patterns: Vec::new(),
        };
        for value in values {
            possible.add(value);
        }
        possible.other |= possible.texts.is_empty();
        possible
    }

    /// No known value.
    pub(super) fn unknown() -> Self {
        Self::of(std::iter::empty())
    }

    /// Whether at least one value is known.
    pub(super) fn is_known(&self) -> bool {
        !self.texts.is_empty()
    }

    fn add(&mut self, value: Option<String>) {
        match value.filter(|value| value.len() <= MAX_VALUE_LEN) {
            None => self.other = true,
            Some(value) if self.texts.contains(&value) => {}
            Some(_) if self.texts.len() == MAX_VALUES => self.other = true,
            Some(value) => self.texts.push(value),
        }
    }

    /// The values, if all of them are known.
    pub(super) fn known_texts(&self) -> &[String] {
        if self.other { &[] } else { &self.texts }
    }

    /// The values as directories; `None` is an unknown directory.
    pub(super) fn paths(&self) -> Vec<Option<PathBuf>> {
        let known = self.texts.iter().map(|text| Some(PathBuf::from(text)));
        known.chain(self.other.then_some(None)).collect()
    }

    /// The values of both.
    fn or(&self, other: &Self) -> Self {
        let mut joined = self.clone();
        for text in &other.texts {
            joined.add(Some(text.clone()));
        }
        joined.other |= other.other;
        joined.every &= other.every && self.texts == other.texts;
        joined.exported &= other.exported;
        if joined.patterns != other.patterns {
            joined.patterns.clear();
        }
        joined
    }
}

/// The values of all variables that a command sets. Other variables have no entry.
#[derive(Debug, Clone, Default)]
pub(super) struct Values {
    set: Rc<BTreeMap<String, Possible>>,
    /// Variables that may change at any time.
    volatile: Rc<BTreeSet<String>>,
    /// Variables that are read-only.
    fixed: Rc<BTreeSet<String>>,
    /// Whether any variable may change at any time.
    all_volatile: bool,
    /// Whether the value of `IFS` is unknown, so that the splitting of values is too.
    splits_elsewhere: bool,
}

impl Values {
    /// The values of `name`, if the command sets it.
    pub(super) fn get(&self, name: &str) -> Option<Possible> {
        let volatile = self.all_volatile || self.volatile.contains(name);
        let shell_defined = matches!(name, "HOME" | "PWD" | "OLDPWD");
        match self.set.get(name) {
            Some(possible) if volatile => {
                let other = true;
                Some(Possible {
                    other,
                    patterns: Vec::new(),
                    ..possible.clone()
                })
            }
            Some(possible) => Some(possible.clone()),
            None if volatile && !shell_defined => Some(Possible::unknown()),
            None => None,
        }
    }

    fn insert(&mut self, name: &str, possible: Possible) {
        if name == "IFS" {
            self.splits_elsewhere = true;
        }
        if self.set.get(name) != Some(&possible) {
            Rc::make_mut(&mut self.set).insert(name.to_owned(), possible);
        }
    }

    /// Sets the values of the variable.
    pub(super) fn assign(&mut self, name: &str, possible: Possible) {
        let dynamic = DYNAMIC.contains(&name);
        if self.fixed.contains(name) {
            self.make_volatile(name);
        }
        let exported = self.set.get(name).is_some_and(|before| before.exported);
        let possible = if dynamic {
            Possible::unknown()
        } else {
            possible
        };
        self.insert(
            name,
            Possible {
                exported: exported || possible.exported,
                ..possible
            },
        );
    }

    /// Makes the value of the variable unknown.
    pub(super) fn forget(&mut self, name: &str) {
        self.assign(name, Possible::unknown());
    }

    /// Marks the variable as exported.
    pub(super) fn export(&mut self, name: &str, now: &Possible) {
        let exported = true;
        self.insert(
            name,
            Possible {
                exported,
                ..now.clone()
            },
        );
    }

    /// Marks the variable as one that may change at any time.
    pub(super) fn make_volatile(&mut self, name: &str) {
        self.splits_elsewhere |= name == "IFS";
        if !self.volatile.contains(name) {
            Rc::make_mut(&mut self.volatile).insert(name.to_owned());
        }
    }

    /// Makes the variable read-only.
    pub(super) fn fix(&mut self, name: &str) {
        Rc::make_mut(&mut self.fixed).insert(name.to_owned());
    }

    /// Gives these variables the values that they had `before`.
    pub(super) fn restore<'n>(&mut self, names: impl Iterator<Item = &'n str>, before: &Self) {
        for name in names {
            let set = Rc::make_mut(&mut self.set);
            match before.set.get(name) {
                Some(possible) => set.insert(name.to_owned(), possible.clone()),
                None => set.remove(name),
            };
        }
    }

    /// Adds the values that these variables had `before`.
    pub(super) fn join_names<'n>(&mut self, names: impl Iterator<Item = &'n str>, before: &Self) {
        let unknown = Possible::unknown();
        for name in names {
            let now = self.set.get(name).unwrap_or(&unknown);
            let joined = now.or(before.set.get(name).unwrap_or(&unknown));
            self.insert(name, joined);
        }
    }

    /// Marks all variables as ones that may change at any time.
    pub(super) fn make_all_volatile(&mut self) {
        self.all_volatile = true;
        self.splits_elsewhere = true;
    }

    /// Forgets the values that the command gave `PWD` and `OLDPWD`: the shell has set both.
    pub(super) fn directory_changed(&mut self) {
        for name in ["PWD", "OLDPWD"] {
            if self.set.contains_key(name) {
                self.forget(name);
            }
        }
    }

    /// Joins all of these.
    pub(super) fn join_all(&mut self, others: impl IntoIterator<Item = Self>) {
        others.into_iter().for_each(|other| self.join(&other));
    }

    /// Applies effects that may occur at any time from here on.
    pub(super) fn may_change(&mut self, effects: &Effects) {
        effects
            .names
            .iter()
            .for_each(|name| self.make_volatile(name));
        if effects.any {
            self.make_all_volatile();
        }
    }

    /// Applies effects that may have occurred.
    pub(super) fn may_have_changed(&mut self, effects: &Effects) {
        for name in &effects.names {
            let now = self
                .set
                .get(name)
                .cloned()
                .unwrap_or_else(Possible::unknown);
            self.insert(name, now.or(&Possible::unknown()));
        }
        if effects.any {
            self.make_all_volatile();
        }
    }

    /// Adds the possible values of `other`.
    pub(super) fn join(&mut self, other: &Self) {
        self.all_volatile |= other.all_volatile;
        self.splits_elsewhere |= other.splits_elsewhere;
        if !Rc::ptr_eq(&self.volatile, &other.volatile) {
            for name in &*other.volatile {
                self.make_volatile(name);
            }
        }
        if !Rc::ptr_eq(&self.fixed, &other.fixed) {
            Rc::make_mut(&mut self.fixed).extend(other.fixed.iter().cloned());
        }
        if Rc::ptr_eq(&self.set, &other.set) || self.set == other.set {
            return;
        }
        let unknown = Possible::unknown();
        let names: BTreeSet<&String> = self.set.keys().chain(other.set.keys()).collect();
        let joined = names.into_iter().map(|name| {
            let (one, two) = (self.set.get(name), other.set.get(name));
            let joined = one.unwrap_or(&unknown).or(two.unwrap_or(&unknown));
            (name.clone(), joined)
        });
        self.set = Rc::new(joined.collect());
    }

    /// The values in a shell that the current one starts.
    pub(super) fn in_child(&self) -> Self {
        let mut child = self.clone();
        if child.set.values().any(|possible| !possible.exported) {
            for possible in Rc::make_mut(&mut child.set).values_mut() {
                possible.other |= !possible.exported;
                possible.patterns.clear();
            }
        }
        child
    }

    /// The expansion of `variable` if its name has the value `text`.
    pub(super) fn expanded(&self, variable: &Variable, text: &str) -> Option<String> {
        let value = operate(text, &variable.operator)?;
        let splits = !variable.quoted && self.splits_elsewhere;
        (!splits).then_some(value)
    }
}

/// Computes `${NAME OPERATOR}` of a variable with the value `text`, if that is possible.
fn operate(text: &str, operator: &str) -> Option<String> {
    let is_plain = |text: &str, also: &str| {
        let plain = |c: char| c.is_alphanumeric() || "_./-+,@%=".contains(c) || also.contains(c);
        text.chars().all(plain)
    };
    let colon = operator.strip_prefix(':');
    let rest = colon.unwrap_or(operator);
    if let Some(default) = rest.strip_prefix(['-', '=', '?', '+']) {
        let is_set = !text.is_empty() || colon.is_none();
        let literal = || is_plain(default, "").then(|| default.to_owned());
        return match (rest.starts_with('+'), is_set) {
            (false, true) => Some(text.to_owned()),
            (false, false) if rest.starts_with('?') => None,
            (true, false) => Some(String::new()),
            (true, true) | (false, false) => literal(),
        };
    }
    if operator.is_empty() {
        return Some(text.to_owned());
    }
    let (suffix, longest, pattern) = match operator.split_at_checked(2) {
        Some(("%%", pattern)) => (true, true, pattern),
        Some(("##", pattern)) => (false, true, pattern),
        _ if operator.starts_with('%') => (true, false, &operator[1..]),
        _ if operator.starts_with('#') => (false, false, &operator[1..]),
        _ => return None,
    };
    if !is_plain(pattern, "*") || pattern.contains('%') || text.len() > MAX_TRIMMED_LEN {
        return None;
    }
    let mut places: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    places.push(text.len());
    // Tries the shortest part first.
    if suffix {
        places.reverse();
    }
    let fits = |at: &&usize| {
        let part = if suffix { &text[**at..] } else { &text[..**at] };
        matches_pattern(pattern, part)
    };
    let found = if longest {
        places.iter().rev().find(fits)
    } else {
        places.iter().find(fits)
    };
    Some(match found {
        None => text.to_owned(),
        Some(at) if suffix => text[..*at].to_owned(),
        Some(at) => text[*at..].to_owned(),
    })
}
