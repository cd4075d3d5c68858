//! Late binding, concurrent with other calls. These models run the whole kernel.

use super::scenes::{NOW, SWEPT, cell, config, finish, kernel, offer, offer_from, update};
use super::{explore, race};
use crate::config::ExclusionRule;
use crate::kernel::state::agent_binding::{AgentBinding, BindingState};
use crate::{
    Binding, Bound, BoundAgent, Change, Decisions, Fate, Kernel, Offer, Resource, TaskState,
};

/// Places an executor that is bound late. Returns its name.
pub(super) fn place_late(kernel: &Kernel) -> String {
    let resources = [Resource::scalar("cpus", 1.0), Resource::scalar("mem", 1.0)];
    let mut decisions = Decisions::new();
    let permit = Offer::late("o", &resources);
    assert_eq!(permit.binding, Binding::Late);
    kernel.handler().resource_offers(&[permit], NOW, &mut decisions);
    let id = decisions.accepts().next().unwrap().executors[0].id;
    kernel.executor_name(id).to_string()
}

fn bind(kernel: &Kernel, executor: &str, agent: &str) -> Bound {
    kernel.bind(executor, &BoundAgent::new(agent, "host"), NOW)
}

/// Whether the call bound the executor.
fn is_settled(bound: &Bound) -> bool {
    matches!(bound, Bound::Settled { .. })
}

/// The number of executors on an agent.
fn executors_on(kernel: &Kernel, agent: &str) -> u32 {
    let agents = kernel.snapshot(NOW).agents;
    agents.iter().find(|it| *it.agent_id == *agent).map_or(0, |it| it.executors)
}

/// Goal: an executor that ends while it is bound counts on no agent afterwards, whichever comes first; its failure
/// counts against the agent only if it was there. Method: both at once.
#[test]
fn an_executor_that_ends_counts_on_no_agent() {
    explore("binding/bind-end", Some(3), || {
        let kernel = kernel(config());
        let executor = place_late(&kernel);
        let (here, there) = ((kernel.clone(), executor.clone()), (kernel.clone(), executor));
        let (bound, ended) = race(
            move || bind(&here.0, &here.1, "S0"),
            move || update(&there.0, &there.1, TaskState::Failed).change,
        );
        assert_eq!(ended, Change::Ended(Fate::Failed));
        assert!(is_settled(&bound) || bound == Bound::Nothing, "{bound:?}");
        assert_eq!(executors_on(&kernel, "S0"), 0);
        kernel.check().unwrap();
    });
}

/// An executor is bound to two agents at once, to the second by `other`, which returns whether it did.
fn two_agents(other: fn(&Kernel, &str) -> bool) {
    let kernel = kernel(config());
    offer_from(&kernel, "S1", 1).iter().for_each(|executor| finish(&kernel, executor));
    let executor = place_late(&kernel);
    let (here, there) = ((kernel.clone(), executor.clone()), (kernel.clone(), executor.clone()));
    let (first, second) =
        race(move || is_settled(&bind(&here.0, &here.1, "S0")), move || other(&there.0, &there.1));
    assert!(first ^ second, "on both agents, or on none");
    let found = (executors_on(&kernel, "S0"), executors_on(&kernel, "S1"));
    assert_eq!(found, (u32::from(first), u32::from(second)));
    kernel.check().unwrap();
}

/// Goal: of two agents, one gets the executor, and the other doesn't count it. Method: both at once.
#[test]
fn one_of_two_agents_gets_the_executor() {
    explore("binding/bind-bind", Some(3), || {
        two_agents(|kernel, executor| is_settled(&bind(kernel, executor, "S1")));
    });
}

/// Mutant: the thread sees that the executor is unbound, and then stores its agent.
#[test]
#[ignore = "mutant"]
fn mutant_bind_in_two_steps() {
    explore("mutant binding/bind-bind", Some(3), || {
        two_agents(|kernel, executor| {
            let (id, cell) = cell(kernel, executor);
            let agent = kernel.0.agents.find("S1").unwrap();
            let is_unbound = cell.binding.state(id.sequence) == BindingState::Unbound;
            if is_unbound {
                kernel.0.agents.reserve_bound(agent, NOW).unwrap();
                cell.binding.set(id.sequence, agent.index());
            }
            is_unbound
        });
    });
}

