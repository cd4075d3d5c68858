//! The agents that a manager which binds late must avoid: those that are excluded, and those that have refused an
//! executor of late.
//!
//! * The list is made anew when it may have changed: after an exclusion, a refusal, and at each tick. Changes within
//!   50 ms are told together, so that many exclusions at once don't cost one long list each.
//! * It is repeated, even if it is empty, when a subscription begins, and at the next tick after a call that failed:
//!   otherwise the manager would avoid agents of an older list for ever. Without a subscription nothing is told.
//! * An agent that doesn't meet the constraint, or is full, would be chosen again for the executor that replaces the
//!   killed one. So it is avoided for 10 min, until the constraint changes, or until too many others have refused
//!   executors since.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::cluster_manager::{AvoidedAgent, Call};
use super::recorded_kernel::RecordedKernel;
use super::sinks::CallSink;
use crate::constraint::Constraint;
use crate::time::Timestamp;

/// The shortest interval between two lists.
const LIST_EVERY: Duration = Duration::from_millis(50);
/// How long an agent is avoided that has refused an executor.
const REFUSAL: Duration = Duration::from_secs(600);
/// The maximum number of agents that are avoided because they have refused executors.
const REFUSALS_MAX: usize = 1024;

/// The agents that a manager was told to avoid.
#[derive(Debug, Default)]
pub(super) struct AvoidedAgents {
    /// Whether the manager binds executors late, so that it must be told.
    binds_late: bool,
    is_disconnected: bool,
    /// The last list, and whether any was told.
    last: Vec<(Arc<str>, Timestamp)>,
    was_told: bool,
    /// When the list was made last.
    listed_at: Option<Timestamp>,
    /// Whether it may be another by now.
    may_have_changed: bool,
    /// Whether it must be told even if it is the same.
    must_repeat: bool,
    /// Whether the last call failed.
    has_failed: bool,
    /// The agents that have refused executors, and until when they are avoided.
    refusals: BTreeMap<Arc<str>, Timestamp>,
    /// The constraint at the time of these refusals.
    constraint: Constraint,
}

impl AvoidedAgents {
    pub(super) fn new(binds_late: bool) -> AvoidedAgents {
        AvoidedAgents { binds_late, ..AvoidedAgents::default() }
    }

    /// Whether the manager binds late.
    pub(super) fn binds_late(&self) -> bool {
        self.binds_late
    }

    /// A subscription has begun.
    pub(super) fn registered(&mut self) {
        self.is_disconnected = false;
        self.must_repeat = self.was_told;
    }

    /// The subscription has ended.
    pub(super) fn disconnected(&mut self) {
        self.is_disconnected = true;
    }

    /// An agent was excluded.
    pub(super) fn excluded(&mut self) {
        self.may_have_changed = true;
    }

    /// An agent has refused an executor, because it doesn't meet the constraint or is full.
    pub(super) fn refused(&mut self, kernel: &RecordedKernel, agent_id: &str, now: Timestamp) {
        self.drop_refusals_of_other_constraint(kernel);
        let is_new = !self.refusals.contains_key(agent_id);
        if is_new && self.refusals.len() >= REFUSALS_MAX {
            let first = self.refusals.iter().min_by_key(|(_, until)| **until);
            if let Some(first) = first.map(|(id, _)| Arc::clone(id)) {
                self.refusals.remove(&first);
            }
        }
        self.refusals.insert(agent_id.into(), now.plus(REFUSAL));
        self.may_have_changed = true;
    }

    /// A tick: exclusions may have ended, and a call that failed is made again.
    pub(super) fn ticked(&mut self) {
        self.may_have_changed = true;
        self.must_repeat |= std::mem::take(&mut self.has_failed);
    }

    /// Makes [`Call::Avoid`] if the list has changed or must be repeated. O(agents) if it may have changed.
    pub(super) fn tell(
        &mut self,
        recorded_kernel: &RecordedKernel,
        now: Timestamp,
        out: &mut dyn CallSink,
    ) {
        let is_due = self.may_have_changed || self.must_repeat;
        let is_early = self.listed_at.is_some_and(|at| now.since(at) < LIST_EVERY);
        if !self.binds_late || self.is_disconnected || !is_due || is_early {
            return;
        }
        self.listed_at = Some(now);
        self.may_have_changed = false;
        let list = self.list(recorded_kernel, now);
        if list != self.last {
            self.last = list;
            self.must_repeat = true;
        }
        if std::mem::take(&mut self.must_repeat) {
            self.was_told = true;
            self.has_failed = !self.call(now, out);
        }
    }

