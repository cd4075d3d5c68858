//! The replies to the `status` command: the state of a run as text and as JSON.

use std::fmt::Write;
use std::time::{Duration, SystemTime};

use offermill::Timestamp;
use offermill::resources::{ExecutorResources, MilliCpus};
use serde_json::{Value, json};

use super::Session;
use super::dynamic_allocation::DynamicAllocation;
use super::reports::StopProgress;
use crate::model::executor::{ExecutorRecord, ExecutorState};
use crate::output::capacity::{agent_objects, capacity_object, capacity_sentence};
use crate::output::json;
use crate::output::lines;
use crate::output::sentence::limit_text;
use crate::output::stall::stall_sentence;
use crate::output::tasks::{counts_object, progress_sentence, too_large_object};
use crate::settings::Readiness;
use crate::text::clock::{rfc3339, short_time, time_of};
use crate::text::format::{age, core_number, count, grouped, printable};
use crate::text::styled::padded;

/// The most executors that the text lists; the others are counted.
const LISTED_MAX: usize = 100;
/// The least width of the heads of lines, in columns.
const HEAD_COLUMNS: usize = 11;
/// The most executors that the JSON object lists.
const LISTED_IN_JSON_MAX: usize = 10_000;
/// The most exclusions that the JSON object lists.
const EXCLUSIONS_LISTED_MAX: usize = 1_000;
/// The most ended executors that the JSON object lists: the latest.
const ENDED_LISTED_MAX: usize = 1_000;

/// Whether enough cores have registered for a framework to begin its work.
pub(super) struct Sufficiency {
    /// The cores that a client reported as registered with the driver; else the cores of running executors.
    registered: MilliCpus,
    expected: MilliCpus,
    readiness: Readiness,
    wait_is_over: bool,
}

impl Sufficiency {
    fn is_met(&self) -> bool {
        let share = self.expected.millis() as f64 * self.readiness.ratio;
        self.wait_is_over || self.registered.millis() as f64 >= share
    }

    /// As in `sufficient: 4 of 8 cores, of which a share of 0.5 is enough`.
    pub(super) fn sentence(&self) -> String {
        let Sufficiency { registered, expected, readiness, .. } = self;
        let verdict = if self.is_met() { "sufficient" } else { "not sufficient yet" };
        let waited = match self.wait_is_over {
            true => format!(", and {} are over", age(readiness.wait)),
            false => String::new(),
        };
        let share = match readiness.ratio {
            none if none <= 0.0 => "none are required".to_owned(),
            ratio => format!("a share of {ratio} is required"),
        };
        match expected.millis() {
            0 => format!("{verdict}: {registered:#}, and no number is expected{waited}"),
            _ => format!("{verdict}: {registered} of {expected:#}, {share}{waited}"),
        }
    }
}

/// As in `since 13:05:12 UTC (19 s), given up at 13:10:12 UTC`.
fn wait_text(since: Option<SystemTime>, passed: Duration, ends: Option<SystemTime>) -> String {
    let since = since.map(short_time).unwrap_or_default();
    let until = ends.map(|ends| format!(", given up at {}", short_time(ends)));
    format!("since {since} ({}){}", age(passed), until.unwrap_or_default())
}

impl Session {
    /// Whether enough cores have registered.
    pub(super) fn sufficiency(&self) -> Sufficiency {
        let running = || self.cores_of(|state| state == ExecutorState::Running);
        let passed = self.clock.now().since(Timestamp::ORIGIN);
        Sufficiency {
            registered: self.registered.unwrap_or_else(running),
            expected: self.kernel.cores_expected(),
            readiness: self.settings.readiness,
            wait_is_over: passed >= self.settings.readiness.wait,
        }
    }

    /// The cores of the executors in certain states, according to the same notices as their number. The kernel is
    /// ahead of these.
    fn cores_of(&self, is_it: impl Fn(ExecutorState) -> bool) -> MilliCpus {
        let records = self.run_state.records().filter(|record| is_it(record.state));
        records.map(|record| record.resources.cores).sum()
    }

    /// The cores of all executors that count against the core cap.
    fn cores_taken(&self) -> MilliCpus {
        self.cores_of(|state| !state.is_end() && state != ExecutorState::GivenUp)
    }

