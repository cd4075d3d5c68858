//! Compares the offer reader with prost. Used by tests and by a fuzz target.

#![allow(unreachable_pub)]

use offermill::limits;
use offermill::mesos_v1::offers::{MalformedOffer, OfferReader, Unavailability, split};
use offermill::resources::{PortRange, Scalar};
use offermill::{
    Attribute, AttributeValue, DEFAULT_ROLE, Label, Offer, Reservation, ReservationKind,
    Reservations, ReservedBy, Resource, Revocability, Value,
};
use prost::Message;

use super::mirror;

/// The type of events that contain offers.
pub const OFFERS: i32 = 2;
/// The role that the reader assumes for offers that name none.
pub const ROLE: &str = "etl";

/// The content of an offer as text, or the error.
type Decoded = Result<(String, Option<Unavailability>), MalformedOffer>;

/// Panics unless prost and the reader agree on `record`.
pub fn check(reader: &mut OfferReader, record: &[u8]) {
    let mut places = Vec::new();
    let split = split(record, &mut places);
    let event = mirror::Event::decode(record);
    let is_offers = match (&split, &event) {
        (Ok(is_offers), Ok(event)) => {
            assert_eq!(*is_offers, event.kind == Some(OFFERS));
            let offers = event.offers.as_ref().map_or(0, |offers| offers.offers.len());
            assert_eq!(places.len(), if *is_offers { offers } else { 0 });
            *is_offers
        }
        (Ok(is_offers), Err(_)) => *is_offers,
        (Err(why), event) => {
            assert!(event.is_err(), "{why}: {event:?}");
            return;
        }
    };
    let decoded = read(reader, places.iter().map(|place| &record[place.offer.clone()]).collect());
    assert_eq!(decoded.len(), places.len());
    let mut whole = true;
    for (decoded, place) in decoded.iter().zip(&places) {
        let offer = alone(&record[place.offer.clone()]);
        whole &= offer.is_ok();
        if let Ok(offer) = &offer {
            let id = offer.id.as_ref().and_then(|id| id.value.as_deref()).unwrap_or_default();
            let found = &record[place.id.clone()];
            // If the offer begins with the id, it may be the first of several ids.
            let is_first = place.id.start == place.offer.start + 4 && !found.is_empty();
            assert!(found == id.as_bytes() || is_first);
        }
        let expected = offer.map_err(|_| None).and_then(|offer| expected(&offer));
        match (decoded, &expected) {
            (Ok(decoded), Ok(expected)) => {
                assert_eq!(decoded, expected);
                assert!(!record[place.id.clone()].is_empty());
            }
            (Err(why), Err(Some(expected))) => assert_eq!(why, expected),
            (Err(_), Err(None)) => {}
            _ => panic!("{decoded:?}, and prost: {expected:?}"),
        }
    }
    assert!(!is_offers || event.is_ok() == whole, "{event:?}");
}

/// Decodes an offer with prost in its context: in a message in an event.
fn alone(offer: &[u8]) -> Result<mirror::Offer, prost::DecodeError> {
    let sized = |key: u8, bytes: &[u8]| {
        let mut message = vec![key];
        prost::encode_length_delimiter(bytes.len(), &mut message).expect("room");
        message.extend_from_slice(bytes);
        message
    };
    let event = mirror::Event::decode(&*sized(0x1a, &sized(0x0a, offer)))?;
    let offers = event.offers.expect("offers");
    Ok(offers.offers.into_iter().next().expect("an offer"))
}

/// Returns the reader's result for each offer.
fn read(reader: &mut OfferReader, offers: Vec<&[u8]>) -> Vec<Decoded> {
    let count = offers.len();
    let owned: Vec<Vec<u8>> = offers.into_iter().map(<[u8]>::to_vec).collect();
    let batch = reader.decode(owned.iter().map(|offer| &offer[..]));
    let mut decoded: Vec<Option<Decoded>> = vec![None; count];
    for (place, why) in batch.unreadable {
        assert!(decoded[*place].replace(Err(*why)).is_none());
    }
    let readable: Vec<usize> = (0..count).filter(|place| decoded[*place].is_none()).collect();
    assert_eq!(readable.len(), batch.offers.len());
    for (number, (place, offer)) in readable.into_iter().zip(batch.offers).enumerate() {
        let away = batch.unavailable.iter().find(|(offer, _)| *offer == number);
        assert!(offer.maintenance_in.is_none() || away.is_some());
        // The time until then depends on the clock.
        let mut offer = *offer;
        offer.maintenance_in = None;
        decoded[place] = Some(Ok((describe(&offer), away.map(|(_, away)| *away))));
    }
    decoded.into_iter().map(|decoded| decoded.expect("an answer")).collect()
}

