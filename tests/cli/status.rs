//! Tests of the status of a run.

use serde_json::json;

use crate::controlling::{Client, living, name, running, start};
use crate::support::Folder;

/// Goal: the cores of a status are those of its executors, also while executors are placed. Method: ask again and again
/// while the limit goes up and down.
#[test]
fn cores_are_those_of_the_executors() {
    let folder = Folder::new();
    let (_run, socket) = start(&folder, &["--num-executors", "1"]);
    let mut client = Client::new(&socket);
    for _ in 0..5 {
        client.request("limit 8");
        for _ in 0..200 {
            let status = client.status();
            let living = living(&status);
            assert_eq!(status["cores"], json!(living as f64), "{status}");
            if status["executors"]["running"] == 8 {
                break;
            }
        }
        let all = client.status();
        client.request("limit 1");
        let names: Vec<String> = (1..living(&all)).map(|place| name(&all, place)).collect();
        client.request(&format!("kill {}", names.join(" ")));
        let status = client.wait_for(running(1));
        assert_eq!(status["cores"], json!(1.0));
    }
}

/// Goal: the status says what the cluster has, in agreement with what its agents and the run's executors have, as text
/// and as JSON; and so does the summary. Method: two agents of four cores and 128 MiB; before and after an executor
/// ends.
#[test]
fn a_status_has_the_clusters_capacity() {
    let folder = Folder::new();
    let (run, socket) = start(&folder, &["--num-executors", "3"]);
    let mut client = Client::new(&socket);
    let amounts =
        |cores: f64, memory: u64| json!({ "cores": cores, "memory_mib": memory, "gpus": 0 });
    let status = client
        .wait_for(|status| running(3)(status) && status["cluster"]["used"]["cores"] == json!(3.0));
    let each = status["living"][0]["memory_mib"].as_u64().unwrap();
    let cluster = &status["cluster"];
    assert_eq!((&cluster["agents"], &cluster["exact"]), (&json!(2), &json!(true)), "{cluster}");
    assert_eq!(cluster["offered"], amounts(8.0, 256), "{cluster}");
    assert_eq!(cluster["used"], amounts(3.0, 3 * each), "{cluster}");
    assert_eq!(cluster["free"], amounts(5.0, 256 - 3 * each), "{cluster}");
    assert_eq!(cluster["withheld"], amounts(0.0, 0), "{cluster}");
    assert_eq!(cluster["largest_agent"], amounts(4.0, 128), "{cluster}");
    assert!(cluster["at_ms"].as_u64().unwrap() <= status["ran_ms"].as_u64().unwrap(), "{status}");
    let lines = client.request_block("status");
    let (used, free) = (3 * each, 256 - 3 * each);
    let line = format!(
        "cluster     2 agents offered 8 cores, 256 MiB; used 3 cores, {used} MiB; free 5 cores, {free} MiB; an agent \
         has up to 4 cores, 128 MiB, free and used together"
    );
    assert!(lines.contains(&line), "{lines:?}");

    client.request("limit 1");
    let names = [1, 2].map(|place| name(&status, place));
    client.request(&format!("kill {}", names.join(" ")));
    let fewer = |status: &serde_json::Value| status["cluster"]["used"] == amounts(1.0, each);
    let status = client.wait_for(|status| running(1)(status) && fewer(status));
    assert_eq!(status["cluster"]["free"], amounts(7.0, 256 - each), "{status}");
    client.request("stop");
    let ended = run.end();
    let events = ended.events();
    let cluster = &events.last().unwrap()["cluster"];
    let expected = json!({
        "agents": 2, "offered_max": amounts(8.0, 256), "used_max": amounts(3.0, 3 * each),
    });
    assert_eq!(cluster, &expected);
}
