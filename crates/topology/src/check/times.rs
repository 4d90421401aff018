//! Times that have to fit together (R3, R9): limits, windows, commits, retries.
//!
//! Must not know: bounds of single keys; the table of keys has them.

use crate::codes::Code;
use crate::keys::SLICE_MIN_MS;
use crate::place::{Placed, Report};
use crate::units::duration_text;
use crate::written::{Window, Written};

/// A transaction must be able to hold this many commit intervals: one to collect, one to commit, one of slack.
const INTERVALS_IN_TRANSACTION: i64 = 3;

/// Checks all times.
pub(super) fn check(written: &Written, report: &mut Report<'_>) {
    remember(written, report);
    slice(written, report);
    for window in &written.count.windows {
        grace(written, window, report);
    }
    keep(written, report);
    commit(written, report);
    retries(written, report);
}

/// D ≥ accept + future (R3): two copies that both are admitted are appended at most that far apart.
fn remember(written: &Written, report: &mut Report<'_>) {
    let limits = &written.limits;
    let (Some(accept), Some(future), Some(remember)) =
        (&limits.accept_ms, &limits.future_ms, &limits.remember_ms)
    else {
        return;
    };
    let needed_ms = accept.value.saturating_add(future.value);
    if remember.value < needed_ms {
        let message = format!(
            "`limits.remember` is {}, shorter than accept + future = {}: copies could count twice",
            duration_text(remember.value),
            duration_text(needed_ms),
        );
        let help = format!("write at least \"{}\", or leave it out", duration_text(needed_ms));
        report.add(remember.at, Code::RememberTooShort, message, help);
    }
}

fn slice(written: &Written, report: &mut Report<'_>) {
    let count = &written.count;
    let Some(slice) = count.slice_or_default() else {
        return;
    };
    if count.slice_ms.is_none() && slice.ms() < SLICE_MIN_MS {
        let Some(at) = count.windows.first().and_then(|window| window.size_ms.as_ref()) else {
            return;
        };
        let message = format!(
            "the longest slice that divides every window is {}, shorter than {}",
            duration_text(slice.ms()),
            duration_text(SLICE_MIN_MS),
        );
        report.add(at.at, Code::SliceMismatch, message, "make every size a multiple of a second");
        return;
    }
    for window in &count.windows {
        let Some(size) = &window.size_ms else {
            continue;
        };
        if size.value.checked_rem(slice.ms()) != Some(0) {
            let message = format!(
                "window `{}` is {} long, which is not a whole number of slices of {}",
                window.name.value,
                duration_text(size.value),
                duration_text(slice.ms()),
            );
            let help = "change the size, or leave `slice` out of [stage.count]";
            report.add(size.at, Code::SliceMismatch, message, help);
        }
    }
}

fn grace(written: &Written, window: &Window, report: &mut Report<'_>) {
    let (Some(accept), Some(grace)) = (&written.limits.accept_ms, &window.grace_ms) else {
        return;
    };
    if grace.value > accept.value {
        let message = format!(
            "window `{}` waits {} for events, but they are accepted for {} only",
            window.name.value,
            duration_text(grace.value),
            duration_text(accept.value),
        );
        let help = format!("write at most \"{}\", or raise `accept`", duration_text(accept.value));
        report.add(grace.at, Code::GraceTooLong, message, help);
    }
}

/// A cell must outlive the last event that may be admitted for it.
fn keep(written: &Written, report: &mut Report<'_>) {
    let (Some(accept), Some(keep)) = (&written.limits.accept_ms, &written.count.keep_ms) else {
        return;
    };
    let needed = |window: &Window| -> Option<(i64, usize)> {
        let (size, grace) = (window.size_ms.as_ref()?, window.grace_ms.as_ref()?);
        Some((accept.value.saturating_add(grace.value).saturating_add(size.value), size.at))
    };
    let Some((needed_ms, size_at)) = written.count.windows.iter().filter_map(needed).max() else {
        return;
    };
    if keep.value < needed_ms {
        let message = format!(
            "`stage.count.keep` is {}, shorter than accept + grace + size of the longest window = {}",
            duration_text(keep.value),
            duration_text(needed_ms),
        );
        // A default has no place of its own: the window that asks for more has.
        let at = if keep.written { keep.at } else { size_at };
        let help = format!("write keep = \"{}\" or more in [stage.count]", duration_text(needed_ms));
        report.add(at, Code::KeepTooShort, message, help);
    }
}

fn commit(written: &Written, report: &mut Report<'_>) {
    let engine = &written.engine;
    let (Some(interval), Some(timeout)) = (&engine.commit_interval_ms, &engine.transaction_timeout_ms) else {
        return;
    };
    let most_ms = timeout.value / INTERVALS_IN_TRANSACTION;
    if interval.value > most_ms {
        let message = format!(
            "`engine.commit_interval` is {}, more than a third of transaction_timeout = {}",
            duration_text(interval.value),
            duration_text(timeout.value),
        );
        let help = format!("write at most \"{}\", or raise transaction_timeout", duration_text(most_ms));
        report.add(written_of(interval, timeout), Code::CommitTooSlow, message, help);
    }
}

fn retries(written: &Written, report: &mut Report<'_>) {
    let (Some(base), Some(cap)) = (&written.failures.base_ms, &written.failures.cap_ms) else {
        return;
    };
    if cap.value < base.value {
        let message = format!(
            "`failures.cap` is {}, shorter than base = {}",
            duration_text(cap.value),
            duration_text(base.value),
        );
        let help = "the longest delay cannot be shorter than the first one";
        report.add(written_of(cap, base), Code::CapBelowBase, message, help);
    }
}

/// The place of the first one that is written: a default cannot be pointed at.
fn written_of<T>(first: &Placed<T>, second: &Placed<T>) -> usize {
    if first.written || !second.written { first.at } else { second.at }
}
