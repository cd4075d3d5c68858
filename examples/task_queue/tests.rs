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
    super::run(count, [vec![own], test.to_vec()].concat(), kills).unwrap()
}

/// Goal: all tasks finish, each that fails is started again, and no other. Method: 150 tasks, of which one fails once.
#[test]
fn each_task_finishes_once() {
    assert_eq!(run(150, false), Outcome { attempts: 151, failed: 1, lost: 0 });
}

/// Goal: a host that is killed loses tasks, and these run again: each attempt has one end, and each task finishes once.
/// Method: a host is killed in the middle; the attempts are those that finished, failed and were lost.
#[test]
fn a_killed_host_loses_no_task() {
    let Outcome { attempts, failed, lost } = run(300, true);
    assert_eq!(attempts, 300 + failed + lost);
    assert!(failed <= 3, "a task that is lost the first time doesn't fail the second time");
}