fn describe(offer: &Offer<'_>) -> String {
    let mut offer = *offer;
    // Depends on the present time; the values from which it is computed are compared.
    offer.maintenance_in = None;
    format!("{offer:?}")
}

/// The expected result of the reader for an offer, or the expected error.
fn expected(
    offer: &mirror::Offer,
) -> Result<(String, Option<Unavailability>), Option<MalformedOffer>> {
    let text = |text: &Option<mirror::Text>| text.as_ref().and_then(|text| text.value.clone());
    let own: Vec<Parts<'_>> = offer.attributes.iter().map(Parts::of_attribute).collect();
    let attributes: Vec<Attribute<'_>> = offer.attributes.iter().zip(&own).map(attribute).collect();
    if attributes.iter().any(is_long) {
        return Err(Some(MalformedOffer::LongText));
    }
    let id = text(&offer.id).filter(|id| !id.is_empty()).ok_or(Some(MalformedOffer::NoId))?;
    let agent =
        text(&offer.agent_id).filter(|id| !id.is_empty()).ok_or(Some(MalformedOffer::NoAgent))?;
    let hostname = offer.hostname.as_deref().unwrap_or_default();
    if [&id, &agent].iter().any(|id| id.len() > limits::FOREIGN_ID_BYTES_MAX)
        || hostname.len() > limits::HOSTNAME_BYTES_MAX
        || is_long_name(offer)
    {
        return Err(Some(MalformedOffer::LongText));
    }
    let labels: Vec<LabelsOf<'_>> = offer.resources.iter().map(LabelsOf::new).collect();
    let parts: Vec<Parts<'_>> =
        offer.resources.iter().zip(&labels).map(Parts::of_resource).collect();
    let resources: Vec<Resource<'_>> = offer.resources.iter().zip(&parts).map(resource).collect();
    let role = text(&offer.allocation_info).unwrap_or_else(|| ROLE.to_owned());
    let domain = offer.domain.as_ref().and_then(|domain| domain.fault_domain.clone());
    let domain = domain.unwrap_or_default();
    let (region, zone) = (text(&domain.region), text(&domain.zone));
    let mut decoded = Offer::new(&id, &agent, hostname, &resources, &attributes).with_role(&role);
    (decoded.region, decoded.zone) = (region.as_deref(), zone.as_deref());
    let nanoseconds = |time: mirror::Nanoseconds| time.nanoseconds.unwrap_or_default();
    let away = offer.unavailability.as_ref().map(|away| Unavailability {
        start_ns: away.start.map(nanoseconds).unwrap_or_default(),
        duration_ns: away.duration.map(nanoseconds),
    });
    Ok((describe(&decoded), away))
}

/// Whether the name of a role, a region or a zone is too long.
fn is_long_name(offer: &mirror::Offer) -> bool {
    let text = |text: &Option<mirror::Text>| text.as_ref().and_then(|text| text.value.clone());
    let domain = offer.domain.as_ref().and_then(|domain| domain.fault_domain.clone());
    let domain = domain.unwrap_or_default();
    let mut names = vec![text(&offer.allocation_info), text(&domain.region), text(&domain.zone)];
    for resource in &offer.resources {
        names.push(resource.role.clone());
        let reservations = resource.reservations.iter().chain(&resource.reservation);
        names.extend(reservations.map(|reservation| reservation.role.clone()));
    }
    names.iter().flatten().any(|name| name.len() > limits::FOREIGN_ID_BYTES_MAX)
}

fn is_long(attribute: &Attribute<'_>) -> bool {
    let mut texts = vec![attribute.name];
    match attribute.value {
        AttributeValue::Text(text) => texts.push(text),
        AttributeValue::Set(items) => texts.extend(items),
        AttributeValue::Scalar(_) | AttributeValue::Ranges(_) => {}
    }
    texts.iter().any(|text| text.len() > limits::ATTRIBUTE_BYTES_MAX)
}

/// The borrowed parts of a resource or an attribute, except its texts.
struct Parts<'a> {
    ranges: Vec<PortRange>,
    items: Vec<&'a str>,
    by: ReservedBy<'a>,
    stack: Vec<Reservation<'a>>,
}

