//! What the engine's threads share.

use std::sync::{Arc, Mutex, PoisonError};

use crossbeam_channel::Sender;

use super::EngineOptions;
use super::clock::Clock;
use super::control::Control;
use super::intake::{Intake, Waiting};
use super::keeper::Keeper;
use super::notice::PlacedExecutor;
use super::seam::{Call, ClusterManager, Event, Events, FormerExecutor};
use crate::launch::Launcher;

pub(super) struct Shared {
    pub(super) keeper: Keeper,
    pub(super) manager: Arc<dyn ClusterManager>,
    pub(super) launcher: Arc<dyn Launcher>,
    pub(super) intake: Intake,
    pub(super) clock: Clock,
    pub(super) options: EngineOptions,
    pub(super) control: Sender<Control>,
    app: Mutex<Arc<str>>,
}

impl Shared {
    pub(super) fn new(
        keeper: Keeper,
        manager: Arc<dyn ClusterManager>,
        launcher: Arc<dyn Launcher>,
        options: EngineOptions,
        control: Sender<Control>,
    ) -> Shared {
        Shared {
            keeper,
            manager,
            launcher,
            intake: Intake::new(options.offers_queued_max),
            clock: Clock::start(),
            options,
            control,
            app: Mutex::new("".into()),
        }
    }

    /// The cluster's id for this framework.
    pub(super) fn app(&self) -> Arc<str> {
        Arc::clone(&self.app.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Makes a call; a failure is told to the control thread. Returns whether it was made.
    pub(super) fn call(&self, call: Call<'_>) -> bool {
        match self.manager.call(call) {
            Ok(()) => true,
            Err(error) => {
                self.tell(Control::CallFailed(error.to_string()));
                false
            }
        }
    }

    /// Tells the control thread. Once that has ended there is nobody left to tell.
    pub(super) fn tell(&self, message: Control) {
        let _ended = self.control.send(message);
    }

    /// Takes over a former run and its executors, at once: the next event may be about them.
    fn resume(&self, executors: Vec<FormerExecutor>, finished: u64) {
        let (keeper, now) = (&self.keeper, self.clock.now());
        let counting = self.options.finished_count_down;
        if let Some(limit) = keeper.kernel().executor_limit().filter(|_| counting) {
            let left = limit.saturating_sub(u32::try_from(finished).unwrap_or(u32::MAX));
            // Less than a limit that was allowed is allowed.
            let _allowed = keeper.set_executor_limit(Some(left), now);
        }
        let ids = match keeper.adopt(&executors, now) {
            Ok(ids) => ids,
            Err(error) => return self.tell(Control::CallFailed(error.to_string())),
        };
        let (mut adopted, mut surplus) = (Vec::new(), Vec::new());
        for (it, id) in executors.into_iter().zip(ids) {
            let FormerExecutor { executor, agent_id, hostname, cores, memory, gpus, port } = it;
            match id {
                Some(id) => adopted.push(PlacedExecutor {
                    id,
                    executor,
                    agent_id,
                    hostname,
                    cores,
                    memory,
                    gpus,
                    port,
                }),
                None => surplus.push((executor, agent_id)),
            }
        }
        self.tell(Control::Resumed { adopted, surplus, finished });
    }

    /// A subscription began: everything before it is dead, at once and for whatever follows on the same thread.
    fn registered(&self, framework_id: &str) {
        *self.app.lock().unwrap_or_else(PoisonError::into_inner) = framework_id.into();
        self.intake.reset(self.keeper.registered(framework_id, self.clock.now()));
    }

    /// Queues offers, and has those declined that there is no room for.
    fn take_in(&self, offers: Vec<Waiting>) {
        let overflow = self.intake.push(offers);
        if !overflow.is_empty() {
            let offers = overflow.into_iter().map(Waiting::into_id).collect();
            self.tell(Control::Overflow { epoch: self.keeper.kernel().epoch(), offers });
        }
    }
}

impl Events for Shared {
    fn send(&self, event: Event) {
        match event {
            Event::Offers(offers) => {
                self.take_in(offers.into_iter().map(Waiting::Owned).collect());
            }
            Event::Encoded(offers) => {
                self.take_in(offers.into_each().map(Waiting::Encoded).collect());
            }
            Event::Rescinded { offer_id } => {
                self.intake.rescind(&offer_id);
                self.keeper.kernel().offer_rescinded(&offer_id);
            }
            Event::Former { executors, finished } => self.resume(executors, finished),
            Event::Registered { ref framework_id, .. } => {
                self.registered(framework_id);
                self.tell(Control::Event(event));
            }
            Event::Disconnected => {
                self.keeper.disconnected(self.clock.now());
                self.intake.reset(self.keeper.kernel().epoch());
                self.tell(Control::Event(event));
            }
            other => self.tell(Control::Event(other)),
        }
    }
}
