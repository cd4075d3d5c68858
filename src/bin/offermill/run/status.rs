//! How a run stands, for clients that ask.

use std::fmt::Write;
use std::time::Duration;

use offermill::Timestamp;
use offermill::resources::MilliCpus;
use serde_json::{Value, json};

use super::Session;
use crate::model::event::limit_text;
use crate::model::executor::{ExecutorInfo, State};
use crate::model::waiting;
use crate::output::json;
use crate::output::lines;
use crate::settings::Readiness;
use crate::text::format::{age, count, grouped, printable};

/// So many executors are listed for people; the rest are counted.
const LISTED_MAX: usize = 100;
/// And so many for programs.
const LISTED_FOR_PROGRAMS_MAX: usize = 10_000;

/// Whether enough has registered for a framework to begin its work.
pub(super) struct Sufficiency {
    /// By the framework's driver if a client tells, else the cores of executors that run.
    registered: MilliCpus,
    expected: MilliCpus,
    readiness: Readiness,
    is_waited: bool,
}

impl Sufficiency {
    fn holds(&self) -> bool {
        let share = self.expected.millis() as f64 * self.readiness.ratio;
        self.is_waited || self.registered.millis() as f64 >= share
    }

    /// As in `sufficient: 4 of 8 cores, and 0.5 of them are asked for`.
    pub(super) fn sentence(&self) -> String {
        let Sufficiency { registered, expected, readiness, .. } = self;
        let verdict = if self.holds() { "sufficient" } else { "not sufficient yet" };
        let waited = match self.is_waited {
            true => format!(", and {} are over", age(readiness.wait)),
            false => String::new(),
        };
        let ratio = match readiness.ratio {
            none if none <= 0.0 => "none".to_owned(),
            ratio => ratio.to_string(),
        };
        match expected.millis() {
            0 => format!("{verdict}: {registered} cores, and no number is expected{waited}"),
            _ => format!(
                "{verdict}: {registered} of {expected} cores, {ratio} of them asked for{waited}"
            ),
        }
    }
}

impl Session {
    /// Whether enough has registered.
    pub(super) fn sufficiency(&self) -> Sufficiency {
        let running = || {
            let records = self.roster.records().filter(|record| record.state == State::Running);
            let millis = records.map(|record| record.cores.millis());
            MilliCpus::from_millis(millis.fold(0, u64::saturating_add))
        };
        let passed = self.clock.now().since(Timestamp::ORIGIN);
        Sufficiency {
            registered: self.registered.unwrap_or_else(running),
            expected: self.kernel.cores_expected(),
            readiness: self.settings.readiness,
            is_waited: passed >= self.settings.readiness.wait,
        }
    }

    fn ran(&self) -> Duration {
        self.clock.now().since(Timestamp::ORIGIN)
    }

    fn state(&self) -> &'static str {
        if self.ending.is_some() { "stopping" } else { "running" }
    }

    /// For people: lines, none of them empty.
    pub(super) fn status_text(&self) -> String {
        let (name, master) = (&self.settings.name, &self.settings.site.master);
        let mut text = format!("{name} on {master}, {} for {}", self.state(), age(self.ran()));
        let mut line = |head: &str, rest: &str| {
            let _infallible = write!(text, "\n{head:<11} {}", printable(rest));
        };
        line("executors", &lines::states(&self.roster));
        line("limit", &self.limit_text());
        let totals = self.kernel.totals();
        let expected = self.kernel.cores_expected();
        line(
            "cores",
            &match expected.millis() {
                0 => format!("{} taken", totals.cores),
                _ => format!("{} of {expected} taken", totals.cores),
            },
        );
        line("registered", &self.sufficiency().sentence());
        if let Some(allocating) = &self.allocating {
            line(
                "load",
                &match allocating.load {
                    None => "none was told of".to_owned(),
                    Some(load) => {
                        let pending = count(load.pending, "task");
                        format!("{pending} pending, {} running", grouped(load.running))
                    }
                },
            );
        }
        if let (Some(waits), None) = (&self.waiting.why, &self.ending) {
            line("waiting", &waiting::sentence(waits));
        }
        let living = || self.roster.records().filter(|record| !record.state.is_end());
        living().take(LISTED_MAX).for_each(|record| line(&record.name, &self.about(record)));
        let more = living().count().saturating_sub(LISTED_MAX);
        if more > 0 {
            line(&format!("and {more} more"), "");
        }
        text
    }

    /// As in `3; dynamic, from 0 to 10`.
    fn limit_text(&self) -> String {
        let limit = limit_text(self.kernel.executor_limit());
        match &self.allocating {
            None => limit,
            Some(allocating) => {
                let rule = allocating.allocator.rule();
                format!("{limit}; dynamic, from {} to {}", rule.min(), rule.max())
            }
        }
    }

    /// As in `running on agent-1 for 12 s, 1 cores, 512 MiB, idle for 3 s`.
    fn about(&self, record: &ExecutorInfo) -> String {
        let now = self.clock.now();
        let ExecutorInfo { host, state, cores, memory, .. } = record;
        let (state, age_text) = (state.as_str(), age(record.age(now)));
        let mut text = format!("{state} on {host} for {age_text}, cores {cores}, {memory}");
        let idle_since = self.allocating.as_ref().and_then(|it| it.idle_since(&record.name));
        if let Some(since) = idle_since {
            let _infallible = write!(text, ", idle for {}", age(now.since(since)));
        }
        text
    }

    /// For programs.
    pub(super) fn status_object(&self) -> Value {
        let now = self.clock.now();
        let living = || self.roster.records().filter(|record| !record.state.is_end());
        let list = living().take(LISTED_FOR_PROGRAMS_MAX).map(|record| {
            let mut body = json::record(record);
            let allocating = self.allocating.as_ref();
            let idle = allocating.and_then(|it| it.idle_since(&record.name));
            body["idle_ms"] = json!(idle.map(|since| json::millis(now.since(since))));
            body
        });
        let list: Vec<Value> = list.collect();
        let sufficiency = self.sufficiency();
        let cores = |cores: MilliCpus| cores.millis() as f64 / 1000.0;
        let allocation = self.allocating.as_ref().map(|allocating| {
            let rule = allocating.allocator.rule();
            let load = allocating.load.map(|load| {
                json!({
                    "pending": load.pending, "running": load.running,
                    "speculative": load.speculative, "unschedulable": load.unschedulable,
                })
            });
            json!({
                "min": rule.min(), "max": rule.max(), "initial": rule.initial(),
                "slots": rule.slots(), "load": load,
            })
        });
        json!({
            "name": self.settings.name,
            "master": self.settings.site.master,
            "state": self.state(),
            "ran_ms": json::millis(self.ran()),
            "executors": json::states(&self.roster),
            "limit": self.kernel.executor_limit(),
            "cores": cores(self.kernel.totals().cores),
            "cores_expected": cores(self.kernel.cores_expected()),
            "registered_cores": cores(sufficiency.registered),
            "sufficient": sufficiency.holds(),
            "dynamic_allocation": allocation,
            "waiting": self.waiting.why.as_ref().filter(|_| self.ending.is_none()).map(json::waiting),
            "living_not_listed": living().count() - list.len(),
            "living": list,
        })
    }
}
