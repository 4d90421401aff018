//! Any log, cut into any transactions that commit, abort or end with the process, says the same in the end.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use tallyflow_core::ids::NextOffset;
use tallyflow_core::outputs::RowState;
use tallyflow_core::plan::{Emit, WindowPlan};
use tallyflow_core::processor::{CellId, Delta, Table};
use tallyflow_core::time::TimestampMs;

use crate::testing::{MapCells, Rows, Said, at, delta, plan, window_plan};
use crate::{Due, Window};

/// One frame of the log: what it adds, and how far it moves the watermark (seconds).
#[derive(Debug, Clone)]
struct Frame {
    deltas: Vec<Delta>,
    clock_step: i64,
}

#[derive(Debug, Clone, Copy)]
enum End {
    Commit,
    Abort,
    /// The process ends in the transaction; another one restores.
    Crash,
}

/// How the next transaction goes.
#[derive(Debug, Clone, Copy)]
struct Step {
    frames: usize,
    one_merge: bool,
    budget: usize,
    steady_step: u64,
    end: End,
}

fn frames() -> impl Strategy<Value = Vec<Frame>> {
    let one = (0..4u32, 0..600i64, -3i128..4).prop_map(|(counter, second, sum)| delta(counter, second, sum));
    let frame = (prop::collection::vec(one, 0..5), 0..120i64)
        .prop_map(|(deltas, clock_step)| Frame { deltas, clock_step });
    prop::collection::vec(frame, 1..20)
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let end = prop_oneof![4 => Just(End::Commit), 1 => Just(End::Abort), 1 => Just(End::Crash)];
    let step = (0..4usize, any::<bool>(), 0..6usize, 0..1_500u64, end).prop_map(
        |(frames, one_merge, budget, steady_step, end)| Step { frames, one_merge, budget, steady_step, end },
    );
    prop::collection::vec(step, 1..30)
}

fn windows() -> Vec<WindowPlan> {
    vec![
        window_plan("minute", 60, 0, Emit::EveryMs(1_000)),
        window_plan("three", 180, 30, Emit::EveryMs(700)),
        window_plan("final", 120, 0, Emit::Final),
    ]
}

/// A task over a log, with what a reader of its topics has seen.
struct World {
    log: Vec<Frame>,
    window: Window,
    cells: MapCells,
    steady_ms: u64,
    through: usize,
    /// Of the last commit.
    cursors: Vec<tallyflow_core::frame::delta::Cursor>,
    emitted_through: usize,
    published: BTreeMap<CellId, Vec<Said>>,
    /// Keys published since the last start, with the steady clock.
    said_at: BTreeMap<CellId, u64>,
}

impl World {
    fn new(log: Vec<Frame>) -> Self {
        Self {
            log,
            window: Window::new(&plan(windows())),
            cells: MapCells::new(4),
            steady_ms: 0,
            through: 0,
            cursors: Vec::new(),
            emitted_through: 0,
            published: BTreeMap::new(),
            said_at: BTreeMap::new(),
        }
    }

    fn clock(&self, through: usize) -> Option<TimestampMs> {
        (through > 0).then(|| at(self.log[..through].iter().map(|frame| frame.clock_step).sum()))
    }

    fn step(&mut self, step: Step) {
        self.steady_ms += step.steady_step;
        let through = (self.through + step.frames).min(self.log.len());
        let frames = &self.log[self.through..through];
        if step.one_merge {
            let all: Vec<Delta> = frames.iter().flat_map(|frame| frame.deltas.clone()).collect();
            self.window.merge(&all, NextOffset(self.through as i64), &mut self.cells).unwrap();
        } else {
            for (n, frame) in frames.iter().enumerate() {
                let from = NextOffset((self.through + n) as i64);
                self.window.merge(&frame.deltas, from, &mut self.cells).unwrap();
            }
        }
        let due = Due {
            steady_ms: self.steady_ms,
            through: NextOffset(through as i64),
            complete_through: self.clock(through),
            budget_rows: step.budget,
        };
        let mut rows = Rows::default();
        self.window.take_due(&due, &mut self.cells, &mut rows).unwrap();
        match step.end {
            End::Commit => {
                self.emitted_through = self.window.emitted_through(due.through).0 as usize;
                self.cursors = self.window.cursors();
                self.window.committed();
                self.cells.commit();
                self.through = through;
                self.publish(rows.0);
            }
            End::Abort => {
                self.window.aborted();
                self.cells.abort();
            }
            End::Crash => self.restart(),
        }
    }

    fn restart(&mut self) {
        self.cells.abort();
        self.window = Window::new(&plan(windows()));
        self.window.restore(&self.cursors);
        self.said_at.clear();
        let mut cells = Vec::new();
        for n in self.emitted_through..self.through {
            cells.clear();
            for delta in &self.log[n].deltas {
                self.window.cells_of(delta.counter, delta.slice_start, &mut cells);
            }
            self.window.mark_due(&cells, NextOffset(n as i64), &self.cells);
        }
    }

