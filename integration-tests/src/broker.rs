//! The Apache Kafka broker of this test run: where it is, and how a test takes it away for a while.
//!
//! scripts/test.sh starts it and says where it is; a test process only connects. What a test did to the broker is undone
//! when its guard is dropped, so that a failing test leaves a broker for the next one.
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use rdkafka::ClientConfig;

use crate::clients::Clients;

/// The broker that scripts/test.sh started for this run.
///
/// # Panics
/// When the test was not started by scripts/test.sh.
pub fn kafka() -> &'static Kafka {
    static KAFKA: OnceLock<Kafka> = OnceLock::new();
    KAFKA.get_or_init(|| {
        let brokers = from_environment("TALLYFLOW_TEST_BROKERS");
        let dir = PathBuf::from(from_environment("TALLYFLOW_TEST_KAFKA_DIR"));
        let clients = Clients::new(&client_config(&brokers));
        Kafka { brokers, dir, clients }
    })
}

fn from_environment(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| {
        panic!("{name} is not set: this test needs a Kafka broker, start it with `scripts/test.sh [FILTER…]`")
    })
}

fn client_config(brokers: &str) -> ClientConfig {
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", brokers)
        .set("reconnect.backoff.ms", "20")
        .set("reconnect.backoff.max.ms", "500")
        .set("message.max.bytes", "16000000");
    config
}

/// A running Apache Kafka broker; see also the methods for topics, for writing and for reading.
pub struct Kafka {
    brokers: String,
    dir: PathBuf,
    pub(crate) clients: Clients,
}

impl Kafka {
    /// The bootstrap address, `host:port`.
    #[must_use]
    pub fn brokers(&self) -> &str {
        &self.brokers
    }

    /// The broker's folder: its data, `server.properties` and `log`.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// A client configuration with the address set, for what the harness has no method for.
    #[must_use]
    pub fn client_config(&self) -> ClientConfig {
        client_config(&self.brokers)
    }

    /// Stops the broker in order and starts it again on the same port. Only in tests named `exclusive_…`.
    pub fn restart(&self) {
        self.script("restart");
    }

    /// Kills the broker (SIGKILL) until the guard is dropped or [`Down::start`] is called. Only in tests named
    /// `exclusive_…`.
    #[must_use = "the broker is started again when this is dropped"]
    pub fn kill(&self) -> Down<'_> {
        self.script("kill");
        Down { kafka: self }
    }

    /// Pauses the broker (SIGSTOP) until the guard is dropped. Only in tests named `exclusive_…`.
    #[must_use = "the broker goes on when this is dropped"]
    pub fn pause(&self) -> Paused<'_> {
        self.script("pause");
        Paused { kafka: self }
    }

    fn script(&self, command: &str) {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/kafka.sh");
        let output = Command::new(&script)
            .arg(command)
            .arg(&self.dir)
            .output()
            .unwrap_or_else(|error| panic!("{} cannot be run: {error}", script.display()));
        assert!(
            output.status.success(),
            "kafka.sh {command} failed: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

/// The broker is dead; it starts again when this is dropped.
pub struct Down<'a> {
    kafka: &'a Kafka,
}

impl Down<'_> {
    /// Starts the broker and waits until it serves: about 5 s, since the dead broker's session must end first.
    pub fn start(self) {
        drop(self);
    }
}

impl Drop for Down<'_> {
    fn drop(&mut self) {
        self.kafka.script("start");
    }
}

/// The broker stands still; it goes on when this is dropped.
pub struct Paused<'a> {
    kafka: &'a Kafka,
}

impl Drop for Paused<'_> {
    fn drop(&mut self) {
        self.kafka.script("resume");
    }
}
