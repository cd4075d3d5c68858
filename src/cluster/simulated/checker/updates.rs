//! Checks status updates and their acknowledgements: invariant 13.

use super::rule::RuleViolation;
use crate::engine::Notice;
use crate::engine::cluster_manager::Update;
use crate::kernel::{Kernel, Phase};
use crate::status::Meaning;
use crate::time::Timestamp;

/// Up to this number of executors, each acknowledgement is compared with a snapshot of the kernel.
const COMPARED_EXECUTORS_MAX: u32 = 500;

/// The update that the controller processes.
#[derive(Default)]
pub(super) struct UpdateChecker {
    current: Option<CurrentUpdate>,
}

/// An update, and what the controller did with it.
struct CurrentUpdate {
    executor: String,
    uuid: Option<Vec<u8>>,
    applied: u32,
    acknowledged: u32,
}

impl UpdateChecker {
    pub(super) fn arrives(&mut self, update: &Update) {
        self.current = Some(CurrentUpdate {
            executor: update.executor.clone(),
            uuid: update.uuid.clone(),
            applied: 0,
            acknowledged: 0,
        });
    }

    pub(super) fn noticed(&mut self, notice: &Notice) {
        if let (Notice::Updated { executor, .. }, Some(current)) = (notice, &mut self.current) {
            current.applied += u32::from(*executor == current.executor);
        }
    }

    pub(super) fn acknowledged(
        &mut self,
        update: &Update,
        uuid: &[u8],
        kernel: &Kernel,
        now: Timestamp,
    ) -> Result<(), RuleViolation> {
        check_applied(update, kernel, now)?;
        match &mut self.current {
            Some(current) if current.uuid.as_deref() == Some(uuid) => {
                current.acknowledged += 1;
                Ok(())
            }
            _ => Err((
                13,
                format!("an update of {} that did not come is acknowledged", update.executor),
            )),
        }
    }

    pub(super) fn end(&mut self) -> Result<(), RuleViolation> {
        let Some(current) = self.current.take() else { return Ok(()) };
        let expected = u32::from(current.uuid.is_some());
        if (current.applied, current.acknowledged) == (1, expected) {
            return Ok(());
        }
        let CurrentUpdate { executor, applied, acknowledged, .. } = current;
        let what = format!(
            "an update of {executor} was applied {applied} times and acknowledged {acknowledged} times"
        );
        Err((13, what))
    }
}

/// Checks that an acknowledged update has had its effect.
fn check_applied(update: &Update, kernel: &Kernel, now: Timestamp) -> Result<(), RuleViolation> {
    if kernel.totals().executors > COMPARED_EXECUTORS_MAX {
        return Ok(());
    }
    let Some(id) = kernel.executor_id(&update.executor) else { return Ok(()) };
    let snapshot = kernel.snapshot(now);
    let Some(view) = snapshot.executors.iter().find(|view| view.id == id) else { return Ok(()) };
    let possible = match update.state.meaning(update.reason) {
        Meaning::Ended(_) => false,
        Meaning::Running => matches!(view.phase, Phase::Running | Phase::GivenUp),
        Meaning::Unreachable => matches!(view.phase, Phase::Unreachable | Phase::GivenUp),
        Meaning::Launching => view.phase != Phase::Unreachable,
    };
    if possible {
        return Ok(());
    }
    let (executor, state, phase) = (&update.executor, update.state, view.phase);
    Err((13, format!("{state:?} of {executor} is acknowledged, which is {phase:?} for the kernel")))
}
