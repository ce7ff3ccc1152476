//! Values that layers attach to a call, one for each type.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// A map from a type to its value for one call; clones share it.
#[derive(Clone, Default)]
pub struct Extensions(Arc<Mutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>>);

impl Extensions {
    /// Returns the value of the type `T`; the first request creates it.
    #[must_use]
    pub fn get<T: Any + Default + Send + Sync>(&self) -> Arc<T> {
        let mut values = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let value = values
            .entry(TypeId::of::<T>())
            .or_insert_with(|| Arc::new(T::default()));
        // A value is stored under its own type, so the fallback is never used.
        Arc::clone(value).downcast().unwrap_or_default()
    }
}

impl fmt::Debug for Extensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Extensions")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

    #[test]
    fn clones_share_one_value_of_each_type() {
        let one = Extensions::default();
        let other = one.clone();
        one.get::<AtomicU32>().store(3, Ordering::Relaxed);
        assert_eq!(other.get::<AtomicU32>().load(Ordering::Relaxed), 3);
        assert_eq!(other.get::<AtomicU64>().load(Ordering::Relaxed), 0);
    }
}
