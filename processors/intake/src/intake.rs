//! The logic of intake: what becomes of each event of a batch.
//!
//! An event is judged by the append time of its record and by nothing else (R2, T13): the wall clock is asked only
//! whether a *producer's* timestamp lies ahead of it, which a broker's cannot. Headers of ours on an input are
//! foreign: they are not looked at, so nobody can move an event's append time by writing one.
//!
//! Nothing is allocated per event: the key's buffer and the hasher's are reused.

use std::sync::Arc;

use tallyflow_core::codec::{EventDecoder, EventSink};
use tallyflow_core::counter;
use tallyflow_core::effects::{IntakeEffects, Untimely};
use tallyflow_core::event::Event;
use tallyflow_core::frame::entry::Entry;
use tallyflow_core::ids::Hasher;
use tallyflow_core::plan::{AppendTime, Plan};
use tallyflow_core::processor::{Consumed, Processor, StateUnavailable};
use tallyflow_core::record::{RecordTime, RecordView};
use tallyflow_core::time::{Admission, Limits, TimestampMs};
use tallyflow_core::verdict::{Category, Failure, Verdict};

/// Intake's processor: one for a worker, whatever inputs it reads.
pub struct Intake {
    inputs: Vec<Input>,
    judge: Judge,
}

/// One input of the plan.
struct Input {
    topic: Arc<str>,
    append_time: AppendTime,
    decoder: Box<dyn EventDecoder>,
}

/// What is the same for every input.
struct Judge {
    limits: Limits,
    entries_partitions: u32,
    hasher: Hasher,
    key: Vec<u8>,
}

impl std::fmt::Debug for Intake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Intake").field("inputs", &self.inputs.len()).finish_non_exhaustive()
    }
}

impl Intake {
    /// The intake of a plan, with one decoder for each of its inputs, in the plan's order.
    ///
    /// An input without a decoder cannot be read: [`Processor::process`] says so.
    pub fn new(plan: &Plan, decoders: Vec<Box<dyn EventDecoder>>) -> Self {
        let inputs = plan.inputs.iter().zip(decoders).map(|(input, decoder)| Input {
            topic: Arc::clone(&input.topic),
            append_time: input.append_time,
            decoder,
        });
        Self {
            inputs: inputs.collect(),
            judge: Judge {
                limits: plan.limits.limits(),
                entries_partitions: plan.entries_partitions,
                hasher: Hasher::new(&plan.app),
                key: Vec::with_capacity(256),
            },
        }
    }
}

impl Processor for Intake {
    /// Records of one partition, in order, and the position of their input in the plan.
    type Batch<'a> = (&'a [RecordView<'a>], usize);
    type View<'a> = ();
    type Effects<'a> = &'a mut dyn IntakeEffects;

    /// Tells the effects of every record, in order. Always consumes all of the batch.
    ///
    /// # Errors
    ///
    /// Where the input has no decoder: the wiring is wrong.
    fn process(
        &mut self,
        (records, position): Self::Batch<'_>,
        _view: Self::View<'_>,
        now: TimestampMs,
        effects: Self::Effects<'_>,
    ) -> Result<Consumed, StateUnavailable> {
        let Some(input) = self.inputs.get_mut(position) else {
            return Err(StateUnavailable(format!("there is no decoder for input {position}")));
        };
        let mut sink = Batch {
            records,
            topic: &input.topic,
            append_time: input.append_time,
            latest_append: now.plus(self.judge.limits.future_ms),
            judge: &mut self.judge,
            effects,
        };
        input.decoder.decode(records, &mut sink);
        Ok(Consumed::All)
    }
}

/// One batch on its way from the decoder to the effects.
struct Batch<'a> {
    records: &'a [RecordView<'a>],
    topic: &'a str,
    append_time: AppendTime,
    /// A producer's timestamp beyond this lies in the future.
    latest_append: TimestampMs,
    judge: &'a mut Judge,
    effects: &'a mut dyn IntakeEffects,
}

impl Batch<'_> {
    /// When the record was first appended, and whether the worker's clock has to be asked too; `None` if it cannot
    /// be known.
    const fn append_of(&self, record: &RecordView<'_>) -> Option<(TimestampMs, bool)> {
        match (record.time, self.append_time) {
            (RecordTime::LogAppend(time), AppendTime::Log) => Some((time, false)),
            // Records that were appended before their topic got LogAppendTime keep the producer's time.
            (RecordTime::LogAppend(time), AppendTime::Record) | (RecordTime::Create(time), _) => {
                Some((time, true))
            }
            (RecordTime::Unknown, _) => None,
        }
    }
}

impl EventSink for Batch<'_> {
    fn event(&mut self, at: usize, index: Option<u32>, event: &Event<'_>, dimensions: &[&str]) {
        let Some(record) = self.records.get(at) else {
            return;
        };
        let Some((append, by_producer)) = self.append_of(record) else {
            let message = format!("the record of {} has no timestamp to judge its age by", self.topic);
            let failure = Failure::new(Category::InvalidField, message);
            self.effects.invalid(record, index, Some(&event.event_id), failure);
            return;
        };
        let ahead = by_producer && append > self.latest_append;
        let verdict = match self.judge.limits.judge(append, event.event_time) {
            _ if ahead => Verdict::Future,
            Admission::Future(_) => Verdict::Future,
            Admission::Late(_) => Verdict::Late,
            Admission::Admitted => {
                let (target, entry) = self.judge.admit(record, index, event, dimensions);
                self.effects.entry(target, &self.judge.key, entry);
                return;
            }
        };
        let age_ms = append.since(event.event_time);
        let event_id = &event.event_id;
        self.effects.untimely(&Untimely { record, index, event_id, verdict, age_ms });
    }

    fn invalid(&mut self, at: usize, index: Option<u32>, event_id: Option<&str>, failure: Failure) {
        if let Some(record) = self.records.get(at) {
            self.effects.invalid(record, index, event_id, failure);
        }
    }

    fn record_done(&mut self, at: usize) {
        if let Some(record) = self.records.get(at) {
            self.effects.record_done(record.offset);
        }
    }
}

impl Judge {
    /// The entry of an admitted event and its owner; leaves its encoded counter key in `self.key`.
    fn admit(
        &mut self,
        record: &RecordView<'_>,
        index: Option<u32>,
        event: &Event<'_>,
        dimensions: &[&str],
    ) -> (u32, Entry) {
        let (namespace, name) = (event.namespace.as_bytes(), event.counter.as_bytes());
        let values = || dimensions.iter().map(|value| value.as_bytes());
        self.key.clear();
        counter::encode_key(&mut self.key, namespace, name, values());
        let target = counter::owner(counter::routing_hash(namespace, name), self.entries_partitions);
        let kind = event.kind as u8;
        let entry = Entry {
            kind: event.kind,
            identity: self.hasher.identity(namespace, name, event.event_id.as_bytes()),
            check: self.hasher.payload(kind, event.delta, event.event_time.0, values()),
            counter: 0, // set by the effects' owner, who has the dictionary
            event_time: event.event_time,
            delta: event.delta,
            offset: record.offset,
            index: index.unwrap_or(0),
            first_append: None, // the record's own append time is the first
        };
        (target, entry)
    }
}
