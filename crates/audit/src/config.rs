//! What the recount must know of the topology: limits, namespaces, dimensions and window tables.
//!
//! It is a plain value and not the topology's own type: the recount must not inherit a mistake made while the
//! topology is compiled. All times and sizes are milliseconds unless a name says otherwise.
//!
//! Invariant: a [`Rules`] that was built has a horizon of at least accept + future (rule R3), so that unchanged copies
//! are never further apart than it, and a slice that divides every window.

use std::collections::HashSet;

/// The limits of one raw record (contract §2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Longest record value, in bytes.
    pub record_bytes: usize,
    /// Most containers inside each other; the record's own object is the first.
    pub depth: usize,
    /// Most members of one object.
    pub members: usize,
    /// Most events in one packed record.
    pub packed_events: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { record_bytes: 1024 * 1024, depth: 64, members: 10_000, packed_events: 10_000 }
    }
}

/// One window table: tumbling windows of one size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WindowSpec {
    /// The table's name in topology.toml.
    pub name: String,
    /// Length of a window, in milliseconds.
    pub size_ms: i64,
    /// How long after its end a window waits before it is final, in milliseconds.
    pub grace_ms: i64,
    /// Whether rows appear only once the window is final (`emit = "final"`).
    pub finals_only: bool,
}

impl WindowSpec {
    /// A table without grace that publishes updates.
    #[must_use]
    pub fn new(name: impl Into<String>, size_ms: i64) -> Self {
        Self { name: name.into(), size_ms, grace_ms: 0, finals_only: false }
    }
}

/// What to recount by; the defaults are those of the product, with one `minute` table.
#[derive(Debug, Clone)]
pub struct AuditConfig {
    /// Oldest admitted age, in milliseconds.
    pub accept_ms: i64,
    /// How far an event may lie ahead of its append time, in milliseconds.
    pub future_ms: i64,
    /// The horizon: how long an id is remembered at least, in milliseconds.
    pub remember_ms: i64,
    /// Limits of one record.
    pub limits: Limits,
    /// The declared namespaces; none declared: every namespace is welcome.
    pub namespaces: Option<Vec<String>>,
    /// The dimensions that are kept, in the topology's order.
    pub dimensions: Vec<String>,
    /// The window tables to recount.
    pub windows: Vec<WindowSpec>,
    /// Window tables that are published but cannot be recounted here; said in the report.
    pub not_recounted: Vec<String>,
    /// Whether totals are published.
    pub totals: bool,
    /// The slice that divides every window, in milliseconds.
    pub slice_ms: i64,
    /// Raw topics whose append time is the record's own timestamp (`append_time = "record"`). A timestamp ahead of
    /// `now_ms` + future is certainly `future`; whether one was ahead of a worker's clock in the past cannot be known.
    pub record_time_topics: Vec<String>,
    /// How long window rows are kept; needs `now_ms`. An older row may be gone.
    pub keep_ms: Option<i64>,
    /// The caller's clock when it read the topics, in epoch milliseconds.
    pub now_ms: Option<i64>,
}

impl Default for AuditConfig {
    fn default() -> Self {
        const MINUTE_MS: i64 = 60 * 1000;
        Self {
            accept_ms: 24 * 60 * MINUTE_MS,
            future_ms: 5 * MINUTE_MS,
            remember_ms: (24 * 60 + 10) * MINUTE_MS,
            limits: Limits::default(),
            namespaces: None,
            dimensions: Vec::new(),
            windows: vec![WindowSpec::new("minute", MINUTE_MS)],
            not_recounted: Vec::new(),
            totals: true,
            slice_ms: MINUTE_MS,
            record_time_topics: Vec::new(),
            keep_ms: None,
            now_ms: None,
        }
    }
}

/// Why a recount cannot start; the caller's configuration is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AuditError {
    /// The horizon is shorter than accept + future, or a limit is negative (rule R3).
    #[error(
        "remember ({remember_ms} ms) must be at least accept ({accept_ms} ms) + future ({future_ms} ms), none negative"
    )]
    Horizon {
        /// Configured horizon.
        remember_ms: i64,
        /// Configured accept.
        accept_ms: i64,
        /// Configured future.
        future_ms: i64,
    },
    /// The slice is not positive, or does not divide a window.
    #[error("window {window} of {size_ms} ms is not a positive whole multiple of the slice of {slice_ms} ms")]
    Slice {
        /// Name of the window table.
        window: String,
        /// Its size.
        size_ms: i64,
        /// The slice.
        slice_ms: i64,
    },
    /// Two window tables or two dimensions have one name.
    #[error("the name {name} is used twice")]
    NameTwice {
        /// The name.
        name: String,
    },
}

