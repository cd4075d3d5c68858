//! Test cases as text: one line of settings, then one line per offer.
//!
//! ```text
//! cores=1 memory=100 gpus=2 gpu-cap=4 port=31000 cap=20 limit=5 revocable consolidate
//! S1 eng/etl cpus:4;cpus(etl,alice,why=so):2;mem<eng|eng/etl,bob>{revocable}:1024;ports:[31000-32000,5-1]
//! ```
//!
//! Without `cores`, executors take all whole cores; without `gpus`, all available GPUs. An offer's line contains its
//! agent, its role and its resources. A resource has a name, reservations, a revocability and a value. Reservations of
//! the old format are in round brackets, a stack of refined reservations is in angle brackets. A reservation with a
//! principal, which may be empty, is dynamic; labels may follow. Anything that can't be parsed is skipped.

use std::fmt;

use offermill::Revocability;
use offermill::resources::PortRange;

use super::naive::{self, Offered, Request};

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Case {
    pub(crate) settings: Settings,
    pub(crate) offers: Vec<OfferLine>,
}

/// The settings of a case. Cores are in thousandths.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Settings {
    /// `None` means all whole cores.
    pub(crate) cores: Option<u64>,
    pub(crate) memory: u64,
    /// `None` means all available GPUs.
    pub(crate) gpus: Option<u32>,
    pub(crate) gpu_cap: u32,
    pub(crate) port: Option<u16>,
    pub(crate) cap: Option<u64>,
    pub(crate) limit: u32,
    pub(crate) revocable: bool,
    pub(crate) consolidate: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OfferLine {
    pub(crate) agent: String,
    pub(crate) role: String,
    pub(crate) entries: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) reserved: Reserved,
    pub(crate) revocability: Revocability,
    pub(crate) amount: Amount,
}

#[derive(Clone, Debug, PartialEq, PartialOrd)]
pub(crate) enum Reserved {
    Old(Layer),
    Refined(Vec<Layer>),
}

/// One reservation. It is static if `by` is `None`.
#[derive(Clone, Debug, PartialEq, PartialOrd)]
pub(crate) struct Layer {
    pub(crate) role: String,
    pub(crate) by: Option<By>,
}

#[derive(Clone, Debug, Default, PartialEq, PartialOrd)]
pub(crate) struct By {
    pub(crate) principal: Option<String>,
    pub(crate) labels: Vec<(String, Option<String>)>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Amount {
    Scalar(f64),
    Ranges(Vec<PortRange>),
    Set(Vec<String>),
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            cores: None,
            memory: 100,
            gpus: None,
            gpu_cap: 0,
            port: None,
            cap: None,
            limit: Settings::LIMIT_MAX,
            revocable: false,
            consolidate: false,
        }
    }
}

impl Settings {
    /// The maximum number of executors in a case, which is enough to exercise everything.
    pub(crate) const LIMIT_MAX: u32 = 64;

    pub(crate) fn request(&self) -> Request {
        Request {
            cores: self.cores,
            memory: self.memory,
            gpus: self.gpus,
            port: self.port,
            revocable: self.revocable,
            consolidate: self.consolidate,
        }
    }

    fn parse(line: &str) -> Settings {
        let mut it = Settings::default();
        for word in line.split_whitespace() {
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            let thousandths =
                || value.parse::<f64>().ok().map(|cores| (cores * 1000.0).round() as u64);
            let number = || value.parse::<u32>().ok();
            match key {
                "cores" => it.cores = thousandths().map(|cores| cores.clamp(1, 1_000_000_000)),
                "memory" => it.memory = u64::from(number().unwrap_or(100).max(1)),
                "gpus" => it.gpus = number(),
                "gpu-cap" => it.gpu_cap = number().unwrap_or(0),
                "port" => it.port = value.parse().ok().map(|port: u16| port.max(1024)),
                "cap" => it.cap = thousandths(),
                "limit" => it.limit = number().unwrap_or(u32::MAX).min(Settings::LIMIT_MAX),
                "revocable" => it.revocable = true,
                "consolidate" => it.consolidate = true,
                _ => {}
            }
        }
        it.sound()
    }

    /// Adjusts the settings so that the builder accepts them.
    pub(crate) fn sound(mut self) -> Settings {
        let cores = self.cores.unwrap_or(1000);
        self.cap = self.cap.map(|cap| cap.clamp(cores, 1 << 32));
        self.gpus = self.gpus.map(|gpus| gpus.min(self.gpu_cap));
        self
    }
}

impl Case {
    pub(crate) fn parse(text: &str) -> Case {
        let mut lines = text.lines();
        let settings = Settings::parse(lines.next().unwrap_or_default());
        Case { settings, offers: lines.filter_map(OfferLine::parse).collect() }
    }
}

impl OfferLine {
    fn parse(line: &str) -> Option<OfferLine> {
        let mut words = line.split_whitespace();
        let (agent, role) = (words.next()?.to_owned(), words.next()?.to_owned());
        let entries = words.flat_map(|word| word.split(';')).filter_map(Entry::parse).collect();
        Some(OfferLine { agent, role, entries })
    }
}

