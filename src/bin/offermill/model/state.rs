//! What is known of executors and agents, built from the engine's notices.

use std::collections::{BTreeMap, HashMap, VecDeque};

use offermill::engine::{Clock, Notice, PlacedExecutor};
use offermill::{Change, Fate, TaskState, Timestamp};

use crate::model::event::{Exclusion, RunEvent};
use crate::model::executor::{AgentRecord, ExecutorInfo, State};
use crate::target::OnExit;
use crate::text::clock::time_of;
use crate::text::format::printable;

/// So many executors that have ended are remembered one by one; of older ones only the sums.
const ENDED_KEPT_MAX: usize = 10_000;

/// All executors and agents.
#[derive(Debug)]
pub(crate) struct RunState {
    clock: Clock,
    leavings: OnExit,
    failures_to_exclude: u8,
    records: BTreeMap<u64, ExecutorInfo>,
    by_name: HashMap<String, u64>,
    numbered: u64,
    counts: [u64; State::ALL.len()],
    ended: VecDeque<u64>,
    pub(crate) forgotten: u64,
    pub(crate) agents: BTreeMap<String, AgentRecord>,
    pub(crate) framework_id: String,
    /// How many executors had finished in the former run that this one goes on with.
    pub(crate) finished_before: u64,
    /// Whether there is a subscription.
    pub(crate) is_connected: bool,
    /// Ended badly, not replaced yet.
    vacancies: VecDeque<u64>,
    /// The most that lived at a time.
    peak: u64,
    pub(crate) replaced: u64,
}

impl RunState {
    /// Without executors.
    pub(crate) fn new(clock: Clock, leavings: OnExit, failures_to_exclude: u8) -> RunState {
        RunState {
            clock,
            leavings,
            failures_to_exclude,
            records: BTreeMap::new(),
            by_name: HashMap::new(),
            numbered: 0,
            counts: [0; State::ALL.len()],
            ended: VecDeque::new(),
            forgotten: 0,
            agents: BTreeMap::new(),
            framework_id: String::new(),
            finished_before: 0,
            is_connected: false,
            vacancies: VecDeque::new(),
            peak: 0,
            replaced: 0,
        }
    }

    /// Executors in the order in which they were placed.
    pub(crate) fn records(&self) -> impl DoubleEndedIterator<Item = &ExecutorInfo> {
        self.records.values()
    }

    /// The executor that lives and has this name; or whose name has this after its last `-`; or whose number it is.
    ///
    /// # Errors
    /// A sentence about none, or several.
    pub(crate) fn find(&self, text: &str) -> Result<&ExecutorInfo, String> {
        let living = |number: &u64| self.records.get(number);
        if let Some(record) = self.by_name.get(text).and_then(living) {
            return Ok(record);
        }
        let text = text.trim_start_matches("…-");
        let is_meant = |name: &str| {
            let end = name.rsplit_once('-').map_or(name, |(_, end)| end);
            end == text || end.split_once('.').is_some_and(|(number, _)| number == text)
        };
        let named = self.by_name.iter().filter(|(name, _)| is_meant(name));
        let mut found: Vec<&ExecutorInfo> =
            named.filter_map(|(_, number)| living(number)).collect();
        found.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        let text = printable(text);
        match found[..] {
            [record] => Ok(record),
            [first, second, ..] => Err(format!(
                "{text:?} may be {} or {}; expected one executor",
                first.name, second.name
            )),
            [] => Err(format!(
                "no executor {text:?} lives; expected an id, what is after its last \"-\", or its number"
            )),
        }
    }

    /// How many executors are or ended in this state.
    pub(crate) fn count(&self, state: State) -> u64 {
        self.counts[state as usize]
    }

    /// How many have finished, in a former run too if this one goes on with it.
    pub(crate) fn finished(&self) -> u64 {
        self.finished_before + self.count(State::Finished)
    }

    /// How many live.
    pub(crate) fn alive(&self) -> u64 {
        State::ALL.into_iter().filter(|state| !state.is_end()).map(|state| self.count(state)).sum()
    }

    /// How many agents are excluded at this moment.
    pub(crate) fn excluded(&self, now: Timestamp) -> usize {
        let is_excluded = |agent: &&AgentRecord| agent.exclusions.iter().any(|it| it.until > now);
        self.agents.values().filter(is_excluded).count()
    }

    /// Takes in a notice; returns what it means to people, if anything.
    pub(crate) fn take(&mut self, at: Timestamp, notice: Notice) -> Option<RunEvent> {
        Some(match notice {
            Notice::Registered { framework_id, again } => {
                self.framework_id.clone_from(&framework_id);
                self.is_connected = true;
                RunEvent::Registered { framework_id, again }
            }
            Notice::Disconnected => {
                self.is_connected = false;
                RunEvent::Disconnected(self.leavings)
            }
            Notice::Placed(placed) => self.placed(at, placed),
            Notice::Resumed { finished } => {
                self.finished_before = finished;
                RunEvent::Resumed { finished }
            }
            Notice::Adopted(adopted) => RunEvent::Adopted(self.entered(at, adopted)),
            Notice::Updated { executor, state, change, message } => {
                return self.updated(at, &executor, state, change, message);
            }
            Notice::AgentExcluded { agent_id, until } => {
                RunEvent::Excluded(self.excluded_agent(at, agent_id, until))
            }
            Notice::AgentLost { agent_id } => {
                let agent = self.agents.entry(agent_id.clone()).or_default();
                agent.is_lost = true;
                RunEvent::AgentLost { host: agent.host.clone(), agent_id }
            }
            Notice::GivenUp { executor } => {
                RunEvent::GivenUp(self.change(at, &executor, State::GivenUp, None)?)
            }
            Notice::Demand(call) => RunEvent::Demand(call),
            Notice::Overflow { offers, .. } => RunEvent::Overflow { offers },
            Notice::CallFailed { why } => RunEvent::CallFailed { why, calls: 1 },
            Notice::JournalEnded { why } => RunEvent::JournalEnded { why },
            Notice::Refused { why } => RunEvent::Refused { why },
            Notice::HandlerPanicked { why } => RunEvent::Panicked { why },
            Notice::Broken { why } => RunEvent::Broken { why },
            _ => return None,
        })
    }

