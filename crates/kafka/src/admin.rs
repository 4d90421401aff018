//! Questions to the cluster, and the making of topics.
//!
//! The client behind it is a producer that never writes: it has a thread that serves its log lines and errors, which
//! rdkafka's admin client has not.
//!
//! Must not know: which topics the app needs, or with which settings.

use std::collections::{BTreeMap, HashMap};
use std::ffi::CString;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use rdkafka::admin::{AdminClient, AdminOptions, NewTopic as RdTopic, ResourceSpecifier, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::error::{KafkaResult, RDKafkaErrorCode};
use rdkafka::producer::{Producer as _, ThreadedProducer};
use tallyflow_core::ids::{NextOffset, TopicPartition};
use tallyflow_runtime::ports::{Admin, LogEnds, PortError, Reaction, TopicInfo};

use crate::config::Settings;
use crate::errors::{Class, Context, class, describe, from_kafka, port_error, reaction};
use crate::lists::c_name;
use crate::native::admin::{describe_topics, log_ends};
use crate::talk::Talker;

/// A question is given up after this.
const ASK: Duration = Duration::from_secs(1);

/// A change is given up after this; a new topic must be seen by everybody.
const CHANGE: Duration = Duration::from_secs(10);

/// A topic to be made, with every setting said.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewTopic {
    /// Its name.
    pub name: String,
    /// Its partitions.
    pub partitions: u32,
    /// Copies of each partition.
    pub replication: u16,
    /// Its settings, by Kafka's names.
    pub configs: Vec<(String, String)>,
}

/// What became of a topic that was to be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Created {
    /// It is new.
    New,
    /// It was there already, as it is.
    Existed,
}

/// A setting of a topic.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfigValue {
    /// What is in force; `None` for secrets.
    pub value: Option<String>,
    /// Whether somebody said so for this topic; otherwise it is a default of the broker.
    pub is_explicit: bool,
}

/// [`Admin`] over librdkafka.
pub struct KafkaAdmin {
    settings: Arc<Settings>,
    client: ThreadedProducer<Talker>,
}

impl KafkaAdmin {
    pub(crate) fn new(settings: &Arc<Settings>) -> Result<Self, PortError> {
        let client = settings
            .admin()
            .create_with_context(Talker::new(&settings.talk, "admin"))
            .map_err(|error| from_kafka("making an admin client", &error, Context::Admin))?;
        Ok(Self { settings: Arc::clone(settings), client })
    }

    /// Whether a broker answers within `timeout`.
    ///
    /// # Errors
    ///
    /// One line with the address, and what the client said last.
    pub fn check(&self, timeout: Duration) -> Result<(), PortError> {
        if self.client.client().fetch_cluster_id(timeout).is_some() {
            return Ok(());
        }
        let why = self.settings.talk.last_failure().map_or_else(String::new, |why| format!(" ({why})"));
        Err(PortError::new(
            Reaction::Retry,
            format!(
                "no broker answers at {} within {:.1} s{why}: is Kafka running, and is brokers in [kafka] right?",
                self.settings.brokers(),
                timeout.as_secs_f64()
            ),
        ))
    }

    /// Both ends of every partition of a topic, in order; `None` where it does not exist.
    ///
    /// # Errors
    ///
    /// [`Reaction::Retry`] where the broker did not answer in time.
    pub fn topic_ends(&mut self, topic: &str) -> Result<Option<Vec<LogEnds>>, PortError> {
        let Some(info) = self.topics(&[topic])?.into_iter().next().flatten() else {
            return Ok(None);
        };
        let partitions: Vec<TopicPartition> =
            (0..info.partitions).map(|number| TopicPartition::new(topic, number)).collect();
        self.ends(&partitions).map(Some)
    }

