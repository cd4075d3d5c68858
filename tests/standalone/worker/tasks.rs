//! Tasks of a file (`offermill run --tasks`) on a standalone cluster, in hosts and without: what becomes of each while
//! hosts, workers and the master end and come back.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use super::cluster::{Program, master, run, worker};
use super::drills::{lines, state, until};

/// A task says that it begins and that it ends, with its id and its attempt, in one write each at the end of a file.
const TASK: &str = "echo begin $OFFERMILL_TASK_ID $OFFERMILL_TASK_ATTEMPT >>$LOG; sleep 0.1; \
                    echo end $OFFERMILL_TASK_ID $OFFERMILL_TASK_ATTEMPT >>$LOG\n";

/// A run of a tasks' file in a folder of its own.
struct TaskRun {
    folder: TempDir,
}

impl TaskRun {
    fn new(tasks: &str) -> TaskRun {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("tasks"), tasks).unwrap();
        fs::create_dir(folder.path().join("workers")).unwrap();
        TaskRun { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        fs::canonicalize(self.folder.path()).unwrap().join(name)
    }

    /// Starts the run: tasks of 0.1 cores and 8 MiB.
    fn start(&self, master: &str, more: &[&str]) -> Child {
        let log = format!("LOG={}", self.path("log").display());
        let user = run(master, 1, "");
        let user = user.get_args().map(|it| it.to_str().unwrap());
        let user = user.skip_while(|it| *it != "-c").nth(1).unwrap().to_owned();
        let mut command = Command::new(env!("CARGO_BIN_EXE_offermill"));
        command.args(["run", "--tasks", "tasks", "--task-cores", "0.1", "--task-memory", "8m"]);
        command.args(["--json", "-c", &user, "--master", &format!("offermill://{master}")]);
        command.args(["--env", &log, "--shutdown-timeout", "5s"]).args(more);
        command.current_dir(self.folder.path()).stdin(Stdio::null());
        command.stdout(self.file("stdout")).stderr(self.file("stderr"));
        command.process_group(0).spawn().unwrap()
    }

    fn file(&self, name: &str) -> fs::File {
        fs::File::create(self.folder.path().join(name)).unwrap()
    }

    /// Waits for the end of the run, and returns its exit code.
    fn end(&self, child: &mut Child) -> Option<i32> {
        until("the end of the run", || child.try_wait().unwrap()).code()
    }

    /// What the run has said, for failures.
    fn said(&self) -> String {
        let of = |name: &str| fs::read_to_string(self.folder.path().join(name)).unwrap_or_default();
        format!("{}{}", of("stderr"), of("stdout"))
    }

    /// The lines of the results file: of each, the id, the attempt and the state.
    fn results(&self) -> Vec<Value> {
        let lines = lines(&self.folder.path().join("tasks.results")).into_iter();
        lines.map(|line| serde_json::from_str(&line).unwrap()).collect()
    }

    /// How many tasks have said that they end.
    fn ended(&self) -> usize {
        lines(&self.path("log")).iter().filter(|line| line.starts_with("end ")).count()
    }

    fn wait_until_ended(&self, least: usize) {
        until("tasks that end", || (self.ended() >= least).then_some(()));
    }

    /// The processes that have the log's name in their environment, or work in the folder of a worker, of which this
    /// is part of the command line.
    #[cfg(target_os = "linux")]
    fn processes(&self, command: &str) -> Vec<i32> {
        let (log, folder) = (self.path("log"), self.path("workers"));
        let log = format!("LOG={}\0", log.display());
        let is_own = |pid: &i32| {
            let read = |name: &str| fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
            let cwd = fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_default();
            let is_ours = has(&read("environ"), &log) || cwd.starts_with(&folder);
            is_ours && has(&read("cmdline"), command)
        };
        let all = fs::read_dir("/proc").unwrap().flatten();
        let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.filter(is_own).collect()
    }

    /// The processes of hosts. A process that a host has just forked looks like it, but not for long.
    #[cfg(target_os = "linux")]
    fn hosts(&self) -> Vec<i32> {
        let before = self.processes("task-host");
        std::thread::sleep(std::time::Duration::from_millis(20));
        let after = self.processes("task-host");
        before.into_iter().filter(|pid| after.contains(pid)).collect()
    }

