//! Starts that hang or take long: because of a warden that doesn't answer, or a file of the sandbox.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use super::bench::{Bench, launch, until};
use crate::engine::cluster_manager::{ClusterManager, Event, OwnedOffer};
use crate::status::TaskState;

/// Longer than any of these tests waits.
const LONG: Duration = Duration::from_secs(600);
/// Much shorter than [`LONG`], and longer than any step here takes on a slow machine.
const SOON: Duration = Duration::from_secs(20);

/// A cluster of one large agent. Its wardens never answer in a sandbox called `mute`, and answer late in one called
/// `late`.
fn bench(name: &str, within: Duration) -> Bench {
    Bench::with(name, "local-cluster[1,8,1024]", |mut config| {
        let shell = config.work_dir.join("shell");
        let script = "#!/bin/sh
            case \"$PWD\" in
                */mute) exec sleep 1000 ;;
                */late) sleep 2 ;;
            esac
            exec /bin/sh \"$@\"";
        std::fs::write(&shell, script).unwrap();
        std::fs::set_permissions(&shell, PermissionsExt::from_mode(0o755)).unwrap();
        config.shell = shell;
        config.start_timeout = within;
        config.grace(Duration::from_millis(500))
    })
}

/// Makes a pipe in place of the output file of a future executor: opening it blocks until there is a reader.
fn stuff(bench: &Bench, offer: &OwnedOffer, executor: &str) -> std::path::PathBuf {
    let sandbox = bench.sandbox(offer, executor);
    std::fs::create_dir_all(&sandbox).unwrap();
    let pipe = sandbox.join("stdout");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    pipe
}

fn has_processes(folder: &Path) -> bool {
    cfg!(target_os = "linux") && !super::bench::processes_in(folder).is_empty()
}

/// Goal: a start that hangs delays neither other starts, nor answers, nor kills, nor the stop; the end of each executor
/// is reported. Method: a warden that never answers and a file whose opening blocks, before other executors in one
/// accept; one of the two is killed, the other still hangs when the cluster stops.
#[test]
fn a_start_that_hangs_delays_nothing() {
    let bench = bench("hanging", LONG);
    let offer = bench.offer();
    let pipe = stuff(&bench, &offer, "stuffed");
    let sleep = ["sleep", "1000"];
    let launches = ["mute", "stuffed", "one", "two"].map(|id| launch(id, &sleep));
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
    bench.update("stuffed", TaskState::Killed);
    // The thread of the start continues now, after the cluster has stopped.
    let _reader = std::fs::File::open(&pipe).unwrap();
    let sandbox = bench.sandbox(&offer, "stuffed");
    std::thread::sleep(Duration::from_millis(500));
    until("the late start is ended", || !has_processes(&sandbox));
}

/// Goal: a start that takes too long counts as failed, its resources are offered again, and processes that it starts
/// later are ended without a report. Method: a warden that never answers, and a file whose opening succeeds after the
/// time is over.
#[test]
fn a_start_that_hangs_has_failed() {
    let bench = bench("failing", Duration::from_secs(2));
    let offer = bench.offer();
    let pipe = stuff(&bench, &offer, "stuffed");
    let launches = ["mute", "stuffed"].map(|id| launch(id, &["sleep", "1000"]));
    bench.accept(&offer, &launches, Duration::ZERO);
    for id in ["mute", "stuffed"] {
        let failed = bench.update(id, TaskState::Failed);
        assert!(failed.message.contains("doesn't answer"), "{}", failed.message);
    }
    bench.offer_of(8000);
    let _reader = std::fs::File::open(&pipe).unwrap();
    std::thread::sleep(Duration::from_millis(500));
    let sandboxes = bench.sandboxes();
    until("the late start is ended", || !has_processes(&sandboxes));
    let update = |event: &Event| match event {
        Event::Update(update) if update.state != TaskState::Starting => Some(update.clone()),
        _ => None,
    };
    assert!(bench.try_expect(Duration::from_millis(200), update).is_none());
}

/// Goal: a warden that answers late is accepted, and a kill or the loss of the agent in the meantime takes effect.
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
