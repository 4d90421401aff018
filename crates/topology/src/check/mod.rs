//! Does what is written make sense? One file a subject; every check adds its problems and none ends the others.
//!
//! | file | subject |
//! | --- | --- |
//! | [`names`] | names of the app, tables, topics and dimensions |
//! | [`times`] | limits, windows and commits that have to fit together |
//! | [`edges`] | addresses, Kafka properties, what this version leaves out |
//!
//! Must not know: how the file is read, or what is made of it.

mod edges;
mod names;
mod times;

use crate::place::Report;
use crate::written::Written;

pub(crate) use edges::brokers;

/// Runs every check but that of the brokers, which may have to be resolved first.
pub(crate) fn all(written: &Written, report: &mut Report<'_>) {
    names::check(written, report);
    times::check(written, report);
    edges::check(written, report);
}
