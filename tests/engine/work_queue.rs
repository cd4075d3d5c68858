//! The library's queue of tasks on agents of this machine.

use std::sync::Arc;
use std::time::{Duration, Instant};

use offermill::cluster::local::{LocalCluster, LocalConfig};
use offermill::engine::{EngineOptions, Unobserved, WorkQueue};
use offermill::launch::Command;
use offermill::resources::{Mebibytes, MilliCpus};
use offermill::{Config, Fate, IdScheme, Kernel, Task};

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
