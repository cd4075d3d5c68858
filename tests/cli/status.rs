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
