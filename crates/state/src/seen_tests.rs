//! What is seen, against a list: every case of R5, and aborts, faults and crashes at any place.

use proptest::prelude::*;
use tallyflow_core::ids::NextOffset;
use tallyflow_core::time::TimestampMs;

use super::*;
use crate::cold::ColdStores;
use crate::memory::MemoryStores;

fn identity(n: u64) -> Identity {
    Identity::from_raw((u128::from(n) + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835))
}

fn ids(list: &[(u64, u32)]) -> Vec<(Identity, PayloadCheck)> {
    list.iter().map(|(n, check)| (identity(*n), PayloadCheck(*check))).collect()
}

fn bucket(id: u64) -> Bucket {
    let offset = |id: u64| NextOffset(id as i64 * 10);
    Bucket { id, first: offset(id), end: Some((offset(id + 1), TimestampMs(id as i64 * 1000))) }
}

fn open_bucket(id: u64) -> Bucket {
    Bucket { end: None, ..bucket(id) }
}

fn sight(store: &mut SeenStore, list: &[(u64, u32)]) -> Vec<Sighting> {
    let mut out = Vec::new();
    store.sight(&ids(list), &mut out).unwrap();
    out
}

fn fresh() -> (MemoryStores, SeenStore) {
    let mut stores = MemoryStores::new();
    let store = SeenStore::new(stores.open("count-0").unwrap());
    (stores, store)
}

use Sighting::{Different, First, Same};

#[test]
fn two_copies_in_one_batch_count_one() {
    // T12, T10
    let (_, mut store) = fresh();
    assert_eq!(sight(&mut store, &[(1, 5), (1, 5), (1, 6), (2, 5)]), [First, Same, Different, First]);
}

#[test]
fn an_aborted_sighting_is_not_its_own_duplicate() {
    // T3
    let (_, mut store) = fresh();
    assert_eq!(sight(&mut store, &[(42, 1)]), [First]);
    store.abort();
    assert_eq!(sight(&mut store, &[(42, 1), (42, 1)]), [First, Same]);
}

#[test]
fn the_oldest_remembered_bucket_answers() {
    let (_, mut store) = fresh();
    sight(&mut store, &[(1, 5)]);
    store.roll(bucket(0));
    // A conflict is remembered in its own bucket, with its own payload.
    assert_eq!(sight(&mut store, &[(1, 6), (1, 5)]), [Different, Same]);
    store.roll(bucket(1));
    store.commit().unwrap();
    assert_eq!(sight(&mut store, &[(1, 5), (1, 6)]), [Same, Different]);
    store.forget(0);
    assert_eq!(sight(&mut store, &[(1, 6), (1, 5)]), [Same, Different]);
    store.abort();
    assert_eq!(sight(&mut store, &[(1, 5)]), [Same]);
    store.forget(0);
    store.forget(1);
    // The sighting of this very transaction is in the open bucket.
    assert_eq!(sight(&mut store, &[(1, 6)]), [Different]);
    store.commit().unwrap();
    assert_eq!((store.hot_len(), store.cold_len()), (1, 0));
}

#[test]
fn rolls_and_forgets_of_one_transaction_are_undone_together() {
    let (_, mut store) = fresh();
    sight(&mut store, &[(1, 1), (2, 2)]);
    store.commit().unwrap();
    sight(&mut store, &[(3, 3)]);
    store.roll(bucket(0));
    sight(&mut store, &[(4, 4)]);
    store.roll(bucket(1));
    store.forget(0);
    sight(&mut store, &[(5, 5)]);
    store.abort();
    assert_eq!((store.hot_len(), store.cold_len()), (2, 0));
    assert_eq!(
        sight(&mut store, &[(1, 1), (2, 2), (3, 3), (4, 4), (5, 5)]),
        [Same, Same, First, First, First]
    );
}

#[test]
fn nothing_reaches_the_disk_before_the_commit() {
    let (stores, mut store) = fresh();
    sight(&mut store, &[(1, 1)]);
    store.roll(bucket(0));
    assert_eq!(store.cold.buckets().unwrap(), []);
    store.commit().unwrap();
    assert_eq!(store.cold.buckets().unwrap().len(), 1);
    store.forget(0);
    assert_eq!(store.cold.buckets().unwrap().len(), 1);
    store.commit().unwrap();
    assert_eq!(store.cold.buckets().unwrap(), []);
    drop(stores);
}

#[test]
fn a_full_disk_changes_no_answer_and_the_next_commit_goes_on() {
    let (stores, mut store) = fresh();
    sight(&mut store, &[(1, 1)]);
    store.roll(bucket(0));
    stores.fail_writes(ColdError::Full("no room".to_owned()), 2);
    assert_eq!(store.commit(), Err(ColdError::Full("no room".to_owned())));
    assert_eq!(sight(&mut store, &[(1, 1), (2, 2)]), [Same, First]);
    assert!(store.commit().is_err());
    assert_eq!((store.hot_len(), store.cold_len()), (3, 0));
    store.commit().unwrap();
    assert_eq!((store.hot_len(), store.cold_len()), (2, 1));
    store.forget(0);
    stores.fail_writes(ColdError::Full("no room".to_owned()), 1);
    assert!(store.commit().is_err());
    store.commit().unwrap();
    assert_eq!(store.cold.buckets().unwrap(), []);
}

