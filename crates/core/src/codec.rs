//! The seam between bytes and meaning: an input's format is an implementation of [`EventDecoder`], the outputs'
//! format one of [`RowEncoder`]. One dynamic dispatch per batch, none per event.

use crate::event::Event;
use crate::outputs::{CountRow, LedgerRow, WindowRow};
use crate::record::{OutRecord, RecordView};
use crate::verdict::Failure;

/// What a decoder tells of each record of a batch, in order.
///
/// Per record the decoder calls [`EventSink::event`] or [`EventSink::invalid`] once for every event in it, with
/// `index` counting from 0 for a packed record, and then [`EventSink::record_done`]. A record that is no document
/// at all is one `invalid` with index `None`.
pub trait EventSink {
    /// An event of the record at position `record` of the batch.
    ///
    /// `dimensions` holds the values of the declared dimensions, in their order, `""` where missing.
    fn event(&mut self, record: usize, index: Option<u32>, event: &Event<'_>, dimensions: &[&str]);

    /// An event, or a whole record (`index` is `None`), that is not valid. `event_id` is given where it is known.
    fn invalid(&mut self, record: usize, index: Option<u32>, event_id: Option<&str>, failure: Failure);

    /// The record at this position is complete.
    fn record_done(&mut self, record: usize);
}

/// Decodes records of one input.
pub trait EventDecoder: Send {
    /// Decodes every record of the batch into the sink. Never panics, whatever the bytes.
    fn decode(&mut self, batch: &[RecordView<'_>], sink: &mut dyn EventSink);
}

/// Encodes the public rows.
pub trait RowEncoder: Send {
    /// The record of a window row: key and value.
    fn window(&self, row: &WindowRow<'_>, out: &mut OutRecord);
    /// The record of a total.
    fn count(&self, row: &CountRow<'_>, out: &mut OutRecord);
    /// The record of a ledger row.
    fn ledger(&self, row: &LedgerRow<'_>, out: &mut OutRecord);
}

/// Reads ledger rows back: intake resumes from its own.
pub trait LedgerDecoder: Send {
    /// The row, or `None` if the record is not one of version-1 shape (a barrier, a note, foreign bytes).
    fn ledger<'a>(
        &self,
        key: Option<&'a [u8]>,
        value: Option<&'a [u8]>,
    ) -> Option<crate::outputs::OwnedLedgerRow>;
}
