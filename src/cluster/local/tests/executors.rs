//! How executors start, run and end.

use std::time::Duration;

use super::bench::{Bench, EPOCH, launch, until};
use crate::engine::cluster_manager::ClusterManager;
use crate::launch::{CommandForm, Container, ContainerKind, Setup, Uri};
use crate::resources::{Gpus, MilliCpus};
use crate::status::{TaskState, UpdateReason};

const LONG: Duration = Duration::from_secs(600);

/// Goal: an executor starts, runs in its sandbox with its variables and arguments, and finishes; its resources are
/// offered again. Method: a shell that prints its folder, variables and arguments.
#[test]
fn an_executor_runs_and_finishes() {
    let bench = Bench::new("runs", "local-cluster[1,2,512]");
    let offer = bench.offer();
    let line = "pwd; echo \"$GREETING $1\"; cat; echo complaint >&2";
    let mut hello = launch("hello", &["sh", "-c", line, "sh", "$(world) 'x"]);
    hello.command.environment.push(("GREETING".into(), "good day".into()));
    bench.accept(&offer, &[hello], Duration::ZERO);

    let starting = bench.update("hello", TaskState::Starting);
    let running = bench.update("hello", TaskState::Running);
    let finished = bench.update("hello", TaskState::Finished);
    assert_eq!(finished.message, "exit code 0");
    assert!(running.message.starts_with("process "), "{}", running.message);
    assert_eq!(finished.agent_id.as_deref(), Some(offer.agent_id.as_str()));
    let tokens = [starting.uuid.unwrap(), running.uuid.unwrap(), finished.uuid.unwrap()];
    assert!(tokens[0] != tokens[1] && tokens[1] != tokens[2]);

    let sandbox = bench.sandbox(&offer, "hello");
    let expected = format!("{}\ngood day $(world) 'x\n", sandbox.display());
    assert_eq!(bench.output(&offer, "hello", "stdout"), expected);
    assert_eq!(bench.output(&offer, "hello", "stderr"), "complaint\n");
    bench.offer_of(2000);
    bench.cluster.stop();
    assert!(sandbox.join("stdout").exists(), "sandboxes are left in place");
}

/// Goal: executors inherit the program's variables unless configured otherwise. Method: `PATH`.
#[test]
fn the_environment_is_inherited_or_not() {
    for (clean, expected) in [(false, "inherited own\n"), (true, " own\n")] {
        let bench = Bench::with(&format!("environment-{clean}"), "local-cluster[1,1,512]", |it| {
            if clean { it.clean_environment() } else { it }
        });
        let offer = bench.offer();
        // A shell may set a PATH that it doesn't export, so the line calls `env`.
        let line = "echo \"$(env | grep -q ^PATH= && echo inherited) $OWN\"";
        let mut print = launch("print", &["/bin/sh", "-c", line]);
        print.command.environment.push(("OWN".into(), "own".into()));
        bench.accept(&offer, &[print], Duration::ZERO);
        bench.update("print", TaskState::Finished);
        assert_eq!(bench.output(&offer, "print", "stdout"), expected);
    }
}

/// Goal: bad ends are reported as failures, with the exit code or signal in words. Method: one of each.
#[test]
fn failures_say_how() {
    let bench = Bench::new("failures", "local-cluster[1,8,4096]");
    let offer = bench.offer();
    let code = launch("code", &["sh", "-c", "exit 3"]);
    let signal = launch("signal", &["sh", "-c", "kill -KILL $$"]);
    let missing = launch("missing", &["no-such-command-anywhere"]);
    let folder = launch("folder", &["/"]);
    let nothing = launch("nothing", &[]);
    let nul = launch("nul", &["echo", "a\0b"]);
    bench.accept(&offer, &[code, signal, missing, folder, nothing, nul], Duration::ZERO);
    let message = |executor| bench.update(executor, TaskState::Failed).message;
    assert_eq!(message("code"), "exit code 3");
    assert_eq!(message("signal"), "killed by signal 9 (SIGKILL)");
    assert!(message("missing").starts_with("command \"no-such-command-anywhere\" not found: "));
    assert!(message("folder").starts_with("command \"/\" can't be started: "));
    assert_eq!(message("nothing"), "the command is empty");
    assert!(message("nul").starts_with("command \"echo\" can't be started: "));
    bench.offer_of(8000);
}

