//! Checking picks against rooms and caps: from picks to a plan.

use super::picks::{Pick, Picks, Task};
use super::planned_task::PlannedTask;
use super::scratch::{GONE, NONE_REJECTED, TaskScratch};
use crate::config::QueueId;
use crate::kernel::Core;
use crate::kernel::offers::eligibility::TaskSupplies;
use crate::kernel::reason::Reason;
use crate::kernel::state::admission::AdmissionState;
use crate::kernel::state::policy::Policy;
use crate::kernel::state::queues::QueueAmount;
use crate::limits::EXECUTORS_MAX;
use crate::resources::{Gpus, MilliCpus};

/// What the caps leave for a plan.
#[derive(Clone, Copy)]
struct CapsLeft {
    tasks: u32,
    cores: MilliCpus,
    gpus: u64,
}

impl CapsLeft {
    /// Takes what a task needs, or returns the cap that doesn't allow it.
    #[inline]
    fn take(&mut self, pick: &Pick, caps: &Caps<'_>) -> Result<(), Reason> {
        let (cores, gpus) = (pick.task.cores, u64::from(pick.task.gpus.get()));
        if self.tasks > 0 && cores <= self.cores && gpus <= self.gpus {
            self.tasks -= 1;
            self.cores = MilliCpus::from_millis(self.cores.millis() - cores.millis());
            self.gpus -= gpus;
            return Ok(());
        }
        Err(self.reached(pick, caps))
    }

    #[cold]
    fn reached(&self, pick: &Pick, caps: &Caps<'_>) -> Reason {
        let policy = caps.policy;
        if self.tasks == 0 {
            let limit = policy.limit.unwrap_or(EXECUTORS_MAX).min(EXECUTORS_MAX);
            return Reason::ExecutorLimit { limit };
        }
        if pick.task.cores > self.cores {
            let cap = policy.core_cap();
            let acquired = MilliCpus::from_millis(cap.millis() - self.cores.millis());
            return Reason::CoreCap { cap, acquired, asked: pick.task.cores };
        }
        let cap = policy.config.gpu_cap;
        let acquired = u64::from(cap.get()).saturating_sub(self.gpus);
        let acquired = Gpus::new(u32::try_from(acquired).unwrap_or(u32::MAX));
        Reason::GpuCap { cap, acquired, asked: pick.task.gpus }
    }
}

/// The caps in force, and what is taken of them.
pub(super) struct Caps<'p> {
    pub(super) policy: &'p Policy,
    pub(super) admission: AdmissionState,
    pub(super) gpus_taken: u64,
}

/// What a task takes of its queue.
fn booked(task: &Task) -> (QueueId, QueueAmount) {
    (task.queue, QueueAmount::new(task.cores, task.memory))
}

impl TaskScratch {
    /// Makes the plan: the picks whose rooms and queues have what they need, in their order, up to the first one that
    /// the caps don't admit. The others are rejected. `closed` is the reason for which nothing is placed at all.
    pub(super) fn plan(
        &mut self,
        core: &Core,
        picks: &Picks,
        closed: Option<Reason>,
        caps: &Caps<'_>,
    ) {
        self.plan.clear();
        self.rejected.clear();
        self.rejected_in.clear();
        self.rejected_in.resize(self.rooms.len(), NONE_REJECTED);
        self.left.clear();
        self.left.extend_from_slice(&self.rooms);
        self.cut = closed;
        self.queues.load(core, &caps.policy.config);
        let headroom = caps.policy.headroom(caps.admission);
        let gpu_cap = u64::from(caps.policy.config.gpu_cap.get());
        let mut left = CapsLeft { tasks: 0, cores: MilliCpus::ZERO, gpus: 0 };
        match headroom {
            Ok(headroom) => {
                left.tasks = headroom.executors;
                left.cores = headroom.cores;
                left.gpus = gpu_cap.saturating_sub(caps.gpus_taken);
            }
            Err(reason) => self.cut = self.cut.or(Some(reason)),
        }
        let picks = picks.list();
        let mut at = 0;
        while let Some(first) = picks.get(at) {
            if first.gang == 0 {
                self.plan_one(first, at as u32, &mut left, caps);
                at += 1;
                continue;
            }
            let gang = |pick: &&Pick| pick.gang == first.gang;
            let members = picks[at..].iter().take_while(gang).count();
            self.plan_gang(&picks[at..at + members], at as u32, &mut left, caps);
            at += members;
        }
    }

