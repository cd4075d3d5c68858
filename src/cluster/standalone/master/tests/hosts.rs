//! Hosts of tasks, as a framework describes them, and the tasks in them.

use prost::Message as _;

use super::cases::{offer_of, with_worker};
use super::task_infos::task_info;
use super::world::TestWorld;
use crate::cluster::standalone::master::{MasterAction, StandaloneMaster};
use crate::cluster::standalone::protocol::{
    ExecutorKey, ExecutorUpdate, LaunchHosting, ReportedState, WorkerCall,
};
use crate::mesos_v1::host_labels::{EXHAUSTED_LABEL, FOLDER_LABEL, HOST_LABEL, PID_LABEL};
use crate::mesos_v1::messages::{
    CommandInfo, ExecutorInfo, ExecutorType, Label, Labels, Reason, TaskInfo, TaskState, TaskStatus,
};

/// The executor that a host is.
fn executor(host: &str) -> ExecutorInfo {
    let label = Label { key: HOST_LABEL.to_owned(), value: None };
    ExecutorInfo {
        r#type: Some(ExecutorType::Custom.into()),
        executor_id: host.into(),
        command: Some(command("serve")),
        labels: Some(Labels { labels: vec![label] }),
        ..ExecutorInfo::default()
    }
}

fn command(line: &str) -> CommandInfo {
    CommandInfo { value: Some(line.to_owned()), ..CommandInfo::default() }
}

/// A host of half a core and 200 MiB, on the offer of this framework.
fn host(world: &TestWorld, framework: usize, id: &str) -> TaskInfo {
    let offer = offer_of(world, framework).unwrap();
    let mut host = task_info(id, &world.frameworks[framework].offers[&offer], 0.25, None);
    let resources = host.resources.clone();
    host.command = None;
    host.executor = Some(ExecutorInfo { resources, ..executor(id) });
    host
}

/// A task of half a core in a host.
fn hosted(world: &TestWorld, framework: usize, id: &str, host: &str) -> TaskInfo {
    let offer = offer_of(world, framework).unwrap();
    let mut task = task_info(id, &world.frameworks[framework].offers[&offer], 0.5, None);
    task.data = task.command.take().as_ref().map(CommandInfo::encode_to_vec);
    task.executor = Some(executor(host));
    task
}

fn accept(world: &mut TestWorld, framework: usize, tasks: Vec<TaskInfo>) {
    let offer = offer_of(world, framework).unwrap();
    world.accept_tasks(framework, &offer, tasks);
}

/// The cores that are used on the worker, in thousandths.
fn used_cores(world: &TestWorld) -> u64 {
    world.master.overview().workers[0].used.cpus.thousandths()
}

fn key(world: &TestWorld, framework: usize, id: &str) -> ExecutorKey {
    ExecutorKey::new(world.frameworks[framework].id.clone().unwrap(), id)
}

/// What a master tells of its framework's task if its worker sends this update.
fn told(master: &mut StandaloneMaster, connection: u64, update: ExecutorUpdate) -> TaskStatus {
    master.worker_calls(connection, WorkerCall::Update(update), super::cases::seconds(1)).unwrap();
    let status = |action: MasterAction| match action {
        MasterAction::TellFramework { event, .. } => Some(event.update?.status),
        _ => None,
    };
    master.take_actions().into_iter().find_map(status).unwrap()
}

/// Goal: a host takes what its task and its executor ask for, once, and a task in it only its own; the worker is told
/// which is which, with the commands of both. Method: a host with two tasks in one accept, a third one later; what is
/// launched, and what is used then.
#[test]
fn hosts_and_their_tasks_are_launched() {
    let mut world = with_worker(1);
    let tasks =
        vec![host(&world, 1, "h"), hosted(&world, 1, "a", "h"), hosted(&world, 1, "b", "h")];
    accept(&mut world, 1, tasks);
    let launched = |world: &TestWorld, id: &str| world.launches[id].clone();
    let of_host = launched(&world, "h");
    assert_eq!(of_host.hosting, LaunchHosting::Host);
    assert_eq!(of_host.command.argv, ["/bin/sh", "-c", "serve"]);
    assert_eq!(of_host.resources.cpus.thousandths(), 500);
    assert_eq!(of_host.resources.mem.thousandths(), 200_000);
    for id in ["a", "b"] {
        let task = launched(&world, id);
        assert_eq!(task.hosting, LaunchHosting::In("h".to_owned()));
        assert_eq!(task.command.argv, ["/bin/sh", "-c", "true"]);
        assert_eq!(task.resources.cpus.thousandths(), 500);
    }
    assert_eq!(used_cores(&world), 1500);
    world.pass(super::cases::seconds(10));
    let task = hosted(&world, 1, "later", "h");
    accept(&mut world, 1, vec![task]);
    assert_eq!(launched(&world, "later").hosting, LaunchHosting::In("h".to_owned()));
    assert_eq!(used_cores(&world), 2000);
}

