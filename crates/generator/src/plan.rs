//! What is to be generated, and the checks that keep it exact.
//!
//! Shares are fractions of one. Those of the verdicts (near, far, conflicts, late, future, undecodable, null) are of
//! all events and add up to less than one: the rest are originals. Those of out-of-order, negative and packed events
//! are of the originals. Times are milliseconds, epoch times UTC.

/// Least distance of late and future events from their limits: an hour.
const LEAST_MARGIN_MS: i64 = 60 * 60 * 1000;
/// Most events of a packed record that are originals; copies and broken ones come on top.
pub(crate) const MOST_PACKED: u32 = 500;
/// Most bytes of the configured names in one event, so that a packed record stays below 1 MiB.
const MOST_NAME_BYTES: usize = 1000;
/// Most counter keys, over all namespaces and dimension values.
const MOST_KEYS: u64 = 1 << 40;

/// A dimension and the values it takes; the empty value leaves it out of the event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dimension {
    /// Its name.
    pub name: String,
    /// Its values, at least one.
    pub values: Vec<String>,
}

/// Everything that decides what is generated.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Decides every choice.
    pub seed: u64,
    /// How many events, copies and broken ones included.
    pub events: u64,
    /// Before the first append, in epoch milliseconds.
    pub start_ms: i64,
    /// Originals per second of event time.
    pub events_per_second: u32,
    /// Begins every event id; two runs into one topic need two prefixes.
    pub id_prefix: String,
    /// Namespaces, all equally likely; `default` is left out of every second of its events.
    pub namespaces: Vec<String>,
    /// Counters per namespace, named `counter-0` and so on.
    pub counters: u32,
    /// Skew of the counters: 0 makes all equally likely, 1 is Zipf's law.
    pub zipf: f64,
    /// The dimensions of every event.
    pub dimensions: Vec<Dimension>,
    /// Partitions of the topic; none: the producer's partitioner decides by key.
    pub partitions: Option<u32>,
    /// Share of copies of one of the last 100 originals.
    pub near_duplicates: f64,
    /// Share of copies of any original that is still well inside the limits.
    pub far_duplicates: f64,
    /// Share of the copies that go to another partition than their original.
    pub elsewhere: f64,
    /// Share of events with the id of an original and another delta.
    pub conflicts: f64,
    /// Share of events older than the limit.
    pub late: f64,
    /// Share of events further ahead than the limit.
    pub future: f64,
    /// Share of events that cannot be decoded or are not well typed.
    pub undecodable: f64,
    /// Share of records with a null value.
    pub null_values: f64,
    /// Share of the originals whose event time lies behind.
    pub out_of_order: f64,
    /// How far it lies behind at most, in milliseconds.
    pub out_of_order_ms: i64,
    /// Share of the originals with a negative delta.
    pub negative: f64,
    /// Greatest size of a delta.
    pub max_delta: i64,
    /// Share of the originals in packed records.
    pub packed: f64,
    /// Originals in a packed record.
    pub packed_events: u32,
    /// Oldest admitted age of the topology, in milliseconds.
    pub accept_ms: i64,
    /// The topology's limit ahead, in milliseconds.
    pub future_ms: i64,
    /// Distance of late and future events from their limits, at least an hour, in milliseconds.
    pub margin_ms: i64,
    /// Size of the windows in the expectation, in milliseconds.
    pub window_ms: i64,
}

impl Plan {
    /// A plain plan: 10 000 per second, 1000 counters by Zipf's law, every verdict present, the product's limits.
    #[must_use]
    pub fn new(seed: u64, events: u64, start_ms: i64) -> Self {
        Self {
            seed,
            events,
            start_ms,
            events_per_second: 10_000,
            id_prefix: format!("{seed:x}-"),
            namespaces: vec!["default".to_owned()],
            counters: 1000,
            zipf: 1.0,
            dimensions: Vec::new(),
            partitions: None,
            near_duplicates: 0.03,
            far_duplicates: 0.02,
            elsewhere: 0.5,
            conflicts: 0.002,
            late: 0.002,
            future: 0.001,
            undecodable: 0.001,
            null_values: 0.000_5,
            out_of_order: 0.05,
            out_of_order_ms: 60_000,
            negative: 0.01,
            max_delta: 10,
            packed: 0.0,
            packed_events: 50,
            accept_ms: 24 * 60 * 60 * 1000,
            future_ms: 5 * 60 * 1000,
            margin_ms: LEAST_MARGIN_MS,
            window_ms: 60_000,
        }
    }

