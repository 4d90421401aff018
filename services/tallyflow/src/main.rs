//! The binary: commands, and the one place where everything is wired.
//!
//! ```text
//!  args ──► context (topology.toml → Deployment, Kafka) ──► commands::*, run ──► exit code
//! ```
//!
//! Data goes to standard output through `output`, talk to standard error. What an error costs is decided in `exit`.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]

mod args;
mod chain;
mod commands;
mod context;
mod exit;
mod output;
mod patience;
mod run;
mod topics;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use tallyflow_telemetry::logs;
use tracing::Level;

use args::{Cli, Command};
use context::Context;

/// Memory of the state comes and goes in large pieces: jemalloc gives it back and can be asked.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    let cli = Cli::parse();
    obey(&cli).unwrap_or_else(|error| exit::tell(&error))
}

fn obey(cli: &Cli) -> Result<ExitCode> {
    start_logs(&cli.command)?;
    let file = match &cli.command {
        Command::Run(args) => args.file.as_deref(),
        _ => None,
    };
    let context = Context::load(&cli.global, file)?;
    match &cli.command {
        Command::Run(args) => run::run(&context, args),
        Command::Validate => commands::validate::run(&context),
        Command::Graph(args) => commands::graph::run(&context, args),
        Command::Topics(args) => commands::topics::run(&context, args),
        Command::Send(args) => commands::send::run(&context, args),
        Command::Windows(args) => commands::windows::run(&context, args),
        Command::Counts(args) => commands::counts::run(&context, args),
        Command::Audit(args) => commands::audit::run(&context, args),
        Command::Healthcheck(args) => commands::healthcheck::run(&context, args),
    }
}

/// A worker tells its life. A command says what went wrong itself, in one line; only one that goes on through an
/// outage lets its clients speak of it.
fn start_logs(command: &Command) -> Result<()> {
    let (json, level) = match command {
        Command::Run(args) => (args.log_json, Level::INFO),
        command if command.follows() => (false, Level::WARN),
        _ => (false, Level::ERROR),
    };
    Ok(logs::init(json, level)?)
}
