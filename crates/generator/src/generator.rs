//! The records in their order, with the verdict of each booked as it is made.
//!
//! ```text
//!   draw a verdict ──► original n+1, a copy of an earlier one, a conflict, late, future or broken ──► record
//!                                                                     (several in one, when packed)
//! ```
//!
//! Invariants: a conflict follows its original in the same partition, so the original counts; a copy is equal to its
//! original to the byte; everything is made of the seed and counts, never of time.

use rand::rngs::SmallRng;
use rand::{Rng, RngCore, SeedableRng};

use crate::broken;
use crate::expectation::{Expectation, Ledger};
use crate::original::{Original, Originals, below};
use crate::plan::{Plan, PlanError};
use crate::writer::{Writer, push_number};

/// How far back a near copy reaches, in originals.
const NEAR: u64 = 100;
/// A packed record takes no more copies beyond this size; its originals add at most 750 KB (limit: 1 MiB).
const PACKED_BYTES: usize = 256 * 1024;

/// One record to produce.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Generated {
    /// Partition to produce to; none where the plan names no partitions: then the key decides.
    pub partition_hint: Option<u32>,
    /// Record key: the counter of the (first) event, with another ending for copies that must go elsewhere by key.
    pub key: Option<Vec<u8>>,
    /// Record value; none is a null value.
    pub value: Option<Vec<u8>>,
    /// Events in it; a broken record is one.
    pub events: u32,
    /// Time at which the record would be appended at the plan's rate, in epoch milliseconds; never goes back.
    pub clock_ms: i64,
    /// Oldest event time in it; none in broken records.
    pub oldest_event_ms: Option<i64>,
    /// Newest event time in it; none in broken records.
    pub newest_event_ms: Option<i64>,
}

/// What the next event shall be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Draw {
    Fresh,
    Near,
    Far,
    Conflict,
    Late,
    Future,
    Undecodable,
    Null,
}

/// Generates a plan's records; an iterator.
#[derive(Debug)]
pub struct Generator {
    plan: Plan,
    originals: Originals,
    writer: Writer,
    rng: SmallRng,
    ledger: Ledger,
    /// Number of the next original.
    next: u64,
    /// Upper bounds of the verdicts' shares, in the order of `Plan::verdict_shares`.
    bounds: [(f64, Draw); 7],
}

impl Generator {
    /// A generator at its beginning.
    ///
    /// # Errors
    /// The plan is out of range or could not be exact.
    pub fn new(plan: Plan) -> Result<Self, PlanError> {
        plan.check()?;
        let draws =
            [Draw::Near, Draw::Far, Draw::Conflict, Draw::Late, Draw::Future, Draw::Undecodable, Draw::Null];
        let mut bounds = draws.map(|draw| (0.0, draw));
        let mut sum = 0.0;
        for (bound, share) in bounds.iter_mut().zip(plan.verdict_shares()) {
            sum += share;
            bound.0 = sum;
        }
        Ok(Self {
            originals: Originals::new(plan.clone()),
            writer: Writer::new(&plan),
            rng: SmallRng::seed_from_u64(plan.seed),
            ledger: Ledger::new(&plan),
            next: 0,
            bounds,
            plan,
        })
    }

    /// The plan it follows.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// What must come out of everything generated so far. Costs a pass over all windows.
    #[must_use]
    pub fn expectation(&self) -> Expectation {
        self.ledger.expectation(&self.plan)
    }

    fn is_done(&self) -> bool {
        self.ledger.tallies.received >= self.plan.events
    }

    fn draw(&mut self) -> Draw {
        let at: f64 = self.rng.random();
        let found = self.bounds.iter().find(|(bound, _)| at < *bound);
        let draw = found.map_or(Draw::Fresh, |(_, draw)| *draw);
        let needs_original = matches!(draw, Draw::Near | Draw::Far | Draw::Conflict);
        if needs_original && self.next == 0 { Draw::Fresh } else { draw }
    }

    fn single(&mut self) -> Generated {
        let draw = self.draw();
        let mut record = self.empty();
        match draw {
            Draw::Undecodable => {
                let (choice, number) = (self.rng.next_u32(), self.rng.next_u64());
                record.value = Some(broken::value(choice, number, record.clock_ms));
                self.address_anywhere(&mut record);
                self.ledger.tallies.undecodable += 1;
                self.book_invalid();
            }
            Draw::Null => {
                self.address_anywhere(&mut record);
                self.ledger.tallies.null_values += 1;
                self.book_invalid();
            }
            _ => {
                let mut value = Vec::with_capacity(192);
                let original = self.write_event(draw, 0, &mut value, &mut record);
                let is_copy = matches!(draw, Draw::Near | Draw::Far);
                let elsewhere = is_copy && self.rng.random_bool(self.plan.elsewhere);
                self.address(&original, elsewhere, &mut record);
                record.value = Some(value);
            }
        }
        record.events = 1;
        record
    }

    /// A packed record: a block of originals, with copies, conflicts and broken events among them.
    fn packed(&mut self) -> Generated {
        let mut record = self.empty();
        let first = self.next;
        let end = first + u64::from(self.plan.packed_events);
        let leader = self.originals.get(first);
        self.address(&leader, false, &mut record);
        let mut value = Vec::with_capacity(192 * self.plan.packed_events as usize);
        value.extend_from_slice(b"{\"events\":[");
        while self.next < end && !self.is_done() {
            if record.events > 0 {
                value.push(b',');
            }
            let full = value.len() > PACKED_BYTES || record.events > 4 * self.plan.packed_events;
            let draw = if full { Draw::Fresh } else { self.draw() };
            match draw {
                Draw::Undecodable | Draw::Null => {
                    let (choice, number) = (self.rng.next_u32(), self.rng.next_u64());
                    broken::write_object(choice, number, record.clock_ms, &mut value);
                    self.ledger.tallies.undecodable += 1;
                    self.book_invalid();
                }
                // Its original must come before it in this partition: in this record.
                Draw::Conflict if self.next == first => {
                    self.write_event(Draw::Fresh, first, &mut value, &mut record);
                }
                draw => {
                    self.write_event(draw, first, &mut value, &mut record);
                }
            }
            record.events += 1;
        }
        value.extend_from_slice(b"]}");
        // Appended when its last event has happened.
        record.clock_ms = self.plan.clock_ms(self.next.saturating_sub(1));
        record.value = Some(value);
        record
    }

