//! Tables in the documentation, held against the kernel.

use offermill::config::{Compatibility, ExclusionRule, Queue, QueueId, Queues, UnreachableRule};
use offermill::resources::{ExecutorResources, MilliCpus};
use offermill::{
    Change, DemandCall, Phase, Reason, ReasonKind, Recovered, StatusUpdate, TaskState, UpdateReason,
};

use super::Fixture;
use crate::world::{OfferData, Setup, at, secs};

const STATES: [TaskState; 14] = [
    TaskState::Staging,
    TaskState::Starting,
    TaskState::Running,
    TaskState::Killing,
    TaskState::Finished,
    TaskState::Failed,
    TaskState::Killed,
    TaskState::Error,
    TaskState::Lost,
    TaskState::Dropped,
    TaskState::Unreachable,
    TaskState::Gone,
    TaskState::GoneByOperator,
    TaskState::Unknown,
];

const REASONS: [UpdateReason; 7] = [
    UpdateReason::Other,
    UpdateReason::AgentDisconnected,
    UpdateReason::AgentRemoved,
    UpdateReason::Reconciliation,
    UpdateReason::InvalidOffers,
    UpdateReason::AgentDraining,
    UpdateReason::Preempted,
];

/// What an update does: the change, whether it frees, whether it blames the agent, and what if the executor is unknown.
type Cells = [String; 4];

/// The settings of a kernel of one executor, whose agent is excluded by the first failure.
fn strict() -> Setup {
    let exclusion = Some(ExclusionRule { failures: 1, window: secs(60), expiry: None });
    Setup { limit: Some(1), exclusion, ..Setup::default() }
}

/// Asks the kernel what an update does to an executor that runs.
fn ask(state: TaskState, reason: UpdateReason) -> Cells {
    let apply = |compatibility: Compatibility| {
        let mut fixture = Fixture::new(&Setup { compatibility, ..strict() });
        let executor = fixture.start_on("S1", 0);
        fixture.update(executor, TaskState::Running, 1);
        let outcome = fixture.update_because(executor, state, reason, 2);
        (fixture, outcome)
    };
    let (fixture, outcome) = apply(Compatibility::OFFERMILL);
    let unknown =
        fixture.kernel.status_update(&StatusUpdate::new("x", state).because(reason), at(3));
    assert_eq!(unknown.change, Change::UnknownExecutor);
    let is_free = fixture.kernel.wanted() == 1;
    assert_eq!(outcome.freed.is_some(), is_free, "what is freed may be taken by another");
    let given_up = fixture.kernel.tick(at(300_002)).given_up;
    assert_eq!(fixture.kernel.wanted() == 1, is_free || !given_up.is_empty());
    let freed = match (is_free, given_up.is_empty()) {
        (true, _) => "at once",
        (false, false) => "when given up",
        (false, true) => "no",
    };
    let blamed = match (&outcome.excluded, &apply(Compatibility::SPARK_3_5).1.excluded) {
        (Some(_), Some(_)) => "yes",
        (None, Some(_)) => r"no \*",
        (None, None) => "no",
        (Some(_), None) => unreachable!("Spark blames agents for more"),
    };
    let change = format!("`{:?}`", outcome.change);
    let unknown = if unknown.kill { "kill it" } else { "nothing" };
    [change, freed.to_owned(), blamed.to_owned(), unknown.to_owned()]
}

/// Writes the table of all states and reasons. States and reasons of the same effect share a row.
fn states_table() -> String {
    let mut rows: Vec<(Vec<TaskState>, Vec<UpdateReason>, Cells)> = Vec::new();
    for state in STATES {
        let mut own: Vec<(Vec<UpdateReason>, Cells)> = Vec::new();
        for reason in REASONS {
            let cells = ask(state, reason);
            match own.iter_mut().find(|row| row.1 == cells) {
                Some(row) => row.0.push(reason),
                None => own.push((vec![reason], cells)),
            }
        }
        for (reasons, cells) in own {
            match rows.iter_mut().find(|row| row.1 == reasons && row.2 == cells) {
                Some(row) => row.0.push(state),
                None => rows.push((vec![state], reasons, cells)),
            }
        }
    }
    let quote = |name: String| format!("`{name}`");
    let mut table =
        "| state | reason | change | freed | agent blamed | if it is unknown |\n".to_owned();
    table += "|---|---|---|---|---|---|\n";
    for (states, reasons, cells) in rows {
        let states: Vec<String> = states.iter().map(|it| quote(format!("{it:?}"))).collect();
        let reasons: Vec<String> = reasons.iter().map(|it| quote(format!("{it:?}"))).collect();
        let reasons =
            if reasons.len() == REASONS.len() { "any".to_owned() } else { reasons.join(", ") };
        table += &format!("| {} | {reasons} | {} |\n", states.join(", "), cells.join(" | "));
    }
    table
}

