//! Exclusion of agents, limits, and settings that change while executors run.

use offermill::config::{Compatibility, ExclusionRule};
use offermill::constraint::{Mismatch, Unmet};
use offermill::{DemandCall, Reason, TaskState, Timestamp, UpdateReason};

use super::Fixture;
use crate::world::{OfferData, Setup, at, secs};

const HOUR: u64 = 3_600_000;

/// Goal: two failures within an hour exclude an agent for an hour, and the reason says until when. Method: the default
/// rule, to the millisecond.
#[test]
fn two_failures_exclude_for_an_hour() {
    let mut fixture = Fixture::new(&Setup::default());
    let first = fixture.start_on("S1", 0);
    let second = fixture.start_on("S1", 0);
    assert_eq!(fixture.update(first, TaskState::Failed, 1000).excluded, None);
    let exclusion = fixture.update(second, TaskState::Failed, 2000).excluded.unwrap();
    assert_eq!((&*exclusion.agent_id, exclusion.until), ("S1", at(2000 + HOUR)));
    let until = exclusion.until;
    assert_eq!(fixture.refused_on("S1", 3000), Reason::AgentExcluded { until });
    assert_eq!(fixture.declines()[0].refuse, secs(120));
    assert_eq!(fixture.refused_on("S1", 2000 + HOUR - 7), Reason::AgentExcluded { until });
    assert_eq!(fixture.declines()[0].refuse.as_millis(), 7, "no longer than the exclusion lasts");
    fixture.start_on("S2", 3000);
    fixture.start_on("S1", 2000 + HOUR);
}

/// Goal: a duplicate failure counts once, and ends that are not the agent's fault don't count. Method: many of them,
/// then the one failure that is missing.
#[test]
fn only_failures_of_the_agent_count_and_each_once() {
    let mut fixture = Fixture::new(&Setup::default());
    let first = fixture.start_on("S1", 0);
    for _ in 0..3 {
        assert_eq!(fixture.update(first, TaskState::Failed, 1).excluded, None);
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
        let id = fixture.start_on("S1", 2);
        assert_eq!(fixture.update_because(id, state, reason, 2).excluded, None, "{state:?}");
    }
    let killed = fixture.start_on("S1", 3);
    fixture.kernel.kill_executors([killed]);
    assert_eq!(fixture.update(killed, TaskState::Failed, 3).excluded, None, "it was asked to end");
    let last = fixture.start_on("S1", 4);
    assert!(fixture.update(last, TaskState::Failed, 4).excluded.is_some());
}

/// Goal: an agent can be excluded without expiry. Method: no expiry; an offer at the end of time; a later rule with an
/// expiry.
#[test]
fn an_exclusion_can_be_for_ever() {
    let rule = ExclusionRule { failures: 1, window: secs(1), expiry: None };
    let setup = Setup { exclusion: Some(rule), ..Setup::default() };
    let mut fixture = Fixture::new(&setup);
    let (first, second) = (fixture.start_on("S1", 0), fixture.start_on("S1", 0));
    let until = fixture.update(first, TaskState::Failed, 1).excluded.unwrap().until;
    assert_eq!(until, Timestamp::MAX);
    let shorter = ExclusionRule { expiry: Some(secs(1)), ..rule };
    fixture.kernel.reconfigure(Setup { exclusion: Some(shorter), ..setup }.config());
    let again = fixture.update(second, TaskState::Failed, 2).excluded.unwrap().until;
    assert_eq!(again, Timestamp::MAX, "a failure doesn't shorten an exclusion");
    assert_eq!(fixture.refused_on("S1", u64::MAX - 1), Reason::AgentExcluded { until });
    fixture.kernel.tick(at(HOUR * 9999));
    assert_eq!(fixture.kernel.agents_known(), 1, "nor is it forgotten");
}

/// Goal: failures count for the whole window, even on an agent without offers for a long time. Method: two failures
/// half an hour apart, and a tick.
#[test]
fn failures_outlive_the_memory_of_an_idle_agent() {
    let mut fixture = Fixture::new(&Setup::default());
    let first = fixture.start_on("S1", 0);
    fixture.update(first, TaskState::Failed, 0);
    assert_eq!(fixture.kernel.tick(at(HOUR / 2)).agents_forgotten, 0);
    let second = fixture.start_on("S1", HOUR / 2);
    assert!(fixture.update(second, TaskState::Failed, HOUR / 2).excluded.is_some());
    assert_eq!(fixture.kernel.tick(at(4 * HOUR)).agents_forgotten, 1);
}

