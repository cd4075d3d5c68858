//! A framework in place of the engine: it takes as many permits as it wants executors, replaces those that were
//! dropped, acknowledges ends, and records all events.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};
use std::time::Duration;

use offermill::cluster::kubernetes::{ApiServer, KubernetesCluster, KubernetesConfig};
use offermill::config::ExecutorCores;
use offermill::engine::cluster_manager::{
    Accept, Call, ClusterManager, Event, Events, ExecutorRequest, Launch, OwnedOffer, Update,
};
use offermill::launch::Command;
use offermill::resources::{ExecutorResources, Mebibytes, MilliCpus};
use offermill::{Config, Offer, Resource, TaskState};

use crate::eventually::eventually;

/// Far longer than any step takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(15);

#[derive(Default)]
struct Recorded {
    events: Vec<Event>,
    epoch: u64,
    to_launch: usize,
    launched: usize,
    withholds_acknowledgements: bool,
}

/// A manager and what it has reported.
pub(crate) struct Framework {
    pub(crate) cluster: Arc<KubernetesCluster>,
    sink: Arc<Sink>,
}

struct Sink {
    recorded: Mutex<Recorded>,
    cluster: OnceLock<Weak<KubernetesCluster>>,
    /// The number of this run, which is part of executors' ids.
    run: u32,
}

pub(crate) fn config(url: &str) -> KubernetesConfig {
    let server = ApiServer::at(url);
    let config = KubernetesConfig::new("etl").with_api_server(server).with_image("spark:3.5");
    let mut config = config.with_lease_duration(Duration::from_secs(3)).with_namespace("jobs");
    config.request_timeout = Duration::from_secs(2);
    config.for_kernel(&settings(100)).unwrap()
}

/// The settings of a kernel with this many executors, of one core each.
pub(crate) fn settings(executors: u32) -> Config {
    let cores = ExecutorCores::Fixed(MilliCpus::from_cores(1));
    Config::builder().executor_cores(cores).executor_limit(Some(executors)).build().unwrap()
}

impl Framework {
    /// Starts a manager; `run` is part of the ids of its executors.
    pub(crate) fn start(config: KubernetesConfig, run: u32) -> Framework {
        let cluster = Arc::new(KubernetesCluster::new(config).unwrap());
        let (recorded, link) = (Mutex::default(), OnceLock::new());
        let sink = Arc::new(Sink { recorded, cluster: link, run });
        sink.cluster.set(Arc::downgrade(&cluster)).unwrap();
        cluster.start(Arc::clone(&sink) as Arc<dyn Events>).unwrap();
        Framework { cluster, sink }
    }

    fn recorded(&self) -> MutexGuard<'_, Recorded> {
        self.sink.recorded.lock().unwrap()
    }

    /// Starts this number of executors in addition.
    pub(crate) fn launch(&self, executors: usize) {
        self.recorded().to_launch += executors;
        self.request();
    }

    /// Says anew how many executors are wanted.
    pub(crate) fn request(&self) {
        self.sink.request(&self.cluster);
    }

    pub(crate) fn kill(&self, executor: &str) {
        let grace = Duration::from_millis(1500);
        self.cluster.call(Call::Kill { executor, agent_id: None, grace }).unwrap();
    }

    pub(crate) fn withhold_acknowledgements(&self) {
        self.recorded().withholds_acknowledgements = true;
    }

    pub(crate) fn events(&self) -> Vec<Event> {
        self.recorded().events.clone()
    }

    /// All reports about an executor.
    pub(crate) fn updates(&self, executor: &str) -> Vec<Update> {
        let updates = self.events().into_iter().filter_map(|event| match event {
            Event::Update(update) if update.executor == executor => Some(update),
            _ => None,
        });
        updates.collect()
    }

    /// The states that were reported of an executor, without repetitions.
    pub(crate) fn states(&self, executor: &str) -> Vec<TaskState> {
        let mut states: Vec<TaskState> =
            self.updates(executor).into_iter().map(|update| update.state).collect();
        states.dedup();
        states
    }

    /// Waits for the last state of an executor.
    #[track_caller]
    pub(crate) fn wait_state(&self, executor: &str, state: TaskState) {
        eventually(PATIENCE, &format!("{executor} is {state:?}"), || {
            let updates = self.updates(executor);
            let told = || updates.iter().map(|it| (it.state, &*it.message)).collect::<Vec<_>>();
            let is_last = updates.last().is_some_and(|update| update.state == state);
            if is_last { Ok(()) } else { Err(format!("{:?}", told())) }
        });
    }

    /// Waits until this many executors run, whichever they are.
    #[track_caller]
    pub(crate) fn wait_running(&self, count: usize) {
        eventually(PATIENCE, &format!("{count} executors run"), || {
            let mut last = std::collections::BTreeMap::new();
            for event in self.events() {
                if let Event::Update(Update { executor, state, message, .. }) = event {
                    last.insert(executor, (state, message));
                }
            }
            let running = last.values().filter(|(state, _)| *state == TaskState::Running);
            if running.count() == count { Ok(()) } else { Err(format!("{last:?}")) }
        });
    }

    /// Waits for an event.
    #[track_caller]
    pub(crate) fn wait_event(&self, what: &str, is_it: impl Fn(&Event) -> bool) -> Event {
        eventually(PATIENCE, what, || {
            let events = self.events();
            events.iter().rfind(|event| is_it(event)).cloned().ok_or_else(|| format!("{events:?}"))
        })
    }

    /// The number of subscriptions.
    pub(crate) fn epoch(&self) -> u64 {
        self.recorded().epoch
    }

    #[track_caller]
    pub(crate) fn wait_epoch(&self, epoch: u64) {
        eventually(PATIENCE, &format!("subscription {epoch}"), || {
            let now = self.epoch();
            if now >= epoch { Ok(()) } else { Err(format!("{now}: {:?}", self.events())) }
        });
    }
}

