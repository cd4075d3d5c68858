//! The library's queue of tasks on agents of this machine.

use std::sync::Arc;
use std::time::{Duration, Instant};

use offermill::cluster::local::{LocalCluster, LocalConfig};
use offermill::engine::cluster_manager::{Call, ClusterManager, EventSink};
use offermill::engine::{EngineOptions, HostTerms, Unobserved, WorkQueue};
use offermill::launch::Command;
use offermill::resources::{Mebibytes, MilliCpus};
use offermill::{Config, Error, ErrorKind, Fate, IdScheme, Kernel, Task};

/// Goal: a task that fits on no agent is told with the nearest one, the others run meanwhile, and it is gone once it is
/// removed. Method: two agents of one core; a task of one and a half, and small ones; looks until it is told, which is
/// half a minute later.
#[test]
fn a_task_for_no_agent_is_told() {
    let (queue, ends) = WorkQueue::new(None);
    let (small, memory) = (MilliCpus::from_millis(500), Mebibytes::new(16));
    let push = |tag, cores| {
        let command = Command::new(vec!["true".to_owned()]);
        queue.push(0, Task::new(tag, cores, memory), command).unwrap();
    };
    push(7, MilliCpus::from_millis(1500));
    (10..14).for_each(|tag| push(tag, small));
    let config = Config::builder().smallest_task(small, memory).exclusion(None).build().unwrap();
    let kernel = Kernel::new(config, IdScheme::unique("unfitting", 1).unwrap());
    let local = LocalConfig::new("local-cluster[2,1,512]".parse().unwrap());
    let cluster = Arc::new(LocalCluster::new(local).unwrap());
    let observer = Box::new(Unobserved);
    let engine = queue.start(kernel, cluster, EngineOptions::default(), observer).unwrap();
    let mut fates: Vec<(u64, Fate)> =
        ends.iter().take(4).map(|end| (end.task.tag, end.fate)).collect();
    fates.sort_unstable_by_key(|(tag, _)| *tag);
    assert_eq!(fates, [10, 11, 12, 13].map(|tag| (tag, Fate::Finished)));
    let deadline = Instant::now() + Duration::from_secs(120);
    let (task, why) = loop {
        assert!(Instant::now() < deadline, "nothing is told");
        queue.end_surplus(&engine);
        if let Some(told) = queue.unstartable().pop() {
            break told;
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    let expected = "it fits on no agent: it takes 1.5 cores and 16 MiB; the nearest agent, agent-0, has 1 core and \
                    512 MiB, and lacks 0.5 cores";
    assert_eq!((task.tag, &*why), (7, expected));
    assert!(queue.remove(7) && queue.unstartable().is_empty());
    let counts = queue.counts();
    assert_eq!((counts.waiting, counts.in_flight), (0, 0));
    assert!(engine.shutdown(Duration::from_secs(10)).drained);
}

/// A cluster that can't be reached.
struct Unreachable;

impl ClusterManager for Unreachable {
    fn start(&self, _: EventSink) -> Result<(), Error> {
        Err(Error::cluster("starting", "nobody is there"))
    }

    fn call(&self, _: Call<'_>) -> Result<(), Error> {
        Ok(())
    }

    fn stop(&self) {}
}

/// Goal: a start that fails leaves the queue as it was, with its tasks and its receiver; once the engine has ended, no
/// task is taken that nobody would run. Method: starts that fail before and after the engine has its threads, and one
/// that succeeds; pushes after its end.
#[test]
fn a_queue_is_started_again_after_a_failure() {
    let (queue, ends) = WorkQueue::new(None);
    let (cores, memory) = (MilliCpus::from_millis(500), Mebibytes::new(16));
    let push = |tag| {
        let command = Command::new(vec!["true".to_owned()]);
        queue.push(0, Task::new(tag, cores, memory), command)
    };
    push(1).unwrap();
    let local = LocalConfig::new("local-cluster[1,1,512]".parse().unwrap());
    let local = Arc::new(LocalCluster::new(local).unwrap());
    let start = |cluster: Arc<dyn ClusterManager>, handlers| {
        let config = Config::builder().smallest_task(cores, memory).build().unwrap();
        let kernel = Kernel::new(config, IdScheme::unique("again", 1).unwrap());
        let options = EngineOptions::default().with_handlers(handlers);
        queue.start(kernel, cluster, options, Box::new(Unobserved))
    };
    assert_eq!(start(local.clone(), 0).unwrap_err().kind(), ErrorKind::Setting);
    assert_eq!(start(Arc::new(Unreachable), 1).unwrap_err().kind(), ErrorKind::Cluster);
    let engine = start(local.clone(), 1).unwrap();
    assert_eq!(start(local, 1).unwrap_err().kind(), ErrorKind::Repeated);
    assert_eq!(ends.recv().map(|end| (end.task.tag, end.fate)), Ok((1, Fate::Finished)));
    assert!(engine.shutdown(Duration::from_secs(10)).drained);
    assert!(ends.recv().is_err());
    assert!(push(2).unwrap_err().is_ended());
}

/// Goal: hosts that take no cores, of which none would ever start, are refused with a sentence. Method: a start.
#[test]
fn hosts_without_cores_are_refused() {
    let mut terms = HostTerms::new(vec!["host".to_owned()]);
    terms.cores = MilliCpus::ZERO;
    let (queue, _ends) = WorkQueue::new(Some(terms));
    let config = Config::builder().build().unwrap();
    let kernel = Kernel::new(config, IdScheme::unique("coreless", 1).unwrap());
    let options = EngineOptions::default();
    let started = queue.start(kernel, Arc::new(Unreachable), options, Box::new(Unobserved));
    let why = "cores of a host is \"0\", but must be more than 0";
    assert_eq!(started.unwrap_err().to_string(), why);
}

/// A cluster that chooses agents itself.
struct Late;

impl ClusterManager for Late {
    fn start(&self, _: EventSink) -> Result<(), Error> {
        panic!("it is started");
    }

    fn call(&self, _: Call<'_>) -> Result<(), Error> {
        Ok(())
    }

    fn binds_late(&self) -> bool {
        true
    }

    fn stop(&self) {}
}

/// Goal: hosts are refused on a cluster that chooses agents itself, where each offer takes one executor, and tasks with
/// hosts would wait for ever. Method: a start.
#[test]
fn hosts_on_agents_of_the_clusters_choice_are_refused() {
    let (queue, _ends) = WorkQueue::new(Some(HostTerms::new(vec!["host".to_owned()])));
    let config = Config::builder().build().unwrap();
    let kernel = Kernel::new(config, IdScheme::unique("late", 1).unwrap());
    let options = EngineOptions::default();
    let started = queue.start(kernel, Arc::new(Late), options, Box::new(Unobserved));
    let why = started.unwrap_err().to_string();
    assert!(why.ends_with("a task and its host are two executors"), "{why}");
}