impl Entry {
    /// Returns the resource in the form of the naive placement. It is reserved for the last role of a stack.
    pub(crate) fn offered(&self) -> Offered<'_> {
        let role = match &self.reserved {
            Reserved::Old(layer) => &layer.role,
            Reserved::Refined(stack) => stack.last().map_or("*", |layer| &layer.role),
        };
        let amount = match &self.amount {
            Amount::Scalar(value) => naive::Amount::Scalar(*value),
            Amount::Ranges(ranges) => naive::Amount::Ranges(ranges),
            Amount::Set(_) => naive::Amount::Set,
        };
        Offered { name: &self.name, role, revocability: self.revocability, amount }
    }

    fn parse(text: &str) -> Option<Entry> {
        let start = text.find(['(', '<', '{', ':'])?;
        let (name, rest) = text.split_at(start);
        let (reserved, rest) = if let Some(rest) = rest.strip_prefix('(') {
            let (layer, rest) = rest.split_once(')')?;
            (Reserved::Old(Layer::parse(layer)), rest)
        } else if let Some(rest) = rest.strip_prefix('<') {
            let (stack, rest) = rest.split_once('>')?;
            let layers = stack.split('|').filter(|layer| !layer.is_empty());
            (Reserved::Refined(layers.map(Layer::parse).collect()), rest)
        } else {
            (Reserved::none(), rest)
        };
        let (revocability, rest) = match rest.strip_prefix('{') {
            None => (Revocability::NonRevocable, rest),
            Some(rest) => {
                let (word, rest) = rest.split_once('}')?;
                (revocabilities().find(|(_, name)| *name == word)?.0, rest)
            }
        };
        let amount = Amount::parse(rest.strip_prefix(':')?)?;
        Some(Entry { name: name.to_owned(), reserved, revocability, amount })
    }
}

fn revocabilities() -> impl Iterator<Item = (Revocability, &'static str)> {
    [
        (Revocability::Revocable, "revocable"),
        (Revocability::Shared, "shared"),
        (Revocability::Disk, "disk"),
    ]
    .into_iter()
}

impl Reserved {
    pub(crate) fn none() -> Reserved {
        Reserved::Old(Layer { role: "*".to_owned(), by: None })
    }
}

impl Layer {
    fn parse(text: &str) -> Layer {
        let mut parts = text.split(',');
        let role = parts.next().unwrap_or_default().to_owned();
        let by = parts.next().map(|principal| By {
            principal: Some(principal.to_owned()).filter(|name| !name.is_empty()),
            labels: parts
                .map(|label| match label.split_once('=') {
                    Some((key, value)) => (key.to_owned(), Some(value.to_owned())),
                    None => (label.to_owned(), None),
                })
                .collect(),
        });
        Layer { role, by }
    }
}

impl Amount {
    fn parse(text: &str) -> Option<Amount> {
        let within =
            |open, close| text.strip_prefix(open).and_then(|rest| rest.strip_suffix(close));
        if let Some(ranges) = within('[', ']') {
            let range = |range: &str| {
                let (begin, end) = range.split_once('-')?;
                Some(PortRange::new(begin.parse().ok()?, end.parse().ok()?))
            };
            return Some(Amount::Ranges(ranges.split(',').filter_map(range).collect()));
        }
        if let Some(items) = within('{', '}') {
            return Some(Amount::Set(items.split(',').map(str::to_owned).collect()));
        }
        text.parse().ok().map(Amount::Scalar)
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let it = &self.settings;
        write!(f, "memory={} gpu-cap={} limit={}", it.memory, it.gpu_cap, it.limit)?;
        let thousandths = [("cores", it.cores), ("cap", it.cap)];
        for (key, cores) in thousandths.into_iter().filter_map(|(key, it)| Some((key, it?))) {
            write!(f, " {key}={}", cores as f64 / 1000.0)?;
        }
        let numbers = [("gpus", it.gpus), ("port", it.port.map(u32::from))];
        for (key, number) in numbers.into_iter().filter_map(|(key, it)| Some((key, it?))) {
            write!(f, " {key}={number}")?;
        }
        let flags = [("revocable", it.revocable), ("consolidate", it.consolidate)];
        for (flag, _) in flags.into_iter().filter(|(_, set)| *set) {
            write!(f, " {flag}")?;
        }
        for offer in &self.offers {
            let entries: Vec<String> = offer.entries.iter().map(Entry::to_string).collect();
            write!(f, "\n{} {} {}", offer.agent, offer.role, entries.join(";"))?;
        }
        Ok(())
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.name, self.reserved)?;
        if let Some((_, name)) =
            revocabilities().find(|(revocability, _)| *revocability == self.revocability)
        {
            write!(f, "{{{name}}}")?;
        }
        match &self.amount {
            Amount::Scalar(scalar) => write!(f, ":{scalar}"),
            Amount::Ranges(ranges) => write!(f, ":[{}]", joined(ranges)),
            Amount::Set(items) => write!(f, ":{{{}}}", joined(items)),
        }
    }
}

impl fmt::Display for Reserved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reserved::Old(layer) => write!(f, "({layer})"),
            Reserved::Refined(stack) => {
                let layers: Vec<String> = stack.iter().map(Layer::to_string).collect();
                write!(f, "<{}>", layers.join("|"))
            }
        }
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.role)?;
        let Some(by) = &self.by else { return Ok(()) };
        write!(f, ",{}", by.principal.as_deref().unwrap_or_default())?;
        for (key, value) in &by.labels {
            write!(f, ",{key}")?;
            value.iter().try_for_each(|value| write!(f, "={value}"))?;
        }
        Ok(())
    }
}

fn joined(items: &[impl ToString]) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}
