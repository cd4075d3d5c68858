//! Exclusion, limits and what may be changed while executors run.

use offermill::config::ExclusionRule;
use offermill::constraint::{Mismatch, Unmet};
use offermill::{Reason, TaskState, Timestamp, UpdateReason};

use super::House;
use crate::world::{Setup, Sheet, at, secs};

const HOUR: u64 = 3_600_000;

/// Goal: two failures within an hour exclude an agent for an hour, and it is told until when. Method: the default
/// rule, to the millisecond.
#[test]
fn two_failures_exclude_for_an_hour() {
    let mut house = House::new(&Setup::default());
    let first = house.start_on("S1", 0);
    let second = house.start_on("S1", 0);
    assert_eq!(house.tell(first, TaskState::Failed, 1000).excluded, None);
    let exclusion = house.tell(second, TaskState::Failed, 2000).excluded.unwrap();
    assert_eq!((&*exclusion.agent_id, exclusion.until), ("S1", at(2000 + HOUR)));
    let until = exclusion.until;
    assert_eq!(house.refused_on("S1", 3000), Reason::AgentExcluded { until });
    assert_eq!(house.declines()[0].refuse, secs(120));
    assert_eq!(house.refused_on("S1", 2000 + HOUR - 7), Reason::AgentExcluded { until });
    assert_eq!(house.declines()[0].refuse.as_millis(), 7, "no longer than the exclusion lasts");
    house.start_on("S2", 3000);
    house.start_on("S1", 2000 + HOUR);
}

/// Goal: a duplicate failure counts once, and ends that are not the agent's fault don't count. Method: many of them,
/// then the one failure that is still missing.
#[test]
fn only_failures_of_the_agent_count_and_each_once() {
    let mut house = House::new(&Setup::default());
    let first = house.start_on("S1", 0);
    for _ in 0..3 {
        assert_eq!(house.tell(first, TaskState::Failed, 1).excluded, None);
    }
    for (state, reason) in [
        (TaskState::Finished, UpdateReason::Other),
        (TaskState::Killed, UpdateReason::Other),
        (TaskState::Gone, UpdateReason::Other),
        (TaskState::Dropped, UpdateReason::InvalidOffers),
        (TaskState::Failed, UpdateReason::Preempted),
        (TaskState::Failed, UpdateReason::AgentDraining),
        (TaskState::Lost, UpdateReason::AgentDisconnected),
        (TaskState::Unreachable, UpdateReason::Other),
    ] {
        let id = house.start_on("S1", 2);
        assert_eq!(house.tell_because(id, state, reason, 2).excluded, None, "{state:?}");
    }
    let killed = house.start_on("S1", 3);
    house.kernel.kill_executors([killed]);
    assert_eq!(house.tell(killed, TaskState::Failed, 3).excluded, None, "it was asked to end");
    let last = house.start_on("S1", 4);
    assert!(house.tell(last, TaskState::Failed, 4).excluded.is_some());
}

/// Goal: an agent can be excluded for ever. Method: no expiry; an offer at the end of time; a later, shorter rule.
#[test]
fn an_exclusion_can_be_for_ever() {
    let rule = ExclusionRule { failures: 1, window: secs(1), expiry: None };
    let setup = Setup { exclusion: Some(rule), ..Setup::default() };
    let mut house = House::new(&setup);
    let (first, second) = (house.start_on("S1", 0), house.start_on("S1", 0));
    let until = house.tell(first, TaskState::Failed, 1).excluded.unwrap().until;
    assert_eq!(until, Timestamp::MAX);
    let shorter = ExclusionRule { expiry: Some(secs(1)), ..rule };
    house.kernel.reconfigure(Setup { exclusion: Some(shorter), ..setup }.config());
    let again = house.tell(second, TaskState::Failed, 2).excluded.unwrap().until;
    assert_eq!(again, Timestamp::MAX, "a failure doesn't shorten an exclusion");
    assert_eq!(house.refused_on("S1", u64::MAX - 1), Reason::AgentExcluded { until });
    house.kernel.tick(at(HOUR * 9999));
    assert_eq!(house.kernel.agents_known(), 1, "nor is it forgotten");
}

/// Goal: failures count as long as their window says, even on an agent that no offer came from for long. Method: two
/// failures with half an hour between, and a tick.
#[test]
fn failures_outlive_the_memory_of_an_idle_agent() {
    let mut house = House::new(&Setup::default());
    let first = house.start_on("S1", 0);
    house.tell(first, TaskState::Failed, 0);
    assert_eq!(house.kernel.tick(at(HOUR / 2)).agents_forgotten, 0);
    let second = house.start_on("S1", HOUR / 2);
    assert!(house.tell(second, TaskState::Failed, HOUR / 2).excluded.is_some());
    assert_eq!(house.kernel.tick(at(4 * HOUR)).agents_forgotten, 1);
}

