//! The stores on disk: the suite of all cold stores, kills, foreign and damaged directories.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use tallyflow_core::counter::HASH_SLICES;
use tallyflow_core::frame::delta::Bucket;
use tallyflow_core::ids::{Identity, NextOffset, PayloadCheck};
use tallyflow_core::processor::Cell;
use tallyflow_core::sum::Sum;
use tallyflow_core::time::TimestampMs;
use tallyflow_state::cold::{CellBatch, SeenEntry};
use tallyflow_state::conformance::{self, Host};
use tallyflow_state::keys::CellKey;
use tempfile::TempDir;

use super::*;

const APP: &str = "shop";
const TASK: &str = "shop.entries-0";
const MEMORY_BYTES: u64 = 16 << 20;

fn stores(dir: &Path) -> RocksStores {
    RocksStores::open(dir, APP, MEMORY_BYTES).unwrap()
}

/// Stores in a directory; a kill is a copy of what the files hold at that moment.
struct DiskHost {
    dir: TempDir,
    stores: RocksStores,
    /// Earlier lives, whose handles are still around.
    dead: Vec<(TempDir, RocksStores)>,
}

impl DiskHost {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let stores = stores(dir.path());
        Self { dir, stores, dead: Vec::new() }
    }
}

impl Host for DiskHost {
    fn stores(&mut self) -> Box<dyn ColdStores> {
        Box::new(self.stores.clone())
    }

    fn crash(&mut self) -> Box<dyn ColdStores> {
        let image = tempfile::tempdir().unwrap();
        copy(self.dir.path(), image.path());
        let stores = stores(image.path());
        let dir = std::mem::replace(&mut self.dir, image);
        self.dead.push((dir, std::mem::replace(&mut self.stores, stores)));
        Box::new(self.stores.clone())
    }
}

fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            fs::create_dir(&target).unwrap();
            copy(&entry.path(), &target);
        } else if let Err(error) = fs::copy(entry.path(), &target) {
            // RocksDB deletes files that it needs no more in the background.
            assert_eq!(error.kind(), io::ErrorKind::NotFound, "{error}");
        }
    }
}

#[test]
fn the_store_on_disk_conforms() {
    conformance::run_all(&mut || Box::new(DiskHost::new()));
}

fn key(slice: u8, name: &str) -> Vec<u8> {
    let mut out = Vec::new();
    CellKey { slice, table: 0, start: TimestampMs(60_000), key: name.as_bytes() }.write(&mut out);
    out
}

/// One cell in each slice, all with the value that the progress names, and many others: enough of them that the
/// family of cells is flushed on its own account too.
fn put_round(store: &dyn ColdStore, round: u64) {
    let cell = Cell { sum: Sum(round.into()), events: round };
    let filler = |slice| (0..20).map(move |n| key(slice, &format!("filler {n:60}")));
    let keys = (0..HASH_SLICES).flat_map(|slice| filler(slice).chain([key(slice, "k")]));
    let puts = keys.map(|key| (key, cell)).collect();
    let progress = Some(round.to_le_bytes().to_vec());
    store.apply(&CellBatch { puts, progress, ..CellBatch::default() }).unwrap();
}

/// The round that the store holds; cells and progress must agree.
fn round_of(store: &dyn ColdStore) -> u64 {
    let round = store.progress().unwrap().map_or(0, |bytes| u64::from_le_bytes(bytes.try_into().unwrap()));
    let keys: Vec<Vec<u8>> = (0..HASH_SLICES).map(|slice| key(slice, "k")).collect();
    let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    let mut cells = Vec::new();
    store.get_cells(&keys, &mut cells).unwrap();
    for cell in cells {
        assert_eq!(cell.unwrap_or_default().events, round, "cells and progress disagree");
    }
    round
}

fn bucket(id: u64) -> Bucket {
    Bucket { id, first: NextOffset(0), end: Some((NextOffset(1), TimestampMs(0))) }
}

