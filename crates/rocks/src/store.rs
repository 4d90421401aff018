//! The cold store of one task: a RocksDB without a write-ahead log.
//!
//! ```text
//!   apply ──► memtables of cells and meta ──flush, all families at one point──► files
//!   seal  ──► sorted files with the marker in the last one ──ingest, atomic───► files
//! ```
//!
//! A crash loses memtables and nothing else: what is left is a prefix of the batches, because all families are
//! flushed at one point, and every bucket that was sealed.
//!
//! Keeps: EO-3 (progress and cells are one batch), ID-1 (a bucket is there whole or not at all).

use std::fs;
use std::path::{Path, PathBuf};

use rocksdb::{
    ColumnFamily, DB, DBRawIterator, FlushOptions, IngestExternalFileOptions, Options, ReadOptions,
    SstFileWriter, WriteBatch,
};
use tallyflow_core::counter::HASH_SLICES;
use tallyflow_core::frame::delta::Bucket;
use tallyflow_core::processor::Cell;
use tallyflow_core::time::TimestampMs;
use tallyflow_state::cold::{CellBatch, ColdError, ColdStore, SealedBucket, SeenEntry, SeenId, WindowRange};
use tallyflow_state::keys::{CellKey, after_prefix, window_prefix};

use crate::options::{CELLS, META, Memory, SEALED_FILE_BYTES, SEEN};
use crate::stores::OpenGuard;
use crate::{errors, keys};

/// One task's store. Dropping it closes the database, which flushes what is in memory.
pub(crate) struct RocksStore {
    // Dropped in this order: the name is free only after the database is closed.
    db: DB,
    path: PathBuf,
    ingest_dir: PathBuf,
    sealed_options: Options,
    _guard: OpenGuard,
}

impl RocksStore {
    /// Opens, or makes, the store in a task's directory.
    pub(crate) fn open(dir: &Path, memory: &Memory, guard: OpenGuard) -> Result<Self, ColdError> {
        let (path, ingest_dir) = (dir.join("db"), dir.join("ingest"));
        fs::create_dir_all(&path).map_err(|error| errors::of_io(&path, &error))?;
        let at = |error: rocksdb::Error| errors::of_rocks(&path, &error);
        let options = memory.db();
        // All families that exist must be named; a new database has no list yet.
        let existing = if path.join("CURRENT").exists() {
            DB::list_cf(&options, &path).map_err(at)?
        } else {
            Vec::new()
        };
        let db = DB::open_cf_descriptors(&options, &path, memory.families(&existing)).map_err(at)?;
        let sealed_options = memory.family(SEEN);
        let store = Self { db, path, ingest_dir, sealed_options, _guard: guard };
        store.clean()?;
        Ok(store)
    }

    /// Removes what a crash may have left: files that were not ingested, buckets that were dropped in part.
    fn clean(&self) -> Result<(), ColdError> {
        let at = |error: std::io::Error| errors::of_io(&self.ingest_dir, &error);
        if self.ingest_dir.exists() {
            fs::remove_dir_all(&self.ingest_dir).map_err(at)?;
        }
        fs::create_dir_all(&self.ingest_dir).map_err(at)?;
        for (bucket_id, sealed) in self.all_buckets()? {
            if sealed.is_none() {
                self.drop_bucket(bucket_id)?;
            }
        }
        Ok(())
    }

    /// Every bucket that has keys, with its marker if that is readable.
    fn all_buckets(&self) -> Result<Vec<(u64, Option<SealedBucket>)>, ColdError> {
        let mut options = ReadOptions::default();
        // Filters are megabytes and read once.
        options.fill_cache(false);
        let mut iterator = self.db.raw_iterator_cf_opt(self.family(SEEN)?, options);
        let mut found = Vec::new();
        iterator.seek_to_first();
        while let Some(bucket_id) = self.current(&iterator)?.and_then(|(key, _)| keys::bucket_of(key)) {
            let marker = keys::marker_key(bucket_id);
            iterator.seek(marker);
            let sealed = match self.current(&iterator)? {
                Some((key, value)) if key == marker => keys::decode_marker(value),
                _ => None,
            };
            found.push((bucket_id, sealed));
            iterator.seek(keys::bucket_end(bucket_id));
        }
        Ok(found)
    }

    fn family(&self, name: &str) -> Result<&ColumnFamily, ColdError> {
        self.db
            .cf_handle(name)
            .ok_or_else(|| errors::damaged(&self.path, &format!("no column family {name}")))
    }

    fn at(&self, error: &rocksdb::Error) -> ColdError {
        errors::of_rocks(&self.path, error)
    }