/// Goal: a limit of 0 at the start waits for demand; lowering the limit kills nobody; no limit is no limit. Method:
/// up and down.
#[test]
fn the_executor_limit_rules_starts_only() {
    let mut house = House::new(&Setup { limit: Some(0), ..Setup::default() });
    assert_eq!(house.refused_on("S1", 0), Reason::ExecutorLimit { limit: 0 });
    house.kernel.set_executor_limit(Some(3)).unwrap();
    let placed = house.offer(&[Sheet::new("S1", 9.0, 900.0)], 1);
    assert_eq!((placed.len(), house.kernel.wanted()), (3, 0));
    house.kernel.set_executor_limit(Some(1)).unwrap();
    assert_eq!(house.executors(), 3);
    house.tell(placed[0], TaskState::Finished, 2);
    house.tell(placed[1], TaskState::Finished, 2);
    assert_eq!(house.refused_on("S1", 3), Reason::ExecutorLimit { limit: 1 });
    house.kernel.set_executor_limit(None).unwrap();
    assert_eq!(house.offer(&[Sheet::new("S1", 9.0, 900.0)], 4).len(), 9);
    let error = house.kernel.set_executor_limit(Some(u32::MAX)).unwrap_err();
    assert!(error.to_string().starts_with("executor limit is"), "{error}");
}

/// Goal: new settings are in force at once, and running executors keep what they have. Method: a new constraint,
/// size and limit.
#[test]
fn settings_change_while_executors_run() {
    let mut house = House::new(&Setup::default());
    house.start_on("S1", 0);
    let setup = Setup {
        zones: vec!["east"],
        executor_cores: Some(2000),
        limit: Some(2),
        ..Setup::default()
    };
    house.kernel.reconfigure(setup.config());
    assert_eq!(house.kernel.executor_limit(), Some(2));
    assert_eq!(house.kernel.config(), setup.config());
    let unmet = Unmet { condition: 0, mismatch: Mismatch::Absent };
    assert_eq!(house.refused_on("S1", 1), Reason::ConstraintUnmet(unmet));
    assert_eq!(house.offer(&[Sheet::new("S1", 4.0, 900.0).in_zone("east")], 1).len(), 1);
    assert_eq!(house.kernel.totals().cores.whole_cores(), 3);
    house.kernel.check().unwrap();
}

/// Goal: resources are sufficient when enough of what may be had runs. Method: a cap, a limit, neither.
#[test]
fn sufficient_is_a_share_of_what_may_be_had() {
    let mut house = House::new(&Setup { core_cap: Some(4000), ..Setup::default() });
    assert!(!house.kernel.sufficient_resources_registered(0.25));
    assert!(house.kernel.sufficient_resources_registered(0.0));
    let id = house.start_on("S1", 0);
    assert!(!house.kernel.sufficient_resources_registered(0.25), "it doesn't run yet");
    house.tell(id, TaskState::Running, 1);
    assert!(house.kernel.sufficient_resources_registered(0.25));
    assert!(!house.kernel.sufficient_resources_registered(0.26));
    house.kernel.reconfigure(Setup { limit: Some(2), ..Setup::default() }.config());
    assert!(house.kernel.sufficient_resources_registered(0.5));
    house.kernel.reconfigure(Setup::default().config());
    assert!(house.kernel.sufficient_resources_registered(1.0), "of nothing");
}

/// Goal: nothing is started for a while on an agent that was reported lost. Method: offers before and after.
#[test]
fn a_lost_agent_is_left_alone_for_ten_seconds() {
    let mut house = House::new(&Setup::default());
    house.start_on("S1", 0);
    house.kernel.agent_lost("S1", at(1000));
    assert_eq!(house.refused_on("S1", 9000), Reason::AgentSuspect { until: at(11_000) });
    assert_eq!(house.declines()[0].refuse, secs(2));
    house.start_on("S1", 11_000);
}

/// Goal: a dead subscription's offers are declined, and a new one numbers itself. Method: disconnect and return.
#[test]
fn subscriptions_end_and_begin() {
    let mut house = House::new(&Setup::default());
    assert_eq!(house.kernel.epoch(), 0);
    house.kernel.disconnected();
    assert_eq!(house.refused_on("S1", 0), Reason::Disconnected);
    assert_eq!(house.kernel.registered(), 1);
    house.start_on("S1", 1);
    assert_eq!((house.executors(), house.kernel.epoch()), (1, 1));
}
