//! No bytes panic, and what is refused is refused with a reason.

use std::path::Path;

use proptest::prelude::*;

use super::HEAD;
use super::mistakes::CASES;
use crate::testing::{FakeEnvironment, minimal};
use crate::{Source, compile};

/// Lines of a topology, right and wrong, and noise.
fn line() -> impl Strategy<Value = String> {
    let parts = CASES.iter().flat_map(|(tail, _)| tail.lines().map(str::to_owned));
    prop_oneof![
        3 => prop::sample::select(parts.collect::<Vec<_>>()),
        1 => prop::sample::select(minimal(HEAD, "").lines().map(str::to_owned).collect::<Vec<_>>()),
        1 => "\\PC{0,12}",
        1 => "[a-z.]{1,8} = [\\[\\]{}\"',0-9a-z= -]{0,12}",
    ]
}

/// Asks for everything that can be asked of a text.
fn survives(bytes: &[u8]) {
    let found = compile(bytes, Source::of(Path::new("t")), &FakeEnvironment::default());
    match found {
        Ok(found) => {
            let _ = (crate::graph::ascii(&found), crate::graph::mermaid(&found));
            let _ = (crate::topics::specs(&found), crate::topics::check(&found, &[]));
        }
        Err(problems) => {
            assert!(!problems.as_slice().is_empty());
            assert!(problems.as_slice().iter().all(|problem| problem.line > 0 && problem.column > 0));
            assert!(!problems.to_string().is_empty());
        }
    }
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        survives(&bytes);
    }

    #[test]
    fn no_lines_panic(lines in prop::collection::vec(line(), 0..12)) {
        survives(lines.join("\n").as_bytes());
        survives(minimal(HEAD, &lines.join("\n")).as_bytes());
    }

    #[test]
    fn no_cut_or_changed_byte_panics(at in 0_usize..4096, byte in any::<u8>()) {
        let mut bytes = include_bytes!("../../../../topology.toml").to_vec();
        let at = at % bytes.len();
        bytes[at] = byte;
        survives(&bytes);
        survives(&bytes[..at]);
    }
}
