//! From messages in librdkafka's memory to batches of views, one per partition, without copying or allocating.
//!
//! Messages of several partitions arrive mixed. They are sorted by slot (the caller's number of a partition), which
//! keeps the order within a partition, and each run is handed to the sink. The vectors are kept from call to call.
//!
//! Keeps: EO-3 (order within a partition, nothing twice, what was not handed on is named).
//!
//! Must not know: groups, positions.

use std::mem;

use tallyflow_core::ids::{Offset, Partition, TopicPartition};
use tallyflow_core::record::{HeaderView, RecordView};
use tallyflow_runtime::ports::{BatchSink, PortError};

use crate::native::consumer::Message;

/// A message and the slot of its partition.
pub(crate) type Slotted<'c> = (u32, Message<'c>);

/// The vectors, empty between calls.
#[derive(Default)]
pub(crate) struct Buffers {
    messages: Vec<Slotted<'static>>,
    views: Vec<RecordView<'static>>,
    headers: Vec<HeaderView<'static>>,
    counts: Vec<usize>,
}

/// The sink refused a batch.
pub(crate) struct Refused {
    pub(crate) error: PortError,
    /// The slots whose messages were not taken, the refused one first.
    pub(crate) slots: Vec<u32>,
}

impl Buffers {
    /// An empty vector to collect messages in. [`Buffers::deliver`] takes it back.
    pub(crate) fn collect<'c>(&mut self) -> Vec<Slotted<'c>> {
        recycle(mem::take(&mut self.messages))
    }

    /// Hands the messages on, partition by partition.
    pub(crate) fn deliver<'p>(
        &mut self,
        mut messages: Vec<Slotted<'_>>,
        partition_of: impl Fn(u32) -> Option<&'p TopicPartition>,
        sink: &mut dyn BatchSink,
    ) -> Result<(), Refused> {
        messages.sort_by_key(|(slot, _)| *slot);
        let mut result = Ok(());
        for run in messages.chunk_by(|(left, _), (right, _)| left == right) {
            let Some((slot, _)) = run.first() else {
                continue;
            };
            match &mut result {
                Err(Refused { slots, .. }) => slots.push(*slot),
                Ok(()) => {
                    if let Some(partition) = partition_of(*slot)
                        && let Err(error) = self.hand_on(partition, run, sink)
                    {
                        result = Err(Refused { error, slots: vec![*slot] });
                    }
                }
            }
        }
        self.messages = recycle(messages);
        result
    }

    fn hand_on(
        &mut self,
        partition: &TopicPartition,
        run: &[Slotted<'_>],
        sink: &mut dyn BatchSink,
    ) -> Result<(), PortError> {
        let mut headers: Vec<HeaderView<'_>> = recycle(mem::take(&mut self.headers));
        self.counts.clear();
        for (_, message) in run {
            let before = headers.len();
            headers.extend(message.headers());
            self.counts.push(headers.len() - before);
        }
        let mut views: Vec<RecordView<'_>> = recycle(mem::take(&mut self.views));
        let mut rest = headers.as_slice();
        for ((_, message), count) in run.iter().zip(&self.counts) {
            let (own, others) = rest.split_at_checked(*count).unwrap_or_default();
            rest = others;
            views.push(view(message, own));
        }
        let result = sink.batch(partition, &views);
        self.views = recycle(views);
        self.headers = recycle(headers);
        result
    }
}

/// A message as the engine reads it.
pub(crate) fn view<'m>(message: &'m Message<'_>, headers: &'m [HeaderView<'m>]) -> RecordView<'m> {
    RecordView {
        partition: Partition(message.partition().cast_unsigned()),
        offset: Offset(message.offset()),
        time: message.time(),
        key: message.key(),
        value: message.value(),
        headers,
    }
}

/// Empties a vector and gives its memory to elements of another lifetime.
fn recycle<A, B>(mut used: Vec<A>) -> Vec<B> {
    used.clear();
    // The standard library collects in place where the layouts are alike.
    used.into_iter().filter_map(|_| None).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_kept() {
        let used: Vec<&'static str> = Vec::with_capacity(100);
        let address = used.as_ptr();
        let text = String::from("short lived");
        let mut again: Vec<&str> = recycle(used);
        again.push(&text);
        assert_eq!((again.as_ptr(), again.capacity()), (address, 100));
    }
}
