//! The manager's thread: one task that has all state, and others that each carry out one request.
//!
//! ```text
//!  calls of the engine ──► commands ─┐                        ┌─► events to the engine
//!  API server ──► reflector: seen ───┼──► actor: pods,permits ┤
//!             ◄── creations,   ──────┤                        └─► creations, deletions, renewals of the lease
//!                 deletions: done ───┘
//! ```

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep_until, timeout_at};

use super::api::Api;
use super::clean_up::clean_up;
use super::command::ActorCommand;
use super::config::KubernetesConfig;
use super::creation::{CreationEnd, CreationSignal};
use super::lease::{Lease, LeaseError};
use super::lease_validity::LeaseTerm;
use super::objects::Pod;
use super::permits::{PermitLimits, Permits};
use super::pod_state::PodState;
use super::pods::{PodChange, PodRef, Pods};
use super::reflector::Observation;
use super::removal::{Removal, RemovalEnd};
use crate::engine::cluster_manager::{
    Event, EventSink, ExecutorRequest, OwnedOffer, OwnedResource,
};
use crate::resources::{Gpus, MilliCpus, PortRange, Scalar};

mod commands;
mod nodes;
mod removals;

use nodes::{MAY_GET_OTHERS, Places};

/// The maximum number of deletions in flight.
const REMOVALS_MAX: usize = 16;

/// After how long the deletion of a pod whose end was applied is tried again.
const REMOVAL_PAUSE: Duration = Duration::from_secs(5);

/// How long the whole stop may take. An engine waits for a quarter of its slack, by default 5 s.
const STOP_TIMEOUT: Duration = Duration::from_secs(4);

/// How long a renewal of the lease that failed isn't repeated.
const RENEWAL_PAUSE: Duration = Duration::from_secs(1);

/// The number of the current subscription, which calls are checked against. 0 before the first.
pub(super) type Epoch = Arc<Mutex<u64>>;

/// The end of a request.
enum RequestEnd {
    Created { executor: String, created: CreationEnd },
    Removed { executor: String, pod: PodRef, how: Removal, removed: RemovalEnd },
    ConfirmedGone { executor: String, pod: PodRef, last: Option<PodState> },
    Renewed { lease: Lease, result: Result<Instant, LeaseError> },
}

/// The state of the manager's thread.
pub(super) struct KubernetesActor {
    api: Api,
    config: KubernetesConfig,
    events: EventSink,
    epoch: Epoch,
    creator: String,
    places: Places,
    pods: Pods,
    permits: Permits,
    request: Option<ExecutorRequest>,
    work: JoinSet<RequestEnd>,
    /// By executor: tells a creation what has happened meanwhile.
    creations: HashMap<String, watch::Sender<CreationSignal>>,
    /// The pods that are being removed, each with what was asked for meanwhile.
    removing: HashMap<PodRef, Option<Removal>>,
    /// How many of them are being labelled, to stay.
    acknowledging: usize,
    /// The pods that are looked at, because they aren't shown any more.
    confirming: HashSet<PodRef>,
    removals: Arc<Semaphore>,
    /// As its last renewal left it.
    lease: Lease,
    is_renewing: bool,
    /// Until when it is surely held.
    term: LeaseTerm,
    renew_at: Instant,
    /// The tasks that read pods and nodes, and the last version that the former has read.
    reflectors: Vec<AbortHandle>,
    version: watch::Receiver<String>,
    /// Whether the server was reachable when it was last asked.
    is_connected: bool,
    is_registered: bool,
    /// Why the first list was denied.
    why_unlisted: Option<String>,
    /// Whether the cluster, or another run of this name, has refused this one.
    is_refused: bool,
    /// Whether another run of this name has taken the lease, and with it the pods.
    has_lost_lease: bool,
}

impl KubernetesActor {
    /// Creates the actor of a run that holds its lease since `held_since`.
    pub(super) fn new(
        api: Api,
        config: KubernetesConfig,
        events: EventSink,
        epoch: Epoch,
        creator: String,
        (lease, held_since): (Lease, Instant),
        (reflectors, version): (Vec<AbortHandle>, watch::Receiver<String>),
    ) -> KubernetesActor {
        let limits =
            PermitLimits { window_max: config.creations_max, pending_max: config.pending_max };
        KubernetesActor {
            places: Places::new(config.placement.clone()),
            pods: Pods::new(config.pod_names()),
            permits: Permits::new(limits),
            request: None,
            work: JoinSet::new(),
            creations: HashMap::new(),
            removing: HashMap::new(),
            acknowledging: 0,
            confirming: HashSet::new(),
            removals: Arc::new(Semaphore::new(REMOVALS_MAX)),
            term: LeaseTerm::new(held_since + lease.duration()),
            renew_at: held_since + lease.interval(),
            lease,
            is_renewing: false,
            reflectors,
            version,
            is_connected: false,
            is_registered: false,
            why_unlisted: None,
            is_refused: false,
            has_lost_lease: false,
            api,
            config,
            events,
            epoch,
            creator,
        }
    }

