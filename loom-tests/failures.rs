//! An agent's failures: how they are counted and marked, the exclusions that they cause, and readmissions.

use std::time::Duration;

use loom::sync::Arc;

use super::agents::{LATER, NOW, one_agent};
use super::{explore, race};
use crate::config::ExclusionRule;
use crate::kernel::state::agents::AgentRefusal;
use crate::time::Timestamp;

/// Goal: clearing an exclusion that has ended doesn't clear one that begins concurrently. Method: a placement on an
/// agent whose exclusion has ended, and a further failure.
#[test]
fn an_old_exclusions_end_is_not_a_new_ones() {
    explore("agents/lift-exclude", None, || {
        let second = Some(Duration::from_secs(1));
        let rule = ExclusionRule { failures: 1, expiry: second, ..ExclusionRule::default() };
        let (agents, key) = one_agent();
        agents.reserve(key, 1, NOW).unwrap();
        assert!(agents.record_failure(key.index(), Some(&rule), NOW).is_some());
        let (here, there) = (Arc::clone(&agents), Arc::clone(&agents));
        let (placed, ()) = race(
            move || here.reserve(key, 1, LATER).is_ok(),
            move || assert!(there.record_failure(key.index(), Some(&rule), LATER).is_some()),
        );
        assert_eq!(agents.executors(key), 1 + u32::from(placed));
        assert!(matches!(agents.reserve(key, 1, LATER), Err(AgentRefusal::Excluded(_))));
    });
}

/// Goal: two concurrent failures both count. Method: the second one, whichever it is, excludes the agent.
#[test]
fn two_failures_at_once_are_two() {
    explore("agents/fail-fail", None, || {
        let rule = ExclusionRule { failures: 2, ..ExclusionRule::default() };
        let (agents, key) = one_agent();
        let (here, there) = (Arc::clone(&agents), Arc::clone(&agents));
        let (one, other) = race(
            move || here.record_failure(key.index(), Some(&rule), NOW).is_some(),
            move || there.record_failure(key.index(), Some(&rule), NOW).is_some(),
        );
        assert!(one ^ other);
        assert!(matches!(agents.reserve(key, 1, NOW), Err(AgentRefusal::Excluded(_))));
    });
}

/// Goal: of an exclusion and a readmission, one comes last: the agent is excluded or not, and a later exclusion has an
/// end of its own. Method: both at once; a shorter exclusion follows.
#[test]
fn a_readmission_ends_a_whole_exclusion() {
    explore("agents/exclude-readmit", None, || {
        let rule = |millis| {
            let expiry = Some(Duration::from_millis(millis));
            ExclusionRule { failures: 1, expiry, ..ExclusionRule::default() }
        };
        let (agents, key) = one_agent();
        agents.reserve(key, 1, NOW).unwrap();
        let (here, there) = (Arc::clone(&agents), Arc::clone(&agents));
        let (until, readmitted) = race(
            move || here.record_failure(key.index(), Some(&rule(4000)), NOW),
            move || there.readmit("S0", NOW),
        );
        assert_eq!(until, Some(LATER));
        let again = agents.record_failure(key.index(), Some(&rule(1)), NOW).unwrap();
        let expected = if readmitted { Timestamp::from_millis(1001) } else { LATER };
        assert_eq!(again, expected);
        assert_eq!(agents.reserve(key, 1, NOW), Err(AgentRefusal::Excluded(expected)));
        assert!(agents.readmit("S0", NOW));
        assert_eq!((agents.reserve(key, 1, NOW), agents.executors(key)), (Ok(false), 2));
    });
}

/// Goal: of a failure and a readmission, one comes last: afterwards the failure is counted and marked, or neither.
/// Method: a failure that doesn't exclude yet and a readmission at once; then the mark is read, and a second failure
/// excludes the agent if the first is counted.
#[test]
fn a_readmission_forgets_a_whole_failure() {
    explore("agents/fail-readmit", None, || {
        let rule = ExclusionRule { failures: 2, ..ExclusionRule::default() };
        let (agents, key) = one_agent();
        agents.reserve(key, 1, NOW).unwrap();
        let (here, there) = (Arc::clone(&agents), Arc::clone(&agents));
        let (until, readmitted) = race(
            move || here.record_failure(key.index(), Some(&rule), NOW),
            move || there.readmit("S0", NOW),
        );
        assert_eq!((until, readmitted), (None, false));
        let is_marked = agents.reserve(key, 1, NOW).unwrap();
        let rule = ExclusionRule { failures: 2, ..ExclusionRule::default() };
        let is_counted = agents.record_failure(key.index(), Some(&rule), NOW).is_some();
        assert_eq!(is_marked, is_counted);
    });
}
