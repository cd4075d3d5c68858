//! Offers as a cluster makes them, cut into batches.
//!
//! Each agent offers once in a round. What offers say (resources, attributes) is shared between agents and so warm, as
//! it is when a decoder has just written it; ids are each agent's own, and lie in the order of the stream. Agents come
//! in another order than the one in which they were met first, so that nothing that is kept for an agent is found by
//! the accident of lying next.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use offermill::resources::PortRange;
use offermill::{Attribute, Offer, Resource};

/// A batch of offers. It lives as long as the process: setting up is not what is measured, and is done once.
pub(crate) type Batch = &'static [Offer<'static>];

/// The rounds that were made, by the number of agents.
static MADE: Mutex<BTreeMap<usize, Round>> = Mutex::new(BTreeMap::new());

/// One round of offers, as agents are met and as they come from then on.
#[derive(Clone, Copy)]
struct Round {
    met: Batch,
    stream: Batch,
}

/// One round of offers, cut into batches.
pub(crate) struct Fleet {
    /// In the order of the agents' numbers: how they are met.
    pub(crate) met: Vec<Batch>,
    /// In another order: how they come from then on.
    pub(crate) stream: Vec<Batch>,
}

impl Fleet {
    /// `agents` agents, whose offers come in batches of `batch`, at most the number of agents.
    pub(crate) fn new(agents: usize, batch: usize) -> Fleet {
        let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
        let round = *made.entry(agents).or_insert_with(|| Round::new(agents));
        let cut = |offers: Batch| offers.chunks_exact(batch.min(agents)).collect();
        Fleet { met: cut(round.met), stream: cut(round.stream) }
    }

    /// The stream with other amounts, which are the same for all agents.
    pub(crate) fn stream_changed(&self) -> Vec<Batch> {
        let resources: &[_] = vec![
            Resource::scalar("cpus", 3.0),
            Resource::scalar("mem", 1_500.0),
            Resource::scalar("disk", 50_000.0),
        ]
        .leak();
        let changed = |batch: &Batch| {
            let offers = batch.iter().map(|offer| {
                let Offer { id, agent_id, hostname, attributes, .. } = *offer;
                Offer::new(id, agent_id, hostname, resources, attributes)
            });
            &*offers.collect::<Vec<_>>().leak()
        };
        self.stream.iter().map(changed).collect()
    }
}

impl Round {
    fn new(agents: usize) -> Round {
        let shapes = Shapes::new();
        let in_order: Vec<usize> = (0..agents).collect();
        Round { met: shapes.offers(&in_order), stream: shapes.offers(&shuffled(in_order)) }
    }
}

/// The same random order at each run.
pub(crate) fn shuffled(mut order: Vec<usize>) -> Vec<usize> {
    let mut random = random();
    for last in (1..order.len()).rev() {
        order.swap(last, random(last as u64 + 1) as usize);
    }
    order
}

/// Random numbers below those that are given, the same at each run.
pub(crate) fn random() -> impl FnMut(u64) -> u64 {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    move |below| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    }
}

/// What offers say, in the few variants that a cluster has.
struct Shapes {
    resources: Vec<&'static [Resource<'static>]>,
    attributes: Vec<&'static [Attribute<'static>]>,
}

impl Shapes {
    /// Agents of 4 to 7 cores with an order of resources as Mesos sends them, some reserved; three attributes each.
    fn new() -> Shapes {
        let ports: &[PortRange] = vec![PortRange { begin: 31_000, end: 32_000 }].leak();
        let resources = (0..8).map(|shape| {
            let cpus = Resource::scalar("cpus", f64::from(4 + shape % 4));
            let memory = Resource::scalar("mem", 2_000.0);
            let (cpus, memory) = match shape {
                7 => (cpus.reserved_for("etl"), memory.reserved_for("etl")),
                _ => (cpus, memory),
            };
            let disk = Resource::scalar("disk", 100_000.0);
            &*vec![cpus, memory, disk, Resource::ranges("ports", ports)].leak()
        });
        let attributes = (0..64).map(|shape: usize| {
            let rack: &str = format!("r{}", shape / 2).leak();
            let zone = ["east", "west"][shape % 2];
            let attributes = vec![
                Attribute::text("rack", rack),
                Attribute::text("zone", zone),
                Attribute::scalar("tier", 3.0),
            ];
            &*attributes.leak()
        });
        Shapes { resources: resources.collect(), attributes: attributes.collect() }
    }

    fn offers(&self, order: &[usize]) -> &'static [Offer<'static>] {
        const CLUSTER: &str = "8b6a3a2e-2f7e-4d1b-9c0f-3f3d8e1f2a77";
        let mut texts = String::new();
        let mut spans = Vec::with_capacity(order.len());
        for (position, agent) in order.iter().enumerate() {
            let start = texts.len();
            texts.push_str(&format!("{CLUSTER}-O{position}"));
            let id = start..texts.len();
            texts.push_str(&format!("{CLUSTER}-S{agent}"));
            let agent_id = id.end..texts.len();
            texts.push_str(&format!("node-{agent}.example.org"));
            spans.push((*agent, id, agent_id.clone(), agent_id.end..texts.len()));
        }
        let texts: &'static str = texts.leak();
        let offers = spans.into_iter().map(|(agent, id, agent_id, hostname)| {
            let resources = self.resources[agent % self.resources.len()];
            let attributes = self.attributes[agent % self.attributes.len()];
            Offer::new(&texts[id], &texts[agent_id], &texts[hostname], resources, attributes)
        });
        offers.collect::<Vec<_>>().leak()
    }
}
