//! The verdict of each entry of a frame.
//!
//! The horizon rule comes first and looks nothing up: an entry that cannot be judged any more must not leave a
//! sighting either, or a replay with other buckets would answer differently. All other entries are sighted, in the
//! order of the log (R13), whatever the answer: the oldest remembered sighting answers (R5).

use tallyflow_core::event::Kind;
use tallyflow_core::frame::entry::Entry;
use tallyflow_core::ids::{Identity, PayloadCheck};
use tallyflow_core::processor::{Consumed, Processor, SeenIds, Sighting, StateUnavailable};
use tallyflow_core::time::TimestampMs;
use tallyflow_core::verdict::Verdict;

/// What dedup reads: the entries of one frame.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// In the order of the log.
    pub entries: &'a [Entry],
    /// F + U at the frame's offset: entries with `event_time ≤` it cannot be judged any more. `None` while nothing
    /// has been forgotten.
    pub horizon: Option<TimestampMs>,
}

/// What dedup says of a frame.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Judged {
    /// One verdict for each entry, in order: `Counted`, `Duplicate`, `Conflict` or `Late` (by the horizon).
    pub verdicts: Vec<Verdict>,
    /// Set where the frame holds what this version cannot process: nothing was sighted, there are no verdicts, and
    /// nothing of the frame may be committed.
    pub refused: Option<Refusal>,
}

/// An entry of a kind that a later version writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// Its position in the frame.
    pub position: usize,
    /// Its kind.
    pub kind: Kind,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { position, kind } = self;
        write!(f, "entry {position} of the frame is of the kind {kind:?}, written by a later version")
    }
}

/// Dedup's processor. Holds nothing but buffers.
#[derive(Debug, Default)]
pub struct Dedup {
    ids: Vec<(Identity, PayloadCheck)>,
    answers: Vec<Sighting>,
}

impl Dedup {
    /// A dedup with empty buffers.
    pub const fn new() -> Self {
        Self { ids: Vec::new(), answers: Vec::new() }
    }
}

impl Processor for Dedup {
    type Batch<'a> = Frame<'a>;
    type View<'a> = &'a mut dyn SeenIds;
    /// Replaced by each call.
    type Effects<'a> = &'a mut Judged;

    /// Judges a frame. `now` is not looked at: a verdict is the log's.
    ///
    /// # Errors
    ///
    /// Where the seen ids could not be read, or did not answer for every id.
    fn process(
        &mut self,
        frame: Self::Batch<'_>,
        view: Self::View<'_>,
        _now: TimestampMs,
        judged: Self::Effects<'_>,
    ) -> Result<Consumed, StateUnavailable> {
        judged.verdicts.clear();
        judged.refused = refusal(frame.entries);
        if judged.refused.is_some() {
            return Ok(Consumed::All);
        }
        self.ids.clear();
        self.answers.clear();
        let judgeable = frame.entries.iter().filter(|entry| !is_beyond(entry, frame.horizon));
        self.ids.extend(judgeable.map(|entry| (entry.identity, entry.check)));
        view.sight(&self.ids, &mut self.answers)?;
        if self.answers.len() != self.ids.len() {
            return Err(StateUnavailable("the seen ids did not answer for every id".to_owned()));
        }
        let mut answers = self.answers.iter();
        judged.verdicts.extend(frame.entries.iter().map(|entry| {
            if is_beyond(entry, frame.horizon) {
                return Verdict::Late;
            }
            match answers.next() {
                Some(Sighting::First) => Verdict::Counted,
                Some(Sighting::Different) => Verdict::Conflict,
                // `None` cannot be: there is an answer for each judgeable entry.
                Some(Sighting::Same) | None => Verdict::Duplicate,
            }
        }));
        Ok(Consumed::All)
    }
}

/// The first entry that this version does not process.
fn refusal(entries: &[Entry]) -> Option<Refusal> {
    let position = entries.iter().position(|entry| entry.kind != Kind::Add)?;
    entries.get(position).map(|entry| Refusal { position, kind: entry.kind })
}

/// The horizon rule: whether a first copy of this entry may lie in a forgotten bucket.
fn is_beyond(entry: &Entry, horizon: Option<TimestampMs>) -> bool {
    horizon.is_some_and(|threshold| entry.event_time <= threshold)
}
