//! The life of executors: starts, ends, kills, and what survives the loss of a connection.

use std::fs;

use offermill::cluster::standalone::protocol::{ReportedState, WorkerCall, WorkerEvent};
use offermill::cluster::standalone::worker::{WorkerEnd, WorkerNotice};

use crate::fake::FakeMaster;
use crate::{TestWorker, key, launch, launch_of};

/// Goal: an executor runs in its sandbox with its variables, its end is reported at once with its exit status, and a
/// launch that fails is reported with the reason. Method: one that ends by itself, one that a signal ends, a program
/// that isn't there, and an id that is no name of a folder.
#[test]
fn executors_run_and_their_ends_are_reported() {
    let master = FakeMaster::new();
    let worker = TestWorker::start(&[master.port()]);
    let (mut connection, subscribe) = master.register("w-1", 1);
    assert_eq!((subscribe.id, subscribe.term, subscribe.executors), (None, 0, Vec::new()));
    assert_eq!(subscribe.resources.cpus.thousandths(), 64_000);
    assert_eq!(subscribe.resources.mem.thousandths(), 1_024_000);

    connection.send(&launch("e1", 1, 1, "echo \"$GREETING\"; pwd; echo no >&2; exit 3"));
    connection.acknowledge(ReportedState::Starting);
    let running = connection.acknowledge(ReportedState::Running);
    assert!(running.pid.is_some(), "{running:?}");
    let ended = connection.acknowledge(ReportedState::Failed);
    assert_eq!(ended.message.as_deref(), Some("Command exited with status 3"));
    let sandbox = worker.folder.path().join("sandboxes/framework-1/w-1/e1");
    let path = fs::canonicalize(&sandbox).unwrap();
    let stdout = fs::read_to_string(sandbox.join("stdout")).unwrap();
    assert_eq!(stdout, format!("hello\n{}\n", path.display()));
    assert_eq!(fs::read_to_string(sandbox.join("stderr")).unwrap(), "no\n");

    connection.send(&launch("e2", 2, 1, "kill -9 $$"));
    connection.acknowledge(ReportedState::Starting);
    connection.acknowledge(ReportedState::Running);
    let ended = connection.acknowledge(ReportedState::Failed);
    assert_eq!(ended.message.as_deref(), Some("Command terminated with signal Killed"));

    connection.send(&launch_of("e3", 3, 1, vec!["/no/such/program".to_owned()]));
    connection.acknowledge(ReportedState::Starting);
    let ended = connection.acknowledge(ReportedState::Failed).message.unwrap();
    assert!(ended.contains("\"/no/such/program\" not found"), "{ended}");

    connection.send(&launch("..", 4, 1, "true"));
    connection.acknowledge(ReportedState::Starting);
    let ended = connection.acknowledge(ReportedState::Failed).message.unwrap();
    assert!(ended.contains("\"..\" is not allowed as the name of a folder"), "{ended}");

    connection.send(&launch("e5", 5, 1, "true"));
    connection.acknowledge(ReportedState::Starting);
    connection.acknowledge(ReportedState::Running);
    connection.acknowledge(ReportedState::Finished);

    worker.leave(connection);
}

/// Goal: a kill asks first and then uses force, and a framework's shutdown ends all of its executors. Method: an
/// executor that ends when it is asked, one that ignores it and has no time, and two of a framework.
#[test]
fn executors_are_ended_on_request() {
    let master = FakeMaster::new();
    let worker = TestWorker::start(&[master.port()]);
    let (mut connection, _) = master.register("w-1", 1);
    let lines = ["exec sleep 600", "trap '' TERM; echo ready; while :; do sleep 1; done"];
    for (sequence, line) in (1..).zip(lines) {
        let name = format!("e{sequence}");
        connection.send(&launch(&name, sequence, 1, line));
        connection.acknowledge(ReportedState::Starting);
        connection.acknowledge(ReportedState::Running);
    }
    connection.send(&WorkerEvent::Kill { key: key("e1"), term: 1, grace: 600_000 });
    connection.acknowledge(ReportedState::Killing);
    let ended = connection.acknowledge(ReportedState::Killed);
    assert_eq!(ended.message.as_deref(), Some("Command terminated with signal Terminated"));
    let stdout = worker.folder.path().join("sandboxes/framework-1/w-1/e2/stdout");
    while fs::read_to_string(&stdout).unwrap().is_empty() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    connection.send(&WorkerEvent::Kill { key: key("e2"), term: 1, grace: 50 });
    connection.acknowledge(ReportedState::Killing);
    let ended = connection.acknowledge(ReportedState::Killed);
    assert_eq!(ended.message.as_deref(), Some("Command terminated with signal Killed"));

    for (sequence, name) in [(3, "e3"), (4, "e4")] {
        connection.send(&launch(name, sequence, 1, "exec sleep 600"));
        connection.acknowledge(ReportedState::Starting);
        connection.acknowledge(ReportedState::Running);
    }
    let framework = "framework-1".to_owned();
    connection.send(&WorkerEvent::ShutdownFramework { framework, term: 1 });
    let mut states: Vec<_> = (0..4).map(|_| connection.update().state).collect();
    states.sort_by_key(|state| *state == ReportedState::Killed);
    let (killing, killed) = (ReportedState::Killing, ReportedState::Killed);
    assert_eq!(states, [killing, killing, killed, killed]);
    connection.send(&launch("e5", 5, 1, "true"));
    assert_eq!(connection.update().state, ReportedState::Dropped);
}

