//! A handler thread: takes batches from the offer queue, reads encoded offers, and has each batch answered.
//!
//! The manager's reader, the launcher and the manager itself are foreign code and may panic. A panic costs one batch:
//! if the reader panics, its offers are declined and a new reader is made; if the answer panics,
//! [`OfferHandler::finish_after_panic`] completes it.

use std::sync::Arc;

use super::control_message::ControlMessage;
use super::encoded::{EncodedOffer, ReadBatch, ReadOffers, UnreadableOffer};
use super::gate::Gate;
use super::handler_calls::HandlerCalls;
use super::offer_handler::OfferHandler;
use super::offer_queue::QueuedOffer;
use super::owned::{BorrowedParts, borrow_offers};
use super::state::EngineState;
use super::sync::catch;
use super::unreadable_offers::RefusedOffer;
use crate::offer::Offer;
use crate::time::Timestamp;

/// The state of a handler thread, without its reader, whose memory the batch that is answered borrows from.
pub(super) struct HandlerThread<'a> {
    shared: &'a EngineState,
    handler: OfferHandler,
    calls: HandlerCalls<'a>,
}

impl<'a> HandlerThread<'a> {
    /// `gate` is the thread's own.
    pub(super) fn new(shared: &'a EngineState, gate: &'a Gate) -> HandlerThread<'a> {
        let launcher = Arc::clone(&shared.launcher);
        let recorded_kernel = shared.recorded_kernel.clone();
        HandlerThread {
            shared,
            handler: OfferHandler::new(recorded_kernel, launcher, shared.chooser.clone()),
            calls: HandlerCalls::new(shared, gate),
        }
    }

    /// Answers offers until the offer queue is closed and empty.
    pub(super) fn run(mut self) {
        let shared = self.shared;
        let mut reader = offer_reader(shared);
        let mut batch = Vec::new();
        let mut owned = Vec::new();
        let mut encoded = Vec::new();
        while let Some(epoch) = shared.offer_queue.pop(shared.options.batch_max, &mut batch) {
            for offer in batch.drain(..) {
                match offer {
                    QueuedOffer::Owned(offer) => owned.push(*offer),
                    QueuedOffer::Encoded(offer) => encoded.push(offer),
                }
            }
            let app = shared.app();
            let now = shared.clock.now();
            if !owned.is_empty() {
                let parts = BorrowedParts::default();
                self.answer(&app, epoch, borrow_offers(&owned, &parts), now);
            }
            if !encoded.is_empty() {
                match read(reader.as_deref_mut(), &encoded) {
                    Ok(read) => {
                        self.answer(&app, epoch, read.offers, now);
                        self.decline_unreadable(epoch, &encoded, read.unreadable);
                    }
                    Err(why) => {
                        shared.send_control(ControlMessage::HandlerPanicked { why });
                        reader = offer_reader(shared);
                        self.decline_unreadable(
                            epoch,
                            &encoded,
                            all("its reader panicked", &encoded),
                        );
                    }
                }
            }
            owned.clear();
            encoded.clear();
        }
    }

    /// Answers offers of one subscription.
    fn answer(&mut self, app: &str, epoch: u64, offers: &[Offer<'_>], now: Timestamp) {
        if offers.is_empty() {
            return;
        }
        let HandlerThread { shared, handler, calls } = self;
        if let Err(why) = catch(|| handler.answer(app, epoch, offers, now, calls)) {
            shared.send_control(ControlMessage::HandlerPanicked { why });
            handler.finish_after_panic(epoch, offers, now, calls);
        }
    }

    /// Has the control thread decline those of `encoded` that can't be read.
    fn decline_unreadable(
        &self,
        epoch: u64,
        encoded: &[EncodedOffer],
        unreadable: Vec<UnreadableOffer>,
    ) {
        if !unreadable.is_empty() {
            let offers = unreadable.into_iter().filter_map(|offer| {
                let UnreadableOffer { position, agent_id, why } = offer;
                let id = encoded.get(position)?.id().to_owned();
                Some(RefusedOffer { id, agent_id, why })
            });
            let offers = offers.collect();
            self.shared.send_control(ControlMessage::Unreadable { epoch, offers });
        }
    }
}

/// All of `encoded`, none of which can be read.
fn all(why: &str, encoded: &[EncodedOffer]) -> Vec<UnreadableOffer> {
    (0..encoded.len()).map(|position| UnreadableOffer::new(position, why)).collect()
}

/// The manager's reader; none if it panics.
fn offer_reader(shared: &EngineState) -> Option<Box<dyn ReadOffers>> {
    catch(|| shared.manager.offer_reader()).unwrap_or_else(|why| {
        shared.send_control(ControlMessage::HandlerPanicked { why });
        None
    })
}

/// Reads a batch. Without a reader no offer can be read. If the reader panics, returns what the panic said.
fn read<'r>(
    reader: Option<&'r mut (dyn ReadOffers + 'static)>,
    encoded: &'r [EncodedOffer],
) -> Result<ReadBatch<'r>, String> {
    match reader {
        Some(reader) => catch(|| reader.read(encoded)),
        None => {
            Ok(ReadBatch { offers: &[], unreadable: all("there is no reader for it", encoded) })
        }
    }
}
