//! Checking picks against rooms and caps: from picks to a plan.

use super::picks::{Pick, Picks, Task};
use super::planned_task::PlannedTask;
use super::scratch::{GONE, NOT_PICKED, PICKED, TaskScratch};
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
        self.picked.clear();
        self.picked.resize(self.rooms.len(), NOT_PICKED);
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
            let gang = |pick: &&Pick| first.gang > 0 && pick.gang == first.gang;
            let members = picks[at..].iter().take_while(gang).count().max(1);
            self.plan_group(&picks[at..at + members], at as u32, &mut left, caps);
            at += members;
        }
    }

    /// Plans one pick or one gang, whose first pick has this position; all or none.
    #[inline]
    fn plan_group(&mut self, group: &[Pick], first: u32, left: &mut CapsLeft, caps: &Caps<'_>) {
        let planned = self.plan.order.len();
        let before = *left;
        self.undo.clear();
        let mut rejected = None;
        for (pick, position) in group.iter().zip(first..) {
            let taken = match self.cut {
                Some(reason) => Err(reason),
                None => self.take_in_queue(pick, group.len() > 1, caps.policy),
            };
            let admitted = taken.and_then(|(room, supplies)| {
                left.take(pick, caps).inspect_err(|reason| self.cut = Some(*reason))?;
                Ok((room, supplies))
            });
            match admitted {
                Ok((room, supplies)) => {
                    let candidate = self.rooms[room].candidate;
                    let Pick { task, gang, .. } = *pick;
                    let members = group.len() as u32;
                    let planned =
                        PlannedTask { task, candidate, pick: position, gang, members, supplies };
                    self.plan.order.push(planned);
                }
                Err(reason) => {
                    rejected = Some(reason);
                    break;
                }
            }
        }
        if let Some(reason) = rejected {
            *left = before;
            self.reject(group, first, planned, reason);
        }
    }

    /// [`TaskScratch::take`], and the same of the task's queue.
    #[inline]
    fn take_in_queue(
        &mut self,
        pick: &Pick,
        keep: bool,
        policy: &Policy,
    ) -> Result<(usize, TaskSupplies), Reason> {
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

    /// Takes what a pick needs of its room. Returns the room's position and the supplies. Always inlined: each pick
    /// calls it, and a reason is large.
    #[inline(always)]
    fn take(&mut self, pick: &Pick, keep: bool) -> Result<(usize, TaskSupplies), Reason> {
        let room = self.room_of(pick).ok_or_else(|| self.why_gone(pick))?;
        if keep {
            self.undo.push((room as u32, self.left[room], self.picked[room]));
        }
        let supplies = self.left[room].take_from(&pick.task)?;
        if self.picked[room] == NOT_PICKED {
            self.picked[room] = PICKED;
        }
        Ok((room, supplies))
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

    /// Rejects a pick, or a gang of which one has this reason. What was planned for it is taken back.
    #[cold]
    fn reject(&mut self, group: &[Pick], first: u32, planned: usize, reason: Reason) {
        for planned in self.plan.order.drain(planned..) {
            let (queue, amount) = booked(&planned.task);
            self.queues.give_back(queue, amount);
        }
        while let Some((room, before, picked)) = self.undo.pop() {
            self.left[room as usize] = before;
            self.picked[room as usize] = picked;
        }
        for (pick, position) in group.iter().zip(first..) {
            if let Some(room) = self.room_of(pick)
                && self.picked[room] == NOT_PICKED
            {
                self.picked[room] = self.rejected.len() as u32;
            }
            self.rejected.push((position, reason));
        }
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
