//! Whether what was done is right, by accounts of its own. Each rule bears the number that it has in the table of
//! invariants in the crate's docs of [`cluster::simulated`](crate::cluster::simulated).
//!
//! The judge sees what went in (offers, updates), what came out (calls, notices) and the kernel's public face. It
//! never looks at how the kernel came to it.

mod answers;
mod demand;
mod ledger;
mod messages;

use std::time::Duration;

use super::framework::Settings;
use super::scenario::Scenario;
use super::wire::SimOffer;
use crate::engine::Notice;
use crate::engine::seam::{Call, Update};
use crate::ids::ExecutorId;
use crate::kernel::{Decisions, DrainReport, Kernel};
use crate::resources::MilliCpus;
use crate::time::Timestamp;
use answers::Answers;
use demand::Demand;
use ledger::Ledger;
use messages::Messages;

/// What was found to be wrong: the rule's number, and how.
pub(super) type Finding = (u8, String);

pub(super) struct Judge {
    on: bool,
    found: Option<Finding>,
    ledger: Ledger,
    answers: Answers,
    messages: Messages,
    demand: Demand,
    closed: bool,
    /// What the books said after the last step, and the number of the last snapshot.
    before: (u32, MilliCpus),
    snapshot: u64,
}

impl Judge {
    pub(super) fn new(scenario: &Scenario, on: bool) -> Judge {
        Judge {
            on,
            found: None,
            ledger: Ledger::new(scenario),
            answers: Answers::new(scenario),
            messages: Messages::default(),
            demand: Demand::default(),
            closed: false,
            before: (0, MilliCpus::ZERO),
            snapshot: 0,
        }
    }

    /// The first thing that was found to be wrong.
    pub(super) fn verdict(&mut self) -> Option<Finding> {
        self.found.take()
    }

    fn note(&mut self, result: Result<(), Finding>) {
        if let Err(finding) = result {
            self.found.get_or_insert(finding);
        }
    }

    pub(super) fn offers_arrive(&mut self, offers: &[SimOffer], virtual_now: u64) {
        if self.on {
            self.answers.arrive(offers);
            self.ledger.agents_seen(offers, virtual_now);
        }
    }

    /// These found no room in the intake.
    pub(super) fn overflow(&mut self, offers: &[SimOffer]) {
        if self.on {
            self.answers.overflow(offers);
        }
    }

    pub(super) fn rescinded(&mut self, offer: u64) {
        if self.on {
            self.answers.rescinded(offer);
        }
    }

    pub(super) fn batch_begins(
        &mut self,
        batch: &[SimOffer],
        epoch: u64,
        now: Timestamp,
        settings: Settings,
        virtual_now: u64,
    ) {
        if self.on {
            let opened = self.answers.begin(batch, epoch, now, settings, virtual_now);
            self.note(opened);
        }
    }

    pub(super) fn called(&mut self, call: &Call<'_>, now: Timestamp) {
        if !self.on {
            return;
        }
        let closed = self.closed;
        let judged = match call {
            Call::Accept(_) if closed => {
                Err((23, "offers are accepted after the close".to_owned()))
            }
            Call::Accept(accept) => self.answers.accepted(accept, &self.ledger),
            Call::Decline { epoch, offers, .. } => self.answers.declined(*epoch, offers),
            Call::Revive | Call::Suppress => self.demand.called(call, now),
            Call::Acknowledge { update, uuid } => self.messages.acknowledged(update, uuid),
            Call::Want(_) | Call::Kill { .. } | Call::Reconcile(_) => Ok(()),
        };
        self.note(judged);
    }

    pub(super) fn batch_ends(&mut self, decisions: &Decisions) {
        if self.on {
            let ended = self.answers.end(decisions, &self.ledger);
            self.note(ended);
            self.ledger.placed_on(self.answers.agents_used());
        }
    }

    pub(super) fn update_arrives(&mut self, update: &Update) {
        if self.on {
            self.messages.arrives(update);
            self.ledger.update_arrives(update);
        }
    }

