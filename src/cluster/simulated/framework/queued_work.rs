//! The tasks of a simulated framework that has them in production's [`WorkQueue`].

use std::collections::BTreeSet;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::hosts::{fate_of, host_terms, is_pause};
use super::task_kinds::{TaskKinds, gangs_of};
use super::work::SimulatedWork;
use super::work_fate::WorkFate;
use crate::cluster::simulated::scenario::Scenario;
use crate::cluster::simulated::settings::FrameworkSettings;
use crate::config::QueueId;
use crate::engine::views::work_view::WorkView;
use crate::engine::{HostLedger, Notice, TaskChooser, TaskEnd, WorkQueue};
use crate::kernel::{Kernel, Picks, Rooms, Task, Unplaced};
use crate::launch::{Command, LaunchContext, Launcher};
use crate::time::Timestamp;

/// How many tasks of each queue wait, of which one is of the smallest kind.
const WAITING: usize = 4;

/// Keeps a work queue filled with tasks of all kinds, except in pauses, and records what that picks.
pub(super) struct QueuedWork {
    kernel: Kernel,
    queue: Arc<WorkQueue>,
    state: Mutex<QueuedState>,
}

struct QueuedState {
    kinds: TaskKinds,
    ends: Receiver<TaskEnd>,
    /// The number of tasks so far.
    created: u64,
    /// The picks of the last batch; the members of a gang are together.
    picked: Vec<Vec<Task>>,
    /// The agents that the last batch had rooms of.
    agents: BTreeSet<String>,
}

impl QueuedWork {
    pub(super) fn new(kernel: Kernel, scenario: &Scenario) -> QueuedWork {
        let (queue, ends) = WorkQueue::new(scenario.has_hosts().then(host_terms));
        queue.follow(&kernel);
        let state = QueuedState {
            kinds: TaskKinds::of(scenario),
            ends,
            created: 0,
            picked: Vec::new(),
            agents: BTreeSet::new(),
        };
        let work = QueuedWork { kernel, queue, state: Mutex::new(state) };
        work.tell_demand();
        work
    }

    fn state(&self) -> MutexGuard<'_, QueuedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell_demand(&self) {
        let kinds = &self.state().kinds;
        for (queue, number) in kinds.queues.list(kinds.settings).iter().zip(0..) {
            self.kernel.set_queue_demand(QueueId::new(number), queue.has_demand);
        }
    }

    /// Removes all that waits, or has each queue that is to have tasks have some.
    fn fill(&self, is_empty: bool) {
        let mut state = self.state();
        let QueuedState { kinds, created, .. } = &mut *state;
        let view = self.queue.view();
        if is_empty {
            for task in &view.waiting {
                let _waited = self.queue.remove(task.tag);
            }
            return;
        }
        let queues = kinds.queues.list(kinds.settings);
        let count = queues.len().max(1) as u64;
        for number in 0..count {
            if queues.get(number as usize).is_some_and(|queue| !queue.has_demand) {
                continue;
            }
            let own = view.waiting.iter().filter(|task| task.queue.index() as u64 == number);
            let has_smallest =
                own.clone().any(|task| kinds.task(0, task.tag).sums() == task.sums());
            for missing in 0..(WAITING - usize::from(has_smallest)).saturating_sub(own.count()) {
                // The queue follows from the tag.
                *created += 1;
                let tag = *created * count + number;
                let is_smallest = missing == 0 && !has_smallest;
                let kind = if is_smallest { 0 } else { *created as usize % TaskKinds::COUNT };
                let pushed =
                    self.queue.push(*created % 3, kinds.task(kind, tag), Command::default());
                debug_assert!(pushed.is_ok(), "{pushed:?}");
            }
        }
    }
}

impl SimulatedWork for QueuedWork {
    fn set(&self, settings: FrameworkSettings) {
        self.fill(true);
        self.state().kinds.set(settings);
        self.tell_demand();
        self.fill(false);
    }

    fn take_picked(&self) -> Vec<Vec<Task>> {
        std::mem::take(&mut self.state().picked)
    }

    fn take_joined(&self) -> BTreeSet<String> {
        std::mem::take(&mut self.state().agents)
    }

    fn noticed(&self, at: Timestamp, notice: &Notice) -> Vec<WorkFate> {
        let fate = self.queue.with_hosts(|hosts| fate_of(notice, hosts)).flatten();
        let counts = || (self.queue.counts().put_back, self.queue.view().kept.len());
        let (put_back, kept) = counts();
        self.queue.noticed(at, notice);
        let (put_back_now, kept_now) = counts();
        let put_back = (put_back_now > put_back).then_some(WorkFate::PutBack);
        let undecided = (kept_now > kept).then_some(WorkFate::Undecided);
        [fate, put_back, undecided].into_iter().flatten().collect()
    }

    fn take_to_end(&self, now: Timestamp) -> (Vec<String>, Vec<String>) {
        let surplus = self.queue.take_surplus(now);
        let is_host =
            |name: &String| self.queue.with_hosts(|hosts| hosts.host(name).is_some()) == Some(true);
        let (idle, returned) = surplus.into_iter().partition(is_host);
        (returned, idle)
    }

    fn with_hosts(&self, look: &mut dyn FnMut(&HostLedger)) {
        let _has_hosts = self.queue.with_hosts(look);
    }

    fn close(&self) {
        self.queue.end();
    }

    fn take_told(&self) -> Option<(WorkView, Vec<TaskEnd>)> {
        Some((self.queue.view(), self.state().ends.try_iter().collect()))
    }
}

impl TaskChooser for QueuedWork {
    fn choose(&self, rooms: &Rooms<'_>, now: Timestamp, picks: &mut Picks) {
        self.fill(is_pause(now));
        self.queue.choose(rooms, now, picks);
        let agents = rooms.list().iter().filter_map(|room| rooms.offer(room));
        let mut state = self.state();
        state.agents = agents.map(|offer| offer.agent_id.to_owned()).collect();
        state.picked = gangs_of(picks);
    }

    fn without_rooms(&self, rooms: &Rooms<'_>, now: Timestamp) {
        self.queue.without_rooms(rooms, now);
    }

    fn unplaced(&self, unplaced: &[Unplaced]) {
        self.queue.unplaced(unplaced);
    }

    fn killing(&self, tag: u64) {
        self.queue.killing(tag);
    }
}

impl Launcher for QueuedWork {
    fn command(&self, context: &LaunchContext<'_>) -> Command {
        self.queue.command(context)
    }
}
