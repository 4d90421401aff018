//! The cursor's moves, and what an abort, a restore or new counter ids leave behind.

use tallyflow_core::frame::delta::Cursor;
use tallyflow_core::ids::NextOffset;
use tallyflow_core::outputs::RowState::{Correction, Final, Update};
use tallyflow_core::plan::Emit;
use tallyflow_core::processor::{CellId, CounterId, Delta, Processor, Table};
use tallyflow_core::time::TimestampMs;

use crate::testing::{MapCells, Rows, Said, Task, at, delta, of_windows, plan, window_plan};
use crate::{Due, Window};

const MINUTE: Table = Table(0);

fn minute() -> Task {
    Task::new(vec![window_plan("minute", 60, 0, Emit::EveryMs(1_000))])
}

fn minute_cell(counter: u32, start_s: i64) -> CellId {
    CellId { table: MINUTE, start: at(start_s), counter: CounterId(counter) }
}

// ── The cursor ──────────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn empty_windows_are_jumped_over() {
    let mut task = minute();
    task.commit(0, &[delta(0, 60, 1), delta(0, 60 * 1_000_000, 1)]);
    task.clock = Some(at(60 * 2_000_000));
    let rows = task.commit(0, &[]);
    assert_eq!(of_windows(&rows).len(), 2);
    assert!(task.cells.lookups < 20, "{}", task.cells.lookups);
    assert_eq!(task.window.cursors()[0].start, at(60 * 2_000_000));
}

#[test]
fn a_question_that_was_answered_is_not_asked_again() {
    let mut task = minute();
    task.commit(0, &[delta(0, 600, 1)]);
    for clock in 1..100 {
        assert!(!task.window.has_due(1, Some(at(clock)), &mut task.cells).unwrap());
    }
    assert_eq!(task.cells.lookups, 1);
    assert!(task.window.has_due(1, Some(at(660)), &mut task.cells).unwrap());
}

#[test]
fn a_cursor_in_the_middle_of_a_window_knows_what_is_behind_it() {
    let mut task = minute();
    let many: Vec<Delta> = (0..10).map(|counter| delta(counter, 5, 1)).collect();
    task.commit(0, &many);
    task.clock = Some(at(60));
    task.budget = 4;
    let first: Vec<Said> = task.commit(1, &[]);
    let cursor = task.window.cursors()[0].clone();
    assert!(cursor.start == at(0) && cursor.after.is_some());
    // Of all cells touched now, those said are corrected, the others get their one final, four a commit.
    let rows = task.commit(2, &many);
    for row in rows.iter().filter(|row| row.state.is_some()) {
        let was_said = first.iter().any(|before| before.cell == row.cell);
        assert_eq!(row.state, Some(if was_said { Correction } else { Final }), "{row:?}");
    }
    assert_eq!(rows.iter().filter(|row| row.state == Some(Correction)).count(), 4);
    assert_eq!(rows.iter().filter(|row| row.state == Some(Final)).count(), 4);
}

#[test]
fn a_cursor_survives_a_restore() {
    let mut task = minute();
    task.commit(0, &[delta(0, 5, 1), delta(0, 65, 1)]);
    task.clock = Some(at(60));
    task.commit(1, &[]);
    let cursors = task.window.cursors();
    task.window = Window::new(&plan(vec![
        window_plan("hour", 3_600, 0, Emit::Final),
        window_plan("minute", 60, 0, Emit::EveryMs(1_000)),
    ]));
    task.window.restore(&cursors);
    assert_eq!(task.window.cursors()[1], cursors[0]);
    assert_eq!(task.window.cursors()[0].start, TimestampMs::MIN);
    assert_eq!((task.window.table("minute"), task.window.table("")), (Some(Table(1)), Some(Table::TOTALS)));
    assert_eq!((task.window.table_name(Table(1)), task.window.table_name(Table::TOTALS)), ("minute", ""));
}

#[test]
fn windows_expire_when_they_are_final_and_old() {
    let mut task = minute(); // keep = 1 h
    assert_eq!(task.window.expired_before(at(100_000)), []);
    task.commit(0, &[delta(0, 5, 1)]);
    task.clock = Some(at(600));
    task.commit(1, &[]);
    assert_eq!(task.window.expired_before(at(60 + 3_600)), [(MINUTE, at(60))]);
    assert_eq!(task.window.expired_before(at(59 + 3_600)), [(MINUTE, at(0))]);
    // Not beyond what is final, whatever the clock.
    assert_eq!(task.window.expired_before(at(100_000)), [(MINUTE, at(600))]);
}