/// Goal: an executor that is bound while its agent is reported lost is in doubt afterwards, and one of the two calls
/// returns it. Method: both at once.
#[test]
fn a_lost_agent_puts_a_new_executor_in_doubt() {
    explore("binding/bind-lost", Some(3), || {
        let kernel = kernel(config());
        let executor = place_late(&kernel);
        let id = kernel.executor_id(&executor).unwrap();
        let (here, there) = ((kernel.clone(), executor.clone()), kernel.clone());
        let (bound, doubtful) =
            race(move || bind(&here.0, &here.1, "S0"), move || there.agent_lost("S0", NOW));
        let Bound::Settled { in_doubt, .. } = bound else { panic!("{bound:?}") };
        assert!(in_doubt || doubtful.iter().any(|target| target.id == id), "in no doubt");
        assert!(cell(&kernel, &executor).1.state().doubtful);
        assert_eq!(executors_on(&kernel, "S0"), 1);
        kernel.check().unwrap();
    });
}

/// Goal: an executor is bound to an agent that is forgotten meanwhile: before, so that the agent stays, or afterwards,
/// to a new cell. Method: a binding and a sweep at once.
#[test]
fn an_agent_that_is_forgotten_takes_the_executor() {
    explore("binding/bind-sweep", Some(2), || {
        let kernel = kernel(config());
        let executor = place_late(&kernel);
        let (here, there) = ((kernel.clone(), executor), kernel.clone());
        let (bound, _) = race(move || bind(&here.0, &here.1, "S0"), move || there.tick(SWEPT));
        assert!(is_settled(&bound), "{bound:?}");
        assert_eq!(executors_on(&kernel, "S0"), 1);
        kernel.check().unwrap();
    });
}

/// Goal: an exclusion during the binding comes before it, and the executor is unwelcome, or after it, and the agent
/// counts the executor when the agent is excluded. Method: a binding and the last failure that the rule allows.
#[test]
fn an_exclusion_comes_before_the_binding_or_after_it() {
    explore("binding/bind-exclude", Some(2), || {
        let rule = ExclusionRule { failures: 1, ..ExclusionRule::default() };
        let kernel = kernel(config().exclusion(Some(rule)));
        let failed = offer(&kernel, 1).remove(0);
        let executor = place_late(&kernel);
        let (here, there) = ((kernel.clone(), executor), kernel.clone());
        let (bound, counted) = race(
            move || bind(&here.0, &here.1, "S0"),
            move || {
                assert!(update(&there, &failed, TaskState::Failed).excluded.is_some());
                there.0.agents.executors(there.0.agents.find("S0").unwrap())
            },
        );
        let is_settled = is_settled(&bound);
        assert!(is_settled || matches!(bound, Bound::Unwelcome { why: Some(_), .. }), "{bound:?}");
        assert_eq!(u32::from(is_settled), counted, "bound after the exclusion");
        assert_eq!(executors_on(&kernel, "S0"), counted);
        kernel.check().unwrap();
    });
}

/// Goal: a late thread doesn't bind the next executor in the cell. Method: an executor is bound while it ends and
/// another one gets its cell.
#[test]
fn a_late_thread_binds_no_other_executor() {
    explore("binding/bind-reuse", Some(2), || {
        let kernel = kernel(config());
        let executor = place_late(&kernel);
        let id = kernel.executor_id(&executor).unwrap();
        let (here, there) = ((kernel.clone(), executor.clone()), (kernel.clone(), executor));
        let (_, next) = race(
            move || bind(&here.0, &here.1, "S0"),
            move || {
                finish(&there.0, &there.1);
                place_late(&there.0)
            },
        );
        let (next, cell) = cell(&kernel, &next);
        assert_eq!(next.slot, id.slot, "the cell is reused");
        assert_eq!(cell.binding.state(next.sequence), BindingState::Unbound);
        assert_eq!(executors_on(&kernel, "S0"), 0);
        kernel.check().unwrap();
    });
}

/// Goal: of a binding, a refusal and an end of one executor exactly one decides. Method: the word alone, with a thread
/// each.
#[test]
fn one_way_out_of_unbound() {
    explore("binding/bind-refuse-end", None, || {
        let binding = loom::sync::Arc::new(AgentBinding::new());
        binding.set(7, crate::kernel::state::agent_binding::NO_AGENT);
        let (here, there) = (loom::sync::Arc::clone(&binding), loom::sync::Arc::clone(&binding));
        let ender = loom::sync::Arc::clone(&binding);
        let end = loom::thread::spawn(move || ender.end(7));
        let (bound, refused) =
            race(move || here.bind(7, 3).is_ok(), move || there.refuse(7).is_ok());
        let uncounted = end.join().unwrap() == 3;
        assert!(!(bound && refused));
        assert_eq!(uncounted, bound, "counted for ever, or uncounted twice");
        let expected = match (bound, refused) {
            (true, _) => BindingState::Bound(3),
            (_, true) => BindingState::Unwelcome,
            _ => BindingState::Ended,
        };
        assert_eq!(binding.state(7), expected);
    });
}
