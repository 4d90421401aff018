//! Every librdkafka option, in one place.
//!
//! A client's options come in three layers: defaults of ours that a user may change, the user's `[kafka.client]`
//! properties, and what the engine owns because its promises rest on it. The last ones are refused where a user
//! writes them ([`owned()`]).
//!
//! Keeps: EO-2 (isolation, idempotence, no automatic commits). Secrets are never printed: of the user's properties
//! only names are.
//!
//! Must not know: topics, partitions, what the clients are used for beyond their kind.

use std::fmt;
use std::sync::Arc;

use rdkafka::ClientConfig;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::KafkaError;

use crate::talk::Talk;

use tallyflow_topology::owned;

/// The cluster, the user's properties and the app's name.
#[derive(Clone)]
pub struct KafkaConfig {
    /// Bootstrap addresses, comma separated.
    pub brokers: String,
    /// The properties of `[kafka.client]`, in the order in which they are written.
    pub client: Vec<(String, String)>,
    /// The app: prefix of groups and transactional ids of ours.
    pub app: String,
    /// How long the broker lets a transaction stay open, milliseconds; at least 1000.
    pub transaction_timeout_ms: u32,
}

impl fmt::Debug for KafkaConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.client.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("KafkaConfig")
            .field("brokers", &self.brokers)
            .field("client", &names)
            .field("app", &self.app)
            .field("transaction_timeout_ms", &self.transaction_timeout_ms)
            .finish()
    }
}

/// A configuration that cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ConfigError {
    /// The engine sets this property itself.
    #[error("the property {0} of [kafka.client] belongs to the engine: remove it")]
    Owned(String),
    /// librdkafka does not know the property, or not this value of it.
    #[error("the property {property} of [kafka.client] is refused: {why}")]
    Property {
        /// Its name.
        property: String,
        /// Without the value, which may be a secret.
        why: &'static str,
    },
    /// There is no address.
    #[error("no broker is named: set brokers in [kafka]")]
    NoBrokers,
    /// The transaction timeout leaves no time for a request.
    #[error("a transaction timeout of {0} ms is too short: at least {MIN_TRANSACTION_TIMEOUT_MS} ms")]
    TransactionTimeout(u32),
}

/// The shortest transaction timeout: a request needs 100 ms less (librdkafka's CONFIGURATION.md), and some time.
const MIN_TRANSACTION_TIMEOUT_MS: u32 = 1_000;

/// A request to a broker that does not answer is given up after this. The default of a minute would hide a paused
/// broker from the worker for longer than a transaction lives.
const SOCKET_TIMEOUT_MS: u32 = 10_000;

/// A record may be this large: twice the largest frame (8 MiB), since batches carry more than their records.
const MESSAGE_MAX_BYTES: u32 = 16 * 1024 * 1024;

/// Defaults of every client; the user may change them.
const COMMON: &[(&str, &str)] = &[
    // After an outage the first reconnect comes at once and then at least once a second, not after up to 10 s.
    ("reconnect.backoff.ms", "50"),
    ("reconnect.backoff.max.ms", "1000"),
    // Idle connections are closed by brokers every day; that is no news.
    ("log.connection.close", "false"),
    ("socket.keepalive.enable", "true"),
    ("socket.nagle.disable", "true"),
];

/// Defaults of every consumer; the user may change them.
const READING: &[(&str, &str)] = &[
    // Prefetch of a client: 16 MiB. It is what a worker may lose when it pauses, and part of its memory.
    ("queued.max.messages.kbytes", "16384"),
    ("queued.min.messages", "10000"),
    ("fetch.message.max.bytes", "4194304"),
    // A full prefetch queue is looked at again after 20 ms; the default of 1 s stalls a small queue.
    ("fetch.queue.backoff.ms", "20"),
    ("fetch.error.backoff.ms", "100"),
    // A broker answers as soon as it has 64 KiB, or after 20 ms: at most 50 requests a second and broker when little
    // comes, and a record waits 20 ms at most.
    ("fetch.min.bytes", "65536"),
    ("fetch.wait.max.ms", "20"),
    ("check.crcs", "true"),
    // New partitions of an input are seen within 10 s.
    ("topic.metadata.refresh.interval.ms", "10000"),
];

/// Defaults of the stage's consumer alone.
const GROUP: &[(&str, &str)] = &[("session.timeout.ms", "10000"), ("heartbeat.interval.ms", "3000")];

/// Owned by the engine, every consumer.
const READING_OWNED: &[(&str, &str)] = &[
    ("isolation.level", "read_committed"),
    ("enable.auto.commit", "false"),
    ("enable.auto.offset.store", "false"),
    // The engine says where to start; a place that is gone is its business, not to be papered over.
    ("auto.offset.reset", "error"),
    ("allow.auto.create.topics", "false"),
];

