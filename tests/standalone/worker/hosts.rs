//! Hosts of tasks on a worker, as real processes: the program is `offermill task-host`, or another that is none.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use offermill::cluster::standalone::protocol::{
    ExecutorUpdate, LaunchHosting, ReportedState, WorkerCall, WorkerEvent,
};
use offermill::cluster::standalone::worker::WorkerEnd;
use rustix::process::{Pid, Signal, kill_process};

use crate::fake::{FakeMaster, WorkerConnection};
use crate::{TestWorker, key, launch, launch_of};

fn with_hosting(event: WorkerEvent, hosting: LaunchHosting) -> WorkerEvent {
    let WorkerEvent::Launch(mut launch) = event else { panic!("another event") };
    launch.hosting = hosting;
    WorkerEvent::Launch(launch)
}

/// A host of the program that hosts have.
fn host(id: &str, sequence: u64) -> WorkerEvent {
    let argv = [env!("CARGO_BIN_EXE_offermill"), "task-host"].map(str::to_owned).to_vec();
    with_hosting(launch_of(id, sequence, 1, argv), LaunchHosting::Host)
}

/// A host of another program: a line of shell.
fn impostor(id: &str, sequence: u64, line: &str) -> WorkerEvent {
    with_hosting(launch(id, sequence, 1, line), LaunchHosting::Host)
}

/// A task, a line of shell.
fn task(id: &str, host: &str, sequence: u64, line: &str) -> WorkerEvent {
    with_hosting(launch(id, sequence, 1, line), LaunchHosting::In(host.to_owned()))
}

/// Acknowledges updates until one of this executor has this state. Returns it, and those before.
fn until(
    connection: &mut WorkerConnection,
    executor: &str,
    state: ReportedState,
) -> Vec<ExecutorUpdate> {
    let mut seen = Vec::new();
    loop {
        let update = connection.update();
        let (key, uuid) = (update.key.clone(), update.uuid.clone());
        connection.send(&WorkerEvent::Ack { key, uuid });
        let is_it = update.key.executor == executor && update.state == state;
        seen.push(update);
        if is_it {
            return seen;
        }
    }
}

/// The numbers of processes that have this text in their environment.
fn processes_with(text: &str) -> Vec<i32> {
    let has_it = |pid: &i32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.windows(text.len()).any(|it| it == text.as_bytes())
    };
    let all = fs::read_dir("/proc").unwrap().flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(has_it).collect()
}

