//! [`KeptAnswer`]: how a handler declined its last batch, if it declined all of it at a cap. While policy, admission
//! and connection stay as they are, the next batch gets the same answer without being asked anew.
//!
//! It is the handler's own memory: nothing shared is written, and all that the answer depends on is compared. That the
//! version may be one that is used again does no harm: the number of a policy never is, and under one policy the reason
//! follows from the sums.

use std::time::Duration;

use crate::kernel::Core;
use crate::kernel::reason::{Decline, Reason, ReasonKind};
use crate::kernel::state::admission::AdmissionState;
use crate::kernel::state::policy::Policy;

/// The answer to the last batch, and what it depends on.
#[derive(Debug)]
pub(in crate::kernel) struct KeptAnswer {
    /// The number of the policy; [`NONE`] if no answer is kept.
    policy: u64,
    admission: AdmissionState,
    reason: Reason,
    kind: ReasonKind,
    refuse: Duration,
}

/// The number of no policy.
const NONE: u64 = u64::MAX;

impl KeptAnswer {
    pub(super) fn none() -> KeptAnswer {
        let (reason, refuse) = (Reason::Stopping, Duration::ZERO);
        let admission = AdmissionState::default();
        KeptAnswer { policy: NONE, admission, reason, kind: reason.kind(), refuse }
    }

    /// Whether an answer is kept.
    #[inline]
    pub(super) fn is_some(&self) -> bool {
        self.policy != NONE
    }

    /// Called with each batch that is answered otherwise.
    #[inline]
    pub(in crate::kernel) fn forget(&mut self) {
        self.policy = NONE;
    }

    /// Keeps the answer to a batch all of which was declined like `first`, if it holds until policy, admission word or
    /// connection change: a cap of GPUs depends on another word, and with a wait for hosts each batch pauses that.
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
        declines.extend(Decline::all(offers, &self.reason, self.refuse));
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use crate::resources::{Mebibytes, MilliCpus};
    use crate::{Config, ConfigBuilder, Decisions, IdScheme, Kernel, Offer, OfferCounts, Resource};
    use crate::{Picks, StatusUpdate, Task, TaskState, Timestamp};
    use proptest::prelude::*;

    /// What happens to a kernel.
    #[derive(Clone, Copy, Debug)]
    enum Step {
        /// A batch of this many offers.
        Batch(usize),
        /// A batch of another handler, of one offer.
        Other,
        /// A batch of one offer, in which a task is picked.
        Task,
        /// The oldest executor ends.
        End,
        Limit(u32),
        CoreCap(u64),
        Connection(bool),
        /// Milliseconds pass.
        Wait(u64),
        /// The clock is put back by milliseconds.
        Back(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            8 => (0..3usize).prop_map(Step::Batch),
            1 => Just(Step::Other),
            1 => Just(Step::Task),
            2 => Just(Step::End),
            1 => (0..4u32).prop_map(Step::Limit),
            1 => (1..4u64).prop_map(Step::CoreCap),
            1 => any::<bool>().prop_map(Step::Connection),
            2 => (1..1500u64).prop_map(Step::Wait),
            1 => (1..1500u64).prop_map(Step::Back),
        ]
    }

    fn config(core_cap: u64) -> ConfigBuilder {
        Config::builder()
            .executor_memory(Mebibytes::new(1))
            .memory_overhead(Some(Mebibytes::ZERO))
            .core_cap(Some(MilliCpus::from_cores(core_cap)))
    }

    /// What a kernel has said to each batch and explained after each step, and its counts in the end.
    fn told(steps: &[Step], is_kept: bool) -> (Vec<String>, OfferCounts) {
        let kernel = Kernel::new(config(2).build().unwrap(), IdScheme::plain());
        let (mut handler, mut other) = (kernel.handler(), kernel.handler());
        let (mut decisions, mut picks) = (Decisions::new(), Picks::new());
        picks.push(0, Task::new(7, MilliCpus::from_cores(1), Mebibytes::new(1)));
        let resources = [Resource::scalar("cpus", 1.0), Resource::scalar("mem", 8.0)];
        let offers = ["S1", "S2"].map(|agent| Offer::new(agent, agent, "host", &resources, &[]));
        let (mut now, mut live, mut said) = (Timestamp::ORIGIN, Vec::new(), Vec::new());
        for step in steps {
            decisions.clear();
            if !is_kept {
                handler.kept.forget();
            }
            match *step {
                Step::Batch(count) => {
                    handler.resource_offers(&offers[..count], now, &mut decisions);
                }
                Step::Other => other.resource_offers(&offers[1..], now, &mut decisions),
                Step::Task => {
                    handler.propose(&offers[..1], now).commit(&picks, now, &mut decisions)
                }
                Step::End if live.is_empty() => {}
                Step::End => {
                    let end: String = live.remove(0);
                    kernel.status_update(&StatusUpdate::new(&end, TaskState::Finished), now);
                }
                Step::Limit(limit) => kernel.set_executor_limit(Some(limit)).unwrap(),
                Step::CoreCap(cores) => kernel.reconfigure(config(cores).build().unwrap()),
                Step::Connection(true) => drop(kernel.registered()),
                Step::Connection(false) => kernel.disconnected(),
                Step::Wait(millis) => now = now.plus(Duration::from_millis(millis)),
                Step::Back(millis) => {
                    now = Timestamp::from_millis(now.as_millis().saturating_sub(millis));
                }
            }
            let placed = decisions.accepts().flat_map(|accepted| accepted.executors);
            live.extend(placed.map(|executor| kernel.executor_name(executor.id).to_string()));
            let (declines, at_cap) = (decisions.declines(), decisions.at_cap);
            said.push(format!("{declines:?} {at_cap} {:?}", kernel.explain(now)));
        }
        (said, kernel.offer_counts())
    }

    proptest! {
        /// Goal: a batch that is answered like the last one is answered, counted and explained as if it were asked
        /// anew. Method: random batches of it and of others, ends, settings, connections and times, against a kernel
        /// whose handler forgets its last answer before each step.
        #[test]
        fn an_answer_that_is_kept_is_the_one_that_would_be_given(
            steps in prop::collection::vec(step(), 1..60),
        ) {
            prop_assert_eq!(told(&steps, true), told(&steps, false));
        }
    }
}
