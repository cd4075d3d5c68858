//! A cluster manager that records calls, and an observer that records notices. Both can be waited for.

use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use offermill::engine::cluster_manager::{
    self, ClusterManager, EncodedOffer, EncodedOffers, Event, EventSink, OfferPlace, OwnedOffer,
    OwnedResource, ReadBatch, ReadOffers, UnreadableOffer, Update,
};
use offermill::engine::{Notice, Observer};
use offermill::resources::Scalar;
use offermill::{Error, Offer, Resource, TaskState, Timestamp, UpdateReason};

/// Far longer than any step here takes: a wait of this length has failed.
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Call {
    Accept {
        offers: Vec<String>,
        executors: Vec<String>,
        argv: Vec<String>,
        /// The queues of the executors, if they are in queues.
        queues: Vec<String>,
    },
    Decline {
        offers: Vec<String>,
        refuse: Duration,
    },
    Revive,
    Suppress,
    Kill(String),
    /// By name; none means all.
    Reconcile(Vec<String>),
    Acknowledge(String),
    /// Of each resource profile, the number of executors and the memory of each in MiB.
    RequestExecutors(Vec<(u32, u64)>),
    /// The agents, in order.
    Avoid(Vec<String>),
    Other,
}

#[derive(Default)]
struct State {
    events: Option<EventSink>,
    calls: Vec<Call>,
    /// Executors that end when they are killed.
    ends_when_killed: Vec<String>,
    refuse_accepts: bool,
    refuse_all: bool,
    waiting: usize,
    stopped: bool,
    /// The number of calls after the stop.
    late: usize,
}

type Hook<T> = Option<Box<dyn Fn(T) + Send + Sync>>;

#[derive(Default)]
pub(crate) struct Recorder {
    state: Mutex<State>,
    changed: Condvar,
    /// Whether it has no reader of encoded offers.
    without_reader: bool,
    binds_late: bool,
    /// Held by a test to block all calls.
    calls_lock: Mutex<()>,
    /// Held by a test to block the answers to offers.
    answers_lock: Mutex<()>,
    /// Called first in each call, without locks held.
    pub(crate) on_call: Hook<&'static str>,
    /// Called in each kill, with the executor.
    pub(crate) on_kill: Hook<String>,
    /// Called in the start, before it returns and after events can be sent.
    pub(crate) on_start: Hook<()>,
    /// Called in the stop.
    pub(crate) on_stop: Hook<()>,
}

impl Recorder {
    /// A recorder without a reader of encoded offers.
    pub(crate) fn without_reader() -> Recorder {
        Recorder { without_reader: true, ..Recorder::default() }
    }

    /// A recorder of a cluster that chooses the agents.
    pub(crate) fn that_binds_late() -> Recorder {
        Recorder { binds_late: true, ..Recorder::default() }
    }

    pub(crate) fn send(&self, event: Event) {
        let events = self.state.lock().unwrap().events.clone().unwrap();
        events.send(event);
    }