    /// No event is appended later than this plus an hour, if the caller keeps the pace; epoch milliseconds. To
    /// generate faster than `events_per_second`, start so far back that this is not ahead of the clock.
    #[must_use]
    pub fn end_ms(&self) -> i64 {
        self.clock_ms(self.events)
    }

    /// Event time of an original that is in order.
    pub(crate) fn clock_ms(&self, original: u64) -> i64 {
        let rate = u128::from(self.events_per_second.max(1));
        let since = i64::try_from(u128::from(original) * 1000 / rate).unwrap_or(i64::MAX);
        self.start_ms.saturating_add(since)
    }

    /// How many originals back a copy may reach and still be well inside the limits: half of `accept`, so that the
    /// other half covers what delays the copy on its way.
    pub(crate) fn reach(&self) -> u64 {
        let reach_ms = (self.accept_ms / 2 - self.out_of_order_ms).max(0);
        let reach = reach_ms.unsigned_abs().saturating_mul(u64::from(self.events_per_second)) / 1000;
        reach.max(1)
    }

    /// Dimension value combinations.
    pub(crate) fn combinations(&self) -> u64 {
        self.dimensions.iter().map(|dimension| dimension.values.len() as u64).fold(1, u64::saturating_mul)
    }

    pub(crate) fn check(&self) -> Result<(), PlanError> {
        self.check_shares()?;
        self.check_times()?;
        self.check_names()?;
        let refuse = |what: &'static str, fine: bool| {
            if fine { Ok(()) } else { Err(PlanError::Range { what }) }
        };
        refuse("events_per_second", self.events_per_second > 0)?;
        refuse("counters", self.counters > 0)?;
        refuse("zipf", self.zipf.is_finite() && self.zipf >= 0.0)?;
        refuse("partitions", self.partitions != Some(0))?;
        // Sums of all deltas stay far inside i128, and a conflict's delta inside i64.
        refuse("max_delta", (1..=i64::MAX / 4).contains(&self.max_delta))?;
        refuse("packed_events", (1..=MOST_PACKED).contains(&self.packed_events))?;
        let keys = (self.namespaces.len() as u64).saturating_mul(u64::from(self.counters));
        refuse("counters times dimension values", keys.saturating_mul(self.combinations()) <= MOST_KEYS)
    }

    /// The shares of the verdicts, in the order in which they are drawn.
    pub(crate) fn verdict_shares(&self) -> [f64; 7] {
        [
            self.near_duplicates,
            self.far_duplicates,
            self.conflicts,
            self.late,
            self.future,
            self.undecodable,
            self.null_values,
        ]
    }

    fn check_shares(&self) -> Result<(), PlanError> {
        let of_originals = [self.elsewhere, self.out_of_order, self.negative, self.packed];
        let all = self.verdict_shares();
        if !all.iter().chain(&of_originals).all(|share| (0.0..=1.0).contains(share)) {
            return Err(PlanError::Range { what: "every share" });
        }
        let sum: f64 = all.iter().sum();
        if sum > 0.95 { Err(PlanError::Shares { sum }) } else { Ok(()) }
    }

    fn check_times(&self) -> Result<(), PlanError> {
        let refuse = |what: &'static str, fine: bool| {
            if fine { Ok(()) } else { Err(PlanError::Range { what }) }
        };
        refuse("margin_ms", self.margin_ms >= LEAST_MARGIN_MS)?;
        refuse("accept_ms", self.accept_ms > 0)?;
        refuse("future_ms", self.future_ms >= 0)?;
        refuse("window_ms", self.window_ms > 0)?;
        // A quarter of accept for disorder and half for the distance of copies leave a quarter for delays.
        refuse("out_of_order_ms", (1..=self.accept_ms / 4).contains(&self.out_of_order_ms))?;
        // A packed record is appended with its last event; its first must not be old by then.
        let packed_ms = i64::from(self.packed_events) * 1000 / i64::from(self.events_per_second.max(1));
        refuse("packed_events per events_per_second", self.packed == 0.0 || packed_ms <= self.accept_ms / 8)?;
        let margins = self.margin_ms.checked_mul(2);
        let eldest =
            margins.and_then(|margins| self.start_ms.checked_sub(self.accept_ms)?.checked_sub(margins));
        let newest =
            margins.and_then(|margins| self.end_ms().checked_add(self.future_ms)?.checked_add(margins));
        refuse("start_ms", eldest.is_some_and(|eldest| eldest > 0) && newest.is_some())
    }

    fn check_names(&self) -> Result<(), PlanError> {
        let namespaces_fit = self.namespaces.iter().all(|name| (1..=256).contains(&name.len()));
        if self.namespaces.is_empty() || !namespaces_fit {
            return Err(PlanError::Range { what: "namespaces" });
        }
        if self.id_prefix.len() > 200 {
            return Err(PlanError::Range { what: "id_prefix" });
        }
        let longest = |dimension: &Dimension| dimension.values.iter().map(String::len).max().unwrap_or(0);
        let bytes: usize =
            self.dimensions.iter().map(|dimension| dimension.name.len() + longest(dimension)).sum();
        let twice = self.dimensions.iter().enumerate().any(|(index, dimension)| {
            self.dimensions.iter().skip(index + 1).any(|other| other.name == dimension.name)
        });
        let empty = self.dimensions.iter().any(|dimension| dimension.values.is_empty());
        if bytes > MOST_NAME_BYTES || twice || empty {
            return Err(PlanError::Range { what: "dimensions" });
        }
        Ok(())
    }
}

