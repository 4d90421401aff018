//! The layer law: which package of the workspace may import which, read from the manifests.
//!
//! Arrows point down only. A new package gets a row in [`LAYERS`] before it can be built in CI, and the row is the place
//! where its neighbours are decided.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use cargo_metadata::{DependencyKind, MetadataCommand};

/// Package → the packages of ours that it may import.
///
/// ```text
/// core ◄─ schemas, topology, state, audit, generator, processors ◄─ runtime ◄─ kafka, rocks, telemetry ◄─ the binary
/// ```
const LAYERS: &[(&str, &[&str])] = &[
    ("core", &[]),
    // The first floor speaks core's words and nothing else; processors cannot see each other.
    ("schemas", &["core"]),
    ("topology", &["core"]),
    ("state", &["core"]),
    ("audit", &["core"]),
    ("generator", &["core"]),
    ("intake", &["core"]),
    ("dedup", &["core"]),
    ("tally", &["core"]),
    ("window", &["core"]),
    ("retry", &["core"]),
    // The loop knows ports, not what is behind them.
    ("runtime", &["core", "state", "topology"]),
    // The outside world, one crate for each part of it.
    ("kafka", &["core", "runtime", "topology"]),
    ("rocks", &["core", "runtime", "state"]),
    ("telemetry", &["core", "runtime"]),
    ("devbroker", &[]),
    // The real runtime on a simulated log, clock and store.
    (
        "sim",
        &[
            "core",
            "topology",
            "state",
            "schemas",
            "audit",
            "generator",
            "intake",
            "dedup",
            "tally",
            "window",
            "retry",
            "runtime",
        ],
    ),
    // The one place where everything is wired.
    (
        "tallyflow",
        &[
            "core",
            "topology",
            "state",
            "schemas",
            "audit",
            "generator",
            "intake",
            "dedup",
            "tally",
            "window",
            "retry",
            "runtime",
            "kafka",
            "rocks",
            "telemetry",
            "devbroker",
        ],
    ),
    // Black box: it sees what a user sees. The generator says what must come out.
    ("integration-tests", &["generator"]),
    ("benches", &["core", "state", "schemas", "generator", "runtime", "kafka", "rocks"]),
];

/// Libraries that have a home: library → the packages of ours that may import it.
const HOMES: &[(&str, &[&str])] = &[
    ("rdkafka", &["kafka", "integration-tests", "benches"]),
    ("rdkafka-sys", &["kafka", "integration-tests", "benches"]),
    ("rocksdb", &["rocks"]),
    ("librocksdb-sys", &["rocks"]),
    // The worker loop is synchronous; tokio serves HTTP and the edges.
    ("tokio", &["telemetry", "devbroker", "tallyflow"]),
];

/// Packages that any package may use for its own tests.
const FOR_TESTS: &[&str] = &["generator"];

/// One dependency as a manifest declares it, names without the prefix `tallyflow-`.
#[derive(Clone, Debug)]
struct Edge {
    from: String,
    to: String,
    /// Whether `to` is a package of this workspace.
    ours: bool,
    /// Whether it is only for tests and benchmarks.
    dev: bool,
}

/// What the law has against these edges, one sentence each.
fn violations(packages: &BTreeSet<String>, edges: &[Edge]) -> Vec<String> {
    let layers: BTreeMap<_, _> = LAYERS.iter().copied().collect();
    let homes: BTreeMap<_, _> = HOMES.iter().copied().collect();
    let mut found = Vec::new();
    for package in packages {
        if !layers.contains_key(package.as_str()) {
            found.push(format!("{package} has no row in LAYERS"));
        }
    }
    for Edge { from, to, ours, dev } in edges {
        let (from, to) = (from.as_str(), to.as_str());
        let allowed = if *ours {
            let row = layers.get(from).copied().unwrap_or_default();
            row.contains(&to) || (*dev && FOR_TESTS.contains(&to))
        } else {
            homes.get(to).is_none_or(|home| home.contains(&from))
        };
        if !allowed {
            found.push(format!("{from} must not import {to}"));
        }
    }
    found
}

/// The name without our prefix.
fn short(name: &str) -> String {
    name.strip_prefix("tallyflow-").unwrap_or(name).to_owned()
}

fn workspace() -> (BTreeSet<String>, Vec<Edge>) {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.toml");
    let metadata = MetadataCommand::new().manifest_path(manifest).no_deps().exec().expect("cargo metadata");
    let names: BTreeSet<String> = metadata.packages.iter().map(|p| p.name.to_string()).collect();
    let mut edges = Vec::new();
    for package in &metadata.packages {
        for dependency in &package.dependencies {
            let ours = names.contains(&dependency.name);
            edges.push(Edge {
                from: short(&package.name),
                to: if ours { short(&dependency.name) } else { dependency.name.clone() },
                ours,
                dev: dependency.kind == DependencyKind::Development,
            });
        }
    }
    (names.iter().map(|name| short(name)).collect(), edges)
}

#[test]
fn no_package_imports_what_is_above_or_beside_it() {
    let (packages, edges) = workspace();
    assert!(packages.contains("core") && packages.contains("tallyflow"), "{packages:?}");
    assert!(edges.iter().any(|edge| edge.ours), "no edge was read");
    let found = violations(&packages, &edges);
    assert!(found.is_empty(), "the layer law is broken:\n{}", found.join("\n"));
}

#[test]
fn the_law_has_teeth() {
    let edge = |from: &str, to: &str, ours, dev| Edge { from: from.into(), to: to.into(), ours, dev };
    let cases = [
        (edge("core", "runtime", true, false), "upwards"),
        (edge("dedup", "tally", true, false), "a sibling"),
        (edge("dedup", "state", true, false), "beside"),
        (edge("runtime", "kafka", true, true), "upwards, for tests only"),
        (edge("audit", "schemas", true, false), "the auditor shares a codec"),
        (edge("integration-tests", "runtime", true, true), "a black box looks inside"),
        (edge("runtime", "rdkafka", false, false), "a library out of its home"),
        (edge("state", "rocksdb", false, true), "the same, for tests only"),
        (edge("intake", "tokio", false, false), "a pure crate waits"),
        (edge("core", "generator", true, false), "for tests only, but not so"),
    ];
    for (edge, what) in cases {
        let found = violations(&BTreeSet::new(), std::slice::from_ref(&edge));
        assert_eq!(found.len(), 1, "{what} is not found: {edge:?}");
    }
    let lawful = [
        edge("runtime", "state", true, false),
        edge("kafka", "rdkafka", false, false),
        edge("core", "thiserror", false, false),
        edge("intake", "generator", true, true),
    ];
    assert_eq!(violations(&BTreeSet::new(), &lawful), Vec::<String>::new());
    let unknown = BTreeSet::from(["newcomer".to_owned()]);
    assert_eq!(violations(&unknown, &[]), ["newcomer has no row in LAYERS"]);
}

#[test]
fn the_table_itself_has_no_cycle() {
    let layers: BTreeMap<&str, &[&str]> = LAYERS.iter().copied().collect();
    assert_eq!(layers.len(), LAYERS.len(), "a package has two rows");
    let mut below: BTreeSet<&str> = BTreeSet::new();
    while below.len() < layers.len() {
        let next = layers
            .iter()
            .find(|(name, row)| !below.contains(*name) && row.iter().all(|to| below.contains(to)));
        let (name, _) = next.unwrap_or_else(|| panic!("a cycle or a missing row above {below:?}"));
        below.insert(name);
    }
}
