//! The order of a commit, and what each failure leaves undone: a log and a stage that write down every call.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use tallyflow_core::ids::{NextOffset, Partition, TopicPartition};
use tallyflow_core::record::{OutRecord, RecordView};
use tallyflow_core::tallies::Tallies;
use tallyflow_core::time::TimestampMs;

use super::*;
use crate::ports::{BatchSink, Committed as GroupOffset, GroupEvent};
use crate::stage::{Housekeeping, StagePorts};
use crate::status::{StageName, TaskStatus};

type Calls = Rc<RefCell<Vec<&'static str>>>;

/// Fails the named call, with this reaction, so many times.
#[derive(Clone, Copy)]
struct Failure(&'static str, Reaction, u32);

struct Log {
    calls: Calls,
    fail: Option<Failure>,
    lost: bool,
}

impl Log {
    fn call(&mut self, name: &'static str) -> Result<(), PortError> {
        self.calls.borrow_mut().push(name);
        match &mut self.fail {
            Some(Failure(failing, reaction, times)) if *failing == name && *times > 0 => {
                *times -= 1;
                Err(PortError::new(*reaction, "made to fail"))
            }
            _ => Ok(()),
        }
    }
}

impl StreamLog for Log {
    fn poll(&mut self, _: Duration, _: usize, _: &mut dyn BatchSink) -> Result<usize, PortError> {
        Ok(0)
    }
    fn take_event(&mut self) -> Option<GroupEvent> {
        None
    }
    fn acknowledge_assigned(&mut self, _: &[TopicPartition]) -> Result<(), PortError> {
        Ok(())
    }
    fn acknowledge_revoked(&mut self, _: &[TopicPartition]) -> Result<(), PortError> {
        Ok(())
    }
    fn start(&mut self, _: &[(TopicPartition, NextOffset)]) -> Result<(), PortError> {
        self.call("start")
    }
    fn pause(&mut self, _: &[TopicPartition]) -> Result<(), PortError> {
        self.call("pause")
    }
    fn position(&self, _: &TopicPartition) -> Option<NextOffset> {
        None
    }
    fn assignment_lost(&self) -> bool {
        self.lost
    }
    fn committed(&mut self, _: &[TopicPartition]) -> Result<Vec<Option<GroupOffset>>, PortError> {
        Ok(Vec::new())
    }
    fn open_producer(&mut self) -> Result<(), PortError> {
        self.call("open_producer")
    }
    fn begin(&mut self) -> Result<(), PortError> {
        self.call("begin")
    }
    fn send(&mut self, _: &str, _: Partition, _: &OutRecord) -> Result<(), PortError> {
        self.call("send")
    }
    fn send_offsets(&mut self, offsets: &[SentOffset]) -> Result<(), PortError> {
        assert!(!offsets.is_empty(), "an empty list checks no generation");
        self.call("send_offsets")
    }
    fn commit(&mut self) -> Result<(), PortError> {
        self.call("commit")
    }
    fn abort(&mut self) -> Result<(), PortError> {
        self.call("abort")
    }
    fn close(&mut self) {}
}

struct Tasks {
    calls: Calls,
    running: bool,
}

impl Stage for Tasks {
    fn name(&self) -> StageName {
        StageName::Count
    }
    fn assigned(&mut self, _: &[TopicPartition], _: Now) {
        self.calls.borrow_mut().push("assigned");
    }
    fn closed(&mut self, _: &[TopicPartition]) {
        self.calls.borrow_mut().push("closed");
    }
    fn partitions(&self) -> Vec<TopicPartition> {
        vec![TopicPartition::new("entries", 0)]
    }
    fn advance_restores(
        &mut self,
        _: &mut StagePorts<'_>,
        _: Now,
    ) -> Result<Vec<(TopicPartition, NextOffset)>, PortError> {
        Ok(Vec::new())
    }
    fn restoring(&self) -> bool {
        false
    }
    fn batch(&mut self, _: &TopicPartition, _: &[RecordView<'_>], _: Now) -> Result<(), PortError> {
        Ok(())
    }
    fn positions(&mut self, _: &dyn StreamLog) {}
    fn housekeeping(&mut self, _: &mut StagePorts<'_>, _: Now) -> Result<Housekeeping, PortError> {
        Ok(Housekeeping::default())
    }
    fn due(&mut self, _: Now) -> Result<bool, PortError> {
        Ok(true)
    }
    fn next_due_ms(&self, now: Now) -> u64 {
        now.steady_ms
    }
    fn full(&self) -> bool {
        false
    }
    fn take_due(&mut self, _: Now, _: bool, out: &mut Outbox) -> Result<(), PortError> {
        self.calls.borrow_mut().push("take_due");
        out.push(&"windows".into(), Partition(0), OutRecord::default());
        Ok(())
    }
    fn offsets(&self) -> Vec<SentOffset> {
        let offset = SentOffset {
            partition: TopicPartition::new("entries", 0),
            offset: NextOffset(7),
            metadata: String::new(),
        };
        if self.running { vec![offset] } else { Vec::new() }
    }
    fn committed(&mut self, _: Now) -> Result<(), PortError> {
        self.calls.borrow_mut().push("committed");
        Ok(())
    }
    fn aborted(&mut self) -> Vec<(TopicPartition, NextOffset)> {
        self.calls.borrow_mut().push("aborted");
        vec![(TopicPartition::new("entries", 0), NextOffset(7))]
    }
    fn verdicts(&self) -> Tallies {
        Tallies::default()
    }
    fn blocked(&self) -> Option<String> {
        None
    }
    fn status(&self, _: Now) -> Vec<TaskStatus> {
        Vec::new()
    }
}

const NOW: Now = Now { wall: TimestampMs(1), steady_ms: 100_000 };

fn run(fail: Option<Failure>, lost: bool) -> (Vec<&'static str>, Result<bool, Reaction>) {
    let calls = Calls::default();
    let mut log = Log { calls: Rc::clone(&calls), fail, lost };
    let mut tasks = Tasks { calls: Rc::clone(&calls), running: true };
    let result = commit(&mut log, &mut tasks, NOW, false);
    let calls = calls.borrow().clone();
    (calls, result.map(|done| done.transaction).map_err(|error| error.reaction))
}

const WHOLE: [&str; 6] = ["take_due", "begin", "send", "send_offsets", "commit", "committed"];

#[test]
fn the_steps_come_in_this_order() {
    assert_eq!(run(None, false), (WHOLE.to_vec(), Ok(true)));
}

#[test]
fn nothing_reaches_local_state_before_the_commit_succeeded() {
    // EO-1: whatever fails, the last step is not done.
    for name in ["begin", "send", "send_offsets", "commit"] {
        for reaction in [Reaction::Abort, Reaction::Fenced, Reaction::Halt] {
            let (calls, result) = run(Some(Failure(name, reaction, 1)), false);
            assert_eq!(calls.last(), Some(&name), "{name} {reaction:?}");
            assert_eq!(result, Err(reaction), "{name}");
        }
    }
}

#[test]
fn a_retry_repeats_the_same_call_and_nothing_in_between() {
    let (calls, result) = run(Some(Failure("commit", Reaction::Retry, 2)), false);
    let right = ["take_due", "begin", "send", "send_offsets", "commit", "commit", "commit", "committed"];
    assert_eq!((calls, result), (right.to_vec(), Ok(true)));
}

#[test]
fn offsets_cannot_be_sent_twice() {
    let (calls, result) = run(Some(Failure("send_offsets", Reaction::Retry, 1)), false);
    assert_eq!((calls.last(), result), (Some(&"send_offsets"), Err(Reaction::Abort)));
}

#[test]
fn a_lost_assignment_sends_nothing_more() {
    let (calls, result) = run(None, true);
    assert_eq!((calls.last(), result), (Some(&"send"), Err(Reaction::Abort)));
}

#[test]
fn without_a_running_task_there_is_no_transaction() {
    let calls = Calls::default();
    let mut log = Log { calls: Rc::clone(&calls), fail: None, lost: false };
    let mut tasks = Tasks { calls: Rc::clone(&calls), running: false };
    let done = commit(&mut log, &mut tasks, NOW, true).unwrap();
    assert_eq!((done.transaction, calls.borrow().len()), (false, 0));
}

mod reactions {
    //! What the worker does about an error of the commit.

    use super::*;
    use crate::ports::{Admin, LogEnds, LogReader, Scan, ScanFrom, TopicInfo};
    use crate::status::{Observer, WorkerStatus};
    use crate::worker::{Worker, WorkerPorts};

    struct Nobody;

    impl Observer for Nobody {
        fn publish(&mut self, _: &WorkerStatus) {}
    }
    impl LogReader for Nobody {
        fn scan(&mut self, _: &TopicPartition, _: ScanFrom) -> Result<Box<dyn Scan>, PortError> {
            Err(PortError::new(Reaction::Halt, "nothing to read"))
        }
    }
    impl Admin for Nobody {
        fn topics(&mut self, _: &[&str]) -> Result<Vec<Option<TopicInfo>>, PortError> {
            Ok(Vec::new())
        }
        fn ends(&mut self, _: &[TopicPartition]) -> Result<Vec<LogEnds>, PortError> {
            Ok(Vec::new())
        }
    }

    fn worker(fail: Failure) -> (Worker, Calls) {
        let calls = Calls::default();
        let log = Log { calls: Rc::clone(&calls), fail: Some(fail), lost: false };
        let tasks = Tasks { calls: Rc::clone(&calls), running: true };
        let ports = WorkerPorts {
            log: Box::new(log),
            reader: Box::new(Nobody),
            admin: Box::new(Nobody),
            observer: Box::new(Nobody),
        };
        (Worker::new(ports, Box::new(tasks), 0), calls)
    }

    fn after(calls: &Calls, failed: &str) -> Vec<&'static str> {
        let calls = calls.borrow();
        let at = calls.iter().position(|call| *call == failed).unwrap();
        calls[at + 1..].to_vec()
    }

    #[test]
    fn an_abort_drops_the_transaction_and_rewinds() {
        let (mut worker, calls) = worker(Failure("commit", Reaction::Abort, 1));
        worker.step(NOW).unwrap();
        assert_eq!(after(&calls, "commit"), ["abort", "aborted", "start"]);
    }

    #[test]
    fn an_unknown_outcome_is_decided_by_the_log() {
        // The transaction may be committed: rewinding to what memory knows could count it twice (EO-3).
        let (mut worker, calls) = worker(Failure("commit", Reaction::Fenced, 1));
        worker.step(NOW).unwrap();
        assert_eq!(after(&calls, "commit"), ["aborted", "pause", "closed", "assigned"]);
        worker.step(Now { steady_ms: NOW.steady_ms + 1, ..NOW }).unwrap();
        assert!(after(&calls, "assigned").contains(&"open_producer"));
    }

    #[test]
    fn fenced_again_within_a_minute_halts() {
        let (mut worker, _) = worker(Failure("commit", Reaction::Fenced, 2));
        worker.step(NOW).unwrap();
        let error = worker.step(Now { steady_ms: NOW.steady_ms + 59_000, ..NOW }).unwrap_err();
        assert_eq!(error.reaction, Reaction::Halt);
        assert!(error.message.contains("another process runs"), "{error}");
    }
}
