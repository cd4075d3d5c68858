//! Spark's scheduler of tasks, with one difference: it doesn't shuffle offers. Stages have their turns in the order in
//! which they came; the tasks of a stage go round the offers, one for each that has enough cores, until none fits or
//! none waits.

use std::collections::{BTreeMap, BTreeSet};

use super::task_set::TaskSet;
use crate::replay::spark_state::SparkState;

/// The stages with their tasks, and what runs where according to Spark.
#[derive(Debug)]
pub(super) struct TaskScheduler {
    /// The cores of a task.
    cores: i32,
    /// The failures of one task after which its stage is given up.
    failures_max: u32,
    stages: Vec<TaskSet>,
    next_id: i64,
    /// The stage and the agent of each task that runs.
    running: BTreeMap<i64, (usize, String)>,
    /// The tasks that run on each agent that offered something, until its executor is lost.
    agents: BTreeMap<String, BTreeSet<i64>>,
}

/// What an agent offers to tasks.
#[derive(Clone, Debug)]
pub(super) struct WorkerOffer {
    pub(super) agent: String,
    /// The whole cores.
    pub(super) cores: i32,
}

/// A task that was placed.
#[derive(Clone, Debug)]
pub(super) struct PlacedTask {
    pub(super) id: i64,
    pub(super) name: String,
}

impl TaskScheduler {
    pub(super) fn new(cores: u32, failures_max: u32) -> TaskScheduler {
        TaskScheduler {
            // The number of cores is at most a million.
            cores: i32::try_from(cores).unwrap_or(i32::MAX),
            failures_max,
            stages: Vec::new(),
            next_id: 0,
            running: BTreeMap::new(),
            agents: BTreeMap::new(),
        }
    }

    /// Adds a stage.
    pub(super) fn submit(&mut self, tasks: u32) {
        // There are fewer stages than events.
        let stage = u32::try_from(self.stages.len()).unwrap_or(u32::MAX);
        self.stages.push(TaskSet::new(stage, tasks));
    }

    /// The number of tasks that wait.
    pub(super) fn waiting(&self) -> u64 {
        self.stages.iter().map(|stage| stage.waiting() as u64).sum()
    }

    pub(super) fn give_up(&mut self) {
        self.stages.iter_mut().for_each(TaskSet::give_up);
    }

    /// Records which agents have executors, as Spark takes each offer for one.
    pub(super) fn see(&mut self, offers: &[WorkerOffer]) {
        for offer in offers {
            self.agents.entry(offer.agent.clone()).or_default();
        }
    }

    /// Places tasks on offers. Returns those of each offer, in order.
    pub(super) fn offers(&mut self, offers: &[WorkerOffer]) -> Vec<Vec<PlacedTask>> {
        self.see(offers);
        let mut left: Vec<i32> = offers.iter().map(|offer| offer.cores).collect();
        let mut placed: Vec<Vec<PlacedTask>> = vec![Vec::new(); offers.len()];
        for number in 0..self.stages.len() {
            while self.round(number, offers, &mut left, &mut placed) {}
        }
        placed
    }

    /// Places one task of a stage on each offer that has room. Returns whether there was any.
    fn round(
        &mut self,
        number: usize,
        offers: &[WorkerOffer],
        left: &mut [i32],
        placed: &mut [Vec<PlacedTask>],
    ) -> bool {
        let Some(stage) = self.stages.get_mut(number) else { return false };
        let mut is_any = false;
        for ((offer, left), placed) in offers.iter().zip(left).zip(placed) {
            if *left < self.cores {
                continue;
            }
            let Some(name) = stage.place(self.next_id, &offer.agent) else { break };
            let id = self.next_id;
            self.next_id += 1;
            *left -= self.cores;
            self.running.insert(id, (number, offer.agent.clone()));
            self.agents.entry(offer.agent.clone()).or_default().insert(id);
            placed.push(PlacedTask { id, name });
            is_any = true;
        }
        is_any
    }

    /// Applies an update of a task. Returns how many times Spark asks for offers then.
    pub(super) fn update(&mut self, id: i64, state: SparkState) -> usize {
        let Some((number, agent)) = self.running.get(&id).cloned() else { return 0 };
        let mut asked = 0;
        if state == SparkState::Lost {
            asked += self.executor_lost(&agent);
        }
        if !state.is_end() {
            if let (SparkState::Running, Some(stage)) = (state, self.stages.get_mut(number)) {
                stage.run(id);
            }
            return asked;
        }
        self.running.remove(&id);
        if let Some(here) = self.agents.get_mut(&agent) {
            here.remove(&id);
        }
        let Some(stage) = self.stages.get_mut(number) else { return asked };
        match state {
            SparkState::Finished => stage.finish(id),
            _ => {
                stage.fail(id, self.failures_max);
                asked += usize::from(stage.wants_offers_after(id));
            }
        }
        asked
    }

    /// Fails all tasks on an agent. Returns how many times Spark asks for offers then.
    pub(super) fn executor_lost(&mut self, agent: &str) -> usize {
        let Some(tasks) = self.agents.remove(agent) else { return 0 };
        tasks.iter().for_each(|id| drop(self.running.remove(id)));
        let failures_max = self.failures_max;
        self.stages.iter_mut().for_each(|stage| stage.fail_on(agent, failures_max));
        1
    }
}