/// The rows of the table in doc comments of `source` that begins with `head`.
fn table_in(source: &str, head: &str) -> String {
    let rows = source.lines().filter_map(|line| line.trim_start().strip_prefix("/// "));
    let rows = rows.skip_while(|row| !row.starts_with(head));
    rows.take_while(|row| row.starts_with('|')).map(|row| row.to_owned() + "\n").collect()
}

/// The number of the variants of an enum in `source`.
fn variants(source: &str, name: &str) -> usize {
    let body = source.split(&format!("pub enum {name} {{\n")).nth(1).unwrap();
    let body = body.split("\n}").next().unwrap();
    body.lines().filter(|line| line.starts_with("    ") && line.ends_with(',')).count()
}

/// Goal: the table of states and reasons is true, and complete. Method: ask a kernel of each cell, with an executor
/// that runs and with one that nobody knows, and write the table anew; count states and reasons in the source.
#[test]
fn the_table_of_states_says_what_the_kernel_does() {
    let source = include_str!("../../../src/status.rs");
    assert_eq!(variants(source, "TaskState"), STATES.len());
    assert_eq!(variants(source, "UpdateReason"), REASONS.len());
    let table = states_table();
    assert_eq!(table_in(source, "| state | reason |"), table, "src/status.rs should say:\n{table}");
}

/// Goal: an end after a kill that was asked for blames no agent, whatever the state and the reason. Method: all of
/// them, where one failure excludes.
#[test]
fn an_executor_that_was_asked_to_end_blames_no_agent() {
    for state in STATES {
        for reason in REASONS {
            let mut fixture =
                Fixture::new(&Setup { compatibility: Compatibility::SPARK_3_5, ..strict() });
            let executor = fixture.start_on("S1", 0);
            fixture.kernel.kill_executors([executor]);
            let outcome = fixture.update_because(executor, state, reason, 1);
            assert_eq!(outcome.excluded, None, "{state:?} {reason:?}");
        }
    }
}

/// The settings in most tests of [`KEPT`] before they are replaced by [`other`].
fn before() -> Setup {
    let unreachable = UnreachableRule { release_after: Some(secs(60)), forget_after: secs(999) };
    let exclusion = Some(ExclusionRule { failures: 2, window: secs(60), expiry: Some(secs(60)) });
    Setup {
        limit: Some(2),
        exclusion,
        unreachable,
        locality_wait: Some(secs(3)),
        ..Setup::default()
    }
}

/// Settings that differ from [`before`] in all that matters here.
fn other() -> Setup {
    let unreachable = UnreachableRule { release_after: Some(secs(10)), forget_after: secs(999) };
    let exclusion = Some(ExclusionRule { failures: 3, window: secs(60), expiry: Some(secs(5)) });
    Setup { limit: Some(5), exclusion, unreachable, ..before() }
}

/// Replaces the settings.
fn reconfigure(fixture: &Fixture, setup: &Setup) {
    fixture.kernel.reconfigure(setup.config());
    fixture.kernel.check().unwrap();
}

fn phase(fixture: &Fixture) -> Phase {
    fixture.kernel.snapshot(at(0)).executors[0].phase
}

/// A row of the table of what [`Kernel::reconfigure`](offermill::Kernel::reconfigure) keeps, and a test of it.
type Row = (&'static str, &'static str, fn());

