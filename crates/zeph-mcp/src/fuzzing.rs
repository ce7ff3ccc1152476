//! Entry points to the reader of messages for fuzz targets; not a part of the public interface.

use serde_json::{Value, json};

use crate::serve::read_line;

/// The id in the refusal of a line; `None` if the line is not refused, or if its refusal has no id.
#[must_use]
pub fn refused_id(line: &[u8]) -> Option<Value> {
    let id = read_line(line).err()?;
    Some(json!(id?))
}
