//! The command line: what is written there and nothing else.
//!
//! Must not know: what a command does.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use tallyflow_schemas::rfc3339;
use tallyflow_topology::units;

const EXIT_CODES: &str = "\
Exit codes: 0 done, 1 failed, 2 wrong usage, 3 differences found, 78 bad or unreadable topology.
Logs of Kafka's client: TALLYFLOW_LOG=debug.";

/// Exact event counting on Apache Kafka.
#[derive(Parser, Debug)]
#[command(name = "tallyflow", version, after_help = EXIT_CODES)]
pub struct Cli {
    /// What all commands take.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What all commands take.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "All commands")]
pub struct Global {
    /// The pipeline's file [default: topology.toml]
    #[arg(long, global = true, value_name = "FILE")]
    pub topology: Option<PathBuf>,
    /// Kafka's addresses, in place of those in the file
    #[arg(long, global = true, value_name = "ADDRESSES")]
    pub brokers: Option<String>,
    /// How long to wait for Kafka before giving up
    #[arg(long, global = true, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    pub timeout: Duration,
}

/// What to do.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Count: one process; more processes share the work
    Run(RunArgs),
    /// Check the topology without Kafka
    Validate,
    /// Draw the pipeline
    Graph(GraphArgs),
    /// Show which topics are needed, and what is wrong with those that exist
    Topics(TopicsArgs),
    /// Send events, one JSON document a line
    Send(SendArgs),
    /// Show the latest count of each window
    Windows(WindowsArgs),
    /// Show the latest total of each counter
    Counts(CountsArgs),
    /// Recount the raw topics and compare: 0 equal, 3 differences, 1 not settled
    Audit(AuditArgs),
    /// Ask the processes of this state directory: 0 ready, 1 not
    Healthcheck(HealthcheckArgs),
}

impl Command {
    /// Whether it goes on until it is ended.
    pub const fn follows(&self) -> bool {
        match self {
            Self::Windows(args) => args.show.follow,
            Self::Counts(args) => args.show.follow,
            _ => false,
        }
    }
}

/// Arguments of `run`.
#[derive(Args, Debug)]
pub struct RunArgs {
    /// The pipeline's file, in place of --topology
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Run only these stages; may be repeated [default: all]
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = ["intake", "count"])]
    pub stage: Vec<String>,
    /// The slot of the state directory [default: the lowest free one]
    #[arg(long, value_name = "N")]
    pub slot: Option<u32>,
    /// Where to serve HTTP, in place of the file's
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<SocketAddr>,
    /// Go on although records were deleted before they were read; the loss is written in the ledger
    #[arg(long, action = ArgAction::SetTrue)]
    pub accept_loss: bool,
    /// Write the log as JSON lines
    #[arg(long, action = ArgAction::SetTrue)]
    pub log_json: bool,
}

/// Arguments of `graph`.
#[derive(Args, Debug)]
pub struct GraphArgs {
    /// For a terminal or for Mermaid
    #[arg(long, value_enum, default_value_t = GraphFormat::Ascii)]
    pub format: GraphFormat,
}

/// How the pipeline is drawn.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum GraphFormat {
    /// For a terminal.
    Ascii,
    /// A Mermaid flowchart.
    Mermaid,
}

/// Arguments of `topics`.
#[derive(Args, Debug)]
pub struct TopicsArgs {
    /// Create the missing ones; without it nothing is changed
    #[arg(long, action = ArgAction::SetTrue)]
    pub execute: bool,
}

/// Arguments of `send`.
#[derive(Args, Debug)]
pub struct SendArgs {
    /// The input's name in the topology; needed where there are several
    #[arg(long, value_name = "NAME")]
    pub input: Option<String>,
    /// A file with one event a line; `-` is standard input
    #[arg(value_name = "FILE", default_value = "-")]
    pub file: PathBuf,
}

/// How rows are shown.
#[derive(Args, Debug)]
pub struct ShowArgs {
    /// Only this namespace
    #[arg(long, value_name = "NAME")]
    pub namespace: Option<String>,
    /// Only this counter
    #[arg(long, value_name = "NAME")]
    pub counter: Option<String>,
    /// The rows as they are, one JSON document a line
    #[arg(long, action = ArgAction::SetTrue)]
    pub json: bool,
    /// Go on with rows as they come
    #[arg(long, action = ArgAction::SetTrue)]
    pub follow: bool,
}

