//! Status updates and their effect on executors.

use offermill::config::{ExclusionRule, UnreachableRule};
use offermill::resources::MilliCpus;
use offermill::{
    Change, ExecutorId, Fate, IdScheme, LimitRule, Phase, Scope, StatusUpdate, TaskState,
    UpdateReason,
};

use super::Fixture;
use crate::world::{Setup, at, secs};

/// Goal: resources are freed exactly once. Method: an end, then each kind of further end.
#[test]
fn ends_free_once() {
    let mut fixture = Fixture::new(&Setup::default());
    let id = fixture.start_on("S1", 0);
    let outcome = fixture.update(id, TaskState::Failed, 1);
    assert_eq!(outcome.change, Change::Ended(Fate::Failed));
    assert_eq!(outcome.freed.unwrap().cores, MilliCpus::from_cores(1));
    for state in [TaskState::Failed, TaskState::Finished, TaskState::Lost, TaskState::Gone] {
        let outcome = fixture.update(id, state, 2);
        assert_eq!((outcome.change, outcome.freed), (Change::Nothing, None));
        assert!(!outcome.kill);
    }
    assert_eq!((fixture.executors(), fixture.kernel.unknown_updates()), (0, 0));
}

/// Goal: updates about unknown executors are tolerated, counted, and cause a kill if the executor is alive. Method:
/// unknown ids.
#[test]
fn unknown_executors_are_counted_and_killed() {
    let fixture = Fixture::new(&Setup::default());
    for (name, count) in [("job-10-7.0", 1), ("", 2), ("x", 3)] {
        let running = StatusUpdate::new(name, TaskState::Running);
        let outcome = fixture.kernel.status_update(&running, at(0));
        assert_eq!((outcome.change, outcome.kill), (Change::UnknownExecutor, true));
        assert_eq!(fixture.kernel.unknown_updates(), count);
    }
    let ended = StatusUpdate::new("x", TaskState::Killed);
    assert!(!fixture.kernel.status_update(&ended, at(0)).kill);
}

/// Goal: with plain ids, too, a late update is about a known executor. Method: a duplicate end.
#[test]
fn plain_ids_of_ended_executors_are_known() {
    let mut fixture = Fixture::with_ids(&Setup::default(), IdScheme::plain());
    let id = fixture.start_on("S1", 0);
    assert_eq!(fixture.kernel.executor_name(id).to_string(), "0");
    fixture.update(id, TaskState::Finished, 1);
    let outcome = fixture.update(id, TaskState::Finished, 2);
    assert_eq!((outcome.change, fixture.kernel.unknown_updates()), (Change::Nothing, 0));
    let next = fixture.start_on("S1", 3);
    assert_eq!(fixture.kernel.executor_name(next).to_string(), "1", "numbers are not reused");
}

/// Goal: the number of an executor that has ended leads to no other executor, though its cell is used again; nor does
/// any text that is no number of an executor. Method: executors in one cell, one after the other, and texts around the
/// limits of numbers.
#[test]
fn numbers_lead_to_their_own_executors_only() {
    let mut fixture = Fixture::with_ids(&Setup::default(), IdScheme::plain());
    let first = fixture.start_on("S1", 0);
    fixture.update(first, TaskState::Finished, 1);
    let second = fixture.start_on("S1", 2);
    assert_eq!(fixture.kernel.executor_id("0"), None, "it has ended");
    assert_eq!(fixture.kernel.executor_id("1"), Some(second));
    let unknown = [
        "2",
        "255",
        "256",
        "65536",
        "281474976710655",
        "281474976710656",
        "18446744073709551615",
        "18446744073709551616",
        "01",
        "+1",
        "-1",
        " 1",
        "1.0",
    ];
    for (name, count) in unknown.iter().zip(1..) {
        assert_eq!(fixture.kernel.executor_id(name), None, "{name}");
        let failed = StatusUpdate::new(name, TaskState::Failed);
        let outcome = fixture.kernel.status_update(&failed, at(3));
        assert_eq!((outcome.executor, outcome.change), (None, Change::UnknownExecutor), "{name}");
        assert_eq!(fixture.kernel.unknown_updates(), count);
    }
    let outcomes = ["0", "1", "2"].map(|name| StatusUpdate::new(name, TaskState::Failed));
    let mut told = Vec::new();
    fixture.kernel.status_updates(&outcomes, at(4), &mut told);
    let executors: Vec<Option<ExecutorId>> = told.iter().map(|outcome| outcome.executor).collect();
    assert_eq!(executors, [None, Some(second), None]);
    assert_eq!(fixture.executors(), 0);
    fixture.kernel.check().unwrap();
}

