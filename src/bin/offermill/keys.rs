//! The table of settings: each with its key, its flag, its unit, its default and how it is read, in one place.
//!
//! To add a setting, add a row, and a field to [`Draft`] that the row's reader writes to.

use offermill::config::text::{
    TimeUnit, parse_bool, parse_cores, parse_count, parse_duration, parse_memory,
};
use offermill::config::{ExecutorCores, Placement};
use offermill::resources::Gpus;
use offermill::{Constraint, Error, limits};

use crate::draft::Draft;
use crate::layers::Given;

/// A setting.
pub(crate) struct Key {
    /// Its key. One that ends in a dot stands for all keys that begin with it.
    pub(crate) name: &'static str,
    /// Older names of the same.
    pub(crate) aliases: &'static [&'static str],
    /// The flag that sets it too.
    pub(crate) flag: Option<&'static str>,
    /// What the library calls it in errors, if it checks it.
    pub(crate) inside: Option<&'static str>,
    /// What a value is, for people; with the unit of a bare number.
    pub(crate) value: &'static str,
    /// What it is when it isn't given.
    pub(crate) default: Otherwise,
    /// Who knows it.
    pub(crate) origin: Origin,
    /// Reads a value.
    pub(crate) read: fn(&mut Draft, &Given) -> Result<(), Error>,
}