    fn ran(&self) -> Duration {
        self.clock.now().since(Timestamp::ORIGIN)
    }

    fn phase(&self) -> &'static str {
        if self.end_reason.is_some() { "stopping" } else { "running" }
    }

    /// The status as lines, none of them empty.
    pub(super) fn status_text(&self) -> String {
        let name = &self.settings.name;
        let master = &self.settings.target.master;
        let mut text =
            printable(&format!("{name} on {master}, {} for {}", self.phase(), age(self.ran())));
        let mut line = |head: &str, rest: &str| {
            let _infallible = write!(text, "\n{} {}", padded(head, HEAD_COLUMNS), printable(rest));
        };
        match &self.tasks {
            Some(tasks) => line("tasks", &progress_sentence(&tasks.counts())),
            None => {
                line("executors", &lines::states(&self.run_state));
                line("limit", &self.limit_text());
            }
        }
        let taken = self.cores_taken();
        let expected = self.kernel.cores_expected();
        line(
            "cores",
            &match expected.millis() {
                0 => format!("{taken} taken"),
                _ => format!("{taken} of {expected} taken"),
            },
        );
        if self.tasks.is_none() {
            line("registered", &self.sufficiency().sentence());
        }
        line("cluster", &capacity_sentence(&self.kernel.capacity(self.clock.now())));
        if let Some(allocation) = &self.allocation {
            line(
                "load",
                &match allocation.load {
                    None => "none was reported".to_owned(),
                    Some(load) => {
                        let pending = count(load.pending, "task");
                        format!("{pending} pending, {} running", grouped(load.running))
                    }
                },
            );
        }
        if let (Some(stall), None) = (&self.stall_watch.stall, &self.end_reason) {
            let sentence = stall_sentence(stall);
            line("waiting", sentence.strip_prefix("waiting ").unwrap_or(&sentence));
        }
        if let (Some(tasks), None) = (&self.tasks, &self.end_reason) {
            let too_large = tasks.queue().too_large(LISTED_MAX);
            too_large.iter().for_each(|it| line("waiting", &it.sentence()));
        }
        let living = || self.run_state.records().filter(|record| !record.state.is_end());
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
        match &self.allocation {
            None => limit,
            Some(allocation) => {
                let rule = allocation.allocator.rule();
                format!("{limit}; dynamic, from {} to {}", rule.min(), rule.max())
            }
        }
    }

    /// As in `running on agent-1 for 12 s, cores 1, 512 MiB, idle for 3 s`, or `unreachable on agent-1 since 13:05:12
    /// UTC (19 s), given up at 13:10:12 UTC, cores 1, 512 MiB, task lint`.
    fn about(&self, record: &ExecutorRecord) -> String {
        let now = self.clock.now();
        let ExecutorRecord { host, state, resources, .. } = record;
        let ExecutorResources { cores, memory, .. } = resources;
        let time = match state {
            ExecutorState::Unreachable => self.unreachable_time(record, now),
            _ => format!("for {}", age(record.age(now))),
        };
        let state = state.as_str();
        let mut text = format!("{state} on {host} {time}, cores {cores}, {memory}");
        let idle_since = self.allocation.as_ref().and_then(|it| it.idle_since(&record.name));
        if let Some(since) = idle_since {
            let _infallible = write!(text, ", idle for {}", age(now.since(since)));
        }
        if let Some(tasks) = &self.tasks {
            match tasks.queue().id_of(record) {
                Some(id) => text.push_str(&format!(", task {id}")),
                None => text.push_str(", host of tasks"),
            }
        }
        text
    }

    /// Since when an executor is unreachable, and until when it is waited for.
    fn unreachable_time(&self, record: &ExecutorRecord, now: Timestamp) -> String {
        let since = record.changed_at;
        let ends = self.settings.config.unreachable().release_after.map(|wait| since.plus(wait));
        let clock = |at| time_of(self.clock, at);
        wait_text(clock(since), now.since(since), ends.and_then(clock))
    }

    /// The status as a JSON object.
    pub(super) fn status_object(&self) -> Value {
        let now = self.clock.now();
        let living = || self.run_state.records().filter(|record| !record.state.is_end());
        let list = living().take(LISTED_IN_JSON_MAX).map(|record| {
            let mut body = json::living_record(record);
            let allocation = self.allocation.as_ref();
            let idle = allocation.and_then(|it| it.idle_since(&record.name));
            body["idle_ms"] = json!(idle.map(|since| json::millis(now.since(since))));
            body["task"] = json!(self.tasks.as_ref().and_then(|it| it.queue().id_of(record)));
            body
        });
        let list: Vec<Value> = list.collect();
        let ended = || self.run_state.latest_ended();
        let ended_list = ended().take(ENDED_LISTED_MAX).map(json::ended_record);
        let ended_list: Vec<Value> = ended_list.collect();
        let forgotten = usize::try_from(self.run_state.forgotten).unwrap_or(usize::MAX);
        let capacity = self.kernel.capacity(now);
        let counts = self.kernel.offer_counts();
        let agents = agent_objects(&capacity, |at| time_of(self.clock, at));
        let exclusions: Vec<Value> = self
            .run_state
            .exclusions(now)
            .take(EXCLUSIONS_LISTED_MAX)
            .map(json::exclusion)
            .collect();
        let too_large = self.tasks.iter().filter(|_| self.end_reason.is_none());
        let too_large = too_large.flat_map(|tasks| tasks.queue().too_large(LISTED_MAX));
        let too_large: Vec<Value> = too_large.map(|it| too_large_object(&it)).collect();
        let sufficiency = self.sufficiency();
        let cores = core_number;
        json!({
            "time": rfc3339(SystemTime::now()),
            "name": self.settings.name,
            "master": self.settings.target.master,
            "state": self.phase(),
            "framework_id": Some(&self.run_state.framework_id).filter(|id| !id.is_empty()),
            "registered": self.run_state.is_connected,
            "ran_ms": json::millis(self.ran()),
            "stopping": self.stopping.as_ref().map(StopProgress::object),
            "executors": json::states(&self.run_state),
            "tasks": self.tasks.as_ref().map(|tasks| counts_object(&tasks.counts())),
            "limit": self.kernel.executor_limit(),
            "cores": cores(self.cores_taken()),
            "cores_expected": cores(self.kernel.cores_expected()),
            "registered_cores": cores(sufficiency.registered),
            "sufficient": sufficiency.is_met(),
            "cluster": capacity_object(&capacity),
            "dynamic_allocation": self.allocation.as_ref().map(allocation_object),
            "offers": json::offers(&counts),
            "offers_per_second": json::rate(self.rate.per_second()),
            "nearest_misses": json::misses(&self.kernel.explain(now).declined),
            "agents": agents,
            "agents_not_listed": capacity.sums().agents - agents.len(),
            "exclusions": exclusions,
            "waiting": self.stall_watch.stall.as_ref().filter(|_| self.end_reason.is_none()).map(json::waiting),
            "tasks_too_large": too_large,
            "living_not_listed": living().count() - list.len(),
            "living": list,
            "ended_not_listed": (ended().count() - ended_list.len()).saturating_add(forgotten),
            "ended": ended_list,
        })
    }
}

/// The rule of dynamic allocation and the load last reported.
fn allocation_object(allocation: &DynamicAllocation) -> Value {
    let rule = allocation.allocator.rule();
    let load = allocation.load.map(|load| {
        json!({
            "pending": load.pending, "running": load.running,
            "speculative": load.speculative, "unschedulable": load.unschedulable,
        })
    });
    json!({
        "min": rule.min(), "max": rule.max(), "initial": rule.initial(),
        "slots": rule.slots(), "load": load,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::UNIX_EPOCH;

    /// Goal: the status says since when an executor is unreachable, and until when it is waited for. Method: with and
    /// without an end.
    #[test]
    fn a_wait_has_a_beginning_and_an_end() {
        let at = |seconds| Some(UNIX_EPOCH + Duration::from_secs(seconds));
        let since = "since 2000-02-29 00:00:00 UTC (19 s)";
        let passed = Duration::from_millis(19_700);
        assert_eq!(
            wait_text(at(951_782_400), passed, at(951_782_700)),
            format!("{since}, given up at 2000-02-29 00:05:00 UTC")
        );
        assert_eq!(wait_text(at(951_782_400), passed, None), since);
    }
}
