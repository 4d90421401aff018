//! JSON as it was written: members in their order, every key seen, every number as its text.
//!
//! `serde_json::Value` cannot serve: it keeps the last of two equal keys and forgets whether a number was written
//! `1` or `1.0`. Values stay raw text until a rule asks for them, so what an ignored field holds is never converted
//! (a number of a thousand digits there is no fault).
//!
//! Nothing here recurses before the depth was measured. It must not know what an event is.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// What a raw value is, by its first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Null,
    Text,
    Number,
    Boolean,
    Array,
    Object,
}

/// Why a tree is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TreeFault {
    /// A key stands twice in one object, or is no Unicode text.
    Key(String),
    /// An object has more members than allowed.
    Members(String),
}

/// The whole text as one value; none if it is not exactly one JSON value.
pub(crate) fn parse(text: &str) -> Option<&RawValue> {
    serde_json::from_str(text).ok()
}

pub(crate) fn shape(raw: &RawValue) -> Shape {
    match raw.get().as_bytes().first() {
        Some(b'{') => Shape::Object,
        Some(b'[') => Shape::Array,
        Some(b'"') => Shape::Text,
        Some(b't' | b'f') => Shape::Boolean,
        Some(b'n') | None => Shape::Null,
        Some(_) => Shape::Number,
    }
}

/// The text of a string value; none if it is another type or no Unicode text (a lone surrogate).
pub(crate) fn text(raw: &RawValue) -> Option<Cow<'_, str>> {
    (shape(raw) == Shape::Text)
        .then(|| serde_json::from_str::<Text<'_>>(raw.get()).ok())
        .flatten()
        .map(|text| text.0)
}

/// The members of one object: keys as text, values as written.
pub(crate) type MemberList<'a> = Vec<(Cow<'a, str>, &'a RawValue)>;

/// A number written as an integer and within i64: `1.0`, `1e2` and `"1"` are none.
pub(crate) fn integer(raw: &RawValue) -> Option<i64> {
    let digits = raw.get().strip_prefix('-').unwrap_or(raw.get());
    let written_whole = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    written_whole.then(|| raw.get().parse().ok()).flatten()
}

/// The elements of an array.
pub(crate) fn elements(raw: &RawValue) -> Option<Vec<&RawValue>> {
    serde_json::from_str(raw.get()).ok()
}

/// The members of an object in their order, duplicates included.
pub(crate) fn members(raw: &RawValue) -> Option<MemberList<'_>> {
    serde_json::from_str::<Members<'_>>(raw.get()).ok().map(|members| members.0)
}

