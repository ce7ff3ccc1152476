//! The command line of `rsync`: its operands, which are separate from the values of its options.

use crate::syntax::word::Word;

/// Long options of `rsync` that take the next word as a value, if they have no `=`.
const VALUE_OPTIONS: &[&str] = &[
    "address",
    "backup-dir",
    "block-size",
    "bwlimit",
    "cc",
    "checksum-choice",
    "checksum-seed",
    "chmod",
    "chown",
    "compare-dest",
    "compress-choice",
    "compress-level",
    "contimeout",
    "copy-as",
    "copy-dest",
    "debug",
    "early-input",
    "exclude",
    "exclude-from",
    "files-from",
    "filter",
    "groupmap",
    "iconv",
    "include",
    "include-from",
    "info",
    "link-dest",
    "log-file",
    "log-file-format",
    "log-format",
    "max-alloc",
    "max-delete",
    "max-size",
    "min-size",
    "modify-window",
    "only-write-batch",
    "out-format",
    "outbuf",
    "partial-dir",
    "password-file",
    "port",
    "protocol",
    "read-batch",
    "remote-option",
    "rsh",
    "rsync-path",
    "skip-compress",
    "sockopts",
    "stderr",
    "stop-after",
    "stop-at",
    "suffix",
    "temp-dir",
    "time-limit",
    "timeout",
    "usermap",
    "write-batch",
    "zc",
    "zl",
];
/// Short options of `rsync` with a value.
const VALUE_LETTERS: &str = "@BMTef";

/// The operands of `rsync`. An unresolved value of an option counts as one, because it may expand
/// to several words.
pub(super) fn operands(words: &[Word]) -> Vec<&Word> {
    let mut operands = Vec::new();
    let mut words = words.iter().peekable();
    while let Some(word) = words.next() {
        if word.known() == Some("--") {
            operands.extend(words);
            break;
        }
        if !word.prefix().starts_with('-') {
            operands.push(word);
        } else if word.known().is_some_and(takes_next_word) {
            words.next_if(|value| value.known().is_some());
        }
    }
    operands
}

/// Whether this option of `rsync` takes the next word as its value.
fn takes_next_word(option: &str) -> bool {
    if let Some(name) = option.strip_prefix("--") {
        return VALUE_OPTIONS.contains(&name);
    }
    // The first letter with a value takes the rest of the word, if there is one.
    let value = option.find(|letter: char| VALUE_LETTERS.contains(letter));
    value.is_some_and(|at| at + 1 == option.len())
}
