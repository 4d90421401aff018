//! What was probably meant by a key that does not exist.
//!
//! Must not know: the text it stands in.

use crate::keys::{KEYS, Key, Kind};

/// The known key that `written` was probably meant to be, and what to say about it.
pub(crate) fn key(written: &str, known: &[&'static Key]) -> (Option<&'static str>, String) {
    let names = known.iter().map(|key| key.name());
    if let Some(name) = nearest(written, names.clone()) {
        return (Some(name), format!("did you mean `{name}`?"));
    }
    let elsewhere: Vec<_> = KEYS
        .iter()
        .filter(|key| key.name() == written && !key.table().is_empty())
        .filter(|key| !matches!(key.kind, Kind::Later(_)))
        .map(|key| format!("[{}]", key.table().replace('*', "NAME")))
        .collect();
    if !elsewhere.is_empty() {
        return (None, format!("`{written}` belongs in {}", elsewhere.join(" or ")));
    }
    let names: Vec<_> = names.map(|name| format!("`{name}`")).collect();
    if names.is_empty() {
        return (None, "this table has no keys: leave it empty".to_owned());
    }
    (None, format!("known here: {}", names.join(", ")))
}

/// The candidate nearest to `written`, unless all are too far away to have been meant.
pub(crate) fn nearest<'a>(written: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |text: &str| text.to_lowercase().replace('-', "_");
    let written: String = plain(written).chars().take(NAME_LIMIT).collect();
    candidates
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(&written, &plain(name)), name))
        // A third of the letters may be wrong, and one in the shortest words.
        .filter(|(distance, name)| *distance <= (name.chars().count() / 3).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Letters of a name that are compared: longer than any key; bounds the work for hostile input.
const NAME_LIMIT: usize = 64;

/// A name as TOML wants it: bare, or in quotes.
pub(crate) fn quoted(name: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.chars().all(bare) { name.to_owned() } else { format!("{name:?}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::keys_of;

    #[test]
    fn near_words_are_suggested_and_far_ones_are_not() {
        let known = ["size", "grace", "emit", "time_zone"];
        assert_eq!(nearest("sise", known), Some("size"));
        assert_eq!(nearest("Size", known), Some("size"));
        assert_eq!(nearest("timezone", known), Some("time_zone"));
        assert_eq!(nearest("time-zone", known), Some("time_zone"));
        assert_eq!(nearest("gracefulness", known), None);
        assert_eq!(nearest("x", known), None);
    }

    #[test]
    fn a_key_of_another_table_is_sent_there() {
        let known: Vec<_> = keys_of("engine").collect();
        let (meant, help) = key("listen", &known);
        assert_eq!((meant, help.as_str()), (None, "`listen` belongs in [http]"));
    }
}
