//! Cells against a map: merges, aborts, flushes, expiries, evictions and crashes at any place.

use std::collections::{BTreeMap, HashMap};

use proptest::prelude::*;
use tallyflow_core::counter::{HASH_SLICES, hash_slice};

use super::*;

/// The model: committed cells and uncommitted changes, as one map each.
type Cellmap = BTreeMap<(u8, i64, u8, Vec<u8>), (i128, u64)>;

#[derive(Clone, Debug)]
enum Step {
    Add(Vec<(usize, u8, i64, i64)>),
    Restore { put: bool, rows: Vec<(usize, u8, i64, i64)> },
    Commit,
    Abort,
    Flush { durable: bool },
    Crash { kept: usize },
    Scan { table: u8, start: i64, after: Option<usize>, limit: usize },
    NextStart { table: u8, after: i64 },
    Expire { table: u8, before: i64 },
    Evict,
    Snapshot { slice: u8 },
}

fn step() -> impl Strategy<Value = Step> {
    let rows = || proptest::collection::vec((0usize..40, 0u8..3, -2i64..6, -9i64..9), 1..12);
    prop_oneof![
        6 => rows().prop_map(Step::Add),
        1 => (any::<bool>(), rows()).prop_map(|(put, rows)| Step::Restore { put, rows }),
        4 => Just(Step::Commit),
        2 => Just(Step::Abort),
        3 => any::<bool>().prop_map(|durable| Step::Flush { durable }),
        1 => (0usize..3).prop_map(|kept| Step::Crash { kept }),
        4 => (0u8..3, -2i64..6, proptest::option::of(0usize..40), 0usize..50)
            .prop_map(|(table, start, after, limit)| Step::Scan { table, start, after, limit }),
        3 => (0u8..3, -4i64..6).prop_map(|(table, after)| Step::NextStart { table, after }),
        2 => (0u8..2, -2i64..6).prop_map(|(table, before)| Step::Expire { table, before }),
        1 => Just(Step::Evict),
        1 => (0u8..HASH_SLICES).prop_map(|slice| Step::Snapshot { slice }),
    ]
}

/// The tables of the steps: the third one is the totals, whose start is always 0.
fn place(table: u8, start: i64) -> (Table, i64) {
    if table == 2 { (Table::TOTALS, 0) } else { (Table(table), start) }
}

fn cell_key(n: usize, table: Table, start: i64) -> (u8, i64, u8, Vec<u8>) {
    (table.0, start, hash_slice(&key(n)), key(n))
}

/// The store under test beside its model.
struct Pair {
    stores: MemoryStores,
    store: CellStore,
    now: Cellmap,
    committed: Cellmap,
    /// What each progress stands for.
    flushed: HashMap<Option<Vec<u8>>, Cellmap>,
}

impl Pair {
    fn new() -> Self {
        let (stores, mut store) = fresh();
        store.budget_bytes = 0;
        let flushed = HashMap::from([(None, Cellmap::new())]);
        Self { stores, store, now: Cellmap::new(), committed: Cellmap::new(), flushed }
    }

    fn run(&mut self, step: Step) -> Result<(), TestCaseError> {
        match step {
            Step::Add(rows) => self.add(&rows)?,
            Step::Restore { put, rows } => self.restore(put, &rows),
            Step::Commit => {
                self.store.commit();
                self.committed = self.now.clone();
            }
            Step::Abort => {
                self.store.abort();
                self.now = self.committed.clone();
            }
            Step::Scan { table, start, after, limit } => self.scan(table, start, after, limit)?,
            Step::NextStart { table, after } => {
                let (table, after) = (place(table, 0).0, after);
                let starts = self.now.keys().filter(|(t, s, ..)| *t == table.0 && *s > after);
                let right = starts.map(|(_, s, ..)| at(*s)).min();
                prop_assert_eq!(self.store.next_start(table, at(after)).unwrap(), right);
            }
            Step::Crash { kept } => self.crash(kept),
            _ if self.store.has_uncommitted() => {}
            Step::Flush { durable } => self.flush(durable),
            Step::Expire { table, before } => {
                self.store.expire(Table(table), at(before)).unwrap();
                self.now.retain(|(t, s, ..), _| *t != table || *s >= before);
                self.committed = self.now.clone();
            }
            Step::Evict => drop(self.store.evict().unwrap()),
            Step::Snapshot { slice } => self.snapshot(slice)?,
        }
        Ok(())
    }

