//! The queue that the executors of a run without tasks are in (`--executor-queue`).

use offermill::Config;
use offermill::config::QueueId;

use crate::settings::checks::tasks::QUEUES;
use crate::settings::draft::SettingsDraft;
use crate::settings::flags::RunArguments;

/// Its key.
const EXECUTOR_QUEUE: &str = "offermill.executorQueue";

/// Finds the queue of executors. Reports one that isn't there, and what doesn't go with queues of executors.
pub(crate) fn find_executor_queue(draft: &mut SettingsDraft, arguments: &RunArguments) {
    let (queues, own) = (draft.name_of(QUEUES), draft.name_of(EXECUTOR_QUEUE));
    if !draft.queues.are_given() {
        // If queues are wrong, that is said already.
        if draft.executor_queue_name.is_some() && draft.given(QUEUES).is_none() {
            draft.problems.push(format!("{own} names one of --queues, which aren't given"));
        }
        return;
    }
    if draft.queues.have_guarantees() {
        let why = "guarantees are for tasks (--tasks): all executors are in one queue";
        draft.problems.push(format!("{queues}: {why}"));
    }
    if arguments.journal.is_some() {
        let why = "a journal doesn't have queues and their changes";
        draft.problems.push(format!("{queues} doesn't go with --journal: {why}"));
    }
    let names = draft.queues.names();
    let found = match &draft.executor_queue_name {
        Some(name) => draft.queues.find(name).map_err(|_| format!("{own} is none of {queues}")),
        None if draft.queues.count() == 1 => Ok(QueueId::DEFAULT),
        None => Err(format!("{queues}: expected --executor-queue with one of them")),
    };
    match found {
        Ok(queue) => draft.executor_queue = queue,
        Err(why) => draft.problems.push(format!("{why}: {names}")),
    }
}

/// Reports a queue that never has room for an executor.
pub(crate) fn check_room(draft: &mut SettingsDraft, config: &Config) {
    if let Some(why) = draft.queues.no_executor_starts(config) {
        let name = draft.name_of(QUEUES);
        draft.problems.push(format!("{name}: {why}"));
    }
}
