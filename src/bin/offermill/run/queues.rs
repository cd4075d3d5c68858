//! The queues of a run (`--queues`): what is in them, and their change by command while the run is going on.

use offermill::config::Queue;
use offermill::limits::QUEUES_MAX;
use offermill::{Config, ConfigBuilder, Phase, QueueUse};
use serde_json::json;

use super::Session;
use super::commands::STOPPING;
use crate::model::event::RunEvent;
use crate::model::queue::{BoundChange, QueueContent, QueueInfo};
use crate::model::reply::{CommandOutcome, ControlReply};
use crate::output::queues::{change_object, changes_sentence, queue_objects, queues_text};
use crate::tasks::demand::QueueTasks;
use crate::tasks::run_queues::RunQueues;

const NO_GUARANTEES: &str =
    "guarantees are for tasks (--tasks): all executors of this run are in one queue";
const COUNTS_DOWN: &str =
    "queues stay as they are with --until-finished, whose limit counts down meanwhile";
const NO_QUEUES: &str =
    "this run has no queues; expected --queues at its start, such as --queues default";

impl Session {
    /// The queues as text or as a JSON object.
    pub(super) fn list_queues(&self, is_json: bool) -> CommandOutcome {
        let queues = match self.queues() {
            Ok(queues) => queues,
            Err(why) => return ControlReply::Refused(why).into(),
        };
        let reply = match is_json {
            true => ControlReply::Object(json!({ "queues": queue_objects(&queues) })),
            false => ControlReply::Block(queues_text(&queues)),
        };
        reply.into()
    }

    /// The queues of the run's tasks, or of its executors.
    ///
    /// # Errors
    /// Says that there are none.
    fn queues(&self) -> Result<Vec<QueueInfo>, String> {
        let uses = self.kernel.queues();
        if uses.is_empty() {
            return Err(NO_QUEUES.to_owned());
        }
        let config = self.kernel.config();
        let contents = self.queue_contents();
        let info = |(mut taken, content): (QueueUse, QueueContent)| {
            let queue = config.queues().get(taken.id);
            (taken.guaranteed_cores, taken.guaranteed_memory) =
                queue.map(Queue::guarantees).unwrap_or_default();
            QueueInfo { taken, content }
        };
        Ok(uses.into_iter().zip(contents).map(info).collect())
    }

    /// What is in each queue, by number. Executors of a former run may be in others than those of this one.
    fn queue_contents(&self) -> Vec<QueueContent> {
        let Some(tasks) = &self.tasks else {
            let mut executors = [0; QUEUES_MAX];
            for executor in self.kernel.snapshot(self.clock.now()).executors {
                if let Some(queue) = executor.queue.filter(|_| executor.phase != Phase::GivenUp) {
                    executors[usize::from(queue.number())] += 1;
                }
            }
            return executors.map(QueueContent::Executors).into();
        };
        let (tasks, (hosts, of_hosts)) = tasks.queue().tasks_by_queue();
        let of_queue = |(number, tasks): (usize, QueueTasks)| {
            let hosts = if number == usize::from(of_hosts.number()) { hosts } else { 0 };
            let QueueTasks { in_flight: running, yet_to_start: waiting } = tasks;
            QueueContent::Tasks { running, waiting, hosts }
        };
        tasks.into_iter().enumerate().map(of_queue).collect()
    }

    /// Changes bounds of queues: all that the text says, or none.
    pub(super) fn change_queues(&mut self, text: &str) -> CommandOutcome {
        let changed = self.plan_change(text);
        let (changes, config) = match changed {
            Ok(planned) => planned,
            Err(why) => return ControlReply::Refused(why).into(),
        };
        let Some(engine) = &self.engine else {
            return ControlReply::Refused(STOPPING.to_owned()).into();
        };
        let detail = json!({ "changes": changes.iter().map(change_object).collect::<Vec<_>>() });
        if changes.is_empty() {
            return CommandOutcome::done("the queues are as before".to_owned(), detail);
        }
        // Revives offers, so that what waits for room that is there now starts.
        engine.reconfigure(config);
        let mut text = changes_sentence(&changes);
        // All executors start in one queue.
        let own = self.kernel.config().queues().executor_queue();
        let may_start = |queue: &QueueInfo| self.tasks.is_some() || queue.taken.id == own;
        let queues = self.queues().unwrap_or_default();
        for queue in queues.iter().filter(|queue| queue.is_too_full() && may_start(queue)) {
            let name = &queue.taken.name;
            let none = match &self.tasks {
                Some(_) => "none of its tasks starts",
                None => "no executor starts",
            };
            text.push_str(&format!(
                "; {name} takes more than that now: {none} until it takes less"
            ));
        }
        let event = RunEvent::QueuesChanged { changes, why: "by command".to_owned() };
        self.publish(self.clock.now(), event);
        CommandOutcome::done(text, detail)
    }

    /// What a text changes of the queues, and the kernel's settings then.
    ///
    /// # Errors
    /// Says what is wrong with it, or what would never start then.
    fn plan_change(&self, text: &str) -> Result<(Vec<BoundChange>, Config), String> {
        let config = self.kernel.config();
        let before = RunQueues::of(&config);
        if !before.are_given() {
            return Err(NO_QUEUES.to_owned());
        }
        if self.settings.until_finished.is_some() {
            // The limit in `config` would replace one that an end has lowered since.
            return Err(COUNTS_DOWN.to_owned());
        }
        let after = before.changed(text)?;
        let builder = after.queues().fold(config.to_builder(), ConfigBuilder::queue);
        let config = builder.build().map_err(|error| error.to_string())?;
        let refused = match &self.tasks {
            Some(tasks) => tasks.queue().check_queues(&after, &config).err(),
            None if after.have_guarantees() => Some(NO_GUARANTEES.to_owned()),
            None => after.no_executor_starts(&config),
        };
        match refused {
            Some(why) => Err(why),
            None => Ok((before.changes(&after), config)),
        }
    }
}