/// A checked configuration, in the shape the recount asks it.
#[derive(Debug)]
pub(crate) struct Rules {
    pub(crate) config: AuditConfig,
    namespaces: Option<HashSet<String>>,
}

impl Rules {
    pub(crate) fn new(config: AuditConfig) -> Result<Self, AuditError> {
        check_horizon(&config)?;
        check_windows(&config)?;
        check_names(&config)?;
        let namespaces = config.namespaces.as_ref().map(|names| names.iter().cloned().collect());
        Ok(Self { config, namespaces })
    }

    pub(crate) fn knows_namespace(&self, name: &str) -> bool {
        self.namespaces.as_ref().is_none_or(|names| names.contains(name))
    }

    pub(crate) fn takes_record_time(&self, topic: &str) -> bool {
        self.config.record_time_topics.iter().any(|name| name == topic)
    }
}

fn check_horizon(config: &AuditConfig) -> Result<(), AuditError> {
    let least = config.accept_ms.checked_add(config.future_ms);
    let fits = least.is_some_and(|least| config.remember_ms >= least);
    if config.accept_ms < 0 || config.future_ms < 0 || !fits {
        return Err(AuditError::Horizon {
            remember_ms: config.remember_ms,
            accept_ms: config.accept_ms,
            future_ms: config.future_ms,
        });
    }
    Ok(())
}

fn check_windows(config: &AuditConfig) -> Result<(), AuditError> {
    for window in &config.windows {
        if config.slice_ms <= 0 || window.size_ms <= 0 || window.size_ms % config.slice_ms != 0 {
            return Err(AuditError::Slice {
                window: window.name.clone(),
                size_ms: window.size_ms,
                slice_ms: config.slice_ms,
            });
        }
    }
    Ok(())
}

fn check_names(config: &AuditConfig) -> Result<(), AuditError> {
    let tables = config.windows.iter().map(|window| &window.name);
    once(tables.chain(&config.not_recounted))?;
    once(config.dimensions.iter())
}

fn once<'a>(names: impl Iterator<Item = &'a String>) -> Result<(), AuditError> {
    let mut seen = HashSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(AuditError::NameTwice { name: name.clone() });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_horizon_shorter_than_accept_and_future_is_refused() {
        let base = AuditConfig { accept_ms: 300, future_ms: 5, remember_ms: 305, ..AuditConfig::default() };
        assert!(Rules::new(base.clone()).is_ok());
        for (accept_ms, future_ms, remember_ms) in
            [(300, 5, 304), (-1, 5, 305), (300, -1, 305), (i64::MAX, 1, i64::MAX)]
        {
            let config = AuditConfig { accept_ms, future_ms, remember_ms, ..base.clone() };
            assert!(matches!(Rules::new(config), Err(AuditError::Horizon { .. })), "{accept_ms} {future_ms}");
        }
    }

    #[test]
    fn a_slice_must_divide_every_window() {
        for (size_ms, slice_ms, fine) in
            [(60, 60, true), (60, 20, true), (60, 25, false), (0, 1, false), (60, 0, false)]
        {
            let config = AuditConfig {
                windows: vec![WindowSpec::new("w", size_ms)],
                slice_ms,
                ..AuditConfig::default()
            };
            assert_eq!(Rules::new(config).is_ok(), fine, "{size_ms} {slice_ms}");
        }
    }

    #[test]
    fn a_name_may_be_used_once() {
        let twice = AuditConfig { dimensions: vec!["r".into(), "r".into()], ..AuditConfig::default() };
        assert_eq!(Rules::new(twice).err(), Some(AuditError::NameTwice { name: "r".into() }));
        let table = AuditConfig { not_recounted: vec!["minute".into()], ..AuditConfig::default() };
        assert!(Rules::new(table).is_err());
    }
}