fn entries(count: u32) -> Vec<SeenEntry> {
    let identity = |n: u32| Identity::from_raw((u128::from(n) + 1) << 64);
    (0..count).map(|n| SeenEntry::new(identity(n), PayloadCheck(n))).collect()
}

const CHILD: &str = "TALLYFLOW_TEST_KILLED_CHILD";

/// The process that is killed: writes rounds, flushes and seals now and then, says which rounds it has written and
/// which it has made durable.
#[test]
fn killed_child() {
    let Some(dir) = std::env::var_os(CHILD) else {
        return;
    };
    let store = stores(Path::new(&dir)).open(TASK).unwrap();
    let mut round = round_of(store.as_ref());
    loop {
        round += 1;
        put_round(store.as_ref(), round);
        // Straight to the pipe: the harness captures what is printed.
        let say = |what| io::Write::write_all(&mut io::stderr(), format!("\n{what} {round}\n").as_bytes());
        if round.is_multiple_of(50) {
            say("wrote").unwrap();
        }
        if round.is_multiple_of(400) {
            store.flush().unwrap();
            store.seal(&bucket(round % 7), &entries(300), b"filter").unwrap();
            say("durable").unwrap();
        }
    }
}

#[test]
fn after_a_kill_all_families_and_the_progress_agree() {
    let dir = tempfile::tempdir().unwrap();
    let mut before = 0;
    // After so many lines: before the first flush, at one, between two.
    for lines in [4, 9, 15, 2] {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "stores::tests::killed_child", "--nocapture"])
            .env(CHILD, dir.path())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let said = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let said: Vec<(String, u64)> = said
            .filter_map(|line| {
                let (what, round) = line.split_once(' ')?;
                matches!(what, "wrote" | "durable").then(|| (what.to_owned(), round.parse().unwrap()))
            })
            .take(lines)
            .collect();
        let durable = said.iter().filter(|(what, _)| what == "durable").map(|(_, round)| *round).max();
        child.kill().unwrap();
        child.wait().unwrap();
        let store = stores(dir.path()).open(TASK).unwrap();
        let round = round_of(store.as_ref());
        assert!(round >= durable.unwrap_or(before), "{round}, said {said:?}, before {before}");
        for sealed in store.buckets().unwrap() {
            let mut checks = Vec::new();
            let ids: Vec<_> = entries(300).iter().map(|entry| entry.id()).collect();
            store.lookup(sealed.bucket.id, &ids, &mut checks).unwrap();
            assert!(checks.iter().all(Option::is_some), "a bucket with a marker is whole");
        }
        before = round;
    }
}

#[test]
fn a_clean_close_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut stores = stores(dir.path());
    put_round(stores.open(TASK).unwrap().as_ref(), 5);
    assert_eq!(round_of(stores.open(TASK).unwrap().as_ref()), 5);
}

#[test]
fn a_second_opener_is_told_who_and_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let mut first = stores(dir.path());
    let _held = first.open(TASK).unwrap();
    // A clone is another worker; another value stands for another process: it meets the lock file of RocksDB.
    let cases = [(first.clone(), "another worker"), (stores(dir.path()), "another process")];
    for (mut stores, who) in cases {
        let Err(ColdError::Locked(said)) = stores.open(TASK) else { panic!("opened twice") };
        assert!(said.contains(who) && said.contains(TASK), "{said}");
    }
}

#[test]
fn another_apps_directory_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    drop(stores(dir.path()));
    let Err(ColdError::Foreign(said)) = RocksStores::open(dir.path(), "bank", MEMORY_BYTES) else {
        panic!("opened another app's state")
    };
    assert!(said.contains("\"shop\"") && said.contains("\"bank\"") && said.contains("state_dir"), "{said}");
    drop(stores(dir.path()));
}

#[test]
fn names_that_are_no_tasks_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut stores = stores(dir.path());
    for name in ["", ".", "..", "a/b", "../x", "a b", "ä"] {
        assert!(matches!(stores.open(name), Err(ColdError::Invariant(_))), "{name}");
        assert!(matches!(stores.discard(name), Err(ColdError::Invariant(_))), "{name}");
    }
}

