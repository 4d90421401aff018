//! Waiting for a condition, and names that no other test uses.
//!
//! [`wait_until`] holds the only sleep of the integration tests: a test waits for what it needs, never for a while.
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

/// How long the harness waits for one thing before the test fails: far above what a loaded machine needs.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Time between two looks at a condition.
const POLL: Duration = Duration::from_millis(50);

/// Looks every 50 ms until `condition` gives a value, and returns it.
///
/// # Panics
/// When `deadline` has passed, with `what` in the message. The condition is looked at once more at the very end.
pub fn wait_until<T>(deadline: Duration, what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        let last = started.elapsed() >= deadline;
        if let Some(value) = condition() {
            return value;
        }
        assert!(!last, "waited {deadline:?} in vain until {what}");
        thread::sleep(POLL.min(deadline.saturating_sub(started.elapsed())));
    }
}

/// `name` with a suffix that no other test and no other run shares; valid as an app name and as a topic name.
#[must_use]
pub fn unique(name: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_millis());
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{name}-{:x}-{now:x}-{number}", std::process::id())
}
