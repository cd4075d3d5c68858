//! Tests of a standalone master without credentials on a machine with several users. They start the binary as other
//! users, for which they must run as root: `cargo test` leaves them out.

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use crate::as_root::{ATTACKER, NOBODY, Shared, errors};
use crate::eventually::eventually;
use crate::standalone::RunningMaster;
use crate::support::{Run, small};

/// A master and a worker of `nobody`, on loopback and without credentials.
struct Cluster {
    shared: Shared,
    master: RunningMaster,
    worker: Run,
}

impl Cluster {
    fn start(flags: &[&str]) -> Cluster {
        let shared = Shared::new();
        shared.folder_of(NOBODY, "home", 0o700);
        let flags = [&["master", "--listen", "127.0.0.1:0", "--state-dir", "home/m"], flags];
        let master = RunningMaster::watch(shared.start(NOBODY, &flags.concat()));
        let address = format!("http://127.0.0.1:{}", master.port);
        let flags = ["worker", "--master", &address, "--work-dir", "home/w", "--cores", "2"];
        let worker = shared.start(NOBODY, &[&flags[..], &["--memory", "1g"]].concat());
        eventually(Duration::from_secs(60), "the worker", || match master.state() {
            state if state["workers"] == 1 => Ok(()),
            state => Err(state.to_string()),
        });
        Cluster { shared, master, worker }
    }

    /// Runs a command on the worker, as a framework of `user` that asks for executors of the worker's user. Returns the
    /// exit code and what was said.
    fn run(&self, user: u32, command: &str) -> (Option<i32>, String) {
        let master = format!("offermill://127.0.0.1:{}", self.master.port);
        let flags = ["--master", &master, "-c", "offermill.mesos.user=nobody"];
        let more = ["--num-executors", "1", "--until-finished"];
        let arguments = small(&[&flags[..], &more].concat(), &["sh", "-c", command]);
        let ended = self.shared.run(user, &arguments);
        let output = String::from_utf8_lossy(&ended.stdout).into_owned();
        (ended.status.code(), output + &errors(&ended))
    }

    /// The status with which a teardown is answered that `user` asks for.
    fn tear_down(&self, user: u32) -> String {
        let request =
            "POST /master/teardown HTTP/1.1\r\nhost: localhost\r\ncontent-length: 13\r\n\r\n";
        let script = "exec 3<>/dev/tcp/127.0.0.1/$0; printf '%sframeworkId=x' \"$1\" >&3; \
                      read -r _ status _ <&3; echo \"$status\"";
        let mut asking = Command::new("bash");
        asking.args(["-c", script, &self.master.port, request]).uid(user).gid(user);
        String::from_utf8(asking.output().unwrap().stdout).unwrap().trim().to_owned()
    }

    /// Ends the worker and the master, and returns what the master has logged.
    fn end(self) -> String {
        self.worker.signal("TERM");
        self.worker.end();
        self.master.run.signal("TERM");
        self.master.run.end().errors
    }
}

/// Goal: a master without credentials, as in the guide's first example, is its user's alone: other users of the machine
/// run no command as that user, end no framework, and register no worker. They may ask what there is. Its own user, and
/// root, do all of that. Method: runs, teardowns and a worker of another user, and the same of root and the own user.
#[test]
#[ignore = "needs root"]
fn a_master_without_credentials_is_its_users_alone() {
    let cluster = Cluster::start(&[]);
    let owned = cluster.shared.path("home/owned");
    let touch = format!("id -u >>{}", owned.display());
    let (code, said) = cluster.run(ATTACKER, &touch);
    assert!(!owned.exists(), "another user's command was run:\n{said}");
    assert_eq!(code, Some(4), "{said}");
    assert!(said.contains("it answers programs of its own user alone"), "{said}");
    assert_eq!(cluster.tear_down(ATTACKER), "403");
    cluster.shared.folder_of(ATTACKER, "foreign", 0o700);
    let address = format!("http://127.0.0.1:{}", cluster.master.port);
    let flags = ["worker", "--master", &address, "--work-dir", "foreign", "--address", "other"];
    let refused = cluster.shared.run(ATTACKER, &flags);
    assert_eq!(refused.status.code(), Some(4), "{}", errors(&refused));
    let said = errors(&refused);
    assert!(said.contains("it answers programs of its own user alone"), "{said}");
    assert!(!said.contains("--client-certificate-file"), "{said}");
    for user in [NOBODY, 0] {
        let (code, said) = cluster.run(user, &touch);
        assert_eq!(code, Some(0), "{said}");
        assert_eq!(cluster.tear_down(user), "400");
    }
    assert_eq!(std::fs::read_to_string(&owned).unwrap(), "65534\n65534\n");
    let log = cluster.end();
    assert!(log.contains("is refused: it is of another user"), "{log}");
}

/// Goal: a master that is told so answers all users of its machine, and principals are enough for frameworks of other
/// users. Method: a run of another user with `--insecure`; a teardown with a principal.
#[test]
#[ignore = "needs root"]
fn a_master_may_answer_other_users() {
    let cluster = Cluster::start(&["--insecure"]);
    let owned = cluster.shared.path("home/owned");
    let (code, said) = cluster.run(ATTACKER, &format!("id -u >{}", owned.display()));
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(std::fs::read_to_string(&owned).unwrap(), "65534\n");
    assert_eq!(cluster.tear_down(ATTACKER), "400");
    cluster.end();
}
