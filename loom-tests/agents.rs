//! An agent's word: placement, exclusion, suspicion, and forgetting.

use loom::sync::Arc;

use super::scenes::{
    SWEPT, config, finish, finish_all, kernel, offer, offer_from, offer_of, offer_to, update,
};
use super::{explore, race};
use crate::config::{Compatibility, ExclusionRule};
use crate::kernel::state::agents::{AgentKey, AgentRefusal, AgentTable};
use crate::time::Timestamp;
use crate::{Decisions, Handler, Kernel, Scope, StatusUpdate, Target, TaskState};

pub(super) const NOW: Timestamp = Timestamp::from_millis(1000);
pub(super) const LATER: Timestamp = Timestamp::from_millis(5000);

pub(super) fn one_agent() -> (Arc<AgentTable>, AgentKey) {
    let agents = AgentTable::new();
    let key = agents.find_or_insert("S0", "host", NOW).unwrap();
    (Arc::new(agents), key)
}

/// Goal: once an exclusion has taken effect, nothing is placed on the agent. Method: a failure and a placement at once;
/// the executors counted after the exclusion bound those at the end.
#[test]
fn nothing_is_placed_after_an_exclusion() {
    explore("agents/exclude-reserve", None, || {
        let rule = ExclusionRule { failures: 1, ..ExclusionRule::default() };
        let (agents, key) = one_agent();
        let (here, there) = (Arc::clone(&agents), Arc::clone(&agents));
        let (placed, after_exclusion) = race(
            move || here.reserve(key, 1, NOW).is_ok(),
            move || {
                assert!(there.record_failure(key.index(), Some(&rule), NOW).is_some());
                there.executors(key)
            },
        );
        assert_eq!(agents.executors(key), after_exclusion);
        assert_eq!(u32::from(placed), after_exclusion);
        assert!(matches!(agents.reserve(key, 1, NOW), Err(AgentRefusal::Excluded(_))));
    });
}

/// Goal: an agent is forgotten or gets an executor from a late offer, never both. Method: both at once.
#[test]
fn an_agent_in_use_is_not_forgotten() {
    explore("agents/retire-reserve", None, || {
        let (agents, key) = one_agent();
        let (here, there) = (Arc::clone(&agents), Arc::clone(&agents));
        let (placed, retired) =
            race(move || here.reserve(key, 1, NOW).is_ok(), move || there.retire(key, NOW));
        assert!(retired ^ placed);
        assert_eq!(agents.executors(key), u32::from(placed));
        assert_eq!(agents.find("S0").is_some(), placed);
    });
}

/// Goal: a late offer of a forgotten agent is not counted on the agent that has its cell now. Method: the cell is
/// reused for another agent while the old key is used.
#[test]
fn an_old_key_counts_on_no_agent() {
    explore("agents/reuse-reserve", None, || {
        let (agents, old) = one_agent();
        let (here, there) = (Arc::clone(&agents), Arc::clone(&agents));
        let (late, (retired, new)) = race(
            move || here.reserve(old, 1, NOW).is_ok(),
            move || (there.retire(old, NOW), there.find_or_insert("S1", "host", NOW).unwrap()),
        );
        assert!(retired ^ late);
        assert_eq!(agents.executors(new), 0);
    });
}

/// Mutant: a late offer uses the cell without checking the generation.
#[test]
#[ignore = "mutant"]
fn mutant_cell_without_generation() {
    explore("mutant agents/reuse-reserve", None, || {
        let (agents, old) = one_agent();
        // The key of the cell's next agent.
        let next = {
            let (same, first) = one_agent();
            assert!(same.retire(first, NOW));
            same.find_or_insert("S1", "host", NOW).unwrap()
        };
        let (here, there) = (Arc::clone(&agents), Arc::clone(&agents));
        race(
            move || {
                let whoever = if here.capacity(old, NOW).is_ok() { old } else { next };
                let _ = here.reserve(whoever, 1, NOW);
            },
            move || {
                there.retire(old, NOW);
                there.find_or_insert("S1", "host", NOW).unwrap();
            },
        );
        assert_eq!(agents.executors(next), 0);
    });
}

/// Goal: two threads that insert an agent at once get the same key. Method: both at once; the superfluous cell is
/// freed.
#[test]
fn an_agent_is_inserted_once() {
    explore("agents/insert-insert", None, || {
        let (agents, gone) = one_agent();
        assert!(agents.retire(gone, NOW));
        let (here, there) = (Arc::clone(&agents), Arc::clone(&agents));
        let (one, other) = race(
            move || here.find_or_insert("S1", "host", NOW).unwrap(),
            move || there.find_or_insert("S1", "host", NOW).unwrap(),
        );
        assert_eq!(one, other);
        assert!(agents.reserve(one, 1, NOW).is_ok());
        assert_eq!((agents.len(), agents.views(NOW).count()), (1, 1));
    });
}

