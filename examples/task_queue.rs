//! A task queue: many short tasks of unequal sizes, the largest first, on agents in turn, in a long-lived host on each
//! agent; each is retried if it fails, or if its host is lost. An agent that starts nothing has pauses meanwhile.
//!
//! Run it with `cargo run --release --example task_queue --features local -- 10000`; the number of tasks is 200 without
//! an argument. After it, `kill` kills the host of task 0 with SIGKILL when half of the tasks have finished; it must be
//! on this machine. Then a Mesos may follow, where this program must be on each agent, and for root the user that tasks
//! run as:
//! `cargo run --release --example task_queue --features local,mesos -- 10000 kill mesos://127.0.0.1:5050 nobody`.
//! `offermill run --tasks FILE --task-hosts` is such a queue with a file of tasks, results and resume.

use std::collections::HashMap;
use std::error::Error;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use offermill::cluster::local::{LocalCluster, LocalConfig};
use offermill::cluster::run_task_host;
use offermill::engine::cluster_manager::ClusterManager;
use offermill::engine::{Engine, EngineOptions, HostTerms, Notice, WorkQueue};
use offermill::launch::Command;
use offermill::resources::{Mebibytes, MilliCpus};
use offermill::{Change, Config, Fate, IdScheme, Kernel, Task, Timestamp};

/// Every hundredth task fails the first time.
const SCRIPT: &str = "[ $1 -gt 1 ] || [ $(($2 % 100)) -ne 99 ] || exit 1";

/// The first attempt of task 0 if a host is to be killed: it is in that host then.
const HELD: &str = "exec sleep 600";

/// Why there is no outcome.
type Failure = Box<dyn Error>;

/// How often a task is tried.
const ATTEMPTS_MAX: usize = 5;

/// How often tasks were placed, and how many of these attempts failed, were lost with their host, or came to nothing
/// because the host was about to end.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Outcome {
    attempts: u64,
    failed: u64,
    lost: u64,
    put_back: u64,
}

/// Pushes an attempt of a task. Tasks take a quarter, a half or three quarters of a core; those of a lower rank start
/// first, and one that is held before all others.
fn push(queue: &WorkQueue, tag: u64, attempt: usize, held: bool) -> Result<(), offermill::Error> {
    let millis = 250 * (1 + tag % 3);
    let task = Task::new(tag, MilliCpus::from_millis(millis), Mebibytes::new(16));
    let (attempt, tag) = (attempt.to_string(), tag.to_string());
    let (script, rank) = if held { (HELD, 0) } else { (SCRIPT, 1000 - millis) };
    let argv = ["sh", "-c", script, "task", &attempt, &tag].map(str::to_owned);
    queue.push(rank, task, Command::new(argv.to_vec()))
}

/// Two agents of this machine; or a Mesos, if `place` names its masters, and the user that tasks run as.
#[cfg_attr(not(feature = "mesos"), expect(unused_variables))]
fn cluster(place: &[String], config: &Config) -> Result<Arc<dyn ClusterManager>, Failure> {
    match place {
        #[cfg(feature = "mesos")]
        [masters, user @ ..] => {
            use offermill::cluster::mesos::{MesosCluster, MesosConfig};
            let mut mesos = MesosConfig::new(masters.parse()?, "task queue").for_kernel(config);
            mesos.user = user.first().cloned();
            Ok(Arc::new(MesosCluster::new(mesos)?))
        }
        #[cfg(not(feature = "mesos"))]
        [_, ..] => Err("Mesos needs the feature `mesos`".into()),
        [] => {
            // Short tasks end all the time: their agents make offers more often than by default.
            let agents = LocalConfig::new("local-cluster[2,4,4096]".parse()?);
            let agents = agents.allocation_interval(Duration::from_millis(10));
            Ok(Arc::new(LocalCluster::new(agents)?))
        }
    }
}

/// What is known of hosts, and of the agent that task 0 runs on.
#[derive(Default)]
struct KnownHosts {
    /// The agents of hosts.
    agents: HashMap<String, String>,
    /// The processes of hosts, by agent.
    processes: HashMap<String, u32>,
    agent_of_first: String,
    first_runs: bool,
    /// The process of the host that task 0 runs in, as it was told last.
    told: Option<u32>,
}

impl KnownHosts {
    /// Follows a notice. Returns the process of the host that task 0 runs in, or that there is none, if it has changed.
    fn follow(&mut self, notice: &Notice) -> Option<Option<u32>> {
        match notice {
            Notice::Placed(placed) if placed.tag == Some(0) => {
                self.agent_of_first.clone_from(&placed.agent_id);
            }
            Notice::Placed(placed) if placed.tag >= Some(WorkQueue::HOST_TAGS) => {
                self.agents.insert(placed.executor.clone(), placed.agent_id.clone());
            }
            Notice::Updated { tag: Some(0), change: Change::Running, .. } => self.first_runs = true,
            Notice::Updated { executor, process, change: Change::Running, .. } => {
                let process = process.as_ref().and_then(|process| process.pid);
                if let (Some(agent), Some(process)) = (self.agents.get(executor), process) {
                    self.processes.insert(agent.clone(), process);
                }
            }
            Notice::Updated { tag: Some(0), change: Change::Ended(_), .. } => {
                self.first_runs = false;
            }
            Notice::Updated { executor, change: Change::Ended(_), .. }
            | Notice::GivenUp { executor } => {
                let agent = self.agents.remove(executor);
                agent.map(|agent| self.processes.remove(&agent));
            }
            _ => {}
        }
        let found = self.processes.get(&self.agent_of_first).copied().filter(|_| self.first_runs);
        (std::mem::replace(&mut self.told, found) != found).then_some(found)
    }
}

