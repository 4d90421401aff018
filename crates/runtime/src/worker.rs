//! A worker: one thread, one consumer, one transactional producer, the tasks of its partitions.
//!
//! ```text
//!  step(now): rebalances ─► housekeeping (1/s) ─► restores ─► poll ─► due? commit ─► tell the observer
//!
//!              ┌──────────── Retry: wait ────────────┐
//!   error ─────┼─ Abort:  close dirty, rewind        ├─► next step
//!              ├─ Fenced: close dirty, new producer ─┘   (again within a minute: halt)
//!              └─ Halt ─► the worker ends, the process says why
//! ```
//!
//! Synchronous and single-threaded; the shell calls [`Worker::step`] in a loop and decides nothing.
//!
//! Keeps: EO-1, EO-2 by `commit.rs`; a dirty close drops everything provisional in one place.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use tallyflow_core::ids::{NextOffset, TopicPartition};
use tallyflow_core::record::RecordView;

use crate::commit::{commit, insist};
use crate::ports::{Admin, BatchSink, GroupEvent, LogReader, Now, PortError, Reaction, StreamLog};
use crate::stage::{Stage, StagePorts};
use crate::status::{Observer, WorkerStatus};

/// Records taken in one poll.
const POLL_RECORDS: usize = 10_000;
/// Longest wait of a poll: bounds how long a stop or a restore waits.
const POLL_WAIT_MS: u64 = 50;
/// Ids, ends and idle partitions are asked for so often.
const HOUSEKEEPING_MS: u64 = 1_000;
/// Fenced twice within this time: somebody else runs under our id.
const FENCED_AGAIN_MS: u64 = 60_000;

/// The ports of a worker.
pub struct WorkerPorts {
    /// Consumer and producer.
    pub log: Box<dyn StreamLog>,
    /// Bounded reads.
    pub reader: Box<dyn LogReader>,
    /// Topic ids and ends.
    pub admin: Box<dyn Admin>,
    /// Told after every commit and once a second.
    pub observer: Box<dyn Observer>,
}

/// One worker of one stage.
pub struct Worker {
    ports: WorkerPorts,
    stage: Box<dyn Stage>,
    status: WorkerStatus,
    producer_open: bool,
    fenced_at_ms: Option<u64>,
    housekeeping_at_ms: u64,
    told_at_ms: u64,
    retry_at_ms: u64,
}

impl Worker {
    /// A worker that has not started: the first step opens the producer.
    pub fn new(ports: WorkerPorts, stage: Box<dyn Stage>, number: u32) -> Self {
        let status = WorkerStatus {
            stage: stage.name(),
            worker: number,
            disconnected: None,
            halted: None,
            joined: false,
            tasks: Vec::new(),
            committed: 0,
            aborted: 0,
            fenced: 0,
            last_commit_ms: 0,
            rebalances: 0,
            output_records: BTreeMap::new(),
            dead_letters: BTreeMap::new(),
            verdicts: tallyflow_core::tallies::Tallies::default(),
        };
        Self {
            ports,
            stage,
            status,
            producer_open: false,
            fenced_at_ms: None,
            housekeeping_at_ms: 0,
            told_at_ms: 0,
            retry_at_ms: 0,
        }
    }

    /// One round. Waits at most about 50 ms for input, longer only while the cluster does not answer.
    ///
    /// # Errors
    ///
    /// A halt, with the reason for people. The worker must not be stepped again; [`Worker::close`] it.
    pub fn step(&mut self, now: Now) -> Result<(), PortError> {
        match self.round(now) {
            Ok(()) => {}
            Err(error) => self.react(error, now)?,
        }
        if now.steady_ms >= self.told_at_ms + 1_000 {
            self.tell(now);
        }
        Ok(())
    }

    /// Drains: commits what is done, leaves the group, closes the clients.
    pub fn close(&mut self, now: Now) {
        let open = self.status.halted.is_none() && self.producer_open;
        if open && let Err(error) = self.commit(now, true) {
            tracing::warn!(stage = self.stage.name().name(), "the last commit did not succeed: {error}");
            let _ = self.close_dirty(now);
        }
        self.tell(now);
        self.ports.log.close();
    }

    /// Notes why the worker ended, for `/status` and `/ready`.
    pub fn halted(&mut self, reason: &str, now: Now) {
        self.status.halted = Some(reason.to_owned());
        self.tell(now);
    }

