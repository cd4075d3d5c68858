//! Owned offers and settings, from which the inputs of both the kernel and its reference model are made.

use std::time::Duration;

use offermill::config::{
    Compatibility, ExclusionRule, ExecutorCores, ExecutorGpus, Placement, RefuseDurations,
    UnreachableRule,
};
use offermill::resources::{Gpus, Mebibytes, MilliCpus, PortRange};
use offermill::{
    Attribute, Binding, Config, Constraint, DEFAULT_ROLE, Offer, Resource, Revocability, Timestamp,
};

pub(crate) fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

pub(crate) fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// One resource of an offer.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    pub(crate) amount: Amount,
    pub(crate) role: &'static str,
    pub(crate) revocability: Revocability,
}

#[derive(Clone, Debug)]
pub(crate) enum Amount {
    Scalar(f64),
    Ports(Vec<PortRange>),
}

impl Entry {
    pub(crate) fn scalar(name: &'static str, value: f64) -> Entry {
        let amount = Amount::Scalar(value);
        Entry { name, amount, role: DEFAULT_ROLE, revocability: Revocability::NonRevocable }
    }

    pub(crate) fn ports(begin: u64, end: u64) -> Entry {
        let amount = Amount::Ports(vec![PortRange::new(begin, end)]);
        Entry {
            name: "ports",
            amount,
            role: DEFAULT_ROLE,
            revocability: Revocability::NonRevocable,
        }
    }

    pub(crate) fn reserved_for(self, role: &'static str) -> Entry {
        Entry { role, ..self }
    }

    pub(crate) fn revocability(self, revocability: Revocability) -> Entry {
        Entry { revocability, ..self }
    }

    fn lend(&self) -> Resource<'_> {
        let resource = match &self.amount {
            Amount::Scalar(value) => Resource::scalar(self.name, *value),
            Amount::Ports(ranges) => Resource::ranges(self.name, ranges),
        };
        resource.reserved_for(self.role).with_revocability(self.revocability)
    }
}

/// An offer that owns its data.
#[derive(Clone, Debug)]
pub(crate) struct OfferData {
    pub(crate) id: String,
    pub(crate) agent: String,
    pub(crate) host: String,
    pub(crate) role: &'static str,
    pub(crate) zone: Option<&'static str>,
    /// Whether its executor is bound late, if it names no agent.
    pub(crate) late: bool,
    pub(crate) entries: Vec<Entry>,
}

impl OfferData {
    pub(crate) fn new(agent: &str, cpus: f64, memory: f64) -> OfferData {
        let entries = vec![Entry::scalar("cpus", cpus), Entry::scalar("mem", memory)];
        let id = format!("offer of {agent}");
        let (agent, host) = (agent.to_owned(), "host".to_owned());
        OfferData { id, agent, host, role: DEFAULT_ROLE, zone: None, late: false, entries }
    }

    /// A permit for an executor that is bound late.
    pub(crate) fn late(cpus: f64, memory: f64) -> OfferData {
        OfferData { late: true, ..OfferData::new("", cpus, memory) }
    }

    /// Whether it is whole, and a permit.
    pub(crate) fn is_permit(&self) -> bool {
        self.late && self.agent.is_empty() && !self.id.is_empty()
    }

    pub(crate) fn with(mut self, entry: Entry) -> OfferData {
        self.entries.push(entry);
        self
    }

    pub(crate) fn for_role(self, role: &'static str) -> OfferData {
        OfferData { role, ..self }
    }

    pub(crate) fn on_host(self, host: &str) -> OfferData {
        OfferData { host: host.to_owned(), ..self }
    }

    pub(crate) fn in_zone(self, zone: &'static str) -> OfferData {
        OfferData { zone: Some(zone), ..self }
    }
}

