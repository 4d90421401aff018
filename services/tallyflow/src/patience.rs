//! How long a command waits for Kafka: questions are repeated while that helps, until `--timeout` is over.

use std::thread;
use std::time::{Duration, Instant};

use tallyflow_runtime::ports::{PortError, Reaction};

/// Between two tries of one question, which itself waits for about a second.
const PAUSE: Duration = Duration::from_millis(100);

/// A moment until which it is worth to wait.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    until: Instant,
}

impl Patience {
    /// From now on for so long.
    pub fn new(timeout: Duration) -> Self {
        Self { until: Instant::now() + timeout }
    }

    /// What is left of it.
    pub fn left(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }

    /// Whether nothing is left.
    pub fn is_over(&self) -> bool {
        self.left().is_zero()
    }

    /// Sleeps, but not beyond the end.
    pub fn pause(&self, time: Duration) {
        thread::sleep(time.min(self.left()));
    }

    /// Asks until there is an answer; at least once.
    ///
    /// # Errors
    /// The last error, when the time is over; one that waiting does not mend at once.
    pub fn ask<T>(&self, mut question: impl FnMut() -> Result<T, PortError>) -> Result<T, PortError> {
        loop {
            match question() {
                Err(error) if error.reaction == Reaction::Retry && !self.is_over() => {
                    self.pause(PAUSE);
                }
                answer => return answer,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_repeated_while_that_helps() {
        let mut tries = 0;
        let answer = Patience::new(Duration::from_secs(60)).ask(|| {
            tries += 1;
            match tries {
                1 => Err(PortError::new(Reaction::Retry, "not yet")),
                _ => Ok(tries),
            }
        });
        assert_eq!(answer, Ok(2));
        let halt = || Err::<(), _>(PortError::new(Reaction::Halt, "never"));
        let error = Patience::new(Duration::from_secs(60)).ask(halt);
        assert_eq!(error.unwrap_err().message, "never");
    }

    #[test]
    fn there_is_one_try_even_without_patience() {
        let mut tries = 0;
        let answer = Patience::new(Duration::ZERO).ask(|| {
            tries += 1;
            Err::<(), _>(PortError::new(Reaction::Retry, "not yet"))
        });
        assert!(answer.is_err() && tries == 1);
    }
}
