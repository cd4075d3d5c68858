//! Agents that are forgotten, reported lost and inserted again, and adopted executors, during all other calls.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use offermill::config::UnreachableRule;
use offermill::resources::{ExecutorResources, Gpus, Mebibytes, MilliCpus};
use offermill::{Decisions, ExecutorId, Phase, Recovered, StatusUpdate, TaskState};

use crate::harness::{Harness, join};
use crate::world::{Entry, OfferData, Setup, at, lend};
use crate::{is_wanted, play};

const AGENTS: [&str; 4] = ["S0", "S1", "S2", "S3"];
/// Times at which agents that were seen at the beginning are forgotten.
const SWEEPS: [u64; 4] = [60, 1_000_000, 1_060_000, 1_120_000];

fn setup() -> Setup {
    Setup {
        core_cap: Some(4000),
        limit: Some(4),
        gpu_cap: 3,
        executor_gpus: Some(1),
        unreachable: UnreachableRule {
            release_after: Some(Duration::from_millis(40)),
            forget_after: Duration::from_millis(400),
        },
        locality_wait: Some(Duration::from_millis(20)),
        revive_interval: Duration::ZERO,
        ..Setup::default()
    }
}

fn former<'a>(executor: &'a str, agent_id: &'a str) -> Recovered<'a> {
    Recovered::new(
        executor,
        agent_id,
        "host",
        ExecutorResources {
            cores: MilliCpus::from_cores(1),
            memory: Mebibytes::new(1),
            gpus: Gpus::new(1),
            port: None,
        },
    )
}

fn tell(harness: &Harness, executor: &str, states: &[TaskState], millis: u64) {
    let updates: Vec<_> = states.iter().map(|state| StatusUpdate::new(executor, *state)).collect();
    harness.kernel.status_updates(&updates, at(millis), &mut Vec::new());
}

/// Answers offers of a shared agent and of one of its own, with GPUs, three times. The executors fail; or become
/// unreachable, are given up and come back twice; or run.
fn handle(harness: &Harness, number: usize) {
    let mut handler = harness.kernel.handler();
    for round in 0..3 {
        let offer_data =
            |agent| OfferData::new(agent, 2.0, 1000.0).with(Entry::scalar("gpus", 2.0));
        let batch: Vec<OfferData> = [AGENTS[0], AGENTS[number + 1]].map(offer_data).into();
        let mut decisions = Decisions::new();
        lend(&batch, |offers| handler.resource_offers(offers, at(round), &mut decisions));
        let placed = decisions.accepts().flat_map(|accept| accept.executors);
        let placed: Vec<ExecutorId> = placed.map(|executor| executor.id).collect();
        for (turn, id) in placed.into_iter().enumerate() {
            let name = harness.kernel.executor_name(id).to_string();
            match (turn + number) % 3 {
                0 => tell(harness, &name, &[TaskState::Failed], 2),
                1 => {
                    tell(harness, &name, &[TaskState::Unreachable], 2);
                    harness.kernel.tick(at(60));
                    let back = [TaskState::Running, TaskState::Unreachable, TaskState::Running];
                    tell(harness, &name, &back, 60);
                }
                _ => tell(harness, &name, &[TaskState::Running], 2),
            }
        }
        harness.kernel.answers_sent(&decisions);
        let _ = harness.kernel.poll_demand(at(3));
    }
}

/// Sets other GPU settings, caps and wanted hosts.
fn reconfigure(harness: &Harness) {
    for (executor_gpus, gpu_cap, limit) in
        [(None, 3, 4), (Some(2), 2, 3), (Some(1), 1, 2), (None, 2, 4)]
    {
        let changed = Setup { executor_gpus, gpu_cap, limit: Some(limit), ..setup() };
        harness.kernel.reconfigure(changed.config());
        let hosts: &[&str] = if gpu_cap == 2 { &["host"] } else { &[] };
        harness.kernel.set_locality(hosts.iter().copied());
    }
}

/// Takes snapshots: exact ones add up, and no row is without an agent.
fn look(harness: &Harness, swept: bool) {
    for _ in 0..3 {
        let shot = harness.kernel.snapshot(at(4));
        let counted = shot.executors.iter().filter(|row| row.phase != Phase::GivenUp).count();
        assert!(!shot.exact || counted == shot.totals.executors as usize, "{shot:?}");
        assert!(shot.executors.iter().all(|row| AGENTS.contains(&&*row.agent_id)), "{shot:?}");
        EXACT.fetch_add(usize::from(swept && shot.exact), Ordering::Relaxed);
    }
}

