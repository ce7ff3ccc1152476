//! Which lines of a large diff are shown.

use super::super::group_paths::{Budget, Places, share};
use super::patch::{Headers, Patch};
use crate::line::{OwnedLine, Sink};

/// Bytes that are told of a diff: less than what is read at once, so that no file's name is cut off.
const BYTES: usize = 40_000;
/// Bytes of a line that says how many lines are not shown.
const TOLD: usize = 16;

/// Bytes of the headers of all files; that they are too many is known before the diff ends.
#[derive(Debug, Default)]
pub(super) struct Sizes {
    all: usize,
    few: usize,
}

impl Sizes {
    /// Another file.
    pub(super) fn file(&mut self, header: &str) {
        self.header(header, true);
        self.all += TOLD;
        self.few += TOLD;
    }

    /// A further header of a file, which may be among [`Headers::Few`].
    pub(super) fn header(&mut self, header: &str, is_few: bool) {
        self.all += header.len() + 1;
        self.few += if is_few { header.len() + 1 } else { 0 };
    }

    /// Which headers are shown; `None` where there is room for names alone.
    pub(super) fn headers(&self) -> Option<Headers> {
        match (self.all, self.few) {
            (..=WELL_BELOW, _) => Some(Headers::All),
            (_, ..=BYTES) => Some(Headers::Few),
            _ => None,
        }
    }

    fn used(&self, headers: Headers) -> usize {
        match headers {
            Headers::All => self.all,
            Headers::Few => self.few,
        }
    }
}

/// Bytes of headers that leave room for lines.
const WELL_BELOW: usize = BYTES / 2;

/// A line of no file, or a file.
pub(super) enum Item {
    Other(OwnedLine),
    Patch(Patch),
}

impl Item {
    /// Bytes that it holds in memory.
    pub(super) fn memory(&self) -> usize {
        match self {
            Self::Other(held) => held.text.len() + size_of::<OwnedLine>(),
            Self::Patch(patch) => patch.memory(),
        }
    }
}

/// What is told of a diff.
struct Plan {
    headers: Headers,
    /// Lines of the changed, and of the context, for each file; `None`: their number alone.
    shares: Vec<Option<(usize, usize)>>,
}

/// Hands on the items, of all hunks at most `max_lines` lines and of the headers these; whether something was left out.
pub(super) fn tell(
    items: &mut [Item],
    max_lines: usize,
    sizes: &Sizes,
    headers: Headers,
    out: &mut dyn Sink,
) -> bool {
    let plan = plan(items, max_lines, headers, sizes.used(headers));
    let mut left_out = plan.headers != Headers::All;
    let mut shares = plan.shares.iter();
    for item in items {
        let patch = match item {
            Item::Other(held) => {
                out.keep(held.line());
                continue;
            }
            Item::Patch(patch) => patch,
        };
        let Some((changed, context)) = shares.next().copied().flatten() else {
            left_out |= patch.lines().next().is_some();
            patch.tell_short(plan.headers, out);
            continue;
        };
        if changed < patch.wants_changed() || context < patch.wants_context() {
            patch.give_up(changed, context);
        }
        left_out |= patch.is_cut();
        patch.tell(plan.headers, out);
    }
    left_out
}

fn patches(items: &[Item]) -> impl Iterator<Item = &Patch> {
    items.iter().filter_map(|item| match item {
        Item::Patch(patch) => Some(patch),
        Item::Other(_) => None,
    })
}

/// What is told; `used`: the bytes of the headers.
fn plan(items: &[Item], max_lines: usize, headers: Headers, used: usize) -> Plan {
    let others = items.iter().map(|item| match item {
        Item::Other(held) => held.text.len() + 1,
        Item::Patch(_) => 0,
    });
    // Where there is nothing else, what tools made was asked for.
    let all_made = patches(items).all(Patch::is_made);
    let short: Vec<bool> = patches(items)
        .map(|patch| !all_made && patch.is_made())
        .collect();
    let shown = || patches(items).zip(&short).filter(|(_, short)| !**short);
    let (bytes, lines) = shown().fold((0, 1), |(bytes, lines), (patch, _)| {
        let (more_bytes, more_lines) = patch.size();
        (bytes + more_bytes, lines + more_lines)
    });
    let room = BYTES.saturating_sub(used + others.sum::<usize>()) / (bytes / lines).max(1);
    let max_lines = max_lines.min(room);
    let wants = |of: fn(&Patch) -> usize| -> Vec<usize> {
        let wants = patches(items).zip(&short);
        wants
            .map(|(patch, short)| if *short { 0 } else { of(patch) })
            .collect()
    };
    let changed = wants(Patch::wants_changed);
    let changed_shares = share(max_lines, &changed);
    let left = max_lines - changed_shares.iter().sum::<usize>();
    let context_shares = share(left, &wants(Patch::wants_context));
    let shares = changed_shares
        .into_iter()
        .zip(context_shares)
        .zip(short.iter().zip(changed));
    let shares = shares.map(|((changed, context), (short, wants))| {
        (!short && (changed > 0 || wants == 0)).then_some((changed, context))
    });
    Plan {
        headers,
        shares: shares.collect(),
    }
}

/// The names of so many files that there is room for nothing else.
#[derive(Default)]
pub(super) struct Names {
    places: Places,
    /// The number of the last file's first line.
    last: u64,
}

impl Names {
    pub(super) fn add(&mut self, patch: &Patch) {
        self.places.add(patch.path());
        self.last = patch.number();
    }

    /// By folder.
    pub(super) fn tell(self, out: &mut dyn Sink) {
        let budget = Budget {
            folders: 300,
            names: 2000,
        };
        for line in self.places.lines(budget) {
            out.say(self.last, &line);
        }
    }
}