/// Borrows the batch as the kernel's offers, and calls `use_them` with these.
pub(crate) fn lend<R>(batch: &[OfferData], use_them: impl FnOnce(&[Offer<'_>]) -> R) -> R {
    let resources: Vec<Vec<Resource<'_>>> = batch
        .iter()
        .map(|offer_data| offer_data.entries.iter().map(Entry::lend).collect())
        .collect();
    let attributes: Vec<Vec<Attribute<'_>>> = batch
        .iter()
        .map(|offer_data| {
            offer_data.zone.iter().map(|zone| Attribute::text("zone", zone)).collect()
        })
        .collect();
    let offers: Vec<Offer<'_>> = batch
        .iter()
        .zip(resources.iter().zip(&attributes))
        .map(|(offer_data, (resources, attributes))| {
            let OfferData { id, agent, host, role, late, .. } = offer_data;
            let mut offer = Offer::new(id, agent, host, resources, attributes).with_role(role);
            offer.binding = if *late { Binding::Late } else { Binding::Immediate };
            offer
        })
        .collect();
    use_them(&offers)
}

/// The settings in a readable form. Cores are in thousandths.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Setup {
    pub(crate) core_cap: Option<u64>,
    /// `None` takes the whole offer.
    pub(crate) executor_cores: Option<u64>,
    pub(crate) memory: u64,
    pub(crate) overhead: u64,
    pub(crate) extra_cores: u32,
    pub(crate) gpu_cap: u32,
    /// `None` takes the GPUs of the offer.
    pub(crate) executor_gpus: Option<u32>,
    pub(crate) limit: Option<u32>,
    pub(crate) port: Option<u16>,
    pub(crate) revocable: bool,
    /// The zones that meet the constraint. Empty means no constraint.
    pub(crate) zones: Vec<&'static str>,
    pub(crate) refuse: RefuseDurations,
    pub(crate) exclusion: Option<ExclusionRule>,
    pub(crate) consolidate: bool,
    pub(crate) compatibility: Compatibility,
    pub(crate) locality_wait: Option<Duration>,
    pub(crate) unreachable: UnreachableRule,
    pub(crate) launch_timeout: Duration,
    pub(crate) revive_interval: Duration,
}

impl Default for Setup {
    /// Executors of one core and 100 MiB, without caps; otherwise the builder's defaults.
    fn default() -> Setup {
        Setup {
            core_cap: None,
            executor_cores: Some(1000),
            memory: 100,
            overhead: 0,
            extra_cores: 0,
            gpu_cap: 0,
            executor_gpus: None,
            limit: None,
            port: None,
            revocable: false,
            zones: Vec::new(),
            refuse: RefuseDurations::default(),
            exclusion: Some(ExclusionRule::default()),
            consolidate: false,
            compatibility: Compatibility::default(),
            locality_wait: None,
            unreachable: UnreachableRule::default(),
            launch_timeout: secs(180),
            revive_interval: secs(5),
        }
    }
}

impl Setup {
    pub(crate) fn config(&self) -> Config {
        let constraint = match self.zones.as_slice() {
            [] => Constraint::none(),
            zones => Constraint::parse(&format!("zone:{}", zones.join(","))).unwrap(),
        };
        let cores = |millis| ExecutorCores::Fixed(MilliCpus::from_millis(millis));
        let gpus = |gpus| ExecutorGpus::Exactly(Gpus::new(gpus));
        let placement =
            if self.consolidate { Placement::Consolidate } else { Placement::RoundRobin };
        Config::builder()
            .core_cap(self.core_cap.map(MilliCpus::from_millis))
            .executor_cores(self.executor_cores.map_or(ExecutorCores::WholeOffer, cores))
            .executor_memory(Mebibytes::new(self.memory))
            .memory_overhead(Some(Mebibytes::new(self.overhead)))
            .extra_cores(self.extra_cores)
            .gpu_cap(Gpus::new(self.gpu_cap))
            .executor_gpus(self.executor_gpus.map_or(ExecutorGpus::WhatThereIs, gpus))
            .executor_limit(self.limit)
            .fixed_port(self.port)
            .revocable(self.revocable)
            .constraint(constraint)
            .refuse_durations(self.refuse)
            .exclusion(self.exclusion)
            .placement(placement)
            .compatibility(self.compatibility)
            .locality_wait(self.locality_wait)
            .unreachable(self.unreachable)
            .launch_timeout(self.launch_timeout)
            .revive_interval(self.revive_interval)
            .capacity_refresh(Duration::ZERO)
            .build()
            .unwrap()
    }
}