/// Owned by the engine, the stage's consumer.
const GROUP_OWNED: &[(&str, &str)] = &[
    // The consumer protocol of KIP-848 is unusable in this librdkafka (2.12.1): confluentinc/librdkafka#5541.
    ("group.protocol", "classic"),
    ("partition.assignment.strategy", "cooperative-sticky"),
    ("max.poll.interval.ms", "120000"),
    ("enable.partition.eof", "false"),
];

/// Defaults of every producer; the user may change them.
const WRITING: &[(&str, &str)] = &[
    ("linger.ms", "5"),
    ("compression.type", "lz4"),
    // Lowers the waits for CONCURRENT_TRANSACTIONS after a commit.
    ("retry.backoff.ms", "20"),
    // Records that wait in the client: 64 MiB.
    ("queue.buffering.max.kbytes", "65536"),
];

/// Owned by the engine, every producer.
const WRITING_OWNED: &[(&str, &str)] = &[
    ("enable.idempotence", "true"),
    ("acks", "all"),
    // Java's partitioner; librdkafka's own default is CRC32 and breaks co-partitioning with everybody else.
    ("partitioner", "murmur2_random"),
    ("allow.auto.create.topics", "false"),
];

/// A checked configuration, from which the options of each kind of client are made.
pub(crate) struct Settings {
    config: KafkaConfig,
    pub(crate) talk: Arc<Talk>,
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.config.fmt(f)
    }
}

impl Settings {
    pub(crate) fn new(config: KafkaConfig) -> Result<Self, ConfigError> {
        if config.brokers.trim().is_empty() {
            return Err(ConfigError::NoBrokers);
        }
        if config.transaction_timeout_ms < MIN_TRANSACTION_TIMEOUT_MS {
            return Err(ConfigError::TransactionTimeout(config.transaction_timeout_ms));
        }
        for (name, value) in &config.client {
            check_property(name, value)?;
        }
        let talk = Arc::new(Talk::new(&config.brokers));
        Ok(Self { config, talk })
    }

    pub(crate) fn brokers(&self) -> &str {
        &self.config.brokers
    }

    /// A stage's group consumer. With a static member's name (`group.instance.id`) a restart within the session
    /// timeout moves no partitions.
    pub(crate) fn stage_consumer(&self, group: &str, static_member: Option<&str>) -> ClientConfig {
        let mut options = self.client(&[READING, GROUP], &[READING_OWNED, GROUP_OWNED]);
        options.set("group.id", group);
        if let Some(member) = static_member {
            options.set("group.instance.id", member);
        }
        options
    }

    /// A consumer without a group: it is assigned by hand. librdkafka wants a group id all the same; nothing is ever
    /// committed under it.
    pub(crate) fn reader(&self) -> ClientConfig {
        let mut options = self.client(&[READING], &[READING_OWNED]);
        options.set("group.id", format!("{}.reader", self.config.app));
        // The end of a log is also told where its last batch was emptied by compaction.
        options.set("enable.partition.eof", "true");
        options
    }

    /// A worker's producer.
    pub(crate) fn transactional_producer(&self, transactional_id: &str) -> ClientConfig {
        let timeout_ms = self.config.transaction_timeout_ms;
        let mut options = self.client(&[WRITING], &[WRITING_OWNED]);
        options
            .set("transactional.id", transactional_id)
            .set("transaction.timeout.ms", timeout_ms.to_string())
            .set("socket.timeout.ms", SOCKET_TIMEOUT_MS.min(timeout_ms - 100).to_string())
            // A record that fails makes its transaction fail: a report per delivered record would be pure cost.
            .set("delivery.report.only.error", "true");
        options
    }

    /// The commands' producer: every delivery is reported.
    pub(crate) fn plain_producer(&self) -> ClientConfig {
        let mut options = self.client(&[WRITING], &[WRITING_OWNED]);
        options.set("delivery.report.only.error", "false");
        options
    }

    /// A client that only asks.
    pub(crate) fn admin(&self) -> ClientConfig {
        self.client(&[], &[&[("allow.auto.create.topics", "false")]])
    }

    fn client(&self, defaults: &[&[(&str, &str)]], owned: &[&[(&str, &str)]]) -> ClientConfig {
        let mut options = ClientConfig::new();
        options.set_log_level(RDKafkaLogLevel::Info);
        options.set("client.id", &self.config.app);
        for (name, value) in COMMON.iter().chain(defaults.iter().copied().flatten()) {
            options.set(*name, *value);
        }
        for (name, value) in &self.config.client {
            options.set(name, value);
        }
        options
            .set("bootstrap.servers", &self.config.brokers)
            .set("socket.timeout.ms", SOCKET_TIMEOUT_MS.to_string())
            .set("message.max.bytes", MESSAGE_MAX_BYTES.to_string());
        for (name, value) in owned.iter().copied().flatten() {
            options.set(*name, *value);
        }
        options
    }
}