/// Goal: what is no host of tasks, or none that a worker can run, ends with a sentence, and takes nothing. Method: such
/// tasks, and a worker of an earlier version, which would run a task outside of its host.
#[test]
fn what_is_no_host_is_refused() {
    let refused = |is_old: bool, change: &dyn Fn(&mut TaskInfo, bool)| -> Vec<String> {
        let mut world = with_worker(1);
        if is_old {
            world.disconnect_worker(0);
            world.workers[0].is_old = true;
            world.connect_worker(0);
        }
        let mut tasks = vec![host(&world, 1, "h"), hosted(&world, 1, "a", "h")];
        tasks.iter_mut().for_each(|task| change(task, task.data.is_none()));
        accept(&mut world, 1, tasks);
        let messages = |id: &str| world.frameworks[1].messages.get(id).cloned();
        let errors = |id: &&str| world.frameworks[1].states.get(*id) == Some(&TaskState::Error);
        let ids = ["h", "a"].into_iter().filter(errors);
        ids.map(|id| messages(id).unwrap_or_default()).collect()
    };
    let earlier = "its worker is of an earlier version, which has no hosts of tasks";
    assert_eq!(refused(true, &|_, _| {}), [earlier, earlier]);
    assert_eq!(refused(false, &|_, _| {}), [] as [&str; 0]);
    let custom = "the task asks for a custom executor, which workers don't offer";
    let unlabelled = |task: &mut TaskInfo, _: bool| {
        task.executor.as_mut().unwrap().labels = None;
    };
    assert_eq!(refused(false, &unlabelled), [custom, custom]);
    let default = |task: &mut TaskInfo, _: bool| {
        task.executor.as_mut().unwrap().r#type = Some(ExecutorType::Default.into());
    };
    assert_eq!(refused(false, &default), [custom, custom]);
    let with_command = |task: &mut TaskInfo, _: bool| task.command = Some(command("true"));
    assert_eq!(
        refused(false, &with_command),
        [
            "the host has a command beside its executor's, or a container",
            "a task in a host must have its command as data",
        ]
    );
    let with_data = |task: &mut TaskInfo, is_host: bool| match is_host {
        true => task.executor.as_mut().unwrap().command = None,
        false => task.data = Some(vec![255; 9]),
    };
    let said = refused(false, &with_data);
    assert_eq!(said[0], "the host has no command");
    assert!(said[1].starts_with("the task's data is no command: "), "{said:?}");
    let with_nothing = |task: &mut TaskInfo, is_host: bool| match is_host {
        true => task.executor.as_mut().unwrap().resources[0].name = "wits".to_owned(),
        false => task.data = Some(Vec::new()),
    };
    assert_eq!(
        refused(false, &with_nothing),
        ["the task asks for wits, which isn't offered", "the task's command has no value"]
    );
}

