//! The state of a run: records of all executors and agents, updated by the engine's notices.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;

use offermill::engine::{Clock, Notice, PlacedExecutor};
use offermill::{Change, Fate, ResourceSums, TaskState, Timestamp};

use crate::model::event::RunEvent;
use crate::model::executor::{
    AgentExclusion, AgentRecord, ExecutorRecord, ExecutorState, StateCounts, is_short_for,
};
use crate::model::target::OnExit;
use crate::text::clock::time_of;

mod kinds;
mod late_binding;
mod reports;

/// The most ended executors whose records are kept; older ones are only counted.
const ENDED_KEPT_MAX: usize = 10_000;

/// How much longer an exclusion must become to be shown again.
const LENGTHENED_MIN: Duration = Duration::from_secs(10);

/// The executors and agents of a run.
#[derive(Debug)]
pub(crate) struct RunState {
    clock: Clock,
    on_exit: OnExit,
    failures_to_exclude: u8,
    /// How long an executor may be unreachable before it is given up; `None` is for ever.
    unreachable_timeout: Option<Duration>,
    records: BTreeMap<u64, ExecutorRecord>,
    by_name: HashMap<String, u64>,
    next_number: u64,
    counts: StateCounts,
    /// The numbers of ended executors, oldest first.
    ended: VecDeque<u64>,
    /// How many ended executors have no record any more.
    pub(crate) forgotten: u64,
    pub(crate) agents: BTreeMap<String, AgentRecord>,
    pub(crate) framework_id: String,
    /// How many executors had finished in the former run that this one continues.
    pub(crate) finished_before: u64,
    /// Whether the framework is subscribed.
    pub(crate) is_connected: bool,
    /// Why the last call failed while the framework was not subscribed; empty if none did.
    connection_failure: String,
    /// The numbers of executors that failed or were lost and have no replacement yet.
    unreplaced: VecDeque<u64>,
    /// The most executors that were alive at the same time.
    peak: u64,
    /// What the executors have that count against the caps, and the most that they had at a time.
    used: ResourceSums,
    pub(crate) used_most: ResourceSums,
    /// How many executors were replaced.
    pub(crate) replaced: u64,
    /// The number of executors that were bound to agents which the cluster has chosen.
    bound: u64,
    /// Why the cluster took the last executor that it was asked for not at all, if none has run since.
    denied: Option<String>,
    /// How many executors the cluster didn't take at all. They have no records.
    pub(crate) denials: u64,
    /// How many of `unreplaced` were counted as replaced by an executor that the cluster then didn't take.
    counted_before: u64,
    /// The address of all executors, if agents are on this machine. Else it is their agent's host name.
    pub(crate) local_address: Option<String>,
    /// If executors are tasks, from which tag on they are hosts of tasks.
    pub(crate) first_host: Option<u64>,
}

/// Why a text names no single executor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FindError {
    /// No living executor matches.
    NotFound { text: String },
    /// Several match; the first two of them.
    Ambiguous { text: String, candidates: [String; 2] },
}

impl RunState {
    /// A run without executors.
    pub(crate) fn new(
        clock: Clock,
        on_exit: OnExit,
        failures_to_exclude: u8,
        unreachable_timeout: Option<Duration>,
    ) -> RunState {
        RunState {
            clock,
            on_exit,
            failures_to_exclude,
            unreachable_timeout,
            records: BTreeMap::new(),
            by_name: HashMap::new(),
            next_number: 0,
            counts: [0; ExecutorState::ALL.len()],
            ended: VecDeque::new(),
            forgotten: 0,
            agents: BTreeMap::new(),
            framework_id: String::new(),
            finished_before: 0,
            is_connected: false,
            connection_failure: String::new(),
            unreplaced: VecDeque::new(),
            peak: 0,
            used: ResourceSums::NONE,
            used_most: ResourceSums::NONE,
            replaced: 0,
            bound: 0,
            denied: None,
            denials: 0,
            counted_before: 0,
            local_address: None,
            first_host: None,
        }
    }

    /// Executors in the order in which they were placed.
    pub(crate) fn records(&self) -> impl DoubleEndedIterator<Item = &ExecutorRecord> {
        self.records.values()
    }

