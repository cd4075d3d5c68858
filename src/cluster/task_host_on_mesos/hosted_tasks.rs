//! The tasks of a host on Mesos: what an agent's events mean for them, and what is reported of them.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use prost::Message as _;
use serde_json::json;

use super::TASKS_FOLDER;
use super::environment::ExecutorEnvironment;
use crate::cluster::process::Exit;
use crate::cluster::task_host::{HostReport, HostRequest};
use crate::mesos_v1::host_labels::{FOLDER_LABEL, PID_LABEL};
use crate::mesos_v1::messages::{
    CommandInfo, KillPolicy, Label, Labels, Reason, Source, TaskInfo, TaskState, TaskStatus,
};

/// The grace of a kill that names none, as with Mesos' own executors.
const KILL_GRACE: Duration = Duration::from_secs(3);

/// What an event leads to.
#[derive(Debug, PartialEq)]
pub(super) enum Reaction {
    Request(HostRequest),
    Report(Box<TaskStatus>),
    /// A task waits to be started.
    Wait,
}

/// The tasks that have not ended.
#[derive(Debug)]
pub(super) struct HostedTasks {
    executor_id: String,
    folder: PathBuf,
    tasks: HashMap<String, HostedTaskState>,
    /// The grace of kills of the host; `None` before its anchor was launched.
    anchor_grace: Option<Duration>,
    /// The agent has acknowledged that the anchor runs.
    is_anchor_known: bool,
    /// The starts that wait for that. If the host were killed before, its tasks would count as never started.
    waiting: Vec<HostRequest>,
    /// The host was asked to end.
    is_finishing: bool,
    /// The framework understands that a task is being killed.
    pub(super) knows_killing: bool,
}

#[derive(Debug)]
struct HostedTaskState {
    grace: Duration,
    is_asked_to_end: bool,
    pid: Option<i32>,
}

impl HostedTasks {
    pub(super) fn new(environment: &ExecutorEnvironment) -> HostedTasks {
        HostedTasks {
            executor_id: environment.executor_id.clone(),
            folder: environment.directory.join(TASKS_FOLDER),
            tasks: HashMap::new(),
            anchor_grace: None,
            is_anchor_known: false,
            waiting: Vec::new(),
            is_finishing: false,
            knows_killing: false,
        }
    }

    pub(super) fn is_finishing(&self) -> bool {
        self.is_finishing
    }

    /// Whether nothing asks the host to end, and it has nothing to do: its anchor was killed before the host was ready.
    /// Agents launch it before the tasks that came with it.
    pub(super) fn is_abandoned(&self) -> bool {
        self.tasks.is_empty() && self.anchor_grace.is_none() && !self.is_finishing
    }

    /// The agent launches a task. What isn't a command, or is launched twice, isn't run.
    pub(super) fn launch(&mut self, task: &TaskInfo) -> Option<Reaction> {
        let id = task.task_id.value.clone();
        let grace = grace(task.kill_policy.as_ref()).unwrap_or(KILL_GRACE);
        if id == self.executor_id {
            self.anchor_grace = Some(grace);
            return Some(self.report(&id, TaskState::Running, String::new()));
        }
        if self.tasks.contains_key(&id) {
            return None;
        }
        let Some((argv, environment)) = task.data.as_deref().and_then(command) else {
            let why = "its data is no command, which a host of tasks needs".to_owned();
            return Some(self.report(&id, TaskState::Error, why));
        };
        let state = HostedTaskState { grace, is_asked_to_end: false, pid: None };
        self.tasks.insert(id.clone(), state);
        let start = HostRequest::Start { task: id, argv, environment };
        if self.anchor_grace.is_some() && !self.is_anchor_known {
            self.waiting.push(start);
            return Some(Reaction::Wait);
        }
        Some(Reaction::Request(start))
    }