    /// Makes topics, and waits until the cluster knows the new ones. One that exists is left as it is.
    ///
    /// # Errors
    ///
    /// The first topic that could not be made, and why.
    pub fn create_topics(&mut self, topics: &[NewTopic]) -> Result<Vec<Created>, PortError> {
        if topics.is_empty() {
            return Ok(Vec::new());
        }
        let wanted: Vec<RdTopic<'_>> = topics.iter().map(rd_topic).collect();
        let options = AdminOptions::new().operation_timeout(Some(CHANGE)).request_timeout(Some(CHANGE));
        let results = self.change("making topics", |client| client.create_topics(&wanted, &options))?;
        let mut outcome = Vec::with_capacity(topics.len());
        for result in results {
            outcome.push(match result {
                Ok(_) => Created::New,
                Err((_, RDKafkaErrorCode::TopicAlreadyExists)) => Created::Existed,
                Err((name, code)) => {
                    let what = format!("making the topic {name}");
                    return Err(PortError::new(reaction(code, Context::Admin), describe(&what, code, "")));
                }
            });
        }
        let names: Vec<&str> = topics.iter().map(|topic| topic.name.as_str()).collect();
        self.await_topics(&names)?;
        Ok(outcome)
    }

    fn await_topics(&mut self, names: &[&str]) -> Result<(), PortError> {
        let deadline = Instant::now() + CHANGE;
        loop {
            match self.topics(names) {
                Ok(found) if found.iter().flatten().count() == names.len() => return Ok(()),
                Err(error) if error.reaction != Reaction::Retry => return Err(error),
                _ if Instant::now() >= deadline => {
                    let message = format!("the new topics ({}) are not visible yet", names.join(", "));
                    return Err(PortError::new(Reaction::Retry, message));
                }
                _ => thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    /// The settings of a topic, by Kafka's names; `None` where it does not exist.
    ///
    /// # Errors
    ///
    /// Where the brokers did not answer in time, or do not permit it.
    pub fn topic_configs(&mut self, topic: &str) -> Result<Option<BTreeMap<String, ConfigValue>>, PortError> {
        let what = format!("asking for the settings of {topic}");
        let options = AdminOptions::new().request_timeout(Some(CHANGE));
        let wanted = [ResourceSpecifier::Topic(topic)];
        let results = self.change(&what, |client| client.describe_configs(&wanted, &options))?;
        match results.into_iter().next() {
            // rdkafka swallows the error of a resource; a topic that exists has settings.
            Some(Ok(resource)) if resource.entries.is_empty() => Ok(None),
            Some(Ok(resource)) => {
                use rdkafka::admin::ConfigSource::DynamicTopic;
                let read = |entry: rdkafka::admin::ConfigEntry| {
                    let is_explicit = entry.source == DynamicTopic;
                    (entry.name, ConfigValue { value: entry.value, is_explicit })
                };
                Ok(Some(resource.entries.into_iter().map(read).collect()))
            }
            Some(Err(code)) if class(code) == Class::Missing => Ok(None),
            Some(Err(code)) => Err(PortError::new(reaction(code, Context::Admin), describe(&what, code, ""))),
            None => Err(PortError::new(Reaction::Retry, format!("{what}: the brokers did not say"))),
        }
    }

    /// Asks through rdkafka's own admin client, which lives for this one call.
    fn change<T, F>(
        &self,
        what: &str,
        call: impl FnOnce(&AdminClient<DefaultClientContext>) -> F,
    ) -> Result<T, PortError>
    where
        F: Future<Output = KafkaResult<T>>,
    {
        let told = |error| from_kafka(what, &error, Context::Admin);
        let client: AdminClient<DefaultClientContext> = self.settings.admin().create().map_err(told)?;
        match block_on(call(&client), CHANGE + ASK) {
            Some(result) => result.map_err(told),
            None => Err(PortError::new(
                Reaction::Retry,
                format!("{what}: no broker answers at {}", self.settings.brokers()),
            )),
        }
    }
}

impl Admin for KafkaAdmin {
    fn topics(&mut self, names: &[&str]) -> Result<Vec<Option<TopicInfo>>, PortError> {
        let what = format!("asking for the topics {}", names.join(", "));
        let mut wanted = names.iter().map(|name| c_name(name)).collect::<Result<Vec<CString>, _>>()?;
        wanted.sort();
        wanted.dedup();
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let answers = describe_topics(self.client.client(), &wanted, ASK)
            .map_err(|error| port_error(&what, &error, Context::Admin))?;
        let mut found = HashMap::new();
        for topic in answers {
            match topic.error {
                None => {
                    let info =
                        TopicInfo { name: topic.name.clone(), id: topic.id, partitions: topic.partitions };
                    found.insert(topic.name, info);
                }
                Some(error) if class(error.code) == Class::Missing => {}
                Some(error) => {
                    let what = format!("asking for the topic {}", topic.name);
                    return Err(port_error(&what, &error, Context::Admin));
                }
            }
        }
        Ok(names.iter().map(|name| found.get(*name).cloned()).collect())
    }

    fn ends(&mut self, partitions: &[TopicPartition]) -> Result<Vec<LogEnds>, PortError> {
        let mut wanted = partitions.to_vec();
        wanted.sort();
        wanted.dedup();
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let what = "asking for the ends of logs";
        let found = log_ends(self.client.client(), &wanted, ASK)
            .map_err(|error| port_error(what, &error, Context::Admin))?;
        let of = |name: &TopicPartition| {
            let number = i32::try_from(name.partition.0).unwrap_or(i32::MAX);
            match found.get(&(name.topic.to_string(), number)) {
                Some(Ok((start, end))) => {
                    Ok(LogEnds { start: NextOffset(*start), high_watermark_offset: NextOffset(*end) })
                }
                Some(Err(code)) => {
                    let what = format!("asking for the ends of {name}");
                    Err(PortError::new(reaction(*code, Context::Admin), describe(&what, *code, "")))
                }
                None => Err(PortError::new(
                    Reaction::Retry,
                    format!("asking for the ends of {name}: the brokers did not say"),
                )),
            }
        };
        partitions.iter().map(of).collect()
    }
}

fn rd_topic(topic: &NewTopic) -> RdTopic<'_> {
    let partitions = i32::try_from(topic.partitions).unwrap_or(i32::MAX);
    let replication = TopicReplication::Fixed(i32::from(topic.replication));
    let new = RdTopic::new(&topic.name, partitions, replication);
    topic.configs.iter().fold(new, |new, (name, value)| new.set(name, value))
}

/// Waits on this thread for a future that another thread completes; `None` after `wait`.
fn block_on<T>(future: impl Future<Output = T>, wait: Duration) -> Option<T> {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let deadline = Instant::now() + wait;
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut TaskContext::from_waker(&waker)) {
            return Some(value);
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return None;
        }
        thread::park_timeout(left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_for_a_future_is_bounded() {
        assert_eq!(block_on(std::future::ready(7), Duration::ZERO), Some(7));
        assert_eq!(block_on(std::future::pending::<()>(), Duration::from_millis(5)), None);
    }

    #[test]
    fn nothing_is_asked_where_nothing_is_wanted() {
        let settings = Settings::new(crate::KafkaConfig {
            brokers: "127.0.0.1:1".into(),
            client: Vec::new(),
            app: "shop".into(),
            transaction_timeout_ms: 10_000,
        });
        let mut admin = KafkaAdmin::new(&Arc::new(settings.unwrap())).unwrap();
        assert_eq!(admin.topics(&[]), Ok(Vec::new()));
        assert_eq!(admin.ends(&[]), Ok(Vec::new()));
        assert_eq!(admin.create_topics(&[]), Ok(Vec::new()));
    }

    #[test]
    fn a_missing_broker_is_one_line_with_its_address() {
        let settings = Settings::new(crate::KafkaConfig {
            brokers: "127.0.0.1:1".into(),
            client: Vec::new(),
            app: "shop".into(),
            transaction_timeout_ms: 10_000,
        });
        let admin = KafkaAdmin::new(&Arc::new(settings.unwrap())).unwrap();
        let error = admin.check(Duration::from_millis(300)).unwrap_err();
        assert_eq!(error.reaction, Reaction::Retry);
        assert!(error.message.contains("127.0.0.1:1") && !error.message.contains('\n'), "{error}");
    }
}
