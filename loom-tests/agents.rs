//! An agent's word: placement against exclusion, and against being forgotten.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;

use super::explore;
use crate::config::ExclusionRule;
use crate::kernel::agents::{AgentKey, Agents, Barred};
use crate::time::Timestamp;

const NOW: Timestamp = Timestamp::from_millis(1000);

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
        let other = Arc::clone(&agents);
        let placed = thread::spawn(move || other.reserve(key, 1, NOW).is_ok());
        assert!(agents.count_failure(key.index(), &rule, NOW).is_some());
        let after_exclusion = agents.executors(key);
        let placed = placed.join().unwrap();
        assert_eq!(agents.executors(key), after_exclusion);
        assert_eq!(u32::from(placed), after_exclusion);
        assert!(matches!(agents.reserve(key, 1, NOW), Err(Barred::Excluded(_))));
    });
}

/// Mutant: the exclusion is in a word of its own.
#[test]
#[ignore = "mutant"]
fn mutant_exclusion_apart() {
    explore("mutant agents/exclude-reserve", None, || {
        let words = Arc::new((AtomicU32::new(0), AtomicU32::new(0)));
        let other = Arc::clone(&words);
        let placed = thread::spawn(move || {
            if other.1.load(Ordering::SeqCst) == 0 {
                other.0.fetch_add(1, Ordering::SeqCst);
            }
        });
        words.1.fetch_add(1, Ordering::SeqCst);
        let after_exclusion = words.0.fetch_add(0, Ordering::SeqCst);
        placed.join().unwrap();
        assert_eq!(words.0.load(Ordering::SeqCst), after_exclusion);
    });
}

/// Goal: an agent is forgotten or gets an executor from a late offer, never both. Method: both at once.
#[test]
fn an_agent_in_use_is_not_forgotten() {
    explore("agents/retire-reserve", None, || {
        let (agents, key) = one_agent();
        let other = Arc::clone(&agents);
        let placed = thread::spawn(move || other.reserve(key, 1, NOW).is_ok());
        let retired = agents.retire(key, NOW);
        let placed = placed.join().unwrap();
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
        let other = Arc::clone(&agents);
        let late = thread::spawn(move || other.reserve(old, 1, NOW).is_ok());
        let retired = agents.retire(old, NOW);
        let new = agents.meet("S1", "host", NOW).unwrap();
        let late = late.join().unwrap();
        assert!(retired ^ late);
        assert_eq!(agents.executors(new), 0);
    });
}

/// Mutant: forgetting looks at the count and then clears, and cells have no generation.
#[test]
#[ignore = "mutant"]
fn mutant_forget_in_two_steps() {
    explore("mutant agents/retire-reserve", None, || {
        let executors = Arc::new(AtomicU32::new(0));
        let other = Arc::clone(&executors);
        let late = thread::spawn(move || other.fetch_add(1, Ordering::AcqRel));
        if executors.load(Ordering::Acquire) == 0 {
            executors.store(0, Ordering::Release);
        }
        late.join().unwrap();
        assert_eq!(executors.load(Ordering::Acquire), 1, "an executor's count was cleared");
    });
}
