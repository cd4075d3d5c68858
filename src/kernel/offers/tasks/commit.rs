//! Committing picks: plans them, commits the plan, and writes what was placed, what was not, and the declines.

use super::check::Caps;
use super::picks::{Picks, Unplaced};
use super::scratch::{NONE_REJECTED, TaskScratch};
use crate::kernel::Core;
use crate::kernel::offers::candidates::{Candidate, CandidateSet};
use crate::kernel::offers::carve::{CarveGroup, TaskCarver};
use crate::kernel::offers::commit::{Committed, Planned};
use crate::kernel::offers::decision::{AcceptRow, Decisions, Placed};
use crate::kernel::offers::eligibility::TaskSupplies;
use crate::kernel::offers::handler::Scratch;
use crate::kernel::reason::{Decline, Reason};
use crate::kernel::state::admission::AdmissionState;
use crate::kernel::state::policy::Policy;
use crate::offer::Offer;
use crate::time::Timestamp;

/// Offers, and picks on their rooms.
pub(super) struct PickedBatch<'a> {
    pub(super) offers: &'a [Offer<'a>],
    pub(super) picks: &'a Picks,
    pub(super) now: Timestamp,
}

/// What all decisions of a commit have in common.
struct TaskBatch<'a> {
    policy: &'a Policy,
    offers: &'a [Offer<'a>],
    /// The reason for which nothing more is placed.
    reached: Option<Reason>,
    now: Timestamp,
}

impl Scratch {
    /// Commits the picks on the rooms that were proposed under this policy. Returns `false` if the plan was outdated:
    /// then nothing was done.
    pub(super) fn commit_picks(
        &mut self,
        core: &Core,
        policy: &Policy,
        admission: AdmissionState,
        picked: &PickedBatch<'_>,
        decisions: &mut Decisions,
    ) -> bool {
        let PickedBatch { offers, picks, now } = *picked;
        let Scratch { candidates, tasks, .. } = self;
        let closed = core.reason_for_all(policy, admission);
        let caps = Caps { policy, admission, gpus_taken: core.gpus.taken() };
        tasks.plan(core, picks, closed, &caps);
        let reached = if tasks.plan.order.is_empty() {
            closed
        } else {
            match core.commit(policy, admission, candidates, &mut tasks.plan, now) {
                Committed::Done(reached) => reached,
                Committed::Outdated => return false,
            }
        };
        // A task may be more than the GPU cap leaves though the cap isn't reached.
        let is_cut = |reason: &Reason| matches!(reason, Reason::GpuCap { .. });
        let is_reached =
            |reason: &Reason| !is_cut(reason) || policy.gpu_headroom(core.gpus.taken()).is_err();
        tasks.cut = tasks.cut.or(reached.filter(is_cut));
        let reached = reached.filter(is_reached);
        decisions.at_cap = tasks.at_cap;
        if reached.is_some_and(Reason::calls_for_suppress) && !tasks.rooms.is_empty() {
            core.record_refused_at_cap(decisions);
        }
        if !policy.config.queues.is_empty() {
            if let Some(returns) = tasks.told_less {
                // What isn't picked may be left for that.
                tasks.queues.refuse(returns);
            }
            core.record_refused_by_queue(&tasks.queues, tasks.plan.contended, decisions);
        }
        let batch = TaskBatch { policy, offers, reached, now };
        decisions.declines.append(&mut tasks.declines);
        tasks.write_placed(candidates, &batch, decisions);
        tasks.tell_unplaced(candidates, picks, &batch, decisions);
        true
    }
}

impl TaskScratch {
    /// Writes the tasks that were placed, and the declines of rooms without any.
    fn write_placed(
        &mut self,
        candidates: &mut CandidateSet,
        batch: &TaskBatch<'_>,
        decisions: &mut Decisions,
    ) {
        let refuse = &batch.policy.config.refuse;
        decisions.leftover_refuse =
            if batch.reached.is_some() { refuse.reached_cap } else { refuse.other };
        let mut rows = 0;
        for room in &self.rooms {
            let candidate = &mut candidates.list[room.candidate as usize];
            candidate.start = rows;
            rows += candidate.placed;
        }
        debug_assert_eq!(rows as usize, self.plan.order.len(), "each row is written");
        decisions.placed.begin(rows, Placed::NONE);
        decisions.tags.begin(rows, 0);
        self.supplies.begin(rows, TaskSupplies::FIRM);
        let placed = &mut *decisions.placed;
        let (tags, supplies) = (&mut *decisions.tags, &mut *self.supplies);
        for (planned, position) in self.plan.order.iter().zip(0u32..) {
            let candidate = &mut candidates.list[planned.candidate()];
            let row = candidate.start as usize;
            candidate.start += 1;
            let id = self.plan.id(position as usize);
            placed[row] = Placed::task(id, &planned.task);
            tags[row] = planned.task.tag;
            supplies[row] = planned.supplies;
        }
        for (room, at) in self.rooms.iter().zip(0..) {
            let candidate = &candidates.list[room.candidate as usize];
            if candidate.placed == 0 {
                self.decline_room(at, candidates, batch, decisions);
            } else {
                // All its rows are written by now.
                let placed = (candidate.start - candidate.placed, candidate.start);
                self.write_accept(candidates, room.candidate, placed, batch, decisions);
            }
        }
    }