/// Goal: ids are unique across restarts. Method: two kernels of different epochs; an update for the other's executor.
#[test]
fn ids_differ_between_epochs() {
    let ids = |epoch| IdScheme::unique("job", epoch).unwrap();
    let mut before = Fixture::with_ids(&Setup::default(), ids(1));
    let mut after = Fixture::with_ids(&Setup::default(), ids(2));
    let old = before.start_on("S1", 0);
    let new = after.start_on("S1", 0);
    let old_name = before.kernel.executor_name(old).to_string();
    assert_eq!(old_name, "job-1-0.0");
    assert_ne!(old_name, after.kernel.executor_name(new).to_string());
    assert_eq!(after.kernel.executor_id(&old_name), None);
    let update = StatusUpdate::new(&old_name, TaskState::Failed);
    assert_eq!(after.kernel.status_update(&update, at(1)).change, Change::UnknownExecutor);
    assert_eq!(after.executors(), 1);
}

/// Goal: unreachable executors keep their cores, are given up, may come back while there is room, and are killed if
/// there is none. Method: this sequence, twice.
#[test]
fn unreachable_executors_are_counted() {
    let rule = UnreachableRule { release_after: Some(secs(10)), forget_after: secs(20) };
    let setup = Setup { core_cap: Some(1000), unreachable: rule, ..Setup::default() };
    let mut fixture = Fixture::new(&setup);
    let id = fixture.start_on("S1", 0);
    assert_eq!(fixture.update(id, TaskState::Unreachable, 1000).change, Change::Unreachable);
    assert_eq!(fixture.executors(), 1, "its cores still count");
    assert!(fixture.kernel.tick(at(10_999)).given_up.is_empty());
    assert_eq!(fixture.update(id, TaskState::Unreachable, 10_999).change, Change::Nothing);
    let given_up = fixture.kernel.tick(at(11_000)).given_up.remove(0);
    assert_eq!((given_up.target.id, given_up.freed.cores), (id, MilliCpus::from_cores(1)));
    assert_eq!(fixture.executors(), 0);
    assert_eq!(fixture.update(id, TaskState::Running, 12_000).change, Change::Readmitted);
    assert_eq!(fixture.executors(), 1, "it counts again");

    fixture.update(id, TaskState::Unreachable, 13_000);
    fixture.kernel.tick(at(23_000));
    let other = fixture.start_on("S2", 23_000);
    let outcome = fixture.update(id, TaskState::Running, 24_000);
    assert_eq!((outcome.change, outcome.kill), (Change::Refused, true));
    fixture.update(other, TaskState::Finished, 25_000);
    assert_eq!(fixture.kernel.snapshot(at(0)).executors[0].phase, Phase::GivenUp);
    assert_eq!(fixture.kernel.tick(at(43_000)).forgotten[0].id, id);
    let outcome = fixture.update(id, TaskState::Running, 44_000);
    assert_eq!((outcome.change, outcome.kill), (Change::Nothing, true), "killed even then");
}

/// Goal: readmission checks whether the caps have room for this executor, not for one of the present size. Method: a
/// small executor comes back after the configured size was increased.
#[test]
fn readmission_is_for_the_size_that_it_has() {
    let rule = UnreachableRule { release_after: Some(secs(0)), forget_after: secs(20) };
    let setup = Setup { core_cap: Some(4000), unreachable: rule, ..Setup::default() };
    let mut fixture = Fixture::new(&setup);
    let (stays, leaves) = (fixture.start_on("S1", 0), fixture.start_on("S2", 0));
    fixture.update(leaves, TaskState::Unreachable, 0);
    fixture.kernel.tick(at(1));
    fixture.kernel.reconfigure(Setup { executor_cores: Some(4000), ..setup }.config());
    assert_eq!(fixture.update(leaves, TaskState::Running, 2).change, Change::Readmitted);
    assert_eq!(fixture.update(stays, TaskState::Running, 2).change, Change::Running);
}

/// Goal: `TASK_LOST` is an end or not, depending on its reason. Method: each reason.
#[test]
fn lost_by_partition_is_not_an_end() {
    for reason in
        [UpdateReason::AgentDisconnected, UpdateReason::AgentRemoved, UpdateReason::Reconciliation]
    {
        let mut fixture = Fixture::new(&Setup::default());
        let id = fixture.start_on("S1", 0);
        let outcome = fixture.update_because(id, TaskState::Lost, reason, 1);
        assert_eq!(outcome.change, Change::Unreachable, "{reason:?}");
    }
    let mut fixture = Fixture::new(&Setup::default());
    let id = fixture.start_on("S1", 0);
    let outcome = fixture.update_because(id, TaskState::Lost, UpdateReason::InvalidOffers, 1);
    assert_eq!((outcome.change, outcome.excluded), (Change::Ended(Fate::Lost), None));
}

