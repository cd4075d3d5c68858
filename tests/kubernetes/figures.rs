//! Figures, with the fake API server: how fast pods are created and executors adopted, with how many requests and how
//! much memory. Ignored, because they take minutes and judge no time; benches/README.md says how they are run.
//!
//! The manager is in a process of its own, so that its memory is its own.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::child::{Child, ChildSettings};
use crate::eventually::eventually;
use crate::fake::{ApiServer, Fault};

/// Longer than any of this takes.
const PATIENCE: Duration = Duration::from_secs(600);

fn child(server: &ApiServer, executors: u32) -> ChildSettings {
    let (url, namespace, name) = (server.url.clone(), "jobs".to_owned(), "etl".to_owned());
    ChildSettings { url, namespace, name, executors, ..ChildSettings::default() }
}

/// Gives back the lease of a run that was killed, so that the next needn't wait for its end.
fn free_lease(server: &ApiServer) {
    let mut state = server.state();
    if let Some(lease) = state.leases.get_mut("etl") {
        lease["spec"]["holderIdentity"] = "".into();
        lease["metadata"]["resourceVersion"] = "freed".into();
    }
}

/// Goal: creations overlap, an executor takes two requests and little memory. Method: ten thousand executors with
/// 50 ms for each creation, which then finish; the times, the requests and the memory of the process are printed.
#[test]
#[ignore = "a figure"]
fn ten_thousand_pods() {
    let executors: u32 =
        std::env::var("FIGURE_PODS").ok().and_then(|it| it.parse().ok()).unwrap_or(10_000);
    let one = {
        let server = ApiServer::start();
        Child::start(&child(&server, 1), 1).wait_said("runs")[1]
    };
    let server = ApiServer::start();
    server.state().always = Some(Fault::Delay(Duration::from_millis(50)));
    let began = Instant::now();
    let settings = ChildSettings { counts_down: true, ..child(&server, executors) };
    let mut run = Child::start(&settings, 1);
    let count =
        |what: usize| if what == executors as usize { Ok(()) } else { Err(what.to_string()) };
    eventually(PATIENCE, "all pods", || count(server.state().created.len()));
    let created = began.elapsed();
    let all = run.wait_said("runs");
    let running = began.elapsed();
    let names: Vec<String> = server.state().pods.keys().cloned().collect();
    for name in names {
        server.exit(&name, 0);
    }
    eventually(PATIENCE, "no pods", || {
        let left = server.state().pods.len();
        if left == 0 { Ok(()) } else { Err(left.to_string()) }
    });
    let requests = ["POST /api/", "GET /api/", "DELETE /api/"].map(|kind| server.count(kind));
    let state = server.state();
    assert_eq!(state.created.len(), executors as usize);
    let kib = all[1].saturating_sub(one) as f64 / f64::from(executors);
    println!(
        "{executors} pods created in {created:.1?}, {} at a time; all known to run after {running:.1?}; ended {:.1?} \
         later",
        state.creating_most,
        began.elapsed() - running,
    );
    println!(
        "{:.2} requests a life, {} lists; {} MiB resident, of which {} MiB with one executor: {kib:.1} KiB an executor",
        requests.iter().sum::<usize>() as f64 / f64::from(executors),
        server_lists(&state.requests),
        all[1] / 1024,
        one / 1024,
    );
}

fn server_lists(requests: &[String]) -> usize {
    requests.iter().filter(|request| request.starts_with("LIST")).count()
}

/// Goal: whenever a run is killed, the next takes over what it has left: no executor is killed or doubled. Method: a
/// thousand executors; the run is killed by SIGKILL at a hundred random moments, the first ones while pods are created,
/// and started again; the times until all executors are known are printed.
#[test]
#[ignore = "a figure"]
fn a_hundred_kills() {
    let server = ApiServer::start();
    server.state().always = Some(Fault::Delay(Duration::from_millis(20)));
    let settings = child(&server, 1000);
    let mut chance = 0x9e37_79b9_7f4a_7c15_u64;
    let mut adopted = Vec::new();
    for run in 1..=100 {
        let mut child = Child::start(&settings, run);
        chance ^= chance << 13;
        chance ^= chance >> 7;
        chance ^= chance << 17;
        if run % 5 == 0 && server.state().created.len() == 1000 {
            adopted.push(child.wait_said("knows")[0]);
        } else {
            std::thread::sleep(Duration::from_millis(chance % 1500));
        }
        child.kill();
        free_lease(&server);
        let state = server.state();
        assert!(state.created.len() <= 1000, "run {run}: {} pods", state.created.len());
        assert!(state.graces.is_empty(), "run {run}: {:?}", state.graces);
    }
    let mut last = Child::start(&settings, 101);
    adopted.push(last.wait_said("knows")[0]);
    last.wait_said("runs");
    let state = server.state();
    let name = |pod: &serde_json::Value| pod["metadata"]["name"].as_str().unwrap().to_owned();
    let names: BTreeSet<String> = state.created.iter().map(name).collect();
    assert_eq!((names.len(), state.created.len(), state.pods.len()), (1000, 1000, 1000));
    adopted.sort_unstable();
    println!(
        "1000 executors adopted in {} ms (median of {}; at most {} ms), 100 kills, none ended, none doubled",
        adopted[adopted.len() / 2],
        adopted.len(),
        adopted[adopted.len() - 1],
    );
}
