//! The library's queue of tasks, in hosts on Mesos: none is lost, and none is run twice without being told.
//! `OFFERMILL_QUEUED_TASKS` sets their number (default 400).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use offermill::cluster::mesos::{MesosCluster, MesosConfig};
use offermill::engine::cluster_manager::ClusterManager;
use offermill::engine::{Engine, EngineOptions, HostTerms, Notice, TaskEnd, WorkQueue};
use offermill::launch;
use offermill::resources::{Mebibytes, MilliCpus};
use offermill::{Change, Config, Fate, IdScheme, Kernel, Task, Timestamp};

use super::cluster::{RealCluster, Setup, processes_within};
use super::{eventually, mesos};

/// The tasks that wait for a file, so that a host that is killed has some.
pub(super) const HELD: u64 = 6;

/// The tasks whose hosts aren't heard of: as many as three agents run, and some more.
const UNHEARD: u64 = 24;

/// How long nothing may end.
const PATIENCE: Duration = Duration::from_secs(120);

/// Tells a log that a task begins and ends: `$1` is the log, `$2` the tag, `$3` the number of those held. The name of
/// the folder is the id of the attempt.
const SCRIPT: &str = "echo begins $2 ${PWD##*/} >> $1
    [ $2 -ge $3 ] || until [ -e $1.go ]; do sleep 0.1; done
    echo ends $2 ${PWD##*/} >> $1";

/// Pushes an attempt of a task. Those that are held start first.
fn push(queue: &WorkQueue, tag: u64, log: &Path) {
    let cores = MilliCpus::from_millis(250 * (1 + tag % 3));
    let script = ["sh", "-c", SCRIPT, "task"].map(str::to_owned);
    let arguments = [log.display().to_string(), tag.to_string(), HELD.to_string()];
    let command = launch::Command::new([&script[..], &arguments].concat());
    queue.push(tag, Task::new(tag, cores, Mebibytes::new(16)), command).unwrap();
}

/// A queue on a cluster, in hosts that run `offermill task-host`, and its notices.
pub(super) fn start(mesos: MesosConfig, count: u64, log: &Path) -> Queue {
    let argv = [env!("CARGO_BIN_EXE_offermill"), "task-host"].map(str::to_owned);
    start_with(mesos, argv.to_vec(), |queue| (0..count).for_each(|tag| push(queue, tag, log)))
}

/// The same with this program of hosts, and with the tasks that are pushed.
fn start_with(mesos: MesosConfig, host: Vec<String>, push: impl FnOnce(&WorkQueue)) -> Queue {
    let (queue, ends) = WorkQueue::new(Some(HostTerms::new(host)));
    push(&queue);
    let smallest = (MilliCpus::from_millis(250), Mebibytes::new(16));
    let config = Config::builder().smallest_task(smallest.0, smallest.1).exclusion(None);
    let config = config.build().unwrap();
    let cluster = Arc::new(MesosCluster::new(mesos.for_kernel(&config)).unwrap());
    let kernel = Kernel::new(config, IdScheme::unique("queued", 1).unwrap());
    let (sender, notices): (Sender<Notice>, _) = channel();
    let observer = move |_: Timestamp, notice: Notice| sender.send(notice).unwrap_or(());
    let manager = Arc::clone(&cluster) as Arc<dyn ClusterManager>;
    let engine = queue.start(kernel, manager, EngineOptions::default(), Box::new(observer));
    Queue { queue, ends, notices, cluster, engine: engine.unwrap(), told: Told::default() }
}

/// A queue that runs.
pub(super) struct Queue {
    queue: Arc<WorkQueue>,
    pub(super) ends: Receiver<TaskEnd>,
    pub(super) notices: Receiver<Notice>,
    pub(super) cluster: Arc<MesosCluster>,
    pub(super) engine: Engine,
    pub(super) told: Told,
}

/// What the engine has told.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// The tags of attempts, and their agents.
    pub(super) attempts: BTreeMap<String, (u64, String)>,
    /// The attempts of held tasks that run.
    pub(super) held: BTreeSet<String>,
    /// The agents of hosts.
    pub(super) hosts: BTreeMap<String, String>,
    /// The processes of the last hosts that have run, by agent.
    processes: BTreeMap<String, u32>,
    /// How attempts have ended.
    ends: BTreeMap<String, Fate>,
}