/// Adopts three executors, two of which have the same name, from two threads; one of them succeeds. Then they become
/// unreachable, are lost with their agent, and fail.
fn adopt(harness: &Harness) -> bool {
    let formers = [former("a", "S0"), former("b", "S1"), former("a", "S1")];
    let Ok(ids) = harness.kernel.adopt(&formers, at(0)) else { return false };
    assert!(ids[2].is_none() || ids[0].is_none(), "one name, two executors");
    tell(harness, "a", &[TaskState::Unreachable], 2);
    harness.kernel.agent_lost("S0", at(2));
    tell(harness, "b", &[TaskState::Failed], 2);
    true
}

/// All of that at once, while `ticks` pass. Then all threads stop, and all executors end.
fn everything(ticks: [u64; 4], closes: bool) {
    let harness = Harness::new(&setup());
    let mut threads: Vec<_> =
        (0..3).map(|number| harness.spawn(move |harness| handle(harness, number))).collect();
    threads.push(harness.spawn(reconfigure));
    threads
        .push(harness.spawn(move |harness| {
            ticks.iter().for_each(|now| drop(harness.kernel.tick(at(*now))))
        }));
    threads.push(harness.spawn(move |harness| look(harness, ticks == SWEEPS)));
    let adoptions = [(); 2].map(|()| harness.spawn(adopt));
    if closes {
        threads.push(harness.spawn(|harness| {
            let left = harness.kernel.close();
            harness.kernel.kill_executors(left.iter().map(|target| target.id));
        }));
    }
    join(threads);
    let adopted = join(adoptions).into_iter().filter(|adopted| *adopted).count();
    assert_eq!(adopted, 1, "one adoption is made");
    harness.kernel.check().unwrap();
    let snapshot = harness.kernel.snapshot(at(5));
    assert!(snapshot.exact, "at a standstill");
    for row in &snapshot.executors {
        let name = harness.kernel.executor_name(row.id).to_string();
        tell(&harness, &name, &[TaskState::Finished], 9);
    }
    harness.kernel.check().unwrap();
    let totals = harness.kernel.totals();
    assert_eq!((totals.executors, totals.cores), (0, MilliCpus::ZERO));
    if closes {
        let report = harness.kernel.drain(Duration::MAX);
        assert!(report.drained);
        let listed = |row: &offermill::Drained| AGENTS.contains(&&*row.executor.agent_id);
        assert!(report.executors.iter().all(listed), "{report:?}");
    }
}

/// The number of exact snapshots taken while agents were swept. In std's atomic, which is not part of the scene.
static EXACT: AtomicUsize = AtomicUsize::new(0);

/// Goal: caps, GPUs and agents' counts agree with the cells whatever happens concurrently; of two adoptions one is
/// made. Method: three handlers with GPUs, whose executors fail, become unreachable and return; settings and wanted
/// hosts change, time passes, snapshots are taken, and the kernel is closed.
#[test]
fn adoption_and_close_leak_nothing() {
    play("agents/adopt-close", 1000, || everything([10, 60, 120, 600], true));
}

/// Goal: the same while agents are forgotten; exact snapshots add up then, too, and each row has its own agent. Method:
/// time leaps, so that each tick forgets all agents without executors; executors are adopted on them.
#[test]
fn snapshots_and_adoptions_during_sweeps() {
    play("agents/sweep", 1500, || everything(SWEEPS, false));
    let exact = EXACT.load(Ordering::Relaxed);
    println!("exact snapshots while all ran: {exact}");
    assert!(exact > 0 || !is_wanted("agents/sweep"), "the scene has to test something");
}

/// Goal: executors are adopted however often their agents are forgotten meanwhile; none is left out for that. Method:
/// two of them, without caps, while handlers offer their agents and two threads sweep.
#[test]
fn no_executor_is_left_out_for_a_sweep() {
    play("agents/adopt-sweep", 1500, || {
        let harness = Harness::new(&Setup { gpu_cap: 8, ..Setup::default() });
        let handlers = [(); 2].map(|()| {
            harness.spawn(|harness| {
                let mut handler = harness.kernel.handler();
                for agent in ["S0", "S1", "S0"] {
                    harness.offer(&mut handler, &[agent], 0.5, at(0));
                }
            })
        });
        let ticks = [0, 60_000].map(|later| {
            harness.spawn(move |harness| {
                for n in 0..2 {
                    harness.kernel.tick(at(1_000_000 + later + n * 120_000));
                }
            })
        });
        let adoption = harness.spawn(|harness| {
            let formers = [former("a", "S0"), former("b", "S1")];
            harness.kernel.adopt(&formers, at(0)).unwrap().into_iter().flatten().count()
        });
        assert_eq!(join([adoption]), [2], "left out, though there is room");
        join(handlers);
        join(ticks);
        harness.kernel.check().unwrap();
    });
}
