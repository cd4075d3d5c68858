//! A naive model of how an empty kernel answers its first batch, written from the documentation: it places one executor
//! at a time and recomputes every amount.

use std::collections::BTreeMap;

use offermill::limits::{EXECUTOR_CORES_MAX, TOTAL_CORES_MAX};
use offermill::resources::{Gpus, Mebibytes, MilliCpus};
use offermill::{Reason, Revocability};

use super::case::{Amount, Case, Entry, Reserved, Settings};

/// Amounts by the positions of offer and resource.
pub(super) type Amounts = BTreeMap<(usize, usize), u128>;

/// The offers of one agent and role.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) offers: Vec<usize>,
    pub(super) executors: Vec<Executor>,
    /// The remaining amount of each scalar, in thousandths.
    left: Amounts,
    /// Why not even one executor fits.
    pub(super) too_small: Option<Reason>,
}

#[derive(Debug, Default)]
pub(super) struct Executor {
    pub(super) cores: u128,
    pub(super) gpus: u128,
    pub(super) pieces: Amounts,
    /// The positions of offer and resource from which the port is taken.
    pub(super) port: Option<(usize, usize)>,
}

/// All groups, in the order of their first offers, with the executors that the batch places.
pub(super) struct Naive<'a> {
    case: &'a Case,
    pub(super) groups: Vec<Group>,
    pub(super) executors: u128,
    cores: u128,
    gpus: u128,
}

/// The usable amount of an entry, in thousandths.
pub(super) fn takeable(entry: &Entry, role: &str, settings: &Settings) -> u128 {
    let Amount::Scalar(value) = entry.amount else { return 0 };
    if !usable(entry, role, settings) {
        return 0;
    }
    let thousandths = thousandths(value);
    match entry.name.as_str() {
        "cpus" | "mem" => thousandths,
        "gpus" => thousandths - thousandths % 1000,
        _ => 0,
    }
}

/// Converts a number as Mesos sends it to thousandths.
pub(super) fn thousandths(value: f64) -> u128 {
    let most = (1u64 << 53) as f64;
    if value.is_finite() { (value * 1000.0).round().clamp(0.0, most) as u128 } else { 0 }
}

pub(super) fn effective_role(entry: &Entry) -> &str {
    match &entry.reserved {
        Reserved::Old(layer) => &layer.role,
        Reserved::Refined(stack) => stack.last().map_or("*", |layer| &layer.role),
    }
}

pub(super) fn usable(entry: &Entry, role: &str, settings: &Settings) -> bool {
    let own: Vec<&str> = effective_role(entry).split('/').collect();
    let offered: Vec<&str> = role.split('/').collect();
    let mine = own == ["*"] || offered == ["*"] || offered.starts_with(&own);
    let asked = match entry.standing {
        Revocability::Firm => true,
        Revocability::Revocable => settings.revocable,
        _ => false,
    };
    mine && asked
}

pub(super) fn has_port(entry: &Entry, port: u16) -> bool {
    let Amount::Ranges(ranges) = &entry.amount else { return false };
    let port = u64::from(port);
    entry.name == "ports" && ranges.iter().any(|range| range.begin <= port && port <= range.end)
}

impl<'a> Naive<'a> {
    pub(super) fn answer(case: &'a Case) -> Naive<'a> {
        let mut naive = Naive { case, groups: Vec::new(), executors: 0, cores: 0, gpus: 0 };
        let mut keys: Vec<(&str, &str)> = Vec::new();
        for (offer, line) in case.offers.iter().enumerate() {
            let key = (line.agent.as_str(), line.role.as_str());
            let at = keys.iter().position(|other| *other == key).unwrap_or_else(|| {
                keys.push(key);
                let (offers, executors, left) = (Vec::new(), Vec::new(), Amounts::new());
                naive.groups.push(Group { offers, executors, left, too_small: None });
                keys.len() - 1
            });
            naive.groups[at].offers.push(offer);
            for (place, entry) in line.entries.iter().enumerate() {
                let amount = takeable(entry, &line.role, &case.settings);
                naive.groups[at].left.insert((offer, place), amount);
            }
        }
        for at in 0..naive.groups.len() {
            naive.groups[at].too_small = naive.too_small(&naive.groups[at]);
        }
        while naive.pass() {}
        naive
    }

    fn entry(&self, (offer, place): (usize, usize)) -> &'a Entry {
        &self.case.offers[offer].entries[place]
    }

    /// Places one executor per group or, with consolidation, as many as fit. Returns whether any was placed.
    fn pass(&mut self) -> bool {
        let mut placed = false;
        for at in 0..self.groups.len() {
            while self.place(at) {
                placed = true;
                if !self.case.settings.consolidate {
                    break;
                }
            }
        }
        placed
    }

    /// The remaining revocable or non-revocable amount of a name.
    fn sum(&self, group: &Group, name: &str, revocable: bool) -> u128 {
        let of_name = |place: (usize, usize)| {
            let entry = self.entry(place);
            entry.name == name && (entry.standing == Revocability::Revocable) == revocable
        };
        group.left.iter().filter(|(place, _)| of_name(**place)).map(|(_, amount)| amount).sum()
    }