    /// Writes and books one well-typed event; a conflict's original is `oldest_conflict` or later.
    fn write_event(
        &mut self,
        draw: Draw,
        oldest_conflict: u64,
        value: &mut Vec<u8>,
        record: &mut Generated,
    ) -> Original {
        let (event, kind_of_id) = match draw {
            Draw::Near => (self.earlier(NEAR, 0), ""),
            Draw::Far => (self.earlier(u64::MAX, 0), ""),
            Draw::Conflict => (self.conflict(oldest_conflict), ""),
            Draw::Late => (self.outside(true), "late-"),
            Draw::Future => (self.outside(false), "future-"),
            Draw::Fresh | Draw::Undecodable | Draw::Null => {
                let fresh = self.originals.get(self.next);
                self.next += 1;
                (fresh, "")
            }
        };
        self.book(draw, &event);
        self.writer.write(&event, kind_of_id, value);
        record.oldest_event_ms =
            Some(record.oldest_event_ms.map_or(event.event_time_ms, |ms| ms.min(event.event_time_ms)));
        record.newest_event_ms = record.newest_event_ms.max(Some(event.event_time_ms));
        event
    }

    fn book(&mut self, draw: Draw, event: &Original) {
        let tallies = &mut self.ledger.tallies;
        tallies.received += 1;
        match draw {
            Draw::Near | Draw::Far => tallies.duplicate += 1,
            Draw::Conflict => tallies.conflict += 1,
            Draw::Late => tallies.late += 1,
            Draw::Future => tallies.future += 1,
            Draw::Fresh | Draw::Undecodable | Draw::Null => self.ledger.count(event, self.plan.window_ms),
        }
    }

    fn book_invalid(&mut self) {
        self.ledger.tallies.received += 1;
        self.ledger.tallies.invalid += 1;
    }

    /// One of the last `reach` originals that are still well inside the limits, from `oldest` on.
    fn earlier(&mut self, reach: u64, oldest: u64) -> Original {
        let reach = reach.min(self.plan.reach()).min(self.next.saturating_sub(oldest)).max(1);
        let back = self.rng.random_range(1..=reach);
        self.originals.get(self.next.saturating_sub(back))
    }

    /// An earlier original with another delta.
    fn conflict(&mut self, oldest: u64) -> Original {
        let reach = if self.rng.random_bool(0.5) { NEAR } else { u64::MAX };
        let mut event = self.earlier(reach, oldest);
        event.delta += self.rng.random_range(1..=9);
        event
    }

    /// An event beyond the time limits, wherever in the run it is appended.
    fn outside(&mut self, is_late: bool) -> Original {
        let margin_ms = self.plan.margin_ms;
        let beyond_ms = margin_ms + self.rng.random_range(0..margin_ms);
        let mut event = self.originals.get(self.rng.next_u64() >> 1);
        event.event_time_ms = if is_late {
            self.plan.start_ms - self.plan.accept_ms - beyond_ms
        } else {
            self.plan.end_ms() + self.plan.future_ms + beyond_ms
        };
        event.number = self.ledger.tallies.received;
        event
    }

    fn empty(&self) -> Generated {
        Generated {
            partition_hint: None,
            key: None,
            value: None,
            events: 0,
            clock_ms: self.plan.clock_ms(self.next),
            oldest_event_ms: None,
            newest_event_ms: None,
        }
    }

    /// Addresses a record to its original's partition, or to another one.
    fn address(&mut self, original: &Original, elsewhere: bool, record: &mut Generated) {
        let leader = self.originals.leader(original);
        let mut key = b"counter-".to_vec();
        push_number(&mut key, leader.counter);
        record.partition_hint = self.originals.home(original);
        match (record.partition_hint, self.plan.partitions) {
            (Some(home), Some(partitions)) if elsewhere && partitions > 1 => {
                let further = 1 + below(self.rng.next_u32(), u64::from(partitions - 1)) as u32;
                record.partition_hint =
                    Some(((u64::from(home) + u64::from(further)) % u64::from(partitions)) as u32);
            }
            (None, None) if elsewhere => {
                key.push(b'~');
                push_number(&mut key, self.rng.next_u32() % 64);
            }
            _ => {}
        }
        record.key = Some(key);
    }

    fn address_anywhere(&mut self, record: &mut Generated) {
        record.partition_hint =
            self.plan.partitions.map(|partitions| below(self.rng.next_u32(), u64::from(partitions)) as u32);
        record.key = self.rng.random_bool(0.5).then(|| b"broken".to_vec());
    }
}

impl Iterator for Generator {
    type Item = Generated;

    fn next(&mut self) -> Option<Generated> {
        if self.is_done() {
            return None;
        }
        self.ledger.tallies.records += 1;
        let begins_block = self.next.is_multiple_of(u64::from(self.plan.packed_events));
        let record =
            if begins_block && self.originals.is_packed(self.next) { self.packed() } else { self.single() };
        Some(record)
    }
}
