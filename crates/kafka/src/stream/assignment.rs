//! The partitions a consumer owns, and which of their records may be handed on.
//!
//! ```text
//!  acknowledged ──► paused, not started ──start──► started ──pause──► paused, started
//!                        ▲                            │
//!                        └──────── (again) start ─────┘     sink refused: blind until the next start
//! ```
//!
//! Keeps: EO-3 (between two starts offsets of a partition only grow, and none below the start is handed on).
//!
//! Must not know: the client.

use tallyflow_core::ids::{NextOffset, TopicId, TopicPartition};

/// A partition this consumer owns.
pub(super) struct Owned {
    pub(super) partition: TopicPartition,
    /// The incarnation at the time of the assignment, if the cluster said.
    pub(super) topic_id: Option<TopicId>,
    /// The worker asked not to fetch it.
    pub(super) paused: bool,
    /// Not fetched because the worker takes no records at all for now.
    pub(super) held: bool,
    /// A record was refused by the sink: the client's position is beyond it and not to be believed.
    blind: bool,
    /// The smallest offset that may be handed on; `None` before the first start.
    next: Option<i64>,
}

/// All of them, by slot.
#[derive(Default)]
pub(super) struct Assignment {
    owned: Vec<Owned>,
    /// The slot of the last record: records come in runs.
    last: usize,
}

impl Assignment {
    /// Adds a partition, paused and not started; one that is there already starts afresh.
    pub(super) fn add(&mut self, partition: TopicPartition, topic_id: Option<TopicId>) {
        self.remove(std::slice::from_ref(&partition));
        self.owned.push(Owned { partition, topic_id, paused: true, held: false, blind: false, next: None });
    }

    /// Forgets partitions.
    pub(super) fn remove(&mut self, partitions: &[TopicPartition]) {
        self.owned.retain(|owned| !partitions.contains(&owned.partition));
    }

    pub(super) fn get(&self, partition: &TopicPartition) -> Option<&Owned> {
        self.owned.iter().find(|owned| owned.partition == *partition)
    }

    pub(super) fn get_mut(&mut self, partition: &TopicPartition) -> Option<&mut Owned> {
        self.owned.iter_mut().find(|owned| owned.partition == *partition)
    }

    /// The partition of a slot.
    pub(super) fn slot(&self, slot: u32) -> Option<&TopicPartition> {
        self.owned.get(slot as usize).map(|owned| &owned.partition)
    }

    /// The slot of a record that may be handed on.
    pub(super) fn accept(&mut self, topic: &[u8], partition: i32, offset: i64) -> Option<u32> {
        let matches = |owned: &Owned| {
            i64::from(owned.partition.partition.0) == i64::from(partition)
                && owned.partition.topic.as_bytes() == topic
        };
        if !self.owned.get(self.last).is_some_and(matches) {
            self.last = self.owned.iter().position(matches)?;
        }
        let next = self.owned.get_mut(self.last)?.next.as_mut()?;
        if offset < *next {
            return None;
        }
        *next = offset.saturating_add(1);
        u32::try_from(self.last).ok()
    }

    /// Every partition, to change.
    pub(super) fn all_mut(&mut self) -> impl Iterator<Item = &mut Owned> {
        self.owned.iter_mut()
    }

    /// The partitions of which something is true.
    pub(super) fn those(&self, is: impl Fn(&Owned) -> bool) -> Vec<TopicPartition> {
        self.owned.iter().filter(|owned| is(owned)).map(|owned| owned.partition.clone()).collect()
    }

    /// The sink did not take what these slots had.
    pub(super) fn refused(&mut self, slots: &[u32]) {
        for slot in slots {
            if let Some(owned) = self.owned.get_mut(*slot as usize) {
                owned.blind = true;
            }
        }
    }
}

impl Owned {
    /// Delivery begins at this offset.
    pub(super) fn started(&mut self, at: NextOffset) {
        self.next = Some(at.0);
        self.blind = false;
    }

    /// Whether the client fetches it.
    pub(super) fn is_flowing(&self) -> bool {
        self.next.is_some() && !self.paused && !self.held
    }

    /// Whether the client's position says what was handed on.
    pub(super) fn is_telling(&self) -> bool {
        self.next.is_some() && !self.blind
    }

    /// The next record that would be handed on.
    pub(super) fn expected(&self) -> Option<i64> {
        self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two() -> (Assignment, TopicPartition, TopicPartition) {
        let (a, b) = (TopicPartition::new("events", 0), TopicPartition::new("events", 1));
        let mut assignment = Assignment::default();
        assignment.add(a.clone(), None);
        assignment.add(b.clone(), Some(TopicId([1; 16])));
        (assignment, a, b)
    }

    #[test]
    fn nothing_before_the_start_and_nothing_below_it() {
        let (mut assignment, a, _) = two();
        assert_eq!(assignment.accept(b"events", 0, 7), None);
        assignment.get_mut(&a).unwrap().started(NextOffset(5));
        assert_eq!(assignment.accept(b"events", 0, 4), None);
        assert_eq!(assignment.accept(b"events", 0, 5), Some(0));
        assert_eq!(assignment.accept(b"events", 1, 5), None);
        assert_eq!(assignment.accept(b"event", 0, 9), None);
        assert_eq!(assignment.accept(b"events", 2, 9), None);
    }

    #[test]
    fn nothing_twice_until_the_next_start() {
        let (mut assignment, _, b) = two();
        assignment.get_mut(&b).unwrap().started(NextOffset(0));
        assert_eq!(assignment.accept(b"events", 1, 3), Some(1));
        assert_eq!(assignment.accept(b"events", 1, 3), None);
        assert_eq!(assignment.accept(b"events", 1, 4), Some(1));
        assignment.get_mut(&b).unwrap().started(NextOffset(3));
        assert_eq!(assignment.accept(b"events", 1, 3), Some(1));
        assert_eq!(assignment.get(&b).unwrap().expected(), Some(4));
    }

    #[test]
    fn a_refused_batch_blinds_until_the_next_start() {
        let (mut assignment, a, b) = two();
        for partition in [&a, &b] {
            assignment.get_mut(partition).unwrap().started(NextOffset(0));
        }
        assignment.refused(&[1]);
        assert!(assignment.get(&a).unwrap().is_telling());
        assert!(!assignment.get(&b).unwrap().is_telling());
        assignment.get_mut(&b).unwrap().started(NextOffset(0));
        assert!(assignment.get(&b).unwrap().is_telling());
    }

    #[test]
    fn slots_follow_removals() {
        let (mut assignment, a, b) = two();
        assignment.get_mut(&b).unwrap().started(NextOffset(0));
        assert_eq!(assignment.accept(b"events", 1, 0), Some(1));
        assignment.remove(std::slice::from_ref(&a));
        assert_eq!(assignment.accept(b"events", 1, 1), Some(0));
        assert_eq!(assignment.slot(0), Some(&b));
        assert!(assignment.get(&a).is_none());
    }
}
