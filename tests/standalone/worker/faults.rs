//! Masters that are dead, silent, slow, wrong or not the leader.

use std::time::Duration;

use offermill::cluster::standalone::protocol::{ReportedState, WorkerCall, WorkerEvent};
use offermill::cluster::standalone::worker::{WorkerEnd, WorkerNotice};
use offermill::launch::Secret;

use crate::fake::FakeMaster;
use crate::{TestWorker, launch};

/// A worker with short times and an executor that runs on, whose connection was lost.
fn worker_with_executor(master: &FakeMaster) -> TestWorker {
    let worker = TestWorker::with(&[master.port()], |config| {
        config.heartbeat = Duration::from_secs(1);
        config.call_timeout = Duration::from_secs(2);
    });
    let (mut connection, _) = master.register("w-1", 2);
    connection.send(&launch("e1", 1, 2, "exec sleep 600"));
    connection.acknowledge(ReportedState::Starting);
    connection.acknowledge(ReportedState::Running);
    worker
}

/// The worker registers, has its executor, ends it and leaves.
fn leave(master: &FakeMaster, worker: TestWorker) {
    let (mut connection, last) = master.register("w-1", 2);
    let held: Vec<_> = last.executors.iter().map(|it| (&*it.key.executor, it.state)).collect();
    assert_eq!(held, [("e1", ReportedState::Running)]);
    worker.stop();
    assert_eq!(connection.call(), WorkerCall::Leaving);
    connection.acknowledge(ReportedState::Killing);
    connection.acknowledge(ReportedState::Killed);
    assert_eq!(connection.call(), WorkerCall::Leave);
    drop(connection);
    assert_eq!(worker.wait(), WorkerEnd::Left { told: true, forced: false });
}

/// Goal: a worker registers again, with all that it holds, after attempts that failed. Method: masters that close the
/// connection, don't answer, and answer with errors.
#[test]
fn the_worker_comes_back_after_failed_attempts() {
    let master = FakeMaster::new();
    let worker = worker_with_executor(&master);
    drop(master.accept());
    // To the worker this is half-open: its request was taken, and nothing comes.
    master.accept().closed();
    for status in ["500 Internal Server Error", "503 Service Unavailable", "404 Not Found"] {
        master.accept().answer(status, "", "x");
    }
    leave(&master, worker);
}

/// Goal: a worker ends a connection on which it is sent what it can't read, obeys nothing of that, and registers again
/// with all that it holds. Method: garbage, and records that are empty, too long or no messages.
#[test]
fn the_worker_comes_back_after_garbage() {
    let master = FakeMaster::new();
    let worker = worker_with_executor(&master);
    for text in ["zzz", "0\n", "5\nhello", "9999999999999999999999\n", "18\n{\"type\":\"UNKNOWN\"}"]
    {
        let (mut connection, held) = master.register("w-1", 2);
        assert_eq!(held.executors.len(), 1, "before {text:?}");
        connection.raw(text);
        connection.closed();
    }
    leave(&master, worker);
}

/// Goal: a master that falls silent, in a record or between two, counts as dead. Method: a record that never ends, no
/// record after the registration, a connection that is cut in a record, and a first message that answers nothing.
#[test]
fn the_worker_comes_back_after_silence() {
    let master = FakeMaster::new();
    let worker = worker_with_executor(&master);
    for text in ["20\n{\"type\":\"HEARTBEAT\"}100\n{\"type\"", ""] {
        let (mut connection, held) = master.register("w-1", 2);
        assert_eq!(held.executors.len(), 1, "before {text:?}");
        connection.raw(text);
        connection.closed();
    }
    let (mut connection, _) = master.register("w-1", 2);
    connection.raw("20\n{\"type\":");
    drop(connection);
    let mut connection = master.accept();
    assert!(matches!(connection.call(), WorkerCall::Subscribe(_)));
    connection.open();
    connection.send(&launch("e2", 1, 2, "true"));
    connection.closed();
    leave(&master, worker);
}

/// Goal: heartbeats keep a connection open however little else happens. Method: heartbeats for longer than the silence
/// that ends a connection, then a command over the same connection.
#[test]
fn heartbeats_keep_a_connection() {
    let master = FakeMaster::new();
    let _worker = TestWorker::with(&[master.port()], |config| {
        config.heartbeat = Duration::from_secs(1);
    });
    let (mut connection, _) = master.register("w-1", 1);
    for _ in 0..6 {
        connection.heartbeat();
        connection.send(&WorkerEvent::Heartbeat);
    }
    connection.send(&launch("e1", 1, 1, "true"));
    connection.acknowledge(ReportedState::Starting);
}

