//! Late binding: binds executors to the agents that updates name.

use super::avoided_agents::AvoidedAgents;
use super::cluster_manager::Update;
use super::notice::Notice;
use super::recorded_kernel::RecordedKernel;
use super::sinks::CallSink;
use crate::ids::ExecutorId;
use crate::kernel::{Bound, Reason};
use crate::time::Timestamp;

/// What remains to be done once an update, which may have bound its executor, is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AfterUpdate {
    Nothing,
    /// The agent was reported lost: the executor is to be put in doubt and reconciled, unless it has ended.
    Doubt,
    /// The agent doesn't take the executor: it is to be killed.
    Kill(ExecutorId),
}

/// Binds the executor of an update to the agent that the update names, if the manager binds late and the executor isn't
/// bound yet. Must come before the update is applied.
pub(super) fn bind(
    recorded_kernel: &RecordedKernel,
    avoided_agents: &mut AvoidedAgents,
    update: &Update,
    now: Timestamp,
    out: &mut dyn CallSink,
) -> AfterUpdate {
    let Some(agent_id) = update.named_agent() else { return AfterUpdate::Nothing };
    if !avoided_agents.binds_late() || !recorded_kernel.kernel().is_unbound(&update.executor) {
        return AfterUpdate::Nothing;
    }
    let facts = update.facts.as_deref();
    let bound = recorded_kernel.bind(&update.executor, agent_id, facts, now);
    let (executor, agent_id) = (update.executor.clone(), agent_id.to_owned());
    match bound {
        Bound::Settled { in_doubt, .. } => {
            let hostname = facts.map_or_else(String::new, |facts| facts.hostname.clone());
            out.notice(Notice::Bound { executor, agent_id, hostname });
            if in_doubt { AfterUpdate::Doubt } else { AfterUpdate::Nothing }
        }
        Bound::Unwelcome { executor: id, why: Some(why) } => {
            // Excluded agents are avoided anyway.
            if !matches!(why, Reason::AgentExcluded { .. }) {
                avoided_agents.refused(recorded_kernel, &agent_id, now);
            }
            let why = why.to_string();
            out.notice(Notice::Unwelcome { executor, agent_id, why });
            AfterUpdate::Kill(id)
        }
        // Its kill is repeated until it ends.
        Bound::Unwelcome { why: None, .. }
        | Bound::Already
        | Bound::Elsewhere { .. }
        | Bound::Nothing => AfterUpdate::Nothing,
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::constraint::Constraint;
    use crate::engine::EngineOptions;
    use crate::engine::agent_facts::AgentFacts;
    use crate::engine::cluster_manager::Call;
    use crate::engine::controller::{Controller, ControllerEvent};
    use crate::ids::IdScheme;
    use crate::kernel::{Decisions, Kernel, Phase};
    use crate::offer::{Offer, Resource, attributes};
    use crate::status::TaskState;

    /// A sink that logs kills with their agents, reconciliations, and lists of agents to avoid.
    #[derive(Default)]
    struct Log(Vec<String>);

    impl CallSink for Log {
        fn call(&mut self, call: Call<'_>) {
            self.0.push(match call {
                Call::Kill { executor, agent_id, .. } => format!("kill {executor} {agent_id:?}"),
                Call::Reconcile(tasks) => {
                    let executors = tasks.iter().map(|it| it.executor);
                    format!("reconcile {}", Vec::from_iter(executors).join(" "))
                }
                Call::Avoid(agents) => {
                    let agents = agents.iter().map(|it| it.agent_id);
                    format!("avoid {}", Vec::from_iter(agents).join(" "))
                }
                _ => return,
            });
        }

        fn notice(&mut self, _notice: Notice) {}
    }

    /// A controller, whose kernel has placed executors on permits.
    struct Fixture {
        kernel: Kernel,
        controller: Controller,
        log: Log,
    }

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000)
    }

    impl Fixture {
        fn new(executors: u32) -> Fixture {
            let constraint = Constraint::parse("disk:ssd").unwrap();
            let config = Config::builder().executor_limit(Some(executors)).constraint(constraint);
            let kernel = Kernel::new(config.build().unwrap(), IdScheme::plain());
            let resources = [Resource::scalar("cpus", 1.0), Resource::scalar("mem", 9999.0)];
            for _ in 0..executors {
                let permits = [Offer::late("p", &resources)];
                kernel.handler().resource_offers(&permits, at(0), &mut Decisions::new());
            }
            let recorded_kernel = RecordedKernel::from(kernel.clone());
            let controller = Controller::new(recorded_kernel, EngineOptions::default());
            let controller = controller.with_late_binding(true);
            Fixture { kernel, controller, log: Log::default() }
        }

        fn handle(&mut self, event: ControllerEvent, now: u64) -> Vec<String> {
            self.controller.handle(event, at(now), &mut self.log);
            std::mem::take(&mut self.log.0)
        }

        fn update(
            &mut self,
            executor: &str,
            state: TaskState,
            agent: &str,
            now: u64,
        ) -> Vec<String> {
            let update = Update::new(executor, state).with_agent(agent);
            self.handle(ControllerEvent::Update(update), now)
        }

        fn run_timers(&mut self, now: u64) -> Vec<String> {
            self.controller.run_timers(at(now), &mut self.log);
            std::mem::take(&mut self.log.0)
        }
    }

    /// Goal: an executor that is bound to a lost agent is in doubt after the update that binds it, and reconciled
    /// until a further one; if that update ends it, it isn't reconciled. Method: one of each.
    #[test]
    fn executors_on_lost_agents_are_in_doubt() {
        let mut fixture = Fixture::new(2);
        let lost = ControllerEvent::AgentLost { agent_id: "S1".to_owned() };
        assert_eq!(fixture.handle(lost, 1), [""; 0]);
        assert_eq!(fixture.update("0", TaskState::Running, "S1", 2), ["reconcile 0"]);
        assert_eq!(fixture.update("1", TaskState::Failed, "S1", 2), [""; 0]);
        assert_eq!(fixture.run_timers(20), ["reconcile 0"]);
        assert_eq!(fixture.update("0", TaskState::Running, "S1", 21), [""; 0]);
        assert_eq!(fixture.run_timers(40), [""; 0]);
    }

    /// Goal: an empty name of an agent is none. Method: a kill of an executor of a former run without an agent, an
    /// update of an unknown executor, and an update of one that is bound.
    #[test]
    fn an_empty_name_is_no_agent() {
        let mut fixture = Fixture::new(1);
        let surplus = [("7".to_owned(), String::new()), ("8".to_owned(), "S1".to_owned())];
        fixture.controller.end_surplus(&surplus, at(0), &mut fixture.log);
        assert_eq!(fixture.log.0, ["kill 7 None", "kill 8 Some(\"S1\")"]);
        fixture.log.0.clear();
        assert_eq!(fixture.update("9", TaskState::Running, "", 1), ["kill 9 None"]);
        fixture.update("0", TaskState::Starting, "S1", 2);
        fixture.update("0", TaskState::Running, "", 3);
        let executor = &fixture.kernel.snapshot(at(3)).executors[0];
        assert_eq!((executor.phase, &*executor.agent_id), (Phase::Running, "S1"));
    }

    /// Goal: an agent that doesn't meet the constraint is avoided, so that the next executor isn't started there.
    /// Method: two updates with its attributes.
    #[test]
    fn agents_that_refuse_are_avoided() {
        let mut fixture = Fixture::new(2);
        let attributes = attributes::parse("disk:hdd").unwrap();
        for (executor, avoided) in [("0", "avoid S1"), ("1", "avoid S2 S1")] {
            let agent = if executor == "0" { "S1" } else { "S2" };
            let facts = AgentFacts::new("host").with_attributes(attributes.clone());
            let update = Update::new(executor, TaskState::Running).with_agent(agent);
            let now = if executor == "0" { 1 } else { 2 };
            let update = ControllerEvent::Update(update.with_facts(facts));
            assert_eq!(fixture.handle(update, now), [format!("kill {executor} None")]);
            assert_eq!(fixture.run_timers(now), [avoided]);
        }
    }

    /// Goal: executors of a manager that doesn't bind late stay as they were placed. Method: an update of an executor
    /// without an agent.
    #[test]
    fn only_managers_that_bind_late_name_agents() {
        let mut fixture = Fixture::new(1);
        fixture.controller = fixture.controller.with_late_binding(false);
        fixture.update("0", TaskState::Running, "S1", 1);
        let executor = &fixture.kernel.snapshot(at(1)).executors[0];
        assert_eq!((executor.phase, &*executor.agent_id), (Phase::Running, ""));
    }
}