    fn add(&mut self, rows: &[(usize, u8, i64, i64)]) -> Result<(), TestCaseError> {
        let place = |(n, table, start, sum): &(usize, u8, i64, i64)| (*n, place(*table, *start), *sum);
        let ids: Vec<CellId> = rows
            .iter()
            .map(place)
            .map(|(n, (table, start), _)| id(&mut self.store, n, table, start))
            .collect();
        self.store.load(&ids).unwrap();
        for (id, (n, (table, start), sum)) in ids.iter().zip(rows.iter().map(place)) {
            let before = self.store.add(*id, Sum(sum.into()), 1);
            let cell = self.now.entry(cell_key(n, table, start)).or_default();
            prop_assert_eq!((before.sum.0, before.events), *cell);
            *cell = (cell.0 + i128::from(sum), cell.1 + 1);
        }
        Ok(())
    }

    fn restore(&mut self, put: bool, rows: &[(usize, u8, i64, i64)]) {
        if self.store.has_uncommitted() {
            return;
        }
        for (n, table, start, sum) in rows {
            let (table, start) = place(*table, *start);
            let (key, cell) = (key(*n), Cell { sum: Sum((*sum).into()), events: 2 });
            let row = CellRow { key: &key, table, start: at(start), cell };
            let model = self.now.entry(cell_key(*n, table, start)).or_default();
            if put {
                self.store.put_restored(&[row]).unwrap();
                *model = (i128::from(*sum), 2);
            } else {
                self.store.add_restored(&[row, row]).unwrap();
                *model = (model.0 + 2 * i128::from(*sum), model.1 + 4);
            }
        }
        self.committed = self.now.clone();
    }

    fn flush(&mut self, durable: bool) {
        let progress = self.flushed.len().to_string().into_bytes();
        self.store.flush(&progress).unwrap();
        self.flushed.insert(Some(progress), self.now.clone());
        if durable {
            self.store.cold.flush().unwrap();
        }
    }

    fn crash(&mut self, kept: usize) {
        self.stores.crash(kept);
        self.store = open(&mut self.stores, &TABLES);
        self.store.budget_bytes = 0;
        // Whatever batch the crash left: progress and cells agree.
        self.now = self.flushed[&self.store.cold.progress().unwrap()].clone();
        self.committed = self.now.clone();
    }

    fn scan(
        &mut self,
        table: u8,
        start: i64,
        after: Option<usize>,
        limit: usize,
    ) -> Result<(), TestCaseError> {
        let (table, start) = place(table, start);
        let after = after.map(|n| CellOrder { slice: hash_slice(&key(n)), key: key(n) });
        let of_window = self.now.iter().filter(|((t, s, ..), _)| (*t, *s) == (table.0, start));
        let beyond = of_window.filter(|((_, _, slice, key), _)| {
            after.as_ref().is_none_or(|after| (*slice, key) > (after.slice, &after.key))
        });
        let right: Vec<_> = beyond.take(limit).map(|((.., key), cell)| (key.clone(), *cell)).collect();
        let mut out = Vec::new();
        self.store.scan(table, at(start), after.as_ref(), limit, &mut out).unwrap();
        let store = &self.store;
        let got: Vec<_> = out
            .iter()
            .map(|id| (store.key(id.counter).to_vec(), (store.cell(*id).sum.0, store.cell(*id).events)))
            .collect();
        prop_assert_eq!(got, right);
        Ok(())
    }

    fn snapshot(&mut self, slice: u8) -> Result<(), TestCaseError> {
        self.flush(false);
        let mut got = Cellmap::new();
        self.store
            .snapshot(slice, &mut |row| {
                let key = (row.table.0, row.start.0, slice, row.key.to_vec());
                got.insert(key, (row.cell.sum.0, row.cell.events));
            })
            .unwrap();
        let right = self.now.iter().filter(|((_, _, s, _), _)| *s == slice);
        prop_assert_eq!(got, right.map(|(key, cell)| (key.clone(), *cell)).collect::<Cellmap>());
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]
    #[test]
    fn agrees_with_a_map(steps in proptest::collection::vec(step(), 1..60)) {
        let mut pair = Pair::new();
        for step in steps {
            pair.run(step)?;
        }
        pair.store.abort();
        for ((table, start, _, key), cell) in std::mem::take(&mut pair.committed) {
            let counter = pair.store.intern(&key);
            let id = CellId { table: Table(table), start: at(start), counter };
            pair.store.load(&[id]).unwrap();
            prop_assert_eq!((pair.store.cell(id).sum.0, pair.store.cell(id).events), cell);
        }
    }
}