/// Goal: a kill lets the executor end by itself, and is reported as KILLED whatever the exit code. Method: a shell that
/// cleans up on SIGTERM.
#[test]
fn a_kill_lets_the_executor_end_by_itself() {
    let bench = Bench::new("polite", "local-cluster[1,1,512]");
    let line = "trap 'echo tidy; exit 0' TERM; echo ready; while :; do sleep 0.05; done";
    let offer = bench.run_until_ready("tidy", line);
    bench.kill("tidy", LONG);
    bench.kill("tidy", LONG);
    bench.update("tidy", TaskState::Killing);
    assert_eq!(bench.update("tidy", TaskState::Killed).message, "on request: exit code 0");
    assert!(bench.output(&offer, "tidy", "stdout").contains("tidy"));
    bench.kill("tidy", LONG);
    assert_eq!(bench.update("tidy", TaskState::Gone).uuid, None);
}

/// Goal: an executor that doesn't end within the grace period is ended by force, and a later, shorter grace period
/// takes effect. Method: a shell that ignores SIGTERM, killed with a grace period of ten minutes, then of zero.
#[test]
fn a_kill_ends_by_force_what_ignores_it() {
    let bench = Bench::new("force", "local-cluster[1,2,512]");
    let deaf = "trap '' TERM; echo ready; while :; do sleep 0.05; done";
    bench.run_until_ready("deaf", deaf);
    bench.kill("deaf", LONG);
    bench.update("deaf", TaskState::Killing);
    bench.kill("deaf", Duration::from_millis(100));
    let killed = bench.update("deaf", TaskState::Killed);
    let expected = "on request, after its grace period: killed by signal 9 (SIGKILL)";
    assert_eq!(killed.message, expected);
}

/// Goal: an executor's child processes end with it. Method: a shell that leaves a grandchild that ignores signals, and
/// one that is killed together with its own.
#[cfg(target_os = "linux")]
#[test]
fn grandchildren_end_too() {
    let bench = Bench::new("grandchildren", "local-cluster[1,1,512]");
    let line = "(trap '' TERM; sleep 1000) & echo ready; exit 0";
    bench.run("leaver", &["sh", "-c", line]);
    bench.update("leaver", TaskState::Finished);
    until("left behind", || super::bench::processes_in(&bench.sandboxes()).is_empty());

    bench.run_until_ready("parent", "sleep 1000 & echo ready; wait");
    bench.kill("parent", LONG);
    bench.update("parent", TaskState::Killed);
    until("killed", || super::bench::processes_in(&bench.sandboxes()).is_empty());
}

/// Goal: an executor that leaves its process group can be killed. Method: `setsid`.
#[cfg(target_os = "linux")]
#[test]
fn an_executor_that_leaves_its_group_is_killed() {
    let bench = Bench::new("setsid", "local-cluster[1,1,512]");
    bench.run_until_ready("leaver", "exec setsid sh -c 'echo ready; exec sleep 1000'");
    bench.kill("leaver", LONG);
    bench.update("leaver", TaskState::Killed);
    until("killed", || super::bench::processes_in(&bench.sandboxes()).is_empty());
}

/// Goal: an executor that needs more than was offered, or has an invalid id, is refused; the rest of the accept is
/// carried out. Method: an accept with one executor for each kind of mistake and a valid one.
#[test]
fn unfit_executors_are_refused_one_by_one() {
    let bench = Bench::new("unfit", "local-cluster[1,2,512]");
    let offer = bench.offer();
    let argv = ["true"];
    let mut greedy = launch("greedy", &argv);
    greedy.resources.cores = MilliCpus::from_cores(3);
    let mut graphic = launch("graphic", &argv);
    graphic.resources.gpus = Gpus::new(1);
    let mut port = launch("port", &argv);
    port.resources.port = Some(80);
    let (escaping, fit) = (launch("../../escaping", &argv), launch("fit", &argv));
    bench.accept(&offer, &[greedy, graphic, port, escaping, fit], Duration::ZERO);
    for id in ["greedy", "graphic", "port", "../../escaping"] {
        let update = bench.update(id, TaskState::Error);
        assert!(!update.message.is_empty() && update.uuid.is_none());
    }
    bench.update("fit", TaskState::Finished);
}