impl Sink {
    fn request(&self, cluster: &KubernetesCluster) {
        let wanted = self.recorded.lock().unwrap().to_launch as u32;
        let cores = Some(MilliCpus::from_cores(1));
        let request = ExecutorRequest::new(wanted, cores, Mebibytes::new(1024));
        cluster.call(Call::RequestExecutors(&[request])).unwrap();
    }

    /// Accepts a permit for an executor that is wanted, or declines it.
    fn answer(&self, cluster: &KubernetesCluster, offer: &OwnedOffer) {
        let (epoch, number) = {
            let mut recorded = self.recorded.lock().unwrap();
            let is_wanted = recorded.to_launch > 0;
            let number = recorded.launched;
            if is_wanted {
                recorded.to_launch -= 1;
                recorded.launched += 1;
            }
            (recorded.epoch, is_wanted.then_some(number))
        };
        let Some(number) = number else {
            let refuse = Duration::from_secs(60);
            let decline = Call::Decline { epoch, offers: &[&offer.id], refuse };
            return cluster.call(decline).unwrap();
        };
        assert_eq!(offer.agent_id, "", "a permit names no agent");
        let resources = [Resource::scalar("cpus", 1.0), Resource::scalar("mem", 1024.0)];
        let late = Offer::late(&offer.id, &resources);
        let size = ExecutorResources {
            cores: MilliCpus::from_cores(1),
            memory: Mebibytes::new(1024),
            ..ExecutorResources::NONE
        };
        let command = Command::new(["worker", "$HOME", "{{HOSTNAME}}"].map(str::to_owned).to_vec());
        let executor = format!("etl-{}-{number}.0", self.run);
        let launch = Launch::new(&executor, size, Vec::new(), command);
        // An accept of a subscription that has ended meanwhile has no effect; the executor is wanted again.
        if cluster.call(Call::Accept(Accept::new(epoch, "", &[&late], &[launch]))).is_err() {
            self.recorded.lock().unwrap().to_launch += 1;
        }
    }
}

impl Events for Sink {
    fn send(&self, event: Event) {
        if let Event::Registered { .. } = event {
            self.recorded.lock().unwrap().epoch += 1;
        }
        self.recorded.lock().unwrap().events.push(event.clone());
        let Some(cluster) = self.cluster.get().and_then(Weak::upgrade) else { return };
        match event {
            // As the engine does.
            Event::Registered { .. } => self.request(&cluster),
            Event::Offers(offers) => offers.iter().for_each(|offer| self.answer(&cluster, offer)),
            Event::Update(update) => {
                if update.state == TaskState::Dropped {
                    self.recorded.lock().unwrap().to_launch += 1;
                    self.request(&cluster);
                }
                let withholds = self.recorded.lock().unwrap().withholds_acknowledgements;
                if let Some(uuid) = update.uuid.as_deref().filter(|_| !withholds) {
                    let _sent = cluster.call(Call::Acknowledge { update: &update, uuid });
                }
            }
            _ => {}
        }
    }
}
