//! Lists of partitions, there and back, and the closing of clients: what several files here need.
//!
//! Must not know: what the lists are for.

use std::collections::HashMap;
use std::ffi::CString;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rdkafka::{Offset, TopicPartitionList};
use tallyflow_core::ids::{TopicId, TopicPartition};
use tallyflow_runtime::ports::{PortError, Reaction};

use crate::errors::{Context, from_kafka, port_error};
use crate::native::admin::describe_topics;
use crate::native::consumer::Consumer;
use crate::native::{ListEntry, NativeError, entries};

/// Drops clients on a thread of their own: dropping a consumer has no upper bound in time.
pub(crate) fn retire(what: &'static str, clients: impl Send + 'static, wait: Duration) {
    let (done, is_done) = mpsc::channel();
    let drop_them = move || {
        drop(clients);
        // Nobody may be waiting any more.
        let _ = done.send(());
    };
    if let Err(error) = thread::Builder::new().name("kafka-close".into()).spawn(drop_them) {
        tracing::warn!(target: "tallyflow::kafka", %error, "no thread to close {what} on");
    } else if !wait.is_zero() && is_done.recv_timeout(wait).is_err() {
        tracing::warn!(target: "tallyflow::kafka", "{what} did not close in {} s", wait.as_secs());
    }
}

/// A topic's name as librdkafka wants it.
pub(crate) fn c_name(name: &str) -> Result<CString, PortError> {
    CString::new(name).map_err(|_| PortError::new(Reaction::Halt, "a topic's name contains a null character"))
}

/// A partition's number as librdkafka wants it.
pub(crate) fn number_of(partition: &TopicPartition) -> Result<i32, PortError> {
    i32::try_from(partition.partition.0)
        .map_err(|_| PortError::new(Reaction::Halt, format!("there is no partition {partition}")))
}

/// The partition of an element.
pub(crate) fn name_of(entry: &ListEntry) -> TopicPartition {
    TopicPartition::new(entry.topic.as_str(), entry.partition.cast_unsigned())
}

/// A list of partitions with offsets.
pub(crate) fn list_of<'p>(
    partitions: impl Iterator<Item = (&'p TopicPartition, Offset)>,
) -> Result<TopicPartitionList, PortError> {
    let mut list = TopicPartitionList::new();
    for (name, offset) in partitions {
        list.add_partition_offset(&name.topic, number_of(name)?, offset)
            .map_err(|error| from_kafka("making a list of partitions", &error, Context::Consumer))?;
    }
    Ok(list)
}

/// The errors of a call that returns success all the same.
pub(crate) fn check_each(what: &str, list: &TopicPartitionList) -> Result<(), PortError> {
    for entry in entries(list) {
        if let Some(code) = entry.error {
            // Of all that can happen here: the partition is unknown to the client, since it is not ours.
            let error = NativeError::plain(code);
            let told = port_error(&format!("{what} {}", name_of(&entry)), &error, Context::Consumer);
            return Err(PortError::new(Reaction::Abort, told.message));
        }
    }
    Ok(())
}

/// The ids of topics, as far as the cluster says them in time.
pub(crate) fn topic_ids(
    consumer: &Consumer,
    partitions: &[TopicPartition],
    wait: Duration,
) -> HashMap<String, TopicId> {
    let mut names: Vec<CString> = partitions.iter().filter_map(|name| c_name(&name.topic).ok()).collect();
    names.sort();
    names.dedup();
    if names.is_empty() {
        return HashMap::new();
    }
    describe_topics(consumer.client(), &names, wait)
        .unwrap_or_default()
        .into_iter()
        .filter(|topic| topic.error.is_none() && topic.id != TopicId::ZERO)
        .map(|topic| (topic.name, topic.id))
        .collect()
}
