//! Tests of a master's web page, and of what it asks for.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::standalone::{HandWorker, RunningMaster, start_run, subscribe};
use crate::support::Folder;

/// The answer to a GET, with its head.
fn get(master: &RunningMaster, path: &str, headers: &str) -> String {
    let request =
        format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n{headers}connection: close\r\n\r\n");
    master.whole_answer(&request)
}

fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").unwrap().1
}

/// Goal: the page, its assets, and the executors, totals and history that it shows are served, each with the headers
/// that keep a browser from running or showing anything else. Method: an executor by hand that runs, and one that has
/// failed; each path.
#[test]
fn a_master_is_shown() {
    let folder = Folder::new();
    let master = RunningMaster::start(&folder, "127.0.0.1:0", &[]);
    let mut worker = HandWorker::connect(&master, &subscribe(), "");
    let id = worker.hear_a("SUBSCRIBED")["id"].clone();
    let run = start_run(&folder, &master, &["--num-executors", "1"], &["sleep", "600"]);
    let failing = worker.hear_a("LAUNCH");
    worker.report(&failing, "RUNNING");
    worker.report(&failing, "FAILED");
    let launch = worker.hear_a("LAUNCH");
    worker.report(&launch, "RUNNING");
    for (path, kind, part) in [
        ("/", "text/html", "<script src=\"master.js\" defer></script>"),
        ("/page.css", "text/css", "prefers-color-scheme: dark"),
        ("/page.js", "text/javascript", "use strict"),
        ("/master.js", "text/javascript", "use strict"),
        ("/state", "application/json", "\"failed\":1,"),
        ("/executors", "application/json", "\"state\":\"running\""),
        ("/history", "application/json", "\"interval_ms\":5000"),
        ("/metrics", "text/plain; version=0.0.4", "executors_ended_total{state=\"failed\"} 1\n"),
        ("/health", "text/plain", "ok\n"),
    ] {
        let answer = get(&master, path, "");
        assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains(part), "{path}: {answer}");
        for line in [
            &*format!("content-type: {kind}"),
            "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self';",
            "frame-ancestors 'none'",
            "x-content-type-options: nosniff",
            "cross-origin-resource-policy: same-origin",
            "cache-control: no-store",
        ] {
            assert!(answer.contains(line), "{path} lacks {line}: {answer}");
        }
    }
    let executors: Value = serde_json::from_str(body(&get(&master, "/executors", ""))).unwrap();
    assert_eq!(
        executors,
        json!({"not_listed": 0, "executors": [{
            "id": launch["executor"], "framework": launch["framework"], "worker": id,
            "state": "running", "resources": {"cpus": 1.0, "mem": 16.0},
        }]})
    );
    let state: Value = serde_json::from_str(body(&get(&master, "/state", ""))).unwrap();
    let totals = &state["totals"];
    assert_eq!((&totals["launched"], &totals["finished"]), (&json!(2), &json!(0)), "{totals}");
    assert!(totals["offers"].as_u64().unwrap() >= 2, "{totals}");
    let history: Value = serde_json::from_str(body(&get(&master, "/history", ""))).unwrap();
    let samples = history["at_ms"].as_array().unwrap().len();
    for figure in ["running", "failed", "offers_per_second", "cores_used", "cores_free"] {
        assert_eq!(history[figure].as_array().unwrap().len(), samples, "{figure}: {history}");
    }
    drop(run);
}

/// Goal: without credentials the page says nothing of the cluster, and a browser asks its reader for them. Method: a
/// master with principals and tokens; each path without, with wrong and with right credentials.
#[test]
fn the_page_has_no_data_of_its_own() {
    let folder = Folder::new();
    for (name, text) in [("principals", "etl s3cret\n"), ("tokens", "0123456789abcdef\n")] {
        let path = folder.write(name, text);
        fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
    }
    let flags = ["--principals-file", "principals", "--worker-tokens-file", "tokens"];
    let master = RunningMaster::start(&folder, "127.0.0.1:0", &flags);
    let status = |path: &str, headers: &str| get(&master, path, headers)[9..12].to_owned();
    for path in ["/", "/page.css", "/page.js", "/master.js", "/health"] {
        assert_eq!(status(path, ""), "200", "{path}");
    }
    // etl:s3cret and etl:wrong.
    let right = "authorization: Basic ZXRsOnMzY3JldA==\r\n";
    let wrong = "authorization: Basic ZXRsOndyb25n\r\n";
    for path in ["/state", "/executors", "/history", "/metrics"] {
        assert_eq!(status(path, ""), "401", "{path}");
        assert_eq!(status(path, wrong), "401", "{path}");
        assert_eq!(status(path, right), "200", "{path}");
        let foreign = format!("{right}origin: https://evil.example\r\n");
        assert_eq!(status(path, &foreign), "403", "{path}");
    }
    let answer = get(&master, "/state", "").to_ascii_lowercase();
    assert!(answer.contains("www-authenticate: basic realm="), "{answer}");
}
