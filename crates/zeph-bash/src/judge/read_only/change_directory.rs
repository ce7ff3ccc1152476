//! `cd`: its directory must exist, or must not climb.

use std::path::PathBuf;

use super::ReadOnly;
use super::arguments::{read, unresolved};
use super::location::Location;
use super::simple::check_operands;
use super::table::Row;
use crate::judge::places::normalize_path;
use crate::syntax::word::Word;

/// Checks a `cd`. A directory that does not exist makes the shell resolve `..` after links, so `..` is admitted only
/// if the result certainly exists.
pub(super) fn change_directory(
    name: &str,
    row: &Row,
    arguments: &[Word],
    location: &Location,
    found: &mut ReadOnly,
) -> Result<(), String> {
    let given = read(name, row, arguments, None)?;
    let Some(operand) = given.operands.first() else {
        let home = location.home.as_ref().and_then(|home| home.to_str());
        let home = home.ok_or("the home directory is unknown")?;
        return location.add(&Word::literal(home), found);
    };
    check_operands(name, row, &given, &given.operands)?;
    let text = operand
        .word
        .known()
        .ok_or_else(|| unresolved(&operand.word))?;
    if text == "-" {
        return Err("the directory of `cd -` is unknown before the command runs".to_owned());
    }
    let mut names = text
        .split('/')
        .skip_while(|part| matches!(*part, ".." | "." | ""));
    let is_inside = names.any(|part| part == "..");
    let climbs = text.split('/').any(|part| part == "..");
    if climbs && (is_inside || text.starts_with('/')) {
        return Err(format!("the directory of `cd {text}` may depend on links"));
    }
    if climbs {
        let exists = |place: &PathBuf| {
            let to = normalize_path(&place.join(text));
            location.start.starts_with(place) || location.start.starts_with(to)
        };
        if !location
            .places
            .as_ref()
            .is_some_and(|places| places.iter().all(exists))
        {
            return Err(format!("the directory of `cd {text}` may depend on links"));
        }
    }
    location.add(&operand.word, found)
}
