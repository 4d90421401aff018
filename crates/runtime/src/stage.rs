//! A stage: the tasks of one worker and what they want of a commit.
//!
//! ```text
//!  assigned ─► restoring ─► (ready) started ─► batch* ─► due? ─► take_due ─► offsets ─► committed
//!                                                ▲                              └─► aborted ──┐
//!                                                └────────────── seek to committed ◄──────────┘
//! ```
//!
//! The worker drives it; the order of a commit is in `commit.rs`, not here. What a stage holds between two commits
//! is provisional: `aborted` undoes it, `committed` makes it good.

use tallyflow_core::ids::{NextOffset, TopicPartition};
use tallyflow_core::record::RecordView;
use tallyflow_core::tallies::Tallies;

use crate::outbox::Outbox;
use crate::ports::{Admin, LogReader, Now, PortError, SentOffset, StreamLog};
use crate::status::{StageName, TaskStatus};

/// The ports a stage may use outside a commit: for restores and questions.
pub struct StagePorts<'a> {
    /// The stage's own consumer and producer.
    pub log: &'a mut dyn StreamLog,
    /// Bounded reads.
    pub reader: &'a mut dyn LogReader,
    /// Topic ids and ends of logs.
    pub admin: &'a mut dyn Admin,
}

/// The tasks of one worker.
pub trait Stage {
    /// Which stage.
    fn name(&self) -> StageName;

    /// New partitions: tasks begin their restore.
    fn assigned(&mut self, partitions: &[TopicPartition], now: Now);

    /// Partitions that are gone: their tasks are closed. What was committed stays on disk.
    fn closed(&mut self, partitions: &[TopicPartition]);

    /// The partitions of all tasks.
    fn partitions(&self) -> Vec<TopicPartition>;

    /// One bounded slice of the restores that are under way. Returns the tasks that are ready, with their offsets:
    /// the worker starts them.
    ///
    /// # Errors
    ///
    /// A halt where a task may not go on.
    fn advance_restores(
        &mut self,
        ports: &mut StagePorts<'_>,
        now: Now,
    ) -> Result<Vec<(TopicPartition, NextOffset)>, PortError>;

    /// Whether a restore is under way.
    fn restoring(&self) -> bool;

    /// Records of one partition. Records of tasks that are not running, and records below a task's position, are
    /// ignored.
    ///
    /// # Errors
    ///
    /// A halt where the records cannot be what they should be.
    fn batch(
        &mut self,
        partition: &TopicPartition,
        records: &[RecordView<'_>],
        now: Now,
    ) -> Result<(), PortError>;

    /// The client's positions after a poll: control records count as read.
    fn positions(&mut self, log: &dyn StreamLog);

    /// Once a second: ids, ends, idle partitions.
    ///
    /// # Errors
    ///
    /// Where the cluster did not answer; or a halt.
    fn housekeeping(&mut self, ports: &mut StagePorts<'_>, now: Now) -> Result<Housekeeping, PortError>;

    /// Whether a transaction is due now.
    ///
    /// # Errors
    ///
    /// Where local state could not be read.
    fn due(&mut self, now: Now) -> Result<bool, PortError>;

    /// When, on the steady clock, [`Stage::due`] may become true without new input.
    fn next_due_ms(&self, now: Now) -> u64;

    /// Whether no more input should be taken before a commit.
    fn full(&self) -> bool;

    /// Step 1 of a commit: everything that is due goes into the outbox. `last` is a drain: hold nothing back.
    ///
    /// # Errors
    ///
    /// Where local state could not be read.
    fn take_due(&mut self, now: Now, last: bool, out: &mut Outbox) -> Result<(), PortError>;

    /// Step 3: the input offset of every running task.
    fn offsets(&self) -> Vec<SentOffset>;

    /// Step 5: the transaction is committed; apply what was provisional to local state.
    ///
    /// # Errors
    ///
    /// Where local state could not be written: the task halts, nothing is lost.
    fn committed(&mut self, now: Now) -> Result<(), PortError>;

    /// The transaction was aborted: drop what was provisional. Returns where each running task goes on.
    fn aborted(&mut self) -> Vec<(TopicPartition, NextOffset)>;

    /// Verdicts committed since the stage began.
    fn verdicts(&self) -> Tallies;

    /// Why the stage takes no input just now, if so: the disk is full, say.
    fn blocked(&self) -> Option<String>;

    /// What to tell of each task.
    fn status(&self, now: Now) -> Vec<TaskStatus>;
}

/// What the worker has to do after a housekeeping.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Housekeeping {
    /// Tasks to be closed dirty and restored, with the reason: their input was created again, or their local state
    /// could not be written.
    pub restart: Vec<(TopicPartition, String)>,
}
