//! A small HTTP client: every answer is an answer, 503 as well.
use std::time::Duration;

/// Longest wait for one answer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// An HTTP answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The status code.
    pub status: u16,
    /// The body as text.
    pub body: String,
}

impl Reply {
    /// The body as JSON.
    ///
    /// # Panics
    /// When it is not JSON.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("no JSON ({error}): {}", self.body))
    }
}

/// GETs `path` (with its leading slash) from `address` (`host:port`); `None` when nobody answers.
#[must_use]
pub fn http_get(address: &str, path: &str) -> Option<Reply> {
    let config =
        ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(TIMEOUT)).build();
    let mut response = config.new_agent().get(format!("http://{address}{path}")).call().ok()?;
    Some(Reply { status: response.status().as_u16(), body: response.body_mut().read_to_string().ok()? })
}