    /// Declines the offers of the room at this position, which gets no task. A function of its own: what it needs would
    /// be kept at hand in each batch, which costs one of a single offer 1 % of its instructions.
    #[inline(never)]
    fn decline_room(
        &self,
        at: usize,
        candidates: &CandidateSet,
        batch: &TaskBatch<'_>,
        decisions: &mut Decisions,
    ) {
        let candidate = &candidates.list[self.rooms[at].candidate as usize];
        let reason = self.decline_reason(candidate.reason, at, batch);
        let refuse = self.refuse_for(&reason, batch);
        let declined = candidates.offers_of(candidate.first);
        decisions.declines.extend(declined.map(|offer| Decline { offer, reason, refuse }));
    }

    /// Writes the accept of one candidate, whose tasks are these rows, with their pieces.
    #[inline]
    fn write_accept(
        &self,
        candidates: &CandidateSet,
        candidate: u32,
        placed: (u32, u32),
        batch: &TaskBatch<'_>,
        decisions: &mut Decisions,
    ) {
        let candidate = &candidates.list[candidate as usize];
        let first_offer = decisions.accepted.len() as u32;
        decisions.accepted.extend(candidates.offers_of(candidate.first));
        let own = &decisions.accepted[first_offer as usize..];
        let Candidate { firm, sources, .. } = *candidate;
        let (batch, config) = (batch.offers, &batch.policy.config);
        let mut carver = TaskCarver::new(CarveGroup { batch, offers: own, config, firm, sources });
        let rows = placed.0 as usize..placed.1 as usize;
        let tasks = decisions.placed[rows.clone()].iter_mut();
        for (task, supplies) in tasks.zip(&self.supplies[rows]) {
            let start = decisions.pieces.len() as u32;
            carver.carve(&task.resources, *supplies, &mut decisions.pieces);
            task.pieces = (start, decisions.pieces.len() as u32);
        }
        let offers = (first_offer, decisions.accepted.len() as u32);
        decisions.accepts.push(AcceptRow { offers, placed });
    }

    /// Why the room at this position gets no task: `own` is its agent's reason.
    fn decline_reason(&self, own: Option<Reason>, room: usize, batch: &TaskBatch<'_>) -> Reason {
        let cap = batch.reached.filter(|cap| batch.policy.outranks(cap));
        let by_picks = || match self.rejected_in[room] {
            NONE_REJECTED if !self.is_picked(room) => Reason::NotPicked,
            // What was planned there was cut off.
            NONE_REJECTED => self.cut.unwrap_or(Reason::Contended),
            first => {
                self.rejected.get(first as usize).map_or(Reason::Contended, |(_, reason)| *reason)
            }
        };
        cap.or(own).or(batch.reached).unwrap_or_else(by_picks)
    }

    /// How long to refuse a room. A cap that only a task is too large for leaves room for others.
    fn refuse_for(&self, reason: &Reason, batch: &TaskBatch<'_>) -> std::time::Duration {
        let refuse = &batch.policy.config.refuse;
        if reason.is_cap() && batch.reached.is_none() {
            return refuse.other;
        }
        reason.refuse(refuse, batch.now)
    }

    /// Writes the picks that were not placed, in their order.
    fn tell_unplaced(
        &self,
        candidates: &CandidateSet,
        picks: &Picks,
        batch: &TaskBatch<'_>,
        decisions: &mut Decisions,
    ) {
        if self.plan.order.len() == picks.len() {
            return;
        }
        let mut placed = self.plan.order.iter().map(|planned| planned.pick).peekable();
        let mut rejected = self.rejected.iter().peekable();
        for (pick, position) in picks.iter().zip(0u32..) {
            if placed.next_if_eq(&position).is_some() {
                continue;
            }
            let reason = match rejected.next_if(|(pick, _)| *pick == position) {
                Some((_, reason)) => *reason,
                // It was planned, and then its agent or the caps refused it.
                None => {
                    let room = self.room_of(pick).and_then(|room| self.rooms.get(room));
                    let own =
                        room.and_then(|it| candidates.list.get(it.candidate as usize)?.reason);
                    own.or(batch.reached).or(self.cut).unwrap_or(Reason::Contended)
                }
            };
            decisions.unplaced.push(Unplaced { pick: position, tag: pick.task.tag, reason });
        }
    }
}
