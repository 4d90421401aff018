//! What intake tells of the events it read. Called per event, performs nothing: the runtime packs entries into
//! frames and turns the others into records of `late` and `dlq`.

use crate::frame::entry::Entry;
use crate::ids::Offset;
use crate::record::RecordView;
use crate::verdict::{Failure, Verdict};

/// Where intake's effects go.
pub trait IntakeEffects {
    /// An admitted event.
    ///
    /// `target` is its partition of `entries`, `key` its encoded counter key; `entry.counter` is 0 and is set by the
    /// callee, who owns the dictionary.
    fn entry(&mut self, target: u32, key: &[u8], entry: Entry);

    /// An event outside the time limits: `verdict` is `Late` or `Future`.
    fn untimely(&mut self, event: &Untimely<'_>);

    /// An event, or a whole record (`index` is `None`), that is not valid.
    fn invalid(
        &mut self,
        record: &RecordView<'_>,
        index: Option<u32>,
        event_id: Option<&str>,
        failure: Failure,
    );

    /// Every event of the record at this offset has been told.
    fn record_done(&mut self, offset: Offset);
}

/// An event outside the time limits.
#[derive(Clone, Copy, Debug)]
pub struct Untimely<'a> {
    /// Its record.
    pub record: &'a RecordView<'a>,
    /// Which event of a packed record; `None` for a plain one.
    pub index: Option<u32>,
    /// Its id.
    pub event_id: &'a str,
    /// `Late` or `Future`.
    pub verdict: Verdict,
    /// Append time − event time (ms).
    pub age_ms: i64,
}
