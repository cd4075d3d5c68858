//! Tests with several users of one machine: folders and files that another user prepared, and the user that executors
//! run as. They start the binary as other users, for which they must run as root: `cargo test` leaves them out.

use std::fs::{self, File, Permissions};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, lchown, symlink};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use crate::support::{Folder, Run, small};

/// A user that has a name on every machine.
pub(crate) const NOBODY: u32 = 65_534;
/// Users without a name.
pub(crate) const VICTIM: u32 = 64_001;
pub(crate) const ATTACKER: u32 = 64_002;

/// A machine with a folder that all users may write, like `/tmp`, and with the binary.
pub(crate) struct Shared {
    pub(crate) folder: Folder,
    binary: PathBuf,
}

impl Shared {
    pub(crate) fn new() -> Shared {
        let folder = Folder::new();
        let owner = fs::metadata(&folder.0).unwrap().uid();
        assert_eq!(owner, 0, "this test must run as root, to act as several users");
        let binary = folder.0.join("offermill");
        // The build folder may be closed to other users.
        // A process copies it: a test in another thread that forks would inherit a file that is open for writing here,
        // and no file is executed while one has it open so.
        let copied =
            Command::new("cp").arg("-p").arg(env!("CARGO_BIN_EXE_offermill")).arg(&binary).status();
        assert!(copied.unwrap().success());
        fs::set_permissions(&folder.0, Permissions::from_mode(0o1777)).unwrap();
        Shared { folder, binary }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.0.join(name)
    }

    /// Makes a folder of `owner`.
    pub(crate) fn folder_of(&self, owner: u32, name: &str, mode: u32) -> PathBuf {
        let path = self.path(name);
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        chown(&path, Some(owner), Some(owner)).unwrap();
        path
    }

    /// Runs the binary as `user`, without any variables.
    pub(crate) fn run(&self, user: u32, arguments: &[&str]) -> Output {
        self.run_in_group(user, user, arguments)
    }

    fn run_in_group(&self, user: u32, group: u32, arguments: &[&str]) -> Output {
        self.command(user, group, arguments).output().unwrap()
    }

