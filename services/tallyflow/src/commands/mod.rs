//! One file for each command. A command decides in pure functions and leaves reading and writing at the edges.

pub mod audit;
pub mod counts;
pub mod graph;
pub mod healthcheck;
mod latest;
pub mod send;
mod table;
pub mod topics;
pub mod validate;
pub mod windows;

use std::time::{SystemTime, UNIX_EPOCH};

/// This machine's clock, in milliseconds since the epoch.
fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// `1 record`, `2 records`.
fn number(count: u64, one: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {one}s") }
}
