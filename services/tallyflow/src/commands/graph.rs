//! `tallyflow graph`: the pipeline as a picture. Kafka is not asked.

use std::process::ExitCode;

use anyhow::Result;
use tallyflow_topology::graph;

use crate::args::{GraphArgs, GraphFormat};
use crate::context::Context;
use crate::output::Output;

/// Draws the pipeline.
///
/// # Errors
/// Where standard output cannot be written.
pub fn run(context: &Context, args: &GraphArgs) -> Result<ExitCode> {
    let picture = match args.format {
        GraphFormat::Ascii => graph::ascii(&context.deployment),
        GraphFormat::Mermaid => graph::mermaid(&context.deployment),
    };
    let mut output = Output::new();
    output.text(&picture)?;
    output.flush()?;
    Ok(ExitCode::SUCCESS)
}