    /// Starts the binary as `user`, without any variables.
    pub(crate) fn start(&self, user: u32, arguments: &[&str]) -> Run {
        let mut command = self.command(user, user, arguments);
        Run::watch(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
    }

    fn command(&self, user: u32, group: u32, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command.args(arguments).uid(user).gid(group).env_clear().current_dir(&self.folder.0);
        command.env("PATH", "/usr/bin:/bin").stdin(Stdio::null());
        command
    }
}

pub(crate) fn errors(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Goal: a work folder that another user made is refused with a sentence, one of the user's own serves, and what is
/// made there is closed to others. Method: the run of one user in folders of two.
#[test]
#[ignore = "needs root"]
fn a_work_folder_of_another_user_is_refused() {
    let shared = Shared::new();
    let run = |work_dir: &str| {
        let master = ["--master", "local-cluster[1,1,64]", "--num-executors", "1"];
        let flags = [&master[..], &["--until-finished", "--work-dir", work_dir]].concat();
        shared.run(VICTIM, &small(&flags, &["sh", "-c", "echo done; pwd -P"]))
    };
    for (owner, mode, sentence) in [
        (ATTACKER, 0o777, "it belongs to another user, whose id is 64002"),
        (VICTIM, 0o777, "other users may write it: its mode is 0777"),
    ] {
        let name = format!("work-{owner}");
        let path = shared.folder_of(owner, &name, mode);
        let refused = run(&name);
        assert_eq!(refused.status.code(), Some(2), "{}", errors(&refused));
        assert!(errors(&refused).contains(sentence), "{}", errors(&refused));
        assert_eq!(fs::read_dir(&path).unwrap().count(), 0);
    }
    let ended = run("own");
    assert_eq!(ended.status.code(), Some(0), "{}", errors(&ended));
    let mut path = shared.path("own");
    while path.is_dir() {
        let found = fs::metadata(&path).unwrap();
        assert_eq!((found.uid(), found.mode() & 0o777), (VICTIM, 0o700), "{}", path.display());
        let inner = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path());
        path = inner.max().unwrap();
    }
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    let output = fs::read_to_string(path.with_file_name("stdout")).unwrap();
    assert_eq!(output, format!("done\n{}\n", path.parent().unwrap().display()));
}

/// Goal: a folder that a group may write is refused unless the group is the user's own. Method: the run of a user with
/// a group of its own, and of one whose group has other members.
#[test]
#[ignore = "needs root"]
fn a_work_folder_of_a_group_is_refused() {
    const USERS: u32 = 100;
    let shared = Shared::new();
    for (group, code) in [(VICTIM, 0), (USERS, 2)] {
        let name = format!("work-{group}");
        chown(shared.folder_of(VICTIM, &name, 0o770), None, Some(group)).unwrap();
        let master = ["--master", "local-cluster[1,1,64]", "--num-executors", "1"];
        let flags = [&master[..], &["--until-finished", "--work-dir", &name]].concat();
        let ended = shared.run_in_group(VICTIM, group, &small(&flags, &["true"]));
        assert_eq!(ended.status.code(), Some(code), "{}", errors(&ended));
    }
}

/// Goal: files that are written anew neither follow other users' links nor use their files. Method: links, files and a
/// pipe of another user in the places of a report, a journal and its answers; such a link behind one of the user's own;
/// the modes of what is written.
#[test]
#[ignore = "needs root"]
fn links_and_files_of_other_users_are_refused() {
    let shared = Shared::new();
    let precious = shared.path("precious");
    fs::write(&precious, "").unwrap();
    chown(&precious, Some(VICTIM), None).unwrap();
    let link = |name: &str| {
        symlink(&precious, shared.path(name)).unwrap();
        lchown(shared.path(name), Some(ATTACKER), None).unwrap();
    };
    link("report.html");
    link("linked");
    link("half.answers");
    fs::write(shared.path("foreign"), "").unwrap();
    fs::set_permissions(shared.path("foreign"), Permissions::from_mode(0o666)).unwrap();
    chown(shared.path("foreign"), Some(ATTACKER), None).unwrap();
    // The pipe has a reader, so that opening it for writing succeeds.
    assert!(Command::new("mkfifo").arg(shared.path("pipe")).status().unwrap().success());
    fs::set_permissions(shared.path("pipe"), Permissions::from_mode(0o666)).unwrap();
    chown(shared.path("pipe"), Some(ATTACKER), None).unwrap();
    let _reader = File::options().read(true).write(true).open(shared.path("pipe")).unwrap();
    let chain = shared.folder_of(VICTIM, "chain", 0o700).join("report.html");
    symlink(shared.path("report.html"), &chain).unwrap();
    lchown(&chain, Some(VICTIM), None).unwrap();
    let simulate = |report| {
        let size = ["--agents", "2", "--duration", "1s"];
        shared.run(VICTIM, &[&["simulate"], &size[..], &["--report", report]].concat())
    };
    let flags = ["--master", "local-cluster[1,1,64]", "--num-executors", "1", "--until-finished"];
    let run = |journal| {
        let more = ["--work-dir", "work", "--journal", journal];
        shared.run(VICTIM, &small(&[&flags[..], &more].concat(), &["true"]))
    };
    let link = "it is a link of another user, whose id is 64002";
    for (refused, sentence) in [
        (simulate("report.html"), link),
        (simulate("chain/report.html"), link),
        (run("linked"), link),
        (run("half"), link),
        (run("pipe"), "it belongs to another user, whose id is 64002"),
        (run("foreign"), "it belongs to another user, whose id is 64002"),
    ] {
        assert_eq!(refused.status.code(), Some(2), "{}", errors(&refused));
        assert!(errors(&refused).contains(sentence), "{}", errors(&refused));
    }
    for written in [simulate("own.html"), run("own")] {
        assert_eq!(written.status.code(), Some(0), "{}", errors(&written));
    }
    for name in ["own.html", "own", "own.answers"] {
        let found = fs::metadata(shared.path(name)).unwrap();
        assert_eq!((found.uid(), found.mode() & 0o777), (VICTIM, 0o600), "{name}");
    }
    assert_eq!(fs::metadata(&precious).unwrap().len(), 0);
    assert!(!shared.path("half").exists());
}

/// The user that a run as `user` names to the master, or its complaint. The master is one that reads a single request.
fn user_on_the_wire(shared: &Shared, user: u32, flags: &[&str]) -> Result<String, String> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let master = format!("mesos://{}", listener.local_addr().unwrap());
    let asked = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = Vec::new();
        while !request.ends_with(b"}}") && !request.ends_with(b"}}}") {
            let mut part = [0; 4096];
            match stream.read(&mut part).unwrap() {
                0 => break,
                bytes => request.extend_from_slice(&part[..bytes]),
            }
        }
        let _gone = stream.write_all(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
        String::from_utf8(request).unwrap()
    });
    let common = ["--master", &master, "-c", "offermill.mesos.encoding=json"];
    let output = shared.run(user, &small(&[&common[..], flags].concat(), &["true"]));
    if output.status.code() == Some(2) {
        return Err(errors(&output));
    }
    let request = asked.join().unwrap();
    let body = request.split_once("\r\n\r\n").unwrap().1;
    let body: serde_json::Value = serde_json::from_str(body).unwrap();
    Ok(body["subscribe"]["framework_info"]["user"].as_str().unwrap().to_owned())
}

