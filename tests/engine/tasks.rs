//! An engine that places the tasks of a chooser.
#![allow(clippy::panic)]

use std::sync::{Arc, Mutex};

use offermill::config::{ExecutorCores, Queue};
use offermill::engine::cluster_manager::{Event, RecoveredExecutor};
use offermill::engine::{Engine, EngineOptions, Notice, TaskChooser};
use offermill::launch::{Command, LaunchContext, Launcher};
use offermill::resources::{ExecutorResources, Mebibytes, MilliCpus};
use offermill::{Config, IdScheme, Kernel, Picks, Rooms, Task, Timestamp, Unplaced};

use crate::kernel;
use crate::recorder::{Call, Notices, Recorder, offer};

/// Wants tasks of these cores, once, all on the first room. Their tags are 0, 1 and so on. Keeps what comes back.
struct Wanted {
    cores: Mutex<Vec<u64>>,
    panics: bool,
    unplaced: Mutex<Vec<u64>>,
    killed: Mutex<Vec<u64>>,
}

impl TaskChooser for Wanted {
    fn choose(&self, rooms: &Rooms<'_>, _now: Timestamp, picks: &mut Picks) {
        assert!(picks.is_empty() && !rooms.list().is_empty());
        for (cores, tag) in self.cores.lock().unwrap().drain(..).zip(0..) {
            picks.push(0, Task::new(tag, MilliCpus::from_cores(cores), Mebibytes::new(64)));
        }
        assert!(picks.is_empty() || !self.panics, "no choice");
    }

    fn unplaced(&self, unplaced: &[Unplaced]) {
        self.unplaced.lock().unwrap().extend(unplaced.iter().map(|it| it.tag));
    }

    fn killing(&self, tag: u64) {
        self.killed.lock().unwrap().push(tag);
        panic!("a mistake");
    }
}

/// The command of a task is its tag.
impl Launcher for Wanted {
    fn command(&self, context: &LaunchContext<'_>) -> Command {
        Command::new(vec![context.tag.unwrap().to_string()])
    }
}

fn start(cluster: &Arc<Recorder>, wanted: &Arc<Wanted>, notices: &Notices) -> Engine {
    let engine = start_with(kernel(None), cluster, wanted, notices);
    cluster.send(Event::Registered { framework_id: "F".to_owned(), again: false });
    engine
}

fn start_with(
    kernel: Kernel,
    cluster: &Arc<Recorder>,
    wanted: &Arc<Wanted>,
    notices: &Notices,
) -> Engine {
    let manager = Arc::clone(cluster) as _;
    let launcher = Arc::clone(wanted) as Arc<dyn Launcher>;
    let chooser = Arc::clone(wanted) as Arc<dyn TaskChooser>;
    let options = EngineOptions::default().with_handlers(1);
    let observer = Box::new(notices.clone());
    let engine = Engine::start_with_tasks(kernel, manager, launcher, chooser, options, observer);
    engine.unwrap()
}

fn wanted(cores: &[u64], panics: bool) -> Arc<Wanted> {
    let cores = Mutex::new(cores.to_vec());
    Arc::new(Wanted { cores, panics, unplaced: Mutex::default(), killed: Mutex::default() })
}

/// Goal: picked tasks are launched with the commands of their tags and reported with their tags, and what has no room
/// comes back. Method: an offer of three cores; tasks of one, five and two.
#[test]
fn picked_tasks_are_launched() {
    let (cluster, notices) = (Arc::new(Recorder::default()), Notices::default());
    let wanted = wanted(&[1, 5, 2], false);
    let engine = start(&cluster, &wanted, &notices);
    cluster.send(Event::Offers(vec![offer("o1", "S1", 3)]));
    let placed = notices.wait_for_many(2, |notice| match notice {
        Notice::Placed(placed) => Some((placed.tag.unwrap(), placed.resources.cores)),
        _ => None,
    });
    assert_eq!(placed, [(0, MilliCpus::from_cores(1)), (2, MilliCpus::from_cores(2))]);
    let argv = cluster.wait_for(|call| match call {
        Call::Accept { argv, .. } => Some(argv.clone()),
        _ => None,
    });
    assert!(argv.contains(&"0".to_owned()), "{argv:?}");
    assert_eq!(*wanted.unplaced.lock().unwrap(), [1]);
    // Nothing is wanted any more.
    cluster.send(Event::Offers(vec![offer("o2", "S2", 3)]));
    let declined = cluster.declined_when(1);
    assert_eq!(declined[0].0, "o2");
    drop(engine);
}

