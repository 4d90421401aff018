//! The only home of rocksdb: the cold store on disk, and the directories it lives in.
//!
//! ```text
//!   <state_dir>/slot-0/lock            held while a process uses the slot
//!                     /instance        16 hexadecimal digits, made once
//!                     /app             whose state this is
//!                     /count/<task>/db       one RocksDB per task
//!                                  /ingest   files on their way into it
//! ```
//!
//! | file | what |
//! | --- | --- |
//! | `slot.rs` | claims a slot, knows the instance |
//! | `stores.rs` | opens and discards tasks |
//! | `store.rs` | one task: cells, progress, buckets |
//! | `options.rs` | every option of every column family |
//! | `keys.rs` | every byte that is stored |
//! | `errors.rs` | what an error means, in plain words |
//!
//! Must not know: Kafka, transactions, what progress says.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]

mod errors;
mod keys;
mod options;
mod slot;
mod store;
mod stores;

pub use slot::Slot;
pub use stores::RocksStores;
