//! Every metric's name, kind, unit, labels and help, in one place.
//!
//! docs/metrics.md is checked against this file, and the exporter can register nothing else: a metric that is not
//! here does not exist. Units are base units, times are `_timestamp_seconds`, counters end in `_total`.

use crate::labels::Label;

/// Upper bounds of `commit_duration_seconds`: 1-2-5 steps from a millisecond, below which nobody looks, to the
/// default transaction timeout (10 s), beyond which the broker aborts.
pub const COMMIT_SECONDS: [f64; 13] =
    [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0];

/// What a metric does over time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Only grows while the process lives.
    Counter,
    /// Goes up and down; a gauge without a value is left out of the page.
    Gauge,
    /// Counts observations by size.
    Histogram,
}

impl Kind {
    /// The word in the exposition format.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// What a metric counts or measures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Events; a packed record has several.
    Events,
    /// Kafka records.
    Records,
    /// Event ids.
    Ids,
    /// Seconds, or seconds since the epoch.
    Seconds,
    /// Bytes.
    Bytes,
    /// Occurrences of what the name says.
    Times,
    /// The value is always 1; the labels matter.
    Info,
}

impl Unit {
    /// The word in docs/metrics.md.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Events => "events",
            Self::Records => "records",
            Self::Ids => "ids",
            Self::Seconds => "seconds",
            Self::Bytes => "bytes",
            Self::Times => "times",
            Self::Info => "info",
        }
    }
}

/// A metric.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Metric {
    /// `records_total`.
    Records,
    /// `ledger_residual`.
    LedgerResidual,
    /// `output_records_total`.
    OutputRecords,
    /// `commit_duration_seconds`.
    CommitDuration,
    /// `transactions_total`.
    Transactions,
    /// `consumer_lag_records`.
    ConsumerLagRecords,
    /// `consumer_lag_seconds`.
    ConsumerLagSeconds,
    /// `complete_through_timestamp_seconds`.
    CompleteThrough,
    /// `restore_remaining_records`.
    RestoreRemaining,
    /// `seen_ids`.
    SeenIds,
    /// `seen_horizon_seconds`.
    SeenHorizon,
    /// `state_bytes`.
    StateBytes,
    /// `rebalances_total`.
    Rebalances,
    /// `dlq_records_total`.
    DeadLetters,
    /// `build_info`.
    BuildInfo,
}

impl Metric {
    /// Every metric, in the order of docs/metrics.md.
    pub const ALL: [Self; 15] = [
        Self::Records,
        Self::LedgerResidual,
        Self::OutputRecords,
        Self::CommitDuration,
        Self::Transactions,
        Self::ConsumerLagRecords,
        Self::ConsumerLagSeconds,
        Self::CompleteThrough,
        Self::RestoreRemaining,
        Self::SeenIds,
        Self::SeenHorizon,
        Self::StateBytes,
        Self::Rebalances,
        Self::DeadLetters,
        Self::BuildInfo,
    ];