    /// Key and value an iterator stands at; `None` past the end.
    fn current<'a>(&self, iterator: &'a DBRawIterator<'_>) -> Result<Option<Item<'a>>, ColdError> {
        match iterator.item() {
            Some(item) => Ok(Some(item)),
            // Past the end and broken look the same until asked.
            None => iterator.status().map(|()| None).map_err(|error| self.at(&error)),
        }
    }

    fn decode_cell(&self, bytes: &[u8]) -> Result<Cell, ColdError> {
        keys::decode_cell(bytes)
            .ok_or_else(|| errors::damaged(&self.path, "the value of a cell is not readable"))
    }

    fn meta(&self, key: &[u8]) -> Result<Option<Vec<u8>>, ColdError> {
        self.db.get_cf(self.family(META)?, key).map_err(|error| self.at(&error))
    }

    fn write(&self, batch: WriteBatch) -> Result<(), ColdError> {
        self.db.write_without_wal(batch).map_err(|error| self.at(&error))
    }

    /// Writes a bucket into files, the marker last. Returns their paths.
    fn write_files(
        &self,
        bucket: &Bucket,
        ids: &[SeenEntry],
        marker: &[u8],
    ) -> Result<Vec<PathBuf>, ColdError> {
        let mut files = Vec::new();
        let mut rest = ids;
        loop {
            let file = self.ingest_dir.join(format!("{}-{}.sst", bucket.id, files.len()));
            let mut writer = SstFileWriter::create(&self.sealed_options);
            let written = write_file(&mut writer, &file, bucket.id, &mut rest, marker);
            files.push(file);
            if let Err(error) = written {
                remove_files(&files);
                return Err(self.at(&error));
            }
            if rest.is_empty() {
                return Ok(files);
            }
        }
    }
}

/// A key and its value.
type Item<'a> = (&'a [u8], &'a [u8]);

/// Writes one file: ids up to the limit, and the marker if they are the last ones.
fn write_file<'a>(
    writer: &mut SstFileWriter<'a>,
    file: &Path,
    bucket_id: u64,
    rest: &mut &[SeenEntry],
    marker: &[u8],
) -> Result<(), rocksdb::Error> {
    writer.open(file)?;
    let mut written = 0;
    // The size on disk is known by block only: asked every 4096 ids.
    while let Some((entry, tail)) = rest.split_first() {
        writer.put(keys::seen_key(bucket_id, &entry.id()), entry.check().to_le_bytes())?;
        *rest = tail;
        written += 1;
        if written % 4096 == 0 && !tail.is_empty() && writer.file_size() >= SEALED_FILE_BYTES {
            return writer.finish();
        }
    }
    writer.put(keys::marker_key(bucket_id), marker)?;
    writer.finish()
}

/// What cannot be removed now is removed when the store is opened next.
fn remove_files(files: &[PathBuf]) {
    for file in files {
        let _ = fs::remove_file(file);
    }
}

/// The first and the exclusive last key of a range of windows in one slice.
fn bounds(slice: u8, range: &WindowRange) -> (Vec<u8>, Vec<u8>) {
    let from = window_prefix(slice, range.table, range.from).to_vec();
    let end = match range.before {
        Some(before) => window_prefix(slice, range.table, before).to_vec(),
        // Slices are few, so there is always a key after a table.
        None => after_prefix(&[slice, range.table]).unwrap_or_default(),
    };
    (from, end)
}

impl ColdStore for RocksStore {
    fn progress(&self) -> Result<Option<Vec<u8>>, ColdError> {
        self.meta(keys::PROGRESS)
    }

    fn tables(&self) -> Result<Option<Vec<u8>>, ColdError> {
        self.meta(keys::TABLES)
    }

    fn get_cells(&self, keys: &[&[u8]], out: &mut Vec<Option<Cell>>) -> Result<(), ColdError> {
        for found in self.db.batched_multi_get_cf(self.family(CELLS)?, keys.iter().copied(), true) {
            let value = found.map_err(|error| self.at(&error))?;
            out.push(value.map(|bytes| self.decode_cell(&bytes)).transpose()?);
        }
        Ok(())
    }

    fn scan_cells(
        &self,
        prefix: &[u8],
        after: Option<&[u8]>,
        limit: usize,
        out: &mut Vec<(Vec<u8>, Cell)>,
    ) -> Result<(), ColdError> {
        let mut options = ReadOptions::default();
        if let Some(end) = after_prefix(prefix) {
            options.set_iterate_upper_bound(end);
        }
        let mut iterator = self.db.raw_iterator_cf_opt(self.family(CELLS)?, options);
        match after {
            Some(after) if after >= prefix => {
                iterator.seek(after);
                if iterator.key() == Some(after) {
                    iterator.next();
                }
            }
            _ => iterator.seek(prefix),
        }
        for _ in 0..limit {
            let Some((key, value)) = self.current(&iterator)? else {
                break;
            };
            out.push((key.to_vec(), self.decode_cell(value)?));
            iterator.next();
        }
        Ok(())
    }