    /// The living executor with this name; or whose name ends with `text` after the last `-`; or with this number.
    ///
    /// # Errors
    /// If no living executor matches, or several do.
    pub(crate) fn find(&self, text: &str) -> Result<&ExecutorRecord, FindError> {
        let record = |number: &u64| self.records.get(number);
        if let Some(record) = self.by_name.get(text).and_then(record) {
            return Ok(record);
        }
        let named = self.by_name.iter().filter(|(name, _)| is_short_for(text, name));
        let mut found: Vec<&ExecutorRecord> =
            named.filter_map(|(_, number)| record(number)).collect();
        found.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        let text = text.trim_start_matches("…-").to_owned();
        match found[..] {
            [record] => Ok(record),
            [first, second, ..] => {
                let candidates = [first.name.clone(), second.name.clone()];
                Err(FindError::Ambiguous { text, candidates })
            }
            [] => Err(FindError::NotFound { text }),
        }
    }

    /// Ended executors that are still known, the latest first.
    pub(crate) fn latest_ended(&self) -> impl Iterator<Item = &ExecutorRecord> {
        self.ended.iter().rev().filter_map(|number| self.records.get(number))
    }

    /// How many executors are in this state.
    pub(crate) fn count(&self, state: ExecutorState) -> u64 {
        self.counts[state as usize]
    }

    /// How many executors have finished, including those of the former run that this one continues.
    pub(crate) fn finished(&self) -> u64 {
        self.finished_before + self.count(ExecutorState::Finished)
    }

    /// How many executors are alive.
    pub(crate) fn alive(&self) -> u64 {
        ExecutorState::ALL
            .into_iter()
            .filter(|state| !state.is_end())
            .map(|state| self.count(state))
            .sum()
    }

    /// Why no offers can come; `None` if the framework is subscribed.
    pub(crate) fn why_unconnected(&self) -> Option<String> {
        if self.is_connected {
            return None;
        }
        let state = match (self.framework_id.is_empty(), self.on_exit) {
            (true, OnExit::Left) => "not connected with the API server yet",
            (false, OnExit::Left) => "disconnected from the API server",
            (true, _) => "not registered with a master yet",
            (false, _) => "disconnected from the master",
        };
        let colon = if self.connection_failure.is_empty() { "" } else { ": " };
        Some(format!("{state}{colon}{}", self.connection_failure))
    }

    /// The exclusions in force at `now`.
    pub(crate) fn exclusions(&self, now: Timestamp) -> impl Iterator<Item = &AgentExclusion> {
        let all = self.agents.values().flat_map(|agent| &agent.exclusions);
        all.filter(move |exclusion| exclusion.until > now)
    }

    /// How many agents are excluded at `now`.
    pub(crate) fn excluded(&self, now: Timestamp) -> usize {
        let is_excluded = |agent: &&AgentRecord| agent.exclusions.iter().any(|it| it.until > now);
        self.agents.values().filter(is_excluded).count()
    }

    /// Applies a notice of the engine. Returns the event to show, if there is one.
    pub(crate) fn apply(&mut self, at: Timestamp, notice: Notice) -> Option<RunEvent> {
        Some(match notice {
            Notice::Registered { framework_id, again } => {
                self.framework_id.clone_from(&framework_id);
                self.is_connected = true;
                self.connection_failure.clear();
                RunEvent::Registered { framework_id, again }
            }
            Notice::Disconnected => {
                self.is_connected = false;
                RunEvent::Disconnected(self.on_exit)
            }
            Notice::Placed(placed) => self.placed(at, placed),
            Notice::Resumed { finished } => {
                self.finished_before = finished;
                RunEvent::Resumed { finished }
            }
            Notice::Adopted(adopted) => RunEvent::Adopted(self.insert(at, adopted)),
            update @ Notice::Updated { .. } => return self.apply_update(at, update),
            Notice::Bound { executor, agent_id, hostname } => {
                RunEvent::Bound(self.bind(&executor, agent_id, hostname)?)
            }
            Notice::Unwelcome { executor, agent_id: host, why } => {
                RunEvent::Unwelcome { executor, host, why }
            }
            Notice::Waiting { executor, why } => {
                self.record_delay(&executor, why);
                return None;
            }
            Notice::AgentExcluded { agent_id, until } => {
                RunEvent::Excluded(self.exclude_agent(at, agent_id, until)?)
            }
            Notice::AgentLost { agent_id } => {
                // Of an agent that has had no executor only the id is known.
                let agent = self.agents.get_mut(&agent_id);
                let host = agent.map_or(agent_id.clone(), |agent| {
                    agent.is_lost = true;
                    agent.host.clone()
                });
                RunEvent::AgentLost { host, agent_id }
            }
            Notice::GivenUp { executor } => {
                RunEvent::GivenUp(self.change(at, &executor, ExecutorState::GivenUp, None)?)
            }
            Notice::Demand(call) => RunEvent::Demand(call),
            Notice::Overflow { offers, .. } => RunEvent::Overflow { offers },
            Notice::Unreadable { offers, unanswered, agent_id, why, .. } => {
                RunEvent::Unreadable { offers, unanswered, agent_id, why }
            }
            Notice::CallFailed { why } => {
                if !self.is_connected {
                    self.connection_failure.clone_from(&why);
                }
                RunEvent::CallFailed { why, calls: 1 }
            }
            Notice::JournalEnded { why } => RunEvent::JournalEnded { why },
            Notice::Refused { why } => RunEvent::Refused { why },
            Notice::HandlerPanicked { why } => RunEvent::Panicked { why },
            Notice::Broken { why } => RunEvent::Broken { why },
            _ => return None,
        })
    }