/// Goal: each executor in doubt is reconciled until an update reports it. Method: each cause of doubt, and each end of
/// it.
#[test]
fn the_doubtful_are_reconciled() {
    let setup = Setup { launch_timeout: secs(100), ..Setup::default() };
    let mut fixture = Fixture::new(&setup);
    let ids = [fixture.start_on("S1", 0), fixture.start_on("S1", 0), fixture.start_on("S2", 0)];
    for id in ids {
        fixture.update(id, TaskState::Running, 1);
    }
    let doubtful = |fixture: &Fixture, now| fixture.kernel.reconcile(Scope::InDoubt, at(now)).len();
    assert_eq!(doubtful(&fixture, 500_000), 0);
    assert_eq!(fixture.kernel.agent_lost("S1", at(2)).len(), 2);
    assert_eq!(fixture.kernel.agent_lost("S9", at(2)), []);
    let name = fixture.kernel.executor_name(ids[2]).to_string();
    assert_eq!(fixture.kernel.executor_lost(&name).unwrap().agent_id.as_ref(), "S2");
    assert_eq!(doubtful(&fixture, 3), 3);
    assert_eq!(fixture.executors(), 3, "a hint frees nothing");
    for id in ids {
        fixture.update(id, TaskState::Running, 4);
    }
    assert_eq!(doubtful(&fixture, 5), 0);
    assert_eq!(fixture.kernel.reconcile(Scope::All, at(5)).len(), 3);
    fixture.start_on("S3", 10);
    assert_eq!(
        (doubtful(&fixture, 100_009), doubtful(&fixture, 100_010)),
        (0, 1),
        "launch timeout"
    );
}

/// Goal: young executors are not reconciled with all others, because their launch may not have been sent. Method: one
/// that is young, the time at which it no longer is, and the events that confirm it earlier: an update, or doubt.
#[test]
fn the_young_are_not_asked_about() {
    let mut fixture = Fixture::new(&Setup::default());
    let asked = |fixture: &Fixture, now| fixture.kernel.reconcile(Scope::All, at(now)).len();
    let ids = [fixture.start_on("S1", 10), fixture.start_on("S1", 10), fixture.start_on("S2", 10)];
    assert_eq!((asked(&fixture, 10), asked(&fixture, 5_009), asked(&fixture, 5_010)), (0, 0, 3));
    fixture.update(ids[0], TaskState::Running, 20);
    assert_eq!(asked(&fixture, 20), 1);
    fixture.update(ids[1], TaskState::Staging, 20);
    assert_eq!(asked(&fixture, 20), 1, "the cluster hasn't started it");
    assert_eq!(fixture.kernel.agent_lost("S2", at(30)).len(), 1, "the caller knows what has left");
    assert_eq!(asked(&fixture, 30), 2, "it is in doubt");
}

/// Goal: doubt ends when an executor that was given up is reported again. Method: doubt an executor that was given up.
#[test]
fn doubt_ends_with_readmission() {
    let rule = UnreachableRule { release_after: Some(secs(0)), forget_after: secs(20) };
    let mut fixture = Fixture::new(&Setup { unreachable: rule, ..Setup::default() });
    let id = fixture.start_on("S1", 0);
    fixture.update(id, TaskState::Unreachable, 0);
    fixture.kernel.tick(at(1));
    assert_eq!(fixture.kernel.agent_lost("S1", at(2)).len(), 1);
    assert_eq!(fixture.update(id, TaskState::Running, 3).change, Change::Readmitted);
    assert_eq!(fixture.kernel.reconcile(Scope::InDoubt, at(4)), []);
}

/// Goal: a late update about an executor doesn't affect the one that now has its cell. Method: a late unreachable
/// update just before the launch timeout of the successor.
#[test]
fn a_ghost_does_not_stop_the_clock_of_its_successor() {
    let mut fixture = Fixture::new(&Setup { launch_timeout: secs(100), ..Setup::default() });
    let ghost = fixture.start_on("S1", 0);
    fixture.update(ghost, TaskState::Finished, 0);
    fixture.start_on("S1", 0);
    assert_eq!(fixture.update(ghost, TaskState::Unreachable, 99_000).change, Change::Nothing);
    assert_eq!(fixture.kernel.reconcile(Scope::InDoubt, at(100_000)).len(), 1);
}