#[test]
fn an_unreadable_store_gives_no_answer_and_keeps_its_reaction() {
    let (stores, mut store) = fresh();
    sight(&mut store, &[(1, 1)]);
    store.roll(bucket(0));
    store.commit().unwrap();
    stores.crash(0);
    let mut out = Vec::new();
    assert!(store.sight(&ids(&[(1, 1), (2, 2)]), &mut out).is_err());
    assert!(matches!(store.take_error(), Some(ColdError::Other(_))));
    assert_eq!((out, store.hot_len(), store.take_error()), (vec![], 0, None));
}

#[test]
fn adoption_keeps_what_the_log_knows_and_deletes_the_rest() {
    let (mut stores, mut store) = fresh();
    for id in 0..4 {
        sight(&mut store, &[(id, 1)]);
        store.roll(bucket(id));
    }
    store.commit().unwrap();
    // One whose filter is not readable is replayed too.
    store.cold.seal(&bucket(3), &[], b"no filter").unwrap();
    stores.crash(0);
    let other_bounds = Bucket { first: NextOffset(21), ..bucket(2) };
    let list = [bucket(1), other_bounds, bucket(3), open_bucket(4)];
    let mut store = SeenStore::new(stores.open("count-0").unwrap());
    assert_eq!(store.adopt(&list).unwrap(), [other_bounds, bucket(3), open_bucket(4)]);
    let left: Vec<u64> = store.cold.buckets().unwrap().iter().map(|b| b.bucket.id).collect();
    assert_eq!((left, store.cold_len()), (vec![1], 1));
    // A bucket that is rebuilt beside a newer one on disk is still the older one.
    assert_eq!(sight(&mut store, &[(0, 1), (1, 1), (2, 1)]), [First, Same, First]);
}

#[test]
fn a_rebuilt_bucket_is_older_than_one_found_on_disk() {
    let (_, mut store) = fresh();
    sight(&mut store, &[(7, 2)]);
    store.roll(bucket(1));
    store.commit().unwrap();
    assert_eq!(store.adopt(&[bucket(0), bucket(1), open_bucket(2)]).unwrap(), [bucket(0), open_bucket(2)]);
    store.replay(identity(7), PayloadCheck(1));
    store.roll(bucket(0));
    assert_eq!(sight(&mut store, &[(7, 1), (7, 2)]), [Same, Different]);
    store.commit().unwrap();
    assert_eq!(sight(&mut store, &[(7, 1), (7, 2)]), [Same, Different]);
}

/// The model: the log, by bucket.
#[derive(Clone, Default)]
struct Model {
    /// (bucket, id, check), in order.
    log: Vec<(u64, u64, u32)>,
    closed: Vec<u64>,
    open: u64,
}

impl Model {
    fn sight(&mut self, n: u64, check: u32) -> Sighting {
        let remembered = |b: u64| b == self.open || self.closed.contains(&b);
        let known = self.log.iter().filter(|(b, id, _)| *id == n && remembered(*b)).min_by_key(|(b, ..)| *b);
        let answer = match known {
            None => First,
            Some((.., c)) if *c == check => Same,
            Some(_) => Different,
        };
        self.log.push((self.open, n, check));
        answer
    }

    fn buckets(&self) -> Vec<Bucket> {
        self.closed.iter().map(|id| bucket(*id)).chain([open_bucket(self.open)]).collect()
    }

    /// What the runtime does after a crash.
    fn restore(&self, store: &mut SeenStore) {
        for missing in store.adopt(&self.buckets()).unwrap() {
            for (_, n, check) in self.log.iter().filter(|(b, ..)| *b == missing.id) {
                store.replay(identity(*n), PayloadCheck(*check));
            }
            if missing.end.is_some() {
                store.roll(missing);
                store.commit().unwrap();
            }
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Sight(Vec<(u64, u32)>),
    Roll,
    Forget,
    Commit { faults: u32 },
    Abort,
    Crash { disk_lost: bool },
}

fn step() -> impl Strategy<Value = Step> {
    let sight = || proptest::collection::vec((0u64..60, 0u32..3), 1..20).prop_map(Step::Sight);
    prop_oneof![
        5 => sight(),
        2 => Just(Step::Roll),
        1 => Just(Step::Forget),
        2 => (0u32..3).prop_map(|faults| Step::Commit { faults }),
        1 => Just(Step::Abort),
        1 => any::<bool>().prop_map(|disk_lost| Step::Crash { disk_lost }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn answers_are_a_function_of_the_committed_log(steps in proptest::collection::vec(step(), 1..80)) {
        let (mut stores, mut store) = fresh();
        let (mut now, mut committed) = (Model::default(), Model::default());
        for step in steps {
            match step {
                Step::Sight(list) => {
                    let right: Vec<Sighting> = list.iter().map(|(n, check)| now.sight(*n, *check)).collect();
                    prop_assert_eq!(sight(&mut store, &list), right);
                }
                Step::Roll => {
                    store.roll(bucket(now.open));
                    now.closed.push(now.open);
                    now.open += 1;
                }
                Step::Forget if now.closed.is_empty() => {}
                Step::Forget => store.forget(now.closed.remove(0)),
                Step::Commit { faults } => {
                    stores.fail_writes(ColdError::Full("no room".to_owned()), faults);
                    let _ = store.commit();
                    stores.fail_writes(ColdError::Full("no room".to_owned()), 0);
                    committed = now.clone();
                }
                Step::Abort => { store.abort(); now = committed.clone(); }
                Step::Crash { disk_lost } => {
                    stores.crash(0);
                    drop(store);
                    if disk_lost { stores.discard("count-0").unwrap(); }
                    store = SeenStore::new(stores.open("count-0").unwrap());
                    committed.restore(&mut store);
                    now = committed.clone();
                }
            }
        }
    }
}
