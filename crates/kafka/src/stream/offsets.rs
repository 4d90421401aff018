//! Offsets of the group: what it has committed, and what a transaction is to say.
//!
//! Keeps: EO-2 (only for partitions owned now, never for nothing, with the group metadata of this moment).
//!
//! Must not know: when to commit.

use std::collections::HashMap;

use rdkafka::consumer::Consumer as _;
use rdkafka::{Offset, TopicPartitionList};
use tallyflow_core::ids::{NextOffset, TopicPartition};
use tallyflow_runtime::ports::{Committed, PortError, Reaction, SentOffset};

use super::{ASK, KafkaStream};
use crate::errors::{Context, describe, from_kafka, reaction};
use crate::lists::{list_of, name_of, number_of};
use crate::native::consumer::GroupMetadata;
use crate::native::entries;

impl KafkaStream {
    /// What the group has committed; waits for transactions that are open on it.
    pub(super) fn committed_of(
        &self,
        partitions: &[TopicPartition],
    ) -> Result<Vec<Option<Committed>>, PortError> {
        let what = format!("asking for the offsets of group {}", self.group);
        let list = list_of(partitions.iter().map(|name| (name, Offset::Invalid)))?;
        // A read_committed consumer asks for stable offsets: this waits for open transactions.
        let list = self
            .consumer()?
            .base()
            .committed_offsets(list, ASK)
            .map_err(|error| from_kafka(&what, &error, Context::Consumer))?;
        let mut found = HashMap::new();
        for entry in entries(&list) {
            if let Some(code) = entry.error {
                return Err(PortError::new(reaction(code, Context::Consumer), describe(&what, code, "")));
            }
            let committed = Committed { offset: NextOffset(entry.offset), metadata: entry.metadata.clone() };
            found.insert(name_of(&entry), (entry.offset >= 0).then_some(committed));
        }
        Ok(partitions.iter().map(|name| found.get(name).cloned().flatten()).collect())
    }

    /// The list and the membership to send with a transaction.
    pub(super) fn offsets_to_send(
        &self,
        offsets: &[SentOffset],
    ) -> Result<(TopicPartitionList, GroupMetadata), PortError> {
        let what = "adding offsets to the transaction";
        if offsets.is_empty() {
            // An empty list would succeed without a check of the generation.
            return Err(PortError::new(Reaction::Halt, format!("{what}: there are none")));
        }
        if let Some(sent) = offsets.iter().find(|sent| self.assignment.get(&sent.partition).is_none()) {
            let message = format!("{what}: {} is not ours any more", sent.partition);
            return Err(PortError::new(Reaction::Abort, message));
        }
        let mut list = TopicPartitionList::with_capacity(offsets.len());
        for sent in offsets {
            let mut element = list.add_partition(&sent.partition.topic, number_of(&sent.partition)?);
            element
                .set_offset(Offset::Offset(sent.offset.0))
                .map_err(|error| from_kafka(what, &error, Context::Transaction))?;
            if !sent.metadata.is_empty() {
                element.set_metadata(&sent.metadata);
            }
        }
        let consumer = self.consumer()?;
        if consumer.base().assignment_lost() {
            return Err(PortError::new(Reaction::Abort, format!("{what}: the assignment was lost")));
        }
        match consumer.group_metadata() {
            Some(group) => Ok((list, group)),
            None => Err(PortError::new(Reaction::Abort, format!("{what}: the consumer has no group"))),
        }
    }
}