/// Goal: a limit of 0 at the start waits for demand; a lower limit kills no executor; no limit means unlimited. Method:
/// raise and lower the limit.
#[test]
fn the_executor_limit_rules_starts_only() {
    let mut fixture = Fixture::new(&Setup { limit: Some(0), ..Setup::default() });
    assert_eq!(fixture.refused_on("S1", 0), Reason::ExecutorLimit { limit: 0 });
    fixture.kernel.set_executor_limit(Some(3)).unwrap();
    let placed = fixture.offer(&[OfferData::new("S1", 9.0, 900.0)], 1);
    assert_eq!((placed.len(), fixture.kernel.wanted()), (3, 0));
    fixture.kernel.set_executor_limit(Some(1)).unwrap();
    assert_eq!(fixture.executors(), 3);
    fixture.update(placed[0], TaskState::Finished, 2);
    fixture.update(placed[1], TaskState::Finished, 2);
    assert_eq!(fixture.refused_on("S1", 3), Reason::ExecutorLimit { limit: 1 });
    fixture.kernel.set_executor_limit(None).unwrap();
    assert_eq!(fixture.offer(&[OfferData::new("S1", 9.0, 900.0)], 4).len(), 9);
    let error = fixture.kernel.set_executor_limit(Some(u32::MAX)).unwrap_err();
    assert!(error.to_string().starts_with("executor limit is"), "{error}");
}

/// Goal: new settings apply at once, and running executors keep their resources. Method: a new constraint, size and
/// limit.
#[test]
fn settings_change_while_executors_run() {
    let mut fixture = Fixture::new(&Setup::default());
    fixture.start_on("S1", 0);
    let setup = Setup {
        zones: vec!["east"],
        executor_cores: Some(2000),
        limit: Some(2),
        ..Setup::default()
    };
    fixture.kernel.reconfigure(setup.config());
    assert_eq!(fixture.kernel.executor_limit(), Some(2));
    assert_eq!(fixture.kernel.config(), setup.config());
    let unmet = Unmet { condition: 0, mismatch: Mismatch::Absent };
    assert_eq!(fixture.refused_on("S1", 1), Reason::ConstraintUnmet(unmet));
    assert_eq!(fixture.offer(&[OfferData::new("S1", 4.0, 900.0).in_zone("east")], 1).len(), 1);
    assert_eq!(fixture.kernel.totals().cores.whole_cores(), 3);
    fixture.kernel.check().unwrap();
}

/// Goal: resources are sufficient when the configured share of the possible executors runs. Method: a cap, a limit,
/// neither.
#[test]
fn sufficient_is_a_share_of_what_may_be_had() {
    let mut fixture = Fixture::new(&Setup { core_cap: Some(4000), ..Setup::default() });
    assert!(!fixture.kernel.sufficient_resources_registered(0.25));
    assert!(fixture.kernel.sufficient_resources_registered(0.0));
    let id = fixture.start_on("S1", 0);
    assert!(!fixture.kernel.sufficient_resources_registered(0.25), "it doesn't run yet");
    fixture.update(id, TaskState::Running, 1);
    assert!(fixture.kernel.sufficient_resources_registered(0.25));
    assert!(!fixture.kernel.sufficient_resources_registered(0.26));
    fixture.kernel.reconfigure(Setup { limit: Some(2), ..Setup::default() }.config());
    assert!(fixture.kernel.sufficient_resources_registered(0.5));
    fixture.kernel.reconfigure(Setup::default().config());
    assert!(fixture.kernel.sufficient_resources_registered(1.0), "of nothing");
}

