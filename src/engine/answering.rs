//! From a batch of offers, through the kernel, into calls.

use std::sync::Arc;
use std::time::Duration;

use super::control::Control;
use super::encoded::{EncodedOffer, ReadOffers};
use super::intake::Waiting;
use super::keeper::Keeper;
use super::notice::PlacedExecutor;
use super::owned::lend;
use super::seam::{Accept, Call, Launch, Shape, Taken};
use super::shared::Shared;
use crate::kernel::{Accepted, Decisions, Handler, Placed};
use crate::launch::{Facts, Launcher};
use crate::offer::Offer;
use crate::time::Timestamp;

/// Answers offers until the intake is closed and empty: a handler thread's work.
pub(super) fn answer_offers(shared: &Arc<Shared>) {
    let mut answerer = Answerer::new(shared.keeper.clone(), Arc::clone(&shared.launcher));
    let mut reader = shared.manager.offer_reader();
    let (mut batch, mut owned, mut encoded) = (Vec::new(), Vec::new(), Vec::new());
    while let Some(epoch) = shared.intake.pop(shared.options.batch_max, &mut batch) {
        for waiting in batch.drain(..) {
            match waiting {
                Waiting::Owned(offer) => owned.push(offer),
                Waiting::Encoded(offer) => encoded.push(offer),
            }
        }
        let (app, now) = (shared.app(), shared.clock.now());
        let mut answer =
            |offers: &[Offer<'_>]| answerer.answer(&app, epoch, offers, now, &mut &**shared);
        if !owned.is_empty() {
            lend(&owned, &mut answer);
        }
        let unreadable = read(reader.as_deref_mut(), &encoded, &mut answer);
        if !unreadable.is_empty() {
            shared.tell(Control::Unreadable { epoch, offers: unreadable });
        }
        owned.clear();
        encoded.clear();
    }
}

/// Has offers read and answered; returns the ids of those that can't be read.
fn read(
    reader: Option<&mut (dyn ReadOffers + 'static)>,
    encoded: &[EncodedOffer],
    answer: &mut impl FnMut(&[Offer<'_>]),
) -> Vec<String> {
    if encoded.is_empty() {
        return Vec::new();
    }
    let Some(reader) = reader else {
        return encoded.iter().map(|offer| offer.id().to_owned()).collect();
    };
    let mut ids = Vec::new();
    reader.read(encoded, &mut |offers, unreadable| {
        if !offers.is_empty() {
            answer(offers);
        }
        let unreadable = unreadable.filter_map(|place| encoded.get(place));
        ids.extend(unreadable.map(|offer| offer.id().to_owned()));
    });
    ids
}

/// Where answers go.
pub(crate) trait AnswerOutlet {
    /// Makes a call; `false` if it surely had no effect.
    fn call(&mut self, call: Call<'_>) -> bool;
    /// Told before the call that launches them, so that no update can come before it.
    fn placed(&mut self, placed: Vec<PlacedExecutor>);
    /// The call that was to launch them surely had no effect.
    fn never_launched(&mut self, executors: Vec<String>);
}

impl AnswerOutlet for &Shared {
    fn call(&mut self, call: Call<'_>) -> bool {
        Shared::call(self, call)
    }

    fn placed(&mut self, placed: Vec<PlacedExecutor>) {
        self.tell(Control::Placed(placed));
    }

    fn never_launched(&mut self, executors: Vec<String>) {
        self.tell(Control::NeverLaunched(executors));
    }
}

/// One handler, and what it needs to turn decisions into calls.
pub(crate) struct Answerer {
    keeper: Keeper,
    launcher: Arc<dyn Launcher>,
    handler: Handler,
    decisions: Decisions,
}

impl Answerer {
    pub(crate) fn new(keeper: impl Into<Keeper>, launcher: Arc<dyn Launcher>) -> Answerer {
        let (keeper, decisions) = (keeper.into(), Decisions::new());
        Answerer { handler: keeper.kernel().handler(), decisions, keeper, launcher }
    }

    /// Answers offers that came under one subscription.
    pub(crate) fn answer(
        &mut self,
        app: &str,
        epoch: u64,
        offers: &[Offer<'_>],
        now: Timestamp,
        out: &mut dyn AnswerOutlet,
    ) {
        let answered = self.keeper.answer(&mut self.handler, offers, now, &mut self.decisions);
        for accepted in self.decisions.accepts() {
            self.accept(app, epoch, offers, &accepted, out);
        }
        for (refuse, declined) in by_duration(offers, &self.decisions) {
            out.call(Call::Decline { epoch, offers: &declined, refuse });
        }
        self.keeper.answers_sent(&self.decisions, answered, now);
    }

    /// The decisions of the last batch.
    #[cfg(feature = "simulated")]
    pub(crate) fn decisions(&self) -> &Decisions {
        &self.decisions
    }

    fn accept(
        &self,
        app: &str,
        epoch: u64,
        offers: &[Offer<'_>],
        accepted: &Accepted<'_>,
        out: &mut dyn AnswerOutlet,
    ) {
        let own: Vec<&Offer<'_>> =
            accepted.offers.iter().filter_map(|offer| offers.get(*offer as usize)).collect();
        let Some(first) = own.first() else { return };
        let names: Vec<String> = accepted
            .executors
            .iter()
            .map(|placed| self.keeper.kernel().executor_name(placed.id).to_string())
            .collect();
        let pairs = || accepted.executors.iter().zip(&names);
        // Told before the call, so that no update can come before it.
        let placed = pairs().map(|(placed, name)| describe(placed, name, first)).collect();
        out.placed(placed);
        let executors: Vec<Launch<'_>> = pairs()
            .map(|(placed, executor)| {
                let facts = Facts {
                    executor,
                    app,
                    agent_id: first.agent_id,
                    hostname: first.hostname,
                    cores: placed.advertised_cores,
                    memory: placed.advertised_memory,
                    port: placed.port,
                };
                Launch {
                    executor,
                    shape: Shape::default(),
                    cores: placed.cores,
                    memory: placed.memory,
                    gpus: placed.gpus,
                    port: placed.port,
                    pieces: take(accepted, placed, offers),
                    command: self.launcher.command(&facts),
                }
            })
            .collect();
        let call = Call::Accept(Accept {
            epoch,
            agent_id: first.agent_id,
            offers: &own,
            executors: &executors,
            refuse: accepted.refuse,
        });
        if !out.call(call) {
            out.never_launched(names);
        }
    }
}

/// Declined offers by how long they are refused for: a few calls for a batch.
fn by_duration<'a>(offers: &[Offer<'a>], decisions: &Decisions) -> Vec<(Duration, Vec<&'a str>)> {
    let mut groups: Vec<(Duration, Vec<&str>)> = Vec::new();
    for decline in decisions.declines() {
        let Some(offer) = offers.get(decline.offer as usize) else { continue };
        match groups.iter_mut().find(|(refuse, _)| *refuse == decline.refuse) {
            Some((_, ids)) => ids.push(offer.id),
            None => groups.push((decline.refuse, vec![offer.id])),
        }
    }
    groups
}

fn describe(placed: &Placed, executor: &str, offer: &Offer<'_>) -> PlacedExecutor {
    PlacedExecutor {
        id: placed.id,
        executor: executor.to_owned(),
        agent_id: offer.agent_id.to_owned(),
        hostname: offer.hostname.to_owned(),
        cores: placed.cores,
        memory: placed.memory,
        gpus: placed.gpus,
        port: placed.port,
    }
}

fn take<'a>(accepted: &Accepted<'_>, placed: &Placed, offers: &'a [Offer<'a>]) -> Vec<Taken<'a>> {
    let pieces = accepted.pieces(placed).iter();
    let taken = pieces.filter_map(|piece| {
        let resources = offers.get(piece.offer as usize)?.resources;
        let resource = resources.get(piece.resource as usize)?;
        Some(Taken { resource, amount: piece.amount })
    });
    taken.collect()
}
