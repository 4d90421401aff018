//! Reading for the audit: the raw topics with their ids and ends, and topics of ours from where it stopped.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use tallyflow_audit::{Header, RawRecord, Recount};
use tallyflow_core::ids::{NextOffset, Partition, TopicPartition};
use tallyflow_core::record::{HeaderView, RecordView};
use tallyflow_kafka::{KafkaAdmin, ReadFrom};
use tallyflow_runtime::ports::{Admin, LogEnds};

use crate::context::Context;

/// A source partition and how far it goes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SourceEnd {
    /// The topic.
    pub topic: String,
    /// Its id, as the ledger writes it.
    pub topic_id: String,
    /// The partition.
    pub partition: u32,
    /// The first offset that is still there.
    pub start: i64,
    /// The offset past the last record, control records included.
    pub end: i64,
}

/// The raw topics, read up to the ends that were asked last.
pub struct Raw<'a> {
    context: &'a Context,
    admin: KafkaAdmin,
    ends: Vec<SourceEnd>,
    /// Up to where each was read.
    read: BTreeMap<(String, u32), i64>,
}

impl<'a> Raw<'a> {
    /// Nothing is read yet.
    pub fn new(context: &'a Context, admin: KafkaAdmin) -> Self {
        Self { context, admin, ends: Vec::new(), read: BTreeMap::new() }
    }

    /// The ends that were asked last.
    pub fn ends(&self) -> &[SourceEnd] {
        &self.ends
    }

    /// Asks for the ends; whether they have grown.
    ///
    /// # Errors
    /// Where Kafka does not answer, a topic does not exist, or it was created anew meanwhile.
    pub fn ask_ends(&mut self) -> Result<bool> {
        let mut ends = Vec::new();
        let patience = self.context.patience();
        for input in &self.context.deployment.plan.inputs {
            let topic = &*input.topic;
            let asked = patience.ask(|| {
                let info = self.admin.topics(&[topic])?.into_iter().next().flatten();
                let Some(info) = info else { return Ok(None) };
                let partitions: Vec<_> =
                    (0..info.partitions).map(|p| TopicPartition::new(topic, p)).collect();
                Ok(Some((info.id.to_string(), self.admin.ends(&partitions)?)))
            });
            match asked.map_err(|error| self.context.lost(error))? {
                Some((id, found)) => ends.extend(source_ends(topic, &id, &found)),
                None => bail!("the topic {topic} does not exist: create it with tallyflow topics --execute"),
            }
        }
        if let Some(new) = recreated(&self.ends, &ends) {
            bail!("the topic {new} was created anew during the audit: start it again");
        }
        let grown = ends != self.ends;
        self.ends = ends;
        Ok(grown)
    }

    /// Tells the recount the ends that were asked last, whether they were read or not.
    pub fn tell_ends(&self, recount: &mut Recount) {
        for source in &self.ends {
            let partition = number(source.partition);
            recount.ends(&source.topic, &source.topic_id, partition, source.end);
        }
    }

    /// Asks for the ends and reads up to them, from where it stopped.
    ///
    /// # Errors
    /// As [`Raw::ask_ends`], or where reading stands still.
    pub fn read_on(&mut self, recount: &mut Recount) -> Result<()> {
        self.ask_ends()?;
        for source in &self.ends {
            // What is deleted during the audit was there when it began.
            if !self.read.contains_key(&(source.topic.clone(), source.partition)) {
                recount.starts(&source.topic, &source.topic_id, number(source.partition), source.start);
            }
        }
        for input in &self.context.deployment.plan.inputs {
            self.read_topic(&input.topic, recount)?;
        }
        self.tell_ends(recount);
        Ok(())
    }

    fn read_topic(&mut self, topic: &str, recount: &mut Recount) -> Result<()> {
        let ends: Vec<&SourceEnd> = self.ends.iter().filter(|source| source.topic == topic).collect();
        let from = |source: &SourceEnd| {
            let read = self.read.get(&(source.topic.clone(), source.partition));
            read.copied().unwrap_or(source.start)
        };
        if ends.iter().all(|source| from(source) >= source.end) {
            return Ok(());
        }
        let offsets = ends.iter().map(|source| (Partition(source.partition), NextOffset(from(source))));
        let offsets = ReadFrom::Offsets(offsets.collect());
        let each = &mut |_: &_, record: &RecordView<'_>| {
            let source = ends.iter().find(|source| source.partition == record.partition.0);
            // Records that come meanwhile are read next time, with the ends of then.
            if let Some(source) = source.filter(|source| record.offset.0 < source.end) {
                pass_on(source, record, recount);
            }
        };
        self.context
            .kafka
            .read_topic(topic, &offsets, self.context.timeout, each)
            .map_err(|error| self.context.lost(error))?;
        let read = ends.iter().map(|source| ((source.topic.clone(), source.partition), source.end));
        self.read.extend(read);
        Ok(())
    }
}

