//! What the wiring gives an intake stage.

use std::sync::Arc;

use tallyflow_core::codec::{LedgerDecoder, RowEncoder};
use tallyflow_core::effects::IntakeEffects;
use tallyflow_core::plan::{Names, Plan};
use tallyflow_core::processor::Processor;
use tallyflow_core::record::RecordView;

/// What intake's processor must be: records of the input at a position of the plan in, effects out.
pub trait IntakeProcessor:
    for<'a> Processor<
        Batch<'a> = (&'a [RecordView<'a>], usize),
        View<'a> = (),
        Effects<'a> = &'a mut (dyn IntakeEffects + 'a),
    >
{
}

impl<P> IntakeProcessor for P where
    P: for<'a> Processor<
            Batch<'a> = (&'a [RecordView<'a>], usize),
            View<'a> = (),
            Effects<'a> = &'a mut (dyn IntakeEffects + 'a),
        >
{
}

/// Partition counts of the topics that intake writes to by number.
#[derive(Clone, Copy, Debug)]
pub struct IntakePartitions {
    /// Of `ledger`.
    pub ledger: u32,
    /// Of `dlq`.
    pub dlq: u32,
    /// Of `late`.
    pub late: u32,
}

/// What the wiring gives the stage.
pub struct IntakeParts<P> {
    /// The compiled plan.
    pub plan: Arc<Plan>,
    /// The app's topics.
    pub names: Names,
    /// Their partitions.
    pub partitions: IntakePartitions,
    /// The logic.
    pub processor: P,
    /// Writes ledger rows.
    pub encoder: Box<dyn RowEncoder>,
    /// Reads them back.
    pub decoder: Box<dyn LedgerDecoder>,
    /// Names this worker in barrier rows.
    pub transactional_id: String,
    /// `--accept-loss`: go on where offsets are lost, and book them.
    pub accept_loss: bool,
}
