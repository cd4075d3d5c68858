//! ACCEPT: launches tasks on offers, and declines the rest.

use std::time::Duration;

use super::registered::{MasterTask, OutstandingOffer};
use super::task_info::{grace, read_task};
use super::{RefusedCall, StandaloneMaster};
use crate::cluster::standalone::protocol::{
    ExecutorKey, ExecutorLaunch, WorkerEvent, WorkerResources,
};
use crate::foreign_text::{cut, id_problem};
use crate::mesos_v1::messages::call::Accept;
use crate::mesos_v1::messages::{OperationType, Reason, TaskInfo, TaskState};

/// The longest name of a framework that workers are told, in bytes.
const NAME_BYTES_MAX: usize = 256;

impl StandaloneMaster {
    /// Launches the tasks of an accept.
    ///
    /// # Errors
    /// If an operation isn't a launch: then nothing is done, and the offers stay open.
    pub(super) fn accept(
        &mut self,
        number: u64,
        accept: Accept,
        refuse: Duration,
        now: Duration,
    ) -> Result<(), RefusedCall> {
        for operation in &accept.operations {
            if operation.r#type != Some(OperationType::Launch.into()) {
                let name = format!("{:?}", operation.r#type());
                let sentence = format!("the operation {name} isn't supported, only LAUNCH is");
                return Err(RefusedCall(sentence));
            }
        }
        let launches = accept.operations.into_iter().filter_map(|operation| operation.launch);
        let tasks: Vec<TaskInfo> = launches.flat_map(|launch| launch.task_infos).collect();
        let ids: Vec<&str> = accept.offer_ids.iter().map(|id| id.value.as_str()).collect();
        let offers = self.close_offers(number, &ids);
        let worker = offers.first().map(|offer| offer.worker.clone());
        let is_valid = offers.len() == ids.len()
            && offers.iter().all(|offer| Some(&offer.worker) == worker.as_ref());
        let Some(worker) = worker.filter(|_| is_valid) else {
            for task in &tasks {
                let key = self.key(number, &task.task_id.value);
                let agent = &task.agent_id.value;
                let message = "an offer isn't valid any more";
                let reason = Reason::InvalidOffers;
                self.report(&key, Some(agent), TaskState::Dropped, reason, message);
            }
            return Ok(());
        };
        let whole = WorkerResources::default();
        let mut rest = offers.iter().fold(whole, |sum, offer| sum.plus(&offer.resources));
        for task in &tasks {
            self.launch(number, &worker, task, &mut rest);
        }
        self.hold_back(number, &worker, rest, refuse, now);
        Ok(())
    }

    /// Closes those of these offers that are a framework's own. Their resources are free then.
    pub(super) fn close_offers(&mut self, number: u64, ids: &[&str]) -> Vec<OutstandingOffer> {
        let mut closed = Vec::new();
        for id in ids {
            let is_meant = |offer: &OutstandingOffer| offer.framework == number && offer.id == *id;
            let found = self.offers.iter().find(|(_, offer)| is_meant(offer)).map(|it| *it.0);
            closed.extend(found.and_then(|found| self.offers.remove(&found)));
        }
        closed
    }

    pub(super) fn key(&self, number: u64, task: &str) -> ExecutorKey {
        let framework = self.frameworks.get(&number).map(|it| it.id.as_str());
        ExecutorKey::new(framework.unwrap_or_default(), task)
    }

    /// Launches a task out of `rest`, or reports why not.
    fn launch(&mut self, number: u64, worker: &str, task: &TaskInfo, rest: &mut WorkerResources) {
        let key = self.key(number, &task.task_id.value);
        let checked = self.check_task(worker, &key, task, rest);
        let (resources, command) = match checked {
            Ok(checked) => checked,
            Err(why) => {
                let (state, reason) = (TaskState::Error, Reason::TaskInvalid);
                self.report(&key, Some(worker), state, reason, &why);
                return;
            }
        };
        *rest = rest.minus(&resources);
        let name = self.frameworks.get(&number).map(|it| it.info.name.clone());
        let Some(registered) = self.workers.get_mut(worker) else { return };
        registered.launches += 1;
        let launch = ExecutorLaunch {
            key: key.clone(),
            sequence: registered.launches,
            term: self.settings.term,
            name: cut(name.unwrap_or_default(), NAME_BYTES_MAX),
            resources: resources.clone(),
            command,
            grace: grace(task.kill_policy.as_ref()),
        };
        registered.tasks.insert(key.clone(), MasterTask::new(resources, TaskState::Staging));
        self.placed.insert(key, worker.to_owned());
        self.tell_worker(worker, WorkerEvent::Launch(Box::new(launch)));
    }

    fn check_task(
        &self,
        worker: &str,
        key: &ExecutorKey,
        task: &TaskInfo,
        rest: &WorkerResources,
    ) -> Result<(WorkerResources, crate::cluster::standalone::protocol::ExecutorCommand), String>
    {
        if let Some(why) = id_problem("the task's id", &key.executor) {
            return Err(why);
        }
        if key.executor.is_empty() {
            return Err("the task has no id".to_owned());
        }
        if self.placed.contains_key(key) {
            return Err("another task of the framework has this id".to_owned());
        }
        if task.agent_id.value != worker {
            return Err("the task names another agent than its offers do".to_owned());
        }
        let (resources, command) = read_task(task)?;
        if !rest.covers(&resources) {
            return Err(format!("the task asks for {resources}, but the offers have {rest} left"));
        }
        Ok((resources, command))
    }
}
