//! An agent's word: placement against exclusion, and against being forgotten.

use std::time::Duration;

use loom::sync::Arc;

use super::scenes::{
    SWEPT, config, finish, finish_all, kernel, offer, offer_from, offer_of, offer_to, update,
};
use super::{explore, race};
use crate::config::{Conduct, ExclusionRule};
use crate::kernel::state::agents::{AgentKey, Agents, Refusal};
use crate::time::Timestamp;
use crate::{Decisions, Handler, Kernel, Scope, StatusUpdate, Target, TaskState};

const NOW: Timestamp = Timestamp::from_millis(1000);
const LATER: Timestamp = Timestamp::from_millis(5000);

fn one_agent() -> (Arc<Agents>, AgentKey) {
    let agents = Agents::new();
    let key = agents.find_or_insert("S0", "host", NOW).unwrap();
    (Arc::new(agents), key)
}

/// Goal: once an exclusion has taken effect nothing is placed on the agent. Method: a failure and a placement at once;
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
                assert!(there.count_failure(key.index(), &rule, NOW).is_some());
                there.executors(key)
            },
        );
        assert_eq!(agents.executors(key), after_exclusion);
        assert_eq!(u32::from(placed), after_exclusion);
        assert!(matches!(agents.reserve(key, 1, NOW), Err(Refusal::Excluded(_))));
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