    /// Makes every call wait until the guard is dropped.
    pub(crate) fn hold_calls(&self) -> MutexGuard<'_, ()> {
        self.calls_lock.lock().unwrap()
    }

    /// Makes every answer to an offer wait until the guard is dropped, but no other call.
    pub(crate) fn hold_answers(&self) -> MutexGuard<'_, ()> {
        self.answers_lock.lock().unwrap()
    }

    /// Waits until an answer to an offer is blocked.
    pub(crate) fn wait_until_held(&self) {
        let state = self.state.lock().unwrap();
        let held = self.changed.wait_timeout_while(state, PATIENCE, |state| state.waiting == 0);
        assert!(!held.unwrap().1.timed_out(), "no call came");
    }

    pub(crate) fn wait_for<T>(&self, wanted: impl Fn(&Call) -> Option<T>) -> T {
        let state = self.state.lock().unwrap();
        let missing = |state: &mut State| !state.calls.iter().any(|call| wanted(call).is_some());
        let (state, waited) = self.changed.wait_timeout_while(state, PATIENCE, missing).unwrap();
        assert!(!waited.timed_out(), "timed out; calls: {:?}", state.calls);
        state.calls.iter().find_map(wanted).unwrap()
    }

    /// Waits until the calls so far are as wanted.
    pub(crate) fn wait_until(&self, is_wanted: impl Fn(&[Call]) -> bool) {
        let state = self.state.lock().unwrap();
        let missing = |state: &mut State| !is_wanted(&state.calls);
        let (state, waited) = self.changed.wait_timeout_while(state, PATIENCE, missing).unwrap();
        assert!(!waited.timed_out(), "timed out; calls: {:?}", state.calls);
    }

    /// Waits until the last of those calls about which `is_it` says something is one for which it says yes.
    pub(crate) fn wait_for_last(&self, is_it: impl Fn(&Call) -> Option<bool>) {
        let state = self.state.lock().unwrap();
        let missing = |state: &mut State| state.calls.iter().rev().find_map(&is_it) != Some(true);
        let (state, waited) = self.changed.wait_timeout_while(state, PATIENCE, missing).unwrap();
        assert!(!waited.timed_out(), "timed out; calls: {:?}", state.calls);
    }

    /// The declined offers with how long they are refused for, once there are `count`.
    pub(crate) fn declined_when(&self, count: usize) -> Vec<(String, Duration)> {
        let declined = |state: &State| -> Vec<(String, Duration)> {
            let rows = state.calls.iter().flat_map(|call| match call {
                Call::Decline { offers, refuse } => {
                    offers.iter().map(|offer| (offer.clone(), *refuse)).collect()
                }
                _ => Vec::new(),
            });
            rows.collect()
        };
        let state = self.state.lock().unwrap();
        let missing = |state: &mut State| declined(state).len() < count;
        let (state, waited) = self.changed.wait_timeout_while(state, PATIENCE, missing).unwrap();
        assert!(!waited.timed_out(), "timed out; calls: {:?}", state.calls);
        declined(&state)
    }

    /// The executors that were wanted, in the order of the calls, once there are `count` calls.
    pub(crate) fn requests_when(&self, count: usize) -> Vec<Vec<(u32, u64)>> {
        let demands = |state: &State| -> Vec<Vec<(u32, u64)>> {
            let rows = state.calls.iter().filter_map(|call| match call {
                Call::RequestExecutors(demand) => Some(demand.clone()),
                _ => None,
            });
            rows.collect()
        };
        let state = self.state.lock().unwrap();
        let missing = |state: &mut State| demands(state).len() < count;
        let (state, waited) = self.changed.wait_timeout_while(state, PATIENCE, missing).unwrap();
        assert!(!waited.timed_out(), "timed out; calls: {:?}", state.calls);
        demands(&state)
    }

    /// The offers that were accepted so far.
    pub(crate) fn accepted(&self) -> Vec<String> {
        let state = self.state.lock().unwrap();
        let offers = state.calls.iter().flat_map(|call| match call {
            Call::Accept { offers, .. } => offers.clone(),
            _ => Vec::new(),
        });
        offers.collect()
    }

    /// The calls that were made so far.
    pub(crate) fn calls(&self) -> Vec<Call> {
        self.state.lock().unwrap().calls.clone()
    }

    /// All executors that were launched so far.
    pub(crate) fn launched(&self) -> Vec<String> {
        let state = self.state.lock().unwrap();
        let executors = state.calls.iter().flat_map(|call| match call {
            Call::Accept { executors, .. } => executors.clone(),
            _ => Vec::new(),
        });
        executors.collect()
    }

    pub(crate) fn refuse_accepts(&self, refuse: bool) {
        self.state.lock().unwrap().refuse_accepts = refuse;
    }

    pub(crate) fn refuse_all(&self, refuse: bool) {
        self.state.lock().unwrap().refuse_all = refuse;
    }

    pub(crate) fn end_when_killed(&self, executor: &str) {
        self.state.lock().unwrap().ends_when_killed.push(executor.to_owned());
    }

    pub(crate) fn started(&self) -> bool {
        self.state.lock().unwrap().events.is_some()
    }

    /// Waits until it has been stopped.
    pub(crate) fn wait_until_stopped(&self) {
        let state = self.state.lock().unwrap();
        let waited = self.changed.wait_timeout_while(state, PATIENCE, |state| !state.stopped);
        assert!(!waited.unwrap().1.timed_out(), "it was never stopped");
    }

    /// The number of calls after the stop.
    pub(crate) fn late_calls(&self) -> usize {
        self.state.lock().unwrap().late
    }

    pub(crate) fn stopped(&self) -> bool {
        self.state.lock().unwrap().stopped
    }
}

