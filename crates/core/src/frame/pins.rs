//! Pins: identities held by a failed event (R6), as delta and state frames carry them.
//!
//! ```text
//! n · { identity (16), topic id (16), partition, offset, index }
//! ```

use super::wire::{self, FrameError, Reader};
use crate::ids::{Coordinate, Identity, Offset, Partition, Source, TopicId};

/// A held identity (R6). Written by a later version; carried from the first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Pin {
    /// The identity.
    pub identity: Identity,
    /// The coordinate it is pinned to.
    pub coordinate: Coordinate,
}

pub(super) fn write_pins(out: &mut Vec<u8>, pins: &[Pin]) {
    wire::put_u64(out, pins.len() as u64);
    for pin in pins {
        out.extend_from_slice(&pin.identity.raw().to_le_bytes());
        out.extend_from_slice(&pin.coordinate.source.topic_id.0);
        wire::put_u64(out, u64::from(pin.coordinate.source.partition.0));
        wire::put_i64(out, pin.coordinate.offset.0);
        wire::put_u64(out, u64::from(pin.coordinate.index));
    }
}

pub(super) fn read_pins(reader: &mut Reader<'_>) -> Result<Vec<Pin>, FrameError> {
    let mut pins = Vec::new();
    for _ in 0..reader.count(35)? {
        let identity = Identity::from_raw(u128::from_le_bytes(reader.array()?));
        let source = Source { topic_id: TopicId(reader.array()?), partition: Partition(reader.u32()?) };
        let coordinate = Coordinate { source, offset: Offset(reader.i64()?), index: reader.u32()? };
        pins.push(Pin { identity, coordinate });
    }
    Ok(pins)
}
