//! The offer reader, which reads encoded offers in place, compared with prost.

mod agreement;
mod mirror;

use offermill::mesos_v1::offers::{ENTRIES_MAX, MalformedOffer, OFFERS_MAX, OfferReader, split};
use proptest::collection::vec;
use proptest::option::{of, weighted};
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use prost::Message;

use agreement::{OFFERS, ROLE, check};
use mirror::*;

fn text() -> impl Strategy<Value = String> {
    prop_oneof![3 => "(cpus|mem|disk|gpus|ports|\\*|eng|eng/etl|zone)", 1 => "\\PC{0,3}"]
}

fn boxed_text() -> impl Strategy<Value = Text> {
    of(text()).prop_map(|value| Text { value })
}

fn scalar() -> impl Strategy<Value = Scalar> {
    let number = prop_oneof![0.0..100.0, any::<f64>()];
    of(number).prop_map(|value| Scalar { value })
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![0..200_u64, 0..70_000_u64, any::<u64>()]
}

fn ranges() -> impl Strategy<Value = Ranges> {
    let range = (of(number()), of(number())).prop_map(|(begin, end)| Range { begin, end });
    vec(range, 0..4).prop_map(|range| Ranges { range })
}

fn set() -> impl Strategy<Value = Set> {
    vec(text(), 0..4).prop_map(|item| Set { item })
}

fn kind() -> impl Strategy<Value = Option<i32>> {
    of(prop_oneof![9 => 0..4, 1 => any::<i32>()])
}

fn reservation() -> impl Strategy<Value = ReservationInfo> {
    let label = (of(text()), of(text())).prop_map(|(key, value)| Label { key, value });
    let labels = vec(label, 0..3).prop_map(|labels| Labels { labels });
    (of(text()), of(labels), of(text()), kind()).prop_map(|(principal, labels, role, kind)| {
        ReservationInfo { principal, labels, role, kind }
    })
}

fn resource() -> impl Strategy<Value = Resource> {
    let value = (of(text()), kind(), of(scalar()), of(ranges()), of(set()));
    let reserved = (of(text()), of(reservation()), vec(reservation(), 0..3));
    let anything = || weighted(0.2, Just(Anything {}));
    let revocability = (anything(), anything(), anything());
    (value, reserved, revocability).prop_map(|(value, reserved, revocability)| Resource {
        name: value.0,
        kind: value.1,
        scalar: value.2,
        ranges: value.3,
        set: value.4,
        role: reserved.0,
        reservation: reserved.1,
        reservations: reserved.2,
        disk: revocability.0,
        revocable: revocability.1,
        shared: revocability.2,
    })
}

fn attribute() -> impl Strategy<Value = Attribute> {
    let value = (of(text()), kind(), of(scalar()), of(ranges()), of(boxed_text()), of(set()));
    value.prop_map(|(name, kind, scalar, ranges, text, set)| Attribute {
        name,
        kind,
        scalar,
        ranges,
        text,
        set,
    })
}

fn offer() -> impl Strategy<Value = Offer> {
    let ids = (weighted(0.9, boxed_text()), weighted(0.9, boxed_text()), of(text()));
    let entries = (vec(resource(), 0..4), vec(attribute(), 0..4));
    let time = || of(any::<i64>()).prop_map(|nanoseconds| Nanoseconds { nanoseconds });
    let away = (of(time()), of(time()));
    let away = away.prop_map(|(start, duration)| Unavailability { start, duration });
    let domain = (of(boxed_text()), of(boxed_text()));
    let domain = of(domain.prop_map(|(region, zone)| FaultDomain { region, zone }));
    let domain = domain.prop_map(|fault_domain| Domain { fault_domain });
    let rest = (of(away), of(boxed_text()), of(domain));
    (ids, entries, rest).prop_map(|(ids, entries, rest)| Offer {
        id: ids.0,
        agent_id: ids.1,
        hostname: ids.2,
        resources: entries.0,
        attributes: entries.1,
        unavailability: rest.0,
        allocation_info: rest.1,
        domain: rest.2,
    })
}