/// What is to be done each second, however often tasks end.
fn look_after(queue: &WorkQueue, engine: &Engine) -> Result<(), Failure> {
    queue.end_surplus(engine);
    // What would wait for a larger agent, or for another cap.
    let waits_for_ever = queue.unstartable().pop();
    waits_for_ever.map_or(Ok(()), |(task, why)| Err(format!("task {}: {why}", task.tag).into()))
}

/// Kills a host with SIGKILL. On Mesos it is in the group of the process that is told; elsewhere there may be no such
/// group.
fn kill(pid: u32) -> Result<(), Failure> {
    let kill = |whom: String| std::process::Command::new("kill").args(["-9", "--", &whom]).output();
    let (group, process) = (kill(format!("-{pid}"))?, kill(pid.to_string())?);
    if !group.status.success() && !process.status.success() {
        let why = String::from_utf8_lossy(&process.stderr);
        return Err(format!("the host {pid} isn't killed: {}", why.trim()).into());
    }
    Ok(())
}

/// Kills the host that was found last, if it is there. Returns whether it was.
fn kill_found(found: &Receiver<Option<u32>>) -> Result<bool, Failure> {
    let host = found.try_iter().last().flatten();
    host.map_or(Ok(false), |host| kill(host).map(|()| true))
}

/// Runs this many tasks on the cluster at `place`, in hosts that run the program `host`. If `kills`, that of task 0 is
/// killed in the middle. Returns what became of the tasks, after each has finished once; an error if the cluster
/// refuses the framework, if no host starts, if a task fits on no agent, or if one fails too often.
fn run(count: u64, kills: bool, place: &[String], host: Vec<String>) -> Result<Outcome, Failure> {
    let (queue, ends) = WorkQueue::new(Some(HostTerms::new(host)));
    (0..count).try_for_each(|tag| push(&queue, tag, 1, kills && tag == 0))?;

    // That tasks fail is no agent's fault.
    let (cores, memory) = (MilliCpus::from_millis(250), Mebibytes::new(16));
    let config = Config::builder().smallest_task(cores, memory).exclusion(None).build()?;
    let cluster = cluster(place, &config)?;
    let kernel = Kernel::new(config, IdScheme::unique("queue", 1)?);
    // The engine tells everything that happens. Here that is what tasks were started, and the host of task 0.
    let ((started, starts), (found, hosts)) = (channel(), channel());
    let mut known = KnownHosts::default();
    let observer = move |_: Timestamp, notice: Notice| {
        if kills {
            let _is_heard = known.follow(&notice).map(|process| found.send(process));
        }
        match notice {
            Notice::Placed(placed) if placed.tag < Some(WorkQueue::HOST_TAGS) => {
                let _is_heard = started.send(placed.executor);
            }
            Notice::CallFailed { why } => eprintln!("{why}"),
            _ => {}
        }
    };
    let options = EngineOptions::default();
    let engine = queue.start(kernel, cluster, options, Box::new(observer))?;

    let mut outcome = Outcome::default();
    let mut attempts = vec![1; count as usize];
    let mut is_finished = vec![false; count as usize];
    let mut left = count;
    let (mut due, mut is_to_kill) = (Instant::now(), kills);
    while left > 0 {
        if due <= Instant::now() {
            due = Instant::now() + Duration::from_secs(1);
            look_after(&queue, &engine)?;
        }
        if is_to_kill && left <= count.div_ceil(2) {
            is_to_kill = !kill_found(&hosts)?;
        }
        let end = match ends.recv_timeout(due.saturating_duration_since(Instant::now())) {
            Err(RecvTimeoutError::Timeout) => continue,
            // An error if the engine has ended.
            end => end?,
        };
        let number = end.task.tag as usize;
        assert!(!is_finished[number], "task {number} ran twice");
        match end.fate {
            Fate::Finished => {
                is_finished[number] = true;
                left -= 1;
                continue;
            }
            // No host starts on any agent, or the cluster refuses the framework.
            _ if end.executor.is_empty() => return Err(end.message.into()),
            _ if attempts[number] == ATTEMPTS_MAX => {
                let why = format!("task {number} has failed {ATTEMPTS_MAX} times: {}", end.message);
                return Err(why.into());
            }
            Fate::Lost => outcome.lost += 1,
            _ => outcome.failed += 1,
        }
        attempts[number] += 1;
        push(&queue, end.task.tag, attempts[number], false)?;
    }
    println!("drained: {}", engine.shutdown(Duration::from_secs(10)).drained);
    outcome.attempts = starts.try_iter().count() as u64;
    outcome.put_back = queue.counts().put_back;
    Ok(outcome)
}

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1).peekable();
    if arguments.next_if_eq("host").is_some() {
        return run_task_host().map_err(Into::into);
    }
    let count = arguments.next().map_or(Ok(200), |text| text.parse())?;
    let kills = arguments.next_if_eq("kill").is_some();
    let place: Vec<String> = arguments.collect();
    let program = std::env::current_exe()?.into_os_string().into_string();
    let program = program.map_err(|_| "this program's path is no text")?;
    let started = Instant::now();
    let host = vec![program, "host".to_owned()];
    let Outcome { attempts, failed, lost, put_back } = run(count, kills, &place, host)?;
    let rate = count as f64 / started.elapsed().as_secs_f64();
    println!(
        "{count} tasks finished, {rate:.0} a second: {attempts} attempts, {failed} failed, {lost} lost, \
         {put_back} put back"
    );
    Ok(())
}

#[cfg(test)]
#[path = "task_queue/tests.rs"]
mod tests;
