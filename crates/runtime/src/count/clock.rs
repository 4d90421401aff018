//! The clocks of a count task, all of them the log's: append clock, watermark vector, buckets, horizon.
//!
//! ```text
//!  frame: judge its entries ─► hear its sections ─► watermark ─► close the bucket? ─► forget buckets?
//! ```
//!
//! Clocks move *after* a frame's entries were judged. An entry of a frame may be as old as the progress its source
//! had before the frame; judged against the new clocks, a fresh one could fall behind the horizon.
//!
//! Keeps: TM-1 (the watermark never goes back), TM-2 (a function of the frames alone), ID-1 (the horizon rule).

use tallyflow_core::frame::delta::{Bucket, HorizonStep, SourceRow, Standing};
use tallyflow_core::frame::entry::Section;
use tallyflow_core::ids::{NextOffset, Offset};
use tallyflow_core::plan::Plan;
use tallyflow_core::tallies::Tallies;
use tallyflow_core::time::TimestampMs;

/// Buckets that the remembered range is divided into: a forgotten one is an eighth of it.
const BUCKETS: i64 = 8;
/// Ids of an open bucket: bounds of the memory of its table (24 bytes each: 1.5 MiB to 96 MiB).
const BUCKET_IDS: std::ops::RangeInclusive<u64> = 65_536..=4_194_304;

/// What the clocks need to know of the plan.
#[derive(Clone, Debug)]
pub struct ClockPlan {
    inputs: Vec<String>,
    settle_lag_ms: i64,
    remember_ms: i64,
    bucket_ms: i64,
    bucket_ids: u64,
}

impl ClockPlan {
    /// The clocks of a plan. A quarter of the memory is for open buckets, shared by all tasks of the app.
    pub fn of(plan: &Plan) -> Self {
        let share = plan.engine.memory_bytes / 4 / u64::from(plan.entries_partitions.max(1)) / 24;
        Self {
            inputs: plan.inputs.iter().map(|input| input.name.to_string()).collect(),
            settle_lag_ms: plan.limits.settle_lag_ms,
            remember_ms: plan.limits.remember_ms,
            bucket_ms: (plan.limits.remember_ms / BUCKETS).max(1),
            bucket_ids: share.clamp(*BUCKET_IDS.start(), *BUCKET_IDS.end()),
        }
    }
}

/// A section that contradicts what the task knows of its source.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Overlap {
    /// Where the task stands.
    pub known: NextOffset,
    /// Where the section begins.
    pub from: NextOffset,
}

/// The standing of a task that has read nothing yet.
pub fn fresh(topic_id: tallyflow_core::ids::TopicId, start: NextOffset) -> Standing {
    Standing {
        entries_topic_id: topic_id,
        from: start,
        through: start,
        emitted_through: start,
        trim_bound: start,
        buckets: vec![Bucket { id: 0, first: start, end: None }],
        ..Standing::default()
    }
}

/// The horizon threshold for the frame at `offset`: entries with `event_time ≤` it cannot be judged any more.
pub fn horizon_at(standing: &Standing, offset: Offset) -> Option<TimestampMs> {
    let before = standing.horizon.iter().rev().find(|step| step.from.0 <= offset.0);
    before.map(|step| step.threshold)
}

/// The row of a section's source, checked and moved on to the section's end. Its progress is heard by [`advance`].
///
/// # Errors
///
/// An overlap: the section begins before the end of an earlier one (EO-3).
pub fn source_row<'a>(
    standing: &'a mut Standing,
    section: &Section<'_>,
) -> Result<&'a mut SourceRow, Overlap> {
    let known = standing.sources.iter().position(|row| row.source == section.source);
    if known.is_none() {
        retire_older(standing, section);
        standing.sources.push(SourceRow {
            input: section.input.to_owned(),
            source: section.source,
            source_partitions: section.source_partitions,
            through: section.from,
            progress: None,
            tallies: Tallies::default(),
        });
    }
    let at = known.unwrap_or(standing.sources.len() - 1);
    let Some(row) = standing.sources.get_mut(at) else {
        return Err(Overlap { known: NextOffset(-1), from: section.from });
    };
    if section.from < row.through {
        return Err(Overlap { known: row.through, from: section.from });
    }
    row.through = section.through;
    Ok(row)
}

/// A new topic id replaces the input's old one: its rows stay in the books and leave the watermark's domain, which
/// `source_partitions = 0` says.
fn retire_older(standing: &mut Standing, section: &Section<'_>) {
    let older = standing
        .sources
        .iter_mut()
        .filter(|row| row.input == section.input && row.source.topic_id != section.source.topic_id);
    older.for_each(|row| row.source_partitions = 0);
}

