//! A cluster for tests: its events in a queue, and short forms of its calls.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use crate::cluster::local::{AgentAttributes, LocalCluster, LocalConfig};
use crate::engine::cluster_manager::{
    Accept, Call, ClusterManager, Event, Events, Launch, OwnedOffer, OwnedValue, ReconcileTask,
    ResourceProfileId, Update,
};
use crate::launch::Command;
use crate::offer::Offer;
use crate::resources::{ExecutorResources, Gpus, Mebibytes, MilliCpus};
use crate::status::TaskState;

/// A timeout that is only exceeded if something is broken.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);
pub(super) const EPOCH: u64 = 1;

struct Queue(Sender<Event>);

impl Events for Queue {
    fn send(&self, event: Event) {
        let _ = self.0.send(event);
    }
}

/// A folder that is removed when its owner is dropped.
pub(super) struct Folder(pub(super) PathBuf);

impl Folder {
    pub(super) fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("offermill-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path.canonicalize().unwrap())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(super) struct Bench {
    pub(super) cluster: LocalCluster,
    events: Receiver<Event>,
    /// Events that arrived while another one was waited for.
    passed: RefCell<Vec<Event>>,
    pub(super) framework_id: String,
    pub(super) folder: Folder,
}

impl Bench {
    /// Starts a cluster of `master`; `name` must be unique to the test.
    pub(super) fn new(name: &str, master: &str) -> Bench {
        Bench::with(name, master, |config| config)
    }

    pub(super) fn with(
        name: &str,
        master: &str,
        change: impl FnOnce(LocalConfig) -> LocalConfig,
    ) -> Bench {
        let folder = Folder::new(name);
        let config = LocalConfig::new(master.parse().unwrap())
            .work_dir(&folder.0)
            .attributes(AgentAttributes::parse("zone:east|west;rack:r%d").unwrap())
            .allocation_interval(Duration::from_millis(20));
        let cluster = LocalCluster::new(change(config)).unwrap();
        let (sender, events) = channel();
        cluster.start(Arc::new(Queue(sender))).unwrap();
        let passed = RefCell::default();
        let framework_id = String::new();
        let mut bench = Bench { cluster, events, passed, framework_id, folder };
        bench.framework_id = bench.expect("registration", |event| match event {
            Event::Registered { framework_id, again: false } => Some(framework_id.clone()),
            _ => None,
        });
        bench
    }

    /// Waits for the first event that `pick` accepts. Earlier events are kept for later.
    pub(super) fn expect<T>(&self, what: &str, pick: impl Fn(&Event) -> Option<T>) -> T {
        self.try_expect(PATIENCE, pick).unwrap_or_else(|| {
            panic!("{what} never came, but {:?}", self.passed.borrow());
        })
    }

    pub(super) fn try_expect<T>(
        &self,
        patience: Duration,
        pick: impl Fn(&Event) -> Option<T>,
    ) -> Option<T> {
        let mut passed = self.passed.borrow_mut();
        let found = passed.iter().enumerate().find_map(|(at, event)| Some((at, pick(event)?)));
        if let Some((at, picked)) = found {
            passed.remove(at);
            return Some(picked);
        }
        let until = Instant::now() + patience;
        loop {
            let event = self.events.recv_timeout(until.saturating_duration_since(Instant::now()));
            let event = event.ok()?;
            match pick(&event) {
                Some(picked) => return Some(picked),
                None => passed.push(event),
            }
        }
    }

    /// Waits for the next batch of offers.
    pub(super) fn offers(&self) -> Vec<OwnedOffer> {
        self.expect("an offer", offers)
    }

    /// Waits for the next batch, which must have one offer.
    pub(super) fn offer(&self) -> OwnedOffer {
        let mut offers = self.offers();
        assert_eq!(offers.len(), 1);
        offers.remove(0)
    }

    /// Waits for an offer of exactly `cores` thousandths of a core. Other offers are declined.
    pub(super) fn offer_of(&self, cores: u64) -> OwnedOffer {
        loop {
            let offer = self.offer();
            if scalar(&offer, "cpus") == cores {
                return offer;
            }
            self.decline(&offer, Duration::ZERO);
        }
    }

    /// Whether offers arrive within `patience`.
    pub(super) fn is_offered(&self, patience: Duration) -> bool {
        self.try_expect(patience, offers).is_some()
    }

    /// Waits for the update that reports `executor` in `state`.
    pub(super) fn update(&self, executor: &str, state: TaskState) -> Update {
        self.expect(&format!("{executor} {state:?}"), |event| match event {
            Event::Update(update) if update.executor == executor && update.state == state => {
                Some(update.clone())
            }
            _ => None,
        })
    }

