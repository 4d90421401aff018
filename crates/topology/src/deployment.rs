//! The compiled deployment: what topology.toml means, checked, with every default filled in.
//!
//! The engine's part is core's [`Plan`]; here is what only the edges need: addresses, Kafka settings, topic creation.
//!
//! Must not know: how it was written.

use std::net::SocketAddr;

use tallyflow_core::plan::{Names, Plan};

use crate::environment::Secret;

/// Everything a process needs to know.
#[derive(Clone, Debug)]
pub struct Deployment {
    /// What the engine needs to know about counting.
    pub plan: Plan,
    /// The names of the app's own topics and groups.
    pub names: Names,
    /// The Kafka cluster and how to talk to it.
    pub kafka: KafkaPlan,
    /// Where a worker serves HTTP; port 0 is any free one.
    pub http_listen: SocketAddr,
    /// Whether `run` creates missing topics.
    pub create_topics: bool,
    /// The schema registry's URL. It is accepted and not used by this version. It may hold credentials.
    pub schemas_registry: Option<Secret>,
    /// How failures are retried. It is checked and not used by this version.
    pub failures: FailurePlan,
}

/// The Kafka cluster and how to talk to it.
#[derive(Clone, Debug)]
pub struct KafkaPlan {
    /// `bootstrap.servers`.
    pub brokers: String,
    /// Copies of every partition of the topics we create.
    pub replication: u16,
    /// More librdkafka properties, in the order of the file; none of them belongs to the engine.
    pub client: Vec<(String, Secret)>,
}

/// How failures are retried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FailurePlan {
    /// Retries before a record is parked.
    pub max_retries: u32,
    /// The delay before the first retry.
    pub base_ms: i64,
    /// The longest delay.
    pub cap_ms: i64,
}
