//! From the bytes of OFFERS events to decisions; `benches/README.md` says what each shows.
#![expect(clippy::expect_used, reason = "a bench that can't be set up must stop")]

mod events;

use std::hint::black_box;
use std::time::Duration;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, BenchmarkId, Criterion, Throughput};
use offermill::cluster::mesos::Encoding;
use offermill::config::ExecutorCores;
use offermill::engine::cluster_manager::OfferPlace;
use offermill::mesos_v1::codec::Codec;
use offermill::mesos_v1::offers::{OfferReader, split};
use offermill::resources::MilliCpus;
use offermill::{
    Attribute, AttributeValue, Config, Constraint, Decisions, Handler, IdScheme, Kernel, Offer,
    Resource, Timestamp,
};
use prost::Message as _;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const NOW: Timestamp = Timestamp::from_millis(1_000);

fn main() {
    let mut criterion = Criterion::default()
        .sample_size(30)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_millis(1500))
        .configure_from_args();
    for batch in [1, 3, 100, 1000] {
        decoding(&mut criterion, batch);
        deciding(&mut criterion, batch);
    }
    criterion.final_summary();
}

/// Events, taken one after the other, again and again.
struct Stream {
    records: Vec<Vec<u8>>,
    next: usize,
}

impl Stream {
    fn new(records: Vec<Vec<u8>>) -> Stream {
        Stream { records, next: 0 }
    }

    fn protobuf(batch: usize) -> Stream {
        Stream::new(events::events(batch).iter().map(prost::Message::encode_to_vec).collect())
    }

    fn varied(batch: usize) -> Stream {
        Stream::new(events::varied(batch).iter().map(prost::Message::encode_to_vec).collect())
    }

    fn json(batch: usize) -> Stream {
        let events = events::events(batch);
        let json = events.iter().map(|event| serde_json::to_vec(event).expect("JSON"));
        Stream::new(json.collect())
    }

    fn next(&mut self) -> &[u8] {
        self.next = if self.next + 1 < self.records.len() { self.next + 1 } else { 0 };
        black_box(&self.records[self.next])
    }
}

type Group<'c> = BenchmarkGroup<'c, WallTime>;

fn bench(group: &mut Group<'_>, name: &str, batch: usize, mut work: impl FnMut()) {
    group.throughput(Throughput::Elements(batch as u64));
    group.bench_function(BenchmarkId::new(name, batch), |bencher| bencher.iter(&mut work));
}

/// Bytes to offers, and to messages.
fn decoding(criterion: &mut Criterion, batch: usize) {
    let mut group = criterion.benchmark_group("wire/decode");
    let mut stream = Stream::protobuf(batch);
    let mut places = Vec::new();
    bench(&mut group, "split", batch, || {
        assert_eq!(split(stream.next(), &mut places), Ok(true));
        black_box(&places);
    });
    let mut scheduler = WireHandler::new(None);
    bench(&mut group, "split and read", batch, || {
        scheduler.read(stream.next(), |offers, _, _| {
            black_box(offers);
        });
    });
    bench(&mut group, "prost", batch, || {
        let event = offermill::mesos_v1::messages::Event::decode(stream.next());
        black_box(event).expect("an event");
    });
    let mut varied = Stream::varied(batch);
    bench(&mut group, "split and read, varied", batch, || {
        scheduler.read(varied.next(), |offers, _, _| {
            black_box(offers);
        });
    });
    bench(&mut group, "prost, varied", batch, || {
        let event = offermill::mesos_v1::messages::Event::decode(varied.next());
        black_box(event).expect("an event");
    });
    let mut stream = Stream::json(batch);
    let codec = Codec::new(Encoding::Json);
    bench(&mut group, "json", batch, || {
        black_box(codec.decode(stream.next())).expect("an event");
    });
    group.finish();
}

