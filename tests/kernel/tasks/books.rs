//! Naive books of tasks, written from the documentation: what is left of offers, who holds what, and which picks are
//! placed.

use std::collections::BTreeMap;

use offermill::resources::{Gpus, Mebibytes, MilliCpus};
use offermill::{ReasonKind, ResourceSums, Revocability, Task};

use crate::world::{Amount, OfferData, Setup};

/// A pick.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub(super) room: usize,
    pub(super) task: Task,
}

/// What the kernel must answer.
#[derive(Debug, Default)]
pub(super) struct Answer {
    /// Tag, agent, cores, memory, GPUs; by tag.
    pub(super) placed: Vec<(u64, String, u64, u64, u32)>,
    /// Position, tag and reason.
    pub(super) unplaced: Vec<(u32, u64, ReasonKind)>,
    pub(super) declined: Vec<(u32, ReasonKind)>,
}

/// Cores, memory and GPUs, not revocable and revocable.
type Supplies = [[u64; 3]; 2];

/// What is left of an offer.
#[derive(Clone, Debug)]
pub(super) struct Room {
    offer: usize,
    left: Supplies,
}

impl Room {
    /// The first offer, and the larger amount of each kind.
    pub(super) fn shown(&self) -> (u32, ResourceSums) {
        let [cores, memory, gpus] =
            [0, 1, 2].map(|kind| self.left[0][kind].max(self.left[1][kind]));
        let left = ResourceSums {
            cores: MilliCpus::from_millis(cores),
            memory: Mebibytes::new(memory),
            gpus: Gpus::new(gpus as u32),
        };
        (self.offer as u32, left)
    }

    /// Takes each kind from the first supply that has as much, or says what is missing.
    fn take(&mut self, task: &Task) -> Result<(), ReasonKind> {
        let wanted = amounts(task);
        if wanted[0] == 0 {
            return Err(ReasonKind::Malformed);
        }
        let missing = [ReasonKind::Cpus, ReasonKind::Memory, ReasonKind::Gpus];
        let mut from = [0; 3];
        for kind in 0..3 {
            from[kind] = (0..2)
                .find(|supply| self.left[*supply][kind] >= wanted[kind])
                .ok_or(missing[kind])?;
        }
        for kind in 0..3 {
            self.left[from[kind]][kind] -= wanted[kind];
        }
        Ok(())
    }
}

fn amounts(task: &Task) -> [u64; 3] {
    [task.cores.millis(), task.memory.get(), task.gpus.get().into()]
}

struct Held {
    agent: String,
    amounts: [u64; 3],
}

/// All tasks that live, and what is known of agents.
pub(super) struct Books {
    pub(super) setup: Setup,
    tasks: BTreeMap<u64, Held>,
    /// When tasks failed on an agent since it was used last.
    failures: BTreeMap<String, Vec<u64>>,
    /// Until when an agent is excluded.
    excluded: BTreeMap<String, u64>,
    /// Until when an agent that was lost is not used.
    suspect: BTreeMap<String, u64>,
}

impl Books {
    pub(super) fn new(setup: Setup) -> Books {
        Books {
            setup,
            tasks: BTreeMap::new(),
            failures: BTreeMap::new(),
            excluded: BTreeMap::new(),
            suspect: BTreeMap::new(),
        }
    }

    pub(super) fn lose(&mut self, agent: &str, now: u64) {
        self.suspect.insert(agent.to_owned(), now + 10_000);
    }

    /// The number of tasks and their cores.
    pub(super) fn totals(&self) -> (usize, u64) {
        (self.tasks.len(), self.held(0))
    }

    fn held(&self, kind: usize) -> u64 {
        self.tasks.values().map(|held| held.amounts[kind]).sum()
    }

    /// The cap that leaves less than the least, if there is one.
    fn cap_reached(&self) -> Option<ReasonKind> {
        let limit = self.setup.limit.unwrap() as usize;
        let cores = self.setup.core_cap.unwrap().saturating_sub(self.held(0));
        if self.tasks.len() >= limit {
            Some(ReasonKind::ExecutorLimit)
        } else {
            (cores < self.setup.executor_cores.unwrap()).then_some(ReasonKind::CoreCap)
        }
    }

    /// The cap that doesn't admit a task.
    fn cap_for(&self, task: &Task) -> Option<ReasonKind> {
        let [cores, _, gpus] = amounts(task);
        if self.tasks.len() >= self.setup.limit.unwrap() as usize {
            Some(ReasonKind::ExecutorLimit)
        } else if self.held(0) + cores > self.setup.core_cap.unwrap() {
            Some(ReasonKind::CoreCap)
        } else {
            (self.held(2) + gpus > self.setup.gpu_cap.into()).then_some(ReasonKind::GpuCap)
        }
    }

    fn refusal(&self, agent: &str, now: u64) -> Option<ReasonKind> {
        let lasts = |until: Option<&u64>| until.is_some_and(|until| now < *until);
        if lasts(self.excluded.get(agent)) {
            Some(ReasonKind::AgentExcluded)
        } else {
            lasts(self.suspect.get(agent)).then_some(ReasonKind::AgentSuspect)
        }
    }