/// What the clocks decided after a frame.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Turn {
    /// The open bucket was closed.
    pub closed: Option<Bucket>,
    /// These buckets are forgotten.
    pub forgotten: Vec<u64>,
}

/// Moves the clocks past a frame: `next` is the offset after it, `open_ids` the ids in the open bucket.
pub fn advance(
    standing: &mut Standing,
    sections: &[Section<'_>],
    next: NextOffset,
    open_ids: u64,
    plan: &ClockPlan,
) -> Turn {
    let mut accept_ms = 0;
    for section in sections {
        accept_ms = accept_ms.max(section.limits.accept_ms);
        hear(standing, section, next);
    }
    if let Some(watermark) = watermark(standing, plan) {
        let before = standing.complete_through.unwrap_or(TimestampMs::MIN);
        standing.complete_through = Some(before.max(watermark));
    }
    standing.through = next;
    let closed = close_bucket(standing, next, open_ids, plan);
    let forgotten = forget(standing, next, accept_ms, plan);
    Turn { closed, forgotten }
}

fn hear(standing: &mut Standing, section: &Section<'_>, next: NextOffset) {
    if section.limits.future_ms > standing.future_max_ms {
        let more_ms = section.limits.future_ms - standing.future_max_ms;
        standing.future_max_ms = section.limits.future_ms;
        if let Some(last) = standing.horizon.last().copied() {
            let threshold = last.threshold.plus(more_ms);
            standing.horizon.push(HorizonStep { from: next, threshold });
        }
    }
    let Some(row) = standing.sources.iter_mut().find(|row| row.source == section.source) else {
        return;
    };
    if row.source_partitions != 0 {
        row.source_partitions = section.source_partitions;
    }
    if let Some(progress) = section.progress {
        row.progress = Some(row.progress.map_or(progress, |before| before.max(progress)));
        let clock = standing.append_clock.unwrap_or(TimestampMs::MIN);
        standing.append_clock = Some(clock.max(progress));
    }
}

/// min over the vector − settle_lag; `None` while a partition of its domain was never heard from (R11).
fn watermark(standing: &Standing, plan: &ClockPlan) -> Option<TimestampMs> {
    let mut least: Option<TimestampMs> = None;
    for input in &plan.inputs {
        let rows = || standing.sources.iter().filter(|r| r.input == *input && r.source_partitions != 0);
        let domain = rows().map(|row| row.source_partitions).max()? as usize;
        if rows().count() < domain {
            return None;
        }
        for row in rows() {
            let progress = row.progress?;
            least = Some(least.map_or(progress, |l| l.min(progress)));
        }
    }
    least.map(|time| time.minus(plan.settle_lag_ms))
}

fn close_bucket(
    standing: &mut Standing,
    next: NextOffset,
    open_ids: u64,
    plan: &ClockPlan,
) -> Option<Bucket> {
    let clock = standing.append_clock?;
    let opened_at = *standing.bucket_opened_at.get_or_insert(clock);
    let open = standing.buckets.last_mut().filter(|bucket| bucket.end.is_none())?;
    let full = clock.since(opened_at) >= plan.bucket_ms || open_ids >= plan.bucket_ids;
    if open_ids == 0 || !full {
        return None;
    }
    open.end = Some((next, clock));
    standing.bucket_opened_at = Some(clock);
    let closed = *open;
    standing.buckets.push(Bucket { id: closed.id + 1, first: next, end: None });
    Some(closed)
}

fn forget(standing: &mut Standing, next: NextOffset, accept_ms: i64, plan: &ClockPlan) -> Vec<u64> {
    let Some(complete) = standing.complete_through else {
        return Vec::new();
    };
    let reach_ms = plan.remember_ms.max(accept_ms.saturating_add(standing.future_max_ms));
    let mut forgotten = Vec::new();
    while let Some((bucket, end)) = standing.buckets.first().and_then(|b| Some((*b, b.end?.1))) {
        if complete < end.plus(reach_ms) {
            break;
        }
        forgotten.push(bucket.id);
        standing.buckets.remove(0);
        let threshold = end.plus(standing.future_max_ms);
        let before = standing.horizon.last().map_or(TimestampMs::MIN, |step| step.threshold);
        standing.horizon.push(HorizonStep { from: next, threshold: before.max(threshold) });
    }
    if !forgotten.is_empty() {
        let oldest = standing.buckets.first().map_or(next, |bucket| bucket.first);
        let keep = standing.horizon.iter().rposition(|step| step.from <= oldest).unwrap_or(0);
        standing.horizon.drain(..keep);
    }
    forgotten
}

#[cfg(test)]
#[path = "clock_tests.rs"]
mod tests;
