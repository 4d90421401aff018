//! What every command starts with: the topology, compiled, and a way to Kafka. Nothing is connected here.
//!
//! All problems of the topology are said at once, with exit code 78.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, anyhow};
use tallyflow_kafka::{Kafka, KafkaAdmin, KafkaConfig};
use tallyflow_runtime::ports::PortError;
use tallyflow_topology::{Deployment, Source, SystemEnvironment, load};

use crate::args::Global;
use crate::exit::{BadTopology, Usage};
use crate::patience::Patience;

/// The topology where nobody names another.
const DEFAULT_TOPOLOGY: &str = "topology.toml";

/// The pipeline and where it runs.
#[derive(Clone)]
pub struct Context {
    /// The topology's file, as the user named it.
    pub path: PathBuf,
    /// What it means.
    pub deployment: Deployment,
    /// Makes clients.
    pub kafka: Kafka,
    /// How long a command waits for Kafka.
    pub timeout: Duration,
}

impl Context {
    /// Reads and checks the topology. `file` is the argument of `run`, in place of `--topology`.
    ///
    /// # Errors
    /// [`Usage`] where both are given, [`BadTopology`] where it cannot be used.
    pub fn load(global: &Global, file: Option<&Path>) -> Result<Self> {
        let path = match (file, &global.topology) {
            (Some(_), Some(_)) => {
                return Err(Usage("name the topology once: FILE or --topology".to_owned()).into());
            }
            (Some(path), None) => path,
            (None, Some(path)) => path,
            (None, None) => Path::new(DEFAULT_TOPOLOGY),
        };
        let source = Source { path, brokers: global.brokers.as_deref() };
        let deployment = load(source, &SystemEnvironment).map_err(BadTopology::from)?;
        let kafka = Kafka::new(kafka_config(&deployment))
            .map_err(|why| BadTopology::Client { path: path.to_path_buf(), why })?;
        Ok(Self { path: path.to_path_buf(), deployment, kafka, timeout: global.timeout })
    }

    /// The patience of a command that starts now.
    pub fn patience(&self) -> Patience {
        Patience::new(self.timeout)
    }

    /// Makes sure that a broker answers, and gives a client that asks.
    ///
    /// # Errors
    /// One line that names the address.
    pub fn connect(&self, patience: &Patience) -> Result<KafkaAdmin> {
        let admin = self.kafka.admin().map_err(|error| self.lost(error))?;
        admin.check(patience.left()).map_err(|error| self.lost(error))?;
        Ok(admin)
    }

    /// The error of a client as a command tells it: with the address.
    pub fn lost(&self, error: PortError) -> anyhow::Error {
        let brokers = &self.deployment.kafka.brokers;
        if error.message.contains(brokers.as_str()) {
            anyhow!(error.message)
        } else {
            anyhow!("{} (Kafka at {brokers})", error.message)
        }
    }
}

fn kafka_config(deployment: &Deployment) -> KafkaConfig {
    let client = deployment.kafka.client.iter();
    KafkaConfig {
        brokers: deployment.kafka.brokers.clone(),
        client: client.map(|(name, value)| (name.clone(), value.expose().to_owned())).collect(),
        app: deployment.plan.app.clone(),
        transaction_timeout_ms: u32::try_from(deployment.plan.engine.transaction_timeout_ms)
            .unwrap_or(u32::MAX),
    }
}
