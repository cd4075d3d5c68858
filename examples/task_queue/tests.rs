//! The example, as a test.
#![allow(clippy::unwrap_used)]

use super::Outcome;

/// Not a test: the program of the other tests' hosts, which run this test's program for it.
#[test]
#[ignore = "the program of hosts"]
fn program_of_hosts() {
    offermill::cluster::run_task_host().unwrap();
}

fn run(count: u64, kills: bool) -> Outcome {
    let own = std::env::current_exe().unwrap().into_os_string().into_string().unwrap();
    let test = ["--exact", "tests::program_of_hosts", "--ignored"].map(str::to_owned);
    super::run(count, kills, &[], [vec![own], test.to_vec()].concat()).unwrap()
}

/// Goal: all tasks finish, each that fails is started again, and no other. Method: 150 tasks, of which one fails once.
#[test]
fn each_task_finishes_once() {
    let Outcome { attempts, failed, lost, put_back } = run(150, false);
    // A machine that is busy may have no process for a task at the moment.
    assert_eq!((attempts, failed, lost), (151 + put_back, 1, 0));
}

/// Goal: whatever a host was doing that is killed, each attempt has one end, and each task finishes once.
/// Method: in the middle, the host of a task is killed that doesn't end before; the attempts are those that finished,
/// failed, were lost, and were put back.
#[test]
fn a_killed_host_loses_no_task() {
    let Outcome { attempts, failed, lost, put_back } = run(300, true);
    assert!(lost > 0, "the task that is held is lost with its host");
    assert_eq!(attempts, 300 + failed + lost + put_back);
    assert!(failed <= 3, "a task that is lost the first time doesn't fail the second time");
}

/// Goal: if hosts can't start, the example ends with the reason, after a few starts with pauses. Method: programs of
/// hosts that aren't there, may not be executed, or end at once.
#[test]
fn hosts_that_never_start_end_it() {
    let ends = |program: &str, expected: &str| {
        let why = super::run(20, false, &[], vec![program.to_owned()]).unwrap_err().to_string();
        let start = "no host of tasks has started on any agent: ";
        assert!(why.starts_with(start) && why.contains(expected), "{program}: {why}");
    };
    std::thread::scope(|scope| {
        scope.spawn(|| ends("/nowhere/host", "command \"/nowhere/host\" not found"));
        scope.spawn(|| ends("/dev/null", "command \"/dev/null\" can't be started"));
        scope.spawn(|| ends("true", "exit code 0"));
    });
}
