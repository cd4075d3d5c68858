//! A Spark driver without executors of its own.

use std::net::TcpListener;
use std::os::unix::fs::MetadataExt;

use super::process::Watched;

/// A driver. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Driver {
    watched: Watched,
    /// Spark's home folder.
    pub(crate) home: String,
    /// The URL that executors register at.
    pub(crate) url: String,
    /// The id of its application.
    pub(crate) app_id: String,
}

/// Returns ports without a listener.
pub(crate) fn free_ports<const N: usize>() -> [u16; N] {
    let all = [(); N].map(|()| TcpListener::bind(("0.0.0.0", 0)).unwrap());
    all.each_ref().map(|one| one.local_addr().unwrap().port())
}

impl Driver {
    /// Starts a driver, which begins to work when executors with two cores have registered, and waits until they can
    /// register.
    pub(crate) fn start(flags: &[&str]) -> Driver {
        let [port, master_port] = free_ports().map(|port| port.to_string());
        let ports = ["--port", &port, "--master-port", &master_port, "--wait-cores", "2"];
        let mut watched = Watched::start("spark-driver", &[&ports, flags].concat());
        let home = watched.line("SPARK_HOME ");
        let url = watched.line("DRIVER_URL ");
        let app_id = watched.line("APP_ID ");
        Driver { watched, home, url, app_id }
    }

    /// The arguments of `offermill run` on `master` with two executors of this driver, which ends when both have
    /// finished.
    pub(crate) fn arguments<'a>(&'a self, master: &'a str, home: &'a str) -> Vec<&'a str> {
        // An agent without root's rights can start executors as no other user, and root is never the default.
        let is_root = std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
        let user: &[&str] = match is_root && master.starts_with("mesos:") {
            true => &["--conf", "offermill.mesos.user=root"],
            false => &[],
        };
        let mut arguments = vec![
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
        ];
        arguments.extend(user);
        arguments
    }

    /// Waits until another round of jobs had the right results.
    #[track_caller]
    pub(crate) fn round(&mut self) {
        let round = self.watched.line("ROUND ");
        assert!(round.ends_with(" ok"), "{round}");
    }

    /// Waits for the driver's end, which must be successful.
    #[track_caller]
    pub(crate) fn succeed(mut self) {
        assert_eq!(self.watched.line("RESULT "), "ok");
        assert_eq!(self.watched.end(), Some(0));
        let rounds = self.watched.seen().iter().filter(|line| line.starts_with("ROUND ")).count();
        // `.ci/spark` counts these lines.
        println!("jobs: {rounds} rounds");
    }
}