/// Goal: commands that need unsupported features are refused instead of run without them, and a shell passes arguments
/// on unchanged. Method: commands with a container and a URI; a command for a shell whose exit code is its argument.
#[test]
fn what_takes_more_than_processes_is_refused() {
    let bench = Bench::new("setup", "local-cluster[1,4,512]");
    let offer = bench.offer();
    let with = |id, change: &dyn Fn(&mut Setup)| {
        let (mut setup, mut launch) = (Setup::default(), launch(id, &["true"]));
        change(&mut setup);
        launch.command.setup = Some(setup.into());
        launch
    };
    let image = || ContainerKind::Mesos { image: None, force_pull: false };
    let contained = with("contained", &|it| it.container = Some(Container::new(image())));
    let fetched = with("fetched", &|it| it.uris.push(Uri::new("/a")));
    let labelled = with("labelled", &|it| it.labels.push(("a".into(), None)));
    let mut shell = launch("shell", &["sh", "-c", "exit $1", "it's", "3"]);
    shell.command.form = CommandForm::Shell;
    bench.accept(&offer, &[contained, fetched, labelled, shell], Duration::ZERO);
    for (id, what) in [("contained", "containers"), ("fetched", "a fetcher for URIs")] {
        let message = bench.update(id, TaskState::Error).message;
        assert!(
            message.contains(&format!("the embedded cluster doesn't support {what}")),
            "{message}"
        );
    }
    bench.update("labelled", TaskState::Finished);
    let message = bench.update("shell", TaskState::Failed).message;
    assert!(message.contains('3'), "{message}");
}

/// Goal: an offer can be used once, in its own subscription, on its own agent. Method: an offer that was used, of
/// another subscription, of another agent, and one that never existed.
#[test]
fn invalid_offers_start_nothing() {
    let bench = Bench::new("invalid", "local-cluster[1,1,512]");
    let expect_dropped = |id: &str| {
        let update = bench.update(id, TaskState::Dropped);
        assert_eq!(update.reason, UpdateReason::InvalidOffers);
    };
    let mut offer = bench.offer();
    bench.accept_of(EPOCH + 1, &offer, &[launch("later", &["true"])], Duration::ZERO);
    expect_dropped("later");
    bench.accept(&offer, &[launch("good", &["true"])], Duration::ZERO);
    bench.accept(&offer, &[launch("twice", &["true"])], Duration::ZERO);
    expect_dropped("twice");
    bench.update("good", TaskState::Finished);
    offer = bench.offer();
    let agent_id = std::mem::replace(&mut offer.agent_id, "another".into());
    bench.accept(&offer, &[launch("elsewhere", &["true"])], Duration::ZERO);
    expect_dropped("elsewhere");
    offer.agent_id = agent_id;
    offer.id = "never".into();
    bench.accept(&offer, &[launch("never", &["true"])], Duration::ZERO);
    expect_dropped("never");
    bench.offer();
}

/// Goal: reconciliation reports the present state. Method: an executor that runs and one that doesn't, by name; then
/// all.
#[test]
fn reconciliation_tells_how_things_stand() {
    let bench = Bench::new("reconcile", "local-cluster[1,1,512]");
    bench.run_until_ready("here", "echo ready; exec sleep 1000");
    bench.reconcile(&["here", "nowhere"]);
    assert_eq!(bench.update("here", TaskState::Running).reason, UpdateReason::Reconciliation);
    assert_eq!(bench.update("nowhere", TaskState::Gone).reason, UpdateReason::Reconciliation);
    bench.reconcile(&[]);
    assert_eq!(bench.update("here", TaskState::Running).uuid, None);
    bench.kill("here", Duration::ZERO);
    bench.update("here", TaskState::Killed);
}

/// Goal: a stop ends the cluster's processes and events, and later calls are rejected. Method: stop twice, with an
/// executor that ends on SIGTERM and one that ignores it.
#[cfg(target_os = "linux")]
#[test]
fn stop_ends_everything_and_can_be_repeated() {
    let bench =
        Bench::with("stop", "local-cluster[2,1,512]", |it| it.grace(Duration::from_millis(200)));
    for (offer, id) in bench.offers().iter().zip(["obedient", "deaf"]) {
        let line = if id == "deaf" { "trap '' TERM; sleep 1000; sleep 1000" } else { "sleep 1000" };
        bench.accept(offer, &[launch(id, &["sh", "-c", line])], Duration::ZERO);
        bench.update(id, TaskState::Running);
    }
    bench.cluster.stop();
    bench.cluster.stop();
    until("stopped", || super::bench::processes_in(&bench.sandboxes()).is_empty());
    assert!(
        bench
            .cluster
            .call(crate::engine::cluster_manager::Call::Revive { epoch: 1 })
            .unwrap_err()
            .is_cluster()
    );
    assert!(bench.cluster.lose_agent(0).unwrap_err().is_cluster());
}
