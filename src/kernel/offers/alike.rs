//! [`AlikeAnswer`]: how a handler declined its last batch, if it declined all of it at a cap. While settings and
//! admission word stay as they are, the next batch gets the same answer without being asked again.
//!
//! It is the handler's own memory: nothing shared is written, and all that the answer depends on is compared.

use std::time::Duration;

use crate::kernel::Core;
use crate::kernel::reason::{Decline, Reason, ReasonKind};
use crate::kernel::state::admission::AdmissionState;
use crate::kernel::state::policy::Policy;

/// The answer to the last batch, and what it depends on.
#[derive(Debug)]
pub(in crate::kernel) struct AlikeAnswer {
    /// The number of the policy; [`NONE`] if the last batch had another kind of answer.
    policy: u64,
    admission: AdmissionState,
    reason: Reason,
    kind: ReasonKind,
    refuse: Duration,
}

/// The number of no policy.
const NONE: u64 = u64::MAX;

impl AlikeAnswer {
    pub(super) fn none() -> AlikeAnswer {
        let (reason, refuse) = (Reason::Stopping, Duration::ZERO);
        let admission = AdmissionState::default();
        AlikeAnswer { policy: NONE, admission, reason, kind: reason.kind(), refuse }
    }

    /// Called with each batch that is answered otherwise.
    #[inline]
    pub(in crate::kernel) fn forget(&mut self) {
        self.policy = NONE;
    }

    /// Keeps the answer to a batch all of which was declined like `first`, if it holds until policy or admission word
    /// change: a cap of GPUs depends on another word, and with a wait for hosts each batch pauses that.
    pub(super) fn keep(
        &mut self,
        policy: &Policy,
        admission: AdmissionState,
        first: Option<&Decline>,
    ) {
        self.forget();
        if let Some(&Decline { reason, refuse, .. }) = first
            && matches!(reason, Reason::ExecutorLimit { .. } | Reason::CoreCap { .. })
            && policy.config.locality_wait.is_none()
        {
            (self.policy, self.admission) = (policy.number, admission);
            (self.reason, self.kind, self.refuse) = (reason, reason.kind(), refuse);
        }
    }

    /// Whether a batch under this policy and this word is answered like the last one.
    #[inline]
    pub(super) fn holds(&self, core: &Core, policy: &Policy, admission: AdmissionState) -> bool {
        self.policy == policy.number && self.admission == admission && core.subscription.connected()
    }

    /// The kind of the reason.
    #[inline]
    pub(super) fn kind(&self) -> ReasonKind {
        self.kind
    }

    /// Declines this many offers.
    #[inline]
    pub(super) fn decline(&self, offers: usize, declines: &mut Vec<Decline>) {
        let AlikeAnswer { reason, refuse, .. } = *self;
        declines.extend((0..offers as u32).map(|offer| Decline { offer, reason, refuse }));
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use crate::resources::{Mebibytes, MilliCpus};
    use crate::{Config, ConfigBuilder, Decisions, IdScheme, Kernel, Offer, OfferCounts, Resource};
    use crate::{StatusUpdate, TaskState, Timestamp};
    use proptest::prelude::*;

    /// What happens to a kernel.
    #[derive(Clone, Copy, Debug)]
    enum Step {
        /// A batch of this many offers.
        Batch(usize),
        /// The oldest executor ends.
        End,
        Limit(u32),
        CoreCap(u64),
        Connection(bool),
        /// Milliseconds pass.
        Wait(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            8 => (0..3usize).prop_map(Step::Batch),
            1 => Just(Step::End),
            1 => (0..4u32).prop_map(Step::Limit),
            1 => (1..4u64).prop_map(Step::CoreCap),
            1 => any::<bool>().prop_map(Step::Connection),
            2 => (1..1500u64).prop_map(Step::Wait),
        ]
    }

    fn config(core_cap: u64) -> ConfigBuilder {
        Config::builder()
            .executor_memory(Mebibytes::new(1))
            .memory_overhead(Some(Mebibytes::ZERO))
            .core_cap(Some(MilliCpus::from_cores(core_cap)))
    }

    /// What a kernel has said to each batch, in the end, and between: its counts and what it explains.
    fn told(steps: &[Step], is_kept: bool) -> (Vec<String>, OfferCounts) {
        let kernel = Kernel::new(config(2).build().unwrap(), IdScheme::plain());
        let (mut handler, mut decisions) = (kernel.handler(), Decisions::new());
        let resources = [Resource::scalar("cpus", 1.0), Resource::scalar("mem", 8.0)];
        let offers = ["S1", "S2"].map(|agent| Offer::new(agent, agent, "host", &resources, &[]));
        let (mut now, mut live, mut said) = (Timestamp::ORIGIN, Vec::new(), Vec::new());
        for step in steps {
            match *step {
                Step::Batch(count) => {
                    if !is_kept {
                        handler.alike.forget();
                    }
                    handler.resource_offers(&offers[..count], now, &mut decisions);
                    let placed = decisions.accepts().flat_map(|accepted| accepted.executors);
                    live.extend(
                        placed.map(|executor| kernel.executor_name(executor.id).to_string()),
                    );
                    let explained = kernel.explain(now);
                    said.push(format!(
                        "{:?} {:?} {explained:?}",
                        decisions.declines(),
                        decisions.at_cap
                    ));
                }
                Step::End if !live.is_empty() => {
                    kernel.status_update(
                        &StatusUpdate::new(&live.remove(0), TaskState::Finished),
                        now,
                    );
                }
                Step::End => {}
                Step::Limit(limit) => kernel.set_executor_limit(Some(limit)).unwrap_or_default(),
                Step::CoreCap(cores) => kernel.reconfigure(config(cores).build().unwrap()),
                Step::Connection(true) => drop(kernel.registered()),
                Step::Connection(false) => kernel.disconnected(),
                Step::Wait(millis) => now = now.plus(Duration::from_millis(millis)),
            }
        }
        (said, kernel.offer_counts())
    }

    proptest! {
        /// Goal: a batch that is answered like the last one is answered, counted and explained as if it were asked
        /// anew. Method: random batches, ends, settings, connections and times, against a kernel whose handler forgets
        /// its last answer before each batch.
        #[test]
        fn an_answer_that_is_kept_is_the_one_that_would_be_given(
            steps in prop::collection::vec(step(), 1..60),
        ) {
            prop_assert_eq!(told(&steps, true), told(&steps, false));
        }
    }
}
