//! The Prometheus side: a recorder of our own, handles made once, and the page.
//!
//! The recorder is not installed globally and has no listener: only what [`Metric`] names can appear on the page.
//! Every histogram has explicit buckets, as a summary cannot be added up over processes. Samples are kept until
//! [`Exporter::upkeep`] folds them into buckets: somebody has to call it on a timer (the HTTP thread does).
//!
//! A gauge without a value is set to NaN and its line is left out of the page, so a partition that moved to another
//! process is shown by that process alone. `idle_timeout` is not used: it detaches handles that are still held.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use metrics::{Counter, Gauge, Histogram, Key, Label, Level, Metadata, Recorder};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder};
use tallyflow_core::verdict::Category;
use tallyflow_runtime::status::StageName;

use crate::TelemetryError;
use crate::labels::{Outcome, Store, Tier, TransactionResult};
use crate::names::{COMMIT_SECONDS, Kind, Metric, Unit};
use crate::snapshot::Snapshot;
use crate::totals::{StageGauges, StageTotals};

static METADATA: Metadata<'static> = Metadata::new(module_path!(), Level::INFO, Some(module_path!()));

/// The metrics of a process. Clones share everything.
#[derive(Clone)]
pub struct Exporter {
    shared: Arc<Shared>,
}

struct Shared {
    recorder: PrometheusRecorder,
    page: PrometheusHandle,
    commit_seconds: Histogram,
    stages: Mutex<BTreeMap<StageName, StageSeries>>,
}

impl Exporter {
    /// An exporter that says this version runs.
    ///
    /// # Errors
    ///
    /// [`TelemetryError::Exporter`] where the library refuses the buckets.
    pub fn new(version: &str) -> Result<Self, TelemetryError> {
        let commit = Matcher::Full(Metric::CommitDuration.name().to_owned());
        let recorder = PrometheusBuilder::new()
            .set_buckets(&COMMIT_SECONDS)?
            .set_buckets_for_metric(commit, &COMMIT_SECONDS)?
            .build_recorder();
        for metric in Metric::ALL {
            describe(&recorder, metric);
        }
        gauge(&recorder, Metric::BuildInfo, &[version]).set(1.0);
        let commit_seconds = recorder.register_histogram(&key(Metric::CommitDuration, &[]), &METADATA);
        let page = recorder.handle();
        let shared = Shared { recorder, page, commit_seconds, stages: Mutex::default() };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// The handle of `commit_duration_seconds`, to be recorded once per commit.
    pub fn commit_seconds(&self) -> Histogram {
        self.shared.commit_seconds.clone()
    }

    /// Folds the samples of histograms into their buckets. Without it they pile up: 16 bytes each.
    pub fn upkeep(&self) {
        self.shared.page.run_upkeep();
    }

    /// Sets every series from what the board knows and returns the page, in Prometheus' text format 0.0.4.
    pub fn render(&self, snapshot: &Snapshot) -> String {
        let mut stages = self.shared.stages.lock().unwrap_or_else(PoisonError::into_inner);
        for stage in snapshot.stages() {
            let series =
                stages.entry(stage).or_insert_with(|| StageSeries::new(&self.shared.recorder, stage));
            if let Some(totals) = snapshot.totals.get(&stage) {
                series.count(&self.shared.recorder, totals);
            }
            series.set(&self.shared.recorder, &StageGauges::of(snapshot, stage));
        }
        without_unknown(&self.shared.page.render())
    }
}

/// The series of one stage. Those with a closed list of labels are made at once, so that the first increment is seen
/// as one.
struct StageSeries {
    stage: StageName,
    records: Vec<(Outcome, Counter)>,
    transactions: Vec<(TransactionResult, Counter)>,
    dead_letters: Vec<(Category, Counter)>,
    rebalances: Counter,
    output_records: BTreeMap<String, Counter>,
    lag_records: BTreeMap<(String, u32), Gauge>,
    lag_seconds: Gauge,
    complete_through: Gauge,
    restore_remaining: Gauge,
    residual: Gauge,
    memory_bytes: Gauge,
    seen: Option<SeenSeries>,
}

/// What only a stage that remembers ids has.
struct SeenSeries {
    hot: Gauge,
    cold: Gauge,
    horizon: Gauge,
}

impl StageSeries {
    fn new(recorder: &PrometheusRecorder, stage: StageName) -> Self {
        let name = stage.name();
        let plain = |metric| gauge(recorder, metric, &[name]);
        let records =
            |outcome: &Outcome| (*outcome, counter(recorder, Metric::Records, &[name, outcome.name()]));
        let transactions = |result: TransactionResult| {
            (result, counter(recorder, Metric::Transactions, &[name, result.name()]))
        };
        let dead_letters =
            |category: Category| (category, counter(recorder, Metric::DeadLetters, &[name, category.name()]));
        Self {
            stage,
            records: Outcome::of_stage(stage).iter().map(records).collect(),
            transactions: TransactionResult::ALL.into_iter().map(transactions).collect(),
            dead_letters: Category::ALL.into_iter().map(dead_letters).collect(),
            rebalances: counter(recorder, Metric::Rebalances, &[name]),
            output_records: BTreeMap::new(),
            lag_records: BTreeMap::new(),
            lag_seconds: plain(Metric::ConsumerLagSeconds),
            complete_through: plain(Metric::CompleteThrough),
            restore_remaining: plain(Metric::RestoreRemaining),
            residual: plain(Metric::LedgerResidual),
            memory_bytes: gauge(recorder, Metric::StateBytes, &[name, Store::Memory.name()]),
            seen: (stage == StageName::Count).then(|| SeenSeries::new(recorder, name)),
        }
    }