    /// Applies a status update.
    fn apply_update(&mut self, at: Timestamp, update: Notice) -> Option<RunEvent> {
        let Notice::Updated {
            executor, state, change, message, reported_at, reason, process, ..
        } = update
        else {
            return None;
        };
        self.record_time(&executor, state, reported_at);
        self.record_process(&executor, process);
        if let Change::Ended(_) = change {
            self.record_cause(&executor, state, reason);
        }
        self.record_denial(state, &message);
        self.updated(at, &executor, state, change, message)
    }

    fn placed(&mut self, at: Timestamp, placed: PlacedExecutor) -> RunEvent {
        let peak = self.peak;
        let record = self.insert(at, placed);
        // An executor that raises the peak replaces none.
        let unreplaced = if self.alive() <= peak { self.unreplaced.pop_front() } else { None };
        let replaced = unreplaced.and_then(|number| self.records.get_mut(&number));
        let replaces = replaced.map(|replaced| {
            replaced.replaced_by = Some(record.name.clone());
            replaced.name.clone()
        });
        match (&replaces, self.counted_before) {
            (None, _) => {}
            (Some(_), 0) => self.replaced += 1,
            (Some(_), _) => self.counted_before -= 1,
        }
        RunEvent::Placed { record, replaces }
    }

    /// Inserts the record of a new executor.
    fn insert(&mut self, at: Timestamp, placed: PlacedExecutor) -> ExecutorRecord {
        let PlacedExecutor { executor, agent_id, hostname, resources, tag, .. } = placed;
        let kind = self.kind_of_tag(tag);
        self.count_on_agent(&agent_id, &hostname, ExecutorState::Starting, kind);
        self.counts[ExecutorState::Starting as usize] += 1;
        self.peak = self.peak.max(self.alive());
        let address = self.local_address.clone().unwrap_or_else(|| hostname.clone());
        self.count_used(resources.into());
        let record = ExecutorRecord {
            address: Some(address).filter(|address| !address.is_empty()),
            resources,
            tag,
            ..ExecutorRecord::starting(executor.clone(), agent_id, hostname, at)
        };
        self.by_name.insert(executor, self.next_number);
        self.records.insert(self.next_number, record.clone());
        self.next_number += 1;
        record
    }

