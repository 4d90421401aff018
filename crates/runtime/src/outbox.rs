//! What one transaction writes: records per topic and partition, collected in step 1, produced in step 2.

use std::collections::BTreeMap;
use std::sync::Arc;

use tallyflow_core::ids::Partition;
use tallyflow_core::record::OutRecord;
use tallyflow_core::verdict::Category;

/// One record to produce.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outgoing {
    /// The topic.
    pub topic: Arc<str>,
    /// The partition.
    pub partition: Partition,
    /// The record.
    pub record: OutRecord,
}

/// The records of one transaction, in the order they are produced.
#[derive(Debug, Default)]
pub struct Outbox {
    records: Vec<Outgoing>,
    bytes: usize,
    dead_letters: BTreeMap<Category, u64>,
}

impl Outbox {
    /// Adds a record.
    pub fn push(&mut self, topic: &Arc<str>, partition: Partition, record: OutRecord) {
        self.bytes += size_bytes(&record);
        self.records.push(Outgoing { topic: Arc::clone(topic), partition, record });
    }

    /// Adds a dead letter, which is also counted by its category.
    pub fn push_dead_letter(
        &mut self,
        topic: &Arc<str>,
        partition: Partition,
        record: OutRecord,
        category: Category,
    ) {
        *self.dead_letters.entry(category).or_default() += 1;
        self.push(topic, partition, record);
    }

    /// The records in order.
    pub fn records(&self) -> &[Outgoing] {
        &self.records
    }

    /// Dead letters among them, per category.
    pub const fn dead_letters(&self) -> &BTreeMap<Category, u64> {
        &self.dead_letters
    }

    /// Bytes of keys, values and headers.
    pub const fn size_bytes(&self) -> usize {
        self.bytes
    }

    /// Whether nothing is to be produced.
    pub const fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Moves everything of another outbox to the end of this one.
    pub fn append(&mut self, other: &mut Self) {
        self.records.append(&mut other.records);
        self.bytes += std::mem::take(&mut other.bytes);
        for (category, count) in std::mem::take(&mut other.dead_letters) {
            *self.dead_letters.entry(category).or_default() += count;
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.records.clear();
        self.bytes = 0;
        self.dead_letters.clear();
    }
}

fn size_bytes(record: &OutRecord) -> usize {
    let headers: usize =
        record.headers.iter().map(|h| h.name.len() + h.value.as_ref().map_or(0, Vec::len)).sum();
    record.key.as_ref().map_or(0, Vec::len) + record.value.as_ref().map_or(0, Vec::len) + headers
}

/// Kafka's default partitioner for keyed records: murmur2 with Java's seed, sign bit cleared
/// (org.apache.kafka.common.utils.Utils.murmur2), so that other clients find a key where we put it.
pub fn partition_of_key(key: &[u8], partitions: u32) -> Partition {
    Partition((murmur2(key) & 0x7fff_ffff) % partitions.max(1))
}

fn murmur2(data: &[u8]) -> u32 {
    const M: u32 = 0x5bd1_e995;
    let mut hash = 0x9747_b28c ^ data.len() as u32;
    let mut chunks = data.chunks_exact(4);
    for chunk in chunks.by_ref() {
        let mut k = u32::from_le_bytes(chunk.first_chunk::<4>().copied().unwrap_or_default());
        k = k.wrapping_mul(M);
        k ^= k >> 24;
        k = k.wrapping_mul(M);
        hash = hash.wrapping_mul(M) ^ k;
    }
    let rest = chunks.remainder();
    for (at, byte) in rest.iter().enumerate().rev() {
        hash ^= u32::from(*byte) << (8 * at);
    }
    if !rest.is_empty() {
        hash = hash.wrapping_mul(M);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(M);
    hash ^ (hash >> 15)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn murmur2_is_javas() {
        // The vectors of Kafka's UtilsTest.testMurmur2.
        for (text, hash) in [
            ("21", -973_932_308i32),
            ("foobar", -790_332_482),
            ("a-little-bit-long-string", -985_981_536),
            ("a-little-bit-longer-string", -1_486_304_829),
            ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
            ("abc", 479_470_107),
        ] {
            assert_eq!(murmur2(text.as_bytes()) as i32, hash, "{text}");
        }
    }
}
