//! Helpers of models of the whole kernel: a small kernel, offers of whole cores, and updates.

use std::time::Duration;

use crate::config::{ExclusionRule, ExecutorCores, UnreachableRule};
use crate::kernel::state::executors::ExecutorCell;
use crate::resources::{Mebibytes, MilliCpus};
use crate::{
    Config, ConfigBuilder, Decisions, ExecutorId, Handler, IdScheme, Kernel, Offer, Outcome,
    Resource, StatusUpdate, TaskState, Timestamp,
};

pub(super) const NOW: Timestamp = Timestamp::from_millis(1000);
/// When an executor that became unreachable at [`NOW`] is given up.
pub(super) const LATER: Timestamp = Timestamp::from_millis(2000);
/// When an executor that was given up at the time above is forgotten.
pub(super) const STILL_LATER: Timestamp = Timestamp::from_millis(3000);

/// When agents that were seen at [`NOW`] are forgotten.
pub(super) const SWEPT: Timestamp = Timestamp::from_millis(2_000_000);

const SECOND: Duration = Duration::from_secs(1);

/// Executors of one core, given up and forgotten after one second each.
pub(super) fn config() -> ConfigBuilder {
    Config::builder()
        // What agents offer is recorded in the models of that only: elsewhere it would multiply the executions.
        .capacity_refresh(Duration::MAX)
        .executor_cores(ExecutorCores::Fixed(MilliCpus::from_cores(1)))
        .executor_memory(Mebibytes::new(1))
        .memory_overhead(Some(Mebibytes::ZERO))
        .unreachable(UnreachableRule { release_after: Some(SECOND), forget_after: SECOND })
        .exclusion(Some(ExclusionRule { failures: 2, ..ExclusionRule::default() }))
}

/// A kernel that knows its agent and has allocated its first two cells, so that models needn't explore that.
pub(super) fn kernel(config: ConfigBuilder) -> Kernel {
    let kernel = Kernel::new(config.build().unwrap(), IdScheme::unique("l", 0).unwrap());
    let _knows_the_agent = used_handler(&kernel);
    kernel
}

/// A handler that has placed an executor, which has ended: it knows the agent, and has pinned the version in force.
/// For models of something else than the first offers to a handler, which would multiply the executions.
pub(super) fn used_handler(kernel: &Kernel) -> Handler {
    let mut handler = kernel.handler();
    place_and_finish(kernel, &mut handler, "S0", 1);
    handler
}

/// A handler places executors on `cores` of an agent, and they end.
pub(super) fn place_and_finish(kernel: &Kernel, handler: &mut Handler, agent: &str, cores: u32) {
    for id in offer_to(handler, agent, cores) {
        finish(kernel, &kernel.executor_name(id).to_string());
    }
}

/// Offers `cores` of the one agent. Returns the names of the executors placed.
pub(super) fn offer(kernel: &Kernel, cores: u32) -> Vec<String> {
    offer_from(kernel, "S0", cores)
}

/// Offers `cores` of an agent.
pub(super) fn offer_from(kernel: &Kernel, agent: &str, cores: u32) -> Vec<String> {
    let placed = offer_to(&mut kernel.handler(), agent, cores);
    placed.into_iter().map(|id| kernel.executor_name(id).to_string()).collect()
}

/// Offers `cores` of an agent to a handler. Returns the executors placed.
pub(super) fn offer_to(handler: &mut Handler, agent: &str, cores: u32) -> Vec<ExecutorId> {
    let mut decisions = Decisions::new();
    offer_of(agent, cores, |offers| handler.resource_offers(offers, NOW, &mut decisions));
    let placed = decisions.accepts().flat_map(|accepted| accepted.executors);
    placed.map(|executor| executor.id).collect()
}

/// A batch with one offer of `cores` of an agent.
pub(super) fn offer_of(agent: &str, cores: u32, answer: impl FnOnce(&[Offer<'_>])) {
    let resources =
        [Resource::scalar("cpus", f64::from(cores)), Resource::scalar("mem", f64::from(cores))];
    answer(&[Offer::new("o", agent, "host", &resources, &[])]);
}

pub(super) fn update(kernel: &Kernel, executor: &str, state: TaskState) -> Outcome {
    kernel.status_update(&StatusUpdate::new(executor, state), NOW)
}

/// Ends an executor by an updater of its own.
pub(super) fn finish_by_updater(kernel: &Kernel, executor: &str) {
    let update = StatusUpdate::new(executor, TaskState::Finished);
    kernel.updater().status_update(&update, NOW);
}

pub(super) fn finish(kernel: &Kernel, executor: &str) {
    update(kernel, executor, TaskState::Finished);
}

/// Ends all executors in one batch.
pub(super) fn finish_all(kernel: &Kernel, executors: &[String]) {
    let end = |name| StatusUpdate::new(name, TaskState::Finished);
    let updates: Vec<StatusUpdate<'_>> = executors.iter().map(|name| end(name)).collect();
    kernel.status_updates(&updates, NOW, &mut Vec::new());
}

/// A kernel with one executor, which is unreachable.
pub(super) fn one_unreachable(config: ConfigBuilder) -> (Kernel, String) {
    let kernel = kernel(config);
    let executor = offer(&kernel, 1).remove(0);
    update(&kernel, &executor, TaskState::Unreachable);
    (kernel, executor)
}

/// An executor becomes unreachable and is given up.
pub(super) fn give_up(kernel: &Kernel, executor: &str) {
    update(kernel, executor, TaskState::Unreachable);
    assert_eq!(kernel.tick(LATER).given_up.len(), 1);
}

/// A kernel with one executor, which was given up.
pub(super) fn one_given_up(config: ConfigBuilder) -> (Kernel, String) {
    let kernel = kernel(config);
    let executor = offer(&kernel, 1).remove(0);
    give_up(&kernel, &executor);
    (kernel, executor)
}

/// An executor's id and cell, for mutants that bypass the kernel.
pub(super) fn cell<'k>(kernel: &'k Kernel, executor: &str) -> (ExecutorId, &'k ExecutorCell) {
    let id = kernel.executor_id(executor).unwrap();
    (id, kernel.0.executors.get(id.slot).unwrap())
}