/// How many containers lie inside each other in a valid text; a plain scalar has none.
pub(crate) fn depth(text: &str) -> usize {
    let (mut open, mut deepest) = (0_usize, 0_usize);
    let (mut quoted, mut escaped) = (false, false);
    for byte in text.bytes() {
        match (quoted, byte) {
            (true, _) if escaped => escaped = false,
            (true, b'\\') => escaped = true,
            (_, b'"') => quoted = !quoted,
            (false, b'{' | b'[') => {
                open += 1;
                deepest = deepest.max(open);
            }
            (false, b'}' | b']') => open = open.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// Refuses duplicate keys and too many members anywhere below `raw`: `budget` is what is left of the limit for all
/// of them together. Recursion is bounded by the depth limit, which the caller has checked.
pub(crate) fn check_tree(raw: &RawValue, budget: &mut usize, path: &str) -> Result<(), TreeFault> {
    match shape(raw) {
        Shape::Object => {
            let members = members(raw).ok_or_else(|| TreeFault::Key(path.to_owned()))?;
            check_object(&members, budget, path)
        }
        Shape::Array => {
            for (index, value) in elements(raw).unwrap_or_default().into_iter().enumerate() {
                if is_container(value) {
                    check_tree(value, budget, &format!("{path}[{index}]"))?;
                }
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// As [`check_tree`], for an object whose members are at hand.
pub(crate) fn check_object(
    members: &[(Cow<'_, str>, &RawValue)],
    budget: &mut usize,
    path: &str,
) -> Result<(), TreeFault> {
    check_members(members, budget, path)?;
    for (key, value) in members {
        if is_container(value) {
            check_tree(value, budget, &join(path, key))?;
        }
    }
    Ok(())
}

/// The check of one object's own members, without what lies below.
pub(crate) fn check_members(
    members: &[(Cow<'_, str>, &RawValue)],
    budget: &mut usize,
    path: &str,
) -> Result<(), TreeFault> {
    *budget = budget.checked_sub(members.len()).ok_or_else(|| TreeFault::Members(path.to_owned()))?;
    match duplicate(members) {
        Some(key) => Err(TreeFault::Key(join(path, key))),
        None => Ok(()),
    }
}

/// The first key that stands twice. Few members, the usual case, need no set.
fn duplicate<'a>(members: &'a [(Cow<'_, str>, &RawValue)]) -> Option<&'a str> {
    const FEW: usize = 16;
    if members.len() <= FEW {
        let mut earlier = members;
        while let Some(((key, _), rest)) = earlier.split_last() {
            if rest.iter().any(|(other, _)| other == key) {
                return Some(key);
            }
            earlier = rest;
        }
        return None;
    }
    let mut seen = HashSet::with_capacity(members.len());
    members.iter().map(|(key, _)| key.as_ref()).find(|key| !seen.insert(*key))
}

pub(crate) fn is_container(raw: &RawValue) -> bool {
    matches!(shape(raw), Shape::Object | Shape::Array)
}

/// `path.key`, without the dot at the top.
pub(crate) fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// A string that borrows where nothing was escaped.
struct Text<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Text<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(TextVisitor)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a string")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Owned(text.to_owned())))
    }
}

/// Every member of one object.
struct Members<'a>(MemberList<'a>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
        let mut members = Vec::with_capacity(8);
        while let Some((key, value)) = map.next_entry::<Text<'de>, &'de RawValue>()? {
            members.push((key.0, value));
        }
        Ok(Members(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_judged_by_their_text() {
        let cases = [
            ("0", Some(0)),
            ("-0", Some(0)),
            ("9223372036854775807", Some(i64::MAX)),
            ("-9223372036854775808", Some(i64::MIN)),
            ("9223372036854775808", None),
            ("1.0", None),
            ("1e2", None),
            ("\"1\"", None),
            ("true", None),
            ("null", None),
            ("[1]", None),
        ];
        for (text, right) in cases {
            assert_eq!(integer(parse(text).unwrap()), right, "{text}");
        }
    }

    #[test]
    fn members_keep_order_and_duplicates() {
        let raw = parse(r#"{"b":1, "a" : [2], "b":null}"#).unwrap();
        let found: Vec<_> =
            members(raw).unwrap().into_iter().map(|(key, value)| (key.into_owned(), value.get())).collect();
        assert_eq!(found, [("b".to_owned(), "1"), ("a".to_owned(), "[2]"), ("b".to_owned(), "null")]);
    }

    #[test]
    fn depth_ignores_what_is_quoted() {
        let cases =
            [("1", 0), ("{}", 1), (r#"{"a":[{}]}"#, 3), (r#"{"a":"[[{\"[["}"#, 1), (r#"["\\",[]]"#, 2)];
        for (text, right) in cases {
            assert_eq!(depth(text), right, "{text}");
        }
    }

    #[test]
    fn duplicate_keys_are_found_anywhere_with_their_path() {
        let cases = [
            (r#"{"a":1,"b":2}"#, None),
            (r#"{"a":1,"a":2}"#, Some("a")),
            (r#"{"a":1,"\u0061":2}"#, Some("a")),
            (r#"{"m":{"x":[0,{"k":1,"k":1}]}}"#, Some("m.x[1].k")),
        ];
        for (text, right) in cases {
            let fault = check_tree(parse(text).unwrap(), &mut 10, "").err();
            assert_eq!(fault, right.map(|path| TreeFault::Key(path.to_owned())), "{text}");
        }
    }

    #[test]
    fn duplicates_are_found_among_many() {
        let many = |last: &str| {
            let list: Vec<_> = (0..40).map(|index| format!(r#""k{index}":1"#)).collect();
            format!("{{{},\"{last}\":1}}", list.join(","))
        };
        assert_eq!(check_tree(parse(&many("k40")).unwrap(), &mut 100, ""), Ok(()));
        assert_eq!(
            check_tree(parse(&many("k7")).unwrap(), &mut 100, ""),
            Err(TreeFault::Key("k7".to_owned()))
        );
    }

    #[test]
    fn members_are_limited_together() {
        let raw = parse(r#"{"x":{"a":1,"b":2}}"#).unwrap();
        assert_eq!(check_tree(raw, &mut 3, ""), Ok(()));
        let fault = TreeFault::Members("x".to_owned());
        assert_eq!(check_tree(raw, &mut 2, ""), Err(fault));
    }

    #[test]
    fn only_one_whole_value_is_json() {
        for text in ["", "{", "{} {}", "{'a':1}", "\u{feff}{}", "{\"a\":01}", "[1,]", "NaN"] {
            assert!(parse(text).is_none(), "{text}");
        }
        assert!(parse(" {\"a\": 1e999} \n").is_some());
    }
}
