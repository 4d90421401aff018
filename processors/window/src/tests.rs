//! Each arrow of the row's life, the cases of the rules, and the budget.

use tallyflow_core::outputs::RowState::{Correction, Final, Update};
use tallyflow_core::plan::Emit;
use tallyflow_core::processor::Delta;

use crate::testing::{Task, at, delta, of_windows, window_plan};

fn minute() -> Task {
    Task::new(vec![window_plan("minute", 60, 0, Emit::EveryMs(1_000))])
}

// ── The arrows ──────────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn none_to_update_goes_out_with_the_commit_that_counts_it() {
    let mut task = minute();
    let rows = task.commit(0, &[delta(0, 5, 3)]);
    assert_eq!(of_windows(&rows), [(0, 0, Update, 3, 2)]);
    // The total too, which has no state.
    assert_eq!(rows.iter().filter(|row| row.state.is_none()).map(|row| row.sum).collect::<Vec<_>>(), [3]);
    assert_eq!(rows[0].complete_through, None);
}

#[test]
fn update_to_update_is_paced() {
    let mut task = minute();
    task.commit(0, &[delta(0, 5, 1)]);
    assert_eq!(task.commit(500, &[delta(0, 5, 1)]), []);
    assert_eq!(task.commit(999, &[delta(0, 5, 1)]), []);
    assert_eq!((task.window.pending_len(), task.window.next_deadline()), (2, Some(1_000)));
    assert!(!task.window.has_due(999, None, &mut task.cells).unwrap());
    assert!(task.window.has_due(1_000, None, &mut task.cells).unwrap());
    assert_eq!(of_windows(&task.commit(1_000, &[])), [(0, 0, Update, 3, 6)]);
    assert_eq!((task.window.pending_len(), task.window.next_deadline()), (0, None));
    // A key that was not said lately is said at once.
    assert_eq!(of_windows(&task.commit(2_000, &[delta(0, 5, 1)])), [(0, 0, Update, 4, 8)]);
}

#[test]
fn update_to_final_when_the_cursor_passes() {
    let mut task = Task::new(vec![window_plan("minute", 60, 10, Emit::EveryMs(1_000))]);
    task.commit(0, &[delta(0, 5, 1)]);
    for (clock, right) in [(at(70).minus(1), vec![]), (at(70), vec![(0, 0, Final, 1, 3)]), (at(500), vec![])]
    {
        task.clock = Some(clock);
        assert_eq!(task.window.has_due(0, task.clock, &mut task.cells).unwrap(), !right.is_empty());
        assert_eq!(of_windows(&task.commit(0, &[])), right, "{clock:?}");
    }
}

#[test]
fn none_to_final_by_the_cursor_of_the_same_transaction() {
    let mut task = minute();
    task.clock = Some(at(60));
    let rows = task.commit(0, &[delta(0, 5, 1), delta(1, 61, 1)]);
    assert_eq!(of_windows(&rows), [(0, 0, Final, 1, 3), (1, 60, Update, 1, 2)]);
    assert_eq!(rows[0].complete_through, Some(at(60)));
}

#[test]
fn none_to_final_behind_the_cursor() {
    let mut task = minute();
    task.clock = Some(at(60));
    task.commit(0, &[]);
    assert_eq!(of_windows(&task.commit(0, &[delta(0, 5, 1)])), [(0, 0, Final, 1, 2)]);
    assert_eq!(of_windows(&task.commit(0, &[delta(0, 5, 1)])), [(0, 0, Correction, 2, 4)]);
}

#[test]
fn final_to_correction_at_once_and_again() {
    let mut task = minute();
    task.commit(0, &[delta(0, 5, 1)]);
    task.clock = Some(at(60));
    assert_eq!(of_windows(&task.commit(1, &[])), [(0, 0, Final, 1, 3)]);
    assert_eq!(of_windows(&task.commit(2, &[delta(0, 59, 1)])), [(0, 0, Correction, 2, 4)]);
    assert_eq!(of_windows(&task.commit(3, &[delta(0, 59, -2)])), [(0, 0, Correction, 0, 6)]);
}

#[test]
fn final_takes_the_place_of_an_update_that_waits() {
    let mut task = minute();
    task.commit(0, &[delta(0, 5, 1)]);
    task.commit(1, &[delta(0, 5, 1)]);
    task.clock = Some(at(60));
    assert_eq!(of_windows(&task.commit(2, &[])), [(0, 0, Final, 2, 5)]);
    assert_eq!(of_windows(&task.commit(5_000, &[])), []);
    assert_eq!(task.window.pending_len(), 0);
}

#[test]
fn emit_final_says_no_updates() {
    let mut task = Task::new(vec![window_plan("minute", 60, 0, Emit::Final)]);
    assert_eq!(of_windows(&task.commit(0, &[delta(0, 5, 1)])), []);
    assert_eq!(of_windows(&task.commit(5_000, &[delta(0, 5, 1)])), []);
    task.clock = Some(at(60));
    assert_eq!(of_windows(&task.commit(5_001, &[])), [(0, 0, Final, 2, 5)]);
    assert_eq!(of_windows(&task.commit(5_002, &[delta(0, 5, 1)])), [(0, 0, Correction, 3, 6)]);
}

