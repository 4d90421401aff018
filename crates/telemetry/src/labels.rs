//! Labels and the closed lists their values come from.
//!
//! A series costs memory for as long as the process lives, here and in Prometheus. So a label's value is one of a list
//! in this file or of core ([`Label::values`]), or a topic or partition of topology.toml; never an id, a counter or a
//! message.

use tallyflow_core::tallies::Tallies;
use tallyflow_core::verdict::{Category, Verdict};
use tallyflow_runtime::status::StageName;

/// The name of a label.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Label {
    /// Which stage.
    Stage,
    /// What became of the events.
    Verdict,
    /// Which topic.
    Topic,
    /// Which partition.
    Partition,
    /// How a transaction ended.
    Result,
    /// Where ids are remembered.
    Tier,
    /// Where state is held.
    Store,
    /// Why records were dead-lettered.
    Category,
    /// The version of this program.
    Version,
}

impl Label {
    /// Every label.
    pub const ALL: [Self; 9] = [
        Self::Stage,
        Self::Verdict,
        Self::Topic,
        Self::Partition,
        Self::Result,
        Self::Tier,
        Self::Store,
        Self::Category,
        Self::Version,
    ];

    /// The label's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stage => "stage",
            Self::Verdict => "verdict",
            Self::Topic => "topic",
            Self::Partition => "partition",
            Self::Result => "result",
            Self::Tier => "tier",
            Self::Store => "store",
            Self::Category => "category",
            Self::Version => "version",
        }
    }

    /// The closed list of its values; empty where the cluster, topology.toml or the build say them.
    pub fn values(self) -> Vec<&'static str> {
        match self {
            Self::Stage => STAGES.iter().map(|stage| stage.name()).collect(),
            Self::Verdict => {
                let mut names: Vec<_> = Vec::new();
                for outcome in STAGES.iter().flat_map(|stage| Outcome::of_stage(*stage)) {
                    if !names.contains(&outcome.name()) {
                        names.push(outcome.name());
                    }
                }
                names
            }
            Self::Result => TransactionResult::ALL.iter().map(|result| result.name()).collect(),
            Self::Tier => Tier::ALL.iter().map(|tier| tier.name()).collect(),
            Self::Store => Store::ALL.iter().map(|store| store.name()).collect(),
            Self::Category => Category::ALL.iter().map(|category| category.name()).collect(),
            Self::Topic | Self::Partition | Self::Version => Vec::new(),
        }
    }
}

/// Every stage.
pub const STAGES: [StageName; 2] = [StageName::Intake, StageName::Count];

/// A value of `verdict`: what a stage says of an event. Over one stage they add up to the events it has read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Let through to the next stage.
    Admitted,
    /// Decided here.
    Decided(Verdict),
}

impl Outcome {
    /// What can become of an event in a stage: the terms of its books (LG-1), in their order.
    pub const fn of_stage(stage: StageName) -> &'static [Self] {
        match stage {
            StageName::Intake => &[
                Self::Admitted,
                Self::Decided(Verdict::Late),
                Self::Decided(Verdict::Future),
                Self::Decided(Verdict::Invalid),
                Self::Decided(Verdict::Held),
            ],
            StageName::Count => &[
                Self::Decided(Verdict::Counted),
                Self::Decided(Verdict::Duplicate),
                Self::Decided(Verdict::Conflict),
                Self::Decided(Verdict::Late),
            ],
        }
    }

    /// The label's value.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Admitted => "admitted",
            Self::Decided(verdict) => verdict.name(),
        }
    }

    /// The events with this outcome.
    pub const fn tally(self, tallies: &Tallies) -> u64 {
        match self {
            Self::Admitted => tallies.admitted,
            Self::Decided(verdict) => tallies.of(verdict),
        }
    }
}

/// A value of `result`: how a transaction ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TransactionResult {
    /// Everything in it counts.
    Committed,
    /// Nothing in it counts.
    Aborted,
    /// The producer was replaced by another.
    Fenced,
}

impl TransactionResult {
    /// Every result.
    pub const ALL: [Self; 3] = [Self::Committed, Self::Aborted, Self::Fenced];

    /// The label's value.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Committed => "committed",
            Self::Aborted => "aborted",
            Self::Fenced => "fenced",
        }
    }
}

/// A value of `tier`: where ids are remembered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tier {
    /// In the open bucket's table in memory.
    Hot,
    /// In sealed buckets on disk.
    Cold,
}

impl Tier {
    /// Every tier.
    pub const ALL: [Self; 2] = [Self::Hot, Self::Cold];

    /// The label's value.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hot => "hot",
            Self::Cold => "cold",
        }
    }
}

/// A value of `store`: where state is held.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Store {
    /// In memory.
    Memory,
}

impl Store {
    /// Every store.
    pub const ALL: [Self; 1] = [Self::Memory];

    /// The label's value.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_are_the_terms_of_the_books() {
        // LG-1: with one event per outcome, what was read is their number and the books close.
        let all = Tallies {
            received: 5,
            admitted: 1,
            late: 1,
            future: 1,
            invalid: 1,
            held: 1,
            ..Tallies::default()
        };
        let read: u64 = Outcome::of_stage(StageName::Intake).iter().map(|o| o.tally(&all)).sum();
        assert_eq!((read, all.intake_residual()), (5, 0));
        let all =
            Tallies { admitted: 4, counted: 1, duplicate: 1, conflict: 1, late: 1, ..Tallies::default() };
        let read: u64 = Outcome::of_stage(StageName::Count).iter().map(|o| o.tally(&all)).sum();
        assert_eq!((read, all.count_residual()), (4, 0));
    }

    #[test]
    fn values_are_plain_words_and_unique() {
        for label in Label::ALL {
            let mut values = label.values();
            for value in &values {
                assert!(value.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{value}");
            }
            let before = values.len();
            values.sort_unstable();
            values.dedup();
            assert_eq!(values.len(), before, "{}", label.name());
        }
    }
}
