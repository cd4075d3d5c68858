//! Hosts of tasks and the tasks in them, as real processes.

use std::time::Duration;

use super::bench::{Bench, launch};
#[cfg(target_os = "linux")]
use super::bench::{processes_in, until};
#[cfg(target_os = "linux")]
use crate::cluster::task_host::MARK_VARIABLE;
use crate::engine::cluster_manager::{ClusterManager, Event, Launch};
use crate::launch::{CommandForm, Hosting};
use crate::resources::Mebibytes;
use crate::status::TaskState;

const LONG: Duration = Duration::from_secs(600);

/// Not a test: the program of the other tests' hosts, which run this test's program for it.
#[test]
#[ignore = "the program of hosts"]
fn program_of_hosts() {
    crate::cluster::run_task_host().unwrap();
}

/// A host of one core and 64 MiB.
pub(super) fn host(name: &str) -> Launch<'_> {
    let own = std::env::current_exe().unwrap();
    let test = "cluster::local::tests::hosts::program_of_hosts";
    let mut host = launch(name, &[own.to_str().unwrap(), "--exact", test, "--ignored"]);
    host.command.hosting = Hosting::Host;
    host
}

/// A host of another program: a line of shell.
pub(super) fn impostor<'a>(name: &'a str, line: &str) -> Launch<'a> {
    let mut host = launch(name, &["sh", "-c", line]);
    host.command.hosting = Hosting::Host;
    host
}

/// A task of one core and 64 MiB, a line of shell.
pub(super) fn task<'a>(name: &'a str, host: &str, line: &str) -> Launch<'a> {
    let mut task = launch(name, &["sh", "-c", line]);
    task.command.hosting = Hosting::In(host.into());
    task
}

/// How many ends of an executor were reported until now.
pub(super) fn ends(bench: &Bench, executor: &str) -> usize {
    let is_end = |event: &Event| match event {
        Event::Update(update) if update.executor == executor => match update.state {
            TaskState::Staging | TaskState::Starting | TaskState::Running | TaskState::Killing => {
                None
            }
            _ => Some(()),
        },
        _ => None,
    };
    std::iter::from_fn(|| bench.try_expect(Duration::from_millis(100), is_end)).count()
}

/// Starts a host with tasks: `leaving` has a child in a session of its own, and another mark in its settings; `bare`
/// has no variable. Returns the host's process, once the tasks run.
#[cfg(target_os = "linux")]
pub(super) fn start_host(bench: &Bench) -> i32 {
    let offer = bench.offer();
    let mut leaving = task("leaving", "h", "setsid sleep 600 & echo ready; wait");
    leaving.command.environment.push((MARK_VARIABLE.into(), "another".into()));
    let bare = task("bare", "h", "echo ready; exec env -i /bin/sleep 600");
    bench.accept(&offer, &[host("h"), leaving, bare], Duration::ZERO);
    let process = bench.update("h", TaskState::Running).process.unwrap();
    for name in ["leaving", "bare"] {
        bench.wait_until_ready(&offer, name);
    }
    process.pid.unwrap() as i32
}

/// Waits for the end of that host, with this reason, and of its tasks: each once, and when nothing of them is left.
#[cfg(target_os = "linux")]
pub(super) fn assert_ended(bench: &Bench, why: &str) {
    for name in ["leaving", "bare"] {
        let gone = bench.update(name, TaskState::Gone);
        assert_eq!(processes_in(&bench.folder.0), [] as [i32; 0]);
        assert_eq!(gone.message, format!("its host h is gone: {why}"));
    }
    assert_eq!(bench.update("h", TaskState::Failed).message, why);
    assert_eq!(ends(bench, "leaving") + ends(bench, "bare") + ends(bench, "h"), 0, "ended twice");
    bench.offer_of(4000);
}