impl ClusterManager for Recorder {
    fn start(&self, events: EventSink) -> Result<(), Error> {
        self.state.lock().unwrap().events = Some(events);
        self.on_start.iter().for_each(|hook| hook(()));
        Ok(())
    }

    fn call(&self, call: cluster_manager::Call<'_>) -> Result<(), Error> {
        let recorded = record(call);
        let name = match &recorded {
            Call::Accept { .. } => "accept",
            Call::Decline { .. } => "decline",
            Call::Kill(executor) => {
                self.on_kill.iter().for_each(|hook| hook(executor.clone()));
                "kill"
            }
            Call::Acknowledge(_) => "acknowledge",
            _ => "other",
        };
        self.on_call.iter().for_each(|hook| hook(name));
        let answers = usize::from(matches!(recorded, Call::Accept { .. } | Call::Decline { .. }));
        self.state.lock().unwrap().waiting += answers;
        self.changed.notify_all();
        drop(self.calls_lock.lock().unwrap());
        if answers > 0 {
            drop(self.answers_lock.lock().unwrap());
        }
        let mut state = self.state.lock().unwrap();
        state.waiting -= answers;
        state.late += usize::from(state.stopped);
        if state.refuse_all {
            return Err(Error::cluster("calling", "nobody is there"));
        }
        if state.refuse_accepts && matches!(recorded, Call::Accept { .. }) {
            return Err(Error::cluster("accepting", "not today"));
        }
        if let (Call::Kill(executor), Some(events)) = (&recorded, state.events.clone())
            && state.ends_when_killed.contains(executor)
        {
            let ended = update(executor, TaskState::Killed);
            std::thread::spawn(move || events.send(ended));
        }
        state.calls.push(recorded);
        self.changed.notify_all();
        Ok(())
    }

    fn offer_reader(&self) -> Option<Box<dyn ReadOffers>> {
        (!self.without_reader).then(|| Box::new(Reader) as _)
    }

    fn binds_late(&self) -> bool {
        self.binds_late
    }

    fn stop(&self) {
        self.on_stop.iter().for_each(|hook| hook(()));
        self.state.lock().unwrap().stopped = true;
        self.changed.notify_all();
    }
}

/// Reads offers such as `o1 S0 5`: id, agent and how many executors there is room for.
struct Reader;

impl ReadOffers for Reader {
    /// Leaks the resources and the batch: no test sends many.
    fn read<'r>(&'r mut self, batch: &'r [EncodedOffer]) -> ReadBatch<'r> {
        let mut offers = Vec::new();
        let mut unreadable = Vec::new();
        for (place, offer) in batch.iter().enumerate() {
            let text = std::str::from_utf8(offer.bytes()).unwrap();
            match text.split(' ').collect::<Vec<_>>()[..] {
                [id, agent, executors] if !executors.is_empty() => {
                    let executors: f64 = executors.parse().unwrap();
                    let cpus = Resource::scalar("cpus", executors);
                    let resources = vec![cpus, Resource::scalar("mem", 128.0 * executors)];
                    offers.push(Offer::new(id, agent, "host", resources.leak(), &[]));
                }
                [_, agent, ..] => unreadable
                    .push(UnreadableOffer::new(place, "it has no number").with_agent(Some(agent))),
                _ => unreadable.push(UnreadableOffer::new(place, "it has no agent")),
            }
        }
        ReadBatch::new(offers.leak(), unreadable)
    }
}

/// An event with offers that are encoded, as the reader has them. One that begins with a space has no id.
pub(crate) fn encoded(offers: &[&str]) -> Event {
    let mut places = Vec::new();
    let mut record = String::new();
    for offer in offers {
        let start = record.len();
        record.push_str(offer);
        let id = offer.split(' ').next().unwrap();
        places.push(OfferPlace::new(start..record.len(), start..start + id.len()));
    }
    Event::Encoded(EncodedOffers::new(record.into_bytes().into(), places))
}

