//! A task queue: many short tasks of unequal sizes, placed in an order of its own, each retried if it fails.
//!
//! Run it with `cargo run --release --example task_queue --features local -- 10000`; the number of tasks is 200 without
//! an argument. `offermill run --tasks FILE` is such a queue with a file of tasks, results and resume.

use std::collections::BTreeMap;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use offermill::choosers::Chooser;
use offermill::cluster::local::{LocalCluster, LocalConfig};
use offermill::config::ExecutorCores;
use offermill::engine::{Engine, EngineOptions, Notice, Observer, TaskChooser};
use offermill::launch::{Command, LaunchContext, Launcher};
use offermill::resources::{Mebibytes, MilliCpus};
use offermill::{Change, Config, Fate, IdScheme, Kernel, Picks, Rooms, Task, Timestamp, Unplaced};

/// Every hundredth task fails the first time.
const SCRIPT: &str = "[ $1 -gt 1 ] || [ $(($2 % 100)) -ne 99 ] || exit 1";

/// The tasks that wait, those with the most cores first, then by their numbers, which are their tags.
#[derive(Default)]
struct Queue {
    waiting: BTreeMap<(std::cmp::Reverse<u64>, u64), Task>,
    tasks: Vec<Task>,
    attempts: Vec<u32>,
    chooser: Chooser,
}

struct TaskQueue(Mutex<Queue>);

impl Queue {
    fn add(&mut self, tag: u64) {
        let task = self.tasks[tag as usize];
        self.waiting.insert((std::cmp::Reverse(task.cores.millis()), tag), task);
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
        let Queue { waiting, chooser, .. } = &mut *self.lock();
        // More don't fit: each takes a quarter of a core at least.
        let most = rooms.list().iter().map(|room| room.left().cores.millis() / 250).sum::<u64>();
        let first: Vec<Task> = waiting.values().take(most as usize).copied().collect();
        chooser.round_robin(rooms.list(), &first, picks);
        for pick in &*picks {
            waiting.remove(&(std::cmp::Reverse(pick.task.cores.millis()), pick.task.tag));
        }
    }

    fn unplaced(&self, unplaced: &[Unplaced]) {
        let mut queue = self.lock();
        unplaced.iter().for_each(|it| queue.add(it.tag));
    }
}

impl Launcher for TaskQueue {
    fn command(&self, context: &LaunchContext<'_>) -> Command {
        let tag = context.tag.unwrap_or_default();
        let attempts = &mut self.lock().attempts[tag as usize];
        *attempts += 1;
        let (attempt, tag) = (attempts.to_string(), tag.to_string());
        Command::new(["sh", "-c", SCRIPT, "task", &attempt, &tag].map(str::to_owned).to_vec())
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
            Notice::Updated { tag: Some(tag), change: Change::Ended(fate), .. } => match fate {
                Fate::Finished => drop(self.finished.send(tag)),
                _ => self.queue.lock().add(tag),
            },
            Notice::CallFailed { why } | Notice::Refused { why } => eprintln!("{why}"),
            _ => {}
        }
    }
}

/// Runs this many tasks on two agents of this machine. Returns how often one was started in all.
fn run(count: u64) -> Result<u32, Box<dyn std::error::Error>> {
    let size = |tag| MilliCpus::from_millis(250 * (1 + tag % 3));
    let mut queue = Queue { attempts: vec![0; count as usize], ..Queue::default() };
    queue.tasks = (0..count).map(|tag| Task::new(tag, size(tag), Mebibytes::new(16))).collect();
    (0..count).for_each(|tag| queue.add(tag));
    let queue = Arc::new(TaskQueue(Mutex::new(queue)));

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
    for _ in 0..count {
        ends.recv()?;
    }
    println!("drained: {}", engine.shutdown(Duration::from_secs(10)).drained);
    Ok(queue.lock().attempts.iter().sum())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let count: u64 = std::env::args().nth(1).map_or(Ok(200), |text| text.parse())?;
    let started = Instant::now();
    let attempts = run(count)?;
    let rate = count as f64 / started.elapsed().as_secs_f64();
    println!("{count} tasks finished in {attempts} attempts, {rate:.0} a second");
    Ok(())
}

#[cfg(test)]
#[path = "task_queue/tests.rs"]
mod tests;