fn source_ends(topic: &str, id: &str, found: &[LogEnds]) -> Vec<SourceEnd> {
    let partitions = (0..).zip(found);
    let of = |(partition, ends): (u32, &LogEnds)| SourceEnd {
        topic: topic.to_owned(),
        topic_id: id.to_owned(),
        partition,
        start: ends.start.0,
        end: ends.high_watermark_offset.0,
    };
    partitions.map(of).collect()
}

/// A topic that has another id than before.
fn recreated<'a>(before: &[SourceEnd], now: &'a [SourceEnd]) -> Option<&'a str> {
    let is_new = |source: &&SourceEnd| {
        before.iter().any(|old| old.topic == source.topic && old.topic_id != source.topic_id)
    };
    now.iter().find(is_new).map(|source| source.topic.as_str())
}

fn pass_on<'a>(source: &SourceEnd, record: &RecordView<'a>, recount: &mut Recount) {
    // A name that is no UTF-8 is not one that an event's fields can come from.
    let header = |header: &HeaderView<'a>| {
        let name = std::str::from_utf8(header.name).ok()?;
        Some(Header { name, value: header.value })
    };
    let headers: Vec<Header<'_>> = record.headers.iter().filter_map(header).collect();
    recount.raw(&RawRecord {
        topic: &source.topic,
        topic_id: &source.topic_id,
        partition: number(source.partition),
        offset: record.offset.0,
        append_time_ms: record.time.timestamp().map_or(-1, |time| time.0),
        key: record.key,
        value: record.value,
        headers: &headers,
    });
}

fn number(partition: u32) -> i32 {
    i32::try_from(partition).unwrap_or(i32::MAX)
}

/// A topic of ours, read from where it stopped.
pub struct Tail {
    topic: String,
    next: BTreeMap<Partition, NextOffset>,
}

impl Tail {
    /// Nothing is read yet.
    pub fn new(topic: &str) -> Self {
        Self { topic: topic.to_owned(), next: BTreeMap::new() }
    }

    /// Reads what was added, up to the ends of now; records without a value are passed over.
    ///
    /// # Errors
    /// Where Kafka does not answer, the topic does not exist, or reading stands still.
    pub fn read_on(&mut self, context: &Context, each: &mut dyn FnMut(&[u8])) -> Result<()> {
        let from = self.next.iter().map(|(partition, next)| (*partition, *next));
        let from = ReadFrom::Offsets(from.collect());
        let next = &mut self.next;
        let each = &mut |_: &_, record: &RecordView<'_>| {
            next.insert(record.partition, record.offset.next());
            if let Some(value) = record.value {
                each(value);
            }
        };
        context
            .kafka
            .read_topic(&self.topic, &from, context.timeout, each)
            .map_err(|error| context.lost(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(id: &str, ends: &[(i64, i64)]) -> Vec<SourceEnd> {
        let ends: Vec<LogEnds> = ends
            .iter()
            .map(|(start, end)| LogEnds {
                start: NextOffset(*start),
                high_watermark_offset: NextOffset(*end),
            })
            .collect();
        source_ends("events", id, &ends)
    }

    #[test]
    fn partitions_are_numbered_in_their_order() {
        let ends = ends("a", &[(0, 5), (2, 9)]);
        let seen: Vec<_> = ends.iter().map(|source| (source.partition, source.start, source.end)).collect();
        assert_eq!(seen, [(0, 0, 5), (1, 2, 9)]);
    }

    #[test]
    fn a_topic_with_another_id_is_another_topic() {
        let before = ends("a", &[(0, 5)]);
        assert_eq!(recreated(&before, &ends("a", &[(0, 7), (0, 0)])), None);
        assert_eq!(recreated(&[], &before), None);
        assert_eq!(recreated(&before, &ends("b", &[(0, 1)])), Some("events"));
    }
}