    /// Plans a pick that is in no gang.
    #[inline]
    fn plan_one(&mut self, pick: &Pick, position: u32, left: &mut CapsLeft, caps: &Caps<'_>) {
        match self.admit(pick, false, left, caps) {
            Ok((candidate, supplies)) => {
                let Pick { task, gang, .. } = *pick;
                let planned =
                    PlannedTask { task, candidate, pick: position, gang, members: 1, supplies };
                self.plan.order.push(planned);
            }
            Err(reason) => self.reject(std::slice::from_ref(pick), position, reason),
        }
    }

    /// Plans a gang, whose first pick has this position; all or none.
    fn plan_gang(&mut self, gang: &[Pick], first: u32, left: &mut CapsLeft, caps: &Caps<'_>) {
        let planned = self.plan.order.len();
        let before = *left;
        for (pick, position) in gang.iter().zip(first..) {
            match self.admit(pick, true, left, caps) {
                Ok((candidate, supplies)) => {
                    let Pick { task, gang: number, .. } = *pick;
                    let members = gang.len() as u32;
                    let planned = PlannedTask {
                        task,
                        candidate,
                        pick: position,
                        gang: number,
                        members,
                        supplies,
                    };
                    self.plan.order.push(planned);
                }
                Err(reason) => {
                    *left = before;
                    self.undo_gang(planned);
                    self.reject(gang, first, reason);
                    break;
                }
            }
        }
        self.undo.clear();
    }

    /// Takes what a pick needs of its room, its queue and the caps. Returns the room's candidate and the supplies.
    /// Always inlined, as what it calls: each pick does, and a reason is large.
    #[inline(always)]
    fn admit(
        &mut self,
        pick: &Pick,
        in_gang: bool,
        left: &mut CapsLeft,
        caps: &Caps<'_>,
    ) -> Result<(u32, TaskSupplies), Reason> {
        if let Some(reason) = self.cut {
            return Err(reason);
        }
        let taken = self.take_in_queue(pick, in_gang, caps.policy)?;
        left.take(pick, caps).inspect_err(|reason| self.cut = Some(*reason))?;
        Ok(taken)
    }

    /// [`TaskScratch::take`], and the same of the task's queue.
    #[inline(always)]
    fn take_in_queue(
        &mut self,
        pick: &Pick,
        keep: bool,
        policy: &Policy,
    ) -> Result<(u32, TaskSupplies), Reason> {
        if policy.config.queues.is_empty() {
            return self.take(pick, keep);
        }
        let (queue, amount) = booked(&pick.task);
        self.queues.take(&policy.config.queues, queue, amount)?;
        let taken = self.take(pick, keep);
        if taken.is_err() {
            self.queues.give_back(queue, amount);
        }
        taken
    }

    /// Takes what a pick needs of its room, and keeps how the room was if it may have to be undone.
    #[inline(always)]
    fn take(&mut self, pick: &Pick, keep: bool) -> Result<(u32, TaskSupplies), Reason> {
        let at = if self.again { self.room_of(pick) } else { Some(pick.room as usize) };
        let Some(room) = at.and_then(|at| self.left.get_mut(at)) else {
            return Err(self.why_gone(pick));
        };
        if keep {
            self.undo.push((at.unwrap_or_default() as u32, *room));
        }
        let supplies = room.take_from(&pick.task)?;
        Ok((room.candidate, supplies))
    }

    /// Where the picked room is, if there is still such a room.
    #[inline]
    pub(super) fn room_of(&self, pick: &Pick) -> Option<usize> {
        let room = if self.again { *self.moved.get(pick.room as usize)? } else { pick.room };
        (room != GONE && (room as usize) < self.rooms.len()).then_some(room as usize)
    }

