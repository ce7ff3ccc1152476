//! Repairs of arguments: JSON sent as a string, and `null` for an absent optional. A repair is accepted only if the
//! result fits the schema.

use serde_json::Value;

use super::{Fault, ForeignSchema};
use crate::params::describe;

/// Repairs `arguments`, or `None` if no repair or more than one makes them fit.
pub(super) fn repair(schema: &ForeignSchema, arguments: &Value) -> Option<(Value, Vec<String>)> {
    let faults = schema.faults(arguments);
    let direct = faults.iter().filter(|fault| fault.wrong_type);
    let mut fixed = arguments.clone();
    let mut repairs = Vec::new();
    for fault in direct {
        repairs.extend(change(&mut fixed, &fault.pointer));
    }
    let left = match repairs.is_empty() {
        true => faults,
        false => schema.faults(&fixed),
    };
    if left.is_empty() {
        return (!repairs.is_empty()).then_some((fixed, repairs));
    }
    // A wrong type in an alternative: exactly one change makes the arguments fit.
    let mut found: Option<(Value, String)> = None;
    for pointer in pointers(&left) {
        let mut changed = fixed.clone();
        let Some(said) = change(&mut changed, pointer) else {
            continue;
        };
        if !schema.faults(&changed).is_empty() {
            continue;
        }
        if found.is_some() {
            return None;
        }
        found = Some((changed, said));
    }
    let (fixed, said) = found?;
    repairs.push(said);
    Some((fixed, repairs))
}

fn pointers(faults: &[Fault]) -> Vec<&str> {
    let mut pointers: Vec<&str> = Vec::new();
    for fault in faults {
        let own = fault.wrong_type.then_some(fault.pointer.as_str());
        let all = own.into_iter();
        for pointer in all.chain(fault.alternatives.iter().map(String::as_str)) {
            if !pointers.contains(&pointer) {
                pointers.push(pointer);
            }
        }
    }
    pointers
}

/// Changes the value at `pointer`, and describes the change; `None` if it has no other reading.
fn change(arguments: &mut Value, pointer: &str) -> Option<String> {
    let value = arguments.pointer(pointer)?;
    match value {
        Value::Null => {
            let (parent, name) = pointer.rsplit_once('/')?;
            let name = name.replace("~1", "/").replace("~0", "~");
            let parent = arguments.pointer_mut(parent)?.as_object_mut()?;
            parent.shift_remove(&name)?;
            Some(format!("`{pointer}` was null and was treated as absent"))
        }
        Value::String(text) => {
            let read: Value = serde_json::from_str(text.trim()).ok()?;
            if read.is_string() || read.is_null() {
                return None;
            }
            let said = format!(
                "`{pointer}` was sent as {} and converted to {}",
                describe(value),
                describe(&read)
            );
            *arguments.pointer_mut(pointer)? = read;
            Some(said)
        }
        _ => None,
    }
}