    /// Counters never go back: the greater of old and new stays, whoever comes last.
    fn count(&mut self, recorder: &PrometheusRecorder, totals: &StageTotals) {
        for (outcome, counter) in &self.records {
            counter.absolute(outcome.tally(&totals.verdicts));
        }
        for (result, counter) in &self.transactions {
            counter.absolute(match result {
                TransactionResult::Committed => totals.committed,
                TransactionResult::Aborted => totals.aborted,
                TransactionResult::Fenced => totals.fenced,
            });
        }
        for (category, counter) in &self.dead_letters {
            counter.absolute(totals.dead_letters.get(category).copied().unwrap_or(0));
        }
        self.rebalances.absolute(totals.rebalances);
        for (topic, records) in &totals.output_records {
            if !self.output_records.contains_key(topic) {
                let labels = [self.stage.name(), topic];
                let made = counter(recorder, Metric::OutputRecords, &labels);
                self.output_records.insert(topic.clone(), made);
            }
            if let Some(counter) = self.output_records.get(topic) {
                counter.absolute(*records);
            }
        }
    }

    fn set(&mut self, recorder: &PrometheusRecorder, gauges: &StageGauges) {
        for partition in gauges.lag_records.keys() {
            if !self.lag_records.contains_key(partition) {
                let (topic, number) = partition;
                let labels = [self.stage.name(), topic, &number.to_string()];
                let made = gauge(recorder, Metric::ConsumerLagRecords, &labels);
                self.lag_records.insert(partition.clone(), made);
            }
        }
        // Every partition that was ever here: one that is gone loses its value.
        for (partition, gauge) in &self.lag_records {
            gauge.set(known(gauges.lag_records.get(partition).map(|lag| *lag as f64)));
        }
        self.lag_seconds.set(known(gauges.lag_seconds));
        self.complete_through.set(known(gauges.complete_through_seconds));
        self.restore_remaining.set(gauges.restore_remaining as f64);
        self.residual.set(gauges.residual as f64);
        self.memory_bytes.set(gauges.memory_bytes as f64);
        if let Some(seen) = &self.seen {
            seen.hot.set(gauges.seen_hot as f64);
            seen.cold.set(gauges.seen_cold as f64);
            seen.horizon.set(known(gauges.seen_horizon_seconds));
        }
    }
}

impl SeenSeries {
    fn new(recorder: &PrometheusRecorder, stage: &str) -> Self {
        Self {
            hot: gauge(recorder, Metric::SeenIds, &[stage, Tier::Hot.name()]),
            cold: gauge(recorder, Metric::SeenIds, &[stage, Tier::Cold.name()]),
            horizon: gauge(recorder, Metric::SeenHorizon, &[stage]),
        }
    }
}

fn known(value: Option<f64>) -> f64 {
    value.unwrap_or(f64::NAN)
}

/// Drops the samples that have no value, and the comments of a metric that has no samples left.
fn without_unknown(page: &str) -> String {
    let mut kept = String::with_capacity(page.len());
    let mut comments = String::new();
    for line in page.lines() {
        if line.starts_with("# HELP ") {
            comments.clear();
        }
        if line.starts_with('#') {
            comments.push_str(line);
            comments.push('\n');
        } else if !line.is_empty() && !line.ends_with(" NaN") {
            kept.push_str(&comments);
            comments.clear();
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

fn describe(recorder: &PrometheusRecorder, metric: Metric) {
    let unit = match metric.unit() {
        Unit::Seconds => metrics::Unit::Seconds,
        Unit::Bytes => metrics::Unit::Bytes,
        Unit::Events | Unit::Records | Unit::Ids | Unit::Times | Unit::Info => metrics::Unit::Count,
    };
    let (name, unit, help) = (metric.name().into(), Some(unit), metric.help().into());
    match metric.kind() {
        Kind::Counter => recorder.describe_counter(name, unit, help),
        Kind::Gauge => recorder.describe_gauge(name, unit, help),
        Kind::Histogram => recorder.describe_histogram(name, unit, help),
    }
}

fn key(metric: Metric, values: &[&str]) -> Key {
    let labels: Vec<_> = metric
        .labels()
        .iter()
        .zip(values)
        .map(|(label, value)| Label::new(label.name(), (*value).to_owned()))
        .collect();
    Key::from_parts(metric.name(), labels)
}

fn counter(recorder: &PrometheusRecorder, metric: Metric, values: &[&str]) -> Counter {
    recorder.register_counter(&key(metric, values), &METADATA)
}

fn gauge(recorder: &PrometheusRecorder, metric: Metric, values: &[&str]) -> Gauge {
    recorder.register_gauge(&key(metric, values), &METADATA)
}

#[cfg(test)]
#[path = "exporter_tests.rs"]
mod tests;