/// Goal: a framework hears of a task in a host as it does on Mesos: the executor is the host's, labels have process and
/// folder; one that is lost with its host is gone, and has not failed. Method: updates of a task, for a framework that
/// knows what gone means, and for one that doesn't.
#[test]
fn tasks_that_are_lost_with_their_host_are_gone() {
    for (framework, lost) in [(1, TaskState::Gone), (0, TaskState::Lost)] {
        let mut world = with_worker(framework);
        let tasks = ["h", "a", "b"].map(|id| match id {
            "h" => host(&world, framework, id),
            id => hosted(&world, framework, id, "h"),
        });
        accept(&mut world, framework, tasks.into());
        let connection = world.workers[0].connection.unwrap();
        let update = |id: &str, number: u64, state| ExecutorUpdate {
            host: Some("h".to_owned()),
            ..ExecutorUpdate::new(key(&world, framework, id), format!("{number:032x}"), state, 1.0)
        };
        let running = ExecutorUpdate {
            pid: Some(7),
            folder: Some("/work/a".to_owned()),
            ..update("a", 1, ReportedState::Running)
        };
        let failed = update("b", 2, ReportedState::Failed);
        let gone = ExecutorUpdate { is_lost: true, ..update("a", 3, ReportedState::Failed) };
        let master = &mut world.master;
        let status = told(master, connection, running);
        assert_eq!(
            (status.state(), &*status.executor_id.unwrap().value),
            (TaskState::Running, "h")
        );
        let labels = status.labels.unwrap().labels;
        let labels: Vec<(&str, &str)> =
            labels.iter().map(|it| (&*it.key, it.value.as_deref().unwrap())).collect();
        assert_eq!(labels, [(PID_LABEL, "7"), (FOLDER_LABEL, "/work/a")]);
        let status = told(master, connection, failed);
        assert_eq!((status.state(), status.labels), (TaskState::Failed, None));
        assert_eq!(told(master, connection, gone).state(), lost);
    }
}

/// Goal: a framework is told that a worker's machine had nothing left for an executor, whose failure counts as before.
/// Method: the update of a worker; the state and the label that are told.
#[test]
fn exhausted_workers_are_told() {
    let mut world = with_worker(1);
    let tasks = vec![host(&world, 1, "h")];
    accept(&mut world, 1, tasks);
    let connection = world.workers[0].connection.unwrap();
    let failed =
        ExecutorUpdate::new(key(&world, 1, "h"), "a".repeat(32), ReportedState::Failed, 1.0);
    let update = ExecutorUpdate { is_exhausted: true, ..failed };
    let status = told(&mut world.master, connection, update);
    let labels = status.labels.as_ref().unwrap().labels.iter().map(|it| &*it.key);
    assert_eq!((status.state(), labels.collect()), (TaskState::Failed, vec![EXHAUSTED_LABEL]));
}

/// Goal: a master that is started again takes over hosts and their tasks, and what was lost meanwhile is gone, not
/// failed. Method: a host with two tasks, of which one is lost while no master is there; a framework that may be away.
#[test]
fn hosts_survive_their_master() {
    let mut world = with_worker(1);
    world.frameworks[1].failover = 1e6;
    world.subscribe_framework(1);
    let tasks =
        vec![host(&world, 1, "h"), hosted(&world, 1, "a", "h"), hosted(&world, 1, "b", "h")];
    accept(&mut world, 1, tasks);
    world.restart_master();
    let lost = key(&world, 1, "a");
    let update = ExecutorUpdate {
        is_lost: true,
        host: Some("h".to_owned()),
        ..ExecutorUpdate::new(lost.clone(), "f".repeat(32), ReportedState::Failed, 1.0)
    };
    let held = world.workers[0].running.get_mut(&lost).unwrap();
    (held.state, held.is_lost) = (ReportedState::Failed, true);
    world.workers[0].unacknowledged.push(update);
    world.subscribe_framework(1);
    world.connect_worker(0);
    assert_eq!(world.master.counts().executors, 2);
    assert_eq!(world.frameworks[1].states.get("a"), Some(&TaskState::Gone));
    assert_eq!(used_cores(&world), 1000);
}

/// Goal: tasks of a worker that is drained end as the drain's, whether each was asked to end or its host was first.
/// Method: a drain; one task was killed and one is lost.
#[test]
fn drains_end_hosts() {
    let mut world = with_worker(1);
    let tasks =
        vec![host(&world, 1, "h"), hosted(&world, 1, "a", "h"), hosted(&world, 1, "b", "h")];
    accept(&mut world, 1, tasks);
    world.drain_worker(0);
    world.report(0, &key(&world, 1, "a"), ReportedState::Killed);
    world.deliver();
    assert_eq!(world.frameworks[1].reasons.get("a"), Some(&Reason::AgentDraining));
    let connection = world.workers[0].connection.unwrap();
    let lost = ExecutorUpdate::new(key(&world, 1, "b"), "e".repeat(32), ReportedState::Failed, 1.0);
    let status = told(&mut world.master, connection, ExecutorUpdate { is_lost: true, ..lost });
    assert_eq!(status.state(), TaskState::Gone);
}
