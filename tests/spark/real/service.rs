//! Spark's own shuffle service.

use super::process::Watched;

/// A service, ready. Dropped, it ends.
#[derive(Debug)]
pub(crate) struct ShuffleService(Watched);

impl ShuffleService {
    /// One that looks for silent applications each second.
    pub(crate) fn start(port: u16) -> ShuffleService {
        let mut watched = Watched::start("shuffle-service", &["--port", &port.to_string()]);
        watched.line("Starting shuffle service on port");
        // It says so before it does.
        super::eventually(std::time::Duration::from_secs(30), "the service", || {
            std::net::TcpStream::connect(("127.0.0.1", port)).map_err(|error| error.to_string())
        });
        ShuffleService(watched)
    }

    /// What follows `text` in the next line of its log that has it.
    #[track_caller]
    pub(crate) fn logs(&mut self, text: &str) -> String {
        self.0.line(text)
    }

    /// Whether its log had `text` so far.
    pub(crate) fn has_logged(&mut self, text: &str) -> bool {
        self.0.seen().iter().any(|line| line.contains(text))
    }
}