/// Goal: a request to end executors returns those that have not ended. Method: kill a live and an ended one.
#[test]
fn kills_name_those_that_live() {
    let mut fixture = Fixture::new(&Setup { limit: Some(5), ..Setup::default() });
    let (dead, alive) = (fixture.start_on("S1", 0), fixture.start_on("S1", 0));
    fixture.update(dead, TaskState::Finished, 1);
    let targets = fixture.kernel.kill_executors([dead, alive]);
    assert_eq!(targets.len(), 1);
    assert_eq!((targets[0].id, &*targets[0].agent_id), (alive, "S1"));
    assert_eq!(fixture.kernel.executor_limit(), Some(5), "the limit stays");
}

/// Goal: executors that finish lower the executor limit once each, if so configured, and nothing else does. Method:
/// each kind of end, finished ones twice, one after the other and in batches with duplicates; they lower the limit that
/// was set last, and it stops at 0.
#[test]
fn finished_executors_count_the_limit_down() {
    for in_batches in [false, true] {
        let mut fixture = Fixture::new(&Setup { limit: Some(9), ..Setup::default() });
        let tell = |fixture: &Fixture, ids: &[ExecutorId], state: TaskState, limit: LimitRule| {
            let names: Vec<String> =
                ids.iter().map(|id| fixture.kernel.executor_name(*id).to_string()).collect();
            let updates: Vec<StatusUpdate<'_>> =
                names.iter().map(|name| StatusUpdate::new(name, state)).collect();
            if in_batches {
                fixture.kernel.status_updates_with(&updates, limit, at(1), &mut Vec::new());
            } else {
                for update in &updates {
                    fixture.kernel.status_update_with(update, limit, at(1));
                }
            }
            fixture.kernel.executor_limit()
        };
        let ids: Vec<ExecutorId> = (0..9).map(|_| fixture.start_on("S1", 0)).collect();
        let (keep, count_down) = (LimitRule::Keep, LimitRule::CountDown);
        assert_eq!(tell(&fixture, &ids[..1], TaskState::Finished, keep), Some(9));
        assert_eq!(
            tell(&fixture, &ids[..1], TaskState::Finished, count_down),
            Some(9),
            "it had ended"
        );
        for state in [TaskState::Running, TaskState::Failed, TaskState::Finished] {
            assert_eq!(tell(&fixture, &ids[1..2], state, count_down), Some(9), "{state:?}");
        }
        assert_eq!(
            tell(&fixture, &[ids[2], ids[3], ids[2]], TaskState::Finished, count_down),
            Some(7)
        );
        fixture.kernel.set_executor_limit(Some(2)).unwrap();
        assert_eq!(tell(&fixture, &ids[2..5], TaskState::Finished, count_down), Some(1));
        assert_eq!(tell(&fixture, &ids[5..7], TaskState::Finished, count_down), Some(0));
        fixture.kernel.set_executor_limit(None).unwrap();
        assert_eq!(tell(&fixture, &ids[7..], TaskState::Finished, count_down), None);
        fixture.kernel.check().unwrap();
    }
}

/// Goal: an executor that finishes after it was given up lowers the limit too, because its work is done. Method:
/// unreachable, given up, finished.
#[test]
fn the_given_up_count_the_limit_down() {
    let rule = UnreachableRule { release_after: Some(secs(0)), forget_after: secs(20) };
    let setup = Setup { unreachable: rule, limit: Some(3), ..Setup::default() };
    let mut fixture = Fixture::new(&setup);
    let id = fixture.start_on("S1", 0);
    fixture.update(id, TaskState::Unreachable, 0);
    assert_eq!(fixture.kernel.tick(at(1)).given_up.len(), 1);
    let name = fixture.kernel.executor_name(id).to_string();
    let finished = StatusUpdate::new(&name, TaskState::Finished);
    fixture.kernel.status_update_with(&finished, LimitRule::CountDown, at(2));
    assert_eq!((fixture.kernel.executor_limit(), fixture.executors()), (Some(2), 0));
}

/// Goal: an executor that was asked to end blames no agent when it fails, whether its resources were counted or not.
/// Method: one that runs and one that was given up, with exclusion at the first failure; then one that wasn't asked.
#[test]
fn the_end_of_those_asked_to_end_blames_nobody() {
    let rule = UnreachableRule { release_after: Some(secs(0)), forget_after: secs(20) };
    let exclusion = Some(ExclusionRule { failures: 1, window: secs(60), expiry: None });
    let setup = Setup { unreachable: rule, exclusion, ..Setup::default() };
    let mut fixture = Fixture::new(&setup);
    for is_given_up in [false, true] {
        let id = fixture.start_on("S1", 0);
        assert_eq!(fixture.kernel.kill_executors([id]).len(), 1);
        if is_given_up {
            fixture.update(id, TaskState::Unreachable, 0);
            assert_eq!(fixture.kernel.tick(at(1)).given_up.len(), 1);
        }
        let outcome = fixture.update(id, TaskState::Failed, 2);
        assert_eq!((outcome.change, outcome.excluded), (Change::Ended(Fate::Failed), None));
        assert_eq!(outcome.freed.is_none(), is_given_up);
    }
    let id = fixture.start_on("S1", 3);
    assert!(fixture.update(id, TaskState::Failed, 4).excluded.is_some());
}

