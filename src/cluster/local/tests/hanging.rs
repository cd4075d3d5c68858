//! Starts that hang or take long, because of a watchdog that doesn't answer.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use super::bench::{Bench, launch, until};
use crate::engine::cluster_manager::{ClusterManager, Event};
use crate::status::TaskState;

/// Longer than any of these tests waits.
const LONG: Duration = Duration::from_secs(600);
/// Much shorter than [`LONG`], and longer than any step here takes on a slow machine.
const SOON: Duration = Duration::from_secs(20);

/// A cluster of one large agent. Its watchdogs never answer in a sandbox called `mute`, answer late in one called
/// `late`, and in one called `held` when they are [released](release).
fn bench(name: &str, within: Duration) -> Bench {
    Bench::with(name, "local-cluster[1,8,1024]", |mut config| {
        let shell = config.work_dir.join("shell");
        let script = "#!/bin/sh
            case \"$PWD\" in
                */mute) exec sleep 1000 ;;
                */late) sleep 2 ;;
                */held) while ! [ -e go ]; do sleep 0.05; done ;;
            esac
            exec /bin/sh \"$@\"";
        std::fs::write(&shell, script).unwrap();
        std::fs::set_permissions(&shell, PermissionsExt::from_mode(0o755)).unwrap();
        config.shell = shell;
        config.start_timeout = within;
        config.grace(Duration::from_millis(500))
    })
}

/// Lets the start of the executor `held` continue.
fn release(sandbox: &Path) {
    until("the sandbox is there", || sandbox.is_dir());
    std::fs::write(sandbox.join("go"), "").unwrap();
}

fn has_processes(folder: &Path) -> bool {
    cfg!(target_os = "linux") && !super::bench::processes_in(folder).is_empty()
}

/// Goal: a start that hangs delays neither other starts, nor answers, nor kills, nor the stop; the end of each executor
/// is reported. Method: a watchdog that never answers and one that is held, before other executors in one accept; the
/// first is killed, the second still hangs when the cluster stops.
#[test]
fn a_start_that_hangs_delays_nothing() {
    let bench = bench("hanging", LONG);
    let offer = bench.offer();
    let sleep = ["sleep", "1000"];
    let launches = ["mute", "held", "one", "two"].map(|id| launch(id, &sleep));
    let begun = Instant::now();
    bench.accept(&offer, &launches, Duration::ZERO);
    bench.update("one", TaskState::Running);
    bench.update("two", TaskState::Running);
    bench.reconcile(&["mute"]);
    assert!(bench.update("mute", TaskState::Starting).uuid.is_some());
    assert_eq!(bench.update("mute", TaskState::Starting).uuid, None, "the answer");
    bench.kill("one", Duration::ZERO);
    bench.update("one", TaskState::Killed);
    bench.kill("mute", Duration::from_millis(100));
    let killed = bench.update("mute", TaskState::Killed);
    assert_eq!(killed.message, "on request, while it was being started");
    bench.cluster.stop();
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    bench.update("two", TaskState::Killed);
    bench.update("held", TaskState::Killed);
    // The thread of the start continues now, after the cluster has stopped.
    let sandbox = bench.sandbox(&offer, "held");
    release(&sandbox);
    std::thread::sleep(Duration::from_millis(500));
    until("the late start is ended", || !has_processes(&sandbox));
}

/// Goal: a start that takes too long counts as failed, its resources are offered again, and processes that it starts
/// later are ended without a report. Method: a watchdog that never answers, and one that answers after the grace period
/// of a kill.
#[test]
fn a_start_that_hangs_has_failed() {
    let bench = bench("failing", Duration::from_secs(2));
    let offer = bench.offer();
    let launches = ["mute", "held"].map(|id| launch(id, &["sleep", "1000"]));
    bench.accept(&offer, &launches, Duration::ZERO);
    let sandbox = bench.sandbox(&offer, "held");
    until("the start is held", || sandbox.is_dir());
    bench.kill("held", Duration::ZERO);
    bench.update("held", TaskState::Killed);
    release(&sandbox);
    let failed = bench.update("mute", TaskState::Failed);
    assert!(failed.message.contains("doesn't answer"), "{}", failed.message);
    bench.offer_of(8000);
    std::thread::sleep(Duration::from_millis(500));
    let sandboxes = bench.sandboxes();
    until("the late start is ended", || !has_processes(&sandboxes));
    let before = [TaskState::Starting, TaskState::Killing];
    let update = |event: &Event| match event {
        Event::Update(update) if !before.contains(&update.state) => Some(update.clone()),
        _ => None,
    };
    assert!(bench.try_expect(Duration::from_millis(200), update).is_none());
}

/// Goal: a watchdog that answers late is accepted, and a kill or the loss of the agent in the meantime takes effect.
/// Method: four starts that take two seconds: one undisturbed, one killed, one whose agent is lost, and one that is
/// stopped.
#[test]
fn a_start_that_takes_long() {
    let alone = bench("late", SOON);
    alone.run("late", &["sleep", "1000"]);
    alone.update("late", TaskState::Running);
    alone.kill("late", Duration::ZERO);
    alone.update("late", TaskState::Killed);

    let killed = bench("late-killed", SOON);
    killed.run("late", &["sleep", "1000"]);
    killed.update("late", TaskState::Starting);
    killed.kill("late", LONG);
    killed.update("late", TaskState::Killing);
    assert_eq!(
        killed.update("late", TaskState::Killed).message,
        "on request: killed by signal 15 (SIGTERM)"
    );

    let lost = bench("late-lost", SOON);
    lost.run("late", &["sleep", "1000"]);
    lost.update("late", TaskState::Starting);
    lost.cluster.lose_agent(0).unwrap();
    lost.update("late", TaskState::Gone);
    std::thread::sleep(Duration::from_secs(3));
    until("the late start is ended", || !has_processes(&lost.sandboxes()));

    let stopped = bench("late-stopped", SOON);
    stopped.run("late", &["sleep", "1000"]);
    stopped.update("late", TaskState::Starting);
    stopped.cluster.stop();
    stopped.update("late", TaskState::Killed);
    std::thread::sleep(Duration::from_secs(3));
    until("the late start is ended", || !has_processes(&stopped.sandboxes()));
}