/// Why a plan is refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// The shares leave no room for originals.
    #[error(
        "the shares of copies, conflicts, late, future and broken events add up to {sum}, at most 0.95 is possible"
    )]
    Shares {
        /// Their sum.
        sum: f64,
    },
    /// A value is out of its range.
    #[error("{what} is out of range")]
    Range {
        /// Which one.
        what: &'static str,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    type Bend = fn(&mut Plan);

    #[test]
    fn what_could_not_be_exact_is_refused() {
        let plan = Plan::new(1, 1000, 1_800_000_000_000);
        assert_eq!(plan.check(), Ok(()));
        let bends: [(&str, Bend); 20] = [
            ("share below 0", |plan| plan.late = -0.1),
            ("share above 1", |plan| plan.packed = 1.1),
            ("share not a number", |plan| plan.elsewhere = f64::NAN),
            ("no room", |plan| plan.near_duplicates = 0.96),
            ("margin", |plan| plan.margin_ms = LEAST_MARGIN_MS - 1),
            ("start too early", |plan| plan.start_ms = plan.accept_ms + 2 * plan.margin_ms),
            ("end too late", |plan| plan.start_ms = i64::MAX - 1),
            ("disorder", |plan| plan.out_of_order_ms = plan.accept_ms / 4 + 1),
            ("window", |plan| plan.window_ms = 0),
            ("rate", |plan| plan.events_per_second = 0),
            ("counters", |plan| plan.counters = 0),
            ("zipf", |plan| plan.zipf = -1.0),
            ("partitions", |plan| plan.partitions = Some(0)),
            ("delta", |plan| plan.max_delta = 0),
            ("packed", |plan| plan.packed_events = MOST_PACKED + 1),
            ("slow packs", |plan| (plan.packed, plan.events_per_second, plan.accept_ms) = (0.1, 1, 399_999)),
            ("namespaces", |plan| plan.namespaces = vec![]),
            ("namespace", |plan| plan.namespaces = vec![String::new()]),
            ("prefix", |plan| plan.id_prefix = "x".repeat(201)),
            ("dimension", |plan| plan.dimensions = vec![Dimension { name: "r".into(), values: vec![] }]),
        ];
        for (name, bend) in bends {
            let mut bent = plan.clone();
            bend(&mut bent);
            assert!(bent.check().is_err(), "{name}");
        }
    }

    #[test]
    fn the_clock_follows_the_rate() {
        let plan = Plan { events_per_second: 3, ..Plan::new(1, 7, 1_000) };
        assert_eq!([0, 1, 3, 7].map(|original| plan.clock_ms(original)), [1_000, 1_333, 2_000, 3_333]);
        assert_eq!(plan.end_ms(), 3_333);
    }
}
