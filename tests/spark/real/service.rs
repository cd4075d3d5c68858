//! Runs Spark's own shuffle service.

use std::process::Command;
use std::time::Duration;

use super::process::Watched;

/// A running service. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct ShuffleService(Watched);

impl ShuffleService {
    /// Starts a service that checks for expired applications every 5 s.
    ///
    /// Its first check may come before the table of applications is made, a race of Spark's own. Then it fails, and
    /// there is never another one. Such a service is replaced.
    pub(crate) fn start(port: u16) -> ShuffleService {
        for _ in 0..10 {
            let service = ShuffleService::start_once(port);
            if service.checks() {
                return service;
            }
            println!("a shuffle service that checks nothing is replaced");
        }
        panic!("ten shuffle services check nothing");
    }

    /// Whether the thread of its checks waits for the next one, not for ever.
    fn checks(&self) -> bool {
        let process = self.0.id().to_string();
        super::eventually(Duration::from_secs(30), "the state of its thread", || {
            let output = Command::new("jstack").arg(&process).output().unwrap();
            let text = String::from_utf8_lossy(&output.stdout);
            let mut threads = text.split("\n\n");
            let thread =
                threads.find(|one| one.contains("\"shuffle-cleaner-watcher\"")).ok_or("none")?;
            let is_in = |state: &str| thread.contains(&format!("State: {state} "));
            // Otherwise it is about to be in one of the two.
            let is_known = is_in("WAITING") || is_in("TIMED_WAITING");
            if is_known { Ok(is_in("TIMED_WAITING")) } else { Err(thread.to_owned()) }
        })
    }

    fn start_once(port: u16) -> ShuffleService {
        let mut watched = Watched::start("shuffle-service", &["--port", &port.to_string()]);
        watched.line("Starting shuffle service on port");
        // The log line is written before the service listens.
        super::eventually(Duration::from_secs(30), "the service", || {
            std::net::TcpStream::connect(("127.0.0.1", port)).map_err(|error| error.to_string())
        });
        ShuffleService(watched)
    }

    /// Waits for the next line of its log that contains `text`, and returns the text after it.
    #[track_caller]
    pub(crate) fn logs(&mut self, text: &str) -> String {
        self.0.line(text)
    }

    /// Whether its log has contained `text` so far.
    pub(crate) fn has_logged(&mut self, text: &str) -> bool {
        self.0.seen().iter().any(|line| line.contains(text))
    }
}
