//! What an error between records means to the stage, and how its clients are closed.
//!
//! Keeps: nothing is lost quietly: an offset that is gone halts with its place, range and the way out, unless the
//! topic was re-created, which is another source.
//!
//! Must not know: the order of a commit.

use rdkafka::Offset;
use rdkafka::error::RDKafkaErrorCode;
use tallyflow_runtime::ports::{GroupEvent, PortError, Reaction};

use super::{ASK, KafkaStream};
use crate::errors::{Context, port_error};
use crate::lists::{list_of, name_of, topic_ids};
use crate::native::ListEntry;
use crate::native::admin::log_ends;
use crate::native::consumer::ErrorEvent;

impl KafkaStream {
    /// What an error event means. `None`: it was no news.
    pub(super) fn judge(&self, event: &ErrorEvent) -> Option<PortError> {
        let what = match &event.place {
            Some(place) => format!("reading {} in group {}", name_of(place), self.group),
            None => format!("reading in group {}", self.group),
        };
        match event.error.code {
            // Said by the client's log, once and with the address; the client goes on trying.
            RDKafkaErrorCode::BrokerTransportFailure | RDKafkaErrorCode::Resolve => None,
            RDKafkaErrorCode::AllBrokersDown => Some(PortError::new(
                Reaction::Retry,
                format!("no broker answers at {}", self.settings.brokers()),
            )),
            RDKafkaErrorCode::AutoOffsetReset => self.out_of_range(event.place.as_ref()?),
            _ => Some(port_error(&what, &event.error, Context::Consumer)),
        }
    }

    /// The place to read on at is not in the log: it was deleted, or the topic was. `None` if it is not ours anyway.
    fn out_of_range(&self, place: &ListEntry) -> Option<PortError> {
        let partition = name_of(place);
        let owned = self.assignment.get(&partition)?;
        let offset = owned.expected()?;
        let known = self.consumer.as_ref().and_then(|consumer| {
            let id = topic_ids(consumer, std::slice::from_ref(&partition), ASK).remove(&*partition.topic);
            let ends = log_ends(consumer.client(), std::slice::from_ref(&partition), ASK).ok();
            let range = ends.and_then(|ends| ends.into_values().next()).and_then(Result::ok);
            Some((id?, range?))
        });
        Some(match (known, owned.topic_id) {
            (Some((now, _)), Some(before)) if now != before => PortError::new(
                Reaction::Abort,
                format!("the topic {} was re-created: its id was {before} and is {now}", place.topic),
            ),
            (Some((_, (start, end))), _) => PortError::new(
                Reaction::Halt,
                format!(
                    "offset {offset} of {partition} is not in the log any more, which holds {start} to {end}: \
                     restore the records, or run with --accept-loss"
                ),
            ),
            (None, _) => PortError::new(
                Reaction::Halt,
                format!(
                    "offset {offset} of {partition} is not in the log any more: restore the records, or run \
                     with --accept-loss"
                ),
            ),
        })
    }

    /// Answers what the worker did not, or the client would wait for it.
    pub(super) fn answer_all(&mut self) {
        let unanswered = std::mem::take(&mut self.unanswered);
        let Some(consumer) = &self.consumer else {
            return;
        };
        for event in unanswered {
            let (assigned, partitions) = match &event {
                GroupEvent::Assigned(partitions) => (true, partitions),
                GroupEvent::Revoked(partitions) | GroupEvent::Lost(partitions) => (false, partitions),
            };
            let Ok(list) = list_of(partitions.iter().map(|name| (name, Offset::End))) else {
                continue;
            };
            let result = if assigned {
                consumer.incremental_assign(&list)
            } else {
                consumer.incremental_unassign(&list)
            };
            if let Err(error) = result {
                tracing::debug!(target: "tallyflow::kafka", group = self.group, ?error, "closing");
            }
        }
    }
}