    fn round(&mut self, now: Now) -> Result<(), PortError> {
        if !self.producer_open {
            self.ports.log.open_producer()?;
            self.producer_open = true;
            self.status.disconnected = None;
        }
        while let Some(event) = self.ports.log.take_event() {
            self.rebalance(event, now)?;
        }
        if now.steady_ms >= self.housekeeping_at_ms {
            self.housekeeping_at_ms = now.steady_ms + HOUSEKEEPING_MS;
            self.housekeeping(now)?;
        }
        self.restores(now)?;
        self.poll(now)?;
        if self.stage.due(now)? {
            self.commit(now, false)?;
        }
        Ok(())
    }

    fn poll(&mut self, now: Now) -> Result<(), PortError> {
        let blocked = self.stage.blocked();
        if blocked.is_some() || self.stage.full() {
            // Not polling would lose the group's membership: take no records, serve rebalances.
            self.status.disconnected = blocked;
            self.ports.log.poll(Duration::from_millis(1), 0, &mut NoRecords)?;
            return Ok(());
        }
        let wait_ms = self.stage.next_due_ms(now).saturating_sub(now.steady_ms).min(POLL_WAIT_MS);
        let wait_ms = if self.stage.restoring() { 0 } else { wait_ms };
        let mut sink = StageSink { stage: &mut *self.stage, now };
        self.ports.log.poll(Duration::from_millis(wait_ms), POLL_RECORDS, &mut sink)?;
        self.stage.positions(&*self.ports.log);
        Ok(())
    }

    fn rebalance(&mut self, event: GroupEvent, now: Now) -> Result<(), PortError> {
        self.status.joined = true;
        self.status.rebalances += 1;
        match event {
            GroupEvent::Assigned(partitions) => {
                tracing::info!(stage = self.stage.name().name(), partitions = %list(&partitions), "assigned");
                insist(&mut || self.ports.log.acknowledge_assigned(&partitions))?;
                self.stage.assigned(&partitions, now);
            }
            GroupEvent::Revoked(partitions) => {
                tracing::info!(stage = self.stage.name().name(), partitions = %list(&partitions), "revoked");
                // The partitions go whatever becomes of the commit; a failed one is handled after that.
                let committed = self.commit(now, true);
                if committed.is_err() {
                    self.stage.aborted();
                }
                self.stage.closed(&partitions);
                insist(&mut || self.ports.log.acknowledge_revoked(&partitions))?;
                committed?;
            }
            GroupEvent::Lost(partitions) => {
                tracing::warn!(stage = self.stage.name().name(), partitions = %list(&partitions), "lost");
                self.stage.aborted();
                self.stage.closed(&partitions);
                insist(&mut || self.ports.log.acknowledge_revoked(&partitions))?;
                let starts = self.stage.aborted();
                self.ports.log.start(&starts)?;
            }
        }
        Ok(())
    }