/// Goal: a master with a lower term is not obeyed, also after the worker started anew. Method: a leader with term 7;
/// then an old one registers the worker, and commands something under its term; then the leader is back.
#[test]
fn an_old_leader_is_not_obeyed() {
    let master = FakeMaster::new();
    let worker = TestWorker::start(&[master.port()]);
    let (connection, _) = master.register("w-1", 7);
    drop(connection);
    let (mut connection, _) = master.register("w-1", 6);
    connection.send(&launch("e1", 1, 6, "true"));
    connection.closed();
    let (mut connection, held) = master.register("w-1", 7);
    assert_eq!((held.term, held.executors.len()), (7, 0));
    connection.send(&launch("e2", 1, 6, "true"));
    connection.closed();
    let (mut connection, held) = master.register("w-1", 8);
    assert_eq!((held.term, held.executors.len()), (7, 0));
    worker.stop();
    assert_eq!(connection.call(), WorkerCall::Leaving);
    assert_eq!(connection.call(), WorkerCall::Leave);
    drop(connection);
    let folder = worker.folder.path().to_owned();
    let kept = std::fs::read_to_string(folder.join("worker.json")).unwrap();
    assert!(kept.contains("\"term\":8") && kept.contains("\"w-1\""), "{kept}");
    assert_eq!(worker.wait(), WorkerEnd::Left { told: true, forced: false });
}

/// Goal: the token is sent in the header, and a master that doesn't accept it ends the worker before it ever
/// registered, with a sentence without the token; later, the worker keeps trying. Method: 401 first; 401 after a
/// registration.
#[test]
fn a_wrong_token_is_refused() {
    const TOKEN: &str = "correct-horse-battery-staple";
    let token = |config: &mut offermill::cluster::standalone::worker::WorkerConfig| {
        config.token = Some(Secret::new(TOKEN));
    };
    let master = FakeMaster::new();
    let worker = TestWorker::with(&[master.port()], token);
    let connection = master.accept();
    let authorization = format!("authorization: Bearer {TOKEN}\r\n");
    assert!(connection.head.starts_with("POST /api/v1/worker HTTP/1.1\r\n"));
    assert!(connection.head.contains(&authorization), "{}", connection.head);
    connection.answer("401 Unauthorized", "", &format!("no such token: {TOKEN}"));
    let WorkerEnd::Refused { why } = worker.wait() else { panic!("it left") };
    assert!(why.contains("it doesn't accept the token") && !why.contains(TOKEN), "{why}");

    let worker = TestWorker::with(&[master.port()], token);
    drop(master.register("w-1", 1));
    master.accept().answer("401 Unauthorized", "", TOKEN);
    drop(master.register("w-1", 1));
    let told = format!("{:?}", worker.notices());
    assert!(!told.contains(TOKEN) && told.contains("doesn't accept the token"), "{told}");
}

/// Goal: the worker follows the leader that a master names, if it is one of its masters. Method: a redirection to the
/// second master, and one to a server that isn't among them, to which nothing may be sent.
#[test]
fn redirections_lead_to_masters_only() {
    let (first, second, stranger) = (FakeMaster::new(), FakeMaster::new(), FakeMaster::new());
    let worker = TestWorker::start(&[first.port(), second.port()]);
    let to = |port| format!("Location: //127.0.0.1:{port}/api/v1/worker\r\n");
    first.accept().answer("307 Temporary Redirect", &to(stranger.port()), "");
    // The next one in turn.
    second.accept().answer("307 Temporary Redirect", &to(first.port()), "");
    first.accept().answer("307 Temporary Redirect", &to(second.port()), "");
    let (connection, _) = second.register("w-1", 1);
    let told = |notice: &WorkerNotice| match notice {
        WorkerNotice::Unreachable { why, .. } => why.contains("which is not among the masters"),
        _ => false,
    };
    assert!(worker.notices().iter().any(told), "{:?}", worker.notices());
    // The leader is asked first when the connection is lost.
    drop(connection);
    let _connection = second.register("w-1", 1);
}

/// Goal: a refusal for now is tried again, one for good ends the worker with its reason. Method: both.
#[test]
fn refusals_are_told_apart() {
    let master = FakeMaster::new();
    let worker = TestWorker::start(&[master.port()]);
    for may_retry in [true, false] {
        let mut connection = master.accept();
        assert!(matches!(connection.call(), WorkerCall::Subscribe(_)));
        connection.open();
        let why = "host-1 is registered already".to_owned();
        connection.send(&WorkerEvent::Refused { why, may_retry });
        connection.closed();
    }
    let why = "host-1 is registered already".to_owned();
    assert_eq!(worker.wait(), WorkerEnd::Refused { why });
}

/// Goal: a worker that is stopped without a master ends all the same, and says that no master was told. Method: an
/// executor that ignores SIGTERM, a master that is gone, and a short grace period.
#[test]
fn a_worker_ends_without_a_master() {
    let master = FakeMaster::new();
    let worker = TestWorker::with(&[master.port()], |config| {
        config.grace = Duration::from_millis(50);
    });
    let (mut connection, _) = master.register("w-1", 1);
    connection.send(&launch("e1", 1, 1, "trap '' TERM; echo ready; while :; do sleep 1; done"));
    connection.acknowledge(ReportedState::Starting);
    connection.acknowledge(ReportedState::Running);
    let stdout = worker.folder.path().join("sandboxes/framework-1/w-1/e1/stdout");
    while std::fs::read_to_string(&stdout).unwrap().is_empty() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    drop(connection);
    drop(master);
    worker.stop();
    assert_eq!(worker.wait(), WorkerEnd::Left { told: false, forced: true });
}
