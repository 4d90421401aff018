//! Faults with their paths, syntax errors with their places, and that nothing recurses.

use super::*;

fn walk(text: &str) -> (Option<usize>, Option<String>) {
    let limits = RecordLimits { depth: 4, members: 20, ..RecordLimits::default() };
    let mut walker = Walker::new(limits);
    walker.open(text);
    match walker.skip() {
        Err(error) => (Some(error.at), None),
        Ok(()) => (None, walker.fault().map(|failure| failure.message)),
    }
}

#[test]
fn faults_have_paths() {
    let many: String = (0..21).map(|n| format!("\"k{n}\":0,")).collect();
    let cases = [
        (r#"{"a":[{"b":1},{"c":{"d":1,"d":2}}]}"#, "a[1].c.d: the key stands twice"),
        (r#"{"a":1,"\u0061":2}"#, "a: the key stands twice"),
        (r#"{"a":{"":1,"":2}}"#, "a.: the key stands twice"),
        (r#"{"a":{"x\ny":1,"x\ny":2}}"#, "a.x\u{fffd}y: the key stands twice"),
        (r#"{"a":[0,{"\ud800":1}]}"#, "a[1].?: the key is no Unicode text"),
        (r#"{"a":{"b":[1,{}]}}"#, ""),
        (r#"{"a":{"b":[1,[],{"c":{}}]}}"#, "a.b[2].c: nested more than 4 deep"),
        (&format!("{{{many}\"z\":0}}"), "more than 20 members"),
    ];
    for (text, right) in cases {
        assert_eq!(walk(text), (None, Some(right.to_owned()).filter(|r| !r.is_empty())), "{text}");
    }
}

#[test]
fn many_keys_are_sorted() {
    let mut keys: Vec<Cow<'_, str>> = (0..200).map(|n| Cow::Owned(format!("k{n}"))).collect();
    assert_eq!(duplicate(&mut keys), None);
    keys.push(Cow::Borrowed("k77"));
    assert_eq!(duplicate(&mut keys), Some("k77"));
}

#[test]
fn syntax_errors_have_places() {
    for (text, at) in [
        ("", 0),
        ("{", 1),
        ("[1,]", 3),
        ("[1 2]", 3),
        (r#"{"a"}"#, 4),
        (r#"{"a":1,}"#, 7),
        (r#"{"a":1 "b":2}"#, 7),
        (r#"{a:1}"#, 1),
        ("[}", 1),
        ("[1}", 2),
        ("{]", 1),
    ] {
        assert_eq!(walk(text).0, Some(at), "{text}");
    }
}

#[test]
fn nothing_recurses() {
    let depth = 500_000;
    let text = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert_eq!(walk(&text), (None, Some("[0][0][0][0]: nested more than 4 deep".to_owned())));
    assert_eq!(walk(&"{\"a\":".repeat(depth)).0, Some(depth * 5));
}
