//! Cells, tables and progress: what batches do, and what a crash leaves of them.

use tallyflow_core::counter::HASH_SLICES;
use tallyflow_core::processor::Cell;
use tallyflow_core::sum::Sum;
use tallyflow_core::time::TimestampMs;

use super::{Host, TASK, cell, key, open, put};
use crate::cold::{CellBatch, ColdStore, WindowRange};
use crate::keys::window_prefix;

pub(super) fn get(store: &dyn ColdStore, key: &[u8]) -> Option<Cell> {
    let mut out = Vec::new();
    store.get_cells(&[key], &mut out).unwrap();
    out[0]
}

pub(super) fn cells_are_found_in_batches(host: &mut dyn Host) {
    let store = open(host);
    let name = |n: i128| key((n % 16) as u8, 0, n as i64 * 60, &format!("k{n}"));
    // Extreme sums too; every third key is absent.
    let value = |n: i128| Cell { sum: Sum(i128::MIN + n * (i128::MAX / 3000)), events: n as u64 + 1 };
    put(store.as_ref(), (0..3000).filter(|n| n % 3 != 0).map(|n| (name(n), value(n))).collect(), "p");
    let mut keys: Vec<(Vec<u8>, i128)> = (0..3000).map(|n| (name(n), n)).collect();
    keys.sort_unstable();
    let slices: Vec<&[u8]> = keys.iter().map(|(key, _)| key.as_slice()).collect();
    let mut out = vec![None];
    store.get_cells(&slices, &mut out).unwrap();
    let right = keys.iter().map(|(_, n)| (n % 3 != 0).then(|| value(*n)));
    assert_eq!(out[1..], right.collect::<Vec<_>>());
}

pub(super) fn scans_follow_the_bytes(host: &mut dyn Host) {
    let store = open(host);
    let names = ["", "a", "ab", "b", "\u{7f}"];
    let windows = [(0u8, 0u8, 0i64), (0, 0, 60), (0, 1, 0), (3, 0, -60), (15, 255, 0), (15, 255, i64::MAX)];
    let all = windows.iter().flat_map(|(slice, table, start)| {
        names.iter().map(move |name| (key(*slice, *table, *start, name), cell(1)))
    });
    put(store.as_ref(), all.collect(), "p");
    let scan = |prefix: &[u8], after: Option<&[u8]>, limit: usize| {
        let mut out = Vec::new();
        store.scan_cells(prefix, after, limit, &mut out).unwrap();
        out.into_iter().map(|(key, _)| key).collect::<Vec<_>>()
    };
    for (slice, table, start) in windows {
        let right: Vec<Vec<u8>> = names.iter().map(|name| key(slice, table, start, name)).collect();
        let prefix = window_prefix(slice, table, TimestampMs(start));
        assert_eq!(scan(&prefix, None, 100), right);
        assert_eq!(scan(&prefix, Some(&right[1]), 2), right[2..4]);
        assert_eq!(scan(&prefix, Some(&right[4]), 2), Vec::<Vec<u8>>::new());
        assert_eq!(scan(&prefix, Some(&key(slice, table, start, "aa")), 100), right[2..]);
        // From before the prefix: from its beginning.
        assert_eq!(scan(&prefix, Some(&[]), 100), right);
    }
    assert_eq!(scan(&[15], None, 100).len(), 10);
    assert_eq!(scan(&[0, 0], None, 100).len(), 10);
    assert_eq!(scan(&[], None, 100).len(), 30);
    assert_eq!(scan(&[], None, 0).len(), 0);
}

pub(super) fn next_starts_are_found_in_every_slice(host: &mut dyn Host) {
    let store = open(host);
    let next = |table, after| store.next_start(table, TimestampMs(after)).unwrap().map(|start| start.0);
    assert_eq!(next(0, i64::MIN), None);
    let cells = [(15u8, 0u8, -120i64), (3, 0, -60), (0, 0, 60), (7, 0, 60), (1, 1, 0), (2, 255, 0)];
    put(store.as_ref(), cells.iter().map(|(s, t, start)| (key(*s, *t, *start, "k"), cell(1))).collect(), "p");
    for (after, right) in [
        (i64::MIN, Some(-120)),
        (-121, Some(-120)),
        (-120, Some(-60)),
        (-60, Some(60)),
        (59, Some(60)),
        (60, None),
        (i64::MAX, None),
    ] {
        assert_eq!(next(0, after), right, "after {after}");
    }
    assert_eq!((next(1, -1), next(1, 0), next(255, -1), next(2, -1)), (Some(0), None, Some(0), None));
}

pub(super) fn deletes_come_before_puts(host: &mut dyn Host) {
    let store = open(host);
    let starts = [i64::MIN, -60, 0, 60, 120];
    let all = (0..HASH_SLICES)
        .flat_map(|s| (0..3).flat_map(move |t| starts.map(|start| (key(s, t, start, "k"), cell(1)))));
    put(store.as_ref(), all.collect(), "p");
    store.flush().unwrap();
    let range = |table, from, before| WindowRange { table, from: TimestampMs(from), before };
    let deletes = vec![range(1, i64::MIN, Some(TimestampMs(60))), range(2, 0, None)];
    let puts = vec![(key(5, 1, 0, "k"), cell(2))];
    store.apply(&CellBatch { deletes, puts, ..CellBatch::default() }).unwrap();
    for slice in 0..HASH_SLICES {
        for (table, left) in [(0, &starts[..]), (1, &starts[3..]), (2, &starts[..2])] {
            for start in starts {
                let put = (slice, table, start) == (5, 1, 0);
                let right = if put { Some(cell(2)) } else { left.contains(&start).then(|| cell(1)) };
                assert_eq!(
                    get(store.as_ref(), &key(slice, table, start, "k")),
                    right,
                    "{slice} {table} {start}"
                );
            }
        }
    }
    assert_eq!(store.next_start(2, TimestampMs(-60)).unwrap(), None);
    assert_eq!(store.next_start(1, TimestampMs::MIN).unwrap(), Some(TimestampMs(0)));
}

pub(super) fn batches_survive_whole_and_in_order(host: &mut dyn Host) {
    let store = open(host);
    assert_eq!((store.progress().unwrap(), store.tables().unwrap()), (None, None));
    let tables = Some(b"tables".to_vec());
    store.apply(&CellBatch { tables: tables.clone(), ..CellBatch::default() }).unwrap();
    put(store.as_ref(), vec![(key(0, 0, 0, "k"), cell(1))], "1");
    store.flush().unwrap();
    put(store.as_ref(), vec![(key(0, 0, 0, "k"), cell(2)), (key(9, 9, 9, "new"), cell(2))], "2");
    assert_eq!(store.progress().unwrap(), Some(b"2".to_vec()));
    let store = host.crash().open(TASK).unwrap();
    // Progress and cells agree, and what was not part of a batch is as it was.
    let found = (store.progress().unwrap(), get(store.as_ref(), &key(0, 0, 0, "k")));
    assert_eq!(found, (Some(b"1".to_vec()), Some(cell(1))));
    assert_eq!(get(store.as_ref(), &key(9, 9, 9, "new")), None);
    assert_eq!(store.tables().unwrap(), tables);
}
