//! A reference model of Spark 3.5's coarse-grained Mesos backend: its offer loop, written as plainly as possible.
//!
//! It takes one offer at a time, sums and scans for everything, and counts in thousandths.

use std::collections::HashMap;

use crate::world::{Amount, Entry, OfferData, Setup};

/// An executor that was launched.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Launch {
    /// The offer's position in its batch.
    pub(crate) offer: usize,
    pub(crate) agent: String,
    pub(crate) host: String,
    pub(crate) cores: u64,
    pub(crate) gpus: u64,
    /// The taken pieces: the index of the offer's resource, and the amount in thousandths or the port.
    pub(crate) pieces: Vec<(usize, u64)>,
}

/// The reason for which an offer isn't used, as far as Spark distinguishes reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    UnmetConstraint,
    ReachedCores,
    Other,
}

/// The backend's state.
#[derive(Debug)]
pub(crate) struct Spark<'a> {
    setup: &'a Setup,
    pub(crate) live: Vec<Launch>,
    failures: HashMap<String, u32>,
    limit: Option<u32>,
    /// The hosts on which executors are wanted.
    wanted: Vec<String>,
    /// When the wait for wanted hosts began, in milliseconds.
    clock: u64,
    launching: bool,
}

impl<'a> Spark<'a> {
    pub(crate) fn new(setup: &'a Setup) -> Spark<'a> {
        Spark {
            setup,
            live: Vec::new(),
            failures: HashMap::new(),
            limit: setup.limit,
            wanted: Vec::new(),
            clock: 0,
            launching: false,
        }
    }

    /// The core cap, rounded to a multiple of an executor's cores.
    fn cores_max(&self) -> u64 {
        let cap = self.setup.core_cap.unwrap_or(2_147_483_647_000) / 1000;
        cap - cap % self.setup.executor_cores.map_or(1, |cores| cores / 1000)
    }

    fn cores(&self) -> u64 {
        self.live.iter().map(|launch| launch.cores).sum()
    }

    fn at_limit(&self) -> bool {
        self.limit.is_some_and(|limit| self.live.len() >= limit as usize)
    }

    /// Requests a number of executors, on these hosts if offers from them arrive in time.
    pub(crate) fn request(&mut self, limit: Option<u32>, wanted: &[String], now: u64) {
        (self.limit, self.wanted, self.clock) = (limit, wanted.to_vec(), now);
    }

    fn is_local(&self, host: &str, now: u64) -> bool {
        let has_executor = self.live.iter().any(|launch| launch.host == host);
        let is_wanted = self.wanted.iter().any(|wanted| wanted == host) && !has_executor;
        let wait = self.setup.locality_wait.filter(|_| !self.wanted.is_empty());
        // Spark compares nanoseconds, of which some have passed since the request.
        let wait = wait.filter(|wait| !wait.is_zero());
        is_wanted || wait.is_none_or(|wait| u128::from(now - self.clock) > wait.as_millis())
    }

    /// Answers a batch: the launches in order, and for each offer the reason if it isn't used.
    pub(crate) fn offers(
        &mut self,
        batch: &[OfferData],
        now: u64,
    ) -> (Vec<Launch>, Vec<Option<Refusal>>) {
        if self.at_limit() {
            self.launching = false;
            return (Vec::new(), vec![Some(Refusal::Other); batch.len()]);
        }
        if !std::mem::replace(&mut self.launching, true) {
            self.clock = now;
        }
        let meets = |offer_data: &OfferData| {
            let zones = &self.setup.zones;
            zones.is_empty() || offer_data.zone.is_some_and(|zone| zones.contains(&zone))
        };
        let matched: Vec<bool> = batch.iter().map(meets).collect();
        let mut left: Vec<Vec<Entry>> =
            batch.iter().map(|offer_data| offer_data.entries.clone()).collect();
        let mut launches = Vec::new();
        loop {
            let before = launches.len();
            for (offer, offer_data) in batch.iter().enumerate().filter(|(offer, _)| matched[*offer])
            {
                if let Some(launch) = self.launch(offer, offer_data, &mut left[offer], now) {
                    self.live.push(launch.clone());
                    launches.push(launch);
                }
            }
            if launches.len() == before {
                break;
            }
        }
        let refusal = |offer: usize| {
            if !matched[offer] {
                Some(Refusal::UnmetConstraint)
            } else if launches.iter().any(|launch| launch.offer == offer) {
                None
            } else if self.cores() >= self.cores_max() {
                Some(Refusal::ReachedCores)
            } else {
                Some(Refusal::Other)
            }
        };
        let refusals = (0..batch.len()).map(refusal).collect();
        (launches, refusals)
    }

    /// Launches one executor on the rest of an offer, if that is possible.
    fn launch(
        &self,
        offer: usize,
        offer_data: &OfferData,
        left: &mut [Entry],
        now: u64,
    ) -> Option<Launch> {
        let offered = sum(left, "cpus") / 1000;
        let fixed = self.setup.executor_cores.map(|cores| cores / 1000);
        let cores = fixed.unwrap_or_else(|| offered.min(self.cores_max() - self.cores()));
        let memory = (self.setup.memory + self.setup.overhead) * 1000;
        let port = self.setup.port.map(u64::from);
        let can = cores > 0
            && cores <= offered
            && cores + self.cores() <= self.cores_max()
            && memory <= sum(left, "mem")
            && !self.at_limit()
            && self.failures.get(&offer_data.agent).is_none_or(|failures| *failures < 2)
            && port.is_none_or(|port| left.iter().any(|entry| has_port(entry, port)))
            && self.is_local(&offer_data.host, now);
        if !can {
            return None;
        }
        let taken: u64 = self.live.iter().map(|launch| launch.gpus).sum();
        let gpus_left = u64::from(self.setup.gpu_cap).saturating_sub(taken);
        let gpus = gpus_left.min(sum(left, "gpus") / 1000);
        let mut pieces = Vec::new();
        for (name, amount) in [("cpus", cores * 1000), ("mem", memory), ("gpus", gpus * 1000)] {
            take(left, name, amount, &mut pieces);
        }
        if let Some(port) = port {
            pieces.extend(left.iter().position(|entry| has_port(entry, port)).map(|at| (at, port)));
            left.iter_mut()
                .filter(|entry| entry.name == "ports")
                .for_each(|entry| entry.name = "used");
        }
        let (agent, host) = (offer_data.agent.clone(), offer_data.host.clone());
        Some(Launch { offer, agent, host, cores, gpus, pieces })
    }

    /// Ends an executor, given by its position among the live ones.
    pub(crate) fn end(&mut self, which: usize, failed: bool) {
        let launch = self.live.remove(which);
        if failed {
            *self.failures.entry(launch.agent).or_default() += 1;
        }
    }
}

fn thousandths(entry: &Entry) -> u64 {
    match entry.amount {
        Amount::Scalar(amount) => (amount * 1000.0).round() as u64,
        Amount::Ports(_) => 0,
    }
}

/// The sum of all resources with this name, whatever role they are reserved for.
fn sum(entries: &[Entry], name: &str) -> u64 {
    entries.iter().filter(|entry| entry.name == name).map(thousandths).sum()
}

fn has_port(entry: &Entry, port: u64) -> bool {
    match &entry.amount {
        Amount::Ports(ranges) => {
            entry.name == "ports" && ranges.iter().any(|range| range.contains(port))
        }
        Amount::Scalar(_) => false,
    }
}

/// Takes an amount from the resources with this name, in their order.
fn take(entries: &mut [Entry], name: &str, mut amount: u64, pieces: &mut Vec<(usize, u64)>) {
    for (at, entry) in entries.iter_mut().enumerate().filter(|(_, entry)| entry.name == name) {
        let piece = amount.min(thousandths(entry));
        if piece > 0 {
            pieces.push((at, piece));
            entry.amount = Amount::Scalar((thousandths(entry) - piece) as f64 / 1000.0);
            amount -= piece;
        }
    }
}
