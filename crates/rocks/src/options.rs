//! Every option of every database and column family, and the memory they share.
//!
//! Options of a family are not inherited from the database: one function makes them all. One cache and one write
//! buffer manager serve the whole process.

use rocksdb::{
    BlockBasedOptions, Cache, ColumnFamilyDescriptor, DBCompressionType, LogLevel, Options,
    WriteBufferManager,
};

/// The family of cells.
pub(crate) const CELLS: &str = "default";
/// The family of sealed buckets.
pub(crate) const SEEN: &str = "seen";
/// The family of progress and tables.
pub(crate) const META: &str = "meta";

/// Files of sealed ids are split at this size: 64 MiB, a bucket of two million ids.
pub(crate) const SEALED_FILE_BYTES: u64 = 64 << 20;

const MEBIBYTE: u64 = 1 << 20;

/// The memory of the process for RocksDB.
#[derive(Clone)]
pub(crate) struct Memory {
    cache: Cache,
    write_buffers: WriteBufferManager,
    write_buffer_bytes: usize,
}

impl Memory {
    /// Half of it caches blocks, half of it buffers writes.
    pub(crate) fn new(memory_bytes: u64) -> Self {
        let half = usize::try_from(memory_bytes / 2).unwrap_or(usize::MAX).max(MEBIBYTE as usize);
        // A budget of 4 · (hot families) · (buffer / 2) keeps flushes few: with a sixteenth each, eight tasks with
        // one hot family fit. Never so small that every commit is a flush, nor so large that one takes long.
        let write_buffer_bytes = (half / 16).clamp(MEBIBYTE as usize, 64 * MEBIBYTE as usize);
        Self {
            cache: Cache::new_hyper_clock_cache(half, 0),
            // No stall: writers of several databases could wait for each other for ever. Pressure shows at Kafka.
            write_buffers: WriteBufferManager::new_write_buffer_manager(half, false),
            write_buffer_bytes,
        }
    }

    /// The options of a database.
    pub(crate) fn db(&self) -> Options {
        let mut options = self.family(CELLS);
        options.create_if_missing(true);
        options.create_missing_column_families(true);
        // Without a write-ahead log, only this makes what survives a crash the same point in all families.
        options.set_atomic_flush(true);
        options.set_write_buffer_manager(&self.write_buffers);
        options.set_max_open_files(256);
        options.set_max_background_jobs(2);
        options.set_log_level(LogLevel::Warn);
        options.set_keep_log_file_num(2);
        options.set_max_log_file_size(MEBIBYTE as usize);
        options.set_stats_dump_period_sec(0);
        options
    }

    /// The families of a database: ours, and whatever else is there.
    pub(crate) fn families(&self, existing: &[String]) -> Vec<ColumnFamilyDescriptor> {
        let ours = [CELLS, SEEN, META];
        let others = existing.iter().map(String::as_str).filter(|name| !ours.contains(name));
        ours.into_iter()
            .chain(others)
            .map(|name| ColumnFamilyDescriptor::new(name, self.family(name)))
            .collect()
    }

    /// The options of a family.
    pub(crate) fn family(&self, name: &str) -> Options {
        let mut table = BlockBasedOptions::default();
        table.set_block_cache(&self.cache);
        table.set_cache_index_and_filter_blocks(true);
        table.set_pin_l0_filter_and_index_blocks_in_cache(true);
        let mut options = Options::default();
        options.set_write_buffer_size(self.write_buffer_bytes);
        if name == SEEN {
            // Hashes do not compress, and the filter in memory has been asked before a file is.
            options.set_compression_type(DBCompressionType::None);
        } else {
            options.set_compression_type(DBCompressionType::Lz4);
            table.set_bloom_filter(10.0, false);
            options.set_memtable_whole_key_filtering(true);
            options.set_memtable_prefix_bloom_ratio(0.02);
        }
        options.set_block_based_table_factory(&table);
        options
    }
}