fn event() -> impl Strategy<Value = Event> {
    let kind = weighted(0.95, prop_oneof![9 => Just(OFFERS), 1 => any::<i32>()]);
    let offers = of(vec(offer(), 0..3).prop_map(|offers| Offers { offers }));
    (kind, offers).prop_map(|(kind, offers)| Event { kind, offers })
}

/// An unknown field, or a known one with another type.
fn unexpected_bytes() -> impl Strategy<Value = Vec<u8>> {
    let group = (1..200_usize, any::<bool>()).prop_map(|(deep, closed)| {
        let ends = if closed { deep } else { deep - 1 };
        [vec![0x7b; deep], vec![0x7c; ends]].concat()
    });
    let field =
        (0..20_u32, 0..8_u32, vec(any::<u8>(), 0..12)).prop_map(|(field, kind, mut rest)| {
            let mut bytes = Vec::new();
            prost::encoding::encode_varint(u64::from(field << 3 | kind), &mut bytes);
            bytes.append(&mut rest);
            bytes
        });
    prop_oneof![1 => group, 4 => field]
}

/// A change of encoded bytes.
#[derive(Clone, Debug)]
enum Damage {
    Put(prop::sample::Index, u8),
    Insert(prop::sample::Index, Vec<u8>),
    Cut(prop::sample::Index),
    Repeat(prop::sample::Index, prop::sample::Index),
}

fn damage() -> impl Strategy<Value = Damage> {
    let at = any::<prop::sample::Index>;
    prop_oneof![
        (at(), any::<u8>()).prop_map(|(at, byte)| Damage::Put(at, byte)),
        (at(), unexpected_bytes()).prop_map(|(at, bytes)| Damage::Insert(at, bytes)),
        at().prop_map(Damage::Cut),
        (at(), at()).prop_map(|(from, to)| Damage::Repeat(from, to)),
    ]
}

impl Damage {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            _ if bytes.is_empty() => {}
            Damage::Put(at, byte) => {
                let at = at.index(bytes.len());
                bytes[at] = *byte;
            }
            Damage::Insert(at, new) => {
                let at = at.index(bytes.len());
                bytes.splice(at..at, new.iter().copied());
            }
            Damage::Cut(at) => bytes.truncate(at.index(bytes.len())),
            Damage::Repeat(from, to) => {
                let (from, to) = (from.index(bytes.len()), to.index(bytes.len()));
                let again = bytes[from.min(to)..from.max(to)].to_vec();
                bytes.extend(again);
            }
        }
    }
}

/// Encodes a message within a message.
fn inside(key: u8, bytes: &[u8]) -> Vec<u8> {
    let mut message = vec![key];
    prost::encode_length_delimiter(bytes.len(), &mut message).unwrap();
    message.extend_from_slice(bytes);
    message
}

/// Encodes an event with offers, each given as bytes.
fn event_of(offers: &[Vec<u8>]) -> Vec<u8> {
    let offers: Vec<u8> = offers.iter().flat_map(|offer| inside(0x0a, offer)).collect();
    [vec![8, 2], inside(0x1a, &offers)].concat()
}

