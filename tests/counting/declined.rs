//! Declined offers write nothing that another thread reads or writes, except in the few cases below.

use std::time::Duration;

use super::counts::DECLINED;
use super::scenes::{Counts, NOW, Scene, Size, after, config, expected};
use crate::config::{ExclusionRule, ExecutorGpus};
use crate::kernel::lines::SharedWord;
use crate::resources::{Gpus, MilliCpus};
use crate::{ConfigBuilder, Constraint, DemandCall, ReasonKind, TaskState};

const AGENTS: usize = 50;
/// What a record takes: its lock, and a line with six words and twice the sequence.
const RECORD: u64 = 9;
const ROOMY: Size = Size { agents: AGENTS, cores: 4.0, memory: 100.0 };

/// What a batch writes that follows one like it and is declined for this reason.
fn declined(mut scene: Scene, size: Size, kind: ReasonKind) -> Counts {
    scene.offer(size, NOW);
    let writes = scene.offer(size, NOW);
    let declines = scene.decisions.declines();
    assert_eq!(declines.len(), AGENTS);
    assert!(declines.iter().all(|decline| decline.reason.kind() == kind), "{:?}", declines[0]);
    scene.count(&writes)
}

/// A scene without room beyond the executors that run.
fn full(config: ConfigBuilder) -> Scene {
    let mut scene = Scene::new(config);
    scene.offer(ROOMY, NOW);
    assert_eq!(scene.decisions.executors(), 1);
    scene
}

/// A scene in which an executor has failed on each agent.
fn failed() -> Scene {
    let rule = ExclusionRule { failures: 1, ..ExclusionRule::default() };
    let mut scene = Scene::new(config().exclusion(Some(rule)));
    scene.offer(Size::of(AGENTS, 1), NOW);
    scene.started().into_iter().for_each(|id| drop(scene.update(id, TaskState::Failed)));
    scene
}

/// Goal: whatever the reason, a declined batch writes only its handler's own counters. Method: a batch for each kind of
/// reason that can be that of all offers, after one like it.
#[test]
fn declines_write_no_shared_line() {
    let own = expected(DECLINED);
    let constraint = config().constraint(Constraint::parse("zone:north").unwrap());
    assert_eq!(declined(Scene::new(constraint), ROOMY, ReasonKind::ConstraintUnmet), own);
    let small = Size { cores: 0.5, ..ROOMY };
    assert_eq!(declined(Scene::new(config()), small, ReasonKind::Cpus), own);
    let small = Size { memory: 0.0, ..ROOMY };
    assert_eq!(declined(Scene::new(config()), small, ReasonKind::Memory), own);
    let gpus = config().gpu_cap(Gpus::new(9)).executor_gpus(ExecutorGpus::Exactly(Gpus::new(1)));
    assert_eq!(declined(Scene::new(gpus), ROOMY, ReasonKind::Gpus), own);
    let port = config().fixed_port(Some(7000));
    assert_eq!(declined(Scene::new(port), ROOMY, ReasonKind::Port), own);
    assert_eq!(declined(failed(), ROOMY, ReasonKind::AgentExcluded), own);
    let limited = full(config().executor_limit(Some(1)));
    assert_eq!(declined(limited, ROOMY, ReasonKind::ExecutorLimit), own);
    let capped = full(config().core_cap(Some(MilliCpus::from_cores(1))));
    assert_eq!(declined(capped, ROOMY, ReasonKind::CoreCap), own);
    let closed = Scene::new(config());
    closed.kernel.close();
    assert_eq!(declined(closed, ROOMY, ReasonKind::Stopping), own);
    let disconnected = Scene::new(config());
    disconnected.kernel.disconnected();
    assert_eq!(declined(disconnected, ROOMY, ReasonKind::Disconnected), own);
}

/// Goal: the same for suspect agents. Method: report all agents as lost, and offer them.
#[test]
fn suspects_are_declined_without_a_shared_write() {
    let mut scene = Scene::new(config());
    scene.warm_up(Size::of(AGENTS, 1));
    for agent in 0..AGENTS {
        scene.kernel.agent_lost(&format!("S{agent}"), NOW);
    }
    assert_eq!(declined(scene, ROOMY, ReasonKind::AgentSuspect), expected(DECLINED));
}