/// Bytes to decisions.
fn deciding(criterion: &mut Criterion, batch: usize) {
    for (name, policy) in [("constraint unmet", Policy::Unmet), ("cap reached", Policy::Reached)] {
        let mut group = criterion.benchmark_group(format!("wire/{name}"));
        let mut stream = Stream::protobuf(batch);
        let mut scheduler = WireHandler::new(Some(policy));
        bench(&mut group, "in place", batch, || scheduler.decide(stream.next()));
        let mut messages = WireHandler::new(Some(policy));
        bench(&mut group, "from messages", batch, || messages.decide_with_prost(stream.next()));
        group.finish();
    }
}

/// Why all offers are declined.
#[derive(Clone, Copy)]
enum Policy {
    Unmet,
    Reached,
}

/// Reads events and decides about their offers.
struct WireHandler {
    reader: OfferReader,
    places: Vec<OfferPlace>,
    handler: Handler,
    decisions: Decisions,
}

impl WireHandler {
    fn new(policy: Option<Policy>) -> WireHandler {
        let zone = match policy {
            Some(Policy::Unmet) => "zone:north;tier:1",
            _ => "zone:east,west;tier:1",
        };
        let cap = MilliCpus::from_cores(4);
        let config = Config::builder()
            .executor_cores(ExecutorCores::Fixed(cap))
            .constraint(Constraint::parse(zone).expect("a constraint"))
            .core_cap(Some(cap));
        let ids = IdScheme::unique("bench", 1_700_000_000).expect("a prefix");
        let kernel = Kernel::new(config.build().expect("settings"), ids);
        let mut scheduler = WireHandler {
            reader: OfferReader::default(),
            places: Vec::new(),
            handler: kernel.handler(),
            decisions: Decisions::new(),
        };
        // What the cap leaves room for is taken before anything is measured.
        scheduler.decide(&events::events(1)[0].encode_to_vec());
        scheduler
    }

    fn read(
        &mut self,
        record: &[u8],
        use_them: impl FnOnce(&[Offer<'_>], &mut Handler, &mut Decisions),
    ) {
        let WireHandler { reader, places, handler, decisions } = self;
        assert_eq!(split(record, places), Ok(true));
        let offers = places.iter().map(|place| &record[place.offer.clone()]);
        let batch = reader.decode(offers);
        assert!(batch.unreadable.is_empty());
        use_them(batch.offers, handler, decisions);
    }

    fn decide(&mut self, record: &[u8]) {
        self.read(record, |offers, handler, decisions| {
            handler.resource_offers(offers, NOW, decisions);
            black_box(decisions);
        });
    }

    /// The same by way of messages: what a framework would do that has only prost.
    fn decide_with_prost(&mut self, record: &[u8]) {
        let event = offermill::mesos_v1::messages::Event::decode(record);
        let offers = event.expect("an event").offers.expect("offers").offers;
        let parts: Vec<_> = offers.iter().map(Parts::new).collect();
        let offers: Vec<Offer<'_>> = offers
            .iter()
            .zip(&parts)
            .map(|(offer, parts)| {
                let (id, agent) = (&offer.id.value, &offer.agent_id.value);
                Offer::new(id, agent, &offer.hostname, &parts.resources, &parts.attributes)
            })
            .collect();
        self.handler.resource_offers(&offers, NOW, &mut self.decisions);
        black_box(&self.decisions);
    }
}

/// What recorded offers have: numbers and texts. (Ports are left out, to the advantage of this way.)
struct Parts<'a> {
    resources: Vec<Resource<'a>>,
    attributes: Vec<Attribute<'a>>,
}

impl<'a> Parts<'a> {
    fn new(offer: &'a offermill::mesos_v1::messages::Offer) -> Parts<'a> {
        let resources = offer.resources.iter().filter_map(|resource| {
            Some(Resource::scalar(&resource.name, resource.scalar.as_ref()?.value))
        });
        let attributes = offer.attributes.iter().map(|attribute| {
            let text = attribute.text.as_ref().map(|text| AttributeValue::Text(&text.value));
            let scalar = attribute.scalar.as_ref().map(|scalar| scalar.value);
            let value = text.unwrap_or(AttributeValue::Scalar(scalar.unwrap_or_default()));
            Attribute { name: &attribute.name, value }
        });
        Parts { resources: resources.collect(), attributes: attributes.collect() }
    }
}
