//! Collects the measurements of a [`Report`](super::Report): latencies, counts, marks, fingerprint.

use std::collections::VecDeque;
use std::time::Duration;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::report::{Latencies, Mark, Sample};
use crate::engine::Notice;
use crate::engine::cluster_manager::Call;
use crate::kernel::{Change, Decisions, Kernel, ReasonKind};
use crate::status::Fate;
use crate::time::Timestamp;

/// The maximum number of marks that are kept.
const MARKS_MAX: usize = 10_000;

/// The measurements of a simulation.
#[derive(Default)]
pub(super) struct Recorder {
    pub(super) samples: Vec<Sample>,
    pub(super) marks: Vec<Mark>,
    pub(super) placement_latency: Latencies,
    pub(super) launch_latency: Latencies,
    pub(super) spread: Vec<(u32, u32)>,
    pub(super) spread_at: u64,
    pub(super) offers: u64,
    pub(super) accepted: u64,
    declined: [u64; ReasonKind::ALL.len()],
    pub(super) placed: u64,
    pub(super) ended: [u64; 4],
    pub(super) fingerprint: u64,
    /// Executors that could be placed and are not: since when, and how many.
    missing: VecDeque<(u64, u32)>,
    missing_total: u32,
    placed_now: u32,
    /// The number of executors in the last [`Call::RequestExecutors`].
    wanted: u32,
    launched: HashMap<String, u64, FixedState>,
}

impl Recorder {
    /// Records the answer to a batch.
    pub(super) fn answered(&mut self, decisions: &Decisions, placed: u32) {
        for accept in decisions.accepts() {
            self.accepted += accept.offers.len() as u64;
            self.offers += accept.offers.len() as u64;
        }
        self.offers += decisions.declines().len() as u64;
        for decline in decisions.declines() {
            self.declined[decline.reason.kind() as usize] += 1;
        }
        self.placed += u64::from(placed);
        self.placed_now += placed;
    }

    pub(super) fn noticed(&mut self, notice: &Notice, now: u64) {
        match notice {
            Notice::Placed(placed) => {
                self.launched.insert(placed.executor.clone(), now);
            }
            Notice::Updated { executor, change: Change::Running, .. } => {
                if let Some(placed) = self.launched.remove(executor) {
                    self.launch_latency.add(Duration::from_millis(now - placed), 1);
                }
            }
            Notice::Updated { executor, change: Change::Ended(fate), .. } => {
                self.launched.remove(executor);
                let which = match fate {
                    Fate::Finished => 0,
                    Fate::Failed => 1,
                    Fate::Killed => 2,
                    Fate::Lost | Fate::Unreachable | Fate::Alive => 3,
                };
                self.ended[which] += 1;
            }
            Notice::Forgotten { executor } => {
                self.launched.remove(executor);
                self.ended[3] += 1;
            }
            _ => {}
        }
    }

    /// Adds a call to the fingerprint: equal simulations have equal fingerprints.
    pub(super) fn called(&mut self, call: &Call<'_>, now: u64) {
        let mut mix = |value: u64| {
            self.fingerprint = (self.fingerprint ^ value).wrapping_mul(0x0000_0100_0000_01b3);
            self.fingerprint ^= self.fingerprint >> 29;
        };
        let text = |text: &str| {
            text.bytes().fold(0u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()))
        };
        match call {
            // It is not sent to the cluster.
            Call::Forget { .. } => return,
            // It is repeated with each subscription, and says nothing new then.
            Call::RequestExecutors(demands) => {
                let wanted = demands.iter().map(|demand| demand.executors).sum();
                if std::mem::replace(&mut self.wanted, wanted) == wanted {
                    return;
                }
            }
            _ => {}
        }
        mix(now);
        match call {
            Call::Accept(accept) => {
                accept.offers.iter().for_each(|offer| mix(text(offer.id)));
                accept.executors.iter().for_each(|launch| mix(text(launch.executor)));
            }
            Call::Decline { offers, refuse, .. } => {
                offers.iter().for_each(|offer| mix(text(offer)));
                mix(refuse.as_millis() as u64);
            }
            Call::Forget { .. } => {}
            Call::Revive { .. } => mix(1),
            Call::Suppress { .. } => mix(2),
            Call::RequestExecutors(demands) => {
                demands.iter().for_each(|it| mix(it.executors.into()))
            }
            Call::Avoid(agents) => agents.iter().for_each(|it| mix(text(it.agent_id))),
            Call::Kill { executor, .. } => mix(text(executor)),
            Call::Reconcile(tasks) => tasks.iter().for_each(|it| mix(text(it.executor))),
            Call::Acknowledge { update, .. } => mix(text(&update.executor)),
        }
    }

    /// Updates how many executors are missing, and since when, after a step.
    pub(super) fn step_ends(&mut self, kernel: &Kernel, now: u64) {
        let mut placed = std::mem::take(&mut self.placed_now);
        while placed > 0 {
            let Some((since, count)) = self.missing.front_mut() else { break };
            let now_placed = placed.min(*count);
            let latency = Duration::from_millis(now - *since);
            self.placement_latency.add(latency, now_placed.into());
            *count -= now_placed;
            placed -= now_placed;
            self.missing_total -= now_placed;
            if *count == 0 {
                self.missing.pop_front();
            }
        }
        let wanted = kernel.wanted();
        if wanted > self.missing_total {
            self.missing.push_back((now, wanted - self.missing_total));
        }
        let mut too_many = self.missing_total.saturating_sub(wanted);
        while too_many > 0 {
            // The executors that have been missing for the shortest time are removed first.
            let Some((_, count)) = self.missing.back_mut() else { break };
            let fewer = too_many.min(*count);
            *count -= fewer;
            too_many -= fewer;
            if *count == 0 {
                self.missing.pop_back();
            }
        }
        self.missing_total = wanted;
    }

    pub(super) fn mark(&mut self, now: u64, what: String) {
        if self.marks.len() < MARKS_MAX {
            self.marks.push(Mark { at: Timestamp::from_millis(now), what });
        }
    }

    pub(super) fn declines(&self) -> Vec<(ReasonKind, u64)> {
        let all = ReasonKind::ALL.into_iter().zip(self.declined);
        all.filter(|(_, count)| *count > 0).collect()
    }
}
