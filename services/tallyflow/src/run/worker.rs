//! One worker thread: builds the stage with everything it needs and steps it until it is told to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use tallyflow_core::codec::EventDecoder;
use tallyflow_core::plan::{Format, Plan};
use tallyflow_core::time::TimestampMs;
use tallyflow_intake::Intake;
use tallyflow_kafka::Kafka;
use tallyflow_rocks::RocksStores;
use tallyflow_runtime::count::{CountPartitions, CountParts, CountStage};
use tallyflow_runtime::intake::{IntakePartitions, IntakeParts, IntakeStage};
use tallyflow_runtime::ports::{Now, PortError};
use tallyflow_runtime::stage::Stage;
use tallyflow_runtime::status::{Observer, StageName};
use tallyflow_runtime::worker::{Worker, WorkerPorts};
use tallyflow_schemas::{JsonEvents, JsonRows};
use tallyflow_topology::Deployment;

use crate::chain::Chain;
use crate::topics::Partitions;

/// Everything a worker thread takes with it.
pub struct WorkerSpec {
    /// The compiled topology.
    pub deployment: Arc<Deployment>,
    /// The cluster.
    pub kafka: Kafka,
    /// Which stage.
    pub stage: StageName,
    /// Its number within the stage.
    pub number: u32,
    /// Partition counts of the topics written by number.
    pub partitions: Partitions,
    /// Local state of the process.
    pub stores: RocksStores,
    /// The slot's instance id.
    pub instance: String,
    /// `--accept-loss`.
    pub accept_loss: bool,
    /// Where its status goes.
    pub observer: Box<dyn Observer>,
    /// Set when the process ends.
    pub stop: Arc<AtomicBool>,
}

/// Works until told to stop.
///
/// # Errors
///
/// The reason for people, where the worker halted.
pub fn work(spec: WorkerSpec) -> Result<(), String> {
    let stop = Arc::clone(&spec.stop);
    let started = Instant::now();
    let mut worker = build(spec).map_err(|error| error.to_string())?;
    loop {
        let now = now(started);
        if stop.load(Ordering::Relaxed) {
            worker.close(now);
            return Ok(());
        }
        if let Err(error) = worker.step(now) {
            worker.halted(&error.message, now);
            worker.close(now);
            return Err(error.message);
        }
    }
}

fn now(started: Instant) -> Now {
    let wall = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis());
    let steady_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    Now { wall: TimestampMs(i64::try_from(wall).unwrap_or(i64::MAX)), steady_ms }
}

fn build(spec: WorkerSpec) -> Result<Worker, PortError> {
    let plan = Arc::new(spec.deployment.plan.clone());
    let names = spec.deployment.names.clone();
    let transactional_id = format!("{}.{}.{}.{}", plan.app, spec.stage.name(), spec.instance, spec.number);
    let (group, topics): (_, Vec<String>) = match spec.stage {
        StageName::Intake => {
            (&names.intake_group, plan.inputs.iter().map(|input| input.topic.to_string()).collect())
        }
        StageName::Count => (&names.count_group, vec![names.entries.to_string()]),
    };
    let ports = WorkerPorts {
        log: Box::new(spec.kafka.stream(group, &topics, &transactional_id)?),
        reader: Box::new(spec.kafka.reader()),
        admin: Box::new(spec.kafka.admin()?),
        observer: spec.observer,
    };
    let Partitions { ledger, dlq, late } = spec.partitions;
    let rows = JsonRows::new(Arc::clone(&plan.dimensions));
    let stage: Box<dyn Stage> = match spec.stage {
        StageName::Intake => Box::new(IntakeStage::new(IntakeParts {
            processor: Intake::new(&plan, decoders(&plan)),
            partitions: IntakePartitions { ledger, dlq, late },
            encoder: Box::new(rows.clone()),
            decoder: Box::new(rows),
            names,
            transactional_id,
            accept_loss: spec.accept_loss,
            plan,
        })),
        StageName::Count => {
            let chain_plan = Arc::clone(&plan);
            Box::new(CountStage::new(CountParts {
                chain: Box::new(move || Box::new(Chain::new(&chain_plan))),
                partitions: CountPartitions { ledger, dlq, late },
                encoder: Box::new(rows),
                stores: Box::new(spec.stores),
                names,
                accept_loss: spec.accept_loss,
                plan,
            }))
        }
    };
    Ok(Worker::new(ports, stage, spec.number))
}

fn decoders(plan: &Plan) -> Vec<Box<dyn EventDecoder>> {
    let decoder = |format: Format| -> Box<dyn EventDecoder> {
        match format {
            Format::Json => Box::new(JsonEvents::new(plan)),
        }
    };
    plan.inputs.iter().map(|input| decoder(input.format)).collect()
}
