//! Runs Spark's own shuffle service.

use super::process::Watched;

/// A running service. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct ShuffleService(Watched);

impl ShuffleService {
    /// Starts a service that checks for expired applications every 5 s.
    pub(crate) fn start(port: u16) -> ShuffleService {
        let mut watched = Watched::start("shuffle-service", &["--port", &port.to_string()]);
        watched.line("Starting shuffle service on port");
        // The log line is written before the service listens.
        super::eventually(std::time::Duration::from_secs(30), "the service", || {
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
