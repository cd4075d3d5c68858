//! The text format of scenarios.
//!
//! ```text
//! seed=7 agents=5 agent-cores=8 …
//! 12.5s agent-dies agent=3 lasts=60s amount=1
//! ```
//!
//! The first line contains settings; settings that are left out have the values of the default scenario. Each further
//! line is a fault. Empty lines and lines that begin with `#` are ignored.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::{Fault, FaultKind, Scenario};
use crate::error::Error;
use crate::limits;
use crate::resources::{Mebibytes, MilliCpus};
use crate::time::Timestamp;

/// The maximum number of agents.
const AGENTS_MAX: u64 = 1_000_000;
/// The maximum time and duration in a scenario, in milliseconds of virtual time: 30 days.
const MOMENT_MAX: u64 = 30 * 24 * 3600 * 1000;
const EXECUTORS_MAX: u64 = limits::EXECUTORS_MAX as u64;
/// The maximum of amounts: more than any fault needs, and small enough that their sums don't overflow.
const AMOUNT_MAX: u64 = 1_000_000_000_000;
/// The maximum number of faults.
const FAULTS_MAX: usize = 1_000_000;

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for setting in SETTINGS {
            let value = (setting.get)(self);
            write!(f, "{separator}{}={}", setting.name, FormattedNumber(setting.unit, value))?;
            separator = " ";
        }
        self.faults.iter().try_for_each(|fault| write!(f, "\n{fault}"))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = FormattedNumber(NumberFormat::Millis, self.at.as_millis());
        write!(f, "{at} {}", self.kind.as_str())?;
        for field in FIELDS {
            let value = (field.get)(self);
            if value != 0 {
                write!(f, " {}={}", field.name, FormattedNumber(field.unit, value))?;
            }
        }
        Ok(())
    }
}

impl FromStr for Scenario {
    type Err = Error;

    /// # Errors
    /// If the text isn't a scenario. The error names the first invalid line and what is allowed there.
    fn from_str(text: &str) -> Result<Scenario, Error> {
        let mut scenario = Scenario::plain();
        let mut settings_seen = false;
        for (line, number) in text.lines().map(str::trim).zip(1u32..) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if !settings_seen {
                settings_seen = true;
                for word in line.split_whitespace() {
                    set(SETTINGS, &mut scenario, word, number)?;
                }
                continue;
            }
            if scenario.faults.len() >= FAULTS_MAX {
                return Err(wrong(number, line, &format!("at most {FAULTS_MAX} faults")));
            }
            scenario.faults.push(read_fault(line, number)?);
        }
        if !settings_seen {
            return Err(wrong(1, "", "a line of settings such as seed=7 agents=5"));
        }
        scenario.put_in_order();
        Ok(scenario)
    }
}

fn read_fault(line: &str, number: u32) -> Result<Fault, Error> {
    let mut words = line.split_whitespace();
    let at = words.next().unwrap_or_default();
    let moment = NumberFormat::Millis.read(at, MOMENT_MAX);
    let at = moment.map_err(|allowed| wrong(number, at, &allowed))?;
    let name = words.next().unwrap_or_default();
    let kind = FaultKind::ALL.iter().find(|kind| kind.as_str() == name).ok_or_else(|| {
        let names: Vec<&str> = FaultKind::ALL.iter().map(|kind| kind.as_str()).collect();
        wrong(number, name, &format!("one of {}", names.join(", ")))
    })?;
    let mut fault = Fault { at: Timestamp::from_millis(at), ..Fault::new(*kind) };
    words.try_for_each(|word| set(FIELDS, &mut fault, word, number))?;
    Ok(fault)
}

/// The format of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NumberFormat {
    Plain,
    /// Milliseconds, written as seconds: `12.5s`.
    Millis,
}