/// Goal: the loss of the connection ends no executor and loses no update, and the same launch is done once. Method: an
/// executor appends to a file when it starts; its launch comes twice, and again after the connection was lost together
/// with the acknowledgements. Another executor ends while there is no connection.
#[test]
fn executors_survive_the_connection() {
    let master = FakeMaster::new();
    let worker = TestWorker::start(&[master.port()]);
    let (mut connection, first) = master.register("w-1", 3);
    let starts = worker.folder.path().join("starts");
    let end = worker.folder.path().join("end");
    let line = format!("echo started >>{}; exec sleep 600", starts.display());
    let short = format!("while [ ! -e {} ]; do sleep 0.02; done; echo x; exit 4", end.display());
    for event in [
        launch("e1", 1, 3, &line),
        launch("e1", 1, 3, &line),
        launch("e1", 2, 3, &line),
        launch("e2", 3, 3, &short),
    ] {
        connection.send(&event);
    }
    let mut states: Vec<_> = (0..4).map(|_| connection.update().state).collect();
    states.sort_by_key(|state| *state == ReportedState::Running);
    let (starting, running) = (ReportedState::Starting, ReportedState::Running);
    assert_eq!(states, [starting, starting, running, running]);
    drop(connection);

    // A master that isn't there for it: the connection is refused while the executor ends.
    let busy = master.accept();
    fs::write(&end, "").unwrap();
    let ended = |notice: &WorkerNotice| match notice {
        WorkerNotice::Executor(update) => update.state == ReportedState::Failed,
        _ => false,
    };
    while !worker.notices().iter().any(ended) {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    drop(busy);

    let (mut connection, again) = master.register("w-1", 3);
    assert_eq!((again.id.as_deref(), again.term), (Some("w-1"), 3));
    assert_eq!(again.session, first.session);
    let held: Vec<_> = again.executors.iter().map(|it| (&*it.key.executor, it.state)).collect();
    assert_eq!(held, [("e1", running), ("e2", ReportedState::Failed)]);
    // Which of the two was seen running first is open; each has its own updates in order.
    let mut states: Vec<_> =
        again.unacknowledged.iter().map(|it| (&*it.key.executor, it.state)).collect();
    states.sort_by_key(|(executor, _)| *executor);
    let all = [
        ("e1", starting),
        ("e1", running),
        ("e2", starting),
        ("e2", running),
        ("e2", ReportedState::Failed),
    ];
    assert_eq!(states, all);
    connection.send(&launch("e1", 1, 3, &line));
    for update in &again.unacknowledged {
        connection.send(&WorkerEvent::Ack { key: update.key.clone(), uuid: update.uuid.clone() });
    }
    connection.send(&WorkerEvent::Kill { key: key("e1"), term: 3, grace: 60_000 });
    connection.acknowledge(ReportedState::Killing);
    connection.acknowledge(ReportedState::Killed);
    assert_eq!(fs::read_to_string(&starts).unwrap(), "started\n");
    drop(connection);
    let (_connection, last) = master.register("w-1", 3);
    assert_eq!((last.executors.len(), last.unacknowledged.len()), (0, 0), "{last:?}");
}

/// Goal: a drained worker takes nothing, ends its executors and leaves. Method: a drain while an executor runs.
#[test]
fn a_drained_worker_leaves() {
    let master = FakeMaster::new();
    let worker = TestWorker::start(&[master.port()]);
    let (mut connection, _) = master.register("w-1", 1);
    connection.send(&launch("e1", 1, 1, "exec sleep 600"));
    connection.acknowledge(ReportedState::Starting);
    connection.acknowledge(ReportedState::Running);
    connection.send(&WorkerEvent::Drain { term: 1, grace: 60_000 });
    connection.send(&launch("e2", 2, 1, "true"));
    assert_eq!(connection.call(), WorkerCall::Leaving);
    let mut seen: Vec<_> = (0..3)
        .map(|_| {
            let update = connection.update();
            let (key, uuid) = (update.key.clone(), update.uuid.clone());
            connection.send(&WorkerEvent::Ack { key, uuid });
            update.state
        })
        .collect();
    seen.sort_by_key(|state| format!("{state:?}"));
    let (dropped, killed, killing) =
        (ReportedState::Dropped, ReportedState::Killed, ReportedState::Killing);
    assert_eq!(seen, [dropped, killed, killing]);
    assert_eq!(connection.call(), WorkerCall::Leave);
    drop(connection);
    assert_eq!(worker.wait(), WorkerEnd::Left { told: true, forced: false });
}