    /// The agents to avoid, those first that are avoided longest.
    fn list(
        &mut self,
        recorded_kernel: &RecordedKernel,
        now: Timestamp,
    ) -> Vec<(Arc<str>, Timestamp)> {
        self.drop_refusals_of_other_constraint(recorded_kernel);
        self.refusals.retain(|_, until| now < *until);
        let mut agents = self.refusals.clone();
        for (id, until) in recorded_kernel.kernel().excluded_agents(now) {
            let longest = agents.entry(id).or_insert(until);
            *longest = until.max(*longest);
        }
        let mut list = Vec::from_iter(agents);
        list.sort_by_key(|(_, until)| std::cmp::Reverse(*until));
        list
    }

    fn drop_refusals_of_other_constraint(&mut self, recorded_kernel: &RecordedKernel) {
        let config = recorded_kernel.kernel().config();
        if *config.constraint() != self.constraint {
            self.constraint = config.constraint().clone();
            self.refusals.clear();
        }
    }

    /// Returns whether the call was made.
    fn call(&self, now: Timestamp, out: &mut dyn CallSink) -> bool {
        let avoided = self.last.iter().map(|(id, until)| {
            let remaining = if *until == Timestamp::MAX { None } else { Some(until.since(now)) };
            AvoidedAgent::new(id, remaining)
        });
        out.try_call(Call::Avoid(&Vec::from_iter(avoided)))
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use crate::config::{Config, ExclusionRule};
    use crate::engine::notice::Notice;
    use crate::ids::IdScheme;
    use crate::kernel::{Decisions, Kernel};
    use crate::offer::{Offer, Resource};
    use crate::status::{StatusUpdate, TaskState};

    /// A sink that logs the lists, and fails on demand.
    #[derive(Default)]
    struct Log {
        lists: Vec<Vec<(String, Option<u64>)>>,
        fails: bool,
    }

    impl CallSink for Log {
        fn call(&mut self, call: Call<'_>) {
            let Call::Avoid(agents) = call else { panic!("{call:?}") };
            let seconds = |it: &AvoidedAgent<'_>| it.remaining.map(|it| it.as_secs());
            let list = agents.iter().map(|it| (it.agent_id.to_owned(), seconds(it)));
            self.lists.push(list.collect());
        }

        fn try_call(&mut self, call: Call<'_>) -> bool {
            self.call(call);
            !self.fails
        }

        fn notice(&mut self, _notice: Notice) {}
    }

    impl Log {
        /// The agents of the lists since the last time.
        fn agents(&mut self) -> Vec<String> {
            let lists = std::mem::take(&mut self.lists);
            let agents = |list: Vec<(String, Option<u64>)>| {
                list.into_iter().map(|(id, _)| id).collect::<Vec<_>>().join(" ")
            };
            lists.into_iter().map(agents).collect()
        }
    }

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn builder() -> crate::config::ConfigBuilder {
        let expiry = Some(Duration::from_secs(5));
        let rule = ExclusionRule { failures: 1, expiry, ..ExclusionRule::default() };
        Config::builder().executor_limit(Some(8)).exclusion(Some(rule))
    }

    /// A kernel, and the list of a manager that binds late.
    fn fixture() -> (RecordedKernel, AvoidedAgents) {
        let kernel = Kernel::new(builder().build().unwrap(), IdScheme::plain());
        (RecordedKernel::from(kernel), AvoidedAgents::new(true))
    }

    /// Excludes an agent by the failure of its executor, whose number is given.
    fn exclude(kernel: &RecordedKernel, number: u32, now: Timestamp) {
        let resources = [Resource::scalar("cpus", 1.0), Resource::scalar("mem", 9999.0)];
        let agent = format!("S{number}");
        let offers = [Offer::new("o", &agent, "host", &resources, &[])];
        let mut decisions = Decisions::new();
        kernel.kernel().handler().resource_offers(&offers, now, &mut decisions);
        assert_eq!(decisions.executors(), 1);
        let name = number.to_string();
        let report = StatusUpdate::new(&name, TaskState::Failed);
        assert!(kernel.kernel().status_update(&report, now).excluded.is_some());
    }

    /// Goal: exclusions that come together are told together, with their remaining times; so are their ends. Method:
    /// three, of which two come within 50 ms.
    #[test]
    fn exclusions_are_told_together() {
        let (kernel, mut avoided) = fixture();
        let mut log = Log::default();
        avoided.tell(&kernel, at(0), &mut log);
        for (number, now) in [(0, 1000), (1, 1010), (2, 1020)] {
            exclude(&kernel, number, at(now));
            avoided.excluded();
            avoided.tell(&kernel, at(now), &mut log);
        }
        avoided.tell(&kernel, at(1050), &mut log);
        avoided.tell(&kernel, at(2000), &mut log);
        assert_eq!(log.lists[0], [("S0".to_owned(), Some(5))]);
        assert_eq!(log.agents(), ["S0", "S2 S1 S0"]);
        avoided.ticked();
        avoided.tell(&kernel, at(3000), &mut log);
        assert_eq!(log.agents(), [""; 0], "nothing has changed");
        avoided.ticked();
        avoided.tell(&kernel, at(7000), &mut log);
        assert_eq!(log.agents(), [""]);
    }

    /// Goal: a manager never keeps an older list: an end that comes while it is disconnected, or that it can't be told,
    /// is told later. Method: an exclusion that ends without a subscription, and another whose end fails twice.
    #[test]
    fn the_end_of_an_exclusion_is_told_surely() {
        let (kernel, mut avoided) = fixture();
        let mut log = Log::default();
        avoided.registered();
        avoided.tell(&kernel, at(0), &mut log);
        assert_eq!(log.agents(), [""; 0], "there was none");
        exclude(&kernel, 0, at(1000));
        avoided.excluded();
        avoided.tell(&kernel, at(1000), &mut log);
        avoided.disconnected();
        avoided.ticked();
        avoided.tell(&kernel, at(8000), &mut log);
        assert_eq!(log.agents(), ["S0"]);
        avoided.registered();
        avoided.tell(&kernel, at(9000), &mut log);
        assert_eq!(log.agents(), [""]);
        avoided.registered();
        avoided.tell(&kernel, at(9100), &mut log);
        assert_eq!(log.agents(), [""], "again with each subscription");

        exclude(&kernel, 1, at(10_000));
        avoided.excluded();
        avoided.tell(&kernel, at(10_000), &mut log);
        log.fails = true;
        for second in [16, 17, 18] {
            avoided.ticked();
            avoided.tell(&kernel, at(second * 1000), &mut log);
            avoided.tell(&kernel, at(second * 1000 + 500), &mut log);
            log.fails = second < 17;
        }
        avoided.ticked();
        avoided.tell(&kernel, at(19_000), &mut log);
        assert_eq!(log.agents(), ["S1", "", "", ""]);
    }

    /// Goal: agents that refuse executors are avoided for a time, or until the constraint changes, and in bounded
    /// number. Method: one refusal; two, and a change of settings; more than the maximum.
    #[test]
    fn agents_that_refuse_are_avoided_for_a_time() {
        let (kernel, mut avoided) = fixture();
        let mut log = Log::default();
        avoided.refused(&kernel, "S0", at(0));
        avoided.tell(&kernel, at(0), &mut log);
        assert_eq!(log.lists[0], [("S0".to_owned(), Some(600))]);
        avoided.ticked();
        avoided.tell(&kernel, at(600_000), &mut log);
        assert_eq!(log.agents(), ["S0", ""]);

        avoided.refused(&kernel, "S1", at(600_000));
        avoided.refused(&kernel, "S2", at(601_000));
        avoided.tell(&kernel, at(601_000), &mut log);
        kernel.kernel().reconfigure(builder().executor_limit(Some(9)).build().unwrap());
        avoided.ticked();
        avoided.tell(&kernel, at(602_000), &mut log);
        assert_eq!(log.agents(), ["S2 S1"], "the constraint is the same");
        let constraint = Constraint::parse("disk:ssd").unwrap();
        kernel.kernel().reconfigure(builder().constraint(constraint).build().unwrap());
        avoided.ticked();
        avoided.tell(&kernel, at(603_000), &mut log);
        assert_eq!(log.agents(), [""]);

        for number in 0..=REFUSALS_MAX as u64 {
            avoided.refused(&kernel, &format!("R{number}"), at(700_000 + number));
        }
        avoided.tell(&kernel, at(710_000), &mut log);
        assert_eq!(log.lists[0].len(), REFUSALS_MAX);
        assert!(log.lists[0].iter().all(|(id, _)| id != "R0"), "the oldest is left out");
    }

    /// Goal: another manager is told nothing. Method: an exclusion.
    #[test]
    fn managers_that_make_offers_of_agents_are_told_nothing() {
        let (kernel, _) = fixture();
        let (mut avoided, mut log) = (AvoidedAgents::new(false), Log::default());
        exclude(&kernel, 0, at(0));
        avoided.excluded();
        avoided.registered();
        avoided.tell(&kernel, at(1000), &mut log);
        assert_eq!(log.agents(), [""; 0]);
    }
}