/// Goal: no executor is placed for a while on an agent that was reported lost. Method: offers before and after.
#[test]
fn a_lost_agent_is_left_alone_for_ten_seconds() {
    let mut fixture = Fixture::new(&Setup::default());
    fixture.start_on("S1", 0);
    fixture.kernel.agent_lost("S1", at(1000));
    assert_eq!(fixture.refused_on("S1", 9000), Reason::AgentSuspect { until: at(11_000) });
    assert_eq!(fixture.declines()[0].refuse, secs(2));
    fixture.start_on("S1", 11_000);
}

/// Goal: offers of an ended subscription are declined, and a new subscription has a new number. Method: disconnect and
/// register.
#[test]
fn subscriptions_end_and_begin() {
    let mut fixture = Fixture::new(&Setup::default());
    assert_eq!(fixture.kernel.epoch(), 0);
    fixture.kernel.disconnected();
    assert_eq!(fixture.refused_on("S1", 0), Reason::Disconnected);
    assert_eq!(fixture.kernel.registered(), 1);
    fixture.start_on("S1", 1);
    assert_eq!((fixture.executors(), fixture.kernel.epoch()), (1, 1));
}

/// Goal: the settings that a kernel returns are those in force, so that changing one of them keeps the others. Method:
/// set the limit, then replace the settings by themselves.
#[test]
fn settings_returned_include_the_limit_in_force() {
    let fixture = Fixture::new(&Setup::default());
    let kernel = &fixture.kernel;
    kernel.registered();
    kernel.set_executor_limit(Some(2)).unwrap();
    assert_eq!(kernel.config().executor_limit(), Some(2));
    kernel.reconfigure(kernel.config());
    assert_eq!(kernel.executor_limit(), Some(2));
    assert_eq!(kernel.poll_demand(at(0)), None, "nothing changed");
    kernel.reconfigure(Setup { limit: Some(3), ..Setup::default() }.config());
    assert_eq!((kernel.executor_limit(), kernel.config().executor_limit()), (Some(3), Some(3)));
    kernel.set_executor_limit(None).unwrap();
    kernel.reconfigure(kernel.config());
    assert_eq!(kernel.executor_limit(), None);
}

/// Goal: an agent that is reported lost before it was ever offered is left alone for 10 s, too, and has its host name
/// once it was offered. Method: a report, offers before and after, preferred hosts.
#[test]
fn an_agent_lost_before_it_was_met_is_left_alone() {
    let mut fixture = Fixture::new(&Setup::default());
    assert_eq!(fixture.kernel.agent_lost("S1", at(1000)), []);
    fixture.kernel.agent_lost("", at(1000));
    assert_eq!(fixture.refused_on("S1", 1100), Reason::AgentSuspect { until: at(11_000) });
    fixture.start_on("S2", 1100);
    fixture.start_on("S1", 11_000);
    let snapshot = fixture.kernel.snapshot(at(11_000));
    assert!(snapshot.agents.iter().all(|agent| &*agent.hostname == "host"), "{snapshot:?}");
    assert_eq!(fixture.kernel.agents_known(), 2);
    fixture.kernel.check().unwrap();
    fixture.kernel.agent_lost("S3", at(12_000));
    assert_eq!(fixture.kernel.tick(at(1_000_000)).agents_forgotten, 1, "it is not kept for ever");
}

/// Goal: a command that the cluster rejects excludes no agent; with Spark's behaviour it does, as in Spark. Method: two
/// rejections, then one failure and another.
#[test]
fn a_rejected_command_is_not_the_agents_fault() {
    for (compatibility, excludes) in
        [(Compatibility::OFFERMILL, false), (Compatibility::SPARK_3_5, true)]
    {
        let mut fixture = Fixture::new(&Setup { compatibility, ..Setup::default() });
        let ids: Vec<_> = (0..4).map(|_| fixture.start_on("S1", 0)).collect();
        assert_eq!(fixture.update(ids[0], TaskState::Error, 1).excluded, None);
        assert_eq!(fixture.update(ids[1], TaskState::Error, 1).excluded.is_some(), excludes);
        assert_eq!(fixture.update(ids[2], TaskState::Failed, 1).excluded, None);
        assert!(fixture.update(ids[3], TaskState::Failed, 1).excluded.is_some());
    }
}

