//! A task queue: many short tasks of unequal sizes, the largest first, on agents in turn, in a long-lived host on each
//! agent; each is retried if it fails, or if its host is lost. An agent that starts nothing has pauses meanwhile.
//!
//! Run it with `cargo run --release --example task_queue --features local -- 10000`; the number of tasks is 200 without
//! an argument. After it, `kill` kills a host with SIGKILL when half of the tasks have finished. `offermill run --tasks
//! FILE --task-hosts` is such a queue with a file of tasks, results and resume.

use std::error::Error;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use offermill::cluster::local::{LocalCluster, LocalConfig};
use offermill::cluster::run_task_host;
use offermill::engine::{EngineOptions, HostTerms, Notice, WorkQueue};
use offermill::launch::Command;
use offermill::resources::{Mebibytes, MilliCpus};
use offermill::{Change, Config, Fate, IdScheme, Kernel, Task, Timestamp};

/// Every hundredth task fails the first time.
const SCRIPT: &str = "[ $1 -gt 1 ] || [ $(($2 % 100)) -ne 99 ] || exit 1";

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
/// first.
fn push(queue: &WorkQueue, tag: u64, attempt: usize) -> Result<(), offermill::Error> {
    let millis = 250 * (1 + tag % 3);
    let task = Task::new(tag, MilliCpus::from_millis(millis), Mebibytes::new(16));
    let (attempt, tag) = (attempt.to_string(), tag.to_string());
    let argv = ["sh", "-c", SCRIPT, "task", &attempt, &tag].map(str::to_owned);
    queue.push(1000 - millis, task, Command::new(argv.to_vec()))
}

/// Runs this many tasks on two agents of this machine, in hosts that run `program`. If `kills`, a host is killed in the
/// middle. Returns what became of them, after each has finished once; an error if no host starts, or if a task fails
/// too often.
fn run(count: u64, program: Vec<String>, kills: bool) -> Result<Outcome, Box<dyn Error>> {
    let (queue, ends) = WorkQueue::new(Some(HostTerms::new(program)));
    (0..count).try_for_each(|tag| push(&queue, tag, 1))?;

    // That tasks fail is no agent's fault.
    let (cores, memory) = (MilliCpus::from_millis(250), Mebibytes::new(16));
    let config = Config::builder().smallest_task(cores, memory).exclusion(None).build()?;
    let kernel = Kernel::new(config, IdScheme::unique("queue", 1)?);
    // Short tasks end all the time: their agents make offers more often than by default.
    let agents = LocalConfig::new("local-cluster[2,4,4096]".parse()?);
    let cluster = LocalCluster::new(agents.allocation_interval(Duration::from_millis(10)))?;
    // The engine tells everything that happens. Here that is what tasks were started, and the processes of hosts.
    let ((started, starts), (up, hosts)) = (channel(), channel());
    let observer = move |_: Timestamp, notice: Notice| match notice {
        Notice::Placed(placed) if placed.tag < Some(WorkQueue::HOST_TAGS) => {
            let _is_heard = started.send(placed.executor);
        }
        Notice::Updated { tag: Some(WorkQueue::HOST_TAGS..), process, change, .. } => {
            let pid = process.and_then(|process| process.pid).filter(|_| change == Change::Running);
            let _is_heard = pid.map(|pid| up.send(pid));
        }
        Notice::CallFailed { why } | Notice::Refused { why } => eprintln!("{why}"),
        _ => {}
    };
    let options = EngineOptions::default();
    let engine = queue.start(kernel, Arc::new(cluster), options, Box::new(observer))?;

    let mut outcome = Outcome::default();
    let mut attempts = vec![1; count as usize];
    let mut is_finished = vec![false; count as usize];
    let mut left = count;
    while left > 0 {
        let end = ends.recv()?;
        let number = end.task.tag as usize;
        assert!(!is_finished[number], "task {number} ran twice");
        match end.fate {
            Fate::Finished => {
                is_finished[number] = true;
                left -= 1;
                if kills && left == count / 2 {
                    let pid = hosts.recv()?.to_string();
                    std::process::Command::new("kill").args(["-9", &pid]).status()?;
                }
                continue;
            }
            // No host has started on any agent.
            _ if end.executor.is_empty() => return Err(end.message.into()),
            _ if attempts[number] == ATTEMPTS_MAX => {
                let why = format!("task {number} has failed {ATTEMPTS_MAX} times: {}", end.message);
                return Err(why.into());
            }
            Fate::Lost => outcome.lost += 1,
            _ => outcome.failed += 1,
        }
        attempts[number] += 1;
        push(&queue, end.task.tag, attempts[number])?;
    }
    println!("drained: {}", engine.shutdown(Duration::from_secs(10)).drained);
    outcome.attempts = starts.try_iter().count() as u64;
    outcome.put_back = queue.counts().put_back;
    Ok(outcome)
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments == ["host"] {
        return run_task_host().map_err(Into::into);
    }
    let count: u64 = arguments.first().map_or(Ok(200), |text| text.parse())?;
    let kills = arguments.get(1).is_some_and(|text| text == "kill");
    let program = std::env::current_exe()?.into_os_string().into_string();
    let program = program.map_err(|_| "this program's path is no text")?;
    let started = Instant::now();
    let Outcome { attempts, failed, lost, put_back } =
        run(count, vec![program, "host".to_owned()], kills)?;
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