    fn updated(
        &mut self,
        at: Timestamp,
        executor: &str,
        state: TaskState,
        change: Change,
        message: String,
    ) -> Option<RunEvent> {
        let message = Some(message);
        match change {
            Change::Running => {
                self.change(at, executor, ExecutorState::Running, message).map(RunEvent::Running)
            }
            Change::Returned | Change::Readmitted => {
                self.change(at, executor, ExecutorState::Running, message).map(RunEvent::Returned)
            }
            Change::Unreachable => {
                let record = self.change(at, executor, ExecutorState::Unreachable, message)?;
                let ends = self.unreachable_timeout.map(|timeout| at.plus(timeout));
                let given_up_at = ends.and_then(|ends| time_of(self.clock, ends));
                Some(RunEvent::Unreachable { record, given_up_at })
            }
            Change::Refused => self
                .change(at, executor, ExecutorState::Ending, message)
                .map(RunEvent::RefusedReturn),
            Change::Ended(fate) => {
                let state = match fate {
                    Fate::Finished => ExecutorState::Finished,
                    Fate::Failed => ExecutorState::Failed,
                    Fate::Killed => ExecutorState::Killed,
                    _ => ExecutorState::Lost,
                };
                let record = self.change(at, executor, state, message)?;
                self.forget_denied(&record);
                Some(RunEvent::Ended(record))
            }
            _ if state == TaskState::Killing => {
                self.change(at, executor, ExecutorState::Ending, message).map(RunEvent::Ending)
            }
            _ => None,
        }
    }

    /// Changes the state of an executor. `None` if it is unknown, has ended, or is in that state already.
    fn change(
        &mut self,
        at: Timestamp,
        executor: &str,
        state: ExecutorState,
        message: Option<String>,
    ) -> Option<ExecutorRecord> {
        let number = *self.by_name.get(executor)?;
        let kind = self.kind_of(self.records.get(&number)?);
        let record = self.records.get_mut(&number)?;
        if record.state == state || record.state.is_end() {
            return None;
        }
        let mut agent = self.agents.get_mut(&record.agent_id);
        let on_agent = agent.iter_mut().flat_map(|agent| agent.counts_of(kind));
        for counts in on_agent.chain([&mut self.counts]) {
            counts[record.state as usize] -= 1;
            counts[state as usize] += 1;
        }
        let is_counted = match state {
            ExecutorState::Running => true,
            // One that returns without room ends, and isn't counted.
            ExecutorState::Starting | ExecutorState::Ending | ExecutorState::Unreachable => {
                record.is_counted
            }
            _ => false,
        };
        let was_counted = std::mem::replace(&mut record.is_counted, is_counted);
        let own = ResourceSums::from(record.resources);
        record.state = state;
        record.has_run |= state == ExecutorState::Running;
        record.changed_at = at;
        if let Some(message) = message {
            record.message = message;
        }
        if let (ExecutorState::Failed, Some(agent)) = (state, agent) {
            agent.last_failure.clone_from(&record.message);
        }
        if matches!(state, ExecutorState::Failed | ExecutorState::Lost) {
            self.unreplaced.push_back(number);
        }
        let mut copy = record.clone();
        if state.is_end() {
            record.ended_at = Some(at);
            copy.ended_at = Some(at);
            self.record_end(number, executor);
        }
        match (was_counted, is_counted) {
            (true, false) => self.used = self.used.saturating_sub(own),
            (false, true) => self.count_used(own),
            _ => {}
        }
        Some(copy)
    }

    fn count_used(&mut self, more: ResourceSums) {
        self.used = self.used.saturating_add(more);
        self.used_most = self.used_most.max_of_each(self.used);
    }

    /// Records that an executor has ended, and forgets the oldest one if too many have.
    fn record_end(&mut self, number: u64, executor: &str) {
        self.by_name.remove(executor);
        self.ended.push_back(number);
        if self.ended.len() > ENDED_KEPT_MAX
            && let Some(oldest) = self.ended.pop_front()
        {
            self.records.remove(&oldest);
            self.forgotten += 1;
        }
        if self.unreplaced.len() > ENDED_KEPT_MAX {
            self.unreplaced.pop_front();
        }
    }