/// A setting that isn't given.
pub(crate) enum Otherwise {
    /// Is as if this had been given.
    Reads(&'static str),
    /// Is this, which follows from other settings or is nothing.
    Is(&'static str),
}

/// Where a setting comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Spark, on any cluster.
    Spark,
    /// Spark on Mesos.
    SparkOnMesos,
    /// Ours.
    Offermill,
}

/// All settings, in the order in which they are read.
#[rustfmt::skip]
pub(crate) const KEYS: &[Key] = &[
    Key { name: "spark.master", aliases: &[], flag: Some("--master"), inside: Some("master"), value: "master", default: Otherwise::Reads("local[*]"), origin: Origin::Spark,
        read: |draft, given| { draft.master = Some((given.text.trim().to_owned(), given.text.parse()?)); Ok(()) } },
    Key { name: "offermill.agent.attributes", aliases: &[], flag: Some("--agent-attributes"), inside: Some("agent attributes"), value: "attributes", default: Otherwise::Is("none"), origin: Origin::Offermill,
        read: |draft, given| given.read_into(&mut draft.attributes, |_, text| offermill::cluster::local::AgentAttributes::parse(text)) },
    Key { name: "offermill.workDir", aliases: &[], flag: Some("--work-dir"), inside: Some("work folder"), value: "folder", default: Otherwise::Reads("."), origin: Origin::Offermill,
        read: |draft, given| { draft.work_dir = (&given.text).into(); Ok(()) } },
    Key { name: "spark.app.name", aliases: &[], flag: Some("--name"), inside: Some("id prefix"), value: "name", default: Otherwise::Is("the command's"), origin: Origin::Spark,
        read: |draft, given| { draft.name = Some(given.text.clone()); Ok(()) } },
    Key { name: "spark.executor.instances", aliases: &[], flag: Some("--num-executors"), inside: Some("executor limit"), value: "number", default: Otherwise::Is("as many as fit"), origin: Origin::Spark,
        read: |draft, given| given.read_into(&mut draft.executors, |name, text| parse_count(name, text, 0..=limits::EXECUTORS_MAX.into()).map(|count| Some(count as u32))) },
    Key { name: "spark.cores.max", aliases: &[], flag: Some("--total-executor-cores"), inside: Some("total executor cores"), value: "cores", default: Otherwise::Is("no cap"), origin: Origin::Spark,
        read: |draft, given| given.read_into(&mut draft.core_cap, |name, text| parse_cores(name, text).map(Some)) },
    Key { name: "spark.executor.cores", aliases: &[], flag: Some("--executor-cores"), inside: Some("executor cores"), value: "cores", default: Otherwise::Is("all offered"), origin: Origin::Spark,
        read: |draft, given| given.read_into(&mut draft.executor_cores, |name, text| parse_cores(name, text).map(ExecutorCores::Fixed)) },
    Key { name: "spark.executor.memory", aliases: &[], flag: Some("--executor-memory"), inside: Some("executor memory"), value: "memory (MiB)", default: Otherwise::Reads("1g"), origin: Origin::Spark,
        read: |draft, given| given.read_into(&mut draft.memory, parse_memory) },
    Key { name: "spark.mesos.executor.memoryOverhead", aliases: &[], flag: Some("--memory-overhead"), inside: Some("memory overhead"), value: "memory (MiB)", default: Otherwise::Is("10 %, at least 384m"), origin: Origin::SparkOnMesos,
        read: |draft, given| given.read_into(&mut draft.overhead, |name, text| parse_memory(name, text).map(Some)) },
    Key { name: "spark.mesos.extra.cores", aliases: &[], flag: None, inside: None, value: "number", default: Otherwise::Reads("0"), origin: Origin::SparkOnMesos,
        read: |draft, given| given.read_into(&mut draft.extra_cores, |name, text| parse_count(name, text, 0..=1_000_000).map(|count| count as u32)) },
    Key { name: "spark.mesos.gpus.max", aliases: &[], flag: None, inside: None, value: "number", default: Otherwise::Reads("0"), origin: Origin::SparkOnMesos,
        read: |draft, given| given.read_into(&mut draft.gpu_cap, |name, text| parse_count(name, text, 0..=u32::MAX.into()).map(|count| Gpus::new(count as u32))) },
    Key { name: "spark.blockManager.port", aliases: &[], flag: None, inside: Some("executor port"), value: "port", default: Otherwise::Reads("0"), origin: Origin::Spark,
        read: |draft, given| given.read_into(&mut draft.port, |name, text| match parse_count(name, text, 0..=65_535) {
            Ok(0) => Ok(None),
            Ok(port @ 1_024..) => Ok(Some(port as u16)),
            _ => parse_count(name, text, 1_024..=65_535).map(|_| None),
        }) },
    Key { name: "spark.executorEnv.", aliases: &[], flag: None, inside: None, value: "text", default: Otherwise::Is("none"), origin: Origin::Spark,
        read: |draft, given| { draft.variable(given); Ok(()) } },
    Key { name: "spark.mesos.constraints", aliases: &[], flag: Some("--constraints"), inside: None, value: "constraint", default: Otherwise::Reads(""), origin: Origin::SparkOnMesos,
        read: |draft, given| given.read_into(&mut draft.constraint, |_, text| Constraint::parse(text)) },
    Key { name: "offermill.placement", aliases: &[], flag: Some("--placement"), inside: None, value: "word", default: Otherwise::Reads("round-robin"), origin: Origin::Offermill,
        read: |draft, given| match given.text.trim() {
            "round-robin" => { draft.placement = Placement::RoundRobin; Ok(()) }
            "consolidate" => { draft.placement = Placement::Consolidate; Ok(()) }
            _ => { draft.refuse(given, "round-robin or consolidate"); Ok(()) }
        } },
    Key { name: "spark.mesos.rejectOfferDuration", aliases: &[], flag: None, inside: Some("refusal while stopping"), value: "duration (s)", default: Otherwise::Reads("120s"), origin: Origin::SparkOnMesos,
        read: |draft, given| {
            let duration = given.duration(TimeUnit::Seconds)?;
            let refuse = &mut draft.refusals;
            (refuse.unmet_constraint, refuse.reached_cap, refuse.stopping) = (duration, duration, duration);
            Ok(())
        } },
    Key { name: "spark.mesos.rejectOfferDurationForUnmetConstraints", aliases: &[], flag: None, inside: Some("refusal for an unmet constraint"), value: "duration (s)", default: Otherwise::Is("rejectOfferDuration"), origin: Origin::SparkOnMesos,
        read: |draft, given| { draft.refusals.unmet_constraint = given.duration(TimeUnit::Seconds)?; Ok(()) } },
    Key { name: "spark.mesos.rejectOfferDurationForReachedMaxCores", aliases: &[], flag: None, inside: Some("refusal for a reached cap"), value: "duration (s)", default: Otherwise::Is("rejectOfferDuration"), origin: Origin::SparkOnMesos,
        read: |draft, given| { draft.refusals.reached_cap = given.duration(TimeUnit::Seconds)?; Ok(()) } },
    Key { name: "spark.excludeOnFailure.enabled", aliases: &["spark.blacklist.enabled"], flag: None, inside: None, value: "true or false", default: Otherwise::Reads("true"), origin: Origin::Spark,
        read: |draft, given| given.read_into(&mut draft.excludes, parse_bool) },
    Key { name: "spark.excludeOnFailure.application.maxFailedExecutorsPerNode", aliases: &["spark.blacklist.application.maxFailedExecutorsPerNode"], flag: Some("--exclude-after"), inside: Some("failures before exclusion"), value: "number or never", default: Otherwise::Reads("2"), origin: Origin::Spark,
        read: |draft, given| match given.text.trim() {
            "never" => { draft.excludes = false; Ok(()) }
            _ => given.read_into(&mut draft.exclusion.failures, |name, text| parse_count(name, text, 1..=255).map(|count| count as u8)),
        } },
    Key { name: "spark.excludeOnFailure.timeout", aliases: &["spark.blacklist.timeout"], flag: Some("--exclude-for"), inside: None, value: "duration (ms) or forever", default: Otherwise::Reads("1h"), origin: Origin::Spark,
        read: |draft, given| {
            draft.exclusion.expiry = match given.text.trim() {
                "forever" => None,
                _ => Some(given.duration(TimeUnit::Milliseconds)?),
            };
            if draft.exclusion.expiry.is_some_and(|expiry| expiry.is_zero()) {
                draft.refuse(given, "more than 0, or forever");
            }
            Ok(())
        } },
    Key { name: "offermill.exclusion.window", aliases: &[], flag: Some("--exclude-window"), inside: None, value: "duration (s)", default: Otherwise::Reads("1h"), origin: Origin::Offermill,
        read: |draft, given| { draft.exclusion.window = given.duration(TimeUnit::Seconds)?; Ok(()) } },
    Key { name: "spark.executor.maxNumFailures", aliases: &[], flag: Some("--max-executor-failures"), inside: None, value: "number", default: Otherwise::Is("twice the executors, at least 3"), origin: Origin::Spark,
        read: |draft, given| given.read_into(&mut draft.failures_max, |name, text| parse_count(name, text, 1..=u64::MAX).map(Some)) },
    Key { name: "spark.mesos.coarse.shutdownTimeout", aliases: &[], flag: Some("--shutdown-timeout"), inside: None, value: "duration (ms)", default: Otherwise::Reads("10s"), origin: Origin::SparkOnMesos,
        read: |draft, given| { draft.shutdown_timeout = given.duration(TimeUnit::Milliseconds)?; Ok(()) } },
];

impl Key {
    /// Whether it stands for `name`: its own, an older one, or one that begins like it.
    pub(crate) fn stands_for(&self, name: &str) -> bool {
        match self.name.strip_suffix('.') {
            Some(_) => name.len() > self.name.len() && name.starts_with(self.name),
            None => name == self.name || self.aliases.contains(&name),
        }
    }
}

/// The value of a fixed duration, by the parser of the library; flags without a unit are in seconds.
impl Given {
    /// Reads a duration, whose bare number is in `bare_unit` unless it comes from a flag.
    pub(crate) fn duration(&self, bare_unit: TimeUnit) -> Result<std::time::Duration, Error> {
        let unit = if self.is_flag { TimeUnit::Seconds } else { bare_unit };
        parse_duration(&self.name, &self.text, unit)
    }
}

/// The table as `--help` shows it.
pub(crate) fn help() -> String {
    let mut text =
        "Keys of --conf and of properties files (a bare number is in the unit in brackets):\n"
            .to_owned();
    let headings = [
        (Origin::Spark, "Spark's"),
        (Origin::SparkOnMesos, "Spark's on Mesos"),
        (Origin::Offermill, "Offermill's own"),
    ];
    for (origin, heading) in headings {
        text.push_str(&format!("  {heading}:\n"));
        for key in KEYS.iter().filter(|key| key.origin == origin) {
            let name = if key.name.ends_with('.') {
                format!("{}NAME", key.name)
            } else {
                key.name.to_owned()
            };
            let default = match key.default {
                Otherwise::Reads("") => "none",
                Otherwise::Reads(text) | Otherwise::Is(text) => text,
            };
            let flag = key.flag.map(|flag| format!(", {flag}")).unwrap_or_default();
            text.push_str(&format!(
                "    {name}{flag}\n        {} [default: {default}]\n",
                key.value
            ));
        }
    }
    text.push_str("Other spark.* keys are named once and ignored.\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: every default can be read, and no name stands for two settings. Method: read all into a draft.
    #[test]
    fn defaults_are_readable_and_names_unique() {
        let mut draft = Draft::default();
        for key in KEYS {
            if let Otherwise::Reads(text) = key.default {
                (key.read)(&mut draft, &Given::default_of(key.name, text)).unwrap();
            }
            for name in key.aliases.iter().chain([&key.name]) {
                assert_eq!(
                    KEYS.iter()
                        .filter(|other| other.name == *name || other.aliases.contains(name))
                        .count(),
                    1
                );
            }
        }
        assert!(draft.problems.is_empty());
        assert_eq!(draft.shutdown_timeout, std::time::Duration::from_secs(10));
        assert_eq!(draft.memory.get(), 1024);
    }
}
