//! `zeph filter gain`: the savings of filters.

use std::fmt::Write as _;

use zeph_memory::FilterGain;

use super::super::{Exit, print, print_as_is};
use crate::assemble::open_store;
use crate::config::Loaded;
use crate::output::json_lines;

/// Prints the sums of all rules.
pub(super) async fn run(loaded: &Loaded, as_json: bool) -> anyhow::Result<Exit> {
    let store = open_store(loaded).await?;
    let gains = store.filter_gains().await?;
    store.close().await?;
    if as_json {
        print_as_is(&json_lines(&gains)?)?;
    } else {
        print(&table(&gains))?;
    }
    Ok(Exit::Done)
}

fn table(gains: &[FilterGain]) -> String {
    if gains.is_empty() {
        return "no output was filtered yet".to_owned();
    }
    let width = gains.iter().map(|gain| gain.rule.chars().count());
    let width = width.max().unwrap_or_default().max("total".len());
    let mut text = format!(
        "{:<width$}  {:>7}  {:>12}  {:>12}  {:>6}  {:>11}  {:>6}  {:>7}\n",
        "rule", "outputs", "printed", "read", "saved", "F/P/B", "reruns", "recalls"
    );
    let mut total = FilterGain {
        rule: "total".to_owned(),
        ..FilterGain::default()
    };
    for gain in gains {
        total.full += gain.full;
        total.partial += gain.partial;
        total.fallback += gain.fallback;
        total.bytes_before += gain.bytes_before;
        total.bytes_after += gain.bytes_after;
        total.reruns += gain.reruns;
        total.recalls += gain.recalls;
    }
    for gain in gains.iter().chain([&total]) {
        let FilterGain {
            rule,
            full,
            partial,
            fallback,
            bytes_before,
            bytes_after,
            reruns,
            recalls,
        } = gain;
        // Writing into a string cannot fail.
        let _ = writeln!(
            text,
            "{rule:<width$}  {:>7}  {:>12}  {:>12}  {:>5.1}%  {:>11}  {reruns:>6}  {recalls:>7}",
            full + partial + fallback,
            bytes(*bytes_before),
            bytes(*bytes_after),
            saved(*bytes_before, *bytes_after),
            format!("{full}/{partial}/{fallback}"),
        );
    }
    text
}

fn saved(before: u64, after: u64) -> f64 {
    match before {
        0 => 0.0,
        before => (before.saturating_sub(after)) as f64 * 100.0 / before as f64,
    }
}

fn bytes(count: u64) -> String {
    match count {
        0..10_000 => format!("{count} B"),
        10_000..10_000_000 => format!("{:.1} kB", count as f64 / 1e3),
        _ => format!("{:.1} MB", count as f64 / 1e6),
    }
}
