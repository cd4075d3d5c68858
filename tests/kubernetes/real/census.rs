//! An independent watch of a run's pods, which counts those that are alive.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::curl_command;

#[derive(Default)]
struct Counts {
    alive: BTreeSet<String>,
    most: usize,
    /// All pods that were ever seen.
    seen: BTreeSet<String>,
    watching: Option<Child>,
    is_over: bool,
}

/// Counts a run's pods until it is dropped.
pub(super) struct Census(Arc<Mutex<Counts>>);

impl Census {
    /// Begins to count the pods of a run in this namespace.
    pub(super) fn start(namespace: &str, run: &str) -> Census {
        let counts = Arc::new(Mutex::new(Counts::default()));
        let counting = Arc::clone(&counts);
        let path = format!(
            "/api/v1/namespaces/{namespace}/pods?labelSelector=offermill%2Frun%3D{run}&watch=1"
        );
        thread::spawn(move || {
            while !lock(&counting).is_over {
                count(&counting, &path);
                // The API server may be away.
                thread::sleep(Duration::from_millis(50));
            }
        });
        Census(counts)
    }

    /// The most pods that were alive at a time, by each event of the watch.
    pub(super) fn most(&self) -> usize {
        lock(&self.0).most
    }

    /// The number of different pods.
    pub(super) fn seen(&self) -> usize {
        lock(&self.0).seen.len()
    }
}

impl Drop for Census {
    fn drop(&mut self) {
        let mut counts = lock(&self.0);
        counts.is_over = true;
        if let Some(mut watching) = counts.watching.take() {
            let _gone = watching.kill();
            let _ended = watching.wait();
        }
    }
}

fn lock(counts: &Mutex<Counts>) -> MutexGuard<'_, Counts> {
    counts.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Counts for as long as one watch lasts, which begins with the pods that there are.
fn count(counting: &Mutex<Counts>, path: &str) {
    let mut curl = curl_command("GET", path);
    let started = curl.arg("-N").stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let Ok(mut watching) = started else { return };
    let Some(events) = watching.stdout.take() else { return };
    {
        let mut counts = lock(counting);
        counts.alive.clear();
        counts.watching = Some(watching);
    }
    for line in BufReader::new(events).lines().map_while(Result::ok) {
        let Ok(event) = serde_json::from_str::<Value>(&line) else { continue };
        let pod = &event["object"];
        let Some(name) = pod["metadata"]["name"].as_str() else { continue };
        let has_ended = matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
        let mut counts = lock(counting);
        counts.seen.insert(name.to_owned());
        if has_ended || event["type"] == "DELETED" {
            counts.alive.remove(name);
        } else {
            counts.alive.insert(name.to_owned());
        }
        counts.most = counts.most.max(counts.alive.len());
    }
    if let Some(mut ended) = lock(counting).watching.take() {
        let _gone = ended.kill();
        let _ended = ended.wait();
    }
}
