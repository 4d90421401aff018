//! A plan with every kind of event, and the ways its records may reach a reader.
#![allow(dead_code, clippy::unwrap_used, clippy::indexing_slicing)]

use tallyflow_generator::{Dimension, Expectation, Generated, Generator, Plan};

/// Start of every run.
pub const START_MS: i64 = 1_800_000_000_000;

/// Every kind of event, often.
pub fn busy(seed: u64, events: u64) -> Plan {
    Plan {
        events_per_second: 50,
        namespaces: vec!["default".into(), "shop".into()],
        counters: 20,
        dimensions: vec![
            Dimension { name: "region".into(), values: vec!["eu".into(), "us".into(), String::new()] },
            Dimension { name: "tier".into(), values: vec!["a\"b".into(), "c".into()] },
        ],
        partitions: Some(4),
        near_duplicates: 0.1,
        far_duplicates: 0.1,
        conflicts: 0.05,
        late: 0.03,
        future: 0.03,
        undecodable: 0.05,
        null_values: 0.02,
        out_of_order: 0.2,
        negative: 0.3,
        packed: 0.3,
        packed_events: 7,
        ..Plan::new(seed, events, START_MS)
    }
}

pub fn generate(plan: &Plan) -> (Vec<Generated>, Expectation) {
    let mut generator = Generator::new(plan.clone()).unwrap();
    let records: Vec<_> = generator.by_ref().collect();
    (records, generator.expectation())
}

/// Where a producer would send it: the hint, or a hash of the key.
pub fn partition(record: &Generated) -> usize {
    let by_key =
        |key: &Vec<u8>| key.iter().fold(7_usize, |sum, byte| sum.wrapping_mul(31) + usize::from(*byte)) % 4;
    record.partition_hint.map_or_else(|| record.key.as_ref().map_or(0, by_key), |hint| hint as usize)
}

/// Records in an order that keeps each partition's own, chosen by a seed.
pub fn interleaved(records: &[Generated], mut seed: u64) -> Vec<&Generated> {
    let mut queues: Vec<Vec<&Generated>> = vec![Vec::new(); 4];
    records.iter().rev().for_each(|record| queues[partition(record)].push(record));
    let mut order = Vec::new();
    while order.len() < records.len() {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        order.extend(queues[(seed >> 33) as usize % 4].pop());
    }
    order
}
