//! Several handlers on several threads.

use std::sync::Barrier;
use std::thread;

use super::counts::{DECLINED, ENDED, launched};
use super::scenes::{NOW, Scene, Size, all, config, expected};
use crate::TaskState;
use crate::kernel::lines::{SharedWord, WordAddresses};
use crate::sync::counting::{How, Write};

const SIZE: usize = 10;

fn size() -> Size {
    Size::of(SIZE, 1)
}

/// Goal: a second handler costs the first nothing: each writes what it would alone, and claims cells from a stack of
/// its own. Method: two handlers on two threads that take turns.
#[test]
fn handlers_without_contention_write_what_one_alone_does() {
    let mut first = Scene::new(config());
    let mut second = Scene::beside(&first.kernel);
    for _ in 0..2 {
        // Both at once, so that each ends with cells of its own.
        let scenes = [&mut first, &mut second];
        scenes.into_iter().for_each(|scene| drop(scene.offer(size(), NOW)));
        for scene in [&first, &second] {
            scene.started().into_iter().for_each(|id| drop(scene.update(id, TaskState::Finished)));
        }
    }
    // While both had executors, the agents had more than they offer now: that is recorded once.
    first.offer(size(), NOW);
    first.started().into_iter().for_each(|id| drop(first.update(id, TaskState::Finished)));
    let turns = Barrier::new(2);
    let run = |scene: &mut Scene, mine: usize| {
        let mut writes = Vec::new();
        for turn in 0..20 {
            turns.wait();
            if turn % 2 == mine {
                let launched = scene.offer(size(), NOW);
                let ends =
                    scene.started().into_iter().map(|id| scene.update(id, TaskState::Finished));
                writes.push((launched, ends.collect::<Vec<_>>()));
            }
        }
        writes
    };
    let (ones, others) = thread::scope(|scope| {
        let other = scope.spawn(|| run(&mut second, 1));
        (run(&mut first, 0), other.join().unwrap())
    });
    let mut stacks = Vec::new();
    for (scene, turns) in [(&first, ones), (&second, others)] {
        let lines = WordAddresses::of(&scene.kernel, &[&scene.handler]);
        for (batch, ends) in turns {
            assert_eq!(lines.count(&batch), expected(launched(SIZE as u64, SIZE as u64)));
            ends.iter().for_each(|end| assert_eq!(lines.count(end), expected(ENDED)));
            let writes = batch.iter().chain(ends.iter().flatten());
            stacks.extend(
                writes.map(|write| write.address).filter(|at| lines.word(*at) == SharedWord::Stack),
            );
        }
    }
    let half = stacks.len() / 2;
    assert!(stacks[..half].iter().all(|at| *at == stacks[0]));
    assert!(stacks[half..].iter().all(|at| *at == stacks[half] && *at != stacks[0]));
}

/// Goal: a thread that declines writes no shared line whatever others do, but for the records of agents that offer
/// something else to each thread, and a launch that contends with another
/// writes the admission word once more for each time that the other was faster. Method: a thread that declines and two
/// that launch and end, as fast as they can.
#[test]
fn handlers_with_contention_write_more_only_there() {
    let mut launching = [Scene::new(config()), Scene::new(config())];
    launching[1] = Scene::beside(&launching[0].kernel);
    launching.iter_mut().for_each(|scene| scene.warm_up(size()));
    let kernel = launching[0].kernel.clone();
    let mut declining = Scene::beside(&kernel);
    let small = Size { memory: 0.0, ..size() };
    declining.offer(small, NOW);
    declining.offer(small, NOW);
    let (declined, launched) = thread::scope(|scope| {
        let run = |scene| scope.spawn(move || launch_and_end(scene));
        let threads: Vec<_> = launching.iter_mut().map(run).collect();
        let declined: Vec<Vec<Write>> = (0..ROUNDS).map(|_| declining.offer(small, NOW)).collect();
        let launched = threads.into_iter().flat_map(|thread| thread.join().unwrap());
        (declined, launched.collect::<Vec<_>>())
    });
    assert_eq!(kernel.totals().executors, 0);
    let [one, other] = &launching;
    let lines = WordAddresses::of(&kernel, &[&declining.handler, &one.handler, &other.handler]);
    for batch in declined {
        // Here an agent offers different amounts at once, which are recorded in turn.
        let mut counts = lines.count(&batch);
        counts.remove(&SharedWord::Offered);
        counts.remove(&SharedWord::Agent);
        assert_eq!(counts, expected(DECLINED));
    }
    for writes in launched {
        let succeeded = |word| {
            let to = |write: &&Write| lines.word(write.address) == word;
            writes.iter().filter(to).filter(|write| write.how != How::Failure).count()
        };
        // Each batch once, and each end once; failed exchanges were retried.
        assert_eq!(succeeded(SharedWord::Admission), 1);
        assert_eq!(succeeded(SharedWord::Released), SIZE);
        assert_eq!(succeeded(SharedWord::Sequence), 1);
        assert_eq!(
            succeeded(SharedWord::Demand)
                + succeeded(SharedWord::Policy)
                + succeeded(SharedWord::Other),
            0
        );
    }
}

const ROUNDS: usize = 300;

/// What each round of a batch and its ends wrote.
fn launch_and_end(scene: &mut Scene) -> Vec<Vec<Write>> {
    let rounds = (0..ROUNDS).map(|_| {
        let batch = scene.offer(size(), NOW);
        let ends = scene.started().into_iter().map(|id| scene.update(id, TaskState::Finished));
        all([batch].into_iter().chain(ends))
    });
    rounds.collect()
}