    /// Runs until it is told to stop, or nobody sends commands any more. Returns what couldn't be cleaned up.
    pub(super) async fn run(
        mut self,
        mut commands: mpsc::UnboundedReceiver<ActorCommand>,
        mut seen: mpsc::Receiver<Observation>,
    ) -> Result<(), String> {
        let connect_by = Instant::now() + self.config.connect_timeout;
        loop {
            self.open_permits();
            let wake_at = self.next_wake(connect_by);
            tokio::select! {
                command = commands.recv() => match command {
                    Some(ActorCommand::Stop) | None => break,
                    Some(command) => self.command(command),
                },
                Some(seen) = seen.recv(), if !self.is_refused => self.seen(seen),
                Some(done) = self.work.join_next(), if !self.work.is_empty() => {
                    if let Ok(done) = done {
                        self.done(done);
                    }
                }
                () = sleep_until(wake_at.into()) => {}
            }
            let now = Instant::now();
            if !self.is_registered && !self.is_refused && now >= connect_by {
                let why = self.why_unlisted.take();
                let unreached = || "the API server could not be reached in time".to_owned();
                self.refuse(why.unwrap_or_else(unreached));
            }
            self.renew(now);
            self.replace_unplaced(now);
            if self.holds_lease(now) {
                let expired = self.pods.expire_blocked(self.config.start_timeout, now);
                self.apply(expired);
            }
        }
        drop(seen);
        self.stop().await
    }

    fn next_wake(&self, connect_by: Instant) -> Instant {
        let renewal = (!self.is_renewing && !self.is_refused).then_some(self.renew_at);
        let connection = (!self.is_registered && !self.is_refused).then_some(connect_by);
        let now = Instant::now();
        let expiry = self.pods.next_expiry(self.config.start_timeout);
        let expiry = expiry.filter(|_| self.holds_lease(now));
        let may_create = self.may_create(now);
        let may_open = may_create && self.places.has_place();
        let permits = may_open.then(|| self.permits.next_at()).flatten();
        let replacement = self.places.next_look().filter(|_| may_create);
        let leaving = self.pods.leaving().next(now);
        let times = [renewal, connection, expiry, permits, replacement, leaving];
        let longest = now + Duration::from_secs(60);
        times.into_iter().flatten().min().unwrap_or(longest).min(longest)
    }

    /// Whether pods may be created now.
    fn may_create(&self, now: Instant) -> bool {
        self.is_registered && self.is_connected && self.holds_lease(now)
    }

    /// Whether the pods are surely this run's, so that it may change them.
    fn holds_lease(&self, now: Instant) -> bool {
        !self.is_refused && now < self.term.until()
    }

    fn open_permits(&mut self) {
        let now = Instant::now();
        let may_create = self.may_create(now) && self.places.has_place();
        let Some(request) = self.request.filter(|_| may_create) else { return };
        self.permits.set_leaving(self.pods.leaving().count(now));
        let opened = self.permits.open(self.pods.creating(), self.pods.pending(), now);
        if opened.is_empty() {
            return;
        }
        let cores = request.cores.unwrap_or(MilliCpus::from_cores(1));
        let offer = |id: &u64| {
            let mut resources = vec![
                OwnedResource::scalar("cpus", Scalar::from_thousandths(cores.millis())),
                OwnedResource::scalar("mem", Scalar::from_thousandths(request.memory.get() * 1000)),
            ];
            if self.config.gpus > Gpus::ZERO {
                let gpus = Scalar::from_thousandths(u64::from(self.config.gpus.get()) * 1000);
                resources.push(OwnedResource::scalar("gpus", gpus));
            }
            if let Some(port) = self.config.port {
                let port = PortRange::new(port.into(), port.into());
                resources.push(OwnedResource::ranges("ports", vec![port]));
            }
            OwnedOffer::late(self.permit_name(*id), resources).with_profile(request.profile)
        };
        self.events.send(Event::Offers(opened.iter().map(offer).collect()));
    }

    fn permit_name(&self, id: u64) -> String {
        format!("permit-{}-{id}", self.epoch())
    }