impl NumberFormat {
    /// Parses a number of at most `most`. Fails with a description of what is allowed.
    fn read(self, text: &str, most: u64) -> Result<u64, String> {
        let value = match self {
            NumberFormat::Plain => text.parse().ok(),
            NumberFormat::Millis => text.strip_suffix('s').and_then(|seconds| {
                let (whole, part) = seconds.split_once('.').unwrap_or((seconds, "0"));
                let digits = part.len() <= 3 && part.bytes().all(|byte| byte.is_ascii_digit());
                let thousandths: u64 = format!("{part:0<3}").parse().ok().filter(|_| digits)?;
                whole.parse::<u64>().ok()?.checked_mul(1000)?.checked_add(thousandths)
            }),
        };
        value.filter(|value| *value <= most).ok_or_else(|| match self {
            NumberFormat::Plain => format!("a whole number up to {most}"),
            NumberFormat::Millis => {
                format!("seconds up to {}, such as 12.5s", FormattedNumber(self, most))
            }
        })
    }
}

/// A number in its format.
struct FormattedNumber(NumberFormat, u64);

impl fmt::Display for FormattedNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FormattedNumber(unit, value) = *self;
        match (unit, value % 1000) {
            (NumberFormat::Plain, _) => value.fmt(f),
            (NumberFormat::Millis, 0) => write!(f, "{}s", value / 1000),
            (NumberFormat::Millis, rest) => {
                write!(f, "{}.{}s", value / 1000, format!("{rest:03}").trim_end_matches('0'))
            }
        }
    }
}

/// A field that is written as `name=value`.
struct Setting<T: 'static> {
    name: &'static str,
    unit: NumberFormat,
    /// The minimum and maximum that are allowed.
    range: (u64, u64),
    get: fn(&T) -> u64,
    set: fn(&mut T, u64),
}

fn set<T>(known: &[Setting<T>], target: &mut T, word: &str, line: u32) -> Result<(), Error> {
    let (name, value) =
        word.split_once('=').ok_or_else(|| wrong(line, word, "name=value, such as seed=7"))?;
    let setting = known.iter().find(|setting| setting.name == name).ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|setting| setting.name).collect();
        wrong(line, name, &format!("one of {}", names.join(", ")))
    })?;
    let (least, most) = setting.range;
    let read = match setting.unit.read(value, most) {
        Ok(number) if number < least => Err(format!("at least {least}")),
        read => read,
    };
    let refuse = |allowed: String| {
        Error::setting(format!("{name} in line {line} of the scenario"), value, allowed)
    };
    (setting.set)(target, read.map_err(refuse)?);
    Ok(())
}

