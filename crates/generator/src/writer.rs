//! An original as JSON, written by hand: names are escaped once, numbers by itoa, one buffer per record.
//!
//! The same original is written the same way each time, whatever its style leaves out: a copy is equal to the byte.

use crate::original::Original;
use crate::plan::Plan;

/// Bits of [`Original::style`].
const LEAVE_DEFAULT_NAMESPACE: u8 = 1;
const LEAVE_DELTA_OF_ONE: u8 = 2;
/// One event in sixteen has a field nobody knows.
const UNKNOWN_FIELD: u8 = 0xf0;

/// Writes events of one plan.
#[derive(Debug)]
pub(crate) struct Writer {
    id_prefix: String,
    /// `,"namespace":"…"`, and whether it may be left out.
    namespaces: Vec<(String, bool)>,
    /// Per dimension, per value: `"name":"value"`, or nothing for the empty value.
    dimensions: Vec<Vec<String>>,
}

impl Writer {
    pub(crate) fn new(plan: &Plan) -> Self {
        let namespace = |name: &String| (format!(",\"namespace\":{}", quoted(name)), name == "default");
        let dimensions = plan.dimensions.iter().map(|dimension| {
            let pair = |value: &String| match value.as_str() {
                "" => String::new(),
                value => format!("{}:{}", quoted(&dimension.name), quoted(value)),
            };
            dimension.values.iter().map(pair).collect()
        });
        let id = quoted(&plan.id_prefix);
        Self {
            id_prefix: id.strip_prefix('"').and_then(|id| id.strip_suffix('"')).unwrap_or("").to_owned(),
            namespaces: plan.namespaces.iter().map(namespace).collect(),
            dimensions: dimensions.collect(),
        }
    }

    /// Appends the original as one JSON object. `kind_of_id` keeps the ids of late and future events apart.
    pub(crate) fn write(&self, original: &Original, kind_of_id: &str, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"event_id\":\"");
        out.extend_from_slice(self.id_prefix.as_bytes());
        out.extend_from_slice(kind_of_id.as_bytes());
        push_number(out, original.number);
        out.push(b'"');
        if let Some((text, is_default)) = self.namespaces.get(original.namespace as usize)
            && !(*is_default && original.style & LEAVE_DEFAULT_NAMESPACE != 0)
        {
            out.extend_from_slice(text.as_bytes());
        }
        out.extend_from_slice(b",\"counter\":\"counter-");
        push_number(out, original.counter);
        out.push(b'"');
        if original.delta != 1 || original.style & LEAVE_DELTA_OF_ONE == 0 {
            out.extend_from_slice(b",\"delta\":");
            push_number(out, original.delta);
        }
        out.extend_from_slice(b",\"event_time\":");
        push_number(out, original.event_time_ms);
        if original.style & UNKNOWN_FIELD == 0 {
            out.extend_from_slice(b",\"trace\":{\"sampled\":[true,null,1.5]}");
        }
        self.write_dimensions(original.combination, out);
        out.push(b'}');
    }

    fn write_dimensions(&self, combination: u64, out: &mut Vec<u8>) {
        if self.dimensions.is_empty() {
            return;
        }
        out.extend_from_slice(b",\"dimensions\":{");
        let mut first = true;
        for (pairs, chosen) in
            self.dimensions.iter().zip(digits(combination, self.dimensions.iter().map(Vec::len)))
        {
            let pair = pairs.get(chosen).map_or("", String::as_str);
            if !pair.is_empty() {
                if !first {
                    out.push(b',');
                }
                out.extend_from_slice(pair.as_bytes());
                first = false;
            }
        }
        out.push(b'}');
    }
}

/// The chosen value of each dimension, in a number whose digits they are (first dimension lowest).
pub(crate) fn digits(combination: u64, bases: impl Iterator<Item = usize>) -> impl Iterator<Item = usize> {
    let mut rest = combination;
    bases.map(move |base| {
        let base = (base as u64).max(1);
        let digit = rest % base;
        rest /= base;
        digit as usize
    })
}

pub(crate) fn push_number(out: &mut Vec<u8>, number: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// A JSON string. Of a string serde_json always makes one.
fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_else(|_| "\"\"".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Dimension;

    #[test]
    fn it_is_the_json_that_was_meant() {
        let plan = Plan {
            id_prefix: "a\"b-".into(),
            namespaces: vec!["default".into(), "né\\w".into()],
            dimensions: vec![
                Dimension { name: "region".into(), values: vec!["eu".into(), "\"us\"".into()] },
                Dimension { name: "tier".into(), values: vec![String::new(), "t".into()] },
            ],
            ..Plan::new(1, 1, 1_800_000_000_000)
        };
        let writer = Writer::new(&plan);
        let original = Original {
            number: 12,
            namespace: 1,
            counter: 3,
            combination: 1,
            delta: -4,
            event_time_ms: 99,
            style: 0,
        };
        let mut out = Vec::new();
        writer.write(&original, "late-", &mut out);
        let right = serde_json::json!({"event_id": "a\"b-late-12", "namespace": "né\\w", "counter": "counter-3",
            "delta": -4, "event_time": 99, "trace": {"sampled": [true, null, 1.5]}, "dimensions": {"region": "\"us\""}});
        assert_eq!(serde_json::from_slice::<serde_json::Value>(&out).unwrap(), right);

        let short = Original { namespace: 0, delta: 1, combination: 2, style: 0xff, ..original };
        let mut out = Vec::new();
        writer.write(&short, "", &mut out);
        let right = serde_json::json!({"event_id": "a\"b-12", "counter": "counter-3", "event_time": 99,
            "dimensions": {"region": "eu", "tier": "t"}});
        assert_eq!(serde_json::from_slice::<serde_json::Value>(&out).unwrap(), right);
    }
}
