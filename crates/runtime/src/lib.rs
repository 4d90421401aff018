//! Worker, tasks, restore, commit and ledger: the engine between a stage's pure logic and the outside.
//!
//! ```text
//!             ┌───────────── Worker::step(now) ─────────────┐
//!  StreamLog ─┤ poll → tasks → due? → commit.rs (6 steps)   ├─ Observer
//!             └── ports: log · reader · admin · cold store ─┘
//! ```
//!
//! One worker is one thread, one consumer, one transactional producer and the tasks of its partitions. Ports are the
//! only way out; `crates/kafka`, `crates/rocks` and `crates/telemetry` implement them.
//!
//! Must not know: rdkafka, rocksdb, HTTP, metrics libraries, formats of public messages.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]

pub mod commit;
pub mod count;
pub mod failures;
pub mod intake;
pub mod ledger;
pub mod outbox;
pub mod ports;
pub mod shuffle;
pub mod stage;
pub mod status;
pub mod worker;