const KEPT: [Row; 19] = [
    ("the executor limit", "replaced", || {
        let fixture = Fixture::new(&before());
        fixture.kernel.set_executor_limit(Some(9)).unwrap();
        reconfigure(&fixture, &other());
        assert_eq!(fixture.kernel.executor_limit(), Some(5));
    }),
    (
        "executors, and the resources that each of them takes",
        "kept, also beyond a new cap or limit",
        || {
            let mut fixture = Fixture::new(&before());
            fixture.offer(&[OfferData::new("S1", 2.0, 200.0)], 0);
            let executors = || fixture.kernel.snapshot(at(0)).executors;
            let kept = executors();
            let smaller =
                Setup { core_cap: Some(500), executor_cores: Some(500), limit: Some(1), ..other() };
            reconfigure(&fixture, &smaller);
            assert_eq!((executors(), kept.len()), (kept, 2));
        },
    ),
    ("executors on agents that don't meet the new constraint", "kept", || {
        let mut fixture = Fixture::new(&before());
        fixture.start_on("S1", 0);
        reconfigure(&fixture, &Setup { zones: vec!["east"], ..other() });
        assert_eq!(fixture.executors(), 1);
    }),
    ("ids of executors, adopted ones included", "kept", || {
        let mut fixture = Fixture::new(&before());
        let resources = fixture_resources(&mut fixture);
        let former = Recovered::new("old", "S9", "host", resources);
        let adopted = fixture.kernel.adopt(&[former], at(0)).unwrap()[0];
        assert!(adopted.is_some());
        reconfigure(&fixture, &other());
        assert_eq!(fixture.kernel.executor_id("old"), adopted);
        assert!(fixture.kernel.executor_id("job-10-0.0").is_some());
    }),
    (
        "the time since when an executor is unreachable",
        "kept; the new rule applies to all of it",
        || {
            let mut fixture = Fixture::new(&before());
            let executor = fixture.start_on("S1", 0);
            fixture.update(executor, TaskState::Unreachable, 1000);
            assert_eq!(fixture.kernel.tick(at(11_000)).given_up, []);
            reconfigure(&fixture, &other());
            assert_eq!(fixture.kernel.tick(at(11_000)).given_up.len(), 1);
        },
    ),
    ("executors that were given up", "kept; they don't count again before they return", || {
        let mut fixture = Fixture::new(&other());
        let executor = fixture.start_on("S1", 0);
        fixture.update(executor, TaskState::Unreachable, 0);
        fixture.kernel.tick(at(10_000));
        reconfigure(&fixture, &before());
        assert_eq!((phase(&fixture), fixture.executors()), (Phase::GivenUp, 0));
        fixture.update(executor, TaskState::Running, 11_000);
        assert_eq!((phase(&fixture), fixture.executors()), (Phase::Running, 1));
    }),
    ("exclusions, with the ends that they have", "kept, also without a rule for them", || {
        let mut fixture = Fixture::new(&strict());
        let executor = fixture.start_on("S1", 0);
        let until = fixture.update(executor, TaskState::Failed, 0).excluded.unwrap().until;
        reconfigure(&fixture, &other());
        assert_eq!(fixture.refused_on("S1", 1), Reason::AgentExcluded { until });
        reconfigure(&fixture, &Setup { exclusion: None, ..other() });
        assert_eq!(fixture.refused_on("S1", 2), Reason::AgentExcluded { until });
    }),
    ("failures counted so far", "kept; the next one is judged by the new rule", || {
        let mut fixture = Fixture::new(&other());
        let executors = [0, 1].map(|now| fixture.start_on("S1", now));
        assert_eq!(fixture.update(executors[0], TaskState::Failed, 2).excluded, None);
        reconfigure(&fixture, &before());
        assert!(fixture.update(executors[1], TaskState::Failed, 3).excluded.is_some());
    }),
    ("the 10 s after a report that an agent is lost", "kept", || {
        let mut fixture = Fixture::new(&before());
        fixture.kernel.agent_lost("S1", at(0));
        reconfigure(&fixture, &other());
        assert_eq!(fixture.refused_on("S1", 9_999), Reason::AgentSuspect { until: at(10_000) });
    }),
    ("wanted hosts", "kept", || {
        let mut fixture = Fixture::new(&before());
        fixture.kernel.set_locality(["elsewhere"]);
        reconfigure(&fixture, &other());
        assert_eq!(fixture.refused_on("S1", 1), Reason::Locality { until: at(3002) });
    }),
    ("handlers", "kept; their next batch follows the new settings", || {
        let mut fixture = Fixture::new(&before());
        reconfigure(&fixture, &Setup { executor_cores: Some(2000), ..other() });
        let placed = fixture.offer(&[OfferData::new("S1", 4.0, 900.0)], 0);
        assert_eq!((placed.len(), fixture.kernel.totals().cores.millis()), (2, 4000));
    }),
    ("the subscription", "kept", || {
        let fixture = Fixture::new(&before());
        let subscription = fixture.kernel.registered();
        reconfigure(&fixture, &other());
        assert_eq!(fixture.kernel.epoch(), subscription);
    }),
    ("counters of offers", "kept", || {
        let mut fixture = Fixture::new(&before());
        fixture.start_on("S1", 0);
        let counts = fixture.kernel.offer_counts();
        reconfigure(&fixture, &other());
        assert_eq!(format!("{:?}", fixture.kernel.offer_counts()), format!("{counts:?}"));
    }),
    ("nearest misses in an explanation", "dropped: they were found under the old settings", || {
        let mut fixture = Fixture::new(&before());
        fixture.offer(&[OfferData::new("S1", 0.5, 900.0)], 0);
        assert!(fixture.kernel.explain(at(0)).to_string().contains("0.5 of 1 core"));
        reconfigure(&fixture, &other());
        assert!(!fixture.kernel.explain(at(0)).to_string().contains("0.5 of 1 core"));
    }),
    ("refusals that were sent", "undone by a revive, which becomes due", || {
        let mut fixture = Fixture::new(&before());
        fixture.offer(&[OfferData::new("S1", 0.5, 900.0)], 0);
        assert_eq!(fixture.kernel.poll_demand(at(0)), None);
        reconfigure(&fixture, &other());
        assert_eq!(fixture.kernel.poll_demand(at(0)), Some(DemandCall::Revive));
    }),
    (
        "executors of a queue whose maximum is lowered",
        "kept; no other is placed in it until it holds less",
        || {
            let mut fixture = Fixture::new(&before());
            set_queue(&fixture, 1, 0);
            fixture.start_on("S1", 0);
            set_queue(&fixture, 0, 0);
            assert_eq!(fixture.executors(), 1);
            let refused = fixture.refused_on("S1", 1);
            assert_eq!(refused.kind(), ReasonKind::QueueCores);
        },
    ),
    (
        "executors that were placed while there were no queues",
        "in none, also if there are queues now",
        || {
            let mut fixture = Fixture::new(&before());
            fixture.start_on("S1", 0);
            set_queue(&fixture, 1, 0);
            assert_eq!(fixture.kernel.queues()[0].cores, MilliCpus::ZERO);
            assert_eq!(fixture.kernel.snapshot(at(0)).executors[0].queue, None);
        },
    ),
    ("whether a queue has [demand](Kernel::set_queue_demand)", "kept", || {
        let fixture = Fixture::new(&before());
        set_queue(&fixture, 2, 1);
        fixture.kernel.set_queue_demand(QueueId::DEFAULT, false);
        set_queue(&fixture, 2, 2);
        assert_eq!(fixture.kernel.queues()[0].guaranteed_cores, MilliCpus::ZERO);
    }),
    ("the close of the kernel", "kept: it is permanent", || {
        let mut fixture = Fixture::new(&before());
        fixture.kernel.close();
        reconfigure(&fixture, &other());
        assert_eq!(fixture.refused_on("S1", 0), Reason::Stopping);
    }),
];

