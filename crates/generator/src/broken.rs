//! Events that must be invalid, one for each way to be it.
//!
//! Only ways on which the contract leaves no doubt are here, so that every reader agrees.

use crate::writer::push_number;

/// Objects that are JSON but no event; `#` stands for a number that makes them differ, `@` for a fine event time.
const OBJECTS: [&str; 14] = [
    r#"{"counter":"counter-0","event_time":@}"#,
    r#"{"event_id":"broken-#","event_time":@}"#,
    r#"{"event_id":"broken-#","counter":"counter-0"}"#,
    r#"{"event_id":"broken-#","counter":"counter-0","event_time":@,"delta":1.0}"#,
    r#"{"event_id":"broken-#","counter":"counter-0","event_time":@,"delta":"1"}"#,
    r#"{"event_id":"broken-#","counter":"counter-0","event_time":@,"delta":9223372036854775808}"#,
    r#"{"event_id":"broken-#","counter":"counter-0","event_time":"@"}"#,
    r#"{"event_id":"broken-#","counter":"counter-0","event_time":0}"#,
    r#"{"event_id":"broken-#","counter":"counter-0","event_time":@,"kind":"clear"}"#,
    r#"{"event_id":"broken-#","counter":"counter-0","counter":"counter-1","event_time":@}"#,
    r#"{"event_id":"broken-#","counter":"counter-0","event_time":@,"dimensions":["eu"]}"#,
    r#"{"event_id":"","counter":"counter-0","event_time":@}"#,
    r#"{"event_id":"broken-#","counter":7,"event_time":@}"#,
    r#"{"event_id":"broken-#","counter":"counter-0","namespace":"","event_time":@}"#,
];

/// Record values that are no JSON object at all.
const VALUES: [&[u8]; 6] =
    [b"", b"{\"event_id\":\"broken", b"[]", b"\"text\"", b"\xff\xfe\x00noise", b"{\"event_id\":\"a\"} {}"];

/// Appends an object that is no event, for a record or inside a packed one.
pub(crate) fn write_object(choice: u32, number: u64, event_time_ms: i64, out: &mut Vec<u8>) {
    let template = OBJECTS.get(choice as usize % OBJECTS.len()).copied().unwrap_or("{}");
    for byte in template.bytes() {
        match byte {
            b'#' => push_number(out, number),
            b'@' => push_number(out, event_time_ms),
            byte => out.push(byte),
        }
    }
}

/// A record value that is invalid as a whole: an object as above, or no object.
pub(crate) fn value(choice: u32, number: u64, event_time_ms: i64) -> Vec<u8> {
    match VALUES.get(choice as usize % (OBJECTS.len() + VALUES.len())) {
        Some(value) => value.to_vec(),
        None => {
            let mut out = Vec::with_capacity(128);
            write_object(choice / 2, number, event_time_ms, &mut out);
            out
        }
    }
}
