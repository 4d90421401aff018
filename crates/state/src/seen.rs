//! The ids seen within the remembered range of the log: is this event a first sight, a copy, a conflict?
//!
//! ```text
//!            oldest ──────────────────────────────────────────► newest
//!   bucket     7 cold        8 cold        9 hot, closed     open
//!            filter → disk  filter → disk      table          table ◄── every sighting is stored here
//!              └── the oldest one that knows the id answers ──┘
//! ```
//!
//! Every sighting is stored in the bucket it happened in, with its own payload check; the first within a bucket
//! stays. So the answers are a function of the remembered range of the log, live or rebuilt (R5, TM-2).
//!
//! A transaction may insert, close the open table and forget buckets; `commit` keeps all of it and only then writes
//! closed tables to the cold store, `abort` takes all of it back.
//!
//! Keeps: EO-1 (only `commit` seals), TM-2, ID-1.
//!
//! Must not know: when buckets close or are forgotten, offsets, Kafka.

use std::sync::Arc;

use tallyflow_core::frame::delta::Bucket;
use tallyflow_core::ids::{Identity, PayloadCheck};
use tallyflow_core::processor::{SeenIds, Sighting, StateUnavailable};

use crate::cold::{ColdError, ColdStore, SeenEntry, SeenId};
use crate::filter::BucketFilter;
use crate::hot::HotTable;

/// The ids seen within the remembered range. Provisional until `commit`; `abort` goes back to the last commit.
pub struct SeenStore {
    cold: Arc<dyn ColdStore>,
    /// Closed buckets, oldest first.
    closed: Vec<ClosedBucket>,
    /// The bucket that every sighting goes to.
    open: HotTable,
    /// What was replayed and is not in the open table yet, in the log's order.
    replayed: Vec<SeenEntry>,
    /// Forgotten for good, but still on disk.
    to_delete: Vec<u64>,
    last_error: Option<ColdError>,
    /// The batch in work, and what closed buckets know of it: kept to save allocations.
    batch: Vec<SeenEntry>,
    answers: Vec<Option<u32>>,
}

struct ClosedBucket {
    bucket: Bucket,
    place: Place,
    /// Closed since the last commit.
    provisional: bool,
    /// Forgotten since the last commit.
    forgotten: bool,
}

enum Place {
    Hot(HotTable),
    Cold { filter: BucketFilter, ids: u64 },
}

impl SeenStore {
    /// A store that remembers nothing; [`SeenStore::adopt`] comes next.
    pub fn new(cold: Arc<dyn ColdStore>) -> Self {
        Self {
            cold,
            closed: Vec::new(),
            open: HotTable::default(),
            replayed: Vec::new(),
            to_delete: Vec::new(),
            last_error: None,
            batch: Vec::new(),
            answers: Vec::new(),
        }
    }

    /// Starts over from the log's list of buckets, oldest first. What is intact on disk is kept, everything else is
    /// deleted from disk. Returns, oldest first, the buckets that must be replayed from `entries`; the open one (it
    /// has no end) is always among them.
    ///
    /// For each closed one: [`SeenStore::replay`] its ids, [`SeenStore::roll`], [`SeenStore::commit`]. Then replay
    /// the open one.
    ///
    /// # Errors
    ///
    /// Where the cold store could not be read or cleaned; call again.
    pub fn adopt(&mut self, buckets: &[Bucket]) -> Result<Vec<Bucket>, ColdError> {
        *self = Self::new(Arc::clone(&self.cold));
        let mut missing: Vec<Bucket> = buckets.to_vec();
        for found in self.cold.buckets()? {
            let wanted = missing.iter().position(|b| *b == found.bucket && b.end.is_some());
            match (wanted, BucketFilter::from_bytes(&found.filter)) {
                (Some(at), Some(filter)) => {
                    missing.remove(at);
                    self.insert_closed(found.bucket, Place::Cold { filter, ids: found.ids }, false);
                }
                _ => self.cold.drop_bucket(found.bucket.id)?,
            }
        }
        Ok(missing)
    }

    /// Remembers an id of a committed offset in the open table, while restoring; nothing undoes it.
    pub fn replay(&mut self, identity: Identity, check: PayloadCheck) {
        self.replayed.push(SeenEntry::new(identity, check));
    }