// ── The cases of the rules ──────────────────────────────────────────────────────────────────────────────────────

#[test]
fn t18_a_rejected_event_closes_nothing() {
    // The event of the year 2100 is rejected by intake and the clock is the log's: here it does not move.
    let mut task = minute();
    task.clock = Some(at(59));
    task.commit(0, &[delta(0, 30, 10)]);
    let rows = task.commit(1_000, &[delta(0, 31, 10)]);
    assert_eq!(of_windows(&rows), [(0, 0, Update, 20, 4)]);
}

#[test]
fn t20f_the_slowest_partition_holds_the_final() {
    let mut task = minute();
    task.commit(0, &[delta(0, 61, 1)]);
    task.clock = Some(at(100 - 5));
    assert_eq!(of_windows(&task.commit(1, &[])), []);
    task.clock = Some(at(200 - 5));
    assert_eq!(of_windows(&task.commit(2, &[delta(0, 99, 1)])), [(0, 60, Final, 2, 5)]);
}

#[test]
fn t21_t22_sums_do_not_clamp_or_wrap() {
    for order in [[5, -10, 10], [-10, 5, 10], [10, 5, -10], [5, 10, -10]] {
        let mut task = minute();
        let last = order.map(|sum| task.commit(0, &[delta(0, 5, sum)]));
        drop(last);
        assert_eq!(of_windows(&task.commit(1_000, &[]))[0].3, 5);
    }
    let mut task = minute();
    let max = i128::from(i64::MAX);
    assert_eq!(of_windows(&task.commit(0, &[delta(0, 5, max)]))[0].3, max);
    assert_eq!(of_windows(&task.commit(1_000, &[delta(0, 5, 1)]))[0].3, max + 1);
    assert_eq!(of_windows(&task.commit(2_000, &[delta(0, 5, -1)]))[0].3, max);
}

#[test]
fn t26_one_event_in_each_window() {
    let rows = minute().commit(0, &[delta(0, 59, 1), delta(0, 61, 1)]);
    assert_eq!(of_windows(&rows), [(0, 0, Update, 1, 2), (0, 60, Update, 1, 2)]);
}

#[test]
fn t28_a_late_event_changes_its_own_window() {
    let mut task = minute();
    let published = task.commit(0, &[delta(0, 100, 10)]);
    let rows = task.commit(20_000, &[delta(0, 119, 1)]);
    assert_eq!(of_windows(&rows), [(0, 60, Update, 11, 4)]);
    assert_eq!(rows[0].cell, published[0].cell);
    assert!(rows[0].revision > published[0].revision);
}

#[test]
fn t40_a_mass_of_finals_is_spread() {
    let mut task = minute();
    let many: Vec<Delta> = (0..1_000).map(|counter| delta(counter, 5, i128::from(counter))).collect();
    task.commit(0, &many);
    task.clock = Some(at(60));
    task.budget = 100;
    let mut said = Vec::new();
    let mut commits = 0;
    while task.window.has_due(1, task.clock, &mut task.cells).unwrap() {
        let rows = task.commit(1, &[]);
        assert!(rows.len() <= 100);
        said.extend(rows);
        commits += 1;
        assert!(commits < 20);
    }
    assert!(said.iter().all(|row| row.state == Some(Final) && row.sum == i128::from(row.cell.counter.0)));
    let mut counters: Vec<u32> = said.iter().map(|row| row.cell.counter.0).collect();
    counters.sort_unstable();
    assert_eq!(counters, (0..1_000).collect::<Vec<_>>());
}

#[test]
fn timed_updates_are_spread_and_not_starved_by_finals() {
    let mut task = minute();
    let early: Vec<Delta> = (0..500).map(|counter| delta(counter, 5, 1)).collect();
    let later: Vec<Delta> = (1_000..1_100).map(|counter| delta(counter, 70, 1)).collect();
    task.commit(0, &early);
    task.commit(0, &later);
    task.commit(1, &later);
    task.clock = Some(at(60));
    task.budget = 100;
    let rows = task.commit(1_000, &[]);
    let finals = rows.iter().filter(|row| row.state == Some(Final)).count();
    assert_eq!((finals, rows.len()), (75, 100));
    // What was held back goes first: everything is out after as many commits as it needs.
    let commits = (1..).take_while(|_| !task.commit(1_000, &[]).is_empty()).count();
    assert_eq!(commits, 6); // 425 finals and 175 updates
    assert_eq!(task.window.pending_len(), 0);
}

#[test]
fn corrections_and_first_updates_do_not_wait_for_the_budget() {
    let mut task = minute();
    task.clock = Some(at(60));
    task.commit(0, &[delta(0, 5, 1)]);
    task.budget = 1;
    let batch: Vec<Delta> = (0..50).flat_map(|n| [delta(n, 5, 1), delta(n, 65, 1)]).collect();
    let rows = task.commit(1, &batch);
    let count = |state| rows.iter().filter(|row| row.state == Some(state)).count();
    assert_eq!((count(Correction), count(Final), count(Update)), (1, 49, 50));
}
