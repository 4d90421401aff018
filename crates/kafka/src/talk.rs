//! What clients say: their log lines go to `tracing`, and an outage is one line with the address, not a flood.
//!
//! Every client of a [`crate::Kafka`] shares one [`Talk`], so that a broker that is down is said once and not by the
//! consumer, the producer and the admin client each, every second.
//!
//! Must not know: what to do about an error; see `errors`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rdkafka::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::ConsumerContext;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::producer::{DeliveryResult, ProducerContext};

/// A line of one kind is said again after this.
const SILENCE: Duration = Duration::from_secs(30);

/// The kind of line that says that a broker cannot be reached.
const DOWN: &str = "down";

/// The memory of what was said lately.
pub(crate) struct Talk {
    brokers: String,
    said: Mutex<Said>,
}

#[derive(Default)]
struct Said {
    at: HashMap<String, Instant>,
    last_failure: Option<String>,
}

impl Talk {
    pub(crate) fn new(brokers: &str) -> Self {
        Self { brokers: brokers.to_owned(), said: Mutex::default() }
    }

    /// What a client said last about a connection that failed.
    pub(crate) fn last_failure(&self) -> Option<String> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).last_failure.clone()
    }

    fn due(&self, kind: &str, now: Instant) -> bool {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        match said.at.get_mut(kind) {
            Some(at) if now.duration_since(*at) < SILENCE => false,
            Some(at) => {
                *at = now;
                true
            }
            None => {
                said.at.insert(kind.to_owned(), now);
                true
            }
        }
    }

    /// A line of a client's log; the level is syslog's.
    fn line(&self, client: &str, level: i32, kind: &str, text: &str) {
        let text = without_thread(text);
        if kind == "FAIL" || kind == "ERROR" {
            let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
            said.last_failure = Some(text.to_owned());
            drop(said);
            return self.down(client, text);
        }
        match level {
            // A user's property for producers is no mistake when a consumer is made.
            ..=4 if kind != "CONFWARN" && self.due(kind, Instant::now()) => {
                tracing::warn!(target: "tallyflow::kafka", client, kind, "{text}");
            }
            ..=6 => tracing::debug!(target: "tallyflow::kafka", client, kind, "{text}"),
            _ => tracing::trace!(target: "tallyflow::kafka", client, kind, "{text}"),
        }
    }

    fn down(&self, client: &str, why: &str) {
        if self.due(DOWN, Instant::now()) {
            let brokers = self.brokers.as_str();
            tracing::warn!(target: "tallyflow::kafka", client, "no connection to Kafka at {brokers}: {why}");
        } else {
            tracing::debug!(target: "tallyflow::kafka", client, "{why}");
        }
    }

    fn error(&self, client: &str, error: &KafkaError, reason: &str) {
        match error.rdkafka_error_code() {
            Some(
                RDKafkaErrorCode::AllBrokersDown
                | RDKafkaErrorCode::BrokerTransportFailure
                | RDKafkaErrorCode::Resolve,
            ) => self.down(client, reason),
            Some(RDKafkaErrorCode::PartitionEOF) => {}
            code => {
                let kind = code.map_or_else(String::new, |code| format!("{code:?}"));
                self.line(client, 4, &kind, reason);
            }
        }
    }
}

/// librdkafka begins its lines with the thread: `[thrd:127.0.0.1:9092/bootstrap]: `.
fn without_thread(text: &str) -> &str {
    match text.strip_prefix("[thrd:").and_then(|rest| rest.split_once("]: ")) {
        Some((_, rest)) => rest,
        None => text,
    }
}

/// The context of a client: passes on what it says, under its name.
///
/// Consumers keep rdkafka's own answer to a rebalance; it is heard only while a consumer closes, see
/// [`crate::native::consumer`].
#[derive(Clone)]
pub(crate) struct Talker {
    talk: Arc<Talk>,
    client: Arc<str>,
}

impl Talker {
    pub(crate) fn new(talk: &Arc<Talk>, client: &str) -> Self {
        Self { talk: Arc::clone(talk), client: client.into() }
    }

    pub(crate) fn line(&self, level: i32, kind: &str, text: &str) {
        self.talk.line(&self.client, level, kind, text);
    }
}

impl ClientContext for Talker {
    fn log(&self, level: RDKafkaLogLevel, kind: &str, text: &str) {
        self.line(level as i32, kind, text);
    }

    fn stats_raw(&self, _: &[u8]) {}

    fn error(&self, error: KafkaError, reason: &str) {
        self.talk.error(&self.client, &error, reason);
    }
}

impl ConsumerContext for Talker {}

impl ProducerContext for Talker {
    type DeliveryOpaque = ();

    /// Only failures are reported. They also fail the transaction, which is where they are handled.
    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        if let Err((error, _)) = result {
            self.line(7, "DELIVERY", &error.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_of_line_is_said_once_in_a_while() {
        let talk = Talk::new("localhost:9092");
        let start = Instant::now();
        assert!(talk.due(DOWN, start));
        assert!(!talk.due(DOWN, start + Duration::from_secs(29)));
        assert!(talk.due("OTHER", start));
        assert!(talk.due(DOWN, start + SILENCE));
        assert!(!talk.due(DOWN, start + SILENCE));
    }

    #[test]
    fn lines_lose_the_name_of_the_thread() {
        let line = "[thrd:127.0.0.1:1/bootstrap]: 127.0.0.1:1/bootstrap: Connect failed";
        assert_eq!(without_thread(line), "127.0.0.1:1/bootstrap: Connect failed");
        assert_eq!(without_thread("[thrd:odd"), "[thrd:odd");
    }

    #[test]
    fn the_last_failure_is_kept() {
        let talk = Talk::new("localhost:9092");
        talk.line("admin", 3, "FAIL", "[thrd:x]: Connection refused");
        talk.line("admin", 5, "OTHER", "something else");
        assert_eq!(talk.last_failure().as_deref(), Some("Connection refused"));
    }
}