/// A sweep for agents that were not seen since [`LATER`], while `find_or_insert` inserts one at that time, in a cell
/// whose last agent was seen earlier.
fn insert_and_sweep(find_or_insert: fn(&AgentTable)) {
    let (agents, gone) = one_agent();
    assert!(agents.retire(gone, NOW));
    let (here, there) = (Arc::clone(&agents), Arc::clone(&agents));
    let (swept, ()) =
        race(move || here.sweep(LATER, LATER, &|| false), move || find_or_insert(&there));
    assert_eq!(swept, 0, "a new agent was taken for an old one");
    assert!(agents.find("S1").is_some());
}

/// Goal: a new agent is not forgotten because of the times that its cell's last agent left there. Method: an insertion
/// and a sweep at once.
#[test]
fn a_new_agent_is_not_an_old_one() {
    explore("agents/insert-sweep", None, || {
        insert_and_sweep(|agents| {
            agents.find_or_insert("S1", "host", LATER).unwrap();
        });
    });
}

/// Mutant: the time of the insertion is recorded after the agent can be found.
#[test]
#[ignore = "mutant"]
fn mutant_noted_too_late() {
    explore("mutant agents/insert-sweep", None, || {
        insert_and_sweep(|agents| {
            let key = agents.find_or_insert("S1", "host", NOW).unwrap();
            agents.record_seen(key, LATER);
        });
    });
}

/// Goal: if an agent is looked up while it is forgotten, it exists, or a placement on it fails. Method: both at once;
/// then the map and the cells agree.
#[test]
fn inserting_and_forgetting_agree() {
    explore("agents/insert-retire", None, || {
        let (agents, key) = one_agent();
        let (here, there) = (Arc::clone(&agents), Arc::clone(&agents));
        let (retired, met) = race(
            move || here.retire(key, NOW),
            move || there.find_or_insert("S0", "host", NOW).unwrap(),
        );
        assert!(retired);
        let found = agents.find("S0");
        assert!(found == Some(met) || met == key);
        assert_eq!(agents.reserve(met, 1, NOW).is_ok(), found == Some(met));
        assert_eq!((agents.len(), agents.views(NOW).count()), (found.iter().count(), agents.len()));
    });
}

/// Goal: once a suspicion has been recorded, nothing is placed on the agent before it ends. Method: a suspicion and a
/// placement at once; the executors counted after the suspicion are those at the end.
#[test]
fn nothing_is_placed_after_a_suspicion() {
    explore("agents/suspect-reserve", None, || {
        let (agents, key) = one_agent();
        let (here, there) = (Arc::clone(&agents), Arc::clone(&agents));
        let (placed, after_suspicion) = race(
            move || here.reserve(key, 1, NOW).is_ok(),
            move || {
                assert_eq!(there.suspect("S0", LATER, NOW), Some(key));
                there.executors(key)
            },
        );
        assert_eq!(u32::from(placed), after_suspicion);
        assert_eq!(agents.reserve(key, 1, NOW), Err(AgentRefusal::Suspect(LATER)));
        assert_eq!(agents.reserve(key, 1, LATER), Ok(false));
    });
}

/// One executor's core is offered while `report` excludes or suspects the agent. Returns how many executors were
/// placed, which must be those counted when `report` has returned.
fn placed_before(kernel: &Kernel, report: impl FnOnce(&Kernel) + Send + 'static) -> u32 {
    let there = kernel.clone();
    let mut handler = kernel.handler();
    let (placed, counted) = race(
        move || offer_to(&mut handler, "S0", 1).len() as u32,
        move || {
            report(&there);
            there.0.admission.load().executors()
        },
    );
    assert_eq!(placed, counted, "placed after the report");
    kernel.check().unwrap();
    placed
}

/// Goal: once a loss has been reported, nothing is started on the agent, even by a batch that had reserved it before,
/// and all that was started is in doubt. Method: a batch and a report at once; the executors counted when the report
/// has returned are those at the end.
#[test]
fn nothing_is_started_on_a_lost_agent() {
    explore("agents/lost-launch", Some(3), || {
        let kernel = kernel(config());
        // The cell that the batch will take was another agent's last.
        finish_all(&kernel, &offer_from(&kernel, "S1", 1));
        let placed = placed_before(&kernel, |kernel| drop(kernel.agent_lost("S0", NOW)));
        assert_eq!(kernel.reconcile(Scope::InDoubt, NOW).len() as u32, placed);
    });
}

