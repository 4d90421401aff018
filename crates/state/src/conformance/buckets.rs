//! Sealed buckets: durable at once, whole, and gone when they are dropped.

use tallyflow_core::frame::delta::Bucket;
use tallyflow_core::ids::{Identity, NextOffset, PayloadCheck};
use tallyflow_core::time::TimestampMs;

use super::{Host, TASK, cell, key, open, put};
use crate::cold::{ColdStore, SeenEntry};

pub(super) fn bucket(id: u64) -> Bucket {
    Bucket {
        id,
        first: NextOffset(id as i64 * 10),
        end: Some((NextOffset(id as i64 * 10 + 10), TimestampMs(-1))),
    }
}

pub(super) fn entries(count: u64, check: u32) -> Vec<SeenEntry> {
    let identity = |n: u64| {
        Identity::from_raw((u128::from(n) + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835))
    };
    let mut all: Vec<SeenEntry> =
        (0..count).map(|n| SeenEntry::new(identity(n), PayloadCheck(check + n as u32))).collect();
    all.sort_unstable();
    all
}

fn lookup(store: &dyn ColdStore, bucket_id: u64, entries: &[SeenEntry]) -> Vec<Option<u32>> {
    let ids: Vec<_> = entries.iter().map(|entry| entry.id()).collect();
    let mut out = Vec::new();
    store.lookup(bucket_id, &ids, &mut out).unwrap();
    out
}

pub(super) fn buckets_are_durable_at_once(host: &mut dyn Host) {
    let store = open(host);
    let all = entries(5000, 7);
    let (inside, outside) = (
        all.iter().copied().step_by(2).collect::<Vec<_>>(),
        all.iter().copied().skip(1).step_by(2).collect::<Vec<_>>(),
    );
    let filter = vec![0xAB; 300_000];
    put(store.as_ref(), vec![(key(0, 0, 0, "k"), cell(1))], "lost");
    store.seal(&bucket(1), &inside, &filter).unwrap();
    store.seal(&bucket(u64::MAX), &outside, b"").unwrap();
    store.seal(&bucket(2), &[], b"empty").unwrap();
    let store = host.crash().open(TASK).unwrap();
    let checks = |list: &[SeenEntry]| list.iter().map(|entry| Some(entry.check())).collect::<Vec<_>>();
    assert_eq!(lookup(store.as_ref(), 1, &inside), checks(&inside));
    assert_eq!(lookup(store.as_ref(), 1, &outside), vec![None; outside.len()]);
    assert_eq!(lookup(store.as_ref(), u64::MAX, &outside), checks(&outside));
    for nothing in [0, 2, 3] {
        assert_eq!(lookup(store.as_ref(), nothing, &all), vec![None; all.len()]);
    }
    let found = store.buckets().unwrap();
    let right =
        [(bucket(1), 2500, filter), (bucket(2), 0, b"empty".to_vec()), (bucket(u64::MAX), 2500, vec![])];
    assert_eq!(found.into_iter().map(|b| (b.bucket, b.ids, b.filter)).collect::<Vec<_>>(), right);
    // Sealed again, with other ids: the new content counts.
    store.seal(&bucket(1), &outside[..10], b"new").unwrap();
    assert_eq!(lookup(store.as_ref(), 1, &inside), vec![None; inside.len()]);
    assert_eq!(lookup(store.as_ref(), 1, &outside[..10]), checks(&outside[..10]));
    assert_eq!(store.buckets().unwrap()[0].ids, 10);
}

pub(super) fn dropped_buckets_stay_dropped(host: &mut dyn Host) {
    let store = open(host);
    let all = entries(2000, 1);
    (1..=3).for_each(|id| store.seal(&bucket(id), &all, b"f").unwrap());
    store.drop_bucket(2).unwrap();
    store.drop_bucket(9).unwrap();
    let right = vec![Some(all[0].check())];
    let look = |store: &dyn ColdStore| (1..=3).map(|id| lookup(store, id, &all[..1])).collect::<Vec<_>>();
    assert_eq!(look(store.as_ref()), [right.clone(), vec![None], right.clone()]);
    let store = host.crash().open(TASK).unwrap();
    assert_eq!(look(store.as_ref()), [right.clone(), vec![None], right.clone()]);
    assert_eq!(store.buckets().unwrap().iter().map(|b| b.bucket.id).collect::<Vec<_>>(), [1, 3]);
    store.seal(&bucket(2), &all, b"f").unwrap();
    assert_eq!(look(store.as_ref()), [right.clone(), right.clone(), right]);
}