    /// Runs `argv` as `executor` on the next offer. The rest of the offer is refused for no time.
    pub(super) fn run(&self, executor: &str, argv: &[&str]) -> OwnedOffer {
        let offer = self.offer();
        self.accept(&offer, &[launch(executor, argv)], Duration::ZERO);
        offer
    }

    /// Runs a line of shell as `executor`, and waits until it has printed `ready`.
    pub(super) fn run_until_ready(&self, executor: &str, line: &str) -> OwnedOffer {
        let offer = self.run(executor, &["sh", "-c", line]);
        self.wait_until_ready(&offer, executor);
        offer
    }

    /// Waits until an executor on an offer's agent runs and has printed `ready`.
    pub(super) fn wait_until_ready(&self, offer: &OwnedOffer, executor: &str) {
        self.update(executor, TaskState::Running);
        let stdout = self.sandbox(offer, executor).join("stdout");
        until("ready", || std::fs::read_to_string(&stdout).is_ok_and(|it| it.contains("ready")));
    }

    pub(super) fn accept(&self, offer: &OwnedOffer, executors: &[Launch<'_>], refuse: Duration) {
        self.accept_of(EPOCH, offer, executors, refuse);
    }

    pub(super) fn accept_of(
        &self,
        epoch: u64,
        offer: &OwnedOffer,
        executors: &[Launch<'_>],
        refuse: Duration,
    ) {
        let agent_id = &offer.agent_id;
        let offer = Offer::new(&offer.id, agent_id, &offer.hostname, &[], &[]);
        let offers = &[&offer];
        self.call(Call::Accept(Accept { epoch, agent_id, offers, executors, refuse }));
    }

    pub(super) fn decline(&self, offer: &OwnedOffer, refuse: Duration) {
        self.call(Call::Decline { epoch: EPOCH, offers: &[&offer.id], refuse });
    }

    pub(super) fn kill(&self, executor: &str, grace: Duration) {
        self.call(Call::Kill { executor, agent_id: None, grace });
    }

    pub(super) fn reconcile(&self, executors: &[&str]) {
        let questions: Vec<_> =
            executors.iter().map(|executor| ReconcileTask { executor, agent_id: "S" }).collect();
        self.call(Call::Reconcile(&questions));
    }

    pub(super) fn call(&self, call: Call<'_>) {
        self.cluster.call(call).unwrap();
    }

    pub(super) fn sandbox(&self, offer: &OwnedOffer, executor: &str) -> PathBuf {
        self.sandboxes().join(&self.framework_id).join(&offer.agent_id).join(executor)
    }

    pub(super) fn sandboxes(&self) -> PathBuf {
        self.folder.0.join("sandboxes")
    }

    /// Reads an output file of an executor.
    pub(super) fn output(&self, offer: &OwnedOffer, executor: &str, file: &str) -> String {
        std::fs::read_to_string(self.sandbox(offer, executor).join(file)).unwrap()
    }
}

fn offers(event: &Event) -> Option<Vec<OwnedOffer>> {
    match event {
        Event::Offers(offers) => Some(offers.clone()),
        _ => None,
    }
}

/// An executor of one core and 64 MiB.
pub(super) fn launch<'a>(executor: &'a str, argv: &[&str]) -> Launch<'a> {
    let argv = argv.iter().map(|argument| (*argument).to_owned()).collect();
    Launch {
        executor,
        profile: ResourceProfileId::default(),
        resources: ExecutorResources {
            cores: MilliCpus::from_cores(1),
            memory: Mebibytes::new(64),
            gpus: Gpus::ZERO,
            port: None,
        },
        pieces: Vec::new(),
        command: Command { argv, ..Command::default() },
        queue: None,
    }
}

/// An offer's scalar resource, in thousandths.
pub(super) fn scalar(offer: &OwnedOffer, name: &str) -> u64 {
    match offer.resources.iter().find(|resource| resource.name == name).map(|it| &it.value) {
        Some(OwnedValue::Scalar(scalar)) => scalar.thousandths(),
        other => panic!("{name} is {other:?}"),
    }
}

/// Waits until `is_so` returns `true`.
pub(super) fn until(what: &str, is_so: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The processes whose working directory is `folder` or below it, including watchdogs.
#[cfg(target_os = "linux")]
pub(super) fn processes_in(folder: &Path) -> Vec<i32> {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    all.filter(|entry| {
        std::fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(folder))
    })
    .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
    .collect()
}

/// Why a cluster doesn't start with this work folder.
pub(super) fn refusal(work_dir: &Path) -> String {
    struct Deaf;

    impl Events for Deaf {
        fn send(&self, _event: Event) {}
    }

    let config = LocalConfig::new("local-cluster[1,1,512]".parse().unwrap()).work_dir(work_dir);
    let cluster = LocalCluster::new(config).unwrap();
    let error = cluster.start(Arc::new(Deaf)).unwrap_err();
    assert!(error.is_setting(), "{error}");
    error.to_string()
}