fn record(call: cluster_manager::Call<'_>) -> Call {
    match call {
        cluster_manager::Call::Accept(accept) => Call::Accept {
            offers: accept.offers.iter().map(|offer| offer.id.to_owned()).collect(),
            executors: accept.executors.iter().map(|launch| launch.executor.to_owned()).collect(),
            argv: accept.executors[0].command.argv.clone(),
            queues: accept
                .executors
                .iter()
                .filter_map(|it| Some(it.queue.as_deref()?.into()))
                .collect(),
        },
        cluster_manager::Call::Decline { offers, refuse, .. } => {
            Call::Decline { offers: offers.iter().map(|id| (*id).to_owned()).collect(), refuse }
        }
        cluster_manager::Call::Revive { .. } => Call::Revive,
        cluster_manager::Call::Suppress { .. } => Call::Suppress,
        cluster_manager::Call::Kill { executor, .. } => Call::Kill(executor.to_owned()),
        cluster_manager::Call::Reconcile(tasks) => {
            Call::Reconcile(tasks.iter().map(|it| it.executor.to_owned()).collect())
        }
        cluster_manager::Call::Acknowledge { update, .. } => {
            Call::Acknowledge(update.executor.clone())
        }
        cluster_manager::Call::RequestExecutors(demands) => Call::RequestExecutors(
            demands.iter().map(|it| (it.executors, it.memory.get())).collect(),
        ),
        cluster_manager::Call::Avoid(agents) => {
            Call::Avoid(agents.iter().map(|it| it.agent_id.to_owned()).collect())
        }
        _ => Call::Other,
    }
}

/// An offer with room for this number of executors with one core each.
pub(crate) fn offer(id: &str, agent: &str, executors: u32) -> OwnedOffer {
    let thousandths = |amount: u64| Scalar::from_thousandths(amount * 1000);
    let resources = vec![
        OwnedResource::scalar("cpus", thousandths(u64::from(executors))),
        OwnedResource::scalar("mem", thousandths(128 * u64::from(executors))),
    ];
    OwnedOffer::new(id, agent, format!("host-of-{agent}"), resources)
}

pub(crate) fn update(executor: &str, state: TaskState) -> Event {
    update_because(executor, state, UpdateReason::Other)
}

pub(crate) fn update_because(executor: &str, state: TaskState, reason: UpdateReason) -> Event {
    let update = Update::new(executor, state).with_agent("S0").with_reason(reason);
    Event::Update(update.with_uuid(vec![1]))
}

/// An observer that calls a closure.
pub(crate) struct FnObserver<F>(pub(crate) F);

impl<F: FnMut(Notice) + Send> Observer for FnObserver<F> {
    fn notice(&mut self, _at: Timestamp, notice: Notice) {
        (self.0)(notice);
    }
}

/// Records notices.
#[derive(Clone, Default)]
pub(crate) struct Notices(Arc<(Mutex<Vec<Notice>>, Condvar)>);

impl Observer for Notices {
    fn notice(&mut self, _at: Timestamp, notice: Notice) {
        self.0.0.lock().unwrap().push(notice);
        self.0.1.notify_all();
    }
}

impl Notices {
    pub(crate) fn wait_for<T>(&self, wanted: impl Fn(&Notice) -> Option<T>) -> T {
        self.wait_for_many(1, wanted).swap_remove(0)
    }

    pub(crate) fn wait_for_many<T>(
        &self,
        count: usize,
        wanted: impl Fn(&Notice) -> Option<T>,
    ) -> Vec<T> {
        let notices = self.0.0.lock().unwrap();
        let found = |notices: &Vec<Notice>| notices.iter().filter_map(&wanted).count();
        let missing = |notices: &mut Vec<Notice>| found(notices) < count;
        let (notices, waited) = self.0.1.wait_timeout_while(notices, PATIENCE, missing).unwrap();
        assert!(!waited.timed_out(), "timed out; notices: {notices:?}");
        notices.iter().filter_map(&wanted).collect()
    }
}