    /// Closes the open table as this bucket, provisionally, and begins a new one. Several per transaction are fine.
    pub fn roll(&mut self, bucket_closed: Bucket) {
        self.take_in_replayed();
        // The next bucket is likely to hold about as many.
        let next = HotTable::with_room_for(self.open.len());
        let table = std::mem::replace(&mut self.open, next);
        self.insert_closed(bucket_closed, Place::Hot(table), true);
    }

    /// Forgets a closed bucket, provisionally: from now on it does not answer. An unknown number is fine.
    pub fn forget(&mut self, bucket_id: u64) {
        for closed in self.closed.iter_mut().filter(|closed| closed.bucket.id == bucket_id) {
            closed.forgotten = true;
        }
    }

    /// Keeps everything since the last commit, then deletes forgotten buckets from disk and seals closed tables.
    /// Call it after the Kafka commit, and nowhere else (EO-1).
    ///
    /// # Errors
    ///
    /// Only the work on disk is incomplete then, no answer depends on it: call `commit` again, at the latest after
    /// the next transaction.
    pub fn commit(&mut self) -> Result<(), ColdError> {
        self.open.commit();
        let to_delete = &mut self.to_delete;
        self.closed.retain_mut(|closed| {
            closed.provisional = false;
            match &mut closed.place {
                Place::Hot(table) => table.commit(),
                Place::Cold { .. } if closed.forgotten => to_delete.push(closed.bucket.id),
                Place::Cold { .. } => {}
            }
            !closed.forgotten
        });
        // Deleting comes first: it makes room on a full disk.
        while let Some(bucket_id) = self.to_delete.last() {
            self.cold.drop_bucket(*bucket_id)?;
            self.to_delete.pop();
        }
        let cold = &self.cold;
        self.closed.iter_mut().try_for_each(|closed| closed.seal(cold.as_ref()))
    }

    /// Goes back to the last commit: inserts, rolls and forgets are undone.
    pub fn abort(&mut self) {
        self.take_in_replayed();
        self.open.abort();
        // The oldest table that was closed since the last commit is the one that was open then.
        if let Some(at) = self.closed.iter().position(|closed| closed.provisional)
            && let Place::Hot(mut table) = self.closed.remove(at).place
        {
            table.abort();
            self.open = table;
        }
        self.closed.retain(|closed| !closed.provisional);
        self.closed.iter_mut().for_each(|closed| closed.forgotten = false);
    }

    /// Ids in memory; while ids are replayed, copies count too.
    pub fn hot_len(&self) -> u64 {
        let closed = self.closed.iter().map(|closed| match &closed.place {
            Place::Hot(table) => table.len() as u64,
            Place::Cold { .. } => 0,
        });
        (self.open.len() + self.replayed.len()) as u64 + closed.sum::<u64>()
    }

    /// Ids on disk.
    pub fn cold_len(&self) -> u64 {
        let closed = self.closed.iter().map(|closed| match &closed.place {
            Place::Hot(_) => 0,
            Place::Cold { ids, .. } => *ids,
        });
        closed.sum()
    }

    /// Bytes of tables and filters.
    pub fn memory_bytes(&self) -> u64 {
        let closed = self.closed.iter().map(|closed| match &closed.place {
            Place::Hot(table) => table.memory_bytes(),
            Place::Cold { filter, .. } => filter.memory_bytes(),
        });
        let replayed = self.replayed.capacity() * size_of::<SeenEntry>();
        (self.open.memory_bytes() + replayed + closed.sum::<usize>()) as u64
    }

    /// The error behind the last [`StateUnavailable`]: the trait of the processors carries only its words.
    pub const fn take_error(&mut self) -> Option<ColdError> {
        self.last_error.take()
    }

    /// Moves what was replayed into the open table. Before anything else happens to that table.
    fn take_in_replayed(&mut self) {
        if self.replayed.is_empty() {
            return;
        }
        let replayed = std::mem::take(&mut self.replayed);
        if self.open.is_empty() {
            self.open = HotTable::from_log(replayed);
        } else {
            replayed.iter().for_each(|entry| self.open.insert_committed(*entry));
        }
    }

    fn insert_closed(&mut self, bucket: Bucket, place: Place, provisional: bool) {
        let at = self.closed.partition_point(|closed| closed.bucket.id < bucket.id);
        self.closed.insert(at, ClosedBucket { bucket, place, provisional, forgotten: false });
    }

