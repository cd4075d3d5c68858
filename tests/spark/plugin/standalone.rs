//! Applications on Offermill's own cluster, a master and its workers.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use super::SPARK_4;
use super::jobs::{end_jobs, jobs_and_a_kill};
use crate::support::Folder;

/// A program that is killed at the end of the test.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        let _ended = self.0.kill();
        let _status = self.0.wait();
    }
}

/// Starts a master in a folder, and returns the address at which it listens.
fn master(folder: &Folder) -> (Program, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_offermill"));
    command.args(["master", "--listen", "127.0.0.1:0", "--state-dir"]).arg(folder.0.join("master"));
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().rsplit(' ').next().unwrap().to_owned();
    (Program(child), address)
}

/// Starts a worker with an address of this machine as its name, at which its executors listen.
fn worker(folder: &Folder, host: &str, master: &str) -> Program {
    let mut command = Command::new(env!("CARGO_BIN_EXE_offermill"));
    command.args(["worker", "--master", &format!("http://{master}"), "--work-dir"]);
    command.arg(folder.0.join(host)).args(["--hostname", host, "--cores", "2", "--memory", "2g"]);
    Program(command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
}

/// Goal: an application's jobs are right on Offermill's own cluster while an executor is killed. Method: as on local
/// agents; a master and two workers.
#[test]
#[ignore = "needs Spark"]
fn an_application_on_workers_survives_a_kill() {
    let folder = Folder::new();
    let (_master, address) = master(&folder);
    let _workers = ["127.0.10.1", "127.0.11.1"].map(|host| worker(&folder, host, &address));
    let user = Command::new("id").arg("-un").output().unwrap().stdout;
    let user = String::from_utf8(user).unwrap();
    let user = format!("spark.offermill.mesos.user={}", user.trim());
    let settings = [user.as_str(), "spark.offermill.mesos.secretOverHttp=true"];
    let master = format!("offermill://{address}");
    let (application, _) = jobs_and_a_kill(SPARK_4, &master, "127.0.1", &settings);
    end_jobs(application);
}