// ── Aborts and restores ─────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn an_aborted_transaction_said_nothing() {
    let mut task = minute();
    task.commit(0, &[delta(0, 5, 1)]);
    task.commit(1, &[delta(0, 5, 1)]);
    task.clock = Some(at(60));
    let batch = [delta(0, 59, 1), delta(1, 5, 1), delta(1, 65, 1)];
    let first = task.abort(2_000, &batch);
    assert_eq!(task.window.cursors()[0].start, TimestampMs::MIN);
    assert_eq!(task.window.pending_len(), 2); // the minute and the total of counter 0
    assert_eq!(task.abort(2_000, &batch), first);
    assert_eq!(task.commit(2_000, &batch), first);
    assert_eq!(task.window.cursors()[0].start, at(60));
    assert_eq!(task.window.pending_len(), 0);
}

#[test]
fn emitted_through_is_the_first_change_not_published() {
    let mut task = minute();
    let through = |task: &Task| task.window.emitted_through(NextOffset(task.through)).0;
    task.commit(0, &[delta(0, 5, 1)]);
    assert_eq!(through(&task), 1);
    task.commit(1, &[delta(0, 5, 1)]);
    task.commit(2, &[delta(0, 5, 1), delta(1, 5, 1)]);
    assert_eq!(through(&task), 1);
    task.take(1_000, &[]);
    assert_eq!(through(&task), 3); // counted in while the transaction is open …
    task.window.aborted();
    assert_eq!(through(&task), 1); // … and not if it fails
    task.commit(1_000, &[]);
    assert_eq!(through(&task), 3);
}

#[test]
fn final_only_tables_do_not_hold_emitted_through() {
    let mut task = Task::new(vec![window_plan("minute", 60, 0, Emit::Final)]);
    task.commit(0, &[delta(0, 5, 1)]);
    task.commit(1_000, &[delta(0, 5, 1)]);
    assert_eq!(task.window.emitted_through(NextOffset(2)), NextOffset(2));
}

#[test]
fn rows_due_again_after_a_restore() {
    let mut task = minute();
    task.clock = Some(at(60));
    task.commit(0, &[delta(0, 5, 1), delta(0, 65, 1)]);
    task.commit(1, &[delta(0, 65, 1)]);
    let cursors = task.window.cursors();
    task.window = Window::new(&plan(vec![window_plan("minute", 60, 0, Emit::EveryMs(1_000))]));
    task.window.restore(&cursors);
    let mut changed = Vec::new();
    task.window.cells_of(CounterId(0), at(0), &mut changed);
    task.window.cells_of(CounterId(0), at(60), &mut changed);
    assert_eq!(changed.len(), 4);
    task.window.mark_due(&changed, NextOffset(1), &task.cells);
    assert_eq!(task.window.emitted_through(NextOffset(2)), NextOffset(1));
    assert_eq!(task.window.next_deadline(), Some(0));
    // The final of [0, 60) was published with its commit.
    assert_eq!(of_windows(&task.commit(7, &[])), [(0, 60, Update, 2, 4)]);
    assert_eq!(task.window.emitted_through(NextOffset(2)), NextOffset(2));
}

#[test]
fn a_restored_cursor_is_where_it_was_said() {
    let mut window = Window::new(&plan(vec![window_plan("minute", 60, 0, Emit::Final)]));
    let cursor = Cursor { table: "minute".to_owned(), start: at(120), after: None };
    window.restore(std::slice::from_ref(&cursor));
    assert_eq!(window.cursors(), [cursor]);
}

#[test]
fn the_processor_merges() {
    let mut window = Window::new(&plan(vec![window_plan("minute", 60, 0, Emit::Final)]));
    let mut cells = MapCells::new(1);
    let batch = [delta(0, 5, 1), delta(0, 65, 2)];
    window.process((&batch, NextOffset(0)), &mut cells, at(0), ()).unwrap();
    assert_eq!(cells.current[&minute_cell(0, 60)].sum.0, 2);
    let total = CellId { table: Table::TOTALS, start: at(0), counter: CounterId(0) };
    assert_eq!((cells.current[&total].sum.0, cells.current[&total].events), (3, 2));
    let mut rows = Rows::default();
    let due = Due { steady_ms: 0, through: NextOffset(1), complete_through: None, budget_rows: 0 };
    assert!(!window.take_due(&due, &mut cells, &mut rows).unwrap().more);
    assert_eq!(rows.0.len(), 1);
}

#[test]
fn renumbered_counters_are_not_mistaken_for_others() {
    let mut task = minute();
    task.commit(0, &[delta(0, 5, 1)]);
    task.window.counters_renumbered();
    // The id 0 is another counter's now: nothing of the old one holds it back.
    let total = |rows: &[Said]| rows.iter().filter(|row| row.state.is_none()).count();
    assert_eq!(total(&task.commit(1, &[delta(0, 5, 1)])), 1);
    assert_eq!((task.window.pending_len(), task.window.next_deadline()), (0, None));
}