    /// Records an exclusion. `None` if it only lengthens the present one a little: executors that fail together exclude
    /// their agent several times.
    fn exclude_agent(
        &mut self,
        at: Timestamp,
        agent_id: String,
        until: Timestamp,
    ) -> Option<AgentExclusion> {
        let agent = self.agents.entry(agent_id.clone()).or_default();
        if let Some(present) = agent.exclusions.last_mut().filter(|last| last.until > at)
            && until.since(present.shown_until) < LENGTHENED_MIN
        {
            present.until = present.until.max(until);
            present.ends = time_of(self.clock, present.until);
            present.why.clone_from(&agent.last_failure);
            return None;
        }
        let exclusion = AgentExclusion {
            agent_id,
            host: agent.host.clone(),
            failures: self.failures_to_exclude,
            why: agent.last_failure.clone(),
            at,
            until,
            shown_until: until,
            ends: time_of(self.clock, until),
        };
        agent.exclusions.push(exclusion.clone());
        Some(exclusion)
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use offermill::UpdateReason;
    use offermill::engine::UnstartedEnd;
    use offermill::resources::{ExecutorResources, Mebibytes, MilliCpus};
    use offermill::{Config, ExecutorId, IdScheme, Kernel, Recovered};

    use super::*;

    /// Goal: an agent that is lost and never had an executor is named by its id, and isn't among the run's agents.
    /// Method: its loss.
    #[test]
    fn a_lost_agent_without_executors_has_a_name() {
        let mut run_state = RunState::new(Clock::start(), OnExit::Killed, 2, None);
        let lost = Notice::AgentLost { agent_id: "S1".to_owned() };
        let event = run_state.apply(Timestamp::ORIGIN, lost);
        assert!(
            matches!(&event, Some(RunEvent::AgentLost { host, .. }) if host == "S1"),
            "{event:?}"
        );
        assert!(run_state.agents.is_empty());
    }

    /// Goal: executors that fail together, which exclude their agent once each, are one exclusion, whose end is the
    /// last that was reported; one that makes it much longer, and one after its end, are told. Method: exclusions of an
    /// agent at one instant, a moment and a minute later, and after the end; and of another agent.
    #[test]
    fn an_exclusion_is_told_once() {
        let mut run_state = RunState::new(Clock::start(), OnExit::Killed, 2, None);
        let mut tell = |agent_id: &str, at: u64, until: u64| {
            let until = Timestamp::from_millis(until);
            let notice = Notice::AgentExcluded { agent_id: agent_id.to_owned(), until };
            match run_state.apply(Timestamp::from_millis(at), notice) {
                Some(RunEvent::Excluded(exclusion)) => Some(exclusion.until.as_millis()),
                None => None,
                Some(other) => panic!("{other:?}"),
            }
        };
        assert_eq!(tell("S1", 0, 3_600_000), Some(3_600_000));
        assert_eq!(tell("S1", 0, 3_600_000), None, "the same instant");
        assert_eq!(tell("S1", 5_000, 3_605_000), None, "a moment later");
        assert_eq!(tell("S2", 5_000, 3_605_000), Some(3_605_000), "another agent");
        assert_eq!(tell("S1", 60_000, 3_660_000), Some(3_660_000), "much longer");
        assert_eq!(tell("S1", 3_660_000, 7_260_000), Some(7_260_000), "after its end");
        let ends = |agent: &AgentRecord| -> Vec<u64> {
            agent.exclusions.iter().map(|it| it.until.as_millis()).collect()
        };
        assert_eq!(ends(&run_state.agents["S1"]), [3_605_000, 3_660_000, 7_260_000]);
        assert_eq!(ends(&run_state.agents["S2"]), [3_605_000]);
    }

    /// Goal: how long an executor ran is what the cluster says, whenever the reports are heard. Method: reports that
    /// are heard late, with the cluster's times; without the time of the end; with an end before the beginning.
    #[test]
    fn the_cluster_says_how_long_an_executor_ran() {
        let time = |seconds| Some(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        for (began, ended, ran) in
            [(time(10), time(12), 2), (time(10), None, 60), (time(10), time(9), 60)]
        {
            let kernel = Kernel::new(Config::builder().build().unwrap(), IdScheme::plain());
            let id = kernel.adopt(&[former()], Timestamp::ORIGIN).unwrap()[0].unwrap();
            let mut run_state = RunState::new(Clock::start(), OnExit::Killed, 2, None);
            run_state.apply(Timestamp::ORIGIN, Notice::Placed(placed(id)));
            let update = |state, change, reported_at| Notice::Updated {
                executor: "etl-1".to_owned(),
                tag: None,
                state,
                change,
                message: String::new(),
                reported_at,
                reason: UpdateReason::Other,
                process: None,
            };
            let now = Timestamp::from_millis(60_000);
            run_state.apply(now, update(TaskState::Running, Change::Running, began));
            let change = Change::Ended(Fate::Finished);
            run_state.apply(now, update(TaskState::Finished, change, ended));
            let record = run_state.records().next().unwrap();
            assert_eq!(record.ran(), Some(Duration::from_secs(ran)), "{began:?} {ended:?}");
        }
    }

    /// Goal: the most that executors had at a time counts those that count against the caps. Method: two executors of
    /// different size; one is given up and returns, without room at first, while the other ends and a third one comes.
    #[test]
    fn the_most_used_at_a_time_is_known() {
        let kernel = Kernel::new(Config::builder().build().unwrap(), IdScheme::plain());
        let id = kernel.adopt(&[former()], Timestamp::ORIGIN).unwrap()[0].unwrap();
        let mut run_state = RunState::new(Clock::start(), OnExit::Killed, 2, None);
        let place = |executor: &str, cores: u64, memory: u64| {
            let (cores, memory) = (MilliCpus::from_cores(cores), Mebibytes::new(memory));
            let resources = ExecutorResources { cores, memory, ..ExecutorResources::NONE };
            Notice::Placed(PlacedExecutor {
                executor: executor.to_owned(),
                resources,
                ..placed(id)
            })
        };
        let update = |executor: &str, change| Notice::Updated {
            executor: executor.to_owned(),
            tag: None,
            state: TaskState::Running,
            change,
            message: String::new(),
            reported_at: None,
            reason: UpdateReason::Other,
            process: None,
        };
        let mut most = |notice: Notice| {
            run_state.apply(Timestamp::ORIGIN, notice);
            let ResourceSums { cores, memory, .. } = run_state.used_most;
            (cores.whole_cores(), memory.get())
        };
        assert_eq!(most(place("a", 4, 100)), (4, 100));
        assert_eq!(most(place("b", 1, 500)), (5, 600));
        most(update("a", Change::Unreachable));
        most(Notice::GivenUp { executor: "a".to_owned() });
        assert_eq!(most(place("c", 4, 200)), (5, 700), "1 and 4 cores, 500 and 200 MiB");
        assert_eq!(most(update("a", Change::Refused)), (5, 700), "there is no room");
        most(update("a", Change::Ended(Fate::Killed)));
        most(update("b", Change::Ended(Fate::Finished)));
        assert_eq!(most(place("d", 2, 10)), (6, 700), "with the third one");
    }

    /// Goal: an executor is on record as never started if its end says so, and it hasn't run, nor was to end. Method:
    /// one that its agent drops at once, while it is unreachable, after it has run, and after it was asked to end.
    #[test]
    fn what_never_ran_is_on_record() {
        for (before, expected) in [
            (None, Some(UnstartedEnd::Dropped)),
            (Some((TaskState::Unreachable, Change::Unreachable)), Some(UnstartedEnd::Dropped)),
            (Some((TaskState::Running, Change::Running)), None),
            (Some((TaskState::Killing, Change::Nothing)), None),
        ] {
            let kernel = Kernel::new(Config::builder().build().unwrap(), IdScheme::plain());
            let id = kernel.adopt(&[former()], Timestamp::ORIGIN).unwrap()[0].unwrap();
            let mut run_state = RunState::new(Clock::start(), OnExit::Killed, 2, None);
            run_state.apply(Timestamp::ORIGIN, Notice::Placed(placed(id)));
            let end = (TaskState::Dropped, Change::Ended(Fate::Lost));
            for (state, change) in before.into_iter().chain([end]) {
                let notice = Notice::Updated {
                    executor: "etl-1".to_owned(),
                    tag: None,
                    state,
                    change,
                    message: String::new(),
                    reported_at: None,
                    reason: UpdateReason::Other,
                    process: None,
                };
                run_state.apply(Timestamp::ORIGIN, notice);
            }
            assert_eq!(run_state.records().next().unwrap().unstarted, expected, "{before:?}");
        }
    }

    fn former() -> Recovered<'static> {
        let resources = ExecutorResources::NONE;
        Recovered::new("etl-1", "S1", "agent-1", resources)
    }

    fn placed(id: ExecutorId) -> PlacedExecutor {
        PlacedExecutor {
            id,
            executor: "etl-1".to_owned(),
            agent_id: "S1".to_owned(),
            hostname: "agent-1".to_owned(),
            resources: ExecutorResources::NONE,
            tag: None,
        }
    }
}