impl Told {
    pub(super) fn follow(&mut self, notice: Notice) {
        match notice {
            Notice::Placed(placed) if placed.tag < Some(WorkQueue::HOST_TAGS) => {
                let attempt = (placed.tag.unwrap(), placed.agent_id);
                assert_eq!(self.attempts.insert(placed.executor, attempt), None);
            }
            Notice::Placed(placed) => {
                self.hosts.insert(placed.executor, placed.agent_id);
            }
            Notice::Updated { executor, tag: Some(..HELD), change: Change::Running, .. } => {
                self.held.insert(executor);
            }
            Notice::Updated { executor, change: Change::Running, process, .. } => {
                if let Some(agent) = self.hosts.get(&executor) {
                    let pid = process.and_then(|process| process.pid);
                    self.processes.insert(agent.clone(), pid.expect("a host has a process"));
                }
            }
            Notice::Refused { why } => panic!("{why}"),
            _ => {}
        }
    }

    fn end(&mut self, end: &TaskEnd) {
        self.held.remove(&end.executor);
        let before = self.ends.insert(end.executor.clone(), end.fate);
        assert_eq!(before, None, "an attempt has one end: {end:?}");
    }
}

/// What is done to the cluster.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// The first process of a host's container is killed, whose number the engine tells.
    Container,
    /// The process of a host is killed, and nothing else in its container.
    Host,
}

impl Fault {
    /// Does it to a host of which a held task is known to run. Returns this attempt; `None` if there is none.
    fn strike(self, cluster: &RealCluster, told: &Told) -> Option<String> {
        let attempt = told.held.first()?;
        let agent = &told.attempts[attempt].1;
        let container = told.processes[agent];
        let pid = match self {
            Fault::Container => container,
            Fault::Host => eventually(Duration::from_secs(10), "the host's process", || {
                let all = processes_within(cluster.folder()).into_iter();
                let hosts =
                    all.filter(|(_, _, command)| command.trim_end().ends_with(" task-host"));
                let mut below = hosts.filter(|(pid, ..)| is_below(*pid, container));
                below.next().map(|(pid, ..)| pid).ok_or(format!("none below {container}"))
            }),
        };
        assert!(Command::new("kill").args(["-KILL", &pid.to_string()]).status().unwrap().success());
        Some(attempt.clone())
    }
}

/// Whether a process is this one, or its child.
fn is_below(pid: u32, parent: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    pid == parent || status.lines().any(|line| line == format!("PPid:\t{parent}"))
}

