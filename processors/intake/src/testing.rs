//! What the tests stand on: a plan, a decoder with a format of its own (`namespace id counter ms delta region`), and
//! effects that remember.

use std::borrow::Cow;
use std::sync::Arc;

use tallyflow_core::codec::{EventDecoder, EventSink};
use tallyflow_core::counter::decode_key_text;
use tallyflow_core::effects::{IntakeEffects, Untimely};
use tallyflow_core::event::{Event, Kind};
use tallyflow_core::frame::entry::Entry;
use tallyflow_core::ids::{Offset, Partition};
use tallyflow_core::plan::{AppendTime, EnginePlan, Format, InputPlan, Plan, RecordLimits, TimePlan};
use tallyflow_core::processor::{Consumed, Processor};
use tallyflow_core::record::{RecordTime, RecordView};
use tallyflow_core::time::TimestampMs;
use tallyflow_core::verdict::{Category, Failure, Verdict};
use tallyflow_core::window::WindowSize;

use crate::Intake;

pub(crate) fn plan(append_time: AppendTime) -> Plan {
    let input = |name: &str, append_time| InputPlan {
        name: Arc::from(name),
        topic: Arc::from(name),
        partitions: 1,
        append_time,
        format: Format::Json,
    };
    Plan {
        app: "test".to_owned(),
        inputs: vec![input("events", append_time), input("others", AppendTime::Log)],
        limits: TimePlan {
            accept_ms: 300_000,
            future_ms: 5_000,
            remember_ms: 305_000,
            settle_lag_ms: 5_000,
            idle_timeout_ms: 5_000,
        },
        record_limits: RecordLimits::default(),
        namespaces: None,
        dimensions: Arc::from(["region".to_owned()]),
        windows: Vec::new(),
        totals_emit_ms: 1_000,
        slice: WindowSize::new(60_000).unwrap(),
        keep_ms: 0,
        entries_partitions: 8,
        intake_workers: 1,
        count_workers: 1,
        engine: EnginePlan {
            commit_interval_ms: 100,
            transaction_timeout_ms: 10_000,
            state_dir: "state".into(),
            memory_bytes: 1 << 30,
        },
    }
}

/// One event a line, `namespace id counter ms delta region`; a single `!` is not decodable.
pub(crate) struct Lines;

impl EventDecoder for Lines {
    fn decode(&mut self, batch: &[RecordView<'_>], sink: &mut dyn EventSink) {
        for (at, record) in batch.iter().enumerate() {
            let lines: Vec<&str> = std::str::from_utf8(record.value.unwrap()).unwrap().lines().collect();
            for (n, line) in lines.iter().enumerate() {
                let index = (lines.len() > 1).then_some(n as u32);
                let parts: Vec<&str> = line.split(' ').collect();
                let [namespace, id, counter, ms, delta, region] = parts[..] else {
                    sink.invalid(at, index, Some("?"), Failure::new(Category::Undecodable, "no line"));
                    continue;
                };
                let event = Event {
                    event_id: Cow::Borrowed(id),
                    namespace: Cow::Borrowed(namespace),
                    counter: Cow::Borrowed(counter),
                    delta: delta.parse().unwrap(),
                    event_time: TimestampMs(ms.parse().unwrap()),
                    kind: Kind::Add,
                };
                sink.event(at, index, &event, &[region]);
            }
            sink.record_done(at);
        }
    }
}

#[derive(Debug, PartialEq)]
pub(crate) enum Told {
    Entry(u32, Vec<String>, Entry),
    Untimely(i64, Option<u32>, String, Verdict, i64),
    Invalid(i64, Option<u32>, Option<String>, Category),
    Done(i64),
}

#[derive(Default)]
pub(crate) struct Telling(pub(crate) Vec<Told>);

impl IntakeEffects for Telling {
    fn entry(&mut self, target: u32, key: &[u8], entry: Entry) {
        let key = decode_key_text(key).unwrap().into_iter().map(str::to_owned).collect();
        self.0.push(Told::Entry(target, key, entry));
    }

    fn untimely(&mut self, event: &Untimely<'_>) {
        let (offset, id) = (event.record.offset.0, event.event_id.to_owned());
        self.0.push(Told::Untimely(offset, event.index, id, event.verdict, event.age_ms));
    }

    fn invalid(&mut self, record: &RecordView<'_>, index: Option<u32>, id: Option<&str>, failure: Failure) {
        self.0.push(Told::Invalid(record.offset.0, index, id.map(str::to_owned), failure.category));
    }

    fn record_done(&mut self, offset: Offset) {
        self.0.push(Told::Done(offset.0));
    }
}

pub(crate) fn record(offset: i64, time: RecordTime, value: &str) -> RecordView<'_> {
    let value = Some(value.as_bytes());
    RecordView { partition: Partition(0), offset: Offset(offset), time, key: None, value, headers: &[] }
}

pub(crate) const fn log(ms: i64) -> RecordTime {
    RecordTime::LogAppend(TimestampMs(ms))
}

pub(crate) fn read(append_time: AppendTime, now_ms: i64, records: &[RecordView<'_>]) -> Vec<Told> {
    let mut intake = Intake::new(&plan(append_time), vec![Box::new(Lines), Box::new(Lines)]);
    let mut told = Telling::default();
    let consumed = intake.process((records, 0), (), TimestampMs(now_ms), &mut told).unwrap();
    assert_eq!(consumed, Consumed::All);
    told.0
}
