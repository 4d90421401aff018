//! What one table must hold: for every row its determined part and the choices that shared ids leave open.
//!
//! ```text
//!   lawful value of a row = fixed part + one choice of each item
//! ```
//!
//! The set of reachable (sum, events) pairs is followed exactly up to a bound, beyond it by its bounds. Choices of one
//! group in several rows are tied by [`Component`]s: the events of all rows a group can reach must add up.
//!
//! It must not know what was published.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::keys::KeyId;
use crate::sightings::{Cell, Group, Lawful, Payload};

/// Most (sum, events) pairs that are followed exactly for one row.
const REACHABLE: usize = 4096;

/// A row's place in its table: counter key and window start (0 for totals).
pub(crate) type Place = (KeyId, i64);

/// What one cluster of a group may add to a row; `(0, 0)` where it may count elsewhere or not at all.
pub(crate) type Item = Vec<(i128, u64)>;

/// A row that must, or may, be published.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Expected {
    pub(crate) fixed: Cell,
    pub(crate) items: Vec<Item>,
}

/// Rows tied by groups, and how many events they must hold together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Component {
    pub(crate) places: Vec<Place>,
    pub(crate) least_events: u64,
    pub(crate) most_events: u64,
}

/// Everything one table must hold.
#[derive(Debug, Default)]
pub(crate) struct Table {
    pub(crate) rows: HashMap<Place, Expected>,
    pub(crate) components: Vec<Component>,
}

impl Table {
    /// The table whose windows have this size; totals have none.
    pub(crate) fn new(lawful: &Lawful, size_ms: Option<i64>) -> Self {
        let start_of = |time_ms: i64| size_ms.map_or(0, |size| time_ms.div_euclid(size) * size);
        let mut rows: HashMap<Place, Expected> = HashMap::new();
        for ((key, slice_start), cell) in &lawful.fixed {
            rows.entry((*key, start_of(*slice_start))).or_default().fixed.add(cell);
        }
        let place_of = |payload: &Payload| (payload.key, start_of(payload.event_time_ms));
        for group in &lawful.groups {
            add_group(group, &place_of, &mut rows);
        }
        let components = components(&lawful.groups, &place_of, &rows);
        Self { rows, components }
    }
}

fn add_group(group: &Group, place_of: &impl Fn(&Payload) -> Place, rows: &mut HashMap<Place, Expected>) {
    let sole = group.clusters.len() == 1;
    for cluster in &group.clusters {
        let mut by_place: BTreeMap<Place, Item> = BTreeMap::new();
        for payload in cluster {
            by_place.entry(place_of(payload)).or_default().push((payload.delta.into(), 1));
        }
        let certain_here = sole && by_place.len() == 1;
        for (place, mut item) in by_place {
            if !certain_here {
                item.push((0, 0));
            }
            item.sort_unstable();
            item.dedup();
            let row = rows.entry(place).or_default();
            row.items.push(item);
            row.fixed.newest_append_ms = row.fixed.newest_append_ms.max(group.first_append_ms);
        }
    }
}

impl Expected {
    /// Whether a row with this sum and these events is lawful.
    pub(crate) fn allows(&self, sum: i128, events: u64) -> bool {
        let mut reachable = HashSet::from([(self.fixed.sum, self.fixed.events)]);
        for item in &self.items {
            if reachable.len().saturating_mul(item.len()) > REACHABLE {
                return self.bounds_allow(sum, events);
            }
            reachable = reachable
                .iter()
                .flat_map(|(sum, events)| item.iter().map(move |(more, one)| (sum + more, events + one)))
                .collect();
        }
        reachable.contains(&(sum, events))
    }

    /// The least and greatest lawful sum, and the same of events.
    pub(crate) fn bounds(&self) -> ((i128, i128), (u64, u64)) {
        let mut sums = (self.fixed.sum, self.fixed.sum);
        let mut events = (self.fixed.events, self.fixed.events);
        for item in &self.items {
            sums.0 += item.iter().map(|(sum, _)| *sum).min().unwrap_or(0);
            sums.1 += item.iter().map(|(sum, _)| *sum).max().unwrap_or(0);
            events.0 += item.iter().map(|(_, one)| *one).min().unwrap_or(0);
            events.1 += item.iter().map(|(_, one)| *one).max().unwrap_or(0);
        }
        (sums, events)
    }

    fn bounds_allow(&self, sum: i128, events: u64) -> bool {
        let (sums, numbers) = self.bounds();
        (sums.0..=sums.1).contains(&sum) && (numbers.0..=numbers.1).contains(&events)
    }
}

