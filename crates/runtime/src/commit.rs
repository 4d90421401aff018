//! The commit: the one place that knows its order.
//!
//! ```text
//!  1 take what is due: frames, rows, ledger, dead letters
//!  2 produce it in the open transaction
//!  3 send the input offset of every task the transaction speaks for, with fresh group metadata
//!  4 commit the transaction
//!  5 only now: apply what was provisional to local state
//!  6 tell the observer (the worker does)
//! ```
//!
//! Keeps: EO-1 (step 5 is after step 4), EO-2 (steps 2 and 3 are in one transaction).
//!
//! A crash before 4: nothing happened. Between 4 and 5: local state lags and catches up from the log. Errors have
//! three reactions: retry the same call here, close dirty or halt in the worker.

use std::time::{Duration, Instant};

use crate::outbox::Outbox;
use crate::ports::{Now, PortError, Reaction, SentOffset, StreamLog};
use crate::stage::Stage;

/// What a commit did.
#[derive(Debug, Default)]
pub struct Committed {
    /// Whether there was a transaction at all.
    pub transaction: bool,
    /// What it wrote.
    pub outbox: Outbox,
}

/// Commits everything that is due. `last` is a drain.
///
/// # Errors
///
/// Never [`Reaction::Retry`]. After [`Reaction::Abort`] and [`Reaction::Fenced`] the caller closes dirty.
pub fn commit(
    log: &mut dyn StreamLog,
    stage: &mut dyn Stage,
    now: Now,
    last: bool,
) -> Result<Committed, PortError> {
    let offsets = stage.offsets();
    if offsets.is_empty() {
        return Ok(Committed::default());
    }
    let mut outbox = Outbox::default();
    // 1
    stage.take_due(now, last, &mut outbox)?;
    // 2
    insist(&mut || log.begin())?;
    for outgoing in outbox.records() {
        insist(&mut || log.send(&outgoing.topic, outgoing.partition, &outgoing.record))?;
    }
    // 3
    send_offsets(log, &offsets)?;
    // 4
    insist(&mut || log.commit())?;
    // 5: before this line nothing of the transaction may touch local state.
    stage.committed(now)?;
    Ok(Committed { transaction: true, outbox })
}

/// Step 3. The call is not resumable, so a retriable failure closes dirty instead.
fn send_offsets(log: &mut dyn StreamLog, offsets: &[SentOffset]) -> Result<(), PortError> {
    if log.assignment_lost() {
        return Err(PortError::new(Reaction::Abort, "the group took our partitions away before the commit"));
    }
    log.send_offsets(offsets).map_err(|error| match error.reaction {
        Reaction::Retry => PortError { reaction: Reaction::Abort, ..error },
        _ => error,
    })
}

/// Repeats one and the same call while it says [`Reaction::Retry`]; every port call is bounded in time itself.
///
/// # Errors
///
/// The first error that is not a retry; a retry that goes on beyond a minute's worth of attempts closes dirty.
pub fn insist<T>(call: &mut dyn FnMut() -> Result<T, PortError>) -> Result<T, PortError> {
    for attempt in 0..RETRY_LIMIT {
        let started = Instant::now();
        match call() {
            Err(error) if error.reaction == Reaction::Retry => {
                if attempt % 10 == 0 {
                    tracing::warn!(attempt, "{error}; trying again");
                }
                std::thread::sleep(ATTEMPT.saturating_sub(started.elapsed()));
            }
            other => return other,
        }
    }
    call().map_err(|error| match error.reaction {
        Reaction::Retry => PortError { reaction: Reaction::Fenced, ..error },
        _ => error,
    })
}

/// Attempts of one call: a minute, since an attempt takes half a second at least.
const RETRY_LIMIT: u32 = 120;
/// Shortest time of an attempt that did not succeed: a call that comes back at once must not be a busy loop.
const ATTEMPT: Duration = Duration::from_millis(500);

#[cfg(test)]
#[path = "commit_tests.rs"]
mod tests;