    /// Takes the rows of a commit, and checks what must hold for each commit.
    fn publish(&mut self, rows: Vec<Said>) {
        let mut keys = BTreeSet::new();
        for row in rows {
            assert!(keys.insert(row.cell), "two rows of a key in one commit: {row:?}");
            self.check_row(&row);
            self.said_at.insert(row.cell, self.steady_ms);
            self.published.entry(row.cell).or_default().push(row);
        }
        // What was changed below emitted_through has been published (tables with updates, totals).
        for frame in &self.log[..self.emitted_through] {
            let mut changed = Vec::new();
            frame.deltas.iter().for_each(|d| self.window.cells_of(d.counter, d.slice_start, &mut changed));
            for cell in changed.into_iter().filter(|cell| cell.table != Table(2)) {
                let last = self.published.get(&cell).and_then(|rows| rows.last());
                let offset = last.map_or(0, |row| row.revision / 2);
                assert!(offset > 0, "{cell:?} was never published");
                let later = &self.log[offset as usize..self.emitted_through.max(offset as usize)];
                let mut missed = later.iter().flat_map(|frame| &frame.deltas);
                let stale = missed.any(|d| {
                    let mut cells = Vec::new();
                    self.window.cells_of(d.counter, d.slice_start, &mut cells);
                    cells.contains(&cell)
                });
                assert!(!stale, "{cell:?} is stale below emitted_through");
            }
        }
    }

    fn check_row(&self, row: &Said) {
        let cell = self.cells.committed[&row.cell];
        assert_eq!((row.sum, row.events), (cell.sum.0, cell.events), "a row tells its cell: {row:?}");
        let previous = self.published.get(&row.cell).and_then(|rows| rows.last());
        if let Some(previous) = previous {
            // Equal only where a restart says an unchanged row again.
            let again =
                previous.revision == row.revision && (previous.sum, previous.state) == (row.sum, row.state);
            assert!(row.revision > previous.revision || again, "{previous:?} then {row:?}");
        }
        if row.state.is_some() {
            let plan = &windows()[usize::from(row.cell.table.0)];
            let due = plan.size.end_of(row.cell.start).plus(plan.grace_ms);
            let said_final = previous.is_some_and(|row| row.state != Some(RowState::Update));
            match row.state {
                Some(RowState::Update) => {
                    assert!(!said_final, "an update after the final: {row:?}");
                    let Emit::EveryMs(pace) = plan.emit else { panic!("an update of a final-only table") };
                    let last = self.said_at.get(&row.cell);
                    assert!(
                        last.is_none_or(|last| self.steady_ms - last >= pace as u64),
                        "too early: {row:?}"
                    );
                }
                Some(RowState::Final) => assert!(!said_final, "final said twice: {row:?}"),
                _ => assert!(said_final, "a correction of nothing: {row:?}"),
            }
            if row.state != Some(RowState::Update) {
                assert!(row.complete_through.is_some_and(|clock| clock >= due), "final too early: {row:?}");
            }
        }
    }

    /// Reads the log to its end, lets all windows end, and says everything.
    fn finish(&mut self) {
        self.log.push(Frame { deltas: Vec::new(), clock_step: 10_000 });
        let step = Step { frames: 3, one_merge: false, budget: 4, steady_step: 400, end: End::Commit };
        let mut steps = 0;
        while self.through < self.log.len()
            || self.window.pending_len() > 0
            || self.window.has_due(self.steady_ms, self.clock(self.through), &mut self.cells).unwrap()
        {
            self.step(step);
            steps += 1;
            assert!(steps < 1_000, "it never comes to rest");
        }
    }
}

/// What the cells must hold: each delta once in every table (LG-2).
fn recount(log: &[Frame]) -> BTreeMap<CellId, (i128, u64)> {
    let window = Window::new(&plan(windows()));
    let mut right: BTreeMap<CellId, (i128, u64)> = BTreeMap::new();
    for delta in log.iter().flat_map(|frame| &frame.deltas) {
        let mut cells = Vec::new();
        window.cells_of(delta.counter, delta.slice_start, &mut cells);
        for cell in cells {
            let value = right.entry(cell).or_default();
            *value = (value.0 + delta.sum.0, value.1 + delta.events);
        }
    }
    right
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn any_transactions_say_the_same_in_the_end(log in frames(), steps in steps()) {
        let right = recount(&log);
        let mut world = World::new(log);
        steps.into_iter().for_each(|step| world.step(step));
        world.finish();
        let cells: BTreeMap<CellId, (i128, u64)> =
            world.cells.committed.iter().map(|(id, cell)| (*id, (cell.sum.0, cell.events))).collect();
        prop_assert_eq!(&cells, &right);
        let last: BTreeMap<CellId, (i128, u64)> = world
            .published
            .iter()
            .map(|(id, rows)| (*id, rows.last().map(|row| (row.sum, row.events)).unwrap()))
            .collect();
        prop_assert_eq!(&last, &right);
        for (cell, rows) in &world.published {
            let finals = rows.iter().filter(|row| row.state == Some(RowState::Final)).count();
            prop_assert_eq!(finals, usize::from(cell.table != Table::TOTALS), "{:?}", rows);
        }
        prop_assert_eq!(world.emitted_through, world.through);
    }
}