    /// Asks the closed buckets about the batch, oldest first: one cold lookup per bucket, of filter hits only.
    fn ask_closed(&mut self) -> Result<(), ColdError> {
        self.answers.clear();
        self.answers.resize(self.batch.len(), None);
        for closed in self.closed.iter().filter(|closed| !closed.forgotten) {
            match &closed.place {
                Place::Hot(table) if table.is_empty() => {}
                Place::Hot(table) => {
                    let unanswered = self.answers.iter_mut().zip(&self.batch).filter(|(a, _)| a.is_none());
                    unanswered.for_each(|(answer, entry)| *answer = table.get(*entry));
                }
                Place::Cold { filter, .. } => {
                    let id = closed.bucket.id;
                    ask_cold(self.cold.as_ref(), id, filter, &self.batch, &mut self.answers)?;
                }
            }
        }
        Ok(())
    }
}

impl SeenIds for SeenStore {
    fn sight(
        &mut self,
        ids: &[(Identity, PayloadCheck)],
        out: &mut Vec<Sighting>,
    ) -> Result<(), StateUnavailable> {
        self.take_in_replayed();
        self.batch.clear();
        self.batch.extend(ids.iter().map(|(identity, check)| SeenEntry::new(*identity, *check)));
        // Nothing is inserted before every closed bucket has answered: an error leaves no trace.
        if let Err(error) = self.ask_closed() {
            self.last_error = Some(error.clone());
            return Err(error.into());
        }
        let Self { batch, answers, open, .. } = self;
        for (entries, answers) in batch.chunks(WARM_IDS).zip(answers.chunks(WARM_IDS)) {
            open.warm(entries);
            for (entry, closed) in entries.iter().zip(answers) {
                let known = open.insert(*entry);
                out.push(match closed.or(known) {
                    None => Sighting::First,
                    Some(check) if check == entry.check() => Sighting::Same,
                    Some(_) => Sighting::Different,
                });
            }
        }
        Ok(())
    }
}

/// How many ids are brought into the cache at once: 64 lines of 64 bytes, an eighth of a 32 KiB cache.
const WARM_IDS: usize = 64;

/// Asks one cold bucket about everything in the batch that has no answer yet.
fn ask_cold(
    cold: &dyn ColdStore,
    bucket_id: u64,
    filter: &BucketFilter,
    batch: &[SeenEntry],
    answers: &mut [Option<u32>],
) -> Result<(), ColdError> {
    let unanswered = batch.iter().zip(answers.iter()).enumerate();
    let unanswered =
        unanswered.filter(|(_, (_, answer))| answer.is_none()).map(|(at, (entry, _))| (at, *entry));
    let mut hits: Vec<(SeenId, usize)> = Vec::new();
    filter.probe(unanswered, |at, entry| hits.push((entry.id(), at)));
    if hits.is_empty() {
        return Ok(());
    }
    hits.sort_unstable();
    let mut ids: Vec<SeenId> = hits.iter().map(|(id, _)| *id).collect();
    ids.dedup();
    let mut found = Vec::with_capacity(ids.len());
    cold.lookup(bucket_id, &ids, &mut found)?;
    // Copies within the batch share an answer.
    for (copies, check) in hits.chunk_by(|a, b| a.0 == b.0).zip(found) {
        for (_, at) in copies {
            if let Some(answer) = answers.get_mut(*at) {
                *answer = check;
            }
        }
    }
    Ok(())
}

impl ClosedBucket {
    /// Moves a hot table to the cold store. On an error it stays hot.
    fn seal(&mut self, cold: &dyn ColdStore) -> Result<(), ColdError> {
        let Place::Hot(table) = &mut self.place else {
            return Ok(());
        };
        let sorted = std::mem::take(table).into_sorted();
        let filter = BucketFilter::build(&sorted);
        match cold.seal(&self.bucket, &sorted, &filter.to_bytes()) {
            Ok(()) => {
                self.place = Place::Cold { filter, ids: sorted.len() as u64 };
                Ok(())
            }
            Err(error) => {
                self.place = Place::Hot(HotTable::from_entries(&sorted));
                Err(error)
            }
        }
    }
}

#[cfg(test)]
#[path = "seen_tests.rs"]
mod tests;
