//! Which lines of a large diff are shown.

use super::super::places::{Budget, Places, share};
use super::patch::{Headers, Patch};
use crate::filter::line::{Held, Sink};

/// Bytes that are told of a diff: less than what is read at once, so that no file's name is cut off.
const BYTES: usize = 40_000;
/// Bytes of a line that says how many lines are not shown.
const TOLD: usize = 16;

/// A line of no file, or a file.
pub(super) enum Item {
    Other(Held),
    Patch(Patch),
}

impl Item {
    /// Bytes that it holds in memory.
    pub(super) fn memory(&self) -> usize {
        match self {
            Self::Other(held) => held.text.len() + size_of::<Held>(),
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

/// Hands on the items, of all hunks at most `max_lines` lines; whether something was left out.
pub(super) fn tell(items: &mut [Item], max_lines: usize, out: &mut dyn Sink) -> bool {
    let Some(plan) = plan(items, max_lines) else {
        tell_names(items, out);
        return true;
    };
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

/// What is told; `None` where there is room for names alone.
fn plan(items: &[Item], max_lines: usize) -> Option<Plan> {
    let size = |which: Headers| -> usize {
        let headers = patches(items).map(|patch| {
            patch
                .headers(which)
                .map(|header| header.text.len() + 1)
                .sum::<usize>()
                + TOLD
        });
        headers.sum()
    };
    let (headers, used) = match (size(Headers::All), size(Headers::Few)) {
        (all, _) if all <= BYTES / 2 => (Headers::All, all),
        (_, few) if few <= BYTES => (Headers::Few, few),
        _ => return None,
    };
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
    Some(Plan {
        headers,
        shares: shares.collect(),
    })
}

/// So many files that there is room for their names alone, by folder.
fn tell_names(items: &[Item], out: &mut dyn Sink) {
    let mut places = Places::default();
    let mut last = 0;
    for patch in patches(items) {
        places.add(patch.path());
        last = patch.number();
    }
    let budget = Budget {
        folders: 300,
        names: 2000,
    };
    for line in places.lines(budget) {
        out.say(last, &line);
    }
}
