//! What must come out: sums per counter and window, and the verdict of every event.
//!
//! Booked by the generator while it makes events. Keys are numbers until somebody asks, since half a million events
//! are booked per second.

use std::collections::{BTreeMap, HashMap};

use crate::original::Original;
use crate::plan::Plan;
use crate::writer::digits;

/// A counter key; dimension values in the plan's order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CounterKey {
    /// Namespace.
    pub namespace: String,
    /// Counter.
    pub counter: String,
    /// Dimension values; empty where the event has none.
    pub dimensions: Vec<String>,
}

/// A sum of counted deltas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sum {
    /// Their sum.
    pub sum: i128,
    /// How many.
    pub events: u64,
}

impl Sum {
    fn add(&mut self, delta: i64) {
        self.sum += i128::from(delta);
        self.events += 1;
    }
}

/// Verdicts, in events, and how many records carried them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tallies {
    /// Records generated.
    pub records: u64,
    /// Events generated, a broken record being one: the sum of all verdicts below.
    pub received: u64,
    /// Counted once.
    pub counted: u64,
    /// Copies of a counted event.
    pub duplicate: u64,
    /// Same id, other delta.
    pub conflict: u64,
    /// Older than the limit.
    pub late: u64,
    /// Further ahead than the limit.
    pub future: u64,
    /// Invalid: the two below.
    pub invalid: u64,
    /// Of the invalid: not decodable or not well typed.
    pub undecodable: u64,
    /// Of the invalid: null values.
    pub null_values: u64,
}

/// Everything that must come out of what was generated so far.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Expectation {
    /// Verdicts of all events.
    pub tallies: Tallies,
    /// Total of every counter key with a counted event.
    pub totals: BTreeMap<CounterKey, Sum>,
    /// Sum of every window with a counted event, by counter key and window start in epoch milliseconds.
    pub windows: BTreeMap<(CounterKey, i64), Sum>,
    /// Size of those windows, in milliseconds.
    pub window_ms: i64,
}

/// The expectation while it grows.
#[derive(Debug)]
pub(crate) struct Ledger {
    pub(crate) tallies: Tallies,
    windows: HashMap<(u64, i64), Sum>,
    combinations: u64,
    counters: u64,
}

impl Ledger {
    pub(crate) fn new(plan: &Plan) -> Self {
        Self {
            tallies: Tallies::default(),
            windows: HashMap::new(),
            combinations: plan.combinations(),
            counters: u64::from(plan.counters),
        }
    }

    /// Books a counted event.
    pub(crate) fn count(&mut self, original: &Original, window_ms: i64) {
        self.tallies.counted += 1;
        let counter = u64::from(original.namespace) * self.counters + u64::from(original.counter);
        let key = counter * self.combinations + original.combination;
        let start_ms = original.event_time_ms.div_euclid(window_ms) * window_ms;
        self.windows.entry((key, start_ms)).or_default().add(original.delta);
    }

    /// The expectation with names.
    pub(crate) fn expectation(&self, plan: &Plan) -> Expectation {
        let mut expectation =
            Expectation { tallies: self.tallies, window_ms: plan.window_ms, ..Expectation::default() };
        for ((key, start_ms), sum) in &self.windows {
            let name = self.name(*key, plan);
            let total = expectation.totals.entry(name.clone()).or_default();
            total.sum += sum.sum;
            total.events += sum.events;
            expectation.windows.insert((name, *start_ms), *sum);
        }
        expectation
    }

    fn name(&self, key: u64, plan: &Plan) -> CounterKey {
        let (counter, combination) = (key / self.combinations, key % self.combinations);
        let namespace = plan.namespaces.get((counter / self.counters) as usize);
        let chosen = digits(combination, plan.dimensions.iter().map(|dimension| dimension.values.len()));
        let values = plan.dimensions.iter().zip(chosen);
        CounterKey {
            namespace: namespace.cloned().unwrap_or_default(),
            counter: format!("counter-{}", counter % self.counters),
            dimensions: values
                .map(|(dimension, index)| dimension.values.get(index).cloned().unwrap_or_default())
                .collect(),
        }
    }
}