impl<'a> Parts<'a> {
    fn of_attribute(attribute: &'a mirror::Attribute) -> Parts<'a> {
        Parts::of(&attribute.ranges, &attribute.set)
    }

    fn of_resource((resource, labels): (&'a mirror::Resource, &'a LabelsOf<'a>)) -> Parts<'a> {
        let own = resource.reservation.as_ref().map(|info| reservation((info, &labels.own)));
        Parts {
            by: own.map(|own| own.by).unwrap_or_default(),
            stack: resource.reservations.iter().zip(&labels.stack).map(reservation).collect(),
            ..Parts::of(&resource.ranges, &resource.set)
        }
    }

    fn of(ranges: &'a Option<mirror::Ranges>, set: &'a Option<mirror::Set>) -> Parts<'a> {
        let range = |range: &mirror::Range| {
            PortRange::new(range.begin.unwrap_or_default(), range.end.unwrap_or_default())
        };
        let items = set.iter().flat_map(|set| &set.item);
        Parts {
            ranges: ranges.iter().flat_map(|ranges| &ranges.range).map(range).collect(),
            items: items.map(String::as_str).collect(),
            by: ReservedBy::default(),
            stack: Vec::new(),
        }
    }
}

/// The labels of a resource's reservations.
struct LabelsOf<'a> {
    own: Vec<Label<'a>>,
    stack: Vec<Vec<Label<'a>>>,
}

impl<'a> LabelsOf<'a> {
    fn new(resource: &'a mirror::Resource) -> LabelsOf<'a> {
        let label = |label: &'a mirror::Label| -> Label<'a> {
            (label.key.as_deref().unwrap_or_default(), label.value.as_deref())
        };
        let of = |info: &'a mirror::ReservationInfo| -> Vec<Label<'a>> {
            info.labels.iter().flat_map(|labels| &labels.labels).map(label).collect()
        };
        LabelsOf {
            own: resource.reservation.as_ref().map(of).unwrap_or_default(),
            stack: resource.reservations.iter().map(of).collect(),
        }
    }
}

fn reservation<'a>(
    (info, labels): (&'a mirror::ReservationInfo, &'a Vec<Label<'a>>),
) -> Reservation<'a> {
    let kind = match info.kind {
        Some(1) => ReservationKind::Static,
        _ => ReservationKind::Dynamic,
    };
    let by = ReservedBy { principal: info.principal.as_deref(), labels };
    Reservation { kind, role: info.role.as_deref().unwrap_or_default(), by }
}

fn resource<'a>((resource, parts): (&'a mirror::Resource, &'a Parts<'a>)) -> Resource<'a> {
    let value = match resource.kind.unwrap_or_default() {
        0 => {
            let scalar = resource.scalar.and_then(|scalar| scalar.value).unwrap_or_default();
            Value::Scalar(Scalar::from_f64_lenient(scalar))
        }
        1 => Value::Ranges(&parts.ranges),
        2 => Value::Set(&parts.items),
        _ => Value::Set(&[]),
    };
    let mut revocability = Revocability::NonRevocable;
    for (says_so, other) in [
        (resource.revocable, Revocability::Revocable),
        (resource.shared, Revocability::Shared),
        (resource.disk, Revocability::Disk),
    ] {
        if says_so.is_some() {
            revocability = other;
        }
    }
    let old = resource.role.is_some() || resource.reservation.is_some();
    let reservations = if old && parts.stack.is_empty() {
        let role = resource.role.as_deref().unwrap_or(DEFAULT_ROLE);
        Reservations::PreRefinement {
            role,
            dynamic: resource.reservation.as_ref().map(|_| &parts.by),
        }
    } else {
        Reservations::PostRefinement(&parts.stack)
    };
    let name = resource.name.as_deref().unwrap_or_default();
    Resource::new(name, value).with_revocability(revocability).with_reservations(reservations)
}

fn attribute<'a>((attribute, parts): (&'a mirror::Attribute, &'a Parts<'a>)) -> Attribute<'a> {
    let value = match attribute.kind.unwrap_or_default() {
        0 => {
            let scalar = attribute.scalar.and_then(|scalar| scalar.value);
            AttributeValue::Scalar(scalar.unwrap_or_default())
        }
        1 => AttributeValue::Ranges(&parts.ranges),
        2 => AttributeValue::Set(&parts.items),
        3 => {
            let text = attribute.text.as_ref().and_then(|text| text.value.as_deref());
            AttributeValue::Text(text.unwrap_or_default())
        }
        _ => AttributeValue::Set(&[]),
    };
    Attribute { name: attribute.name.as_deref().unwrap_or_default(), value }
}