/// Goal: the same for an agent that was never offered before. Method: its first offer and a report at once.
#[test]
fn nothing_is_started_on_an_agent_lost_before_it_was_met() {
    explore("agents/lost-meet", Some(2), || {
        let kernel = kernel(config());
        let there = kernel.clone();
        let mut handler = kernel.handler();
        let (placed, counted) = race(
            move || offer_to(&mut handler, "S1", 1).len() as u32,
            move || {
                there.agent_lost("S1", NOW);
                there.0.admission.load().executors()
            },
        );
        assert_eq!(placed, counted, "placed after the report");
        assert_eq!(offer_from(&kernel, "S1", 1).len(), 0);
        kernel.check().unwrap();
    });
}

/// Goal: once an update that excludes an agent has been applied, nothing is started there, even by a batch that had
/// reserved it before. Method: the same with the last failure that the rule allows, and the agent's word is checked.
#[test]
fn nothing_is_started_on_an_excluded_agent() {
    explore("agents/exclude-launch", Some(2), || {
        let rule = ExclusionRule { failures: 1, ..ExclusionRule::default() };
        let kernel = kernel(config().exclusion(Some(rule)));
        let failed = offer(&kernel, 1).remove(0);
        placed_before(&kernel, move |kernel| {
            assert!(update(kernel, &failed, TaskState::Failed).excluded.is_some());
        });
    });
}

/// Goal: the same for failures that are applied together, with so many handlers that no version is free. Method: three
/// failures, each of which excludes an agent; three idle handlers pin other versions.
#[test]
fn exclusions_hold_with_many_handlers() {
    explore("agents/exclude-crowd", Some(2), || {
        let rule = ExclusionRule { failures: 1, ..ExclusionRule::default() };
        let kernel = kernel(config().exclusion(Some(rule)));
        let failed = offer(&kernel, 3);
        let mut idle: Vec<Handler> = (0..3).map(|_| kernel.handler()).collect();
        for (handler, limit) in idle.iter_mut().zip([9, 8, 7]) {
            offer_to(handler, "S0", 0);
            kernel.set_executor_limit(Some(limit)).unwrap();
        }
        placed_before(&kernel, move |kernel| {
            let end = |name| StatusUpdate::new(name, TaskState::Failed);
            let updates: Vec<StatusUpdate<'_>> = failed.iter().map(|name| end(name)).collect();
            let mut outcomes = Vec::new();
            kernel.status_updates(&updates, NOW, &mut outcomes);
            assert!(outcomes.iter().all(|outcome| outcome.excluded.is_some()));
        });
    });
}

/// Goal: an agent on which an executor failed is used last until it gets another one, also by a batch that is planned
/// again meanwhile. Method: one failed on S0; S0 and S1 are offered for three executors while plans are invalidated.
#[test]
fn an_agent_that_failed_comes_last_when_planned_anew() {
    explore("agents/failed-replan", Some(2), || {
        let last = Compatibility { replace_elsewhere: true, ..Compatibility::default() };
        let kernel = kernel(config().executor_limit(Some(4)).compatibility(last));
        // Allocates cells for all of them before the threads start.
        finish_all(&kernel, &offer_from(&kernel, "S2", 4));
        assert_eq!(offer_from(&kernel, "S2", 1).len(), 1);
        let failed = offer(&kernel, 1).remove(0);
        update(&kernel, &failed, TaskState::Failed);
        let there = kernel.clone();
        let mut handler = kernel.handler();
        race(
            move || {
                let mut decisions = Decisions::new();
                offer_of("S0", 2, |s0| {
                    offer_of("S1", 2, |s1| {
                        handler.resource_offers(&[s0[0], s1[0]], NOW, &mut decisions);
                    });
                });
                assert_eq!(decisions.executors(), 3);
            },
            move || there.0.policy.invalidate_plans(&there.0.admission),
        );
        let agents = &kernel.0.agents;
        let on = |id| agents.executors(agents.find(id).unwrap());
        assert_eq!(
            (on("S0"), on("S1")),
            (1, 2),
            "executors on the agent that failed, on the other"
        );
    });
}

/// Goal: no recorded suspicion is lost: the agent is not forgotten, or known again. Method: both at once.
#[test]
fn a_suspect_agent_is_not_forgotten() {
    explore("agents/suspect-retire", None, || {
        let (agents, key) = one_agent();
        let (here, there) = (Arc::clone(&agents), Arc::clone(&agents));
        let (suspect, retired) =
            race(move || here.suspect("S0", LATER, NOW), move || there.retire(key, NOW));
        let suspect = suspect.unwrap();
        assert_eq!(suspect == key, !retired);
        assert_eq!(agents.find("S0"), Some(suspect));
        assert_eq!(agents.reserve(suspect, 1, NOW), Err(AgentRefusal::Suspect(LATER)));
    });
}

