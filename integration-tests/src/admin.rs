//! Topics and groups: creating, growing, trimming, deleting, and what a group has committed.
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use rdkafka::admin::{AdminClient, AdminOptions, NewPartitions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::{Offset, TopicPartitionList};

use crate::broker::Kafka;
use crate::wait::{PATIENCE, wait_until};

impl Kafka {
    /// Creates a topic and waits until its partitions have leaders.
    ///
    /// # Panics
    /// When the broker refuses, an existing topic included.
    pub fn create_topic(&self, topic: &str, partitions: i32, config: &[(&str, &str)]) {
        let mut new = NewTopic::new(topic, partitions, TopicReplication::Fixed(1));
        for (name, value) in config {
            new = new.set(name, value);
        }
        let results = block_on(self.admin().create_topics([&new], &options()));
        for result in results.expect("the broker answers") {
            result.unwrap_or_else(|(topic, error)| panic!("{topic} cannot be created: {error}"));
        }
        self.wait_for_partitions(topic, partitions);
    }

    /// Creates a topic whose records get the time at which the broker appended them, as an input of the pipeline does.
    pub fn create_input(&self, topic: &str, partitions: i32) {
        self.create_topic(topic, partitions, &[("message.timestamp.type", "LogAppendTime")]);
    }

    /// Adds partitions up to `partitions` in all.
    ///
    /// # Panics
    /// When the broker refuses.
    pub fn add_partitions(&self, topic: &str, partitions: i32) {
        let new = NewPartitions::new(topic, usize::try_from(partitions).unwrap());
        let results = block_on(self.admin().create_partitions([&new], &options()));
        for result in results.expect("the broker answers") {
            result.unwrap_or_else(|(topic, error)| panic!("{topic} cannot be grown: {error}"));
        }
        self.wait_for_partitions(topic, partitions);
    }

    /// Deletes a topic and waits until it is gone.
    ///
    /// # Panics
    /// When the broker refuses.
    pub fn delete_topic(&self, topic: &str) {
        let results = block_on(self.admin().delete_topics(&[topic], &options()));
        for result in results.expect("the broker answers") {
            result.unwrap_or_else(|(topic, error)| panic!("{topic} cannot be deleted: {error}"));
        }
        wait_until(PATIENCE, &format!("topic {topic} is gone"), || {
            self.partitions(topic).is_none().then_some(())
        });
    }

    /// Deletes the records of a partition below `offset`.
    ///
    /// # Panics
    /// When the broker refuses.
    pub fn delete_records(&self, topic: &str, partition: i32, offset: i64) {
        let mut before = TopicPartitionList::new();
        before.add_partition_offset(topic, partition, Offset::Offset(offset)).expect("a valid offset");
        let deleted = block_on(self.admin().delete_records(&before, &options()));
        for element in deleted.expect("the broker answers").elements() {
            element.error().expect("the records are deleted");
        }
    }

    /// The number of partitions, or `None` when there is no such topic.
    ///
    /// # Panics
    /// When the broker does not answer.
    #[must_use]
    pub fn partitions(&self, topic: &str) -> Option<i32> {
        partitions(&self.clients.uncommitted, topic)
    }

    /// The names of all topics that start with `prefix`, sorted.
    ///
    /// # Panics
    /// When the broker does not answer.
    #[must_use]
    pub fn topics(&self, prefix: &str) -> Vec<String> {
        let metadata = self.clients.uncommitted.fetch_metadata(None, PATIENCE).expect("the broker answers");
        let names = metadata.topics().iter().map(|topic| topic.name());
        let mut names: Vec<String> =
            names.filter(|name| name.starts_with(prefix)).map(String::from).collect();
        names.sort();
        names
    }

    /// The offset that `group` has committed for each partition of `topic`.
    ///
    /// # Panics
    /// When there is no such topic or the broker does not answer.
    #[must_use]
    pub fn committed(&self, group: &str, topic: &str) -> Vec<Option<i64>> {
        let partitions = self.partitions(topic).expect("the topic exists");
        let mut list = TopicPartitionList::new();
        list.add_partition_range(topic, 0, partitions - 1);
        let mut config = self.client_config();
        let consumer: BaseConsumer = config.set("group.id", group).create().expect("a consumer");
        let committed = consumer.committed_offsets(list, PATIENCE).expect("the broker answers");
        let offsets = committed.elements().into_iter();
        offsets
            .map(|element| match element.offset() {
                Offset::Offset(offset) => Some(offset),
                _ => None,
            })
            .collect()
    }

    /// Sets what an empty `group` has committed for every partition of `topic` back to the beginning.
    ///
    /// # Panics
    /// When there is no such topic, the group has members, or the broker does not answer.
    pub fn rewind(&self, group: &str, topic: &str) {
        let partitions = self.partitions(topic).expect("the topic exists");
        let mut list = TopicPartitionList::new();
        for partition in 0..partitions {
            list.add_partition_offset(topic, partition, Offset::Offset(0)).expect("an offset");
        }
        let mut config = self.client_config();
        let consumer: BaseConsumer = config.set("group.id", group).create().expect("a consumer");
        wait_until(PATIENCE, &format!("group {group} can be rewound"), || {
            consumer.commit(&list, CommitMode::Sync).ok()
        });
    }

    fn admin(&self) -> AdminClient<DefaultClientContext> {
        self.client_config().create().expect("an admin client")
    }

    fn wait_for_partitions(&self, topic: &str, partitions: i32) {
        let what = format!("topic {topic} has {partitions} partitions");
        wait_until(PATIENCE, &what, || (self.partitions(topic) == Some(partitions)).then_some(()));
    }
}

/// The number of partitions, or `None`; afterwards `client` knows them and their leaders.
pub(crate) fn partitions(client: &BaseConsumer, topic: &str) -> Option<i32> {
    let metadata = client.fetch_metadata(Some(topic), PATIENCE).expect("the broker answers");
    let found = metadata.topics().iter().find(|t| t.name() == topic)?;
    let ready = found.error().is_none() && found.partitions().iter().all(|p| p.leader() >= 0);
    let count = i32::try_from(found.partitions().len()).ok()?;
    (ready && count > 0).then_some(count)
}

fn options() -> AdminOptions {
    AdminOptions::new().request_timeout(Some(PATIENCE)).operation_timeout(Some(PATIENCE))
}

/// Runs a future to its end on this thread: the admin client has a thread of its own that wakes it.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park(),
        }
    }
}