/// Goal: a chooser that panics costs its batch, and its picks come back. Method: it panics after two picks; then
/// another offer.
#[test]
fn a_chooser_that_panics_gets_its_picks_back() {
    let (cluster, notices) = (Arc::new(Recorder::default()), Notices::default());
    let wanted = wanted(&[1, 1], true);
    let engine = start(&cluster, &wanted, &notices);
    cluster.send(Event::Offers(vec![offer("o1", "S1", 3)]));
    notices.wait_for(|notice| matches!(notice, Notice::HandlerPanicked { .. }).then_some(()));
    assert_eq!(cluster.declined_when(1)[0].0, "o1");
    assert_eq!(*wanted.unplaced.lock().unwrap(), [0, 1]);
    cluster.send(Event::Offers(vec![offer("o2", "S2", 3)]));
    assert_eq!(cluster.declined_when(2)[1].0, "o2");
    assert!(cluster.accepted().is_empty());
    drop(engine);
}

/// Goal: a chooser knows which of its tasks are killed before the cluster does, and they are killed also if it panics
/// then. Method: two of three tasks are killed; the chooser's list at each call, and at the end.
#[test]
fn a_chooser_hears_of_a_kill_first() {
    let wanted = wanted(&[1, 1, 1], false);
    let told = Arc::clone(&wanted);
    let on_kill = move |_| assert_eq!(*told.killed.lock().unwrap(), [2, 0]);
    let mut cluster = Recorder::default();
    cluster.on_kill = Some(Box::new(on_kill));
    let (cluster, notices) = (Arc::new(cluster), Notices::default());
    let engine = start(&cluster, &wanted, &notices);
    cluster.send(Event::Offers(vec![offer("o1", "S1", 3)]));
    let placed = notices.wait_for_many(3, |notice| match notice {
        Notice::Placed(placed) => Some((placed.tag.unwrap(), placed.id, placed.executor.clone())),
        _ => None,
    });
    let killed = [2, 0].map(|tag| placed.iter().find(|it| it.0 == tag).unwrap());
    engine.kill(killed.iter().map(|it| it.1).collect());
    assert_eq!(*wanted.killed.lock().unwrap(), [2, 0]);
    for (_, _, executor) in killed {
        cluster.wait_for(|call| matches!(call, Call::Kill(name) if name == executor).then_some(()));
    }
    drop(engine);
}

/// A kernel with the default queue and these, of which the first has at most three cores.
fn kernel_with_queues(names: [&str; 2]) -> Kernel {
    let smallest = ExecutorCores::Fixed(MilliCpus::from_cores(1));
    let [first, second] = names.map(Queue::new);
    let builder = Config::builder()
        .executor_cores(smallest)
        .executor_memory(Mebibytes::new(64))
        .memory_overhead(Some(Mebibytes::ZERO))
        .queue(first.max_cores(Some(MilliCpus::from_cores(3))))
        .queue(second);
    Kernel::new(builder.build().unwrap(), IdScheme::unique("queued", 2).unwrap())
}

/// Goal: what a manager records of a launch says the queue by its name, and what it has recorded is adopted into the
/// queue of that name, though its number is another; into that of executors if there is no such queue, or none was
/// recorded. Method: executors of a former run in two queues, whose order has changed, in one that is gone, and in
/// none; then a task of the default queue.
#[test]
fn queues_survive_a_restart() {
    let (cluster, notices) = (Arc::new(Recorder::default()), Notices::default());
    let wanted = wanted(&[1], false);
    let kernel = kernel_with_queues(["web", "etl"]);
    let engine = start_with(kernel.clone(), &cluster, &wanted, &notices);
    let (cores, memory) = (MilliCpus::from_cores(2), Mebibytes::new(64));
    let resources = ExecutorResources { cores, memory, ..ExecutorResources::NONE };
    let former = |name: &str| RecoveredExecutor::new(name, "S1", "host", resources);
    let executors = vec![
        former("a").in_queue_called("etl"),
        former("b").in_queue_called("web"),
        former("c").in_queue_called("web"),
        former("d").in_queue_called("gone"),
        former("e"),
    ];
    cluster.send(Event::Recovered { executors, finished: 0 });
    let adopted = notices.wait_for_many(4, |notice| match notice {
        Notice::Adopted(adopted) => Some(adopted.executor.clone()),
        _ => None,
    });
    assert_eq!(adopted, ["a", "b", "d", "e"], "its queue has no room for another one");
    let held: Vec<_> = kernel.queues().iter().map(|it| (it.name.to_string(), it.cores)).collect();
    let cores = MilliCpus::from_cores;
    let expected = [("default", cores(4)), ("web", cores(2)), ("etl", cores(2))];
    assert_eq!(held, expected.map(|(name, cores)| (name.to_owned(), cores)));
    cluster.send(Event::Registered { framework_id: "F".to_owned(), again: false });
    cluster.send(Event::Offers(vec![offer("o1", "S2", 3)]));
    let queues = cluster.wait_for(|call| match call {
        Call::Accept { queues, .. } => Some(queues.clone()),
        _ => None,
    });
    assert_eq!(queues, ["default"]);
    drop(engine);
}