/// Arguments of `windows`.
#[derive(Args, Debug)]
pub struct WindowsArgs {
    /// What `counts` takes as well.
    #[command(flatten)]
    pub show: ShowArgs,
    /// Only this window table
    #[arg(long, value_name = "NAME")]
    pub window: Option<String>,
    /// Only windows that end after this: RFC 3339, epoch milliseconds, or `2h` for two hours ago
    #[arg(long, value_name = "TIME", value_parser = when)]
    pub since: Option<When>,
    /// Only windows that start before this
    #[arg(long, value_name = "TIME", value_parser = when)]
    pub until: Option<When>,
    /// Only rows whose latest state is this
    #[arg(long, value_name = "STATE", value_parser = ["update", "final", "correction"])]
    pub state: Option<String>,
}

/// Arguments of `counts`.
#[derive(Args, Debug)]
pub struct CountsArgs {
    /// What `windows` takes as well.
    #[command(flatten)]
    pub show: ShowArgs,
}

/// Arguments of `audit`.
#[derive(Args, Debug)]
pub struct AuditArgs {
    /// The report as one JSON document
    #[arg(long, action = ArgAction::SetTrue)]
    pub json: bool,
}

/// Arguments of `healthcheck`.
#[derive(Args, Debug)]
pub struct HealthcheckArgs {
    /// Ask again until it is so, for at most --timeout
    #[arg(long, action = ArgAction::SetTrue)]
    pub wait: bool,
    /// Also ask whether everything that was sent is counted and published
    #[arg(long, action = ArgAction::SetTrue)]
    pub settled: bool,
}

/// An instant as it is written on the command line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    /// Milliseconds since the epoch.
    At(i64),
    /// Milliseconds before now.
    Ago(i64),
}

impl When {
    /// Milliseconds since the epoch, by this clock.
    pub const fn at_ms(self, now_ms: i64) -> i64 {
        match self {
            Self::At(ms) => ms,
            Self::Ago(ms) => now_ms.saturating_sub(ms),
        }
    }
}

fn when(text: &str) -> Result<When, String> {
    let at = rfc3339::parse_ms(text).or_else(|| text.parse().ok());
    let ago = || units::duration_ms(text).ok().map(When::Ago);
    at.map(When::At)
        .or_else(ago)
        .ok_or_else(|| "write 2026-01-31T12:00:00Z, epoch milliseconds, or 2h for two hours ago".to_owned())
}

fn duration(text: &str) -> Result<Duration, String> {
    match units::duration_ms(text).map(u64::try_from) {
        Ok(Ok(ms)) if ms > 0 => Ok(Duration::from_millis(ms)),
        Ok(_) => Err("must be longer than nothing".to_owned()),
        Err(why) => Err(format!("the duration {why}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn parse(line: &str) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(line.split_whitespace())
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn run_takes_stages_in_every_way() {
        for line in [
            "tallyflow run --stage intake --stage count shop.toml --slot 2",
            "tallyflow run shop.toml --stage intake,count --slot=2 --timeout 5s",
        ] {
            let Command::Run(args) = parse(line).unwrap().command else { panic!("{line}") };
            assert_eq!(args.stage, ["intake", "count"], "{line}");
            assert_eq!(args.slot, Some(2));
            assert_eq!(args.file, Some(PathBuf::from("shop.toml")));
        }
        assert!(parse("tallyflow run --stage sink").is_err());
    }

    #[test]
    fn what_all_take_may_stand_on_both_sides() {
        for line in [
            "tallyflow --topology a.toml --brokers b:1 --timeout 1m graph",
            "tallyflow graph --topology a.toml --brokers b:1 --timeout 1m",
        ] {
            let global = parse(line).unwrap().global;
            assert_eq!(global.topology, Some(PathBuf::from("a.toml")));
            assert_eq!(global.brokers.as_deref(), Some("b:1"));
            assert_eq!(global.timeout, Duration::from_secs(60));
        }
        let global = parse("tallyflow validate").unwrap().global;
        assert_eq!((global.topology, global.timeout.as_secs()), (None, 30));
        for wrong in ["30", "0s", "soon"] {
            assert!(parse(&format!("tallyflow validate --timeout {wrong}")).is_err());
        }
    }

    #[test]
    fn instants_are_written_in_three_ways() {
        assert_eq!(when("1970-01-01T00:00:01Z"), Ok(When::At(1_000)));
        assert_eq!(when("1767225600000"), Ok(When::At(1_767_225_600_000)));
        assert_eq!(when("2h").unwrap().at_ms(7_200_001), 1);
        for wrong in ["yesterday", "2026-01-01", ""] {
            assert!(when(wrong).is_err(), "{wrong}");
        }
    }
}
