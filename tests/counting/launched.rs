//! Batches that launch: the lines that all handlers share are written once per batch, whatever is in it.

use std::time::Duration;

use super::counts::launched;
use super::scenes::{NOW, Scene, Size, and, config, expected};
use crate::IdScheme;
use crate::config::ExecutorGpus;
use crate::kernel::lines::SharedWord;
use crate::resources::Gpus;
use crate::{Resource, TaskState};

/// Goal: the numbers that the benchmark's model uses. Method: batches of one to a hundred agents with one to eight
/// executors each, in a kernel that has cells for them.
#[test]
fn a_launching_batch_writes_each_global_line_once() {
    for agents in [1, 2, 10, 100] {
        for each in [1, 3, 8] {
            let mut scene = Scene::new(config());
            let size = Size::of(agents, each);
            scene.warm_up(size);
            let writes = scene.offer(size, NOW);
            let executors = agents as u64 * u64::from(each);
            assert_eq!(scene.decisions.executors() as u64, executors);
            assert_eq!(scene.count(&writes), expected(launched(agents as u64, executors)));
        }
    }
}

/// Goal: a batch of tasks that a framework picks writes the same lines as one of equal executors, and their tags beside
/// them: one exchange of the admission word, however many tasks. Method: batches of one to a hundred agents with one to
/// eight tasks each, in a kernel that has cells for them and doesn't record what agents offer.
#[test]
fn a_batch_of_tasks_writes_each_global_line_once() {
    for agents in [1, 2, 10, 100] {
        for each in [1, 3, 8] {
            let mut scene = Scene::new(config().capacity_refresh(Duration::MAX));
            let (size, tasks) = (Size::of(agents, each), agents as u64 * u64::from(each));
            scene.warm_up_tasks(size, tasks);
            let writes = scene.place(size, tasks);
            assert_eq!(scene.decisions.executors() as u64, tasks);
            let mut counts = scene.count(&writes);
            let tags = counts.remove(&SharedWord::Other);
            assert_eq!(tags.map(|it| it.writes), Some(2 * tasks), "a tag, and whose it is");
            // That the agent's next offer is to be recorded stands in its cell.
            let recorded = [(SharedWord::Agent, agents as u64, 0)];
            assert_eq!(counts, and(expected(launched(agents as u64, tasks)), &recorded));
        }
    }
}

/// Goal: a kernel that grows writes the table's length instead of the head of a stack. Method: agents that are known,
/// and no cell that was ever in use.
#[test]
fn growing_writes_one_word_more_and_a_stack_less() {
    let mut scene = Scene::new(config());
    scene.offer(Size { memory: 0.0, ..Size::of(10, 2) }, NOW);
    let writes = scene.offer(Size::of(10, 2), NOW);
    let mut counts = expected(launched(10, 20));
    counts.remove(&SharedWord::Stack);
    // The agents offer memory now, which is recorded.
    let recorded = [(SharedWord::Agent, 10, 0), (SharedWord::Offered, 90, 1)];
    let counts = and(counts, &recorded);
    assert_eq!(scene.count(&writes), and(counts, &[(SharedWord::Grown, 1, 1)]));
}

/// Goal: the cost of options. Method: GPUs, counted in a word of their own, once per batch if executors take a fixed
/// number; if they take what there is, the agents' next offers are recorded as well. Ids without a cell's number, which
/// are entered in a table: 16 of them in a line.
#[test]
fn options_cost_what_is_said_here() {
    let resources = [("cpus", 1.0), ("mem", 1.0), ("gpus", 1.0)]
        .map(|(name, much)| Resource::scalar(name, much));
    let exactly = ExecutorGpus::Exactly(Gpus::new(1));
    let recorded = [(SharedWord::Agent, 20, 0), (SharedWord::Offered, 90, 1)];
    for (gpus, reservations, recorded) in
        [(exactly, 1, &[][..]), (ExecutorGpus::WhatThereIs, 10, &recorded[..])]
    {
        let mut scene = Scene::new(config().gpu_cap(Gpus::new(1000)).executor_gpus(gpus));
        scene.warm_up(Size::of(10, 1));
        scene.offer_all(10, &resources, NOW);
        scene.started().into_iter().for_each(|id| drop(scene.update(id, TaskState::Finished)));
        let writes = scene.offer_all(10, &resources, NOW);
        let counts = and(expected(launched(10, 10)), &[(SharedWord::Gpus, reservations, 1)]);
        assert_eq!(scene.count(&writes), and(counts, recorded));
    }
    let mut scene = Scene::with_ids(config(), IdScheme::plain());
    scene.warm_up(Size::of(10, 1));
    let writes = scene.offer(Size::of(10, 1), NOW);
    assert_eq!(
        scene.count(&writes),
        and(expected(launched(10, 10)), &[(SharedWord::Numbers, 10, 1)])
    );
}

/// Goal: first offers of agents additionally write each agent's cell and entry. Method: agents that no handler has
/// seen, agents that another handler has seen, and both again.
#[test]
fn an_agent_is_inserted_once() {
    let mut scene = Scene::new(config().executor_limit(Some(1_000)));
    scene.warm_up(Size::of(1, 1));
    let small = Size { memory: 0.0, ..Size::of(10, 1) };
    let first = scene.offer(small, NOW);
    let met = scene.count(&first);
    assert_eq!(met[&SharedWord::Maps].writes, 9 * 2, "the nine new ones: looked for, and entered");
    let mut other = Scene::beside(&scene.kernel);
    let second = other.offer(small, NOW);
    let met = other.count(&second);
    assert_eq!(met[&SharedWord::Maps].writes, 10, "found");
    assert_eq!(met.get(&SharedWord::Agent).map_or(0, |count| count.writes), 10, "seen");
    assert!(!met.contains_key(&SharedWord::AgentSlab), "{met:?}");
    let again = other.offer(small, NOW);
    assert_eq!(other.count(&again), expected(super::counts::DECLINED));
}
