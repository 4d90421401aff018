//! The page: golden lines, and what must never be on it.

use std::collections::BTreeSet;

use tallyflow_core::tallies::Tallies;
use tallyflow_core::verdict::Category;
use tallyflow_runtime::status::{RestoreStatus, StageName};

use super::*;
use crate::fixtures::{snapshot, task, worker};
use crate::labels::{Label as Name, STAGES};
use crate::snapshot::WorkerView;

fn exporter() -> Exporter {
    Exporter::new("1.2.3").unwrap()
}

fn samples(page: &str) -> BTreeSet<&str> {
    page.lines().filter(|line| !line.starts_with('#')).collect()
}

/// Two workers of count with something in every column.
fn busy() -> Vec<WorkerView> {
    let mut restoring = task("shop.entries-10", 100, 160);
    restoring.restore = Some(RestoreStatus { done: 30, total: 100, eta_seconds: 7 });
    restoring.residual = -2;
    let mut running = task("shop.entries-2", 50, 50);
    (running.seen_hot, running.seen_cold, running.memory_bytes) = (5, 7, 4_096);
    running.seen_horizon_ms = Some(87_000_500);
    let mut one = worker(StageName::Count, 0, vec![restoring]);
    let mut two = worker(StageName::Count, 1, vec![running]);
    for (view, n) in [(&mut one, 1), (&mut two, 10)] {
        let status = view.status.as_mut().unwrap();
        status.verdicts = Tallies {
            admitted: 10 * n,
            counted: 4 * n,
            duplicate: 3 * n,
            conflict: 2 * n,
            late: n,
            ..Tallies::default()
        };
        (status.committed, status.aborted, status.fenced, status.rebalances) = (7 * n, 2 * n, n, 3 * n);
        status.output_records.insert("shop.windows".to_owned(), 6 * n);
        status.dead_letters.insert(Category::IdConflict, 2 * n);
    }
    vec![one, two]
}

#[test]
fn golden_page() {
    let exporter = exporter();
    exporter.commit_seconds().record(0.004);
    exporter.commit_seconds().record(0.25);
    let page = exporter.render(&snapshot(busy()));
    let mut expected: BTreeSet<_> = GOLDEN.lines().collect();
    let zeroes: Vec<_> = Category::ALL
        .iter()
        .filter(|category| **category != Category::IdConflict)
        .map(|c| format!("tallyflow_dlq_records_total{{stage=\"count\",category=\"{}\"}} 0", c.name()))
        .collect();
    expected.extend(zeroes.iter().map(String::as_str));
    let seen = samples(&page);
    let unexpected: Vec<_> = seen.difference(&expected).collect();
    let missing: Vec<_> = expected.difference(&seen).collect();
    assert!(unexpected.is_empty() && missing.is_empty(), "unexpected {unexpected:#?}\nmissing {missing:#?}");
}

const GOLDEN: &str = r#"tallyflow_build_info{version="1.2.3"} 1
tallyflow_records_total{stage="count",verdict="counted"} 44
tallyflow_records_total{stage="count",verdict="duplicate"} 33
tallyflow_records_total{stage="count",verdict="conflict"} 22
tallyflow_records_total{stage="count",verdict="late"} 11
tallyflow_ledger_residual{stage="count"} 2
tallyflow_output_records_total{stage="count",topic="shop.windows"} 66
tallyflow_transactions_total{stage="count",result="committed"} 77
tallyflow_transactions_total{stage="count",result="aborted"} 22
tallyflow_transactions_total{stage="count",result="fenced"} 11
tallyflow_consumer_lag_records{stage="count",topic="shop.entries",partition="2"} 0
tallyflow_consumer_lag_records{stage="count",topic="shop.entries",partition="10"} 60
tallyflow_consumer_lag_seconds{stage="count"} 1.5
tallyflow_complete_through_timestamp_seconds{stage="count"} 1767225593.5
tallyflow_restore_remaining_records{stage="count"} 70
tallyflow_seen_ids{stage="count",tier="hot"} 5
tallyflow_seen_ids{stage="count",tier="cold"} 7
tallyflow_seen_horizon_seconds{stage="count"} 87000.5
tallyflow_state_bytes{stage="count",store="memory"} 4096
tallyflow_rebalances_total{stage="count"} 33
tallyflow_dlq_records_total{stage="count",category="id_conflict"} 22
tallyflow_commit_duration_seconds_bucket{le="0.001"} 0
tallyflow_commit_duration_seconds_bucket{le="0.002"} 0
tallyflow_commit_duration_seconds_bucket{le="0.005"} 1
tallyflow_commit_duration_seconds_bucket{le="0.01"} 1
tallyflow_commit_duration_seconds_bucket{le="0.02"} 1
tallyflow_commit_duration_seconds_bucket{le="0.05"} 1
tallyflow_commit_duration_seconds_bucket{le="0.1"} 1
tallyflow_commit_duration_seconds_bucket{le="0.2"} 1
tallyflow_commit_duration_seconds_bucket{le="0.5"} 2
tallyflow_commit_duration_seconds_bucket{le="1"} 2
tallyflow_commit_duration_seconds_bucket{le="2"} 2
tallyflow_commit_duration_seconds_bucket{le="5"} 2
tallyflow_commit_duration_seconds_bucket{le="10"} 2
tallyflow_commit_duration_seconds_bucket{le="+Inf"} 2
tallyflow_commit_duration_seconds_sum 0.254
tallyflow_commit_duration_seconds_count 2"#;

