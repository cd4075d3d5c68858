//! Offers in the kernel's form: texts and slices in buffers that are reused for each batch.

use super::wire::{PORTS_FREE, PORTS_TAKEN, ROLE, SCALARS, SimOffer};
use crate::offer::{
    Attribute, DEFAULT_ROLE, Offer, Reservations, ReservedBy, Resource, ResourceKind, Revocability,
    Value,
};
use crate::resources::Scalar;
use std::fmt::Write;

/// The texts of a batch of offers.
#[derive(Debug, Default)]
pub(super) struct OfferBuffer {
    zones: Vec<String>,
    texts: String,
    /// The end positions of the id, the agent's id and the host name of each offer.
    ends: Vec<[usize; 3]>,
    /// Whether the offers of the batch are permits.
    are_late: bool,
}

/// A batch whose texts are in an [`OfferBuffer`].
#[derive(Debug)]
pub(super) struct BufferedOffers<'a> {
    buffer: &'a OfferBuffer,
    attributes: Vec<Attribute<'a>>,
    resources: Vec<Resource<'a>>,
    /// The zone of each offer, and the end position of its resources.
    rows: Vec<(u32, usize)>,
}

impl OfferBuffer {
    pub(super) fn new(zones: u32) -> OfferBuffer {
        let zones = (0..zones).map(|zone| format!("z{zone}")).collect();
        OfferBuffer { zones, ..OfferBuffer::default() }
    }

    pub(super) fn write(&mut self, batch: &[SimOffer]) -> BufferedOffers<'_> {
        self.texts.clear();
        self.ends.clear();
        self.are_late = batch.iter().any(|offer| offer.is_late);
        for offer in batch {
            let mut ends = [0; 3];
            let machine = offer.agent.machine;
            // Writing to a string can't fail.
            let _ = write!(self.texts, "O{}", offer.number);
            ends[0] = self.texts.len();
            if !offer.is_late {
                let _ = write!(self.texts, "{}", offer.agent);
            }
            ends[1] = self.texts.len();
            if !offer.is_late {
                let _ = write!(self.texts, "host{machine}");
            }
            ends[2] = self.texts.len();
            self.ends.push(ends);
        }
        let mut resources = Vec::with_capacity(batch.len() * (SCALARS.len() + 1));
        let mut rows = Vec::with_capacity(batch.len());
        for offer in batch {
            push_resources(offer, &mut resources);
            rows.push((offer.zone, resources.len()));
        }
        let attribute = |zone| Attribute::text("zone", zone);
        let attributes = self.zones.iter().map(|zone| attribute(zone)).collect();
        BufferedOffers { buffer: self, attributes, resources, rows }
    }
}

/// Adds the resources of an offer. Amounts of zero are left out, as Mesos does.
fn push_resources<'a>(offer: &SimOffer, resources: &mut Vec<Resource<'a>>) {
    const KINDS: [ResourceKind; SCALARS.len()] = [
        ResourceKind::Cpus,
        ResourceKind::Cpus,
        ResourceKind::Memory,
        ResourceKind::Memory,
        ResourceKind::Gpus,
        ResourceKind::Other,
    ];
    const BY: ReservedBy<'static> = ReservedBy { principal: Some("ops"), labels: &[] };
    let kinds = SCALARS.into_iter().zip(KINDS).zip(offer.amounts.scalars);
    for (((name, role), kind), amount) in kinds.filter(|(_, amount)| *amount > 0) {
        let value = Value::Scalar(Scalar::from_thousandths(amount));
        let dynamic = (role != DEFAULT_ROLE).then_some(&BY);
        let reservations = Reservations::PreRefinement { role, dynamic };
        resources.push(Resource {
            name,
            kind,
            revocability: Revocability::NonRevocable,
            reservations,
            value,
        });
    }
    let ports = if offer.amounts.port { PORTS_FREE } else { PORTS_TAKEN };
    resources.push(Resource::ranges("ports", ports));
}

impl BufferedOffers<'_> {
    pub(super) fn offers(&self) -> Vec<Offer<'_>> {
        let mut offers = Vec::with_capacity(self.rows.len());
        let mut text = 0;
        let mut first = 0;
        for ((zone, last), ends) in self.rows.iter().zip(&self.buffer.ends) {
            let [id, agent, host] = *ends;
            let texts = &self.buffer.texts;
            let attributes = self.attributes.get(*zone as usize);
            let resources = &self.resources[first..*last];
            let offer = match self.buffer.are_late {
                true => Offer::late(&texts[text..id], resources),
                false => Offer::new(
                    &texts[text..id],
                    &texts[id..agent],
                    &texts[agent..host],
                    resources,
                    attributes.map_or(&[], std::slice::from_ref),
                ),
            };
            offers.push(offer.with_role(ROLE));
            text = host;
            first = *last;
        }
        offers
    }
}
