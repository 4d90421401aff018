//! The clocks are the log's: cases of rules.md, seconds as in its table.

use super::*;
use tallyflow_core::ids::{Partition, Source, TopicId};
use tallyflow_core::time::Limits;

fn plan() -> ClockPlan {
    ClockPlan {
        inputs: vec!["events".into()],
        settle_lag_ms: 5_000,
        remember_ms: 305_000,
        bucket_ms: 40_000,
        bucket_ids: 1_000,
    }
}

fn section(partition: u32, partitions: u32, from: i64, through: i64, progress_s: i64) -> Section<'static> {
    Section {
        input: "events",
        source: Source { topic_id: TopicId([1; 16]), partition: Partition(partition) },
        source_partitions: partitions,
        from: NextOffset(from),
        through: NextOffset(through),
        progress: Some(TimestampMs(progress_s * 1000)),
        limits: Limits { accept_ms: 300_000, future_ms: 5_000 },
        tallies: Tallies::default(),
        entries: 0,
    }
}

fn turn(standing: &mut Standing, sections: &[Section<'_>], ids: u64) -> Turn {
    for section in sections {
        source_row(standing, section).unwrap();
    }
    let next = NextOffset(standing.through.0 + 1);
    advance(standing, sections, next, ids, &plan())
}

fn complete_s(standing: &Standing) -> Option<i64> {
    standing.complete_through.map(|t| t.0 / 1000)
}

#[test]
fn a_partition_never_heard_from_holds_the_watermark() {
    // T20f: the slowest partition decides.
    let mut standing = fresh(TopicId::ZERO, NextOffset(0));
    turn(&mut standing, &[section(0, 2, 0, 5, 200)], 0);
    assert_eq!(complete_s(&standing), None);
    turn(&mut standing, &[section(1, 2, 0, 5, 100)], 0);
    assert_eq!(complete_s(&standing), Some(95));
    turn(&mut standing, &[section(1, 2, 5, 6, 150)], 0);
    assert_eq!(complete_s(&standing), Some(145));
}

#[test]
fn the_watermark_never_goes_back() {
    let mut standing = fresh(TopicId::ZERO, NextOffset(0));
    turn(&mut standing, &[section(0, 1, 0, 5, 200)], 0);
    // The broker's clock ran back; a partition was added.
    turn(&mut standing, &[section(0, 1, 5, 6, 150)], 0);
    assert_eq!(complete_s(&standing), Some(195));
    turn(&mut standing, &[section(0, 2, 6, 7, 300)], 0);
    assert_eq!(complete_s(&standing), Some(195), "held by the new partition");
    turn(&mut standing, &[section(1, 2, 0, 1, 250)], 0);
    assert_eq!(complete_s(&standing), Some(245));
}

#[test]
fn a_created_again_topic_replaces_the_old_one_and_keeps_its_books() {
    let mut standing = fresh(TopicId::ZERO, NextOffset(0));
    turn(&mut standing, &[section(0, 2, 0, 5, 100), section(1, 2, 0, 5, 100)], 0);
    let new = Section {
        source: Source { topic_id: TopicId([2; 16]), partition: Partition(0) },
        ..section(0, 1, 0, 3, 400)
    };
    turn(&mut standing, &[new], 0);
    assert_eq!((complete_s(&standing), standing.sources.len()), (Some(395), 3));
}

#[test]
fn an_overlap_is_refused_and_a_gap_is_not() {
    let mut standing = fresh(TopicId::ZERO, NextOffset(0));
    source_row(&mut standing, &section(0, 1, 0, 5, 1)).unwrap();
    source_row(&mut standing, &section(0, 1, 7, 9, 1)).unwrap();
    let overlap = source_row(&mut standing, &section(0, 1, 8, 12, 1)).unwrap_err();
    assert_eq!(overlap, Overlap { known: NextOffset(9), from: NextOffset(8) });
}

#[test]
fn buckets_are_forgotten_by_the_complete_clock() {
    let mut standing = fresh(TopicId::ZERO, NextOffset(0));
    turn(&mut standing, &[section(0, 2, 0, 1, 1_000), section(1, 2, 0, 1, 1_000)], 1);
    let closed = turn(&mut standing, &[section(0, 2, 1, 2, 1_040)], 5).closed.unwrap();
    assert_eq!(closed.end, Some((NextOffset(2), TimestampMs(1_040_000))));
    // Partition 1 lags two hours: however new partition 0 is, nothing is forgotten.
    for n in 0..10 {
        let t = turn(&mut standing, &[section(0, 2, 2 + n, 3 + n, 2_000 + 500 * n)], 5);
        assert!(t.forgotten.is_empty());
    }
    let before = standing.horizon.clone();
    let at = turn(&mut standing, &[section(1, 2, 1, 2, 1_040 + 305 + 5)], 5);
    assert_eq!((before, at.forgotten), (vec![], vec![closed.id]));
    // F + U = 1040 + 5, from the next frame on.
    let next = Offset(standing.through.0);
    assert_eq!(horizon_at(&standing, next), Some(TimestampMs(1_045_000)));
    assert_eq!(
        horizon_at(&standing, Offset(next.0 - 1)),
        None,
        "a verdict already given keeps its threshold"
    );
}

#[test]
fn a_fresh_event_is_never_behind_the_horizon() {
    // event_time ≥ append − accept > F + U, whatever progress its own frame brings.
    let mut standing = fresh(TopicId::ZERO, NextOffset(0));
    let mut append_s = 1_000;
    for frame in 0..500i64 {
        let threshold = horizon_at(&standing, Offset(standing.through.0));
        let oldest_fresh = TimestampMs((append_s - 300) * 1000);
        assert!(threshold.is_none_or(|t| oldest_fresh > t), "frame {frame}");
        append_s += frame % 97;
        turn(&mut standing, &[section(0, 1, frame, frame + 1, append_s)], 3);
    }
    assert!(!standing.horizon.is_empty() && standing.horizon.len() < 20, "{}", standing.horizon.len());
}

#[test]
fn a_larger_future_limit_moves_the_threshold_with_it() {
    let mut standing = fresh(TopicId::ZERO, NextOffset(0));
    turn(&mut standing, &[section(0, 1, 0, 1, 1_000)], 5);
    turn(&mut standing, &[section(0, 1, 1, 2, 1_050)], 5);
    turn(&mut standing, &[section(0, 1, 2, 3, 2_000)], 5);
    let old = standing.horizon.last().unwrap().threshold;
    let wider =
        Section { limits: Limits { accept_ms: 300_000, future_ms: 60_000 }, ..section(0, 1, 3, 4, 2_001) };
    turn(&mut standing, &[wider], 0);
    assert_eq!(standing.horizon.last().unwrap().threshold, old.plus(55_000));
}

#[test]
fn full_buckets_close_early() {
    let mut standing = fresh(TopicId::ZERO, NextOffset(0));
    assert!(turn(&mut standing, &[section(0, 1, 0, 1, 1_000)], 999).closed.is_none());
    assert!(turn(&mut standing, &[section(0, 1, 1, 2, 1_000)], 1_000).closed.is_some());
}