    /// Why an offer is no room, if it isn't; otherwise the room.
    fn room(&self, offer: usize, batch: &[OfferData], now: u64) -> Result<Room, ReasonKind> {
        if let Some(cap) = self.cap_reached() {
            return Err(cap);
        }
        if let Some(refusal) = self.refusal(&batch[offer].agent, now) {
            return Err(refusal);
        }
        let mut left = [[0; 3]; 2];
        for entry in &batch[offer].entries {
            let supply = usize::from(entry.revocability == Revocability::Revocable);
            let Amount::Scalar(value) = entry.amount else { continue };
            let thousandths = (value * 1000.0).round() as u64;
            match entry.name {
                "cpus" => left[supply][0] += thousandths,
                "mem" => left[supply][1] += thousandths / 1000,
                _ => left[supply][2] += thousandths / 1000,
            }
        }
        let most = |kind: usize| left[0][kind].max(left[1][kind]);
        if most(0) < self.setup.executor_cores.unwrap() {
            Err(ReasonKind::Cpus)
        } else if most(1) < self.setup.memory {
            Err(ReasonKind::Memory)
        } else {
            Ok(Room { offer, left })
        }
    }

    pub(super) fn rooms(&self, batch: &[OfferData], now: u64) -> Vec<Room> {
        (0..batch.len()).filter_map(|offer| self.room(offer, batch, now).ok()).collect()
    }

    /// Places groups of picks, all or none of each, on the rooms that were `shown`.
    pub(super) fn commit(
        &mut self,
        batch: &[OfferData],
        shown: &[Room],
        groups: &[Vec<Wanted>],
        now: u64,
    ) -> Answer {
        let mut answer = Answer::default();
        let offers: Vec<Result<Room, ReasonKind>> =
            (0..batch.len()).map(|offer| self.room(offer, batch, now)).collect();
        let mut left = offers.clone();
        // What became of each room's first pick.
        let mut picked: BTreeMap<usize, Option<ReasonKind>> = BTreeMap::new();
        let mut cut = self.cap_reached();
        let mut position = 0;
        for group in groups {
            let offer_of = |it: &Wanted| shown.get(it.room).map(|room| room.offer);
            let reason = cut.or_else(|| {
                let mut trial = left.clone();
                let reason = self.place_group(group, batch, shown, &mut trial, &mut cut);
                match reason {
                    None => left = trial,
                    Some(_) => group.iter().for_each(|it| drop(self.tasks.remove(&it.task.tag))),
                }
                reason
            });
            for it in group {
                if let Some(reason) = reason {
                    answer.unplaced.push((position, it.task.tag, reason));
                } else {
                    let held = &self.tasks[&it.task.tag];
                    let [cores, memory, gpus] = held.amounts;
                    answer.placed.push((
                        it.task.tag,
                        held.agent.clone(),
                        cores,
                        memory,
                        gpus as u32,
                    ));
                }
                if let Some(offer) = offer_of(it) {
                    let first = picked.entry(offer).or_insert(reason);
                    // A room with a task is accepted.
                    if reason.is_none() {
                        *first = None;
                    }
                }
                position += 1;
            }
        }
        answer.placed.sort();
        self.decline(&offers, batch, &picked, &mut answer);
        for (_, agent, ..) in &answer.placed {
            self.excluded.remove(agent);
        }
        answer
    }

    /// Places picks until one can't be placed, and says why that is. A cap is the reason for all that come later, too.
    fn place_group(
        &mut self,
        group: &[Wanted],
        batch: &[OfferData],
        shown: &[Room],
        left: &mut [Result<Room, ReasonKind>],
        cut: &mut Option<ReasonKind>,
    ) -> Option<ReasonKind> {
        group.iter().find_map(|it| {
            let Some(Room { offer, .. }) = shown.get(it.room) else {
                return Some(ReasonKind::Malformed);
            };
            let reason = match &mut left[*offer] {
                Err(reason) => Some(*reason),
                Ok(room) => room.take(&it.task).err(),
            };
            if reason.is_some() {
                return reason;
            }
            *cut = self.cap_for(&it.task);
            if cut.is_none() {
                let agent = batch[*offer].agent.clone();
                self.tasks.insert(it.task.tag, Held { agent, amounts: amounts(&it.task) });
            }
            *cut
        })
    }

    fn decline(
        &self,
        offers: &[Result<Room, ReasonKind>],
        batch: &[OfferData],
        picked: &BTreeMap<usize, Option<ReasonKind>>,
        answer: &mut Answer,
    ) {
        for (offer, room) in offers.iter().enumerate() {
            let is_used = answer.placed.iter().any(|(_, agent, ..)| *agent == batch[offer].agent);
            if is_used {
                continue;
            }
            let reason = match room {
                Err(reason) => *reason,
                Ok(_) => self.cap_reached().unwrap_or_else(|| match picked.get(&offer) {
                    Some(Some(reason)) => *reason,
                    _ => ReasonKind::NotPicked,
                }),
            };
            answer.declined.push((offer as u32, reason));
        }
    }

    /// Ends a task. Returns what it held.
    pub(super) fn end(&mut self, tag: u64, failed: bool, now: u64) -> (u64, u64, u32) {
        let Held { agent, amounts: [cores, memory, gpus] } = self.tasks.remove(&tag).unwrap();
        if failed {
            // Also while it is excluded: a failure then may prolong that.
            let rule = self.setup.exclusion.unwrap();
            let failures = self.failures.entry(agent.clone()).or_default();
            failures.push(now);
            failures.retain(|then| now - *then <= rule.window.as_millis() as u64);
            if failures.len() >= usize::from(rule.failures) {
                failures.clear();
                let until = now + rule.expiry.unwrap().as_millis() as u64;
                let excluded = self.excluded.entry(agent).or_insert(until);
                *excluded = until.max(*excluded);
            }
        }
        (cores, memory, gpus as u32)
    }
}