    /// The agent has acknowledged an update of a task. If it is the anchor's, the tasks that wait for that are started.
    pub(super) fn acknowledged(&mut self, id: &str) -> Vec<Reaction> {
        if id != self.executor_id {
            return Vec::new();
        }
        self.is_anchor_known = true;
        std::mem::take(&mut self.waiting).into_iter().map(Reaction::Request).collect()
    }

    /// The agent asks a task to end, or the whole host.
    pub(super) fn kill(&mut self, id: &str, policy: Option<&KillPolicy>) -> Vec<Reaction> {
        if id == self.executor_id {
            let grace = grace(policy).or(self.anchor_grace).unwrap_or(KILL_GRACE);
            return self.finish(grace);
        }
        let starts = |it: &HostRequest| matches!(it, HostRequest::Start { task, .. } if task == id);
        if let Some(at) = self.waiting.iter().position(starts) {
            self.waiting.remove(at);
            self.tasks.remove(id);
            return vec![self.report(id, TaskState::Killed, "killed before it began".to_owned())];
        }
        let Some(task) = self.tasks.get_mut(id) else { return Vec::new() };
        let is_first = !std::mem::replace(&mut task.is_asked_to_end, true);
        let grace = grace(policy).unwrap_or(task.grace);
        let kill = Reaction::Request(HostRequest::Kill { task: id.to_owned(), grace });
        if is_first && self.knows_killing {
            return vec![kill, self.report(id, TaskState::Killing, "asked to end".to_owned())];
        }
        vec![kill]
    }

    /// The host is to end. Tasks that wait to be started end at once.
    pub(super) fn finish(&mut self, grace: Duration) -> Vec<Reaction> {
        self.is_finishing = true;
        let mut reactions = vec![Reaction::Request(HostRequest::Finish { grace })];
        for start in std::mem::take(&mut self.waiting) {
            let HostRequest::Start { task, .. } = start else { continue };
            self.tasks.remove(&task);
            let message = "the host ended before it began".to_owned();
            let mut status = self.status(&task, TaskState::Failed, message);
            status.reason = Some(Reason::ExecutorTerminated.into());
            reactions.push(Reaction::Report(Box::new(status)));
        }
        reactions
    }

    /// What is reported when all tasks have ended.
    pub(super) fn anchor_end(&mut self) -> Option<Reaction> {
        self.anchor_grace.take()?;
        let id = self.executor_id.clone();
        Some(self.report(&id, TaskState::Killed, "the host was asked to end".to_owned()))
    }

    /// Something has become of a task.
    pub(super) fn follow(&mut self, report: HostReport) -> Option<Reaction> {
        match report {
            HostReport::Ready { .. } | HostReport::Pong | HostReport::Swept => None,
            HostReport::Started { task, pid, .. } => {
                let state = self.tasks.get_mut(&task)?;
                state.pid = Some(pid);
                let folder = self.folder.join(&task).display().to_string();
                let message = format!("process {pid}, output in {folder}");
                let mut status = self.status(&task, TaskState::Running, message);
                let label = |key: &str, value| Label { key: key.to_owned(), value: Some(value) };
                let labels = vec![label(PID_LABEL, pid.to_string()), label(FOLDER_LABEL, folder)];
                status.labels = Some(Labels { labels });
                Some(Reaction::Report(Box::new(status)))
            }
            HostReport::NotStarted { task, why, is_busy } => {
                self.tasks.remove(&task)?;
                let state = if is_busy { TaskState::Dropped } else { TaskState::Failed };
                Some(self.report(&task, state, why))
            }
            HostReport::Ended { task, exit } => {
                let state = self.tasks.remove(&task)?;
                let (state, reason) = match exit {
                    _ if state.is_asked_to_end => (TaskState::Killed, None),
                    // The end of the host is no failure of its tasks, and however they end, they may not have done
                    // their work.
                    _ if self.is_finishing => {
                        (TaskState::Failed, Some(Reason::ExecutorTerminated.into()))
                    }
                    Exit::Code(0) => (TaskState::Finished, None),
                    _ => (TaskState::Failed, None),
                };
                let mut status = self.status(&task, state, exit.as_mesos_says());
                status.reason = reason;
                Some(Reaction::Report(Box::new(status)))
            }
        }
    }

