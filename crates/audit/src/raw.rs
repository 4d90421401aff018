//! A record of a raw topic, and its verdict by the time limits.
//!
//! Lateness is judged against the record's own append time and nothing else (rule R2).

use crate::config::AuditConfig;
use crate::event::Event;

/// A record header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its value; Kafka allows none.
    pub value: Option<&'a [u8]>,
}

/// A record of a raw topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawRecord<'a> {
    /// Topic name.
    pub topic: &'a str,
    /// Topic id, as the ledger writes it.
    pub topic_id: &'a str,
    /// Partition.
    pub partition: i32,
    /// Offset of this record.
    pub offset: i64,
    /// The record's timestamp: append time of the log, or the producer's where the topic is so configured. Epoch ms.
    pub append_time_ms: i64,
    /// Key; not looked at.
    pub key: Option<&'a [u8]>,
    /// Value; none is a null value.
    pub value: Option<&'a [u8]>,
    /// Headers in their order.
    pub headers: &'a [Header<'a>],
}

/// The verdict of the time limits.
pub(crate) enum Admission {
    Admitted,
    Late,
    Future,
}

/// Rule R2, both ends included; wide arithmetic, since an event time may be any i64.
pub(crate) fn admission(event: &Event<'_>, append_ms: i64, ahead: bool, config: &AuditConfig) -> Admission {
    let age_ms = i128::from(append_ms) - i128::from(event.event_time_ms);
    if ahead || age_ms < -i128::from(config.future_ms) {
        Admission::Future
    } else if age_ms > i128::from(config.accept_ms) {
        Admission::Late
    } else {
        Admission::Admitted
    }
}