    fn housekeeping(&mut self, now: Now) -> Result<(), PortError> {
        let mut ports = StagePorts {
            log: &mut *self.ports.log,
            reader: &mut *self.ports.reader,
            admin: &mut *self.ports.admin,
        };
        match self.stage.housekeeping(&mut ports, now) {
            Ok(report) => {
                self.status.disconnected = None;
                if !report.restart.is_empty() {
                    for (partition, reason) in &report.restart {
                        tracing::warn!(%partition, "{reason}");
                    }
                    let partitions: Vec<_> = report.restart.into_iter().map(|(p, _)| p).collect();
                    self.close_dirty(now)?;
                    self.ports.log.pause(&partitions)?;
                    self.stage.closed(&partitions);
                    self.stage.assigned(&partitions, now);
                }
                Ok(())
            }
            Err(error) if error.reaction == Reaction::Retry => {
                if self.status.disconnected.is_none() {
                    tracing::warn!(stage = self.stage.name().name(), "{error}");
                }
                self.status.disconnected = Some(error.message);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    fn restores(&mut self, now: Now) -> Result<(), PortError> {
        if !self.stage.restoring() || now.steady_ms < self.retry_at_ms {
            return Ok(());
        }
        let mut ports = StagePorts {
            log: &mut *self.ports.log,
            reader: &mut *self.ports.reader,
            admin: &mut *self.ports.admin,
        };
        let ready = self.stage.advance_restores(&mut ports, now)?;
        if !ready.is_empty() {
            for (partition, offset) in &ready {
                tracing::info!(stage = self.stage.name().name(), %partition, %offset, "running");
            }
            self.ports.log.start(&ready)?;
        }
        Ok(())
    }

    fn commit(&mut self, now: Now, last: bool) -> Result<(), PortError> {
        let started = Instant::now();
        let done = commit(&mut *self.ports.log, &mut *self.stage, now, last)?;
        if !done.transaction {
            return Ok(());
        }
        self.status.committed += 1;
        self.status.last_commit_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        for outgoing in done.outbox.records() {
            match self.status.output_records.get_mut(&*outgoing.topic) {
                Some(count) => *count += 1,
                None => {
                    self.status.output_records.insert(outgoing.topic.to_string(), 1);
                }
            }
        }
        for (category, count) in done.outbox.dead_letters() {
            *self.status.dead_letters.entry(*category).or_default() += count;
        }
        self.tell(now);
        Ok(())
    }

    /// The one `match` that decides what an error does.
    fn react(&mut self, error: PortError, now: Now) -> Result<(), PortError> {
        let stage = self.stage.name().name();
        match error.reaction {
            Reaction::Retry => {
                if self.status.disconnected.is_none() {
                    tracing::warn!(stage, "{error}; trying again");
                }
                self.status.disconnected = Some(error.message);
                self.retry_at_ms = now.steady_ms + 250;
                Ok(())
            }
            Reaction::Abort => {
                tracing::warn!(
                    stage,
                    "{error}; dropping the open transaction and going on from the last commit"
                );
                self.status.aborted += 1;
                self.close_dirty(now)
            }
            Reaction::Fenced => {
                let again = self.fenced_at_ms.is_some_and(|at| now.steady_ms < at + FENCED_AGAIN_MS);
                if again {
                    return Err(PortError::new(
                        Reaction::Halt,
                        format!(
                            "{error}; it is the second time within a minute: another process runs with this state directory's identity",
                        ),
                    ));
                }
                tracing::warn!(stage, "{error}; making a new producer");
                self.fenced_at_ms = Some(now.steady_ms);
                self.status.fenced += 1;
                self.producer_open = false;
                self.restore_all(now)
            }
            Reaction::Halt => Err(error),
        }
    }

    /// Drops everything provisional and goes back to the last commit.
    fn close_dirty(&mut self, now: Now) -> Result<(), PortError> {
        let aborted = insist(&mut || self.ports.log.abort());
        let starts = self.stage.aborted();
        match aborted {
            Ok(()) => {}
            Err(error) if error.reaction == Reaction::Halt => return Err(error),
            Err(error) => {
                tracing::warn!("{error}; making a new producer");
                self.producer_open = false;
                return self.restore_all(now);
            }
        }
        self.rewind(&starts, now)
    }

    /// How the last transaction ended is not known: it may be committed. Memory is not trusted, the log decides
    /// where each task goes on (EO-3).
    fn restore_all(&mut self, now: Now) -> Result<(), PortError> {
        self.stage.aborted();
        let partitions = self.stage.partitions();
        match self.ports.log.pause(&partitions) {
            Err(error) if error.reaction == Reaction::Halt => return Err(error),
            _ => {}
        }
        self.stage.closed(&partitions);
        self.stage.assigned(&partitions, now);
        Ok(())
    }

    /// Seeks to the last commit. A partition that is no longer ours is told to us by the next poll.
    fn rewind(&mut self, starts: &[(TopicPartition, NextOffset)], now: Now) -> Result<(), PortError> {
        for start in starts {
            match self.ports.log.start(std::slice::from_ref(start)) {
                Ok(()) => {}
                Err(error) if error.reaction == Reaction::Halt => return Err(error),
                Err(error) => {
                    tracing::warn!(partition = %start.0, "{error}; restoring the task");
                    let partition = [start.0.clone()];
                    self.stage.closed(&partition);
                    self.stage.assigned(&partition, now);
                }
            }
        }
        Ok(())
    }

    fn tell(&mut self, now: Now) {
        self.told_at_ms = now.steady_ms;
        self.status.tasks = self.stage.status(now);
        self.status.verdicts = self.stage.verdicts();
        self.ports.observer.publish(&self.status);
    }
}

struct StageSink<'a> {
    stage: &'a mut dyn Stage,
    now: Now,
}

impl BatchSink for StageSink<'_> {
    fn batch(&mut self, partition: &TopicPartition, records: &[RecordView<'_>]) -> Result<(), PortError> {
        self.stage.batch(partition, records, self.now)
    }
}

struct NoRecords;

impl BatchSink for NoRecords {
    fn batch(&mut self, _: &TopicPartition, _: &[RecordView<'_>]) -> Result<(), PortError> {
        Err(PortError::new(Reaction::Halt, "records came though none were asked for"))
    }
}

fn list(partitions: &[TopicPartition]) -> String {
    partitions.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}