/// Goal: a suspicion doesn't apply to another agent that has the cell now. Method: the agent is forgotten and another
/// one inserted while it is suspected.
#[test]
fn a_suspicion_is_of_its_agent_alone() {
    explore("agents/suspect-reuse", Some(3), || {
        let (agents, old) = one_agent();
        let (here, there) = (Arc::clone(&agents), Arc::clone(&agents));
        let (suspect, other) = race(
            move || here.suspect("S0", LATER, NOW),
            move || {
                there.retire(old, NOW);
                there.find_or_insert("S1", "host", NOW).unwrap()
            },
        );
        assert_eq!(agents.reserve(other, 1, NOW), Ok(false));
        let suspect = suspect.unwrap();
        assert_eq!(agents.find("S0"), Some(suspect));
        assert_eq!(agents.reserve(suspect, 1, NOW), Err(AgentRefusal::Suspect(LATER)));
    });
}

/// An executor is placed on an agent, fails as `fail` says, and is released, while `forget` forgets the agent and
/// returns whether it did. Not both may succeed.
fn fail_and_forget(fail: fn(&AgentTable, AgentKey), forget: fn(&AgentTable, AgentKey) -> bool) {
    let (agents, key) = one_agent();
    let (here, there) = (Arc::clone(&agents), agents);
    let (placed, forgotten) = race(
        move || {
            let placed = here.reserve(key, 1, NOW).is_ok();
            if placed {
                fail(&here, key);
                here.release(key.index(), 1);
            }
            placed
        },
        move || forget(&there, key),
    );
    assert!(!(placed && forgotten), "the failure was forgotten with its agent");
}

/// Goal: a failure is not forgotten with its agent. Method: an executor is placed, fails and is released while the
/// agent is forgotten: the word has the same value as before.
#[test]
fn a_failure_keeps_its_agent() {
    explore("agents/retire-failure", None, || {
        let fail = |agents: &AgentTable, key: AgentKey| {
            let rule = ExclusionRule { failures: 2, ..ExclusionRule::default() };
            agents.record_failure(key.index(), Some(&rule), NOW);
        };
        fail_and_forget(fail, |agents, key| agents.retire(key, NOW));
    });
}

/// Goal: the same for the failure mark, if failures aren't counted. Method: the same with the mark alone, and a sweep.
#[test]
fn the_mark_of_a_failure_keeps_its_agent() {
    explore("agents/sweep-failure", None, || {
        let fail = |agents: &AgentTable, key: AgentKey| {
            let _until = agents.record_failure(key.index(), None, LATER);
        };
        fail_and_forget(fail, |agents, _| agents.sweep(LATER, LATER, &|| false) > 0);
    });
}

/// Goal: offers of an agent are used though it is being forgotten, however long that takes. Method: it is offered three
/// times while agents are swept; the sweep may come between planning and reservation of one batch.
#[test]
fn offers_of_an_agent_half_forgotten_are_used() {
    explore("agents/sweep-offer", Some(2), || {
        let kernel = kernel(config());
        let there = kernel.clone();
        let mut handler = kernel.handler();
        let (placed, _) = race(
            move || [(); 3].map(|()| offer_to(&mut handler, "S0", 1).len()),
            move || there.tick(SWEPT).agents_forgotten,
        );
        assert!(placed.iter().sum::<usize>() >= 2, "batches were refused: {placed:?}");
        kernel.check().unwrap();
    });
}

/// An executor ends, its agent is forgotten and another gets its cell, while `ask` returns an executor and its agent.
fn targets_and_sweep(ask: fn(&Kernel) -> Vec<Target>) {
    let kernel = kernel(config());
    let executor = offer(&kernel, 1).remove(0);
    let (here, there) = (kernel.clone(), kernel);
    let ((), targets) = race(
        move || {
            finish(&here, &executor);
            here.tick(SWEPT);
            here.0.agents.find_or_insert("S1", "host", SWEPT);
        },
        move || ask(&there),
    );
    assert!(targets.iter().all(|target| *target.agent_id == *"S0"), "{targets:?}");
}

/// Goal: the cluster is asked about an executor on its own agent. Method: the executor ends and the agent is forgotten
/// during reconciliation.
#[test]
fn executors_are_asked_about_on_their_own_agent() {
    explore("agents/sweep-reconcile", Some(3), || {
        targets_and_sweep(|kernel| kernel.reconcile_all(NOW));
    });
}