/// Runs tasks to their ends. Once a quarter has finished, and once half has, a host is killed. Returns what was told.
fn finish(mut queue: Queue, count: u64, log: &Path, cluster: &RealCluster) -> Told {
    let mut faults = vec![(count / 2, Fault::Host), (count / 4, Fault::Container)];
    let (mut finished, mut struck) = (BTreeSet::new(), Vec::new());
    let mut heard_at = Instant::now();
    while finished.len() < count as usize {
        queue.notices.try_iter().for_each(|notice| queue.told.follow(notice));
        match faults.last() {
            // The task that is held first may be in a host that is killed already, until its end is told.
            Some((at, fault))
                if finished.len() as u64 >= *at
                    && struck.iter().all(|it| queue.told.ends.contains_key(it)) =>
            {
                if let Some(attempt) = fault.strike(cluster, &queue.told) {
                    println!("{fault:?} is killed with {attempt}");
                    struck.push(attempt);
                    faults.pop();
                }
            }
            None if struck.iter().all(|attempt| queue.told.ends.contains_key(attempt)) => {
                fs::write(go(log), "").unwrap();
            }
            _ => {}
        }
        let end = match queue.ends.recv_timeout(Duration::from_millis(100)) {
            Err(RecvTimeoutError::Timeout) => {
                let counts = queue.queue.counts();
                assert!(heard_at.elapsed() < PATIENCE, "{counts:?} {:#?}", queue.told);
                queue.queue.end_surplus(&queue.engine);
                continue;
            }
            end => end.unwrap(),
        };
        heard_at = Instant::now();
        queue.told.end(&end);
        match end.fate {
            Fate::Finished => assert!(finished.insert(end.task.tag), "finished twice: {end:?}"),
            Fate::Lost => push(&queue.queue, end.task.tag, log),
            _ => panic!("{end:?}"),
        }
    }
    for attempt in struck {
        assert_eq!(queue.told.ends[&attempt], Fate::Lost, "{attempt}");
    }
    queue.notices.try_iter().for_each(|notice| queue.told.follow(notice));
    let put_back = queue.queue.counts().put_back;
    let (told, ends) = (queue.told.attempts.len(), queue.told.ends.len());
    println!("{count} tasks, {told} attempts, {} lost, {put_back} put back", ends as u64 - count);
    assert_eq!(told as u64, ends as u64 + put_back, "each attempt has one end");
    assert!(queue.engine.shutdown(Duration::from_secs(30)).drained);
    queue.told
}

/// The file that those which are held wait for.
pub(super) fn go(log: &Path) -> PathBuf {
    PathBuf::from(format!("{}.go", log.display()))
}

/// Goal: through the loss of hosts, each task of the queue finishes exactly once as it is told; nothing runs that isn't
/// told, and what was told as never started has not begun. Method: tasks of unequal sizes that write to a log when they
/// begin and end, of which six wait for a file. When a quarter has finished, the container of a host with one of the
/// six is killed, and when half has, the host's process in another one; the file is there once both are lost. The log
/// is compared with what the engine has told.
#[test]
#[ignore = "needs a real Mesos"]
fn queued_tasks_outlive_their_hosts() {
    let count = std::env::var("OFFERMILL_QUEUED_TASKS").map_or(400, |text| text.parse().unwrap());
    assert!(count >= 40, "OFFERMILL_QUEUED_TASKS is {count}, but must be at least 40");
    let cluster = RealCluster::start(Setup::default());
    let log = cluster.folder().join("log");
    let started = Instant::now();
    let queue = start(mesos(cluster.port()), count, &log);
    let told = finish(queue, count, &log, &cluster);
    println!("{count} tasks in {:.1} s", started.elapsed().as_secs_f64());

    let text = fs::read_to_string(&log).unwrap();
    let (mut begun, mut done) = (BTreeMap::new(), BTreeSet::new());
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [what, tag, attempt] = words[..] else { panic!("{line:?}") };
        let tag: u64 = tag.parse().unwrap();
        let known = told.attempts.get(attempt).map(|(tag, _)| *tag);
        assert_eq!(known, Some(tag), "{line:?} is of no attempt that was told");
        let is_new = match what {
            "begins" => begun.insert(attempt, tag).is_none(),
            _ => done.insert(attempt),
        };
        assert!(is_new, "{line:?}: an attempt runs once");
    }
    for (attempt, (tag, _)) in &told.attempts {
        let fate = told.ends.get(attempt);
        let (has_begun, is_done) = (begun.contains_key(&**attempt), done.contains(&**attempt));
        match fate {
            Some(Fate::Finished) => assert!(has_begun && is_done, "{attempt} of {tag} hasn't run"),
            Some(_) => {}
            None => assert!(!has_begun, "{attempt} of {tag} has begun, and was put back"),
        }
    }
    cluster.assert_deserted();
}