/// Goal: tasks run in their host, each with its output, variables, exit code and share of the agent; a failure is the
/// task's alone; tasks can be added; the host ends when it is asked to. Method: a host with two tasks in one accept, a
/// third one later, then a kill of the host; offers of what is free.
#[test]
fn tasks_run_in_a_host() {
    let bench = Bench::new("hosts", "local-cluster[1,4,1024]");
    let offer = bench.offer();
    let mut good = task("good", "h", "pwd; echo \"$GREETING\"; echo oh >&2; cat");
    good.command.environment.push(("GREETING".into(), "good day".into()));
    bench.accept(&offer, &[host("h"), good, task("bad", "h", "exit 3")], Duration::ZERO);
    let running = bench.update("h", TaskState::Running);
    let started = bench.update("good", TaskState::Running);
    let finished = bench.update("good", TaskState::Finished);
    assert_eq!(finished.message, "exit code 0");
    let sandbox = bench.sandbox(&offer, "good");
    assert_eq!(started.process.unwrap().sandbox.as_deref(), sandbox.to_str());
    assert!(started.message.ends_with(&format!("output in {}", sandbox.display())));
    let expected = format!("{}\ngood day\n", sandbox.display());
    assert_eq!(bench.output(&offer, "good", "stdout"), expected);
    assert_eq!(bench.output(&offer, "good", "stderr"), "oh\n");
    assert_eq!(bench.update("bad", TaskState::Failed).message, "exit code 3");

    let offer = bench.offer_of(3000);
    bench.accept(&offer, &[task("later", "h", "kill -9 $$")], Duration::ZERO);
    let failed = bench.update("later", TaskState::Failed);
    assert_eq!(failed.message, "killed by signal 9 (SIGKILL)");
    bench.kill("h", LONG);
    assert_eq!(bench.update("h", TaskState::Killed).message, "on request: exit code 0");
    let offer = bench.offer_of(4000);
    bench.accept(&offer, &[task("late", "h", "true")], Duration::ZERO);
    let dropped = bench.update("late", TaskState::Dropped);
    assert_eq!(dropped.message, "its host h has ended, or is about to");
    assert!(running.uuid.is_some() && dropped.uuid.is_some());
    bench.offer_of(4000);
}

/// Goal: a task that reaches a host which is about to end was never started, while those in it are lost. Method: a task
/// that ignores SIGTERM keeps its host, which is asked to end; another one comes, and then the host is killed.
#[test]
fn tasks_for_a_host_that_ends_are_not_started() {
    let bench = Bench::new("hosts-ending", "local-cluster[1,4,1024]");
    let offer = bench.offer();
    let hard = task("hard", "h", "trap '' TERM; echo ready; while :; do sleep 1; done");
    bench.accept(&offer, &[host("h"), hard], Duration::ZERO);
    bench.wait_until_ready(&offer, "hard");
    bench.kill("h", LONG);
    bench.update("h", TaskState::Killing);
    let offer = bench.offer_of(2000);
    bench.accept(&offer, &[task("late", "h", "true")], Duration::ZERO);
    let why = bench.update("late", TaskState::Dropped).message;
    assert_eq!(why, "its host h has ended, or is about to");
    bench.kill("h", Duration::ZERO);
    bench.update("hard", TaskState::Gone);
    bench.update("h", TaskState::Killed);
    bench.offer_of(4000);
}

