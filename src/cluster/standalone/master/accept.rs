//! ACCEPT: launches tasks on offers, and declines the rest.

use std::time::Duration;

use super::launch_tag::LaunchOrder;
use super::registered::{MasterTask, OutstandingOffer};
use super::task_info::{RequestedExecutor, grace, read_task};
use super::{MasterNotice, RefusedCall, StandaloneMaster};
use crate::cluster::process::is_valid_name;
use crate::cluster::standalone::protocol::{
    EXECUTORS_MAX, ExecutorKey, ExecutorLaunch, WorkerEvent, WorkerResources,
};
use crate::foreign_text::cut;
use crate::mesos_v1::messages::call::Accept;
use crate::mesos_v1::messages::{OperationType, Reason, TaskInfo, TaskState};

/// The longest name of a framework that workers are told, in bytes.
const NAME_BYTES_MAX: usize = 256;
/// The most executors of a framework on a worker, so that others have room there as well.
const FRAMEWORK_EXECUTORS_MAX: usize = EXECUTORS_MAX / 2;

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
        let launch = checked.and_then(|checked| self.new_launch(number, worker, task, checked));
        let launch = match launch {
            Ok(launch) => launch,
            Err(why) => {
                let (state, reason) = (TaskState::Error, Reason::TaskInvalid);
                self.report(&key, Some(worker), state, reason, &why);
                return;
            }
        };
        if let Some(why) = self.fullness(worker, &key.framework) {
            let (state, reason) = (TaskState::Dropped, Reason::TaskInvalid);
            self.report(&key, Some(worker), state, reason, &why);
            return;
        }
        *rest = rest.minus(&launch.resources);
        let launched = self.next_launch();
        self.next_number += 1;
        let Some(registered) = self.workers.get_mut(worker) else { return };
        self.totals.launched += 1;
        registered.launches = launch.sequence;
        let made = MasterTask::new(launched, launch.resources.clone(), TaskState::Staging);
        registered.tasks.insert(key.clone(), made);
        self.placed.insert(key.clone(), worker.to_owned());
        self.tell_worker(worker, WorkerEvent::Launch(launch));
        let worker = worker.to_owned();
        self.notices.push(MasterNotice::ExecutorLaunched { key, worker });
    }

    /// The message that launches a task.
    ///
    /// # Errors
    /// With a sentence, if the worker wouldn't take it.
    fn new_launch(
        &self,
        number: u64,
        worker: &str,
        task: &TaskInfo,
        asked: RequestedExecutor,
    ) -> Result<Box<ExecutorLaunch>, String> {
        let RequestedExecutor { resources, mut command, hosting } = asked;
        let info = self.frameworks.get(&number).map(|it| &it.info);
        let name = info.map(|it| it.name.clone());
        if command.user.is_none() {
            command.user = info.map(|it| it.user.clone()).filter(|user| !user.is_empty());
        }
        let key = self.key(number, &task.task_id.value);
        let launch = Box::new(ExecutorLaunch {
            tag: self.settings.launch_key.tag(worker, &key, self.next_launch()),
            key,
            sequence: self.workers.get(worker).map_or(0, |it| it.launches) + 1,
            term: self.settings.term,
            name: cut(name.unwrap_or_default(), NAME_BYTES_MAX),
            resources,
            command,
            hosting,
            grace: grace(task.kill_policy.as_ref()),
        });
        let event = WorkerEvent::Launch(launch.clone());
        event
            .check_message()
            .map_err(|why| format!("the task can't be sent to its worker: {why}"))?;
        Ok(launch)
    }

    /// When the next executor is launched.
    fn next_launch(&self) -> LaunchOrder {
        LaunchOrder { term: self.settings.term, number: self.next_number }
    }

    /// Why a worker takes no further executor of a framework, if it has as many as it may have.
    fn fullness(&self, worker: &str, framework: &str) -> Option<String> {
        let tasks = &self.workers.get(worker)?.tasks;
        let own = tasks.keys().filter(|key| key.framework == framework).count();
        let (most, whose) = match (tasks.len(), own) {
            (EXECUTORS_MAX.., _) => (EXECUTORS_MAX, ""),
            (_, FRAMEWORK_EXECUTORS_MAX..) => (FRAMEWORK_EXECUTORS_MAX, " of the framework"),
            _ => return None,
        };
        Some(format!("its worker has {most} executors{whose}, with ends that aren't acknowledged"))
    }

    fn check_task(
        &self,
        worker: &str,
        key: &ExecutorKey,
        task: &TaskInfo,
        rest: &WorkerResources,
    ) -> Result<RequestedExecutor, String> {
        if key.executor.is_empty() {
            return Err("the task has no id".to_owned());
        }
        if !is_valid_name(&key.executor) {
            return Err("the task's id is not allowed as the name of a folder".to_owned());
        }
        if self.placed.contains_key(key) {
            return Err("another task of the framework has this id".to_owned());
        }
        if task.agent_id.value != worker {
            return Err("the task names another agent than its offers do".to_owned());
        }
        let asked = read_task(task)?;
        let has_hosts = self.workers.get(worker).is_some_and(|it| it.has_hosts);
        if !asked.hosting.is_alone() && !has_hosts {
            return Err(
                "its worker is of an earlier version, which has no hosts of tasks".to_owned()
            );
        }
        let resources = &asked.resources;
        if !rest.covers(resources) {
            return Err(format!("the task asks for {resources}, but the offers have {rest} left"));
        }
        Ok(asked)
    }
}