/// Goal: a late offer of a forgotten agent doesn't count on another that has its cell now. Method: the cell is given
/// to another agent while the old key is used.
#[test]
fn an_old_key_counts_on_nobody() {
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

/// Mutant: a late offer goes by the cell alone.
#[test]
#[ignore = "mutant"]
fn mutant_cell_without_generation() {
    explore("mutant agents/reuse-reserve", None, || {
        let (agents, old) = one_agent();
        // The key that the cell's next agent will have.
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

/// Goal: lifting an exclusion that has run out doesn't lift one that begins at the same time. Method: a placement on an
/// agent whose exclusion is over, and a further failure.
#[test]
fn an_old_exclusions_end_is_not_a_new_ones() {
    explore("agents/lift-exclude", None, || {
        let second = Some(Duration::from_secs(1));
        let rule = ExclusionRule { failures: 1, expiry: second, ..ExclusionRule::default() };
        let (agents, key) = one_agent();
        agents.reserve(key, 1, NOW).unwrap();
        assert!(agents.count_failure(key.index(), &rule, NOW).is_some());
        let (here, there) = (Arc::clone(&agents), Arc::clone(&agents));
        let (placed, ()) = race(
            move || here.reserve(key, 1, LATER).is_ok(),
            move || assert!(there.count_failure(key.index(), &rule, LATER).is_some()),
        );
        assert_eq!(agents.executors(key), 1 + u32::from(placed));
        assert!(matches!(agents.reserve(key, 1, LATER), Err(Refusal::Excluded(_))));
    });
}

/// Goal: of two failures at once both count. Method: the second is one too many, whichever that is.
#[test]
fn two_failures_at_once_are_two() {
    explore("agents/fail-fail", None, || {
        let rule = ExclusionRule { failures: 2, ..ExclusionRule::default() };
        let (agents, key) = one_agent();
        let (here, there) = (Arc::clone(&agents), Arc::clone(&agents));
        let (one, other) = race(
            move || here.count_failure(key.index(), &rule, NOW).is_some(),
            move || there.count_failure(key.index(), &rule, NOW).is_some(),
        );
        assert!(one ^ other);
        assert!(matches!(agents.reserve(key, 1, NOW), Err(Refusal::Excluded(_))));
    });
}

/// Goal: two threads that meet an agent at once meet the same. Method: both; the cell that is too many comes back.
#[test]
fn an_agent_is_met_once() {
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

/// A sweep for agents that were not seen since [`LATER`], while `find_or_insert` meets one then, in a cell whose last agent was
/// seen before.
fn meet_and_sweep(find_or_insert: fn(&Agents)) {
    let (agents, gone) = one_agent();
    assert!(agents.retire(gone, NOW));
    let (here, there) = (Arc::clone(&agents), Arc::clone(&agents));
    let (swept, ()) =
        race(move || here.sweep(LATER, LATER, &|| false), move || find_or_insert(&there));
    assert_eq!(swept, 0, "a new agent was taken for an old one");
    assert!(agents.find("S1").is_some());
}

/// Goal: an agent that was just met is not forgotten for what its cell's last agent left there. Method: it is met while
/// old ones are forgotten.
#[test]
fn a_new_agent_is_not_an_old_one() {
    explore("agents/insert-sweep", None, || {
        meet_and_sweep(|agents| {
            agents.find_or_insert("S1", "host", LATER).unwrap();
        });
    });
}

/// Mutant: that it was seen is noted when it can be found already.
#[test]
#[ignore = "mutant"]
fn mutant_noted_too_late() {
    explore("mutant agents/insert-sweep", None, || {
        meet_and_sweep(|agents| {
            let key = agents.find_or_insert("S1", "host", NOW).unwrap();
            agents.record_seen(key, LATER);
        });
    });
}

/// Goal: an agent that is met while it is forgotten is either there, or a placement on it fails. Method: both at once;
/// then the map and the cells agree.
#[test]
fn meeting_and_forgetting_agree() {
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

/// Goal: once a suspicion has been noted nothing is placed on the agent before it is over. Method: a suspicion and a
/// placement at once; the executors counted after the suspicion are those at the end.
#[test]
fn nothing_is_placed_after_a_suspicion() {
    explore("agents/suspect-reserve", None, || {
        let (agents, key) = one_agent();
        let (here, there) = (Arc::clone(&agents), Arc::clone(&agents));
        let (placed, after_suspicion) = race(
            move || here.reserve(key, 1, NOW).is_ok(),
            move || {
                assert_eq!(there.suspect("S0", LATER), Some(key));
                there.executors(key)
            },
        );
        assert_eq!(u32::from(placed), after_suspicion);
        assert_eq!(agents.reserve(key, 1, NOW), Err(Refusal::Suspect(LATER)));
        assert_eq!(agents.reserve(key, 1, LATER), Ok(false));
    });
}

/// One executor's core is offered while `report` bars the agent; what was placed is what is counted once it has
/// returned. Returns how many that are.
fn placed_before(kernel: &Kernel, report: impl FnOnce(&Kernel) + Send + 'static) -> u32 {
    let there = kernel.clone();
    let mut handler = kernel.handler();
    let (placed, counted) = race(
        move || offer_to(&mut handler, "S0", 1).len() as u32,
        move || {
            report(&there);
            there.0.admission.load_latest().executors()
        },
    );
    assert_eq!(placed, counted, "placed after the report");
    kernel.check().unwrap();
    placed
}

/// Goal: once a loss has been reported nothing is started on the agent, also by a batch that had taken its place there
/// before, and all that was started is in doubt. Method: a batch and a report; the executors that the books count when
/// the report has returned are those at the end.
#[test]
fn nothing_is_started_on_a_lost_agent() {
    explore("agents/lost-launch", Some(3), || {
        let kernel = kernel(config());
        let placed = placed_before(&kernel, |kernel| drop(kernel.agent_lost("S0", NOW)));
        assert_eq!(kernel.reconcile(Scope::Doubtful, NOW).len() as u32, placed);
    });
}

/// Goal: once an update that excludes an agent has been applied nothing is started there, also by a batch that had
/// taken its place before. Method: the same with the last failure that the rule allows, and with the agent's word
/// beside it.
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

/// Goal: so it is with failures that are applied together, in a crowd of handlers that leaves no version free. Method:
/// three failures, each one too many; three idle handlers follow other policies.
#[test]
fn exclusions_come_through_a_crowd() {
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

/// Goal: an agent on which an executor failed comes last until it gets another one, also for a batch that is planned
/// anew meanwhile. Method: one failed on S0; S0 and S1 are offered for three executors while plans are invalidated.
#[test]
fn an_agent_that_failed_comes_last_when_planned_anew() {
    explore("agents/failed-replan", Some(2), || {
        let last = Conduct { replace_elsewhere: true, ..Conduct::default() };
        let kernel = kernel(config().executor_limit(Some(4)).conduct(last));
        // So there are cells for all before the threads.
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

/// Goal: an agent is forgotten or suspect, never both: no suspicion that was noted is lost. Method: both at once.
#[test]
fn a_suspect_agent_is_not_forgotten() {
    explore("agents/suspect-retire", None, || {
        let (agents, key) = one_agent();
        let (here, there) = (Arc::clone(&agents), Arc::clone(&agents));
        let (suspect, retired) =
            race(move || here.suspect("S0", LATER), move || there.retire(key, NOW));
        assert!(suspect.is_some() ^ retired);
        assert_eq!(agents.find("S0"), suspect);
    });
}

/// Goal: a suspicion doesn't fall on another agent that has the cell now. Method: the agent is forgotten, and the other
/// met, while it is suspected.
#[test]
fn a_suspicion_is_of_its_agent_alone() {
    explore("agents/suspect-reuse", None, || {
        let (agents, old) = one_agent();
        let (here, there) = (Arc::clone(&agents), Arc::clone(&agents));
        let (suspect, other) = race(
            move || here.suspect("S0", LATER),
            move || {
                there.retire(old, NOW);
                there.find_or_insert("S1", "host", NOW).unwrap()
            },
        );
        assert_eq!(agents.reserve(other, 1, NOW), Ok(false));
        assert!(suspect.is_none_or(|key| key == old));
    });
}

/// An executor is placed on an agent, fails as `fail` says, and is gone; meanwhile the agent is forgotten by `forget`,
/// which returns whether it was. Not both.
fn fail_and_forget(fail: fn(&Agents, AgentKey), forget: fn(&Agents, AgentKey) -> bool) {
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

/// Goal: a failure is not forgotten with its agent. Method: an executor is placed, fails and is gone while the agent is
/// forgotten: the word is as it was, and yet not the same.
#[test]
fn a_failure_keeps_its_agent() {
    explore("agents/retire-failure", None, || {
        let fail = |agents: &Agents, key: AgentKey| {
            let rule = ExclusionRule { failures: 2, ..ExclusionRule::default() };
            agents.count_failure(key.index(), &rule, NOW);
        };
        fail_and_forget(fail, |agents, key| agents.retire(key, NOW));
    });
}

/// Goal: nor is it if failures aren't counted: that one failed lately is remembered, too. Method: the same with the
/// mark alone, and a sweep.
#[test]
fn the_mark_of_a_failure_keeps_its_agent() {
    explore("agents/sweep-failure", None, || {
        let fail = |agents: &Agents, key: AgentKey| agents.mark_failed(key.index(), LATER);
        fail_and_forget(fail, |agents, _| agents.sweep(LATER, LATER, &|| false) > 0);
    });
}

/// Goal: offers of an agent are used though it is just being forgotten, and however long that takes. Method: it is
/// offered three times while agents are swept; the sweep can come between look and reservation of one batch.
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

/// An executor ends, its agent is forgotten and another gets its cell, while `ask` returns whom to tell of.
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
/// while reconciliation is asked for.
#[test]
fn executors_are_asked_about_on_their_own_agent() {
    explore("agents/sweep-reconcile", Some(3), || {
        targets_and_sweep(|kernel| kernel.reconcile_all(NOW));
    });
}