    /// The number of a permit of this subscription.
    fn permit_id(&self, name: &str) -> Option<u64> {
        let (epoch, id) = name.strip_prefix("permit-")?.split_once('-')?;
        (epoch.parse() == Ok(self.epoch())).then(|| id.parse().ok()).flatten()
    }

    fn epoch(&self) -> u64 {
        *self.epoch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn rescind(&self, permits: Vec<u64>) {
        for id in permits {
            self.events.send(Event::Rescinded { offer_id: self.permit_name(id) });
        }
    }

    fn denied(&mut self, executor: &str, why: &str, now: Instant) {
        let why = format!("pod of {executor}: {why}");
        self.events.send(Event::CallFailed { why });
        let void = self.permits.denied(now);
        self.rescind(void);
    }

    fn done(&mut self, done: RequestEnd) {
        let now = Instant::now();
        match done {
            RequestEnd::Created { executor, created: CreationEnd::Exists(pod) } => {
                self.creations.remove(&executor);
                self.permits.created();
                let changes = self.pods.created(&executor, &pod, now);
                self.apply(changes);
                // The nodes that it may get may be others since.
                self.nodes_changed(now);
            }
            RequestEnd::Created { executor, created: CreationEnd::Vanished(pod) } => {
                self.creations.remove(&executor);
                let mut changes = self.pods.created(&executor, &pod, now);
                changes.extend(self.pods.deleted(&pod));
                self.apply(changes);
            }
            RequestEnd::Created {
                executor,
                created:
                    CreationEnd::NoRoom(why)
                    | CreationEnd::Rejected(why)
                    | CreationEnd::AnothersPod(why),
            } => {
                self.creations.remove(&executor);
                if !self.pods.is_shown(&executor) {
                    self.denied(&executor, &why, now);
                }
                let changes = self.pods.not_created(&executor, &why);
                self.apply(changes);
            }
            RequestEnd::Created { executor, created: CreationEnd::Abandoned } => {
                self.creations.remove(&executor);
                let changes = self.pods.not_created(&executor, MAY_GET_OTHERS);
                self.apply(changes);
            }
            RequestEnd::ConfirmedGone { executor, pod, last } => {
                self.confirming.remove(&pod);
                let changes = self.pods.confirmed_gone(&executor, &pod, last);
                self.apply(changes);
            }
            RequestEnd::Removed { executor, pod, how, removed } => {
                let waiting = self.removing.remove(&pod).flatten();
                self.acknowledging -= usize::from(how == Removal::Acknowledge);
                match removed {
                    RemovalEnd::Accepted => {}
                    RemovalEnd::Changed => self.after_refused_removal(executor, pod, waiting, now),
                    RemovalEnd::Missing => {
                        let changes = self.pods.confirmed_gone(&executor, &pod, None);
                        self.apply(changes);
                    }
                    RemovalEnd::Failed(why) => {
                        let what = if how == Removal::Acknowledge { "label" } else { "deletion" };
                        let why = format!("{what} of the pod of {executor}: {why}");
                        self.events.send(Event::CallFailed { why });
                        if matches!(how, Removal::IfUnplaced { .. }) {
                            self.after_refused_removal(executor, pod, waiting, now);
                        } else if self.pods.must_remove_again(&executor, &pod) {
                            self.remove_after(executor, pod, how, REMOVAL_PAUSE);
                        }
                    }
                }
            }
            RequestEnd::Renewed { lease, result } => self.renewed(lease, result),
        }
    }

    fn apply(&mut self, changes: Vec<PodChange>) {
        for change in changes {
            match change {
                PodChange::Updated(update) => self.events.send(Event::Update(update)),
                PodChange::Waiting { executor, why } => {
                    self.events.send(Event::Waiting { executor, why });
                }
                PodChange::Remove { executor, pod, grace } => {
                    let how = match (grace, &self.config.end_label) {
                        (Some(grace), Some(label)) => Removal::End { label: label.clone(), grace },
                        _ => Removal::Delete(grace),
                    };
                    self.remove(executor, pod, how);
                }
                PodChange::Confirm { executor, pod, last } => self.confirm(executor, pod, last),
                PodChange::Ended => self.permits.ended(),
            }
        }
    }

    /// Ends the creations of pods that are shown: an attempt without an answer took effect, or the answer is to come.
    fn end_shown_creations(&self) {
        for (executor, signal) in &self.creations {
            if self.pods.is_shown(executor) {
                let _before = signal.send_replace(CreationSignal::Shown);
            }
        }
    }

    fn seen(&mut self, seen: Observation) {
        let now = Instant::now();
        match seen {
            Observation::ListBegins(begins) => {
                self.pods.begin_list();
                let _gone = begins.send(());
            }
            Observation::Listed(pods) => self.listed(&pods, now),
            Observation::Watching => self.is_connected = true,
            Observation::Pod(pod) => {
                let changes = self.pods.observe(&pod, now);
                self.end_shown_creations();
                self.apply(changes);
            }
            Observation::Deleted(pod) => {
                let changes = self.pods.deleted(&pod);
                self.apply(changes);
            }
            seen @ (Observation::Nodes(_)
            | Observation::Node(_)
            | Observation::NodeDeleted(_)
            | Observation::NodesUnread(_)) => self.nodes_seen(seen, now),
            // Rights may be granted a moment later, and tokens renewed.
            Observation::Forbidden(why) if !self.is_registered => {
                self.why_unlisted = Some(format!("its pods can't be listed: {why}"));
            }
            Observation::Unreachable(why) | Observation::Forbidden(why) => {
                if std::mem::take(&mut self.is_connected) {
                    self.events.send(Event::CallFailed { why: format!("watch: {why}") });
                }
            }
        }
    }

    /// A list is a new subscription: what the engine knows is compared with it.
    fn listed(&mut self, pods: &[Pod], now: Instant) {
        if self.is_refused {
            return;
        }
        let recovered = if self.is_registered {
            Vec::new()
        } else {
            self.pods.leave_out(pods, &self.creator, now);
            self.pods.recovered(pods, &self.creator)
        };
        let again = self.is_registered || !recovered.is_empty();
        if self.is_registered {
            self.events.send(Event::Disconnected);
        }
        if !recovered.is_empty() {
            self.events.send(Event::Recovered { executors: recovered, finished: 0 });
        }
        self.permits.begin_subscription();
        *self.epoch.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        (self.is_registered, self.is_connected) = (true, true);
        let framework_id = format!("{}/{}", self.api.namespace(), self.config.name);
        self.events.send(Event::Registered { framework_id, again });
        let changes = self.pods.listed(pods, now);
        self.end_shown_creations();
        self.apply(changes);
        // A former run may have created pods that wait with other nodes.
        self.nodes_changed(now);
    }

    /// Ends all that the run does: no request of it is under way any more, and none begins until the stop.
    fn refuse(&mut self, why: String) {
        self.is_refused = true;
        self.work.abort_all();
        self.is_renewing = false;
        self.reflectors.iter().for_each(AbortHandle::abort);
        let void = self.permits.void();
        self.rescind(void);
        self.events.send(Event::Refused { why });
    }

    fn renew(&mut self, now: Instant) {
        if self.is_refused || self.is_renewing || now < self.renew_at {
            return;
        }
        self.is_renewing = true;
        let (api, mut lease) = (self.api.clone(), self.lease.clone());
        self.work.spawn(async move {
            let result = lease.renew(&api).await;
            RequestEnd::Renewed { lease, result }
        });
    }

    fn renewed(&mut self, lease: Lease, result: Result<Instant, LeaseError>) {
        if self.is_refused {
            return;
        }
        let now = Instant::now();
        self.renew_at = now + RENEWAL_PAUSE;
        self.is_renewing = false;
        self.lease = lease;
        match result {
            Ok(since) => {
                self.term.extend(since + self.lease.duration());
                self.renew_at = since + self.lease.interval();
            }
            Err(LeaseError::Held(holder)) => {
                self.has_lost_lease = true;
                self.refuse(format!("the lease of run {} is held by {holder}", self.config.name));
            }
            Err(LeaseError::Forbidden(why) | LeaseError::Failed(why)) => {
                if now >= self.term.until() {
                    self.events
                        .send(Event::CallFailed { why: format!("renewal of the lease: {why}") });
                }
            }
        }
    }

    /// Ends all requests, then [cleans up](clean_up).
    async fn stop(mut self) -> Result<(), String> {
        let deadline = Instant::now() + STOP_TIMEOUT;
        self.reflectors.iter().for_each(AbortHandle::abort);
        // What isn't labelled is deleted.
        let labelled_by = Instant::now() + STOP_TIMEOUT / 4;
        while self.acknowledging > 0 {
            match timeout_at(labelled_by.into(), self.work.join_next()).await {
                Ok(Some(Ok(done))) => self.done(done),
                Ok(Some(Err(_))) => {}
                Ok(None) | Err(_) => break,
            }
        }
        // A pod that an attempt under way creates has the lease as its owner, and goes with it.
        self.work.shutdown().await;
        if self.has_lost_lease {
            return Err("another run holds the run's lease: pods and lease were left".to_owned());
        }
        let valid_until = self.term.until();
        clean_up(&self.api, &self.config, self.lease, valid_until, deadline).await
    }
}