fn config() -> ProptestConfig {
    let regressions = FileFailurePersistence::Direct("tests/mesos/regressions/offers.txt");
    ProptestConfig { failure_persistence: Some(Box::new(regressions)), ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    /// Goal: valid events are read as prost reads them. Method: random messages with all fields, encoded.
    #[test]
    fn whole_events_are_read_as_prost_reads_them(event in event()) {
        check(&mut OfferReader::new(ROLE), &event.encode_to_vec());
    }

    /// Goal: repeated fields are merged as prost merges them, at each level. Method: the concatenation of two encodings
    /// is one message; likewise for resources and attributes.
    #[test]
    fn repeated_fields_are_merged(
        offers in vec((offer(), offer()), 1..3),
        resources in (resource(), resource()),
        attributes in (attribute(), attribute()),
    ) {
        let twice = [resources.0.encode_to_vec(), resources.1.encode_to_vec()].concat();
        let resource = inside(0x2a, &twice);
        let twice = [attributes.0.encode_to_vec(), attributes.1.encode_to_vec()].concat();
        let attribute = inside(0x3a, &twice);
        let merged: Vec<Vec<u8>> = offers
            .iter()
            .map(|(first, second)| {
                let (first, second) = (first.encode_to_vec(), second.encode_to_vec());
                [first, resource.clone(), second, attribute.clone()].concat()
            })
            .collect();
        check(&mut OfferReader::new(ROLE), &event_of(&merged));
    }

    /// Goal: damaged bytes are rejected if prost rejects them, offer by offer, and otherwise read the same. Method:
    /// bytes changed, inserted, cut and repeated, in the event or in one of its offers.
    #[test]
    fn damaged_events_are_refused_as_prost_refuses_them(
        event in event(),
        offers in vec((offer(), vec(damage(), 0..3)), 0..4),
        damages in vec(damage(), 1..4),
    ) {
        let mut reader = OfferReader::new(ROLE);
        let mut bytes = event.encode_to_vec();
        damages.iter().for_each(|damage| damage.apply(&mut bytes));
        check(&mut reader, &bytes);
        let offers: Vec<Vec<u8>> = offers
            .iter()
            .map(|(offer, damages)| {
                let mut bytes = offer.encode_to_vec();
                damages.iter().for_each(|damage| damage.apply(&mut bytes));
                bytes
            })
            .collect();
        check(&mut reader, &event_of(&offers));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Goal: the cache of repeated entries doesn't change any result, in the same batch nor in a later one. Method: few
    /// entries, drawn again and again, in sequences that occur whole, in parts or under longer keys; some of the offers
    /// are malformed. One reader reads them in batches of all sizes, twice.
    #[test]
    fn entries_that_come_again_are_read_as_prost_reads_them(
        entries in (vec(resource(), 1..3), vec(attribute(), 1..3)),
        offers in vec(vec((0..8_usize, any::<prop::sample::Index>()), 0..6), 1..24),
        at_once in 1..24_usize,
    ) {
        let (resources, attributes) = entries;
        let offers: Vec<Vec<u8>> = offers
            .iter()
            .map(|parts| {
                let mut offer = vec![0x0a, 3, 0x0a, 1, b'o', 0x1a, 3, 0x0a, 1, b'a'];
                for (kind, which) in parts {
                    let resource = || which.get(&resources).encode_to_vec();
                    let attribute = || which.get(&attributes).encode_to_vec();
                    match kind {
                        0..=2 => offer.extend(inside(0x2a, &resource())),
                        3..=5 => offer.extend(inside(0x3a, &attribute())),
                        6 => offer.extend([vec![0xaa], inside(0, &resource())].concat()),
                        _ => offer.extend([0x2a, 2, 0x0a][..which.index(20).min(3)].iter()),
                    }
                }
                offer
            })
            .collect();
        let mut reader = OfferReader::new(ROLE);
        for offers in [&offers, &offers].into_iter().flat_map(|offers| offers.chunks(at_once)) {
            check(&mut reader, &event_of(offers));
        }
    }
}

/// Goal: a record can't make memory grow to many times its length. Method: the maximum number of empty offers, of two
/// bytes each, and one more.
#[test]
fn a_record_has_only_so_many_offers() {
    let mut places = Vec::new();
    let record = |offers: usize| {
        let offers = [0x0a, 0].repeat(offers);
        [vec![8, 2], inside(0x1a, &offers)].concat()
    };
    assert_eq!(split(&record(OFFERS_MAX), &mut places), Ok(true));
    assert_eq!(places.len(), OFFERS_MAX);
    assert_eq!(split(&record(OFFERS_MAX + 1), &mut places), Err(MalformedOffer::TooMany));
    assert_eq!(places, []);
}

/// Goal: an offer's id is found where it is, though its beginning looks like an id of 254 bytes in a message of none.
/// Method: an offer with an empty id and one whose length is written so, as prost joins them.
#[test]
fn an_id_after_an_empty_one_is_found() {
    let id = [b'x'; 251];
    let message = [&[0x0a, 251, 1][..], &id].concat();
    let offer = [&[0x0a, 0, 0x0a, 254, 1][..], &message, &inside(0x1a, b"\n\x02a1")].concat();
    let event = event_of(&[offer]);
    let mut places = Vec::new();
    assert_eq!(split(&event, &mut places), Ok(true));
    assert_eq!(&event[places[0].id.clone()], id);
    let mut reader = OfferReader::default();
    let offers = places.iter().map(|place| &event[place.offer.clone()]);
    assert_eq!(reader.decode(offers).offers[0].id.as_bytes(), id);
}

/// Goal: reading allocates nothing in the steady state, but for runs that it sets aside to know them again. Method: the
/// same offers again and again, with few kinds of resources and with all different, some of them long, in batches of
/// one, of three and of all.
#[test]
fn reading_allocates_for_new_runs_alone() {
    for (kinds, at_once) in [4, 100].into_iter().flat_map(|kinds| [1, 3, 100].map(|n| (kinds, n))) {
        let mut offers = Vec::new();
        for number in 0..100_u8 {
            let mut offer = vec![0x0a, 4, 0x0a, 2, b'o', number, 0x1a, 4, 0x0a, 2, b'a', number];
            offer.extend(inside(0x2a, b"\n\x05ports\x10\x01\x22\x06\n\x04\x08\x01\x10\x09"));
            let kind = [&[9][..], &f64::from(number % kinds).to_le_bytes()].concat();
            offer.extend(inside(0x2a, &[b"\n\x04cpus\x10\0", &inside(0x1a, &kind)[..]].concat()));
            if number % 10 == 9 {
                // A run that is too long to be set aside.
                offer.extend([0x2a, 0].repeat(600));
            }
            offer.extend(inside(0x3a, b"\n\x04zone\x10\x03\x2a\x06\n\x04west"));
            offers.push(offer);
        }
        let events: Vec<_> = offers.chunks(at_once).map(event_of).collect();
        let (mut places, mut reader) = (Vec::new(), OfferReader::default());
        let mut read = |times| {
            for event in (0..times).flat_map(|_| &events) {
                assert_eq!(split(event, &mut places), Ok(true));
                let offers = places.iter().map(|place| &event[place.offer.clone()]);
                assert_eq!(reader.decode(offers).offers.len(), places.len());
            }
        };
        read(10);
        let allocated = allocation_counter::measure(|| read(100)).count_total;
        let batches = 100 * events.len() as u64;
        let allowed = if kinds == 4 { 0 } else { batches };
        assert!(
            allocated <= allowed,
            "{kinds} kinds, {at_once} at a time: {allocated} of {allowed}"
        );
    }
}

/// Goal: no offer makes the reader take much memory. Method: one with the maximum number of entries, and one with more.
#[test]
fn offers_with_too_many_entries_are_refused() {
    for (entries, readable) in [(ENTRIES_MAX, true), (ENTRIES_MAX + 1, false)] {
        for entry in [&[0x2a, 0][..], &[0x3a, 0]] {
            let mut offer = vec![0x0a, 3, 0x0a, 1, b'o', 0x1a, 3, 0x0a, 1, b'a'];
            offer.extend(entry.repeat(entries));
            let event = event_of(&[offer]);
            let mut places = Vec::new();
            assert_eq!(split(&event, &mut places), Ok(true));
            let offers = places.iter().map(|place| &event[place.offer.clone()]);
            let mut reader = OfferReader::default();
            let batch = reader.decode(offers);
            assert_eq!(batch.offers.len(), usize::from(readable));
            let refused = [(0, MalformedOffer::TooMany)];
            assert_eq!(batch.unreadable, &refused[..usize::from(!readable)]);
        }
    }
}
