//! Names made small: counter keys as numbers, identities as 128 bits.
//!
//! A recount holds every identity of the retained raw topics, so each must cost tens of bytes. Counter keys
//! (namespace, counter, kept dimensions) are numbered as they appear; an identity (namespace, counter, event id) is
//! hashed twice by the standard library's hasher: not the product's hash, on purpose.
//!
//! Everything is length-prefixed, so (a, b-c) and (a-b, c) never meet.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher};

/// Number of a counter key.
pub(crate) type KeyId = u32;

/// A counter key as users see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CounterKey {
    pub(crate) namespace: String,
    pub(crate) counter: String,
    pub(crate) dimensions: Vec<String>,
}

/// Every counter key seen, numbered.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    ids: HashMap<Vec<u8>, KeyId>,
    keys: Vec<CounterKey>,
    scratch: Vec<u8>,
}

impl Keys {
    /// The number of this key, given now if it is new.
    pub(crate) fn id<D: AsRef<str>>(&mut self, namespace: &str, counter: &str, dimensions: &[D]) -> KeyId {
        self.scratch.clear();
        write_part(&mut self.scratch, namespace);
        write_part(&mut self.scratch, counter);
        for value in dimensions {
            write_part(&mut self.scratch, value.as_ref());
        }
        if let Some(id) = self.ids.get(&self.scratch) {
            return *id;
        }
        // Saturates at 2^32 keys, which no memory holds.
        let id = KeyId::try_from(self.keys.len()).unwrap_or(KeyId::MAX);
        self.ids.insert(self.scratch.clone(), id);
        self.keys.push(CounterKey {
            namespace: namespace.to_owned(),
            counter: counter.to_owned(),
            dimensions: dimensions.iter().map(|value| value.as_ref().to_owned()).collect(),
        });
        id
    }

    /// `namespace/counter{dimension=value}`, for people.
    pub(crate) fn name(&self, id: KeyId, dimensions: &[String]) -> String {
        let Some(key) = usize::try_from(id).ok().and_then(|index| self.keys.get(index)) else {
            return format!("key {id}");
        };
        let pairs: Vec<_> =
            dimensions.iter().zip(&key.dimensions).map(|(name, value)| format!("{name}={value}")).collect();
        let shown = if pairs.is_empty() { String::new() } else { format!("{{{}}}", pairs.join(",")) };
        format!("{}/{}{shown}", key.namespace, key.counter)
    }
}

/// The identity of an event (rule R1), as 128 bits.
pub(crate) fn identity(namespace: &str, counter: &str, event_id: &str) -> u128 {
    let half = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        hasher.write_u8(salt);
        for part in [namespace, counter, event_id] {
            hasher.write_usize(part.len());
            hasher.write(part.as_bytes());
        }
        u128::from(hasher.finish())
    };
    (half(1) << 64) | half(2)
}

fn write_part(bytes: &mut Vec<u8>, part: &str) {
    bytes.extend_from_slice(&part.len().to_le_bytes());
    bytes.extend_from_slice(part.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_never_run_into_each_other() {
        assert_ne!(identity("a", "b-c", "d"), identity("a-b", "c", "d"));
        assert_ne!(identity("ab", "c", "d"), identity("a", "bc", "d"));
        assert_ne!(identity("a", "bc", "d"), identity("a", "b", "cd"));
        assert_eq!(identity("a", "b", "c"), identity("a", "b", "c"));
        let mut keys = Keys::default();
        let first = keys.id("ab", "c", &["x"]);
        assert_ne!(first, keys.id("a", "bc", &["x"]));
        assert_ne!(first, keys.id("ab", "c", &[""]));
        assert_eq!(first, keys.id("ab", "c", &["x"]));
    }

    #[test]
    fn a_key_has_a_name_for_people() {
        let mut keys = Keys::default();
        let id = keys.id("shop", "sold", &["eu"]);
        assert_eq!(keys.name(id, &["region".to_owned()]), "shop/sold{region=eu}");
        let plain = keys.id::<&str>("shop", "sold", &[]);
        assert_eq!(keys.name(plain, &[]), "shop/sold");
    }
}