    /// Why there is no such room: its offer is declined by now, or there never was one.
    #[cold]
    fn why_gone(&self, pick: &Pick) -> Reason {
        if !self.again {
            return Reason::Malformed;
        }
        let Some(offer) = self.offer_of.get(pick.room as usize) else { return Reason::Malformed };
        let decline = self.declines.iter().find(|decline| decline.offer == *offer);
        decline.map_or(Reason::Contended, |decline| decline.reason)
    }

    /// Takes back what was planned for a gang from this position of the plan on.
    #[cold]
    fn undo_gang(&mut self, planned: usize) {
        for planned in self.plan.order.drain(planned..) {
            let (queue, amount) = booked(&planned.task);
            self.queues.give_back(queue, amount);
        }
        while let Some((room, before)) = self.undo.pop() {
            self.left[room as usize] = before;
        }
    }

    /// Rejects a pick, or a gang of which one has this reason; of which nothing is planned.
    #[cold]
    fn reject(&mut self, group: &[Pick], first: u32, reason: Reason) {
        for (pick, position) in group.iter().zip(first..) {
            if let Some(room) = self.room_of(pick)
                && self.rejected_in[room] == NONE_REJECTED
                && !self.is_picked(room)
            {
                self.rejected_in[room] = self.rejected.len() as u32;
            }
            self.rejected.push((position, reason));
        }
    }

    /// Whether a pick is planned in this room.
    pub(super) fn is_picked(&self, room: usize) -> bool {
        self.left[room].tasks() < self.rooms[room].tasks()
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use crate::config::ExecutorGpus;
    use crate::kernel::Kernel;
    use crate::kernel::offers::tasks::picks::Task;
    use crate::resources::Mebibytes;
    use crate::{Config, IdScheme};

    /// Goal: tasks are taken while each cap allows, and the cap that doesn't is named. Method: what is left of each,
    /// just enough and one too little, against a task that takes all three.
    #[test]
    fn each_cap_is_exact() {
        let config = Config::builder()
            .executor_limit(Some(9))
            .core_cap(Some(MilliCpus::from_cores(9)))
            .gpu_cap(Gpus::new(9))
            .executor_gpus(ExecutorGpus::WhatThereIs);
        let kernel = Kernel::new(config.build().unwrap(), IdScheme::plain());
        let core = &*kernel.0;
        let policy = core.policy.load();
        let caps = Caps { policy: &policy, admission: core.admission.load(), gpus_taken: 0 };
        let cores = MilliCpus::from_cores;
        let task = Task { gpus: Gpus::new(2), ..Task::new(0, cores(2), Mebibytes::new(1)) };
        let pick = Pick { task, room: 0, gang: 0 };
        for (tasks, left_cores, gpus) in (0..3)
            .flat_map(|tasks| (1..4).flat_map(move |it| (1..4).map(move |gpus| (tasks, it, gpus))))
        {
            let mut left = CapsLeft { tasks, cores: cores(left_cores), gpus };
            let result = left.take(&pick, &caps);
            let acquired = Gpus::new(9 - gpus as u32);
            let expected = match (tasks, left_cores, gpus) {
                (0, ..) => Err(Reason::ExecutorLimit { limit: 9 }),
                (_, 1, _) => {
                    Err(Reason::CoreCap { cap: cores(9), acquired: cores(8), asked: cores(2) })
                }
                (.., 1) => Err(Reason::GpuCap { cap: Gpus::new(9), acquired, asked: Gpus::new(2) }),
                _ => Ok(()),
            };
            assert_eq!(result, expected, "{tasks} {left_cores} {gpus}");
            let taken = if expected.is_ok() { (1, 2) } else { (0, 0) };
            let now = (tasks - taken.0, cores(left_cores - taken.1), gpus - taken.1);
            assert_eq!((left.tasks, left.cores, left.gpus), now);
        }
    }
}
