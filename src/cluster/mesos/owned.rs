//! Converts decoded offer messages into the engine's offers. Offers in JSON are always decoded.

use std::time::SystemTime;

use crate::engine::cluster_manager::{
    OwnedAttribute, OwnedAttributeValue, OwnedOffer, OwnedReservation, OwnedReservations,
    OwnedReservedBy, OwnedResource, OwnedValue,
};
use crate::mesos_v1::messages::{
    self, Attribute, DomainInfo, Offer, ReservationInfo, ReservationType, Resource, ValueType,
};
use crate::mesos_v1::offers::Unavailability;
use crate::offer::{Binding, DEFAULT_ROLE, ReservationKind, Revocability};
use crate::resources::{PortRange, Scalar};

/// Converts an offer. `role` is its role if it names none.
pub(super) fn offer(offer: Offer, role: &str) -> OwnedOffer {
    let (region, zone) = offer.domain.map_or((None, None), domain);
    let allocated = offer.allocation_info.and_then(|info| info.role);
    let maintenance_in = offer.unavailability.and_then(|away| {
        let duration_ns = away.duration.map(|duration| duration.nanoseconds);
        let away = Unavailability { start_ns: away.start.nanoseconds, duration_ns };
        away.begins_in(SystemTime::now())
    });
    OwnedOffer {
        id: offer.id.value,
        agent_id: offer.agent_id.value,
        hostname: offer.hostname,
        role: allocated.unwrap_or_else(|| role.to_owned()),
        resources: offer.resources.into_iter().filter_map(resource).collect(),
        attributes: offer.attributes.into_iter().filter_map(attribute).collect(),
        region,
        zone,
        maintenance_in,
        profile: None,
        binding: Binding::Immediate,
    }
}

fn domain(domain: DomainInfo) -> (Option<String>, Option<String>) {
    domain.fault_domain.map_or((None, None), |it| (Some(it.region.name), Some(it.zone.name)))
}

/// Converts a resource. Resources that are sets are left out, because executors use none.
fn resource(resource: Resource) -> Option<OwnedResource> {
    let value = match resource.r#type() {
        ValueType::Scalar => {
            OwnedValue::Scalar(Scalar::from_f64_lenient(resource.scalar.unwrap_or_default().value))
        }
        ValueType::Ranges => OwnedValue::Ranges(ranges(resource.ranges)),
        _ => return None,
    };
    let revocability = if resource.disk.is_some() {
        Revocability::Disk
    } else if resource.shared.is_some() {
        Revocability::Shared
    } else if resource.revocable.is_some() {
        Revocability::Revocable
    } else {
        Revocability::NonRevocable
    };
    let refined: Vec<OwnedReservation> =
        resource.reservations.into_iter().map(reservation).collect();
    let reservations = match (resource.role, resource.reservation) {
        (None, None) => OwnedReservations::PostRefinement(refined),
        (role, dynamic) => OwnedReservations::PreRefinement {
            role: role.unwrap_or_else(|| DEFAULT_ROLE.to_owned()),
            dynamic: dynamic.map(reserved_by),
        },
    };
    Some(OwnedResource { name: resource.name, reservations, value, revocability })
}

fn reservation(info: ReservationInfo) -> OwnedReservation {
    let kind = match info.r#type() {
        ReservationType::Static => ReservationKind::Static,
        _ => ReservationKind::Dynamic,
    };
    let role = info.role.clone().unwrap_or_else(|| DEFAULT_ROLE.to_owned());
    OwnedReservation { kind, role, by: reserved_by(info) }
}

fn reserved_by(info: ReservationInfo) -> OwnedReservedBy {
    let labels = info.labels.unwrap_or_default().labels;
    OwnedReservedBy {
        principal: info.principal,
        labels: labels.into_iter().map(|label| (label.key, label.value)).collect(),
    }
}

fn attribute(attribute: Attribute) -> Option<OwnedAttribute> {
    let value = match attribute.r#type() {
        ValueType::Scalar => OwnedAttributeValue::Scalar(attribute.scalar?.value),
        ValueType::Ranges => OwnedAttributeValue::Ranges(ranges(attribute.ranges)),
        ValueType::Set => OwnedAttributeValue::Set(attribute.set?.item),
        ValueType::Text => OwnedAttributeValue::Text(attribute.text?.value),
    };
    Some(OwnedAttribute { name: attribute.name, value })
}

fn ranges(ranges: Option<messages::Ranges>) -> Vec<PortRange> {
    let ranges = ranges.unwrap_or_default().range;
    ranges.into_iter().map(|range| PortRange::new(range.begin, range.end)).collect()
}