/// Goal: a reached cap is recorded once between two calls about demand, not once per batch. Method: three batches
/// between polls that return a call, and one after a poll that doesn't.
#[test]
fn a_cap_is_noted_once_a_call() {
    let mut scene = Scene::new(config().executor_limit(Some(0)));
    for seconds in [0, 2, 4] {
        let mut demands = Vec::new();
        for batch in 0..4 {
            let writes = scene.offer(ROOMY, after(seconds));
            let mut counts = scene.count(&writes);
            demands.push(counts.remove(&SharedWord::Demand).map_or(0, |count| count.writes));
            assert!(counts.keys().all(|word| *word == SharedWord::Own(0)), "{counts:?}");
            if batch == 2 {
                assert_eq!(scene.kernel.poll_demand(after(seconds)), Some(DemandCall::Suppress));
                assert_eq!(scene.kernel.poll_demand(after(seconds)), None);
            }
        }
        let first = u64::from(seconds == 0);
        assert_eq!(demands, [first, 0, 0, 1], "{seconds}");
    }
}

/// Goal: over time, little is written: a candidate's cell and record once per minute, and the nearest miss, which is
/// the handler's own. Method: a batch after a minute, and the one after it.
#[test]
fn a_candidate_is_seen_once_a_minute() {
    let small = Size { memory: 0.0, ..ROOMY };
    let mut scene = Scene::new(config());
    scene.offer(small, NOW);
    scene.offer(small, NOW);
    let minute = scene.offer(small, after(60));
    let mut counts = scene.count(&minute);
    let recorded = counts.remove(&SharedWord::Offered);
    assert!(recorded.is_none_or(|it| it.writes == RECORD * AGENTS as u64), "{recorded:?}");
    assert!(
        counts.keys().all(|word| matches!(word, SharedWord::Agent | SharedWord::Own(0))),
        "{counts:?}"
    );
    assert!(counts.get(&SharedWord::Agent).is_none_or(|count| count.writes == AGENTS as u64));
    let soon = scene.offer(small, after(60));
    assert_eq!(scene.count(&soon), expected(DECLINED));
}

/// Goal: an agent's record is written when it offers something else, once and by whichever handler sees it; declines of
/// the same offer write nothing, nor do offers of what a launch has left. Method: offers of one size, then of another,
/// to two handlers in turn; then a launch and offers of the rest.
#[test]
fn what_is_offered_is_written_when_it_changes() {
    let agents = AGENTS as u64;
    let mut scene = Scene::new(config());
    let mut other = Scene::beside(&scene.kernel);
    scene.warm_up(Size::of(AGENTS, 1));
    let small = |memory| Size { memory, ..Size::of(AGENTS, 4) };
    for handler in [&mut scene, &mut other] {
        handler.offer(small(0.5), NOW);
    }
    let writes = other.offer(small(0.25), NOW);
    let mut counts = other.count(&writes);
    // Beside the record, the fingerprint.
    let record = counts.remove(&SharedWord::Offered).unwrap();
    assert_eq!((record.writes, counts[&SharedWord::Agent].writes), (RECORD * agents, agents));
    assert_eq!(counts[&SharedWord::Agent].lines, agents);
    for handler in [&mut scene, &mut other] {
        let writes = handler.offer(small(0.25), NOW);
        assert_eq!(handler.count(&writes), expected(DECLINED));
    }
    scene.kernel.set_executor_limit(Some(AGENTS as u32)).unwrap();
    scene.offer(Size::of(AGENTS, 4), NOW);
    assert_eq!(scene.started().len(), AGENTS);
    scene.kernel.set_executor_limit(None).unwrap();
    let left = Size { agents: AGENTS, cores: 3.0, memory: 3.0 };
    let writes = scene.offer(left, NOW);
    assert!(!scene.count(&writes).contains_key(&SharedWord::Offered), "nothing new was offered");
}

/// Goal: if the capacity is switched off, offers that change write nothing. Method: offers of one size, then of
/// another.
#[test]
fn what_is_not_recorded_is_not_written() {
    let mut scene = Scene::new(config().capacity_refresh(Duration::MAX));
    let small = |memory| Size { memory, ..Size::of(AGENTS, 4) };
    scene.offer(small(0.75), NOW);
    for memory in [0.5, 0.25] {
        let writes = scene.offer(small(memory), NOW);
        assert_eq!(scene.count(&writes), expected(DECLINED));
    }
}
