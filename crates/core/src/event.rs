//! An event as a producer wrote it, borrowed from the record.

use std::borrow::Cow;

use crate::time::TimestampMs;

/// What an entry does. All kinds have their number from frame version 1; only `Add` is written today.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[repr(u8)]
pub enum Kind {
    /// Adds its delta.
    Add = 0,
    /// Sets the total back to zero at its instant.
    Clear = 1,
    /// Pins an identity whose event failed.
    Hold = 2,
    /// A held event comes back.
    Release = 3,
    /// A held event was given up.
    Discard = 4,
}

impl Kind {
    /// The kind with this number.
    pub const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::Add),
            1 => Some(Self::Clear),
            2 => Some(Self::Hold),
            3 => Some(Self::Release),
            4 => Some(Self::Discard),
            _ => None,
        }
    }
}

/// One decoded event. Text without escapes borrows from the record's bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event<'a> {
    /// The producer's id of the event: opaque, 1–256 bytes.
    pub event_id: Cow<'a, str>,
    /// The namespace, 1–256 bytes.
    pub namespace: Cow<'a, str>,
    /// The counter, 1–512 bytes.
    pub counter: Cow<'a, str>,
    /// How much it adds; zero and negative allowed.
    pub delta: i64,
    /// When it happened, by the producer's clock.
    pub event_time: TimestampMs,
    /// `Add`, or `Clear` in a clearable namespace.
    pub kind: Kind,
}
