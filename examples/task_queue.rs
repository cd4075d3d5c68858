//! A task queue: many short tasks of unequal sizes, placed in an order of its own, in a long-lived host on each agent;
//! each is retried if it fails, or if its host is lost.
//!
//! Run it with `cargo run --release --example task_queue --features local -- 10000`; the number of tasks is 200 without
//! an argument. After it, `kill` kills a host with SIGKILL when half of the tasks have finished. `offermill run --tasks
//! FILE --task-hosts` is such a queue with a file of tasks, results and resume.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use offermill::cluster::local::{LocalCluster, LocalConfig};
use offermill::cluster::run_task_host;
use offermill::config::ExecutorCores;
use offermill::engine::{Engine, EngineOptions, Notice, Observer, TaskChooser};
use offermill::launch::{Command, Hosting, LaunchContext, Launcher};
use offermill::resources::{Mebibytes, MilliCpus};
use offermill::{Change, Config, Fate, IdScheme, Kernel, Timestamp, Unplaced};
use offermill::{Hosts, Joined, Picks, Room, Rooms, Task, TaskHost, TaskHostStage};

/// Every hundredth task fails the first time.
const SCRIPT: &str = "[ $1 -gt 1 ] || [ $(($2 % 100)) -ne 99 ] || exit 1";
/// How many of the tasks that wait are tried for a room.
const TRIED_MAX: usize = 50;

/// The tasks that wait, those with the most cores first, then by their numbers, which are their tags; and the hosts.
#[derive(Default)]
struct Queue {
    waiting: BTreeMap<(Reverse<u64>, u64), Task>,
    tasks: Vec<Task>,
    attempts: Vec<u32>,
    hosts: Hosts,
    /// The hosts that live, by their tags, which follow those of tasks, and the last one of each agent.
    live: BTreeMap<u64, LiveHost>,
    of_agent: HashMap<String, u64>,
    hosts_so_far: u64,
    /// The host of each task that has been picked.
    in_host: BTreeMap<u64, TaskHost>,
    outcome: Outcome,
}

struct LiveHost {
    host: TaskHost,
    executor: Arc<str>,
    pid: Option<u32>,
}

/// How often tasks were started, and how many of these attempts failed or were lost with their host.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Outcome {
    attempts: u32,
    failed: u32,
    lost: u32,
}

/// The program of hosts is this one, called in this way.
struct TaskQueue(Mutex<Queue>, Vec<String>);

impl Queue {
    fn add(&mut self, tag: u64) {
        let task = self.tasks[tag as usize];
        self.waiting.insert((Reverse(task.cores.millis()), tag), task);
    }

    /// A host has ended, or it wasn't placed: returns whether the tag is that of a host.
    fn remove_host(&mut self, tag: u64) -> bool {
        self.live.remove(&tag).map(|live| live.host.lost()).is_some()
    }

    /// A task has left its host: it ended, or wasn't placed.
    fn leave(&mut self, tag: u64) {
        let _left = self.in_host.remove(&tag).map(|host| host.leave());
    }

    /// Picks tasks for a room of this agent, with its host if there is none.
    fn pick(&mut self, agent: &str, position: u32, mut room: Room, picks: &mut Picks) {
        let tag = self.tasks.len() as u64 + self.hosts_so_far;
        let host_task = Task::new(tag, MilliCpus::from_millis(100), Mebibytes::new(32));
        if self.hosts.stage(agent) == TaskHostStage::None && room.take(&host_task).is_err() {
            return;
        }
        let first = self.waiting.values().take(TRIED_MAX);
        let tasks: Vec<Task> = first.copied().filter(|task| room.take(task).is_ok()).collect();
        if tasks.is_empty() {
            return;
        }
        let (host, is_first) = match self.hosts.join(agent) {
            Joined::First(host) => (host, true),
            Joined::Member(host) => (host, false),
            Joined::Elsewhere => return, // it is being started or ended
        };
        let mut members: Vec<(u32, Task)> = Vec::new();
        if is_first {
            self.hosts_so_far += 1;
            let live = LiveHost { host: host.clone(), executor: "".into(), pid: None };
            self.live.insert(tag, live);
            self.of_agent.insert(agent.to_owned(), tag);
            members.push((position, host_task));
        }
        for (task, before) in tasks.into_iter().zip(0..) {
            // The first one has joined already.
            if before > 0 && !host.join() {
                break;
            }
            self.waiting.remove(&(Reverse(task.cores.millis()), task.tag));
            self.in_host.insert(task.tag, host.clone());
            members.push((position, task));
        }
        if is_first {
            picks.push_gang(&members); // the host and its first tasks, or none of them
        } else {
            members.iter().for_each(|(room, task)| picks.push(*room, *task));
        }
    }
}

impl TaskQueue {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TaskChooser for TaskQueue {
    /// Takes the first tasks that have room. What isn't placed comes back by `unplaced`.
    fn choose(&self, rooms: &Rooms<'_>, _now: Timestamp, picks: &mut Picks) {
        let mut queue = self.lock();
        for (room, position) in rooms.list().iter().zip(0..) {
            let agent = rooms.offer(room).map(|offer| offer.agent_id);
            agent.into_iter().for_each(|agent| queue.pick(agent, position, *room, picks));
        }
    }

