//! An engine that places the tasks of a chooser.
#![allow(clippy::panic)]

use std::sync::{Arc, Mutex};

use offermill::engine::cluster_manager::Event;
use offermill::engine::{Engine, EngineOptions, Notice, TaskChooser};
use offermill::launch::{Command, LaunchContext, Launcher};
use offermill::resources::{Mebibytes, MilliCpus};
use offermill::{Picks, Rooms, Task, Timestamp, Unplaced};

use crate::kernel;
use crate::recorder::{Call, Notices, Recorder, offer};

/// Wants tasks of these cores, once, all on the first room. Their tags are 0, 1 and so on. Keeps what comes back.
struct Wanted {
    cores: Mutex<Vec<u64>>,
    panics: bool,
    unplaced: Mutex<Vec<u64>>,
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
}

/// The command of a task is its tag.
impl Launcher for Wanted {
    fn command(&self, context: &LaunchContext<'_>) -> Command {
        Command::new(vec![context.tag.unwrap().to_string()])
    }
}

fn start(cluster: &Arc<Recorder>, wanted: &Arc<Wanted>, notices: &Notices) -> Engine {
    let manager = Arc::clone(cluster) as _;
    let launcher = Arc::clone(wanted) as Arc<dyn Launcher>;
    let chooser = Arc::clone(wanted) as Arc<dyn TaskChooser>;
    let options = EngineOptions::default().with_handlers(1);
    let observer = Box::new(notices.clone());
    let kernel = kernel(None);
    let engine = Engine::start_with_tasks(kernel, manager, launcher, chooser, options, observer);
    cluster.send(Event::Registered { framework_id: "F".to_owned(), again: false });
    engine.unwrap()
}

fn wanted(cores: &[u64], panics: bool) -> Arc<Wanted> {
    let cores = Mutex::new(cores.to_vec());
    Arc::new(Wanted { cores, panics, unplaced: Mutex::default() })
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