#[test]
fn m4_histograms_are_buckets_and_not_quantiles() {
    let exporter = exporter();
    exporter.commit_seconds().record(0.004);
    exporter.upkeep();
    let page = exporter.render(&snapshot(busy()));
    assert!(page.contains("# TYPE tallyflow_commit_duration_seconds histogram"), "{page}");
    assert!(page.contains("tallyflow_commit_duration_seconds_bucket{le=\"0.005\"} 1"), "{page}");
    assert!(!page.contains("quantile"), "{page}");
}

#[test]
fn m3_series_that_differ_in_one_value_are_never_merged() {
    let exporter = exporter();
    let mut expected = BTreeSet::new();
    let mut tasks = Vec::new();
    for (t, topic) in ["a", "b", "a.b", "a-b"].iter().enumerate() {
        for p in 0..250 {
            let lag = 1_000 * t as i64 + p;
            tasks.push(task(&format!("{topic}-{p}"), 0, lag));
            for stage in STAGES {
                expected.insert(format!(
                    "tallyflow_consumer_lag_records{{stage=\"{}\",topic=\"{topic}\",partition=\"{p}\"}} {lag}",
                    stage.name()
                ));
            }
        }
    }
    let workers = STAGES.map(|stage| worker(stage, 0, tasks.clone())).to_vec();
    let page = exporter.render(&snapshot(workers));
    let lines: Vec<_> = page.lines().filter(|l| l.starts_with("tallyflow_consumer_lag_records{")).collect();
    assert_eq!(lines.len(), 2_000);
    assert_eq!(lines.into_iter().map(str::to_owned).collect::<BTreeSet<_>>(), expected);
}

#[test]
fn a_task_that_moves_away_leaves_no_lag() {
    let exporter = exporter();
    let before = exporter.render(&snapshot(busy()));
    assert!(before.contains("partition=\"10\"} 60") && before.contains("lag_seconds{stage=\"count\"} 1.5"));
    let mut workers = busy();
    for view in &mut workers {
        view.status.as_mut().unwrap().tasks.clear();
    }
    let after = exporter.render(&snapshot(workers));
    for gone in ["consumer_lag_records", "consumer_lag_seconds", "complete_through", "seen_horizon", "NaN"] {
        assert!(!after.contains(gone), "{gone} in\n{after}");
    }
    for left in ["restore_remaining_records{stage=\"count\"} 0", "seen_ids{stage=\"count\",tier=\"hot\"} 0"] {
        assert!(after.contains(left), "no {left} in\n{after}");
    }
    assert!(after.contains("records_total{stage=\"count\",verdict=\"counted\"} 44"), "counters stay");
    let again = exporter.render(&snapshot(busy()));
    assert_eq!(samples(&again), samples(&before), "shown again when it comes back");
}

#[test]
fn the_page_has_the_labels_that_names_promise() {
    let exporter = exporter();
    let mut workers = busy();
    workers.push(worker(StageName::Intake, 0, vec![task("events-0", 1, 1)]));
    let page = exporter.render(&snapshot(workers));
    for metric in Metric::ALL {
        let typed = format!("# TYPE {} {}", metric.name(), metric.kind().name());
        assert!(page.lines().any(|line| line == typed), "no {typed}");
        assert!(page.contains(&format!("# HELP {} {}", metric.name(), metric.help())));
    }
    for line in samples(&page) {
        let (name, labels) = split(line);
        let metric = Metric::ALL.into_iter().find(|m| name == m.name());
        let metric = metric.unwrap_or(Metric::CommitDuration);
        assert!(name.starts_with(metric.name()), "{line}");
        let promised: Vec<_> = metric.labels().iter().map(|l| l.name()).collect();
        let names: Vec<_> = labels.iter().map(|(n, _)| *n).filter(|n| *n != "le").collect();
        assert_eq!(names, promised, "{line}");
        for (name, value) in labels {
            let values = Name::ALL.into_iter().find(|l| l.name() == name).map_or(vec![], Name::values);
            assert!(values.is_empty() || values.contains(&value), "{line}");
        }
    }
}

fn split(line: &str) -> (&str, Vec<(&str, &str)>) {
    let series = line.rsplit_once(' ').unwrap().0;
    let Some((name, labels)) = series.split_once('{') else {
        return (series, vec![]);
    };
    let labels = labels.trim_end_matches('}').split(',');
    (name, labels.map(|l| l.split_once('=').unwrap()).map(|(n, v)| (n, v.trim_matches('"'))).collect())
}

#[test]
fn label_values_are_escaped() {
    let exporter = Exporter::new("a\"b\\c").unwrap();
    let page = exporter.render(&snapshot(vec![]));
    assert_eq!(samples(&page).first(), Some(&r#"tallyflow_build_info{version="a\"b\\c"} 1"#));
}