    fn next_start(&self, table: u8, after: TimestampMs) -> Result<Option<TimestampMs>, ColdError> {
        let Some(from) = after.0.checked_add(1).map(TimestampMs) else {
            return Ok(None);
        };
        let mut iterator = self.db.raw_iterator_cf(self.family(CELLS)?);
        let mut next: Option<TimestampMs> = None;
        for slice in 0..HASH_SLICES {
            iterator.seek(window_prefix(slice, table, from));
            let found = self.current(&iterator)?.and_then(|(key, _)| CellKey::read(key));
            if let Some(key) = found.filter(|key| (key.slice, key.table) == (slice, table)) {
                next = Some(next.map_or(key.start, |next| next.min(key.start)));
            }
        }
        Ok(next)
    }

    fn apply(&self, batch: &CellBatch) -> Result<(), ColdError> {
        let (cells, meta) = (self.family(CELLS)?, self.family(META)?);
        let mut write = WriteBatch::default();
        for range in &batch.deletes {
            for slice in 0..HASH_SLICES {
                let (from, end) = bounds(slice, range);
                write.delete_range_cf(cells, from, end);
            }
        }
        for (key, cell) in &batch.puts {
            write.put_cf(cells, key, keys::encode_cell(*cell));
        }
        if let Some(tables) = &batch.tables {
            write.put_cf(meta, keys::TABLES, tables);
        }
        if let Some(progress) = &batch.progress {
            write.put_cf(meta, keys::PROGRESS, progress);
        }
        self.write(write)
    }

    fn flush(&self) -> Result<(), ColdError> {
        let families = [self.family(CELLS)?, self.family(SEEN)?, self.family(META)?];
        self.db.flush_cfs_opt(&families, &FlushOptions::default()).map_err(|error| self.at(&error))
    }

    fn seal(&self, bucket: &Bucket, ids: &[SeenEntry], filter: &[u8]) -> Result<(), ColdError> {
        // Ids of an earlier one of this number would show through.
        self.drop_bucket(bucket.id)?;
        let marker = keys::encode_marker(bucket, ids.len() as u64, filter);
        let files = self.write_files(bucket, ids, &marker)?;
        let mut options = IngestExternalFileOptions::default();
        options.set_move_files(true);
        let ingested = self.db.ingest_external_file_cf_opts(self.family(SEEN)?, &options, files.clone());
        remove_files(&files);
        ingested.map_err(|error| self.at(&error))
    }

    fn lookup(&self, bucket_id: u64, ids: &[SeenId], out: &mut Vec<Option<u32>>) -> Result<(), ColdError> {
        let keys: Vec<[u8; 20]> = ids.iter().map(|id| keys::seen_key(bucket_id, id)).collect();
        for found in self.db.batched_multi_get_cf(self.family(SEEN)?, &keys, true) {
            let value = found.map_err(|error| self.at(&error))?;
            let check = value.map(|bytes| <[u8; 4]>::try_from(&*bytes).map(u32::from_le_bytes)).transpose();
            out.push(check.map_err(|_| errors::damaged(&self.path, "a payload check is not readable"))?);
        }
        Ok(())
    }

    fn buckets(&self) -> Result<Vec<SealedBucket>, ColdError> {
        Ok(self.all_buckets()?.into_iter().filter_map(|(_, sealed)| sealed).collect())
    }

    fn drop_bucket(&self, bucket_id: u64) -> Result<(), ColdError> {
        let seen = self.family(SEEN)?;
        let (from, end) =
            (keys::seen_key(bucket_id, &[0; 12]).to_vec(), keys::bucket_end(bucket_id).to_vec());
        // Whole files go without a trace; that is all of it, unless something was merged or stands in level 0.
        self.db.delete_file_in_range_cf(seen, &from, &end).map_err(|error| self.at(&error))?;
        let mut options = ReadOptions::default();
        options.set_iterate_upper_bound(end.clone());
        let mut iterator = self.db.raw_iterator_cf_opt(seen, options);
        iterator.seek(&from);
        if self.current(&iterator)?.is_none() {
            return Ok(());
        }
        drop(iterator);
        let mut write = WriteBatch::default();
        write.delete_range_cf(seen, from, end);
        self.write(write)?;
        // A dropped bucket must not come back after a crash.
        self.flush()
    }
}
