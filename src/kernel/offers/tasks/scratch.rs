//! The memory of a handler that proposes rooms, from the proposal to its commit; used again.

use super::planned_task::PlannedTask;
use super::room::Room;
use crate::kernel::offers::commit::Plan;
use crate::kernel::offers::eligibility::TaskSupplies;
use crate::kernel::offers::queues::QueueDraft;
use crate::kernel::offers::reused_rows::ReusedRows;
use crate::kernel::reason::{Decline, Reason};

/// No pick was rejected there before one was planned.
pub(super) const NONE_REJECTED: u32 = u32::MAX;
/// The room is gone.
pub(super) const GONE: u32 = u32::MAX;

/// A proposal.
#[derive(Debug)]
pub(crate) struct TaskScratch {
    pub(super) rooms: Vec<Room>,
    /// The declines of all offers that are in no room.
    pub(super) declines: Vec<Decline>,
    /// Whether all offers are declined for one reason.
    pub(super) alike: bool,
    pub(super) at_cap: bool,
    /// The number of the policy that was followed.
    pub(super) policy: u64,
    /// The number of revives before it was loaded.
    pub(super) revives: u64,
    /// Whether the offers were looked at again since the proposal.
    pub(super) again: bool,
    /// If so: for each room as it was proposed, its position now, or [`GONE`].
    pub(super) moved: Vec<u32>,
    /// If so: for each room as it was proposed, the first of its offers.
    pub(super) offer_of: Vec<u32>,
    pub(super) plan: Plan<PlannedTask>,
    /// For each row of what was placed, what it is taken from.
    pub(super) supplies: ReusedRows<TaskSupplies>,
    /// What the picks leave of the rooms.
    pub(super) left: Vec<Room>,
    /// The picks that were not planned, with the reasons.
    pub(super) rejected: Vec<(u32, Reason)>,
    /// For each room: the first of its picks in `rejected`, or [`NONE_REJECTED`].
    pub(super) rejected_in: Vec<u32>,
    /// The cap that cut off picks, if one did.
    pub(super) cut: Option<Reason>,
    /// The rooms before the picks of the present gang.
    pub(super) undo: Vec<(u32, Room)>,
    /// What the picks leave of the queues.
    pub(super) queues: QueueDraft,
    /// If the framework has been told that a queue has less room than its maximum: the [number of
    /// claims](crate::kernel::state::claim_returns) that had been given back before.
    pub(super) told_less: Option<u64>,
}

impl TaskScratch {
    /// The memory of a handler that prefers this stack of free cells.
    pub(crate) fn new(stack: u32) -> TaskScratch {
        TaskScratch {
            rooms: Vec::new(),
            declines: Vec::new(),
            alike: false,
            at_cap: false,
            policy: 0,
            revives: 0,
            again: false,
            moved: Vec::new(),
            offer_of: Vec::new(),
            plan: Plan::new(stack),
            supplies: ReusedRows::default(),
            left: Vec::new(),
            rejected: Vec::new(),
            rejected_in: Vec::new(),
            cut: None,
            undo: Vec::new(),
            queues: QueueDraft::default(),
            told_less: None,
        }
    }
}