    /// The tasks that run, in JSON: the answer to a message of the framework.
    pub(super) fn list(&self) -> Vec<u8> {
        let mut tasks: Vec<_> = self.tasks.iter().collect();
        tasks.sort_by_key(|(id, _)| *id);
        let task = |(id, state): (&String, &HostedTaskState)| {
            let folder = self.folder.join(id).display().to_string();
            json!({"task": id, "pid": state.pid, "folder": folder})
        };
        let tasks: Vec<_> = tasks.into_iter().map(task).collect();
        json!({ "tasks": tasks }).to_string().into_bytes()
    }

    fn report(&self, task: &str, state: TaskState, message: String) -> Reaction {
        Reaction::Report(Box::new(self.status(task, state, message)))
    }

    fn status(&self, task: &str, state: TaskState, message: String) -> TaskStatus {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        TaskStatus {
            task_id: task.into(),
            executor_id: Some(self.executor_id.as_str().into()),
            state: state.into(),
            source: Some(Source::Executor.into()),
            timestamp: Some(since.as_secs_f64()),
            message: (!message.is_empty()).then_some(message),
            ..TaskStatus::default()
        }
    }
}

fn grace(policy: Option<&KillPolicy>) -> Option<Duration> {
    let nanoseconds = policy?.grace_period.as_ref()?.nanoseconds;
    Some(Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or_default()))
}

/// A program with its arguments, and its environment.
type HostedCommand = (Vec<String>, Vec<(String, String)>);