/// Goal: an operator can end an exclusion, also one without expiry, which new settings don't end; then failures count
/// anew. Method: one failure of two excludes nothing, the second does; readmit, and fail again.
#[test]
fn an_agent_can_be_readmitted() {
    let rule = ExclusionRule { failures: 2, window: secs(99), expiry: None };
    let setup = Setup { exclusion: Some(rule), ..Setup::default() };
    let mut fixture = Fixture::new(&setup);
    fixture.kernel.registered();
    let ids: Vec<_> = (0..5).map(|_| fixture.start_on("S1", 0)).collect();
    assert_eq!(fixture.update(ids[0], TaskState::Failed, 1).excluded, None);
    assert!(fixture.update(ids[1], TaskState::Failed, 2).excluded.is_some());
    fixture.kernel.reconfigure(Setup { exclusion: None, ..setup.clone() }.config());
    assert_eq!(fixture.kernel.poll_demand(at(3)), Some(DemandCall::Revive), "new settings");
    assert_eq!(fixture.refused_on("S1", 3), Reason::AgentExcluded { until: Timestamp::MAX });
    fixture.kernel.reconfigure(setup.config());
    fixture.kernel.poll_demand(at(10_000));

    assert!(!fixture.kernel.readmit_agent("S2", at(10_000)), "it is unknown");
    assert!(fixture.kernel.readmit_agent("S1", at(10_000)));
    assert!(!fixture.kernel.readmit_agent("S1", at(10_000)), "once");
    let call = fixture.kernel.poll_demand(at(20_000));
    assert_eq!(call, Some(DemandCall::Revive), "what was refused is wanted again");
    fixture.start_on("S1", 20_000);
    assert_eq!(fixture.update(ids[2], TaskState::Failed, 20_000).excluded, None);
    assert!(!fixture.kernel.readmit_agent("S1", at(20_000)), "it was not excluded");
    assert_eq!(fixture.update(ids[3], TaskState::Failed, 20_000).excluded, None, "counts anew");
    assert!(fixture.update(ids[4], TaskState::Failed, 20_000).excluded.is_some());
}

/// Goal: after one timestamp far ahead there is a way out. Method: an agent is lost, and another one excluded, in a
/// hundred years; readmit them at the right time.
#[test]
fn readmission_is_the_way_out_of_a_jump_of_the_clock() {
    let rule = ExclusionRule { failures: 1, ..ExclusionRule::default() };
    let mut fixture = Fixture::new(&Setup { exclusion: Some(rule), ..Setup::default() });
    let far = 100 * 365 * 24 * HOUR;
    fixture.start_on("S1", 0);
    let failed = fixture.start_on("S2", 0);
    fixture.kernel.agent_lost("S1", at(far));
    fixture.update(failed, TaskState::Failed, far);
    assert_eq!(fixture.refused_on("S1", 1000), Reason::AgentSuspect { until: at(far + 10_000) });
    assert_eq!(fixture.refused_on("S2", 1000), Reason::AgentExcluded { until: at(far + HOUR) });
    for agent in ["S1", "S2"] {
        assert!(fixture.kernel.readmit_agent(agent, at(1000)));
        fixture.start_on(agent, 1000);
    }
    fixture.kernel.agent_lost("S1", at(2000));
    assert_eq!(fixture.refused_on("S1", 2000), Reason::AgentSuspect { until: at(12_000) });
}

/// Goal: an agent on which an executor failed comes after others until an executor is placed there, and only then.
/// Method: two such agents, one of which gets the next executor.
#[test]
fn a_failure_is_forgiven_with_the_next_executor_there() {
    let mut setup = Setup { limit: Some(1), ..Setup::default() };
    setup.compatibility.replace_elsewhere = true;
    let mut fixture = Fixture::new(&setup);
    for agent in ["S1", "S2"] {
        let failing = fixture.start_on(agent, 0);
        fixture.update(failing, TaskState::Failed, 0);
    }
    for batch in [["S1", "S2"], ["S2", "S1"]] {
        let placed = fixture.offer(&batch.map(|agent| OfferData::new(agent, 1.0, 100.0)), 1);
        let agent = fixture.kernel.snapshot(at(1)).executors[0].agent_id.to_string();
        assert_eq!((placed.len(), &*agent), (1, "S1"));
        fixture.update(placed[0], TaskState::Finished, 2);
    }
}
