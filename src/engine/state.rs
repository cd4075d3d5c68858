//! The state that the engine's threads share, and the entry of the cluster manager's events.

use std::collections::VecDeque;
use std::sync::Arc;

use super::EngineOptions;
use super::clock::Clock;
use super::cluster_manager::{ClusterManager, Event, Events, OwnedOffer, RecoveredExecutor};
use super::control_message::ControlMessage;
use super::controller::ControllerEvent;
use super::gate::{Gate, Open};
use super::inbox::Inbox;
use super::kill_retry::KillTerms;
use super::notice::PlacedExecutor;
use super::offer_queue::{OfferQueue, QueuedOffer};
use super::owned::{LONG_TEXT, WITHOUT_ID};
use super::recorded_kernel::RecordedKernel;
use super::recovered::find_queues;
use super::sync::{Deadline, Mutex, catch, lock};
use super::task_chooser::TaskChooser;
use super::unreadable_offers::RefusedOffer;
use crate::foreign_text::{self, cut_message, length_problem};
use crate::ids::ExecutorId;
use crate::kernel::Target;
use crate::launch::Launcher;
use crate::limits::FOREIGN_ID_BYTES_MAX;

/// The most items that the control thread's inbox holds before senders wait: events, executors, and offers to decline.
const CONTROL_QUEUE: usize = if cfg!(shuttle) { 2 } else { 16 * 1024 };

/// The shared state of an engine's threads.
pub(super) struct EngineState {
    pub(super) recorded_kernel: RecordedKernel,
    pub(super) manager: Arc<dyn ClusterManager>,
    pub(super) launcher: Arc<dyn Launcher>,
    /// Chooses tasks, if tasks are placed.
    pub(super) chooser: Option<Arc<dyn TaskChooser>>,
    pub(super) offer_queue: OfferQueue,
    pub(super) clock: Clock,
    pub(super) options: EngineOptions,
    pub(super) inbox: Inbox<ControlMessage>,
    /// The control thread's gate, then the handlers' gates.
    gates: Vec<Gate>,
    /// The cluster's id for this framework.
    app: Mutex<Arc<str>>,
    /// The message of the control thread's panic, if it panicked.
    broken: Mutex<Option<String>>,
}

impl EngineState {
    pub(super) fn new(
        recorded_kernel: RecordedKernel,
        manager: Arc<dyn ClusterManager>,
        launcher: Arc<dyn Launcher>,
        chooser: Option<Arc<dyn TaskChooser>>,
        options: EngineOptions,
    ) -> EngineState {
        EngineState {
            recorded_kernel,
            manager,
            launcher,
            chooser,
            offer_queue: OfferQueue::new(options.offers_queued_max),
            clock: Clock::start(),
            inbox: Inbox::new(CONTROL_QUEUE),
            gates: (0..=options.handlers).map(|_| Gate::new()).collect(),
            options,
            app: Mutex::new("".into()),
            broken: Mutex::new(None),
        }
    }

    /// The cluster's id for this framework.
    pub(super) fn app(&self) -> Arc<str> {
        Arc::clone(&lock(&self.app))
    }

    /// The control thread's gate.
    pub(super) fn control_gate(&self) -> &Gate {
        &self.gates[0]
    }

    /// The gate of a handler, by its number.
    pub(super) fn handler_gate(&self, handler: usize) -> &Gate {
        &self.gates[handler + 1]
    }

    pub(super) fn close_gates(&self, open: Open) {
        self.gates.iter().for_each(|gate| gate.close(open));
    }

    /// Waits for the calls under way, up to the deadline.
    pub(super) fn wait_for_calls(&self, deadline: Deadline) {
        for gate in &self.gates {
            // A call that still hangs is left running: it began before the stop.
            let _is_idle = gate.wait_until_idle(deadline);
        }
    }

    /// Sends a message to the control thread. Dropped if that thread has ended.
    pub(super) fn send_control(&self, message: ControlMessage) {
        self.inbox.send(message);
    }