/// Goal: executors run as the user of the run, whatever its environment says; as root only if that is set; and if the
/// user has no name, a sentence asks for one. Method: the first call of runs by several users without variables.
#[test]
#[ignore = "needs root"]
fn executors_do_not_run_as_root_by_default() {
    let shared = Shared::new();
    assert_eq!(user_on_the_wire(&shared, NOBODY, &[]).as_deref(), Ok("nobody"));
    let explicit = ["-c", "offermill.mesos.user=root"];
    assert_eq!(user_on_the_wire(&shared, 0, &explicit).as_deref(), Ok("root"));
    for (user, why) in [
        (0, "this program runs as root, and executors do so only on request"),
        (VICTIM, "the id of this program's user, 64001, has no name on this machine"),
    ] {
        let refused = user_on_the_wire(&shared, user, &[]).unwrap_err();
        let sentence = format!(
            "offermill.mesos.user is \"\", but must be the name of the user that executors run as \
             on the agents ({why})"
        );
        assert!(refused.contains(&sentence), "{refused}");
    }
    // It is reported together with other problems.
    let flags = ["run", "--master", "mesos://h", "--executor-cores", "y", "--", "true"];
    let errors = String::from_utf8(shared.run(0, &flags).stderr).unwrap();
    assert!(errors.contains("offermill.mesos.user is") && errors.contains("cores is"), "{errors}");
    let shown = |user| {
        let flags = ["run", "--master", "mesos://h", "--print-config", "--", "true"];
        let output = shared.run(user, &flags);
        let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        let line = text.lines().find(|line| line.contains("offermill.mesos.user")).unwrap();
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(shown(NOBODY), "offermill.mesos.user nobody default");
    assert!(shown(0).contains("this program runs as root"));
}

/// Goal: a local executor, which is of the same user, reads no secret of the run from its environment, and its own core
/// dumps are as before. Method: executors look at their parent, with a secret and without.
#[test]
#[ignore = "needs root"]
fn executors_do_not_read_the_environment_of_the_run() {
    const CANARY: &str = "cAnAry-5ecret";
    let shared = Shared::new();
    for (secret, owner) in [(CANARY, "0"), ("", "64001")] {
        let seen = shared.path(&format!("seen-{owner}"));
        let look = "stat -c %u /proc/$PPID/environ; ulimit -c; tr '\\0' '\\n' </proc/$PPID/environ";
        let line = format!("{{ {look}; }} >{} 2>&1; true", seen.display());
        let flags = ["--master", "local-cluster[1,1,64]", "--num-executors", "1"];
        let more = ["--until-finished", "--work-dir", "work"];
        let arguments = small(&[&flags[..], &more].concat(), &["sh", "-c", &line]);
        let mut command = Command::new("sh");
        let limited = ["-c", "ulimit -c 7; exec \"$0\" \"$@\""];
        command.args(limited).arg(&shared.binary).args(arguments).uid(VICTIM).gid(VICTIM);
        command.env_clear().env("PATH", "/usr/bin:/bin").env("SPARK_MESOS_SECRET", secret);
        let ended = command.current_dir(&shared.folder.0).stdin(Stdio::null()).output().unwrap();
        assert_eq!(ended.status.code(), Some(0), "{}", errors(&ended));
        let seen = fs::read_to_string(seen).unwrap();
        assert!(seen.starts_with(&format!("{owner}\n7\n")), "{seen}");
        assert!(!seen.contains(CANARY), "{seen}");
        assert_eq!(seen.contains("PATH="), secret.is_empty(), "{seen}");
    }
}

/// Goal: a program in `PATH` that this user may not execute is passed over, as by a shell. Method: a tool that only its
/// owner may execute, before another one.
#[test]
#[ignore = "needs root"]
fn programs_that_the_user_may_not_execute_are_passed_over() {
    let shared = Shared::new();
    for (name, mode) in [("b1", 0o744), ("b2", 0o755)] {
        let tool = shared.folder_of(0, name, 0o755).join("tool");
        fs::write(&tool, "#!/bin/sh\nexit 0\n").unwrap();
        fs::set_permissions(&tool, Permissions::from_mode(mode)).unwrap();
    }
    let path = ["b1", "b2"].map(|name| shared.path(name).display().to_string()).join(":");
    let path = format!("PATH={path}:/usr/bin:/bin");
    let flags = ["--master", "local-cluster[1,1,64]", "--num-executors", "1", "--env", &path];
    let more = ["--until-finished", "--work-dir", "work"];
    let ended = shared.run(VICTIM, &small(&[&flags[..], &more].concat(), &["tool"]));
    assert_eq!(ended.status.code(), Some(0), "{}", errors(&ended));
}

/// Goal: a file with a secret, a principal or certificates that is another user's, or that others may write, is
/// refused, and none of another user holds the run up; one of the user's own that only a group of their own may write
/// is used.
/// Method: files, pipes and a device; a master that nobody runs.
#[test]
#[ignore = "needs root"]
fn secret_files_of_other_users_are_refused() {
    let shared = Shared::new();
    let file = |name: &str, owner: u32, group: u32, mode: u32| {
        fs::write(shared.path(name), "text").unwrap();
        chown(shared.path(name), Some(owner), Some(group)).unwrap();
        fs::set_permissions(shared.path(name), Permissions::from_mode(mode)).unwrap();
    };
    file("foreign", ATTACKER, ATTACKER, 0o644);
    file("own", VICTIM, VICTIM, 0o664);
    file("shared", VICTIM, ATTACKER, 0o660);
    let pipe = shared.path("pipe");
    assert!(Command::new("mkfifo").args(["-m", "666"]).arg(&pipe).status().unwrap().success());
    chown(&pipe, Some(ATTACKER), None).unwrap();
    let run = |flag: &str, value: &str| {
        let common = ["--master", "mesos://127.0.0.1:1", "-c", "offermill.mesos.user=nobody"];
        let more = ["-c", "offermill.mesos.subscribeTimeout=100ms", "--allow-plain-secret"];
        let principal = ["--principal", "p", flag, value];
        let principal = if flag == "--secret-file" { &principal[..] } else { &principal[2..] };
        shared.run(VICTIM, &small(&[&common[..], &more, principal].concat(), &["true"]))
    };
    let belongs = "belongs to another user, whose id is 64002";
    let conf = |key: &str, name: &str| format!("{key}={}", shared.path(name).display());
    for (flag, value, sentence) in [
        ("--secret-file", "foreign".to_owned(), belongs),
        ("--secret-file", "pipe".to_owned(), belongs),
        ("--secret-file", "shared".to_owned(), "can be written by others"),
        ("--secret-file", "/dev/null".to_owned(), "must not be empty"),
        ("-c", conf("spark.mesos.principal.file", "foreign"), belongs),
        ("-c", conf("offermill.mesos.caFile", "foreign"), belongs),
        ("-c", conf("offermill.mesos.caFile", "shared"), "can be written by others"),
        ("-c", conf("offermill.mesos.clientCertificateFile", "foreign"), belongs),
        ("-c", conf("offermill.mesos.clientKeyFile", "foreign"), belongs),
        ("-c", conf("offermill.mesos.clientKeyFile", "shared"), "can be written by others"),
    ] {
        let refused = run(flag, &value);
        assert_eq!(refused.status.code(), Some(2), "{value}: {}", errors(&refused));
        assert!(errors(&refused).contains(sentence), "{value}: {}", errors(&refused));
    }
    let used = run("--secret-file", "own");
    assert_eq!(used.status.code(), Some(4), "{}", errors(&used));
    assert!(!errors(&used).contains("can be written"), "{}", errors(&used));
}

/// Goal: that an agent's disk has no room is no failure of its tasks, with hosts and without, nor one towards the most
/// that a run may have: they start once there is room, and the results say what was not started. Method: a work folder
/// of a file system of its own, which has no room for a sandbox for the first three seconds; tasks without retries,
/// and a limit of one failure where no hosts fail.
#[test]
#[ignore = "needs root"]
fn a_full_disk_fails_no_task() {
    let script = "mount -t tmpfs -o nr_inodes=40,mode=700 none work
        mkdir work/filler
        n=0; while { : >work/filler/$n; } 2>/dev/null; do n=$((n + 1)); done; rm work/filler/[1234]
        (sleep 3; rm -r work/filler) & exec \"$@\"";
    for more in [&["--max-executor-failures", "1"][..], &["--task-hosts"]] {
        let folder = Folder::new();
        folder.write("tasks", "true\ntrue\n");
        fs::create_dir(folder.0.join("work")).unwrap();
        let mut run = Command::new("unshare");
        run.current_dir(&folder.0).args(["--mount", "bash", "-c", script, "bash"]);
        run.args([env!("CARGO_BIN_EXE_offermill"), "run", "--master", "local-cluster[1,1,64]"]);
        run.args(["--work-dir", "work", "--tasks", "tasks", "--task-memory", "16m"]);
        let output = run.args(["--task-cores", "0.8"]).args(more).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
        let results = fs::read_to_string(folder.0.join("tasks.results")).unwrap();
        let count = |state: &str| results.matches(&format!("\"state\":\"{state}\"")).count();
        assert!(count("not_started") > 0, "{results}");
        let others = ["succeeded", "failed", "retried", "lost"].map(count);
        assert_eq!(others, [2, 0, 0, 0], "{results}");
    }
}