/// Rows that share a group, directly or over others, with the events they must hold together. A group whose choices
/// all fall into one row with certainty is already exact there.
fn components(
    groups: &[Group],
    place_of: &impl Fn(&Payload) -> Place,
    rows: &HashMap<Place, Expected>,
) -> Vec<Component> {
    let mut union = Union::default();
    for group in groups {
        let mut places = group.clusters.iter().flatten().map(place_of);
        if let Some(first) = places.next() {
            places.for_each(|place| union.join(first, place));
            union.join(first, first);
        }
    }
    let mut by_root: BTreeMap<Place, Component> = BTreeMap::new();
    let mut members: Vec<Place> = union.parent.keys().copied().collect();
    members.sort_unstable();
    for place in members {
        let fixed = rows.get(&place).map_or(0, |row| row.fixed.events);
        let component = by_root.entry(union.root(place)).or_insert(Component {
            places: Vec::new(),
            least_events: 0,
            most_events: 0,
        });
        component.places.push(place);
        component.least_events += fixed;
        component.most_events += fixed;
    }
    for group in groups {
        let place = group.clusters.iter().flatten().map(place_of).next();
        if let Some(component) = place.and_then(|place| by_root.get_mut(&union.root(place))) {
            component.least_events += 1;
            component.most_events += u64::try_from(group.clusters.len()).unwrap_or(u64::MAX);
        }
    }
    by_root.into_values().collect()
}

/// Union-find over places, with path halving.
#[derive(Debug, Default)]
struct Union {
    parent: HashMap<Place, Place>,
}

impl Union {
    fn root(&mut self, place: Place) -> Place {
        let mut at = place;
        loop {
            let parent = *self.parent.entry(at).or_insert(at);
            if parent == at {
                return at;
            }
            let grand = *self.parent.entry(parent).or_insert(parent);
            self.parent.insert(at, grand);
            at = grand;
        }
    }

    fn join(&mut self, one: Place, other: Place) {
        let (one, other) = (self.root(one), self.root(other));
        if one != other {
            self.parent.insert(other, one);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payload(key: KeyId, delta: i64, event_time_ms: i64) -> Payload {
        Payload { key, delta, event_time_ms }
    }

    fn group(clusters: Vec<Vec<Payload>>) -> Group {
        Group { clusters, first_append_ms: 0 }
    }

    fn lawful(fixed: &[(Place, i128, u64)], groups: Vec<Group>) -> Lawful {
        let mut lawful = Lawful { groups, ..Lawful::default() };
        for (place, sum, events) in fixed {
            lawful.fixed.insert(*place, Cell { sum: *sum, events: *events, newest_append_ms: 0 });
        }
        lawful
    }

    #[test]
    fn slices_add_up_to_windows() {
        let from = lawful(&[((1, 0), 5, 1), ((1, 60), -2, 1), ((1, 120), 7, 1)], vec![]);
        let windows = Table::new(&from, Some(120));
        assert!(windows.rows[&(1, 0)].allows(3, 2));
        assert!(!windows.rows[&(1, 0)].allows(5, 1));
        assert!(windows.rows[&(1, 120)].allows(7, 1));
        let totals = Table::new(&from, None);
        assert!(totals.rows[&(1, 0)].allows(10, 3));
    }

    #[test]
    fn either_payload_in_one_row() {
        let table = Table::new(
            &lawful(&[((1, 0), 10, 2)], vec![group(vec![vec![payload(1, 1, 5), payload(1, 5, 5)]])]),
            Some(60),
        );
        let row = &table.rows[&(1, 0)];
        for (sum, events, fine) in
            [(11, 3, true), (15, 3, true), (16, 4, false), (10, 2, false), (12, 3, false)]
        {
            assert_eq!(row.allows(sum, events), fine, "{sum} {events}");
        }
    }

    #[test]
    fn payloads_in_two_rows_are_tied() {
        let table =
            Table::new(&lawful(&[], vec![group(vec![vec![payload(1, 1, 5), payload(1, 1, 65)]])]), Some(60));
        for place in [(1, 0), (1, 60)] {
            assert!(table.rows[&place].allows(0, 0) && table.rows[&place].allows(1, 1));
        }
        let component = &table.components[0];
        assert_eq!((component.places.len(), component.least_events, component.most_events), (2, 1, 1));
    }

    #[test]
    fn groups_that_share_a_row_are_one_component() {
        let groups = vec![
            group(vec![vec![payload(1, 1, 5), payload(2, 1, 5)]]),
            group(vec![vec![payload(2, 1, 6)], vec![payload(3, 1, 7)]]),
            group(vec![vec![payload(9, 1, 5), payload(9, 2, 5)]]),
        ];
        let table = Table::new(&lawful(&[((3, 0), 4, 4)], groups), Some(60));
        let bounds: Vec<_> = table
            .components
            .iter()
            .map(|part| (part.places.len(), part.least_events, part.most_events))
            .collect();
        assert_eq!(bounds, [(3, 6, 7), (1, 1, 1)]);
    }

    #[test]
    fn many_choices_fall_back_to_bounds() {
        let groups = (0..40).map(|n| group(vec![vec![payload(1, 1, n), payload(1, 1 << n, n)]])).collect();
        let table = Table::new(&lawful(&[], groups), Some(60));
        let row = &table.rows[&(1, 0)];
        assert!(row.allows(40, 40));
        assert!(!row.allows(39, 40) && !row.allows(40, 41) && !row.allows(1 << 40, 40));
    }
}