/// Files of a task's database with this ending, or beginning.
fn files(dir: &Path, part: &str) -> Vec<PathBuf> {
    let db = dir.join("count").join(TASK).join("db");
    let all = fs::read_dir(db).unwrap().map(|entry| entry.unwrap().path());
    all.filter(|path| path.file_name().unwrap().to_str().unwrap().contains(part)).collect()
}

#[test]
fn damage_is_said_and_a_discarded_store_starts_over() {
    for part in ["CURRENT", "MANIFEST", ".sst"] {
        let dir = tempfile::tempdir().unwrap();
        let mut stores = stores(dir.path());
        let store = stores.open(TASK).unwrap();
        put_round(store.as_ref(), 5);
        store.flush().unwrap();
        drop(store);
        for file in files(dir.path(), part) {
            fs::write(file, "noise").unwrap();
        }
        let read = |store: Arc<dyn ColdStore>| {
            store.progress()?;
            store.get_cells(&[&key(0, "k")], &mut Vec::new())
        };
        let Err(ColdError::Damaged(said)) = stores.open(TASK).and_then(read) else {
            panic!("{part} is intact")
        };
        assert!(said.contains(TASK) && said.contains("rebuilt from Kafka"), "{said}");
        stores.discard(TASK).unwrap();
        assert_eq!(round_of(stores.open(TASK).unwrap().as_ref()), 0);
    }
}

#[test]
fn every_family_has_its_options() {
    let dir = tempfile::tempdir().unwrap();
    let _store = stores(dir.path()).open(TASK).unwrap();
    let text = fs::read_to_string(files(dir.path(), "OPTIONS").pop().unwrap()).unwrap();
    assert!(text.contains("atomic_flush=true"));
    let families: Vec<&str> = text.split("[CFOptions ").skip(1).collect();
    assert_eq!(families.len(), 3);
    for family in families {
        assert!(family.contains("write_buffer_size=1048576"), "{family}");
        assert!(family.contains("cache_index_and_filter_blocks=true"), "{family}");
        let seen = family.starts_with("\"seen\"");
        assert_eq!(family.contains("compression=kNoCompression"), seen, "{family}");
        assert_eq!(family.contains("filter_policy=nullptr"), seen, "{family}");
    }
}

#[test]
fn debris_of_a_crash_is_removed() {
    let dir = tempfile::tempdir().unwrap();
    let mut stores = stores(dir.path());
    let store = stores.open(TASK).unwrap();
    store.seal(&bucket(1), &entries(10), b"f").unwrap();
    drop(store);
    let debris = dir.path().join("count").join(TASK).join("ingest/2-0.sst");
    fs::write(&debris, "half a file").unwrap();
    let store = stores.open(TASK).unwrap();
    assert!(!debris.exists());
    assert_eq!(store.buckets().unwrap().len(), 1);
}

#[test]
fn a_large_bucket_is_several_files_that_go_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let store = stores(dir.path()).open(TASK).unwrap();
    let all = entries(4_000_000);
    store.seal(&bucket(1), &all, &vec![1; 4_500_000]).unwrap();
    store.seal(&bucket(2), &all[..10], b"f").unwrap();
    assert!(files(dir.path(), ".sst").len() >= 3, "{:?}", files(dir.path(), ".sst"));
    assert_eq!(store.buckets().unwrap()[0].ids, 4_000_000);
    let ids: Vec<_> = all.iter().step_by(4001).map(|entry| entry.id()).collect();
    let mut checks = Vec::new();
    store.lookup(1, &ids, &mut checks).unwrap();
    assert!(checks.iter().all(Option::is_some));
    store.drop_bucket(1).unwrap();
    assert_eq!(files(dir.path(), ".sst").len(), 1);
    assert_eq!(store.buckets().unwrap().len(), 1);
}