    fn unplaced(&self, unplaced: &[Unplaced]) {
        let mut queue = self.lock();
        for it in unplaced {
            if !queue.remove_host(it.tag) {
                queue.leave(it.tag);
                queue.add(it.tag);
            }
        }
    }
}

impl Launcher for TaskQueue {
    fn command(&self, context: &LaunchContext<'_>) -> Command {
        let (mut queue, tag) = (self.lock(), context.tag.unwrap_or_default());
        if let Some(live) = queue.live.get_mut(&tag) {
            live.executor = context.executor.into();
            return Command::new(self.1.clone()).with_hosting(Hosting::Host);
        }
        let host = queue.of_agent.get(context.agent_id).and_then(|tag| queue.live.get(tag));
        let host = host.map_or_else(|| "gone".into(), |live| Arc::clone(&live.executor));
        queue.outcome.attempts += 1;
        let attempts = &mut queue.attempts[tag as usize];
        *attempts += 1;
        let (attempt, tag) = (attempts.to_string(), tag.to_string());
        let argv = ["sh", "-c", SCRIPT, "task", &attempt, &tag].map(str::to_owned);
        Command::new(argv.to_vec()).with_hosting(Hosting::In(host))
    }
}

/// Puts tasks that didn't finish back, and tells the main thread of the others.
struct Follower {
    queue: Arc<TaskQueue>,
    finished: Sender<u64>,
}

impl Observer for Follower {
    fn notice(&mut self, _at: Timestamp, notice: Notice) {
        match notice {
            Notice::Updated { tag: Some(tag), change, process, .. } => {
                let mut queue = self.queue.lock();
                match (change, queue.live.get_mut(&tag)) {
                    (Change::Running, Some(live)) => {
                        live.pid = process.and_then(|process| process.pid);
                        live.host.up(); // now other batches may join it
                    }
                    (Change::Ended(_), Some(_)) => {
                        let _process = queue.remove_host(tag);
                    }
                    (Change::Ended(fate), None) => {
                        queue.leave(tag);
                        match fate {
                            Fate::Finished => {
                                let _is_heard = self.finished.send(tag);
                                return;
                            }
                            Fate::Lost => queue.outcome.lost += 1,
                            _ => queue.outcome.failed += 1,
                        }
                        queue.add(tag);
                    }
                    _ => {}
                }
            }
            Notice::CallFailed { why } | Notice::Refused { why } => eprintln!("{why}"),
            _ => {}
        }
    }
}

/// Runs this many tasks on two agents of this machine, in hosts that run `program`. If `kills`, a host is killed in the
/// middle. Returns what became of them, after each has finished once.
fn run(
    count: u64,
    program: Vec<String>,
    kills: bool,
) -> Result<Outcome, Box<dyn std::error::Error>> {
    let size = |tag| MilliCpus::from_millis(250 * (1 + tag % 3));
    let mut queue = Queue { attempts: vec![0; count as usize], ..Queue::default() };
    queue.tasks = (0..count).map(|tag| Task::new(tag, size(tag), Mebibytes::new(16))).collect();
    (0..count).for_each(|tag| queue.add(tag));
    let queue = Arc::new(TaskQueue(Mutex::new(queue), program));

    // The configured executor is the smallest task. That tasks fail is no agent's fault.
    let config = Config::builder()
        .executor_cores(ExecutorCores::Fixed(MilliCpus::from_millis(250)))
        .executor_memory(Mebibytes::new(16))
        .memory_overhead(Some(Mebibytes::ZERO))
        .exclusion(None)
        .build()?;
    let kernel = Kernel::new(config, IdScheme::unique("queue", 1)?);
    // Short tasks end all the time: their agents make offers more often than by default.
    let agents = LocalConfig::new("local-cluster[2,4,4096]".parse()?);
    let cluster = LocalCluster::new(agents.allocation_interval(Duration::from_millis(10)))?;
    let (finished, ends) = channel();
    let follower = Follower { queue: Arc::clone(&queue), finished };
    let engine = Engine::start_with_tasks(
        kernel,
        Arc::new(cluster),
        Arc::clone(&queue) as Arc<dyn Launcher>,
        Arc::clone(&queue) as Arc<dyn TaskChooser>,
        EngineOptions::default(),
        Box::new(follower),
    )?;
    let mut is_finished = vec![false; count as usize];
    for number in 0..count {
        let tag = ends.recv()?;
        assert!(!std::mem::replace(&mut is_finished[tag as usize], true), "task {tag} ran twice");
        if kills && number == count / 2 {
            let pid = queue.lock().live.values().find_map(|live| live.pid);
            let pid = pid.ok_or("no host runs")?.to_string();
            std::process::Command::new("kill").args(["-9", &pid]).status()?;
        }
    }
    println!("drained: {}", engine.shutdown(Duration::from_secs(10)).drained);
    Ok(queue.lock().outcome)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments == ["host"] {
        return run_task_host().map_err(Into::into);
    }
    let count: u64 = arguments.first().map_or(Ok(200), |text| text.parse())?;
    let kills = arguments.get(1).is_some_and(|text| text == "kill");
    let program = std::env::current_exe()?.into_os_string().into_string();
    let program = program.map_err(|_| "this program's path is no text")?;
    let started = Instant::now();
    let Outcome { attempts, failed, lost } = run(count, vec![program, "host".to_owned()], kills)?;
    let rate = count as f64 / started.elapsed().as_secs_f64();
    println!(
        "{count} tasks finished, {rate:.0} a second: {attempts} attempts, {failed} failed, {lost} lost"
    );
    Ok(())
}

#[cfg(test)]
#[path = "task_queue/tests.rs"]
mod tests;