/// Tells a log that a task begins, and kills its host: `$1` is the log, and a file beside it spares hosts. The name of
/// the folder is the id of the attempt.
const KILLER: &str = "echo ${PWD##*/} >> $1; [ -e $1.spared ] || kill -KILL $PPID";

/// Goal: a task that has begun in a host is never put back as if it hadn't, though its end is told before its host is
/// told as running; none fails that the master rejects because its host has ended meanwhile. Method: hosts that wait
/// until the master is gone; then their tasks begin and kill them. What their agents tell the next master comes in no
/// order. The log is compared with what the engine has told.
#[test]
#[ignore = "needs a real Mesos"]
fn what_has_begun_is_not_put_back_though_its_host_was_never_told() {
    let cluster = RealCluster::start(Setup::default());
    let (log, gate) = (cluster.folder().join("log"), cluster.folder().join("gate"));
    let (program, gate_name) = (env!("CARGO_BIN_EXE_offermill"), gate.display());
    let wait = format!("until [ -e {gate_name} ]; do sleep 0.05; done; exec {program} task-host");
    let push = |queue: &WorkQueue, tag: u64| {
        let script = ["sh", "-c", KILLER, "task"].map(str::to_owned);
        let command = launch::Command::new([&script[..], &[log.display().to_string()]].concat());
        let task = Task::new(tag, MilliCpus::from_millis(1000), Mebibytes::new(16));
        queue.push(tag, task, command).unwrap();
    };
    let host = ["sh", "-c", &wait].map(str::to_owned).to_vec();
    let mut queue = start_with(mesos(cluster.port()), host, |queue| {
        (0..UNHEARD).for_each(|tag| push(queue, tag));
    });
    let folders = |what: &str| {
        let processes = processes_within(cluster.folder()).into_iter();
        let found = processes.filter(|(.., command)| command.contains(what));
        found.map(|(_, folder, _)| folder).collect::<BTreeSet<_>>().len()
    };
    let agents = usize::from(cluster.agents());
    let is = |count: usize, wanted| if count == wanted { Ok(()) } else { Err(count.to_string()) };
    eventually(PATIENCE, "hosts wait", || is(folders("until [ -e"), agents));
    cluster.kill_master();
    fs::write(&gate, "").unwrap();
    eventually(PATIENCE, "hosts are gone", || {
        let begun = fs::read_to_string(&log).unwrap_or_default().lines().count();
        if begun < agents { Err(begun.to_string()) } else { is(folders("task-host"), 0) }
    });
    fs::write(format!("{}.spared", log.display()), "").unwrap();
    cluster.start_master();

    let mut finished = 0;
    while finished < UNHEARD {
        let end = match queue.ends.recv_timeout(PATIENCE) {
            Ok(end) => end,
            Err(why) => panic!("{why}: {:?} {:#?}", queue.queue.counts(), queue.told),
        };
        queue.told.end(&end);
        match end.fate {
            Fate::Finished => finished += 1,
            Fate::Lost => push(&queue.queue, end.task.tag),
            _ => panic!("{end:?}"),
        }
    }
    queue.notices.try_iter().for_each(|notice| queue.told.follow(notice));
    let begun = fs::read_to_string(&log).unwrap();
    let begun: BTreeSet<&str> = begun.lines().collect();
    let lost = queue.told.ends.values().filter(|fate| **fate == Fate::Lost).count();
    let put_back = queue.queue.counts().put_back;
    println!(
        "{UNHEARD} tasks, {} attempts have begun, {lost} lost, {put_back} put back",
        begun.len()
    );
    for attempt in queue.told.attempts.keys() {
        let has_end = queue.told.ends.contains_key(attempt);
        assert!(has_end || !begun.contains(&**attempt), "{attempt} has begun, and was put back");
    }
    assert!(lost >= agents, "each host had a task that had begun");
    assert!(queue.engine.shutdown(Duration::from_secs(30)).drained);
    cluster.assert_deserted();
}
