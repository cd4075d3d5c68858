//! What a control thread's timers take, with ten thousand executors: they scan all cells when there is something to
//! look for, on their own thread.

use criterion::Criterion;
use offermill::{StatusUpdate, TaskState, Timestamp};

use crate::scene;
use crate::support;

pub(crate) fn all(criterion: &mut Criterion) {
    let mut group = support::group(criterion, "reports/timers");
    let kernel = scene::ours().pictured;
    // Long after the sweep of agents that the first tick makes.
    let now = Timestamp::from_millis(1_000);
    kernel.tick(now);
    group.bench_function("poll", |bencher| bencher.iter(|| kernel.poll_demand(now)));
    group.bench_function("tick", |bencher| bencher.iter(|| kernel.tick(now)));
    let snapshot = kernel.snapshot(now);
    if let Some(row) = snapshot.executors.first() {
        let name = kernel.executor_name(row.id).to_string();
        kernel.status_update(&StatusUpdate::new(&name, TaskState::Unreachable), now);
        group.bench_function("tick, one out of sight", |bencher| {
            bencher.iter(|| kernel.tick(now));
        });
        let agent = &row.agent_id;
        group.bench_function("agent lost", |bencher| {
            bencher.iter(|| kernel.agent_lost(agent, now));
        });
    }
    group.finish();
}