    pub(super) fn noticed(&mut self, notice: &Notice, now: Timestamp) {
        if !self.on {
            return;
        }
        if let Notice::Registered { .. } = notice {
            self.demand.registered();
        }
        self.messages.noticed(notice);
        let entered = self.ledger.noticed(notice, now, self.closed);
        self.note(entered);
    }

    pub(super) fn stewards_turn_ends(&mut self) {
        if self.on {
            let ended = self.messages.end();
            self.note(ended);
        }
    }

    /// The framework's control thread was woken by time.
    pub(super) fn polled(&mut self, kernel: &Kernel, connected: bool, now: Timestamp) {
        if self.on {
            let polled = self.demand.polled(kernel, connected, now);
            self.note(polled);
        }
    }

    pub(super) fn kills(&mut self, kernel: &Kernel, executors: &[ExecutorId]) {
        if self.on {
            for id in executors {
                self.ledger.asked_to_end(&kernel.executor_name(*id).to_string());
            }
        }
    }

    pub(super) fn disconnected(&mut self) {
        self.answers.disconnected();
    }

    pub(super) fn closed(&mut self) {
        self.closed = true;
    }

    /// The drain is over: its report must name who is left, and say the same again.
    pub(super) fn drained(&mut self, kernel: &Kernel, report: &DrainReport) {
        if !self.on {
            return;
        }
        let left = kernel.totals().executors;
        if report.drained != (left == 0) {
            self.note(Err((23, format!("drained: {}, with {left} executors", report.drained))));
        }
        let names = |report: &DrainReport| {
            let rows = report.executors.iter();
            let named =
                rows.map(|row| (kernel.executor_name(row.executor.id).to_string(), row.fate));
            named.collect::<Vec<_>>()
        };
        let (first, again) = (names(report), names(&kernel.drain(Duration::ZERO)));
        if first != again {
            self.note(Err((23, "two reports of one drain differ".to_owned())));
        }
        let fates = first.iter().map(|(name, fate)| (name.as_str(), *fate));
        let agreed = self.ledger.agrees_with_fates(fates);
        self.note(agreed);
    }

    /// The framework has not recovered in time.
    pub(super) fn missed(&mut self, missing: Finding) {
        self.note(Err(missing));
    }

    /// After each step: the sums.
    pub(super) fn step_ends(&mut self, kernel: &Kernel, settings: Settings) {
        if !self.on {
            return;
        }
        let totals = kernel.totals();
        let judged = self.ledger.agrees_with(totals).and_then(|()| {
            let (executors, cores) = self.before;
            let cap = settings.core_cap;
            if totals.executors > executors && totals.executors > settings.limit {
                return Err((
                    15,
                    format!("{} executors, limit {}", totals.executors, settings.limit),
                ));
            }
            if totals.cores > cores && cap > MilliCpus::ZERO && totals.cores > cap {
                return Err((2, format!("{} cores, cap {cap}", totals.cores)));
            }
            Ok(())
        });
        self.before = (totals.executors, totals.cores);
        self.note(judged);
    }

    /// Everything that can be looked at: O(executors and agents).
    pub(super) fn look_closely(&mut self, kernel: &Kernel, now: Timestamp, virtual_now: u64) {
        if !self.on {
            return;
        }
        let checked = kernel.check().map_err(|violation| (1, violation.to_string()));
        self.note(checked);
        let snapshot = kernel.snapshot(now);
        if snapshot.number <= self.snapshot && self.snapshot > 0 {
            self.note(Err((21, format!("snapshot {} after {}", snapshot.number, self.snapshot))));
        }
        self.snapshot = snapshot.number;
        let pictured = self.ledger.agrees_with_snapshot(&snapshot, now);
        self.note(pictured);
        let known = kernel.agents_known();
        let remembered = self.ledger.agents_remembered(known, now, virtual_now);
        self.note(remembered);
    }
}
