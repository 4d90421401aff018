//! Stable numbers for window tables: a table is its name, not its position in topology.toml.
//!
//! Cold keys hold one byte for the table. Positions change when someone edits the file, so the cold store keeps a
//! list of names, and a name's place in that list is its number for ever. A name that is gone from the plan has its
//! cells deleted and its place freed: if it comes back later, it comes back empty instead of with a gap.
//!
//! ```text
//!   u8 version 1 · n · { u16 length, name }      (little endian; an empty name is a free place)
//! ```
//!
//! Must not know: cells.

use crate::cold::ColdError;
use crate::keys::TOTALS_TABLE;

const VERSION: u8 = 1;

/// What opening a store with a plan means.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Resolved {
    /// The number of each table of the plan, by position.
    pub(crate) numbers: Vec<u8>,
    /// Numbers whose cells must be deleted, before anything is put.
    pub(crate) gone: Vec<u8>,
    /// The list to store, if it changed.
    pub(crate) changed: Option<Vec<u8>>,
}

/// Gives every table of the plan its number.
///
/// # Errors
///
/// [`ColdError::Damaged`] where the stored list is not readable, [`ColdError::Invariant`] where the plan has an empty
/// name, a name twice, or more tables than numbers.
pub(crate) fn resolve(stored: Option<&[u8]>, plan: &[&str]) -> Result<Resolved, ColdError> {
    let mut names = match stored {
        Some(bytes) => decode(bytes)
            .ok_or_else(|| ColdError::Damaged("the list of window tables is not readable".to_owned()))?,
        None => Vec::new(),
    };
    if plan.iter().enumerate().any(|(at, name)| name.is_empty() || plan.iter().take(at).any(|n| n == name)) {
        return Err(ColdError::Invariant("a window table has no name, or another one's".to_owned()));
    }
    let mut gone = Vec::new();
    for (number, name) in names.iter_mut().enumerate() {
        if !name.is_empty() && !plan.contains(&name.as_str()) {
            name.clear();
            gone.extend(u8::try_from(number).ok());
        }
    }
    let mut numbers = Vec::with_capacity(plan.len());
    for name in plan {
        numbers.push(place(&mut names, name)?);
    }
    let encoded = encode(&names);
    let changed = (stored != Some(&encoded)).then_some(encoded);
    Ok(Resolved { numbers, gone, changed })
}

/// The place of a name: its own, a free one, or a new one.
fn place(names: &mut Vec<String>, name: &str) -> Result<u8, ColdError> {
    let own = names.iter().position(|n| n == name);
    let at = own.or_else(|| names.iter().position(String::is_empty)).unwrap_or(names.len());
    match names.get_mut(at) {
        Some(place) => name.clone_into(place),
        None => names.push(name.to_owned()),
    }
    let number = u8::try_from(at).ok().filter(|number| *number != TOTALS_TABLE);
    number.ok_or_else(|| ColdError::Invariant("more than 255 window tables".to_owned()))
}

fn encode(names: &[String]) -> Vec<u8> {
    let mut out = vec![VERSION];
    for name in names {
        out.extend_from_slice(&(name.len() as u16).to_le_bytes());
        out.extend_from_slice(name.as_bytes());
    }
    out
}

fn decode(bytes: &[u8]) -> Option<Vec<String>> {
    let (&VERSION, mut rest) = bytes.split_first()? else {
        return None;
    };
    let mut names = Vec::new();
    while !rest.is_empty() {
        let (length, tail) = rest.split_first_chunk::<2>()?;
        let length = usize::from(u16::from_le_bytes(*length));
        names.push(std::str::from_utf8(tail.get(..length)?).ok()?.to_owned());
        rest = tail.get(length..)?;
    }
    Some(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(stored: Option<&[u8]>, plan: &[&str]) -> (Vec<u8>, Vec<u8>, Option<Vec<u8>>) {
        let resolved = resolve(stored, plan).unwrap();
        (resolved.numbers, resolved.gone, resolved.changed)
    }

    #[test]
    fn a_name_keeps_its_number_wherever_it_stands() {
        let (numbers, gone, list) = resolved(None, &["1m", "1h", "1d"]);
        assert_eq!((numbers, gone), (vec![0, 1, 2], vec![]));
        let list = list.unwrap();
        assert_eq!(list, b"\x01\x02\x001m\x02\x001h\x02\x001d");
        assert_eq!(resolved(Some(&list), &["1m", "1h", "1d"]), (vec![0, 1, 2], vec![], None));
        assert_eq!(resolved(Some(&list), &["1d", "1m", "1h"]), (vec![2, 0, 1], vec![], None));
        // One goes: its cells go too, and a new one takes its place.
        let (numbers, gone, list) = resolved(Some(&list), &["5m", "1d", "1m"]);
        assert_eq!((numbers, gone), (vec![1, 2, 0], vec![1]));
        let (numbers, gone, _) = resolved(list.as_deref(), &["1h", "1m", "5m", "1d"]);
        assert_eq!((numbers, gone), (vec![3, 0, 1, 2], vec![]));
    }

    #[test]
    fn what_cannot_be_right_is_refused() {
        for plan in [&["a", "a"][..], &[""]] {
            assert!(matches!(resolve(None, plan), Err(ColdError::Invariant(_))), "{plan:?}");
        }
        let many: Vec<String> = (0..256).map(|n| n.to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(resolve(None, &many[..255]).is_ok());
        assert!(matches!(resolve(None, &many), Err(ColdError::Invariant(_))));
        for bytes in [&b""[..], b"\x02", b"\x01\x05", b"\x01\x05\0ab", b"\x01\x01\0\xff"] {
            assert!(matches!(resolve(Some(bytes), &["a"]), Err(ColdError::Damaged(_))), "{bytes:?}");
        }
    }
}