    /// Closes the kernel; returns the executors to be killed.
    pub(super) fn close(&self) -> Vec<Target> {
        self.recorded_kernel.close(self.clock.now())
    }

    /// Kills executors, of which the chooser is told first; also if it panics then.
    pub(super) fn kill(&self, executors: Vec<ExecutorId>) {
        if let Some(chooser) = &self.chooser {
            let kernel = self.recorded_kernel.kernel();
            for tag in executors.iter().filter_map(|id| kernel.task_tag(*id)) {
                let _panicked = catch(|| chooser.killing(tag));
            }
        }
        let terms = KillTerms::of(&self.options);
        self.inbox.send_urgent(ControlMessage::Kill { executors, terms });
    }

    /// Marks the engine as broken: the control thread has panicked.
    /// Its messages are dropped, and those that it had `taken` and not handled.
    pub(super) fn break_down(&self, why: &str, taken: VecDeque<ControlMessage>) {
        *lock(&self.broken) = Some(why.to_owned());
        self.inbox.abandon(taken);
        self.close();
    }

    /// The message of the control thread's panic, if it panicked.
    pub(super) fn broken(&self) -> Option<String> {
        lock(&self.broken).clone()
    }

    /// Adopts the executors of a former run, on the calling thread, because the next event may be about them. If
    /// finished executors count down the limit, lowers it by those that finished in the former run.
    fn resume(&self, mut executors: Vec<RecoveredExecutor>, finished: u64) {
        let recorded_kernel = &self.recorded_kernel;
        find_queues(&mut executors, recorded_kernel.kernel().config().queues());
        let now = self.clock.now();
        if self.options.finished_count_down {
            recorded_kernel.lower_executor_limit(u32::try_from(finished).unwrap_or(u32::MAX), now);
        }
        let ids = match recorded_kernel.adopt(&executors, now) {
            Ok(ids) => ids,
            Err(error) => {
                return self.send_control(ControlMessage::CallFailed { why: error.to_string() });
            }
        };
        let mut adopted = Vec::new();
        let mut surplus = Vec::new();
        for (it, id) in executors.into_iter().zip(ids) {
            let RecoveredExecutor { executor, agent_id, hostname, resources, .. } = it;
            match id {
                Some(id) => {
                    let tag = None;
                    let adoptee =
                        PlacedExecutor { id, executor, agent_id, hostname, resources, tag };
                    adopted.push(adoptee);
                }
                None => surplus.push((executor, agent_id)),
            }
        }
        self.send_control(ControlMessage::Resumed { adopted, surplus, finished });
    }

    /// Begins a subscription, on the calling thread: its next events belong to it, and earlier offers are void.
    fn registered(&self, framework_id: &str) {
        *lock(&self.app) = framework_id.into();
        self.offer_queue.reset(self.recorded_kernel.registered(framework_id, self.clock.now()));
    }

    /// Queues offers, and has those declined whose ids, names or attributes are too long. Those without an id can't be
    /// answered, and are only reported.
    fn receive_offers(&self, offers: Vec<OwnedOffer>) {
        let is_usable = |offer: &OwnedOffer| !offer.id.is_empty() && offer.is_bounded();
        let (offers, refused): (Vec<_>, Vec<_>) = offers.into_iter().partition(is_usable);
        let refused = refused.into_iter().map(|offer| {
            let why = if offer.id.is_empty() { WITHOUT_ID } else { LONG_TEXT };
            RefusedOffer::new(offer.id, why).with_agent(Some(offer.agent_id))
        });
        self.refuse_offers(refused.collect());
        self.queue_offers(offers.into_iter().map(Box::new).map(QueuedOffer::Owned).collect());
    }

    /// Has offers declined by the control thread.
    fn refuse_offers(&self, offers: Vec<RefusedOffer>) {
        if !offers.is_empty() {
            self.send_control(ControlMessage::Unreadable {
                epoch: self.recorded_kernel.kernel().epoch(),
                offers: offers.into_iter().map(RefusedOffer::bounded).collect(),
            });
        }
    }