/// Goal: only ids that the kernel may have made are known. Method: one executor, then ids with a number that was never
/// used, with a cell that was never used, and with the number of a later executor; the ids of the executors themselves,
/// one of which has ended.
#[test]
fn ids_never_made_are_unknown() {
    let mut fixture = Fixture::new(&Setup::default());
    let (first, second) = (fixture.start_on("S1", 0), fixture.start_on("S1", 0));
    fixture.update(first, TaskState::Finished, 1);
    for id in [first, second] {
        let name = fixture.kernel.executor_name(id).to_string();
        assert_eq!(fixture.kernel.executor_id(&name), Some(id));
    }
    let name = fixture.kernel.executor_name(first).to_string();
    let (stem, _) = name.split_at(name.len() - "0.0".len());
    for numbers in ["1.10", "7.0", "2.2", "1.0", "0.4000000000", "0.9999999"] {
        let name = format!("{stem}{numbers}");
        assert_eq!(fixture.kernel.executor_id(&name), None, "{name}");
        let running = StatusUpdate::new(&name, TaskState::Running);
        let outcome = fixture.kernel.status_update(&running, at(2));
        assert_eq!(outcome.executor, None, "{name}");
        assert_eq!((outcome.change, outcome.kill), (Change::UnknownExecutor, true), "{name}");
        let mut outcomes = Vec::new();
        fixture.kernel.status_updates(&[running], at(2), &mut outcomes);
        assert_eq!(outcomes[0].change, Change::UnknownExecutor, "{name}");
    }
    assert_eq!(fixture.executors(), 1);
}

/// Goal: an executor that ends after it was given up frees nothing, because its resources were freed then. Method: one
/// that ends while unreachable, one that ends after it was given up.
#[test]
fn the_given_up_free_nothing_when_they_end() {
    let rule = UnreachableRule { release_after: Some(secs(10)), forget_after: secs(20) };
    let mut fixture = Fixture::new(&Setup { unreachable: rule, ..Setup::default() });
    for (ended_at, frees) in [(9_000, true), (11_000, false)] {
        let id = fixture.start_on("S1", 0);
        fixture.update(id, TaskState::Unreachable, 0);
        fixture.kernel.tick(at(ended_at));
        let outcome = fixture.update(id, TaskState::Finished, ended_at);
        assert_eq!(outcome.change, Change::Ended(Fate::Finished));
        assert_eq!(outcome.freed.is_some(), frees, "{outcome:?}");
    }
}

/// Goal: any sign of life ends doubt, and has its usual effect. Method: each update that shows an executor alive, for
/// one that is being launched, runs, is unreachable, or was given up; all of them are in doubt.
#[test]
fn signs_of_life_end_doubt() {
    let rule = UnreachableRule { release_after: Some(secs(10)), forget_after: secs(1000) };
    for alive in [TaskState::Staging, TaskState::Starting, TaskState::Running] {
        let mut fixture = Fixture::new(&Setup { unreachable: rule, ..Setup::default() });
        let all: [ExecutorId; 4] = std::array::from_fn(|_| fixture.start_on("S1", 0));
        let [_, running, unreachable, given_up] = all;
        for id in [running, unreachable, given_up] {
            fixture.update(id, TaskState::Running, 1);
        }
        fixture.update(given_up, TaskState::Unreachable, 2);
        assert_eq!(fixture.kernel.tick(at(10_002)).given_up.len(), 1);
        fixture.update(unreachable, TaskState::Unreachable, 10_003);
        assert_eq!(fixture.kernel.agent_lost("S1", at(10_004)).len(), 4);
        let changes = all.map(|id| fixture.update(id, alive, 10_005).change);
        let first = if alive == TaskState::Running { Change::Running } else { Change::Nothing };
        assert_eq!(changes, [first, Change::Nothing, Change::Returned, Change::Readmitted]);
        assert_eq!(fixture.kernel.reconcile(Scope::InDoubt, at(10_006)), [], "{alive:?}");
    }
}