/// The command in a task's data.
fn command(data: &[u8]) -> Option<HostedCommand> {
    let command = CommandInfo::decode(data).ok()?;
    let value = command.value.filter(|value| !value.is_empty())?;
    let argv = match command.shell.unwrap_or(true) {
        true => vec!["/bin/sh".to_owned(), "-c".to_owned(), value],
        // The first argument is the program's own name.
        false => std::iter::once(value).chain(command.arguments.into_iter().skip(1)).collect(),
    };
    let variables = command.environment.unwrap_or_default().variables.into_iter();
    let environment = variables.map(|it| (it.name, it.value.unwrap_or_default())).collect();
    Some((argv, environment))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesos_v1::messages::{DurationInfo, Environment, Variable};

    fn tasks() -> HostedTasks {
        let variable = |name: &str| {
            let value = match name {
                "MESOS_SLAVE_PID" => "slave(1)@127.0.0.1:5051",
                "MESOS_EXECUTOR_ID" => "h",
                "MESOS_DIRECTORY" => "/sandbox",
                "MESOS_FRAMEWORK_ID" => "F",
                _ => return None,
            };
            Some(value.to_owned())
        };
        HostedTasks::new(&ExecutorEnvironment::read(variable).unwrap())
    }

    fn task(id: &str, command: &CommandInfo) -> TaskInfo {
        let data = Some(command.encode_to_vec());
        TaskInfo { task_id: id.into(), data, ..TaskInfo::default() }
    }

    fn argv(words: &[&str]) -> CommandInfo {
        CommandInfo {
            shell: Some(false),
            value: Some(words[0].to_owned()),
            arguments: words.iter().map(|word| (*word).to_owned()).collect(),
            ..CommandInfo::default()
        }
    }

    fn status(reaction: Option<Reaction>) -> TaskStatus {
        match reaction {
            Some(Reaction::Report(status)) => *status,
            other => panic!("no report: {other:?}"),
        }
    }

    fn started(tasks: &mut HostedTasks, id: &str) -> TaskStatus {
        tasks.launch(&task(id, &argv(&["true"])));
        status(tasks.follow(HostReport::Started { task: id.into(), pid: 7, folder: "".into() }))
    }

    fn ended(tasks: &mut HostedTasks, id: &str, exit: Exit) -> TaskStatus {
        status(tasks.follow(HostReport::Ended { task: id.into(), exit }))
    }

    /// Goal: commands run as without a host. Method: a list with an environment, a line of shell, nonsense, nothing.
    #[test]
    fn data_is_a_command() {
        let mut with_environment = argv(&["sh", "-c", "exit 3"]);
        let variable =
            Variable { name: "A".into(), value: Some("b".into()), ..Variable::default() };
        with_environment.environment = Some(Environment { variables: vec![variable] });
        let line = CommandInfo { value: Some("exit 3".into()), ..CommandInfo::default() };
        for (command, program, environment) in [
            (with_environment, "sh", vec![("A".to_owned(), "b".to_owned())]),
            (line, "/bin/sh", vec![]),
        ] {
            let reaction = tasks().launch(&task("t", &command));
            let argv = [program, "-c", "exit 3"].map(str::to_owned).to_vec();
            let start = HostRequest::Start { task: "t".into(), argv, environment };
            assert_eq!(reaction, Some(Reaction::Request(start)));
        }
        for data in
            [None, Some(vec![]), Some(vec![255; 9]), Some(CommandInfo::default().encode_to_vec())]
        {
            let task = TaskInfo { task_id: "t".into(), data, ..TaskInfo::default() };
            assert_eq!(status(tasks().launch(&task)).state(), TaskState::Error);
        }
    }

    /// Goal: each end is told apart. Method: an end by itself, one on request, one with the host, one without a start.
    #[test]
    fn ends_are_told_apart() {
        let mut tasks = tasks();
        let running = started(&mut tasks, "a");
        assert_eq!(running.message.as_deref(), Some("process 7, output in /sandbox/tasks/a"));
        let failed = ended(&mut tasks, "a", Exit::Code(3));
        assert_eq!((failed.state(), failed.reason), (TaskState::Failed, None));
        assert_eq!(failed.message.as_deref(), Some("Command exited with status 3"));
        assert_eq!(tasks.follow(HostReport::Ended { task: "a".into(), exit: Exit::Code(0) }), None);
        started(&mut tasks, "b");
        tasks.kill("b", None);
        assert_eq!(ended(&mut tasks, "b", Exit::Signal(15)).state(), TaskState::Killed);
        tasks.launch(&task("busy", &argv(&["true"])));
        let busy = HostReport::NotStarted { task: "busy".into(), why: "w".into(), is_busy: true };
        assert_eq!(status(tasks.follow(busy)).state(), TaskState::Dropped);
        started(&mut tasks, "c");
        started(&mut tasks, "d");
        tasks.finish(Duration::ZERO);
        // However it ends then, it may not have done its work.
        for (id, exit) in [("c", Exit::Signal(15)), ("d", Exit::Code(0))] {
            let lost = ended(&mut tasks, id, exit);
            let expected = (TaskState::Failed, Reason::ExecutorTerminated);
            assert_eq!((lost.state(), lost.reason()), expected, "{id}");
        }
    }

    /// Goal: kills have the grace of the call, else the task's, else Mesos' default; that of the anchor ends the host;
    /// the framework hears of the first one. Method: such kills, of a task, an unknown one, and the anchor.
    #[test]
    fn kills_have_their_grace() {
        let policy = |seconds: i64| KillPolicy {
            grace_period: Some(DurationInfo { nanoseconds: seconds * 1_000_000_000 }),
        };
        let mut tasks = tasks();
        tasks.knows_killing = true;
        let mut patient = task("p", &argv(&["true"]));
        patient.kill_policy = Some(policy(60));
        tasks.launch(&patient);
        let kill = |seconds| {
            let grace = Duration::from_secs(seconds);
            Reaction::Request(HostRequest::Kill { task: "p".into(), grace })
        };
        let first = tasks.kill("p", None);
        assert_eq!((first.len(), &first[0]), (2, &kill(60)));
        assert_eq!(tasks.kill("p", Some(&policy(1))), [kill(1)]);
        assert_eq!(tasks.kill("q", None), []);
        let mut anchor = task("h", &argv(&["true"]));
        anchor.kill_policy = Some(policy(9));
        assert_eq!(status(tasks.launch(&anchor)).state(), TaskState::Running);
        let finish = |seconds| {
            [Reaction::Request(HostRequest::Finish { grace: Duration::from_secs(seconds) })]
        };
        assert_eq!(tasks.kill("h", None), finish(9));
        assert_eq!(tasks.kill("h", Some(&policy(-1))), finish(0));
        assert_eq!(status(tasks.anchor_end()).state(), TaskState::Killed);
        assert_eq!(tasks.anchor_end(), None);
    }

    /// Goal: tasks begin once the agent knows that the anchor runs, in their order; those that are killed before, or
    /// whose host is to end, end without having begun. Method: four tasks behind the anchor, and such events.
    #[test]
    fn tasks_wait_for_the_anchor() {
        let anchored = |ids: [&str; 2]| {
            let mut tasks = tasks();
            tasks.launch(&task("h", &argv(&["true"])));
            for id in ids {
                assert_eq!(tasks.launch(&task(id, &argv(&["true"]))), Some(Reaction::Wait));
                assert_eq!(tasks.launch(&task(id, &argv(&["true"]))), None);
            }
            tasks
        };
        let mut host = anchored(["b", "a"]);
        assert_eq!(host.acknowledged("a"), []);
        let started = |reaction| match reaction {
            Reaction::Request(HostRequest::Start { task, .. }) => task,
            other => panic!("no start: {other:?}"),
        };
        let begun: Vec<String> = host.acknowledged("h").into_iter().map(started).collect();
        assert_eq!(begun, ["b", "a"]);
        assert_eq!(host.acknowledged("h"), []);
        assert_eq!(started(host.launch(&task("c", &argv(&["true"]))).unwrap()), "c");

        let mut host = anchored(["a", "b"]);
        let mut killed = host.kill("a", None);
        assert_eq!(status(killed.pop()).state(), TaskState::Killed);
        assert_eq!((killed, host.kill("a", None)), (vec![], vec![]));
        let mut ended = host.finish(Duration::ZERO);
        let lost = status(ended.pop());
        assert_eq!((&*lost.task_id.value, lost.reason()), ("b", Reason::ExecutorTerminated));
        assert_eq!(ended.len(), 1);
        assert_eq!(host.acknowledged("h"), []);
    }

    /// Goal: a host whose anchor was killed before it was ready ends with its last task, and no other does. Method: a
    /// task that ends, without an anchor and with one.
    #[test]
    fn a_host_without_an_anchor_is_abandoned() {
        let mut host = tasks();
        started(&mut host, "a");
        assert!(!host.is_abandoned());
        ended(&mut host, "a", Exit::Code(0));
        assert!(host.is_abandoned());
        host.launch(&task("h", &argv(&["true"])));
        assert!(!host.is_abandoned());
    }

    /// Goal: the list names the tasks that run. Method: two of three.
    #[test]
    fn tasks_are_listed() {
        let mut tasks = tasks();
        for id in ["b", "c", "a"] {
            started(&mut tasks, id);
        }
        ended(&mut tasks, "c", Exit::Code(0));
        let list: serde_json::Value = serde_json::from_slice(&tasks.list()).unwrap();
        let expected =
            |id: &str| json!({"task": id, "pid": 7, "folder": format!("/sandbox/tasks/{id}")});
        assert_eq!(list, json!({"tasks": [expected("a"), expected("b")]}));
    }
}