    /// Queues offers; those that find no room are declined by the control thread.
    fn queue_offers(&self, offers: Vec<QueuedOffer>) {
        let overflow = self.offer_queue.push(offers);
        if !overflow.is_empty() {
            let offers = overflow.into_iter().map(QueuedOffer::into_id).collect();
            self.send_control(ControlMessage::Overflow {
                epoch: self.recorded_kernel.kernel().epoch(),
                offers,
            });
        }
    }
}

/// Bounds the text of an event: its message is cut, and an event with an id that is too long is replaced by a report.
fn bounded(event: ControllerEvent) -> ControllerEvent {
    let problem = |ids: &[(&str, &str)]| {
        let mut problems = ids.iter();
        problems.find_map(|(what, id)| length_problem(what, id, FOREIGN_ID_BYTES_MAX))
    };
    let problem = match &event {
        ControllerEvent::Update(update) => {
            update.length_problem().map(|why| format!("an update was ignored: {why}"))
        }
        ControllerEvent::AgentLost { agent_id } => problem(&[("its id", agent_id)])
            .map(|why| format!("the loss of an agent was ignored: {why}")),
        ControllerEvent::ExecutorLost { executor } => problem(&[("its id", executor)])
            .map(|why| format!("the loss of an executor was ignored: {why}")),
        ControllerEvent::Waiting { executor, .. } => problem(&[("its id", executor)])
            .map(|why| format!("a reason why an executor waits was ignored: {why}")),
        ControllerEvent::Message { executor, agent_id, .. } => {
            problem(&[("its executor's id", executor), ("its agent's id", agent_id)])
                .map(|why| format!("a message of an executor was ignored: {why}"))
        }
        _ => None,
    };
    match (problem, event) {
        (Some(why), _) => ControllerEvent::CallFailed { why },
        (None, ControllerEvent::Update(mut update)) => {
            update.message = cut_message(update.message);
            ControllerEvent::Update(update)
        }
        (None, event) => event,
    }
}

impl Events for EngineState {
    /// Hands the event to the part of the engine that receives it: the offer queue, the kernel, or the controller.
    fn send(&self, event: Event) {
        let event = match event {
            Event::Offers(offers) => return self.receive_offers(offers),
            Event::Encoded(offers) => {
                return self.queue_offers(offers.into_each().map(QueuedOffer::Encoded).collect());
            }
            Event::Unreadable(offers) => return self.refuse_offers(offers),
            Event::Rescinded { offer_id } => {
                self.offer_queue.rescind(&offer_id);
                return;
            }
            Event::Recovered { executors, finished } => return self.resume(executors, finished),
            Event::Registered { framework_id, again } => {
                match foreign_text::id_problem("the framework's id", &framework_id) {
                    Some(why) => ControllerEvent::Refused { why },
                    None => {
                        self.registered(&framework_id);
                        ControllerEvent::Registered { framework_id, again }
                    }
                }
            }
            Event::Disconnected => {
                self.recorded_kernel.disconnected(self.clock.now());
                self.offer_queue.reset(self.recorded_kernel.kernel().epoch());
                ControllerEvent::Disconnected
            }
            Event::Update(update) => ControllerEvent::Update(update),
            Event::AgentLost { agent_id } => ControllerEvent::AgentLost { agent_id },
            Event::ExecutorLost { executor } => ControllerEvent::ExecutorLost { executor },
            Event::Message { executor, agent_id, data } => {
                ControllerEvent::Message { executor, agent_id, data }
            }
            Event::Waiting { executor, why } => {
                ControllerEvent::Waiting { executor, why: cut_message(why) }
            }
            Event::CallFailed { why } => ControllerEvent::CallFailed { why: cut_message(why) },
            Event::Refused { why } => ControllerEvent::Refused { why: cut_message(why) },
        };
        self.send_control(ControlMessage::Event(bounded(event)));
    }
}
