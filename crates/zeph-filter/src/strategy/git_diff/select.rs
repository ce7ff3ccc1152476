//! Selection of the shown lines of a large diff.

use super::super::group_paths::{Budget, Places, share};
use super::patch::{Headers, Patch};
use crate::line::{OwnedLine, Sink};

/// The maximum bytes of the result: less than the output limit, so that no file name is truncated.
const BYTES: usize = 40_000;
/// Bytes of a line with the number of omitted lines.
const TOLD: usize = 16;

/// Bytes of the headers of all files, summed during the diff.
#[derive(Debug, Default)]
pub(super) struct Sizes {
    all: usize,
    few: usize,
}

impl Sizes {
    /// Adds another file.
    pub(super) fn file(&mut self, header: &str) {
        self.header(header, true);
        self.all += TOLD;
        self.few += TOLD;
    }

    /// Adds a further header of a file. `is_few`: it is one of [`Headers::Few`].
    pub(super) fn header(&mut self, header: &str, is_few: bool) {
        self.all += header.len() + 1;
        self.few += if is_few { header.len() + 1 } else { 0 };
    }

    /// The headers that are shown; `None` if only file names fit.
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

/// Bytes of headers that leave enough room for lines.
const WELL_BELOW: usize = BYTES / 2;

/// A file, or a line outside of files.
pub(super) enum Item {
    Other(OwnedLine),
    Patch(Patch),
}

impl Item {
    /// Bytes of memory.
    pub(super) fn memory(&self) -> usize {
        match self {
            Self::Other(held) => held.text.len() + size_of::<OwnedLine>(),
            Self::Patch(patch) => patch.memory(),
        }
    }
}

/// The selection for a diff.
struct Plan {
    headers: Headers,
    /// Changed lines and context lines for each file; `None`: only the number of lines is shown.
    shares: Vec<Option<(usize, usize)>>,
}

/// Prints the items with at most `max_lines` lines of hunks and the given headers. Returns true if something
/// was omitted.
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

/// Selects the shown lines. `used`: the bytes of the headers.
fn plan(items: &[Item], max_lines: usize, headers: Headers, used: usize) -> Plan {
    let others = items.iter().map(|item| match item {
        Item::Other(held) => held.text.len() + 1,
        Item::Patch(_) => 0,
    });
    // If all files are generated, the user requested them.
    let all_generated = patches(items).all(Patch::is_generated);
    let short: Vec<bool> = patches(items)
        .map(|patch| !all_generated && patch.is_generated())
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

/// The names of the files, if nothing else fits.
#[derive(Default)]
pub(super) struct Names {
    places: Places,
    /// The number of the first line of the last file.
    last: u64,
}

impl Names {
    pub(super) fn add(&mut self, patch: &Patch) {
        self.places.add(patch.path());
        self.last = patch.number();
    }

    /// Prints the names by folder.
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
