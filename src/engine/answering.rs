//! A handler thread: batches from the intake, through the kernel, into calls.

use std::sync::Arc;
use std::time::Duration;

use super::control::Control;
use super::notice::PlacedExecutor;
use super::owned::Borrowed;
use super::seam::{Accept, Call, Launch, Shape, Taken};
use super::shared::Shared;
use crate::kernel::{Accepted, Decisions, Handler, Placed};
use crate::launch::Facts;
use crate::offer::Offer;

/// Answers offers until the intake is closed and empty.
pub(super) fn answer_offers(shared: &Arc<Shared>) {
    let mut handler = shared.kernel.handler();
    let mut decisions = Decisions::new();
    let mut batch = Vec::new();
    while let Some(epoch) = shared.intake.pop(shared.options.batch_max, &mut batch) {
        let borrowed = Borrowed::of(&batch);
        answer(shared, &mut handler, &mut decisions, epoch, &borrowed.offers());
        drop(borrowed);
        batch.clear();
    }
}

fn answer(
    shared: &Shared,
    handler: &mut Handler,
    decisions: &mut Decisions,
    epoch: u64,
    offers: &[Offer<'_>],
) {
    handler.resource_offers(offers, shared.clock.now(), decisions);
    for accepted in decisions.accepts() {
        accept(shared, epoch, offers, &accepted);
    }
    for (refuse, declined) in by_duration(offers, decisions) {
        shared.call(Call::Decline { epoch, offers: &declined, refuse });
    }
    shared.kernel.answers_sent(decisions);
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

fn accept(shared: &Shared, epoch: u64, offers: &[Offer<'_>], accepted: &Accepted<'_>) {
    let own: Vec<&Offer<'_>> =
        accepted.offers.iter().filter_map(|offer| offers.get(*offer as usize)).collect();
    let Some(first) = own.first() else { return };
    let app = shared.app();
    let names: Vec<String> = accepted
        .executors
        .iter()
        .map(|placed| shared.kernel.executor_name(placed.id).to_string())
        .collect();
    let pairs = || accepted.executors.iter().zip(&names);
    // Told before the call, so that no update can come before it.
    let placed = pairs().map(|(placed, name)| describe(placed, name, first)).collect();
    shared.tell(Control::Placed(placed));
    let executors: Vec<Launch<'_>> = pairs()
        .map(|(placed, executor)| {
            let facts = Facts {
                executor,
                app: &app,
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
                command: shared.launcher.command(&facts),
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
    if !shared.call(call) {
        shared.tell(Control::NeverLaunched(names));
    }
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
