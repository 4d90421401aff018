//! `tallyflow run`: one process, its slot, its worker threads, its HTTP, its end.
//!
//! ```text
//!  slot ─► http ─► topics (waits for the cluster) ─► workers ─► SIGTERM or a halt ─► drain ─► exit
//! ```
//!
//! A halted worker ends the process with exit code 1 and its reason: the other workers drain first. A second
//! SIGTERM ends it at once with 143.

mod worker;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context as _;
use tallyflow_rocks::{RocksStores, Slot};
use tallyflow_runtime::status::StageName;
use tallyflow_telemetry::{Board, HttpServer};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

use self::worker::WorkerSpec;
use crate::args::RunArgs;
use crate::context::Context;
use crate::topics;

/// A drain must be over by then (contract §6).
const DRAIN: Duration = Duration::from_secs(10);
/// Longest pause between two looks at a cluster that does not answer.
const BACKOFF_LIMIT: Duration = Duration::from_secs(5);

/// Runs the stages until told to stop.
///
/// # Errors
///
/// Where the process could not start: slot taken, foreign state, address in use, wrong topics.
pub fn run(context: &Context, args: &RunArgs) -> anyhow::Result<ExitCode> {
    let plan = &context.deployment.plan;
    let stages = chosen(&args.stage)?;
    let slot = Slot::claim(&plan.engine.state_dir, args.slot)?;
    let stores = RocksStores::open(&slot.dir, &plan.app, plan.engine.memory_bytes)?;
    let board = Board::new(&plan.app, slot.number, env!("CARGO_PKG_VERSION"))?;
    let listen = args.listen.unwrap_or(context.deployment.http_listen);
    let http = HttpServer::start(listen, board.clone())?;
    let address = slot.dir.join("http");
    std::fs::write(&address, http.address().to_string())
        .with_context(|| format!("cannot write {}", address.display()))?;
    tracing::info!(app = plan.app, slot = slot.number, http = %http.address(), "started");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let process = Process { context, slot: &slot, stores, board, stages, accept_loss: args.accept_loss };
    let code = runtime.block_on(process.live());
    // Clients that do not close in time must not keep the process.
    runtime.shutdown_background();
    let _ = std::fs::remove_file(&address);
    http.stop();
    code
}

fn chosen(names: &[String]) -> anyhow::Result<Vec<StageName>> {
    let all = [StageName::Intake, StageName::Count];
    if names.is_empty() {
        return Ok(all.to_vec());
    }
    names
        .iter()
        .map(|name| {
            all.into_iter()
                .find(|stage| stage.name() == name)
                .with_context(|| format!("there is no stage {name}; stages are intake and count"))
        })
        .collect()
}

struct Process<'a> {
    context: &'a Context,
    slot: &'a Slot,
    stores: RocksStores,
    board: Board,
    stages: Vec<StageName>,
    accept_loss: bool,
}

impl Process<'_> {
    async fn live(self) -> anyhow::Result<ExitCode> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        // Readers of /ready learn that these are to come.
        let observers: Vec<_> =
            self.numbered().map(|(stage, n)| (stage, n, self.board.observer(stage, n))).collect();
        let Some(partitions) = self.wait_for_topics(&mut terminate, &mut interrupt).await? else {
            return Ok(ExitCode::SUCCESS);
        };
        let stop = Arc::new(AtomicBool::new(false));
        let deployment = Arc::new(self.context.deployment.clone());
        let (ended, mut ends) = mpsc::unbounded_channel();
        let mut threads: Vec<JoinHandle<()>> = Vec::new();
        for (stage, number, observer) in observers {
            let spec = WorkerSpec {
                deployment: Arc::clone(&deployment),
                kafka: self.context.kafka.clone(),
                stage,
                number,
                partitions,
                stores: self.stores.clone(),
                instance: self.slot.instance.clone(),
                accept_loss: self.accept_loss,
                observer: Box::new(observer),
                stop: Arc::clone(&stop),
            };
            let ended = ended.clone();
            let thread = std::thread::Builder::new().name(format!("{}-{number}", stage.name()));
            threads.push(thread.spawn(move || {
                let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| worker::work(spec)));
                let outcome =
                    outcome.unwrap_or_else(|_| Err("the worker panicked; please report it".to_owned()));
                let _ = ended.send((stage, number, outcome));
            })?);
        }
        drop(ended);
        let halted = tokio::select! {
            _ = terminate.recv() => None,
            _ = interrupt.recv() => None,
            end = ends.recv() => end,
        };
        stop.store(true, Ordering::Relaxed);
        let failed = say(halted);
        let drained = async {
            let mut failed = false;
            while let Some(end) = ends.recv().await {
                failed |= say(Some(end));
            }
            failed
        };
        tokio::select! {
            also_failed = drained => {
                threads.into_iter().for_each(|thread| drop(thread.join()));
                Ok(if failed || also_failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
            }
            _ = terminate.recv() => Ok(ExitCode::from(143)),
            _ = interrupt.recv() => Ok(ExitCode::from(143)),
            () = tokio::time::sleep(DRAIN) => {
                tracing::error!("the workers did not drain within {} s; what was not committed is read again", DRAIN.as_secs());
                Ok(ExitCode::FAILURE)
            }
        }
    }

    fn numbered(&self) -> impl Iterator<Item = (StageName, u32)> {
        let plan = &self.context.deployment.plan;
        let (intake, count) = (plan.intake_workers, plan.count_workers);
        self.stages.iter().flat_map(move |stage| {
            let workers = match stage {
                StageName::Intake => intake,
                StageName::Count => count,
            };
            (0..workers).map(|number| (*stage, number))
        })
    }

    /// Waits with backoff while the cluster does not answer; wrong topics end the process. `None`: told to stop.
    async fn wait_for_topics(
        &self,
        terminate: &mut Signal,
        interrupt: &mut Signal,
    ) -> anyhow::Result<Option<topics::Partitions>> {
        let mut pause = Duration::from_millis(250);
        loop {
            let context = self.context.clone();
            let question = tokio::task::spawn_blocking(move || topics::ensure(&context));
            let answer = tokio::select! {
                answer = question => answer?,
                _ = terminate.recv() => return Ok(None),
                _ = interrupt.recv() => return Ok(None),
            };
            match answer {
                Ok(partitions) => return Ok(Some(partitions)),
                Err(topics::EnsureError::NotThere(what)) => {
                    tracing::warn!("{what}; trying again in {} ms", pause.as_millis());
                }
                Err(topics::EnsureError::Wrong(what)) => anyhow::bail!(what),
            }
            tokio::select! {
                () = tokio::time::sleep(pause) => pause = (pause * 2).min(BACKOFF_LIMIT),
                _ = terminate.recv() => return Ok(None),
                _ = interrupt.recv() => return Ok(None),
            }
        }
    }
}

/// Logs how a worker ended; whether it failed.
fn say(end: Option<(StageName, u32, Result<(), String>)>) -> bool {
    let Some((stage, number, Err(reason))) = end else {
        return false;
    };
    tracing::error!(stage = stage.name(), worker = number, "halted: {reason}");
    true
}