    /// Waits until nothing of the run is left.
    fn assert_deserted(&self) {
        #[cfg(target_os = "linux")]
        until("no process of the run", || self.processes("").is_empty().then_some(()));
    }

    /// Each task has succeeded once; each attempt that has begun is on record, and began once; those that haven't ended
    /// are on record as lost, and none has failed by itself. Returns how many attempts were lost.
    fn assert_nothing_lost(&self, tasks: usize) -> usize {
        let mut of_attempts: BTreeMap<(String, u64), Vec<String>> = BTreeMap::new();
        for line in self.results() {
            let (id, state) = (line["id"].as_str().unwrap(), line["state"].as_str().unwrap());
            let key = (id.to_owned(), line["attempts"].as_u64().unwrap());
            of_attempts.entry(key).or_default().push(state.to_owned());
        }
        let ended_as = |wanted: &str| -> Vec<&(String, u64)> {
            let has_it = |states: &Vec<String>| states.iter().any(|state| state == wanted);
            of_attempts.iter().filter(|(_, states)| has_it(states)).map(|(key, _)| key).collect()
        };
        let (succeeded, mut lost) = (ended_as("succeeded"), ended_as("lost"));
        for line in self.results().iter().filter(|line| line["state"] == "retried") {
            let code = line["exit_code"].as_u64();
            assert!(code.is_none_or(|code| code > 128), "it has failed by itself: {line}");
        }
        lost.extend(ended_as("retried"));
        let mut ids: Vec<&str> = succeeded.iter().map(|(id, _)| &**id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!((succeeded.len(), ids.len()), (tasks, tasks), "{}", self.said());
        let mut seen: BTreeMap<(String, u64), (usize, usize)> = BTreeMap::new();
        for line in lines(&self.path("log")) {
            let words: Vec<&str> = line.split(' ').collect();
            let [what, id, attempt] = words[..] else { panic!("{line}") };
            let marks = seen.entry((id.to_owned(), attempt.parse().unwrap())).or_default();
            if what == "begin" { marks.0 += 1 } else { marks.1 += 1 }
        }
        for (attempt, marks) in &seen {
            let is_ok = match marks {
                // It may have ended just before its host did, which had no time to say so.
                (1, 1) => succeeded.contains(&attempt) || lost.contains(&attempt),
                (1, 0) => lost.contains(&attempt),
                _ => false,
            };
            assert!(is_ok, "{attempt:?} {marks:?}: {:?}", of_attempts.get(attempt));
        }
        for attempt in succeeded {
            assert_eq!(seen.get(attempt), Some(&(1, 1)), "{attempt:?}");
        }
        lost.len()
    }
}

#[cfg(target_os = "linux")]
fn has(text: &[u8], part: &str) -> bool {
    part.is_empty() || text.windows(part.len()).any(|it| it == part.as_bytes())
}

/// A cluster in the folder of a run: a master and two workers of two cores.
fn cluster(run: &TaskRun) -> (Program, String, [Program; 2]) {
    let (master, address) = master(&run.path("master"), "127.0.0.1:0");
    let workers = ["h1", "h2"].map(|name| worker(&run.path("workers"), name, &address));
    until("two workers", || (state(&address)?["counts"]["workers"] == 2).then_some(()));
    (master, address, workers)
}

fn stop(program: &Program, signal: Signal) {
    kill_process(Pid::from_child(&program.0), signal).unwrap();
}

const HOSTS: [&str; 5] = ["--task-hosts", "--host-cores", "0.1", "--host-memory", "16m"];

/// Goal: tasks of a file run on workers without hosts: each has its exit code, and those after others wait for them;
/// nothing is lost. Method: 60 tasks; one that fails, with one after it.
#[test]
fn tasks_run_without_hosts() {
    let failing = "{\"id\": \"bad\", \"command\": \"exit 7\"}\n";
    let after = "{\"id\": \"never\", \"command\": \"true\", \"after\": \"bad\"}\n";
    let run = TaskRun::new(&[&TASK.repeat(60), failing, after].concat());
    let (_master, address, _workers) = cluster(&run);
    let code = run.end(&mut run.start(&address, &[]));
    assert_eq!(code, Some(1), "{}", run.said());
    assert_eq!(run.assert_nothing_lost(60), 0);
    let last = run.results().into_iter().rfind(|line| line["id"] == "bad").unwrap();
    assert_eq!((&last["state"], &last["exit_code"]), (&"failed".into(), &7.into()));
    run.assert_deserted();
}

/// Goal: in hosts tasks have the results that they have without, with the file of their output; there is one host a
/// worker, and idle ones end. Method: 300 tasks, of which one fails and one has output, and a task that waits for one
/// that is alone for longer than the time-out.
#[test]
fn tasks_run_in_hosts() {
    let own = "{\"id\": \"own\", \"command\": \"echo out\"}\n\
               {\"id\": \"bad\", \"command\": \"exit 7\", \"after\": \"own\"}\n\
               {\"id\": \"killed\", \"command\": \"kill -9 $$\"}\n\
               {\"id\": \"alone\", \"command\": \"sleep 2\", \"cores\": 1.9}\n\
               {\"id\": \"last\", \"command\": \"echo last\", \"after\": \"alone\"}\n";
    let run = TaskRun::new(&[&TASK.repeat(300), own].concat());
    let (_master, address, _workers) = cluster(&run);
    let mut child = run.start(&address, &[&HOSTS[..], &["--host-idle-timeout", "500ms"]].concat());
    run.wait_until_ended(50);
    #[cfg(target_os = "linux")]
    until("one host a worker", || (1..=2).contains(&run.hosts().len()).then_some(()));
    assert_eq!(run.end(&mut child), Some(1), "{}", run.said());
    let last = |id: &str| run.results().into_iter().rfind(|line| line["id"] == id).unwrap();
    for (id, code) in [("own", 0), ("bad", 7), ("killed", 137), ("alone", 0), ("last", 0)] {
        assert_eq!(last(id)["exit_code"], code, "{}", last(id));
    }
    assert_eq!(fs::read_to_string(last("own")["output"].as_str().unwrap()).unwrap(), "out\n");
    assert_eq!(fs::read_to_string(last("last")["output"].as_str().unwrap()).unwrap(), "last\n");
    let log = lines(&run.path("log"));
    assert_eq!(log.len(), 600, "{}", run.said());
    run.assert_deserted();
}

/// Goal: whatever ends in the middle, each task succeeds, nothing runs twice unless a record says that the first
/// attempt was lost, and nothing is left. Method: 1000 tasks in hosts on two workers; while they run, SIGKILL to a
/// host, SIGKILL to the master, which is started again with its journal, SIGTERM to a worker, which is started again,
/// and SIGKILL to the other one, which is started again.
#[test]
#[cfg(target_os = "linux")]
fn nothing_is_lost_in_hosts() {
    let run = TaskRun::new(&TASK.replace("0.1", "0.3").repeat(1000));
    let (master_before, address, [first, second]) = cluster(&run);
    // A task that is lost for a fourth time has failed.
    let mut child = run.start(&address, &[&HOSTS[..], &["--task-retries", "9"]].concat());
    run.wait_until_ended(60);
    let host = until("a host", || run.hosts().first().copied());
    kill_process(Pid::from_raw(host).unwrap(), Signal::KILL).unwrap();

    run.wait_until_ended(150);
    drop(master_before);
    let (_master, _) = master(&run.path("master"), &address);

    run.wait_until_ended(250);
    let mut first = first;
    stop(&first, Signal::TERM);
    until("the end of the worker", || first.0.try_wait().unwrap());
    let _first = worker(&run.path("workers"), "h1", &address);

    drop(second);
    let _second = worker(&run.path("workers"), "h2", &address);
    assert_eq!(child.try_wait().unwrap(), None, "the run has ended before: {}", run.said());

    assert_eq!(run.end(&mut child), Some(0), "{}", run.said());
    let lost = run.assert_nothing_lost(1000);
    println!(
        "figures: of 1000 tasks in hosts {lost} attempts were lost, with a host and two workers"
    );
    assert!(lost > 0);
    run.assert_deserted();
}

/// Goal: Ctrl-C ends tasks and hosts within the grace period, what was in flight is on record, and a run that resumes
/// does the rest, and no more. Method: 200 tasks in hosts, of which 20 sleep as long as a file isn't there; SIGINT
/// while some of those run; then the file, and a run with --resume.
#[test]
fn a_stopped_run_is_resumed() {
    let slow = TASK.replace("sleep 0.1", "[ -e $LOG-go ] || sleep 600");
    let run = TaskRun::new(&[TASK.repeat(80), slow.repeat(20), TASK.repeat(100)].concat());
    let (_master, address, _workers) = cluster(&run);
    let mut child = run.start(&address, &HOSTS);
    let begins = |id: &str| {
        let line = format!("begin {id} ");
        lines(&run.path("log")).iter().filter(|it| it.starts_with(&line)).count()
    };
    run.wait_until_ended(60);
    until("a slow task", || (81..=100).any(|id| begins(&id.to_string()) > 0).then_some(()));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let code = run.end(&mut child);
    assert!(code.is_some_and(|code| code != 0), "{code:?}: {}", run.said());
    run.assert_deserted();
    until("no executor", || (state(&address)?["counts"]["executors"] == 0).then_some(()));
    let ids_of = |state: &str| -> Vec<String> {
        let results = run.results();
        let lines = results.iter().filter(|line| line["state"] == state);
        lines.map(|line| line["id"].as_str().unwrap().to_owned()).collect()
    };
    let (before, stopped) = (ids_of("succeeded"), ids_of("stopped"));
    assert!(!before.is_empty() && !stopped.is_empty(), "{}", run.said());
    fs::write(run.path("log-go"), "").unwrap();
    let mut child = run.start(&address, &[&HOSTS[..], &["--resume"]].concat());
    assert_eq!(run.end(&mut child), Some(0), "{}", run.said());
    let mut once = ids_of("succeeded");
    assert_eq!(once.len(), 200);
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), 200);
    assert!(before.iter().all(|id| begins(id) == 1), "a task that had succeeded ran again");
    run.assert_deserted();
}

