//! A `tallyflow run` process: what it says over HTTP, and waiting for what it should say.
use std::fs;
use std::ops::{Deref, DerefMut};
use std::path::PathBuf;
use std::time::Duration;

use crate::http::{Reply, http_get};
use crate::process::Process;
use crate::wait::{PATIENCE, wait_until};

/// A running worker; all methods of [`Process`] are at hand as well.
#[derive(Debug)]
pub struct Worker {
    process: Process,
    http: PathBuf,
}

impl Worker {
    pub(crate) fn new(process: Process, http: PathBuf) -> Self {
        Self { process, http }
    }

    /// The address that it has written to `<state_dir>/slot-N/http`, or `None` so far.
    #[must_use]
    pub fn address(&self) -> Option<String> {
        let address = fs::read_to_string(&self.http).ok()?;
        let address = address.trim().trim_start_matches("http://").to_owned();
        (!address.is_empty()).then_some(address)
    }

    /// GETs a path; `None` when nobody answers.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<Reply> {
        http_get(&self.address()?, path)
    }

    /// The JSON of `/status`; `None` when nobody answers.
    #[must_use]
    pub fn status(&self) -> Option<serde_json::Value> {
        self.get("/status").map(|reply| reply.json())
    }

    /// Whether `/ready` says 200.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.get("/ready").is_some_and(|reply| reply.status == 200)
    }

    /// The text of `/metrics`; `None` when nobody answers.
    #[must_use]
    pub fn metrics(&self) -> Option<String> {
        self.get("/metrics").map(|reply| reply.body)
    }

    /// The sum over the series of the metric `name` whose labels include all of `labels`; `None` when there is none.
    #[must_use]
    pub fn metric(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        sum_series(&self.metrics()?, name, labels)
    }

    /// Waits until `/ready` says 200.
    ///
    /// # Panics
    /// When the process ends or the harness's patience does.
    pub fn wait_ready(&mut self) {
        self.wait_for(PATIENCE, "it is ready", |worker| worker.is_ready());
    }

    /// Waits until `/status` says that everything read is counted and published.
    ///
    /// # Panics
    /// When the process ends or the deadline has passed.
    pub fn wait_settled(&mut self, deadline: Duration) {
        self.wait_for(deadline, "it is settled", |worker| {
            worker.status().is_some_and(|status| status["settled"] == true)
        });
    }

    /// Waits until `condition` holds.
    ///
    /// # Panics
    /// When the process ends or the deadline has passed.
    pub fn wait_for(&mut self, deadline: Duration, what: &str, condition: impl Fn(&Self) -> bool) {
        wait_until(deadline, what, || {
            if let Some(status) = self.process.exited() {
                panic!("the worker ended ({status}) before {what}");
            }
            condition(self).then_some(())
        });
    }
}

impl Deref for Worker {
    type Target = Process;

    fn deref(&self) -> &Process {
        &self.process
    }
}

impl DerefMut for Worker {
    fn deref_mut(&mut self) -> &mut Process {
        &mut self.process
    }
}

/// Reads the text format of Prometheus: `name{label="value",…} number`.
fn sum_series(text: &str, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
    let wanted: Vec<String> = labels.iter().map(|(label, value)| format!("{label}=\"{value}\"")).collect();
    text.lines()
        .filter_map(|line| {
            let (series, number) = line.rsplit_once(' ')?;
            let (found, rest) = series.split_once('{').unwrap_or((series, "}"));
            let pairs: Vec<&str> = rest.trim_end_matches('}').split(',').collect();
            let matches = found == name && wanted.iter().all(|pair| pairs.contains(&pair.as_str()));
            matches.then(|| number.parse::<f64>().ok())?
        })
        .reduce(|sum, value| sum + value)
}

#[cfg(test)]
mod tests {
    use super::sum_series;

    #[test]
    fn series_are_chosen_by_name_and_labels() {
        let text = "# TYPE a counter\na{stage=\"count\",verdict=\"counted\"} 5\na{stage=\"count\",verdict=\"late\"} 2\n\
                    a{stage=\"intake\",verdict=\"late\"} 1\nab 9\nplain 4.5\n";
        assert_eq!(sum_series(text, "a", &[("stage", "count")]), Some(7.0));
        assert_eq!(sum_series(text, "a", &[("verdict", "late"), ("stage", "intake")]), Some(1.0));
        assert_eq!(sum_series(text, "a", &[("stage", "none")]), None);
        assert_eq!(sum_series(text, "plain", &[]), Some(4.5));
    }
}
