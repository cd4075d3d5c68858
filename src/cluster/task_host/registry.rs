//! The hosts that a cluster has started, and the tasks in them: what is known of each, and what follows from what
//! happens to them.
//!
//! A host is an executor with a connection; its processes, kills and watchdog are those of any executor, and its
//! owner's. A task in it has no process of this program's. When a host has ended *and* its connection has, its tasks
//! are gone: they are reported then, and after them the host. A connection that somebody holds beyond the host's end
//! is cut after a while.
//!
//! From its start on a host is looked at regularly, and asked for a sign of life. One that gives none is ended.

use std::collections::{BTreeMap, HashMap};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use super::connection::{HostConnection, HostEvent};
use super::message::{HostReport, HostRequest};
use super::registered_host::{GoneHost, HostPatience, RegisteredHost};
use crate::cluster::process::{Exit, RunningExecutor};
use crate::status::{ProcessReport, TaskState};

/// The hosts and their tasks, by executor id. `T` is what the owner keeps of an executor.
#[derive(Debug)]
pub(crate) struct HostRegistry<T> {
    patience: HostPatience,
    hosts: BTreeMap<String, RegisteredHost<T>>,
    tasks: HashMap<String, HostedTask<T>>,
}

/// A task in a host.
#[derive(Debug)]
struct HostedTask<T> {
    host: String,
    /// What the host calls it.
    name: String,
    record: T,
    /// Its host may have it.
    is_sent: bool,
    process: Option<ProcessReport>,
    is_asked_to_end: bool,
}

/// A task for a host.
#[derive(Debug)]
pub(crate) struct NewHostedTask<T> {
    pub(crate) id: String,
    pub(crate) host: String,
    /// What the host calls it, and its folder.
    pub(crate) name: String,
    pub(crate) argv: Vec<String>,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) record: T,
}

/// What has become of a host or a task. Outcomes are reported in their order.
#[derive(Debug)]
pub(crate) enum HostOutcome<T> {
    /// The host takes tasks.
    HostReady(String),
    /// The host is of no use: its process is to be ended by force.
    EndHost(String),
    /// The host has ended, after its tasks.
    HostEnded { executor: RunningExecutor<T>, exit: Exit, end: HostEnd },
    /// The task has a process. It is not told of tasks that were asked to end before.
    TaskRuns { id: String, process: ProcessReport },
    /// The task has ended.
    TaskEnded {
        id: String,
        host: String,
        record: T,
        end: HostedEnd,
        process: Option<ProcessReport>,
    },
}

/// How a host has ended.
#[derive(Debug)]
pub(crate) enum HostEnd {
    /// By force, for this reason.
    Faulty(String),
    /// By itself.
    Unasked,
    /// On request.
    Asked,
}

/// How a task in a host has ended.
#[derive(Debug)]
pub(crate) enum HostedEnd {
    /// It couldn't be started. `is_busy` says that the machine had no process, file, memory or disk space for it at the
    /// moment.
    NotStarted { why: String, is_busy: bool },
    /// It was asked to end before its host had it.
    Withdrawn,
    /// By itself, or on request.
    Exited { exit: Exit, is_asked: bool, is_host_asked: bool },
    /// With its host, which is gone for this reason. `is_sent` says that the host may have started it.
    HostGone { why: String, is_asked: bool, is_sent: bool },
}

/// A request to end that concerns a task in a host.
#[derive(Debug)]
pub(crate) enum HostedKill<T> {
    /// It was asked to end, for the first time or again.
    Asked { is_first: bool },
    /// It has ended.
    Ended(HostOutcome<T>),
}

impl<T> HostRegistry<T> {
    /// A registry without hosts.
    pub(crate) fn new(patience: HostPatience) -> HostRegistry<T> {
        HostRegistry { patience, hosts: BTreeMap::new(), tasks: HashMap::new() }
    }

    /// A host was accepted: its tasks may be.
    pub(crate) fn add(&mut self, host: &str) {
        self.hosts.insert(host.to_owned(), RegisteredHost::default());
    }

    /// Whether an executor is a host.
    pub(crate) fn is_host(&self, id: &str) -> bool {
        self.hosts.contains_key(id)
    }

    /// What the owner keeps of a task.
    pub(crate) fn record(&self, task: &str) -> Option<&T> {
        self.tasks.get(task).map(|task| &task.record)
    }