    /// The name as it is exposed.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Records => "tallyflow_records_total",
            Self::LedgerResidual => "tallyflow_ledger_residual",
            Self::OutputRecords => "tallyflow_output_records_total",
            Self::CommitDuration => "tallyflow_commit_duration_seconds",
            Self::Transactions => "tallyflow_transactions_total",
            Self::ConsumerLagRecords => "tallyflow_consumer_lag_records",
            Self::ConsumerLagSeconds => "tallyflow_consumer_lag_seconds",
            Self::CompleteThrough => "tallyflow_complete_through_timestamp_seconds",
            Self::RestoreRemaining => "tallyflow_restore_remaining_records",
            Self::SeenIds => "tallyflow_seen_ids",
            Self::SeenHorizon => "tallyflow_seen_horizon_seconds",
            Self::StateBytes => "tallyflow_state_bytes",
            Self::Rebalances => "tallyflow_rebalances_total",
            Self::DeadLetters => "tallyflow_dlq_records_total",
            Self::BuildInfo => "tallyflow_build_info",
        }
    }

    /// What it does over time.
    pub const fn kind(self) -> Kind {
        match self {
            Self::Records
            | Self::OutputRecords
            | Self::Transactions
            | Self::Rebalances
            | Self::DeadLetters => Kind::Counter,
            Self::CommitDuration => Kind::Histogram,
            Self::LedgerResidual
            | Self::ConsumerLagRecords
            | Self::ConsumerLagSeconds
            | Self::CompleteThrough
            | Self::RestoreRemaining
            | Self::SeenIds
            | Self::SeenHorizon
            | Self::StateBytes
            | Self::BuildInfo => Kind::Gauge,
        }
    }

    /// What it counts or measures.
    pub const fn unit(self) -> Unit {
        match self {
            Self::Records | Self::LedgerResidual => Unit::Events,
            Self::OutputRecords | Self::ConsumerLagRecords | Self::RestoreRemaining | Self::DeadLetters => {
                Unit::Records
            }
            Self::CommitDuration | Self::ConsumerLagSeconds | Self::CompleteThrough | Self::SeenHorizon => {
                Unit::Seconds
            }
            Self::SeenIds => Unit::Ids,
            Self::StateBytes => Unit::Bytes,
            Self::Transactions | Self::Rebalances => Unit::Times,
            Self::BuildInfo => Unit::Info,
        }
    }

    /// Its labels, in the order in which the exporter gives their values.
    pub const fn labels(self) -> &'static [Label] {
        match self {
            Self::Records => &[Label::Stage, Label::Verdict],
            Self::OutputRecords => &[Label::Stage, Label::Topic],
            Self::CommitDuration => &[],
            Self::Transactions => &[Label::Stage, Label::Result],
            Self::ConsumerLagRecords => &[Label::Stage, Label::Topic, Label::Partition],
            Self::SeenIds => &[Label::Stage, Label::Tier],
            Self::StateBytes => &[Label::Stage, Label::Store],
            Self::DeadLetters => &[Label::Stage, Label::Category],
            Self::BuildInfo => &[Label::Version],
            Self::LedgerResidual
            | Self::ConsumerLagSeconds
            | Self::CompleteThrough
            | Self::RestoreRemaining
            | Self::SeenHorizon
            | Self::Rebalances => &[Label::Stage],
        }
    }

    /// One line for people.
    pub const fn help(self) -> &'static str {
        match self {
            Self::Records => "Events read by this process, by what became of them",
            Self::LedgerResidual => {
                "Events missing from or added to the books of the tasks here; not 0: something was lost"
            }
            Self::OutputRecords => "Records written by the workers here, by topic",
            Self::CommitDuration => "How long commits took, over all workers here",
            Self::Transactions => "Transactions, by how they ended",
            Self::ConsumerLagRecords => "Offsets between a task's position and the end of its partition",
            Self::ConsumerLagSeconds => {
                "How long the oldest unread record can have waited, in the task that is furthest behind"
            }
            Self::CompleteThrough => {
                "The watermark of the task that is furthest behind; absent while one does not know it"
            }
            Self::RestoreRemaining => "Records still to read before all tasks here are running",
            Self::SeenIds => "Ids remembered by the tasks here",
            Self::SeenHorizon => "How far back copies are recognised, in the task that remembers least",
            Self::StateBytes => "State of the tasks here",
            Self::Rebalances => "Rebalances of the stage's group seen by the workers here",
            Self::DeadLetters => "Records written to the dead letter topic, by reason",
            Self::BuildInfo => "Always 1; says which version runs",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = include_str!("../../../docs/metrics.md");

    fn metric_row(metric: Metric) -> String {
        let labels: Vec<_> = metric.labels().iter().map(|l| format!("`{}`", l.name())).collect();
        format!(
            "| `{}` | {} | {} | {} | {} |",
            metric.name(),
            metric.kind().name(),
            metric.unit().name(),
            labels.join(", "),
            metric.help()
        )
    }

    fn label_row(label: Label) -> Option<String> {
        let values: Vec<_> = label.values().iter().map(|v| format!("`{v}`")).collect();
        (!values.is_empty()).then(|| format!("| `{}` | {} |", label.name(), values.join(", ")))
    }

    fn page_rows(start: &str) -> Vec<&'static str> {
        PAGE.lines().filter(|line| line.starts_with(start)).collect()
    }

    #[test]
    fn the_page_lists_every_metric_and_no_other() {
        let expected: Vec<_> = Metric::ALL.into_iter().map(metric_row).collect();
        assert_eq!(page_rows("| `tallyflow_"), expected);
    }

    #[test]
    fn the_page_lists_every_closed_label() {
        for row in Label::ALL.into_iter().filter_map(label_row) {
            assert!(PAGE.lines().any(|line| line == row), "docs/metrics.md lacks\n{row}");
        }
    }

    #[test]
    fn the_page_lists_the_buckets() {
        let bounds: Vec<_> = COMMIT_SECONDS.iter().map(f64::to_string).collect();
        assert!(PAGE.contains(&bounds.join(", ")), "docs/metrics.md lacks {}", bounds.join(", "));
    }

    #[test]
    fn names_say_kind_and_unit() {
        for metric in Metric::ALL {
            let name = metric.name();
            assert!(name.starts_with("tallyflow_"), "{name}");
            assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{name}");
            assert_eq!(name.ends_with("_total"), metric.kind() == Kind::Counter, "{name}");
            assert_eq!(name.ends_with("_seconds"), metric.unit() == Unit::Seconds, "{name}");
            assert_eq!(name.ends_with("_bytes"), metric.unit() == Unit::Bytes, "{name}");
        }
    }

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = Metric::ALL.iter().map(|metric| metric.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Metric::ALL.len());
    }
}
