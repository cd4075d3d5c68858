//! An agent's word: placement against exclusion, and against being forgotten.

use std::time::Duration;

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering};

use super::{explore, race};
use crate::config::ExclusionRule;
use crate::kernel::agents::{AgentKey, Agents, Barred};
use crate::sync::Map;
use crate::time::Timestamp;

const NOW: Timestamp = Timestamp::from_millis(1000);
const LATER: Timestamp = Timestamp::from_millis(5000);

fn one_agent() -> (Arc<Agents>, AgentKey) {
    let agents = Agents::new();
    let key = agents.meet("S0", "host", NOW).unwrap();
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
        assert!(matches!(agents.reserve(key, 1, NOW), Err(Barred::Excluded(_))));
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
            move || (there.retire(old, NOW), there.meet("S1", "host", NOW).unwrap()),
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
            same.meet("S1", "host", NOW).unwrap()
        };
        let (here, there) = (Arc::clone(&agents), Arc::clone(&agents));
        race(
            move || {
                let whoever = if here.opening(old, NOW).is_ok() { old } else { next };
                let _ = here.reserve(whoever, 1, NOW);
            },
            move || {
                there.retire(old, NOW);
                there.meet("S1", "host", NOW).unwrap();
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
        assert!(matches!(agents.reserve(key, 1, LATER), Err(Barred::Excluded(_))));
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
        assert!(matches!(agents.reserve(key, 1, NOW), Err(Barred::Excluded(_))));
    });
}

/// Goal: two threads that meet an agent at once meet the same. Method: both; the cell that is too many comes back.
#[test]
fn an_agent_is_met_once() {
    explore("agents/meet-meet", None, || {
        let (agents, gone) = one_agent();
        assert!(agents.retire(gone, NOW));
        let (here, there) = (Arc::clone(&agents), Arc::clone(&agents));
        let (one, other) = race(
            move || here.meet("S1", "host", NOW).unwrap(),
            move || there.meet("S1", "host", NOW).unwrap(),
        );
        assert_eq!(one, other);
        assert!(agents.reserve(one, 1, NOW).is_ok());
        assert_eq!((agents.len(), agents.views(NOW).count()), (1, 1));
    });
}

/// A sweep for agents that were not seen since [`LATER`], while `meet` meets one then, in a cell whose last agent was
/// seen before.
fn meet_and_sweep(meet: fn(&Agents)) {
    let (agents, gone) = one_agent();
    assert!(agents.retire(gone, NOW));
    let (here, there) = (Arc::clone(&agents), Arc::clone(&agents));
    let (swept, ()) = race(move || here.sweep(LATER, LATER), move || meet(&there));
    assert_eq!(swept, 0, "a new agent was taken for an old one");
    assert!(agents.find("S1").is_some());
}

/// Goal: an agent that was just met is not forgotten for what its cell's last agent left there. Method: it is met while
/// old ones are forgotten.
#[test]
fn a_new_agent_is_not_an_old_one() {
    explore("agents/meet-sweep", None, || {
        meet_and_sweep(|agents| {
            agents.meet("S1", "host", LATER).unwrap();
        });
    });
}

/// Mutant: that it was seen is noted when it can be found already.
#[test]
#[ignore = "mutant"]
fn mutant_noted_too_late() {
    explore("mutant agents/meet-sweep", None, || {
        meet_and_sweep(|agents| {
            let key = agents.meet("S1", "host", NOW).unwrap();
            agents.note_seen(key, LATER);
        });
    });
}

/// Goal: an agent that is met while it is forgotten is either there, or a placement on it fails. Method: both at once;
/// then the map and the cells agree.
#[test]
fn meeting_and_forgetting_agree() {
    explore("agents/meet-retire", None, || {
        let (agents, key) = one_agent();
        let (here, there) = (Arc::clone(&agents), Arc::clone(&agents));
        let (retired, met) =
            race(move || here.retire(key, NOW), move || there.meet("S0", "host", NOW).unwrap());
        assert!(retired);
        let found = agents.find("S0");
        assert!(found == Some(met) || met == key);
        assert_eq!(agents.reserve(met, 1, NOW).is_ok(), found == Some(met));
        assert_eq!((agents.len(), agents.views(NOW).count()), (found.iter().count(), agents.len()));
    });
}

/// Mutant: the entry goes first, and the cell only if it is idle.
#[test]
#[ignore = "mutant"]
fn mutant_entry_before_the_cell() {
    explore("mutant agents/meet-retire", None, || {
        let words = Arc::new((Map::<u32, u32>::new(), AtomicU32::new(0)));
        words.0.insert(1, 1);
        let (here, there) = (Arc::clone(&words), Arc::clone(&words));
        let (_, placed) = race(
            move || {
                here.0.remove(&1);
                here.1.compare_exchange(0, 9, Ordering::AcqRel, Ordering::Acquire).is_ok()
            },
            move || {
                let known = there.0.get(&1).is_some();
                let place = || there.1.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Acquire);
                known && place().is_ok()
            },
        );
        assert!(words.0.get(&1).is_some() || !placed, "an executor on nobody's agent");
    });
}
