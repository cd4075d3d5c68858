//! A driver of Spark without executors of its own.

use std::net::TcpListener;

use super::process::Watched;

/// A driver. Dropped, it ends.
#[derive(Debug)]
pub(crate) struct Driver {
    watched: Watched,
    /// Where Spark is.
    pub(crate) home: String,
    /// Where executors register.
    pub(crate) url: String,
    /// Its application's id.
    pub(crate) app_id: String,
}

/// Ports without a listener.
pub(crate) fn free_ports<const N: usize>() -> [u16; N] {
    let all = [(); N].map(|()| TcpListener::bind(("0.0.0.0", 0)).unwrap());
    all.each_ref().map(|one| one.local_addr().unwrap().port())
}

impl Driver {
    /// Starts one that begins to work when executors with two cores have registered, and waits until they can.
    pub(crate) fn start(flags: &[&str]) -> Driver {
        let [port, master_port] = free_ports().map(|port| port.to_string());
        let ports = ["--port", &port, "--master-port", &master_port, "--wait-cores", "2"];
        let mut watched = Watched::start("spark-driver", &[&ports, flags].concat());
        let home = watched.line("SPARK_HOME ");
        let url = watched.line("DRIVER_URL ");
        let app_id = watched.line("APP_ID ");
        Driver { watched, home, url, app_id }
    }

    /// `offermill run` on `master` with two executors of this driver, until both have finished.
    pub(crate) fn arguments<'a>(&'a self, master: &'a str, home: &'a str) -> Vec<&'a str> {
        vec![
            "run",
            "--json",
            "--until-finished",
            "--master",
            master,
            "--num-executors",
            "2",
            "--executor-cores",
            "1",
            "--executor-memory",
            "512m",
            "--shutdown-timeout",
            "30s",
            "--spark-driver",
            &self.url,
            "--spark-app-id",
            &self.app_id,
            "--conf",
            home,
        ]
    }

    /// Waits until another round of jobs has been right.
    #[track_caller]
    pub(crate) fn round(&mut self) {
        let round = self.watched.line("ROUND ");
        assert!(round.ends_with(" ok"), "{round}");
    }

    /// Waits for its end, which must be a good one.
    #[track_caller]
    pub(crate) fn succeed(mut self) {
        assert_eq!(self.watched.line("RESULT "), "ok");
        assert_eq!(self.watched.end(), Some(0));
        let rounds = self.watched.seen().iter().filter(|line| line.starts_with("ROUND ")).count();
        // `.ci/spark` counts these.
        println!("jobs: {rounds} rounds");
    }
}