/// Sets the default queue's maximum and guarantee, in cores.
fn set_queue(fixture: &Fixture, most: u64, least: u64) {
    let queue = Queue::new(Queues::DEFAULT_NAME)
        .max_cores(Some(MilliCpus::from_cores(most)))
        .guaranteed_cores(MilliCpus::from_cores(least));
    let config = fixture.kernel.config().to_builder().core_cap(None).queue(queue);
    fixture.kernel.reconfigure(config.build().unwrap());
}

/// The resources of an executor that is placed for this.
fn fixture_resources(fixture: &mut Fixture) -> ExecutorResources {
    fixture.start_on("S1", 0);
    fixture.kernel.snapshot(at(0)).executors[0].resources
}

/// Goal: the table of what other settings leave alone is true. Method: one test for each of its rows, by settings that
/// differ in all that matters; the rows in the source are these.
#[test]
fn the_table_of_what_reconfigure_keeps_is_true() {
    let mut table = "| what | afterwards |\n|---|---|\n".to_owned();
    for (what, afterwards, test) in KEPT {
        test();
        table += &format!("| {what} | {afterwards} |\n");
    }
    let source = include_str!("../../../src/kernel/lifecycle/settings.rs");
    assert_eq!(
        table_in(source, "| what |"),
        table,
        "the table in settings.rs should say:\n{table}"
    );
}