/// Asks librdkafka about one property. Its own words are not passed on: they may repeat the value.
fn check_property(name: &str, value: &str) -> Result<(), ConfigError> {
    if owned(name) {
        return Err(ConfigError::Owned(name.to_owned()));
    }
    let mut options = ClientConfig::new();
    options.set(name, value);
    let refused = |why| ConfigError::Property { property: name.to_owned(), why };
    match options.create_native_config() {
        Ok(_) => Ok(()),
        Err(KafkaError::ClientConfig(result, ..)) => {
            use rdkafka::types::RDKafkaConfRes::RD_KAFKA_CONF_UNKNOWN;
            Err(refused(if result == RD_KAFKA_CONF_UNKNOWN {
                "librdkafka has no property of this name"
            } else {
                "librdkafka does not accept this value, or was built without it"
            }))
        }
        Err(_) => Err(refused("it contains a null character")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tallyflow_topology::OWNED_PROPERTIES;

    fn config(client: &[(&str, &str)]) -> KafkaConfig {
        KafkaConfig {
            brokers: "localhost:9092".into(),
            client: client.iter().map(|(n, v)| ((*n).into(), (*v).into())).collect(),
            app: "shop".into(),
            transaction_timeout_ms: 10_000,
        }
    }

    fn settings(client: &[(&str, &str)]) -> Settings {
        Settings::new(config(client)).unwrap()
    }

    #[test]
    fn owned_properties_are_sorted_and_refused() {
        assert!(OWNED_PROPERTIES.is_sorted());
        for property in OWNED_PROPERTIES {
            assert!(owned(property));
            let error = Settings::new(config(&[(property, "1")])).unwrap_err();
            assert_eq!(error, ConfigError::Owned((*property).into()));
        }
        assert!(!owned("security.protocol"));
    }

    #[test]
    fn every_property_that_is_set_by_force_is_owned() {
        for (name, _) in [READING_OWNED, GROUP_OWNED, WRITING_OWNED].into_iter().flatten() {
            assert!(owned(name), "{name}");
        }
        for (name, _) in [COMMON, READING, GROUP, WRITING].into_iter().flatten() {
            assert!(!owned(name), "{name}");
        }
    }

    #[test]
    fn librdkafka_accepts_every_kind_of_client() {
        let settings = settings(&[("linger.ms", "1"), ("client.rack", "a")]);
        for options in [
            settings.stage_consumer("shop.intake", None),
            settings.stage_consumer("shop.intake", Some("one")),
            settings.reader(),
            settings.transactional_producer("shop.intake.i.0"),
            settings.plain_producer(),
            settings.admin(),
        ] {
            options.create_native_config().unwrap();
        }
    }

    #[test]
    fn the_user_may_change_defaults_but_not_what_is_owned() {
        let settings = settings(&[("linger.ms", "50"), ("fetch.wait.max.ms", "5")]);
        let producer = settings.transactional_producer("shop.intake.i.0");
        assert_eq!(producer.get("linger.ms"), Some("50"));
        assert_eq!(producer.get("transaction.timeout.ms"), Some("10000"));
        assert_eq!(producer.get("socket.timeout.ms"), Some("9900"));
        assert_eq!(producer.get("partitioner"), Some("murmur2_random"));
        let consumer = settings.stage_consumer("shop.intake", None);
        assert_eq!(consumer.get("fetch.wait.max.ms"), Some("5"));
        assert_eq!(consumer.get("isolation.level"), Some("read_committed"));
        assert_eq!(consumer.get("group.instance.id"), None);
    }

    #[test]
    fn a_wrong_property_is_named_without_its_value() {
        for (property, value) in [("sasl.pasword", "hunter2"), ("security.protocol", "hunter2")] {
            let error = Settings::new(config(&[(property, value)])).unwrap_err().to_string();
            assert!(error.contains(property) && !error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn secrets_are_not_printed() {
        let config = config(&[("sasl.password", "hunter2")]);
        let text = format!("{config:?} {:?}", Settings::new(config.clone()).unwrap());
        assert!(text.contains("sasl.password") && !text.contains("hunter2"), "{text}");
    }

    #[test]
    fn useless_configurations_are_refused() {
        let mut useless = config(&[]);
        useless.transaction_timeout_ms = 999;
        let error = Settings::new(useless.clone()).unwrap_err();
        assert_eq!(error, ConfigError::TransactionTimeout(999));
        useless.brokers = " ".into();
        assert_eq!(Settings::new(useless).unwrap_err(), ConfigError::NoBrokers);
    }
}