    /// Whether a host's process has ended whose end is not reported yet.
    pub(crate) fn has_unreported_ends(&self) -> bool {
        self.hosts.values().any(|host| host.gone.is_some())
    }

    /// The next time at which [`HostRegistry::run_due`] has work.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        let due = |host: &RegisteredHost<T>| match &host.gone {
            Some(gone) => Some(gone.until),
            None => host.look_at,
        };
        self.hosts.values().filter_map(due).min()
    }

    /// Opens the connection of a host that is about to be started with this mark, and returns its end of it. Events go
    /// to `deliver`, on another thread, until it returns false. `None` if it is no host, or if there is no connection:
    /// then the host finds that it has none, and ends.
    pub(crate) fn open(
        &mut self,
        host: &str,
        mark: &str,
        deliver: impl Fn(HostEvent) -> bool + Send + 'static,
    ) -> Option<OwnedFd> {
        let entry = self.hosts.get_mut(host)?;
        match HostConnection::open(mark, deliver) {
            Ok((connection, input)) => {
                entry.connection = Some(connection);
                Some(input)
            }
            Err(_) => {
                entry.is_closed = true;
                None
            }
        }
    }

    /// A host's process was started, with its sandbox in this folder, where those of its tasks are as well. A host that
    /// has sent nonsense by now is ended.
    pub(crate) fn started(
        &mut self,
        host: &str,
        folder: Option<&Path>,
        now: Instant,
    ) -> Vec<HostOutcome<T>> {
        let Some(entry) = self.hosts.get_mut(host) else { return Vec::new() };
        if let (Some(connection), Some(folder)) = (&entry.connection, folder) {
            connection.begin(folder.to_string_lossy().into_owned());
            entry.look_at = Some(now + self.patience.look_interval);
        }
        match entry.fault.is_some() || entry.is_closed {
            true => vec![HostOutcome::EndHost(host.to_owned())],
            false => Vec::new(),
        }
    }

    /// Sends a task to its host, as soon as that is ready. A task for a host that is gone, or of no use any more, ends
    /// with it. (An answer at once would have its framework send the next one to the same host, again and again, until
    /// it hears of the host's end.)
    ///
    /// # Errors
    /// With what the owner keeps of it, if there is no such host, or if it was asked to end.
    pub(crate) fn start(&mut self, task: NewHostedTask<T>) -> Result<(), T> {
        let NewHostedTask { id, host, name, argv, environment, record } = task;
        let entry = self.hosts.get_mut(&host).filter(|entry| !entry.is_finishing);
        let Some(entry) = entry else { return Err(record) };
        let start = HostRequest::Start { task: name.clone(), argv, environment };
        let is_sent = entry.is_usable() && entry.is_ready;
        match is_sent {
            true => entry.send(start),
            false => entry.waiting.push(start),
        }
        let task =
            HostedTask { host, name, record, is_sent, process: None, is_asked_to_end: false };
        self.tasks.insert(id, task);
        Ok(())
    }

    /// Asks a host to end its tasks and itself.
    pub(crate) fn finish(&mut self, host: &str, grace: Duration) {
        if let Some(entry) = self.hosts.get_mut(host) {
            entry.is_finishing = true;
            // One that isn't ready finishes then, or is killed. Tasks that wait for it are lost with it.
            entry.waiting.clear();
            entry.send(HostRequest::Finish { grace });
        }
    }

    /// Asks all hosts to end.
    pub(crate) fn finish_all(&mut self, grace: Duration) {
        let hosts: Vec<String> = self.hosts.keys().cloned().collect();
        hosts.iter().for_each(|host| self.finish(host, grace));
    }

    /// Asks a task to end. `None` if there is no such task.
    pub(crate) fn kill(&mut self, id: &str, grace: Duration) -> Option<HostedKill<T>> {
        let task = self.tasks.get_mut(id)?;
        let is_first = !std::mem::replace(&mut task.is_asked_to_end, true);
        let Some(entry) = self.hosts.get_mut(&task.host) else {
            return Some(HostedKill::Asked { is_first });
        };
        let is_it = |it: &HostRequest| matches!(it, HostRequest::Start { task: name, .. } if *name == task.name);
        if let Some(at) = entry.waiting.iter().position(is_it) {
            entry.waiting.remove(at);
            return self.task_ended(id, HostedEnd::Withdrawn).map(HostedKill::Ended);
        }
        entry.send(HostRequest::Kill { task: task.name.clone(), grace });
        Some(HostedKill::Asked { is_first })
    }

    /// The state of a task in a host, with what the owner keeps of it.
    pub(crate) fn state(&self, id: &str) -> Option<(&T, TaskState)> {
        let task = self.tasks.get(id)?;
        let state = match &task.process {
            _ if task.is_asked_to_end => TaskState::Killing,
            None => TaskState::Starting,
            Some(_) => TaskState::Running,
        };
        Some((&task.record, state))
    }

    /// The ids of all tasks in hosts.
    pub(crate) fn task_ids(&self) -> impl Iterator<Item = &str> {
        self.tasks.keys().map(String::as_str)
    }

    /// Something has come from a host's connection. `id_of` makes the id of a task of what the host calls it.
    pub(crate) fn on_event(
        &mut self,
        host: &str,
        event: HostEvent,
        id_of: impl Fn(&str) -> String,
    ) -> Vec<HostOutcome<T>> {
        let Some(entry) = self.hosts.get_mut(host) else { return Vec::new() };
        entry.is_heard = true;
        match event {
            HostEvent::Report(HostReport::Ready { .. }) if entry.is_ready => {
                self.end_faulty(host, "the host sent that it is ready, twice".to_owned())
            }
            HostEvent::Report(HostReport::Ready { .. }) => {
                entry.is_ready = true;
                for request in std::mem::take(&mut entry.waiting) {
                    if let HostRequest::Start { task, .. } = &request
                        && let Some(task) = self.tasks.get_mut(&id_of(task))
                    {
                        task.is_sent = true;
                    }
                    entry.send(request);
                }
                vec![HostOutcome::HostReady(host.to_owned())]
            }
            HostEvent::Report(report) => self.on_report(host, report, id_of),
            // Part of a report, with what the sweeper said after it.
            HostEvent::Nonsense(_) if entry.gone.is_some() => Vec::new(),
            HostEvent::Nonsense(what) => self.end_faulty(host, format!("the host sent {what}")),
            HostEvent::Closed { is_swept } => {
                entry.is_closed = true;
                entry.is_unswept = !is_swept;
                entry.look_at = None;
                entry.connection = None;
                // The process has ended, or is of no use any more.
                let mut outcomes = vec![HostOutcome::EndHost(host.to_owned())];
                outcomes.extend(self.finish_host(host));
                outcomes
            }
        }
    }

    fn on_report(
        &mut self,
        host: &str,
        report: HostReport,
        id_of: impl Fn(&str) -> String,
    ) -> Vec<HostOutcome<T>> {
        let name = match &report {
            HostReport::Started { task, .. }
            | HostReport::NotStarted { task, .. }
            | HostReport::Ended { task, .. } => task.clone(),
            HostReport::Ready { .. } | HostReport::Pong | HostReport::Swept => return Vec::new(),
        };
        let id = id_of(&name);
        let found = self.tasks.get_mut(&id).filter(|task| task.host == host && task.is_sent);
        let starts = !matches!(report, HostReport::Ended { .. });
        let task = match found {
            // A start, or that it failed, is reported once, and an end only after the start.
            Some(task) if task.process.is_none() == starts => task,
            found => {
                let shown = name.escape_debug().take(80).collect::<String>();
                let what = match found {
                    None => "which it doesn't have",
                    Some(_) if starts => "which runs already",
                    Some(_) => "of whose start it hasn't told",
                };
                let fault = format!("the host sent a report of task \"{shown}\", {what}");
                return self.end_faulty(host, fault);
            }
        };
        let outcome = match report {
            HostReport::Started { pid, folder, .. } => {
                let (pid, sandbox) = (u32::try_from(pid).ok(), Some(folder));
                let process = ProcessReport { pid, sandbox, ..ProcessReport::default() };
                task.process = Some(process.clone());
                let is_told = !task.is_asked_to_end;
                is_told.then_some(HostOutcome::TaskRuns { id, process })
            }
            HostReport::NotStarted { why, is_busy, .. } => {
                self.task_ended(&id, HostedEnd::NotStarted { why, is_busy })
            }
            HostReport::Ended { exit, .. } => {
                let is_asked = task.is_asked_to_end;
                let is_host_asked = self.hosts.get(host).is_some_and(|it| it.is_finishing);
                self.task_ended(&id, HostedEnd::Exited { exit, is_asked, is_host_asked })
            }
            HostReport::Ready { .. } | HostReport::Pong | HostReport::Swept => None,
        };
        outcome.into_iter().collect()
    }

    fn task_ended(&mut self, id: &str, end: HostedEnd) -> Option<HostOutcome<T>> {
        let HostedTask { host, record, process, .. } = self.tasks.remove(id)?;
        let exit = match &end {
            HostedEnd::Exited { exit, .. } => exit.known(),
            _ => None,
        };
        let process = process.map(|process| ProcessReport { exit, ..process });
        Some(HostOutcome::TaskEnded { id: id.to_owned(), host, record, end, process })
    }

    /// Ends a host that is of no use, by force.
    fn end_faulty(&mut self, host: &str, fault: String) -> Vec<HostOutcome<T>> {
        if let Some(entry) = self.hosts.get_mut(host) {
            entry.fault.get_or_insert(fault);
            entry.look_at = None;
        }
        vec![HostOutcome::EndHost(host.to_owned())]
    }

    /// An executor's process has ended. The end of a host is reported after those of its tasks.
    ///
    /// # Errors
    /// With the executor, if it is no host.
    pub(crate) fn process_ended(
        &mut self,
        executor: RunningExecutor<T>,
        exit: Exit,
        now: Instant,
    ) -> Result<Vec<HostOutcome<T>>, Box<RunningExecutor<T>>> {
        let id = executor.id.clone();
        let Some(entry) = self.hosts.get_mut(&id) else { return Err(Box::new(executor)) };
        entry.look_at = None;
        let until = now + self.patience.closed_wait;
        entry.gone = Some(GoneHost { executor, exit, until, is_cut: false });
        Ok(self.finish_host(&id))
    }

    /// Ends hosts that say nothing, and reports those that are gone and whose connections don't end.
    pub(crate) fn run_due(&mut self, now: Instant) -> Vec<HostOutcome<T>> {
        let mut outcomes = Vec::new();
        let HostPatience { look_interval, closed_wait } = self.patience;
        for id in self.ids_of(|host| host.look_at.is_some_and(|at| at <= now)) {
            let Some(host) = self.hosts.get_mut(&id) else { continue };
            if host.is_silent(now + look_interval) {
                let what = if host.is_ready { "doesn't answer" } else { "isn't ready" };
                let fault = format!("the host {what} after {} s", self.patience.silence_secs());
                outcomes.extend(self.end_faulty(&id, fault));
            }
        }
        let is_due =
            |host: &RegisteredHost<T>| host.gone.as_ref().is_some_and(|gone| gone.until <= now);
        for id in self.ids_of(is_due) {
            let Some(host) = self.hosts.get_mut(&id) else { continue };
            if let (Some(connection), Some(gone)) = (&host.connection, &mut host.gone)
                && !gone.is_cut
            {
                connection.cut();
                gone.is_cut = true;
                gone.until = now + closed_wait;
                continue;
            }
            host.is_closed = true;
            host.is_unswept = true;
            outcomes.extend(self.finish_host(&id));
        }
        outcomes
    }

    fn ids_of(&self, matches: impl Fn(&RegisteredHost<T>) -> bool) -> Vec<String> {
        let found = self.hosts.iter().filter(|(_, host)| matches(host));
        found.map(|(id, _)| id.clone()).collect()
    }

    /// Reports the end of a host and of its tasks, once both its process and its connection have ended.
    fn finish_host(&mut self, id: &str) -> Vec<HostOutcome<T>> {
        let has_ended =
            self.hosts.get(id).is_some_and(|entry| entry.is_closed && entry.gone.is_some());
        let entry = if has_ended { self.hosts.remove(id) } else { None };
        let Some(RegisteredHost { gone: Some(gone), fault, is_finishing, is_unswept, .. }) = entry
        else {
            return Vec::new();
        };
        let GoneHost { executor, exit, .. } = gone;
        let (why, end) = match fault {
            Some(fault) => (fault.clone(), HostEnd::Faulty(fault)),
            None if is_finishing => (format!("on request: {exit}"), HostEnd::Asked),
            None => (exit.to_string(), HostEnd::Unasked),
        };
        let left = if is_unswept { "; processes of its tasks may be left" } else { "" };
        let why = format!("{why}{left}");
        let mut outcomes = self.lose_tasks(id, &why);
        outcomes.push(HostOutcome::HostEnded { executor, exit, end });
        outcomes
    }

    /// The tasks of a host are gone with it.
    fn lose_tasks(&mut self, host: &str, why: &str) -> Vec<HostOutcome<T>> {
        let lost = self.tasks.iter().filter(|(_, task)| task.host == host);
        let end = |task: &HostedTask<T>| HostedEnd::HostGone {
            why: why.to_owned(),
            is_asked: task.is_asked_to_end,
            is_sent: task.is_sent,
        };
        let mut lost: Vec<(String, HostedEnd)> =
            lost.map(|(id, task)| (id.clone(), end(task))).collect();
        lost.sort_by(|(one, _), (other, _)| one.cmp(other));
        let end = |(id, end): (String, HostedEnd)| self.task_ended(&id, end);
        lost.into_iter().filter_map(end).collect()
    }

    /// An executor was not started, or its launch was taken back: if it is a host, its tasks end.
    pub(crate) fn remove(&mut self, host: &str, why: &str) -> Vec<HostOutcome<T>> {
        match self.hosts.remove(host) {
            Some(_) => self.lose_tasks(host, why),
            None => Vec::new(),
        }
    }

    /// Forgets these hosts, and the tasks of which the owner keeps such a record. Returns the ids of the tasks.
    pub(crate) fn forget(&mut self, hosts: &[String], matches: impl Fn(&T) -> bool) -> Vec<String> {
        hosts.iter().for_each(|host| drop(self.hosts.remove(host)));
        let lost = self.tasks.iter().filter(|(_, task)| matches(&task.record));
        let lost: Vec<String> = lost.map(|(id, _)| id.clone()).collect();
        lost.iter().for_each(|id| drop(self.tasks.remove(id)));
        lost
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::cluster::task_host::registered_host::SILENT_LOOKS_MAX;

    fn task(id: &str, host: &str) -> NewHostedTask<u32> {
        NewHostedTask {
            id: id.to_owned(),
            host: host.to_owned(),
            name: format!("name of {id}"),
            argv: vec!["true".to_owned()],
            environment: Vec::new(),
            record: 7,
        }
    }

    /// The outcomes in short.
    fn shown(outcomes: &[HostOutcome<u32>]) -> Vec<String> {
        let one = |outcome: &HostOutcome<u32>| match outcome {
            HostOutcome::HostReady(host) => format!("{host} is ready"),
            HostOutcome::EndHost(host) => format!("end {host}"),
            HostOutcome::HostEnded { executor, .. } => format!("{} has ended", executor.id),
            HostOutcome::TaskRuns { id, .. } => format!("{id} runs"),
            HostOutcome::TaskEnded { id, end, .. } => format!("{id}: {end:?}"),
        };
        outcomes.iter().map(one).collect()
    }

    /// A registry with a host that was started at `now`, and its end of the connection.
    fn started(now: Instant) -> (HostRegistry<u32>, OwnedFd) {
        let mut registry = HostRegistry::new(HostPatience::default());
        registry.add("h");
        let input = registry.open("h", "a mark", |_| true).unwrap();
        assert_eq!(shown(&registry.started("h", Some(Path::new("/folder")), now)), [""; 0]);
        (registry, input)
    }

    fn event(registry: &mut HostRegistry<u32>, event: HostEvent) -> Vec<String> {
        let id_of = |name: &str| name.trim_start_matches("name of ").to_owned();
        shown(&registry.on_event("h", event, id_of))
    }

    /// Goal: a host that says nothing is ended after its time, and not sooner; tasks for it end with it then. Method:
    /// the clock at each look, and before.
    #[test]
    fn a_silent_host_is_ended() {
        let now = Instant::now();
        let (mut registry, _input) = started(now);
        assert!(registry.start(task("a", "h")).is_ok());
        let look = HostPatience::default().look_interval;
        for round in 1..=SILENT_LOOKS_MAX {
            let at = now + look * round;
            assert_eq!(registry.next_due(), Some(at));
            assert_eq!(shown(&registry.run_due(at - Duration::from_millis(1))), [""; 0]);
            let ended = shown(&registry.run_due(at));
            assert_eq!(ended, if round < SILENT_LOOKS_MAX { vec![] } else { vec!["end h"] });
        }
        assert_eq!((registry.next_due(), registry.run_due(now + look * 99).len()), (None, 0));
        assert_eq!(registry.hosts["h"].fault.as_deref(), Some("the host isn't ready after 60 s"));
        assert_eq!(registry.start(task("b", "h")), Ok(()));
        let gone = |id: &str| {
            format!("{id}: HostGone {{ why: \"why\", is_asked: false, is_sent: false }}")
        };
        assert_eq!(shown(&registry.remove("h", "why")), [gone("a"), gone("b")]);
    }

    /// Goal: a host that has been ready and answers no more is ended, one that says anything in its time isn't, and a
    /// pause of this program counts for nothing. Method: looks with and without reports, one of them an hour late.
    #[test]
    fn a_host_that_answers_no_more_is_ended() {
        let mut now = Instant::now();
        let (mut registry, _input) = started(now);
        let look = HostPatience::default().look_interval;
        event(&mut registry, HostEvent::Report(HostReport::Ready { sweeper: 7 }));
        for _ in 0..20 {
            for _ in 0..SILENT_LOOKS_MAX {
                now += look;
                assert_eq!(shown(&registry.run_due(now)), [""; 0]);
            }
            event(&mut registry, HostEvent::Report(HostReport::Pong));
        }
        let pauses = [Duration::from_secs(3600), look, look, look, look, look, look];
        let ended = pauses.map(|pause| {
            now += pause;
            shown(&registry.run_due(now)).len()
        });
        assert_eq!(ended, [0, 0, 0, 0, 0, 0, 1]);
        let fault = "the host doesn't answer after 60 s";
        assert_eq!(registry.hosts["h"].fault.as_deref(), Some(fault));
    }

    /// Goal: a task is told from others by what its host calls it, and each state once; a host that tells of tasks
    /// which it doesn't have, or repeats itself, is ended. Method: reports of two tasks, also repeated ones, and of one
    /// before the host got it.
    #[test]
    fn reports_are_of_known_tasks() {
        let (mut registry, _input) = started(Instant::now());
        for id in ["a", "b", "c"] {
            assert!(registry.start(task(id, "h")).is_ok());
        }
        assert_eq!(registry.start(task("d", "another")), Err(7));
        let report = |of: &str, report: fn(String) -> HostReport| {
            HostEvent::Report(report(format!("name of {of}")))
        };
        let runs = |task| HostReport::Started { task, pid: 9, folder: "/folder/a".to_owned() };
        let ended = |task| HostReport::Ended { task, exit: Exit::Code(3) };
        event(&mut registry, HostEvent::Report(HostReport::Ready { sweeper: 7 }));
        assert_eq!(event(&mut registry, report("a", runs)), ["a runs"]);
        assert_eq!(registry.state("a"), Some((&7, TaskState::Running)));
        assert_eq!(registry.state("b"), Some((&7, TaskState::Starting)));
        let exited = "Exited { exit: Code(3), is_asked: false, is_host_asked: false }";
        assert_eq!(event(&mut registry, report("a", ended)), [format!("a: {exited}")]);
        assert!(matches!(
            registry.kill("b", Duration::ZERO),
            Some(HostedKill::Asked { is_first: true })
        ));
        assert_eq!(event(&mut registry, report("b", runs)), [""; 0]);
        let asked = exited.replace("is_asked: false, ", "is_asked: true, ");
        assert_eq!(event(&mut registry, report("b", ended)), [format!("b: {asked}")]);
        assert_eq!(event(&mut registry, report("a", ended)), ["end h"]);
        assert_eq!(registry.start(task("e", "h")), Ok(()));
        let Some(HostedKill::Ended(outcome)) = registry.kill("e", Duration::ZERO) else {
            panic!("a host of no use has the task")
        };
        assert_eq!(shown(&[outcome]), ["e: Withdrawn"]);
        let (mut registry, _input) = started(Instant::now());
        assert!(registry.start(task("a", "h")).is_ok());
        event(&mut registry, HostEvent::Report(HostReport::Ready { sweeper: 7 }));
        assert_eq!(event(&mut registry, report("a", runs)), ["a runs"]);
        assert_eq!(event(&mut registry, report("a", runs)), ["end h"]);
        let (mut registry, _input) = started(Instant::now());
        assert!(registry.start(task("a", "h")).is_ok());
        assert_eq!(event(&mut registry, report("a", ended)), ["end h"]);
    }

    /// Goal: a task that ends has started, and one that has started wasn't refused; else its host is ended, and the
    /// task with it. Method: an end with exit code 0 of a task that was sent, and a failed start of one that runs.
    #[test]
    fn a_task_starts_before_it_ends() {
        let runs = |task| HostReport::Started { task, pid: 9, folder: "/folder/a".to_owned() };
        let failed = |task| HostReport::NotStarted { task, why: "why".to_owned(), is_busy: false };
        let ended = |task| HostReport::Ended { task, exit: Exit::Code(0) };
        let name = || "name of a".to_owned();
        let gone = "a: HostGone { why: \"why\", is_asked: false, is_sent: true }";
        let cases = [
            (vec![], ended(name()), "of whose start it hasn't told"),
            (vec![runs(name())], failed(name()), "which runs already"),
        ];
        for (before, report, what) in cases {
            let (mut registry, _input) = started(Instant::now());
            assert!(registry.start(task("a", "h")).is_ok());
            event(&mut registry, HostEvent::Report(HostReport::Ready { sweeper: 7 }));
            for report in before {
                assert_eq!(event(&mut registry, HostEvent::Report(report)), ["a runs"]);
            }
            assert_eq!(event(&mut registry, HostEvent::Report(report)), ["end h"]);
            let fault = format!("the host sent a report of task \"name of a\", {what}");
            assert_eq!(registry.hosts["h"].fault, Some(fault));
            assert_eq!(shown(&registry.remove("h", "why")), [gone]);
        }
        let (mut registry, _input) = started(Instant::now());
        assert!(registry.start(task("a", "h")).is_ok());
        event(&mut registry, HostEvent::Report(HostReport::Ready { sweeper: 7 }));
        let refused = "a: NotStarted { why: \"why\", is_busy: false }";
        assert_eq!(event(&mut registry, HostEvent::Report(failed(name()))), [refused]);
        assert_eq!(event(&mut registry, HostEvent::Report(failed(name()))), ["end h"]);
    }

    /// Goal: what a host that is gone may have started is told from what it never got. Method: tasks that come before
    /// the host is ready, once it is, and once its connection has ended.
    #[test]
    fn what_a_host_never_got_is_known() {
        let (mut registry, _input) = started(Instant::now());
        assert_eq!(registry.start(task("a", "h")), Ok(()));
        event(&mut registry, HostEvent::Report(HostReport::Ready { sweeper: 7 }));
        assert_eq!(registry.start(task("b", "h")), Ok(()));
        assert_eq!(event(&mut registry, HostEvent::Closed { is_swept: true }), ["end h"]);
        assert_eq!(registry.start(task("c", "h")), Ok(()));
        let gone = |id: &str, is_sent: bool| {
            format!("{id}: HostGone {{ why: \"why\", is_asked: false, is_sent: {is_sent} }}")
        };
        let expected = [gone("a", true), gone("b", true), gone("c", false)];
        assert_eq!(shown(&registry.remove("h", "why")), expected);

        // One that is asked to end before it is ready never gets what waits for it.
        let (mut registry, _input) = started(Instant::now());
        assert_eq!(registry.start(task("a", "h")), Ok(()));
        registry.finish("h", Duration::ZERO);
        event(&mut registry, HostEvent::Report(HostReport::Ready { sweeper: 7 }));
        assert_eq!(shown(&registry.remove("h", "why")), [gone("a", false)]);
    }

    /// Goal: tasks that their host doesn't have yet are taken back, or end with it. Method: a kill, an end, and a host
    /// that isn't started.
    #[test]
    fn tasks_wait_for_their_host() {
        let mut registry = HostRegistry::new(HostPatience::default());
        registry.add("h");
        for id in ["a", "b", "c"] {
            assert!(registry.start(task(id, "h")).is_ok());
        }
        let Some(HostedKill::Ended(outcome)) = registry.kill("b", Duration::ZERO) else {
            panic!("the task isn't taken back")
        };
        assert_eq!(shown(&[outcome]), ["b: Withdrawn"]);
        assert!(registry.kill("b", Duration::ZERO).is_none());
        let gone = |id: &str| {
            format!("{id}: HostGone {{ why: \"why\", is_asked: false, is_sent: false }}")
        };
        assert_eq!(shown(&registry.remove("h", "why")), [gone("a"), gone("c")]);
        assert_eq!(shown(&registry.remove("h", "why")), [""; 0]);
        registry.add("h");
        registry.finish("h", Duration::ZERO);
        assert_eq!(registry.start(task("d", "h")), Err(7));
    }
}