/// Goal: a task that ends well because its host was asked to end hasn't done its work: it is lost, and none that
/// was asked itself before its host is. Method: tasks that end with exit code 0 on SIGTERM; kills of their host and of
/// one of them, in both orders.
#[test]
fn tasks_that_end_well_with_their_host_are_lost() {
    let line = "trap 'exit 0' TERM; echo ready; while :; do sleep 0.05; done";
    for asked in [["h", "a"], ["a", "h"]] {
        let bench = Bench::new(&format!("hosts-well-{}", asked[0]), "local-cluster[1,4,1024]");
        let offer = bench.offer();
        let [a, b] = ["a", "b"].map(|name| task(name, "h", line));
        bench.accept(&offer, &[host("h"), a, b], Duration::ZERO);
        ["a", "b"].iter().for_each(|name| bench.wait_until_ready(&offer, name));
        asked.iter().for_each(|name| bench.kill(name, LONG));
        let message = bench.update("b", TaskState::Gone).message;
        assert_eq!(message, "its host h was asked to end: exit code 0");
        if asked[0] == "a" {
            bench.update("a", TaskState::Killed);
        }
        bench.update("h", TaskState::Killed);
        assert_eq!((ends(&bench, "b"), ends(&bench, "h")), (0, 0), "ended twice");
    }
}

/// Goal: a host that is killed takes its tasks with it, whatever they did to their groups; each is reported once, as
/// lost, and only when it is gone. Method: a task with a child in a session of its own, one whose settings have another
/// mark, too, and one without a variable; the host gets SIGKILL.
#[test]
#[cfg(target_os = "linux")]
fn a_killed_host_takes_its_tasks_along() {
    let bench = Bench::new("hosts-killed", "local-cluster[1,4,1024]");
    let pid = rustix::process::Pid::from_raw(start_host(&bench)).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    assert_ended(&bench, "killed by signal 9 (SIGKILL)");
}

/// Goal: a host that sends what makes no sense, that is no host, or that can't be started ends with a clear sentence,
/// and its tasks once: as lost if the host may have them, as dropped if it never got them. Method: shells that write to
/// the connection, one that only exits, and no program.
#[test]
fn impostors_are_ended() {
    let bench = Bench::new("hosts-impostors", "local-cluster[1,20,4096]");
    let offer = bench.offer();
    let huge = r"printf '\377\377\377\377' >&0; exec sleep 600";
    let noise = r"printf '\000\000\000\001x' >&0; exec sleep 600";
    // The end of a task: its kind, its id, and the exit code 1.
    let about = [
        r"printf '\000\000\000\023\003\000\000\000\000\000\000\000\001a' >&0;",
        r"printf '\000\000\000\000\000\000\000\000\001' >&0; exec sleep 600",
    ];
    let about = about.concat();
    // That it is ready, with a sweeper of no number.
    let ready = r"printf '\000\000\000\011\000\000\000\000\000\000\000\000\000' >&0;";
    let twice = format!("{ready}{ready} exec sleep 600");
    let cases = [
        (huge, "the host sent a message of 4294967295 bytes, of which 65536 are allowed"),
        (noise, "the host sent a message that makes no sense"),
        (&about, "the host sent a report of task \"a\", which it doesn't have"),
        (&twice, "the host sent that it is ready, twice"),
        ("exit 3", "exit code 3"),
        ("exec <&-; exec sleep 600", "killed by signal 9 (SIGKILL)"),
    ];
    for (number, (line, sentence)) in cases.into_iter().enumerate() {
        let (name, waiting) = (format!("h{number}"), format!("t{number}"));
        let offer = if number == 0 { offer.clone() } else { bench.offer_of(20_000) };
        let launches = [impostor(&name, line), task(&waiting, &name, "true")];
        bench.accept(&offer, &launches, Duration::ZERO);
        assert_eq!(bench.update(&name, TaskState::Failed).message, sentence);
        // That one has said that it is ready.
        let is_sent = sentence.ends_with("twice");
        let state = if is_sent { TaskState::Gone } else { TaskState::Dropped };
        let gone = bench.update(&waiting, state).message;
        assert_eq!(gone, format!("its host {name} is gone: {sentence}"));
        assert_eq!(ends(&bench, &name) + ends(&bench, &waiting), 0, "{sentence}");
    }
    let offer = bench.offer_of(20_000);
    let mut missing = host("missing");
    missing.command.argv = vec!["no-such-command-anywhere".to_owned()];
    bench.accept(&offer, &[missing, task("waits", "missing", "true")], Duration::ZERO);
    let why = bench.update("missing", TaskState::Failed).message;
    assert!(why.starts_with("command \"no-such-command-anywhere\" not found"), "{why}");
    assert_eq!(
        bench.update("waits", TaskState::Dropped).message,
        format!("its host missing is gone: {why}")
    );
    bench.offer_of(20_000);
}