fn wrong(line: u32, found: &str, allowed: &str) -> Error {
    Error::setting(format!("line {line} of the scenario"), found, allowed)
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The settings of the first line, in their order.
const SETTINGS: &[Setting<Scenario>] = &[
    Setting {
        name: "seed",
        unit: NumberFormat::Plain,
        range: (0, u64::MAX),
        get: |it| it.seed,
        set: |it, value| it.seed = value,
    },
    Setting {
        name: "agents",
        unit: NumberFormat::Plain,
        range: (1, AGENTS_MAX),
        get: |it| it.agents.into(),
        set: |it, value| it.agents = value as u32,
    },
    Setting {
        name: "agent-cores",
        unit: NumberFormat::Plain,
        range: (1, 100_000),
        get: |it| it.agent_cores.into(),
        set: |it, value| it.agent_cores = value as u32,
    },
    Setting {
        name: "agent-mib",
        unit: NumberFormat::Plain,
        range: (1, 1 << 40),
        get: |it| it.agent_memory.get(),
        set: |it, value| it.agent_memory = Mebibytes::new(value),
    },
    Setting {
        name: "zones",
        unit: NumberFormat::Plain,
        range: (1, 1000),
        get: |it| it.zones.into(),
        set: |it, value| it.zones = value as u32,
    },
    Setting {
        name: "reserved-percent",
        unit: NumberFormat::Plain,
        range: (0, 100),
        get: |it| it.reserved_percent.into(),
        set: |it, value| it.reserved_percent = value as u8,
    },
    Setting {
        name: "executors",
        unit: NumberFormat::Plain,
        range: (0, EXECUTORS_MAX),
        get: |it| it.executors.into(),
        set: |it, value| it.executors = value as u32,
    },
    Setting {
        name: "executor-millicores",
        unit: NumberFormat::Plain,
        range: (0, 1_000_000_000),
        get: |it| it.executor_cores.millis(),
        set: |it, value| it.executor_cores = MilliCpus::from_millis(value),
    },
    Setting {
        name: "executor-mib",
        unit: NumberFormat::Plain,
        range: (1, 1 << 40),
        get: |it| it.executor_memory.get(),
        set: |it, value| it.executor_memory = Mebibytes::new(value),
    },
    Setting {
        name: "overhead-mib",
        unit: NumberFormat::Plain,
        range: (0, 1 << 40),
        get: |it| it.memory_overhead.get(),
        set: |it, value| it.memory_overhead = Mebibytes::new(value),
    },
    Setting {
        name: "extra-cores",
        unit: NumberFormat::Plain,
        range: (0, 1_000),
        get: |it| it.extra_cores.into(),
        set: |it, value| it.extra_cores = value as u32,
    },
    Setting {
        name: "executor-gpus",
        unit: NumberFormat::Plain,
        range: (0, 1_000_000),
        get: |it| it.executor_gpus.into(),
        set: |it, value| it.executor_gpus = value as u32,
    },
    Setting {
        name: "gpu-cap",
        unit: NumberFormat::Plain,
        range: (0, 1_000_000),
        get: |it| it.gpu_cap.into(),
        set: |it, value| it.gpu_cap = value as u32,
    },
    Setting {
        name: "fixed-port",
        unit: NumberFormat::Plain,
        range: (0, 1),
        get: |it| it.fixed_port.into(),
        set: |it, value| it.fixed_port = value == 1,
    },
    Setting {
        name: "core-cap-millicores",
        unit: NumberFormat::Plain,
        range: (0, 1_000_000_000),
        get: |it| it.core_cap.millis(),
        set: |it, value| it.core_cap = MilliCpus::from_millis(value),
    },
    Setting {
        name: "plain-ids",
        unit: NumberFormat::Plain,
        range: (0, 1),
        get: |it| it.plain_ids.into(),
        set: |it, value| it.plain_ids = value == 1,
    },
    Setting {
        name: "binds-late",
        unit: NumberFormat::Plain,
        range: (0, 1),
        get: |it| it.binds_late.into(),
        set: |it, value| it.binds_late = value == 1,
    },
    Setting {
        name: "tasks",
        unit: NumberFormat::Plain,
        range: (0, 1),
        get: |it| it.tasks.into(),
        set: |it, value| it.tasks = value == 1,
    },
    Setting {
        name: "hosts",
        unit: NumberFormat::Plain,
        range: (0, 1),
        get: |it| it.hosts.into(),
        set: |it, value| it.hosts = value == 1,
    },
    Setting {
        name: "work-queue",
        unit: NumberFormat::Plain,
        range: (0, 1),
        get: |it| it.work_queue.into(),
        set: |it, value| it.work_queue = value == 1,
    },
    Setting {
        name: "queues",
        unit: NumberFormat::Plain,
        range: (0, limits::QUEUES_MAX as u64 - 1),
        get: |it| it.queues.into(),
        set: |it, value| it.queues = value as u32,
    },
    Setting {
        name: "exclude-after",
        unit: NumberFormat::Plain,
        range: (1, 255),
        get: |it| it.exclude_after.into(),
        set: |it, value| it.exclude_after = value as u8,
    },
    Setting {
        name: "exclude-for",
        unit: NumberFormat::Millis,
        range: (0, MOMENT_MAX),
        get: |it| millis(it.exclude_for),
        set: |it, value| it.exclude_for = Duration::from_millis(value),
    },
    Setting {
        name: "release-after",
        unit: NumberFormat::Millis,
        range: (0, MOMENT_MAX),
        get: |it| millis(it.release_after),
        set: |it, value| it.release_after = Duration::from_millis(value),
    },
    Setting {
        name: "handlers",
        unit: NumberFormat::Plain,
        range: (1, 64),
        get: |it| it.handlers.into(),
        set: |it, value| it.handlers = value as u32,
    },
    Setting {
        name: "queue",
        unit: NumberFormat::Plain,
        range: (1, 1_000_000),
        get: |it| it.queue.into(),
        set: |it, value| it.queue = value as u32,
    },
    Setting {
        name: "batch",
        unit: NumberFormat::Plain,
        range: (1, 1_000_000),
        get: |it| it.batch.into(),
        set: |it, value| it.batch = value as u32,
    },
    Setting {
        name: "lifetime",
        unit: NumberFormat::Millis,
        range: (0, MOMENT_MAX),
        get: |it| millis(it.lifetime),
        set: |it, value| it.lifetime = Duration::from_millis(value),
    },
    Setting {
        name: "failures-percent",
        unit: NumberFormat::Plain,
        range: (0, 100),
        get: |it| it.failures_percent.into(),
        set: |it, value| it.failures_percent = value as u8,
    },
    Setting {
        name: "healed-at",
        unit: NumberFormat::Millis,
        range: (0, MOMENT_MAX),
        get: |it| it.healed_at.as_millis(),
        set: |it, value| it.healed_at = Timestamp::from_millis(value),
    },
    Setting {
        name: "shutdown-timeout",
        unit: NumberFormat::Millis,
        range: (0, MOMENT_MAX),
        get: |it| millis(it.shutdown_timeout),
        set: |it, value| it.shutdown_timeout = Duration::from_millis(value),
    },
];

/// The fields of a fault's line, after the kind.
const FIELDS: &[Setting<Fault>] = &[
    Setting {
        name: "agent",
        unit: NumberFormat::Plain,
        range: (0, AGENTS_MAX - 1),
        get: |it| it.agent.into(),
        set: |it, value| it.agent = value as u32,
    },
    Setting {
        name: "percent",
        unit: NumberFormat::Plain,
        range: (0, 100),
        get: |it| it.percent.into(),
        set: |it, value| it.percent = value as u8,
    },
    Setting {
        name: "lasts",
        unit: NumberFormat::Millis,
        range: (0, MOMENT_MAX),
        get: |it| millis(it.lasts),
        set: |it, value| it.lasts = Duration::from_millis(value),
    },
    Setting {
        name: "amount",
        unit: NumberFormat::Plain,
        range: (0, AMOUNT_MAX),
        get: |it| it.amount,
        set: |it, value| it.amount = value,
    },
];

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use crate::cluster::simulated::Severity;

    /// Goal: the text of a scenario is complete. Method: print and parse 300 generated scenarios.
    #[test]
    fn scenarios_read_back() {
        for seed in 0..300 {
            let severity = [Severity::None, Severity::Mild, Severity::Harsh][seed as usize % 3];
            let scenario = Scenario::generate(seed, severity);
            for scenario in
                [scenario.clone().with_hosts().with_queues().with_work_queue(), scenario]
            {
                let text = scenario.to_string();
                assert_eq!(text.parse::<Scenario>().unwrap(), scenario, "{text}");
            }
        }
    }

    /// Goal: a delay hits all messages, so a generated one has no percentage; texts that have one are still read.
    /// Method: 300 generated scenarios, and the text of an earlier version.
    #[test]
    fn delays_have_no_percentage() {
        let delays = |scenario: &Scenario| -> Vec<u8> {
            let delays = scenario.faults.iter().filter(|it| it.kind == FaultKind::MessagesDelayed);
            delays.map(|it| it.percent).collect()
        };
        let generated = (0..300).map(|seed| delays(&Scenario::generate(seed, Severity::Harsh)));
        let generated: Vec<u8> = generated.flatten().collect();
        assert!(!generated.is_empty() && generated.iter().all(|percent| *percent == 0));
        let text = "seed=7\n1s messages-delayed percent=30 lasts=2s amount=100";
        assert_eq!(delays(&text.parse().unwrap()), [30]);
    }

    /// Goal: a parse error names its line and what is allowed. Method: one mistake of each kind.
    #[test]
    fn mistakes_are_named() {
        for (text, expected) in [
            ("", "a line of settings"),
            ("seed", "name=value"),
            ("speed=7", "one of seed, agents"),
            ("agents=0", "at least 1"),
            ("agents=9999999", "up to 1000000"),
            ("seed=7\n\n12 agent-dies", "line 3"),
            ("seed=7\n1.2345s agent-dies", "such as 12.5s"),
            ("seed=7\n1s agent-died", "agent-dies"),
            ("seed=7\n1s agent-dies percent=101", "up to 100"),
        ] {
            let error = text.parse::<Scenario>().unwrap_err().to_string();
            assert!(error.contains(expected), "{text:?}: {error}");
        }
    }
}