    /// The maximum amount of a name that one executor could take.
    fn most(&self, group: &Group, name: &str) -> u128 {
        self.sum(group, name, false).max(self.sum(group, name, true))
    }

    fn too_small(&self, group: &Group) -> Option<Reason> {
        let settings = &self.case.settings;
        let most = |name| u64::try_from(self.most(group, name)).unwrap_or(u64::MAX);
        let asked = MilliCpus::from_millis(settings.cores.unwrap_or(1000));
        let offered = MilliCpus::from_millis(most("cpus"));
        if offered < asked {
            return Some(Reason::Cpus { asked, offered });
        }
        let (asked, offered) =
            (Mebibytes::new(settings.memory), Mebibytes::new(most("mem") / 1000));
        if offered < asked {
            return Some(Reason::Memory { asked, offered });
        }
        let whole = u32::try_from(most("gpus") / 1000).unwrap_or(u32::MAX);
        let (asked, offered) = (Gpus::new(settings.gpus.unwrap_or(0)), Gpus::new(whole));
        if offered < asked {
            return Some(Reason::Gpus { asked, offered });
        }
        let port = settings.port.filter(|port| self.find_port(group, *port).is_none());
        port.map(|port| Reason::Port { port })
    }

    fn core_cap(&self) -> u128 {
        self.case.settings.cap.unwrap_or(TOTAL_CORES_MAX.millis()).into()
    }

    /// Whether a cap leaves no room for another executor.
    pub(super) fn cap_reached(&self) -> bool {
        let settings = &self.case.settings;
        let more = u128::from(settings.cores.unwrap_or(1000));
        let gpus = u128::from(settings.gpus.unwrap_or(0));
        self.executors >= u128::from(settings.limit)
            || self.cores + more > self.core_cap()
            || gpus > 0 && self.gpus + gpus > u128::from(settings.gpu_cap)
    }

    fn place(&mut self, at: usize) -> bool {
        let (settings, group) = (&self.case.settings, &self.groups[at]);
        let first = group.executors.is_empty();
        let alone = settings.cores.is_none() || settings.port.is_some();
        if group.too_small.is_some() || self.cap_reached() || alone && !first {
            return false;
        }
        let most = self.most(group, "cpus").min(EXECUTOR_CORES_MAX.millis().into());
        let whole = most.min(self.core_cap() - self.cores) / 1000 * 1000;
        let cores = settings.cores.map_or(whole, u128::from);
        let whole_gpus = (self.most(group, "gpus") / 1000).min(u32::MAX.into());
        let gpus_left = u128::from(settings.gpu_cap) - self.gpus;
        let gpus = match settings.gpus {
            Some(gpus) => u128::from(gpus),
            None if first => whole_gpus.min(gpus_left),
            None => 0,
        };
        let wanted =
            [("cpus", cores), ("mem", u128::from(settings.memory) * 1000), ("gpus", gpus * 1000)];
        if wanted.iter().any(|(name, amount)| self.most(group, name) < *amount) {
            return false;
        }
        let port = settings.port.and_then(|port| self.find_port(group, port));
        let mut executor = Executor { cores, gpus, port, ..Executor::default() };
        for (name, amount) in wanted {
            self.take(at, name, amount, &mut executor.pieces);
        }
        self.groups[at].executors.push(executor);
        self.executors += 1;
        self.cores += cores;
        self.gpus += gpus;
        true
    }

    /// Takes an amount from non-revocable resources if they suffice, otherwise from revocable ones; from reserved ones
    /// first.
    fn take(&mut self, at: usize, name: &str, mut wanted: u128, pieces: &mut Amounts) {
        let revocable = self.sum(&self.groups[at], name, false) < wanted;
        for reserved in [true, false] {
            for place in self.groups[at].left.keys().copied().collect::<Vec<_>>() {
                let entry = self.entry(place);
                let fits = entry.name == name
                    && (entry.standing == Revocability::Revocable) == revocable
                    && (effective_role(entry) != "*") == reserved;
                let Some(left) = self.groups[at].left.get_mut(&place).filter(|_| fits) else {
                    continue;
                };
                let taken = wanted.min(*left);
                *left -= taken;
                wanted -= taken;
                if taken > 0 {
                    pieces.insert(place, taken);
                }
            }
        }
        assert_eq!(wanted, 0, "the naive one takes more than is offered");
    }

    fn find_port(&self, group: &Group, port: u16) -> Option<(usize, usize)> {
        let open = |place: &(usize, usize)| {
            let (entry, role) = (self.entry(*place), &self.case.offers[place.0].role);
            has_port(entry, port) && usable(entry, role, &self.case.settings)
        };
        let order = |place: &(usize, usize)| {
            let entry = self.entry(*place);
            (entry.standing == Revocability::Revocable, effective_role(entry) == "*", *place)
        };
        group.left.keys().copied().filter(open).min_by_key(order)
    }
}