/// Goal: tasks are killed alone, with their grace, also before they were started; a task that can't be started fails
/// alone. Method: a task that ends on SIGTERM, one that ignores it, one whose host isn't ready yet, one without a
/// program, one that needs a container's entry point; what a reconciliation says of them.
#[test]
fn tasks_are_killed_alone() {
    let bench = Bench::new("hosts-kills", "local-cluster[1,8,1024]");
    let offer = bench.offer();
    let soft = task("soft", "h", "trap 'exit 7' TERM; echo ready; sleep 600 & wait");
    let hard = task("hard", "h", "trap '' TERM; echo ready; while :; do sleep 1; done");
    let mut missing = task("missing", "h", "");
    missing.command.argv = vec!["no-such-command-anywhere".to_owned()];
    let mut entry = task("entry", "h", "true");
    entry.command.form = CommandForm::EntryPoint;
    let launches = [host("h"), soft, hard, missing, entry, task("early", "h", "sleep 600")];
    bench.accept(&offer, &launches, Duration::ZERO);
    bench.kill("early", LONG);
    let early = bench.update("early", TaskState::Killed).message;
    assert!(early.starts_with("on request"), "{early}");
    let why = bench.update("missing", TaskState::Failed).message;
    assert!(why.starts_with("command \"no-such-command-anywhere\" not found"), "{why}");
    bench.update("entry", TaskState::Error);
    for name in ["soft", "hard"] {
        bench.wait_until_ready(&offer, name);
    }
    bench.kill("soft", LONG);
    assert_eq!(bench.update("soft", TaskState::Killed).message, "on request: exit code 7");
    bench.kill("hard", Duration::from_millis(100));
    let hard = bench.update("hard", TaskState::Killed).message;
    assert_eq!(hard, "on request: killed by signal 9 (SIGKILL)");
    bench.reconcile(&["h", "soft"]);
    bench.update("h", TaskState::Running);
    bench.update("soft", TaskState::Gone);
    bench.offer_of(7000);
}

/// Goal: hosts and tasks end with their agent, and with the cluster, and nothing stays behind. Method: an agent with a
/// host and a task is lost; another host's task ignores SIGTERM when the cluster stops.
#[test]
fn hosts_end_with_agent_and_cluster() {
    let bench = Bench::with("hosts-end", "local-cluster[1,4,1024]", |config| {
        config.grace(Duration::from_millis(200))
    });
    let offer = bench.offer();
    let launches = [host("h1"), task("t1", "h1", "sleep 600")];
    bench.accept(&offer, &launches, Duration::ZERO);
    bench.update("t1", TaskState::Running);
    bench.cluster.lose_agent(0).unwrap();
    assert_eq!(bench.update("t1", TaskState::Gone).message, "its agent was lost");
    bench.update("h1", TaskState::Gone);
    bench.cluster.restore_agent(0).unwrap();
    let offer = bench.offer_of(4000);
    let mut small = host("h2");
    small.resources.memory = Mebibytes::new(32);
    let launches = [small, task("t2", "h2", "trap '' TERM; while :; do sleep 1; done")];
    bench.accept(&offer, &launches, Duration::ZERO);
    bench.update("t2", TaskState::Running);
    bench.cluster.stop();
    bench.update("h2", TaskState::Killed);
    bench.update("t2", TaskState::Killed);
    assert_eq!(ends(&bench, "t1") + ends(&bench, "t2"), 0, "an end was reported twice");
    #[cfg(target_os = "linux")]
    until("all are gone", || processes_in(&bench.folder.0).is_empty());
}