fn wait_for(path: &Path) {
    let give_up = Instant::now() + Duration::from_secs(60);
    while fs::read_to_string(path).unwrap_or_default().is_empty() {
        assert!(Instant::now() < give_up, "{}", path.display());
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// What was told of a host `h`, a task `good` in it that prints, and a task `bad` that fails.
fn assert_first_updates(seen: &[ExecutorUpdate], sandboxes: &Path) {
    let of = |id: &str, state| {
        let is_it = |it: &&ExecutorUpdate| it.key.executor == id && it.state == state;
        seen.iter().find(is_it).unwrap().clone()
    };
    let path = sandboxes.join("good");
    let running = of("good", ReportedState::Running);
    assert_eq!(running.folder.as_deref(), path.to_str());
    assert_eq!(running.host.as_deref(), Some("h"));
    let stdout = fs::read_to_string(path.join("stdout")).unwrap();
    assert_eq!(stdout, format!("hello\n{}\n", path.display()));
    assert_eq!(fs::read_to_string(path.join("stderr")).unwrap(), "no\n");
    let failed = of("bad", ReportedState::Failed);
    assert_eq!(failed.message.as_deref(), Some("Command exited with status 3"));
    assert!(!failed.is_lost);
    assert_eq!(of("h", ReportedState::Running).host, None);
}

/// Goal: tasks run in their host, each with its output and exit status; a failure is the task's alone; one is killed
/// alone; a lost connection disturbs nothing; host and tasks end with the worker. Method: a host and five tasks; the
/// connection is closed while two of them run; a kill; then the worker is stopped.
#[test]
fn tasks_run_in_a_host() {
    let master = FakeMaster::new();
    let worker = TestWorker::start(&[master.port()]);
    let (mut connection, subscribe) = master.register("w-1", 1);
    assert!(subscribe.has_hosts);
    connection.send(&host("h", 1));
    connection.send(&task("good", "h", 2, "echo \"$GREETING\"; pwd; echo no >&2"));
    connection.send(&task("bad", "h", 3, "exit 3"));
    connection.send(&task("slow", "h", 4, "sleep 600"));
    connection.send(&task("waits", "h", 5, "while [ ! -e go ]; do sleep 0.05; done"));
    let mut seen = until(&mut connection, "h", ReportedState::Running);
    let is_there = |seen: &[ExecutorUpdate], id: &str, state| {
        seen.iter().any(|it| it.key.executor == id && it.state == state)
    };
    for (id, state) in [
        ("good", ReportedState::Finished),
        ("bad", ReportedState::Failed),
        ("slow", ReportedState::Running),
        ("waits", ReportedState::Running),
    ] {
        if !is_there(&seen, id, state) {
            seen.extend(until(&mut connection, id, state));
        }
    }
    let sandboxes = worker.folder.path().join("sandboxes/framework-1/w-1");
    let sandboxes = fs::canonicalize(sandboxes).unwrap();
    assert_first_updates(&seen, &sandboxes);

    drop(connection);
    fs::write(sandboxes.join("waits/go"), "").unwrap();
    let (mut connection, again) = master.register("w-1", 1);
    let alive: Vec<&str> = again.executors.iter().map(|it| &*it.key.executor).collect();
    assert!(["h", "slow"].iter().all(|id| alive.contains(id)), "{alive:?}");
    let is_told = again.unacknowledged.iter().any(|it| it.state == ReportedState::Finished);
    if !is_told {
        until(&mut connection, "waits", ReportedState::Finished);
    }
    connection.send(&WorkerEvent::Kill { key: key("slow"), term: 1, grace: 60_000 });
    let killed = until(&mut connection, "slow", ReportedState::Killed);
    let message = killed.last().unwrap().message.as_deref();
    assert_eq!(message, Some("Command terminated with signal Terminated"));
    connection.send(&task("last", "h", 1, "sleep 600"));
    until(&mut connection, "last", ReportedState::Running);
    worker.stop();
    assert_eq!(connection.call(), WorkerCall::Leaving);
    let mut ends = until(&mut connection, "h", ReportedState::Killed);
    if !is_there(&ends, "last", ReportedState::Killed) {
        ends.extend(until(&mut connection, "last", ReportedState::Killed));
    }
    for update in &again.unacknowledged {
        let (key, uuid) = (update.key.clone(), update.uuid.clone());
        connection.send(&WorkerEvent::Ack { key, uuid });
    }
    assert_eq!(connection.call(), WorkerCall::Leave);
    drop(connection);
    assert_eq!(worker.wait(), WorkerEnd::Left { told: true, forced: false });
}

/// Goal: a host that is killed takes its tasks with it, whatever they did to their groups; each is told once, as lost,
/// when it is gone, after the host; another task isn't started there. Method: a task with a child in a session of its
/// own; SIGKILL to the host.
#[test]
#[cfg(target_os = "linux")]
fn a_killed_host_takes_its_tasks_along() {
    let master = FakeMaster::new();
    let worker = TestWorker::start(&[master.port()]);
    let (mut connection, _) = master.register("w-1", 1);
    let mark = format!("OFFERMILL_MARK_{}", std::process::id());
    connection.send(&host("h", 1));
    let line = format!("export {mark}=1; setsid sleep 600 & echo ready; wait");
    connection.send(&task("a", "h", 2, &line));
    let seen = until(&mut connection, "a", ReportedState::Running);
    let of_host = seen.iter().find(|it| it.pid.is_some() && it.key.executor == "h").unwrap();
    let pid = i32::try_from(of_host.pid.unwrap()).unwrap();
    wait_for(&worker.folder.path().join("sandboxes/framework-1/w-1/a/stdout"));
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    let seen = until(&mut connection, "a", ReportedState::Failed);
    assert_eq!(processes_with(&mark), [] as [i32; 0]);
    let [ended, lost] = &seen[..] else { panic!("{seen:?}") };
    assert_eq!((&*lost.key.executor, lost.state, lost.is_lost), ("a", ReportedState::Failed, true));
    let why = "its host h is gone: killed by signal 9 (SIGKILL)";
    assert_eq!(lost.message.as_deref(), Some(why));
    assert!(!ended.is_lost);
    assert_eq!(ended.message.as_deref(), Some("Command terminated with signal Killed"));
    connection.send(&task("late", "h", 3, "true"));
    let late = connection.acknowledge(ReportedState::Dropped).message.unwrap();
    assert_eq!(late, "not started: its host h isn't here, or is about to end");
    worker.leave(connection);
}

/// Goal: a host that sends what makes no sense, that is none, or that can't be started ends with a clear sentence, and
/// its tasks are lost once. Method: shells that write to the connection, one that only exits, one that closes it, and
/// no program.
#[test]
fn impostors_are_ended() {
    let master = FakeMaster::new();
    let worker = TestWorker::start(&[master.port()]);
    let (mut connection, _) = master.register("w-1", 1);
    let huge = r"printf '\377\377\377\377' >&0; exec sleep 600";
    let noise = r"printf '\000\000\000\001x' >&0; exec sleep 600";
    // That it is ready, with a sweeper of no number.
    let ready = r"printf '\000\000\000\011\000\000\000\000\000\000\000\000\000' >&0;";
    let twice = format!("{ready}{ready} exec sleep 600");
    // The end of a task: its kind, its id, and the exit code 1.
    let about = [
        r"printf '\000\000\000\023\003\000\000\000\000\000\000\000\001a' >&0;",
        r"printf '\000\000\000\000\000\000\000\000\001' >&0; exec sleep 600",
    ];
    let about = about.concat();
    let cases = [
        (huge, "the host sent a message of 4294967295 bytes, of which 65536 are allowed"),
        (noise, "the host sent a message that makes no sense"),
        (&twice, "the host sent that it is ready, twice"),
        (&about, "the host sent a report of task \"a\", which it doesn't have"),
        ("exit 3", "Command exited with status 3"),
        ("exit 0", "Command exited with status 0"),
        ("exec <&-; exec sleep 600", "Command terminated with signal Killed"),
        ("", "not started: command \"no-such-program\" not found"),
    ];
    let mut sequence = 0;
    for (number, (line, sentence)) in cases.into_iter().enumerate() {
        let (name, waiting) = (format!("h{number}"), format!("t{number}"));
        sequence += 2;
        let launch = match line {
            "" => with_hosting(
                launch_of(&name, sequence - 1, 1, vec!["no-such-program".to_owned()]),
                LaunchHosting::Host,
            ),
            line => impostor(&name, sequence - 1, line),
        };
        connection.send(&launch);
        connection.send(&task(&waiting, &name, sequence, "true"));
        let mut seen = until(&mut connection, &name, ReportedState::Failed);
        let message = seen.last().unwrap().message.clone().unwrap();
        assert!(message.starts_with(sentence), "{sentence}: {message}");
        let is_end = |it: &&ExecutorUpdate| it.key.executor == waiting && it.state.is_end();
        while !seen.iter().any(|it| is_end(&it)) {
            let update = connection.update();
            let (key, uuid) = (update.key.clone(), update.uuid.clone());
            connection.send(&WorkerEvent::Ack { key, uuid });
            seen.push(update);
        }
        let ends: Vec<&ExecutorUpdate> = seen.iter().filter(is_end).collect();
        let [lost] = &ends[..] else { panic!("{sentence}: {seen:?}") };
        // A task that comes after the end of its host isn't started at all.
        let is_lost = lost.is_lost || lost.state == ReportedState::Dropped;
        assert!(is_lost, "{sentence}: {lost:?}");
    }
    worker.leave(connection);
}