    fn placed(&mut self, at: Timestamp, placed: PlacedExecutor) -> RunEvent {
        let peak = self.peak;
        let record = self.entered(at, placed);
        // More than ever lived together are no replacements.
        let vacancy = if self.alive() <= peak { self.vacancies.pop_front() } else { None };
        let replaced = vacancy.and_then(|number| self.records.get_mut(&number));
        let replaces = replaced.map(|replaced| {
            replaced.replaced_by = Some(record.name.clone());
            replaced.name.clone()
        });
        self.replaced += u64::from(replaces.is_some());
        RunEvent::Placed { record, replaces }
    }

    /// Writes an executor down that isn't known yet.
    fn entered(&mut self, at: Timestamp, placed: PlacedExecutor) -> ExecutorInfo {
        let PlacedExecutor { executor, agent_id, hostname, cores, memory, gpus, port, .. } = placed;
        let agent = self.agents.entry(agent_id.clone()).or_default();
        agent.host.clone_from(&hostname);
        agent.counts[State::Starting as usize] += 1;
        self.counts[State::Starting as usize] += 1;
        self.peak = self.peak.max(self.alive());
        let record = ExecutorInfo {
            name: executor.clone(),
            agent_id,
            host: hostname,
            state: State::Starting,
            cores,
            memory,
            gpus,
            port,
            placed_at: at,
            changed_at: at,
            ended_at: None,
            message: String::new(),
            replaced_by: None,
        };
        self.by_name.insert(executor, self.numbered);
        self.records.insert(self.numbered, record.clone());
        self.numbered += 1;
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
                self.change(at, executor, State::Running, message).map(RunEvent::Running)
            }
            Change::Returned => {
                self.change(at, executor, State::Running, message).map(RunEvent::Returned)
            }
            Change::Unreachable => {
                self.change(at, executor, State::Unreachable, message).map(RunEvent::OutOfSight)
            }
            Change::Refused => {
                self.change(at, executor, State::Ending, message).map(RunEvent::RefusedReturn)
            }
            Change::Ended(fate) => {
                let state = match fate {
                    Fate::Finished => State::Finished,
                    Fate::Failed => State::Failed,
                    Fate::Killed => State::Killed,
                    _ => State::Lost,
                };
                self.change(at, executor, state, message).map(RunEvent::Ended)
            }
            _ if state == TaskState::Killing => {
                self.change(at, executor, State::Ending, message).map(RunEvent::Ending)
            }
            _ => None,
        }
    }

    /// Moves an executor into a state. `None` if it isn't known, has ended, or is in it already.
    fn change(
        &mut self,
        at: Timestamp,
        executor: &str,
        state: State,
        message: Option<String>,
    ) -> Option<ExecutorInfo> {
        let number = *self.by_name.get(executor)?;
        let record = self.records.get_mut(&number)?;
        if record.state == state || record.state.is_end() {
            return None;
        }
        let agent = self.agents.entry(record.agent_id.clone()).or_default();
        for counts in [&mut agent.counts, &mut self.counts] {
            counts[record.state as usize] -= 1;
            counts[state as usize] += 1;
        }
        (record.state, record.changed_at) = (state, at);
        if let Some(message) = message {
            record.message = message;
        }
        if state == State::Failed {
            agent.last_failure.clone_from(&record.message);
        }
        if matches!(state, State::Failed | State::Lost) {
            self.vacancies.push_back(number);
        }
        let mut copy = record.clone();
        if state.is_end() {
            record.ended_at = Some(at);
            copy.ended_at = Some(at);
            self.forget_oldest(number, executor);
        }
        Some(copy)
    }

    fn forget_oldest(&mut self, number: u64, executor: &str) {
        self.by_name.remove(executor);
        self.ended.push_back(number);
        if self.ended.len() > ENDED_KEPT_MAX
            && let Some(oldest) = self.ended.pop_front()
        {
            self.records.remove(&oldest);
            self.forgotten += 1;
        }
        if self.vacancies.len() > ENDED_KEPT_MAX {
            self.vacancies.pop_front();
        }
    }

    fn excluded_agent(&mut self, at: Timestamp, agent_id: String, until: Timestamp) -> Exclusion {
        let agent = self.agents.entry(agent_id.clone()).or_default();
        let exclusion = Exclusion {
            agent_id,
            host: agent.host.clone(),
            failures: self.failures_to_exclude,
            why: agent.last_failure.clone(),
            at,
            until,
            ends: time_of(self.clock, until),
        };
        agent.exclusions.push(exclusion.clone());
        exclusion
    }
}