/// Goal: a program of hosts that isn't on the workers is told, and the run ends. Method: such a path.
#[test]
fn a_missing_host_program_is_told() {
    let run = TaskRun::new("true\n");
    let (_master, address, _workers) = cluster(&run);
    let arguments = [&HOSTS[..], &["--host-program", "/no/such/offermill"]].concat();
    let mut child = run.start(&address, &arguments);
    assert_eq!(run.end(&mut child), Some(1), "{}", run.said());
    let said = run.said();
    assert!(said.contains("\\\"/no/such/offermill\\\" not found"), "{said}");
    run.assert_deserted();
}

/// Goal: a worker on which no host starts costs no task an attempt that counts, and is asked ever less often; the run
/// says so. Method: 40 tasks without retries on two workers; the program of hosts ends at once on one of them.
#[test]
fn a_broken_worker_loses_no_task() {
    let run = TaskRun::new(&TASK.repeat(40));
    let program = run.path("program");
    let own = env!("CARGO_BIN_EXE_offermill");
    let script = format!("#!/bin/sh\ncase $PWD in */h1/*) exit 3 ;; esac\nexec {own} \"$@\"\n");
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let (_master, address, _workers) = cluster(&run);
    let more = ["--host-program", program.to_str().unwrap(), "--num-executors", "4"];
    let mut child = run.start(&address, &[&HOSTS[..], &more].concat());
    assert_eq!(run.end(&mut child), Some(0), "{}", run.said());
    assert_eq!(run.assert_nothing_lost(40), 0);
    let results = run.results();
    let unstarted: Vec<&Value> =
        results.iter().filter(|line| line["state"] == "not_started").collect();
    assert!((1..=20).contains(&unstarted.len()), "{unstarted:?}");
    let gone = |line: &&Value| line["reason"].as_str().unwrap().ends_with("is gone: exit code 3");
    assert!(unstarted.iter().all(gone), "{unstarted:?}");
    assert!(run.said().contains("the agent gets no tasks for 1 s"), "{}", run.said());
    run.assert_deserted();
}

/// Prints what 2000 tasks take with hosts and without.
#[test]
#[ignore = "prints figures"]
fn tasks_are_measured() {
    for (how, flags) in [("in hosts", &HOSTS[..]), ("without hosts", &[])] {
        let run = TaskRun::new(&"true\n".repeat(2000));
        let (_master, address, _workers) = cluster(&run);
        let began = std::time::Instant::now();
        let mut child = run.start(&address, flags);
        assert_eq!(run.end(&mut child), Some(0), "{}", run.said());
        let took = began.elapsed().as_secs_f64();
        println!("figures: 2000 tasks (`true`) {how} have run in {took:.1} s");
    }
}
