//! The framework: the engine's parts around a kernel, stepped by hand.
//!
//! What the engine's threads do in real time happens here one thing after the other: offers go through the offer queue to
//! offer handlers, everything else through the controller.

use std::sync::Arc;
use std::time::Duration;

use super::agenda::{Agenda, Item};
use super::checker::Checker;
use super::cluster::Cluster;
use super::corners::Corners;
use super::handlers::SimHandler;
use super::network::Window;
use super::offer_buffer::OfferBuffer;
use super::recorder::Recorder;
use super::rng::Rng;
use super::scenario::Scenario;
use super::wire::{
    AgentRef, Amounts, FrameworkCall, MasterEvent, Order, SCALARS, SimOffer, offer_number,
};
use crate::config::{Config, ConfigBuilder, ExecutorCores, ExecutorGpus, UnreachableRule};
use crate::constraint::Constraint;
use crate::engine::cluster_manager::{Call, Launch};
use crate::engine::controller::{Controller, ControllerEvent, POLL_EVERY};
use crate::engine::offer_handler::OfferHandler;
use crate::engine::offer_queue::OfferQueue;
use crate::engine::recorded_kernel::RecordedKernel;
use crate::engine::sinks::{AnswerSink, CallSink};
use crate::engine::{EngineOptions, Notice, PlacedExecutor};
use crate::error::Error;
use crate::ids::{ExecutorId, IdScheme};
use crate::kernel::{Amount, Kernel};
use crate::launch::{Command, Facts, Launcher};
use crate::resources::{Gpus, MilliCpus};
use crate::time::Timestamp;

/// The purpose of the framework's dice.
const FRAMEWORK: u64 = 5;
/// The framework tries to subscribe again after so long, in milliseconds.
const SUBSCRIBE_AGAIN: u64 = 1_000;

/// What can be changed while the framework runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Settings {
    pub(super) limit: u32,
    /// Zero is none.
    pub(super) core_cap: MilliCpus,
    /// Zero takes what there is.
    pub(super) executor_cores: MilliCpus,
    /// So many zones are allowed, from the first; 0 allows all.
    pub(super) zones: u32,
}

impl Settings {
    /// Those of the start.
    pub(super) fn of(scenario: &Scenario) -> Settings {
        Settings {
            limit: scenario.executors,
            core_cap: scenario.core_cap,
            executor_cores: scenario.executor_cores,
            zones: 0,
        }
    }

    /// Whether the constraint allows agents of this zone.
    pub(super) fn allow(&self, zone: u32) -> bool {
        self.zones == 0 || zone < self.zones
    }

    /// The fewest cores that an executor takes.
    pub(super) fn cores_at_least(&self) -> MilliCpus {
        match self.executor_cores {
            MilliCpus::ZERO => MilliCpus::from_cores(1),
            cores => cores,
        }
    }
}

pub(super) struct Framework {
    pub(super) kernel: Kernel,
    pub(super) settings: Settings,
    base: ConfigBuilder,
    pub(super) handlers: Vec<SimHandler>,
    pub(super) offer_queue: OfferQueue<SimOffer>,
    pub(super) batch: Vec<SimOffer>,
    pub(super) sheet: OfferBuffer,
    pub(super) controller: Controller,
    pub(super) options: EngineOptions,
    /// The stream that it listens to, if any, and how many there were.
    pub(super) stream: Option<u64>,
    streams: u32,
    /// How far its clock is ahead of virtual time, in milliseconds.
    pub(super) ahead: u64,
    pub(super) lagging: Window,
    /// When the calls of a batch leave one by one.
    pub(super) slow: Window,
    pub(super) dice: Rng,
}

/// What the framework's parts work on: the cluster, and whoever watches.
pub(super) struct World<'a> {
    pub(super) agenda: &'a mut Agenda,
    pub(super) cluster: &'a mut Cluster,
    pub(super) judge: &'a mut Checker,
    pub(super) recorder: &'a mut Recorder,
    pub(super) corners: &'a mut Corners,
}

struct NoCommand;

impl Launcher for NoCommand {
    fn command(&self, _facts: &Facts<'_>) -> Command {
        Command::default()
    }
}

impl Framework {
    pub(super) fn new(scenario: &Scenario) -> Result<Framework, Error> {
        let settings = Settings::of(scenario);
        let base = base_config(scenario);
        let ids = if scenario.plain_ids {
            IdScheme::plain()
        } else {
            IdScheme::unique("sim", scenario.seed)?
        };
        let kernel = Kernel::new(configure(&base, settings)?, ids);
        kernel.disconnected();
        let options = EngineOptions {
            handlers: scenario.handlers as usize,
            offers_queued_max: scenario.queue as usize,
            batch_max: scenario.batch as usize,
            kill_grace: Duration::from_secs(2),
            ..EngineOptions::default()
        };
        let recorded_kernel = RecordedKernel::from(kernel.clone());
        let handler =
            |_| SimHandler::new(OfferHandler::new(recorded_kernel.clone(), Arc::new(NoCommand)));
        Ok(Framework {
            handlers: (0..options.handlers).map(handler).collect(),
            offer_queue: OfferQueue::new(options.offers_queued_max),
            batch: Vec::new(),
            sheet: OfferBuffer::new(scenario.zones),
            controller: Controller::new(recorded_kernel, options.clone()),
            kernel,
            settings,
            base,
            options,
            stream: None,
            streams: 0,
            ahead: 0,
            lagging: Window::default(),
            slow: Window::default(),
            dice: Rng::new(scenario.seed, FRAMEWORK),
        })
    }

    /// The framework's own time.
    pub(super) fn now(&self, agenda: &Agenda) -> Timestamp {
        Timestamp::from_millis(agenda.now + self.ahead)
    }

    /// Puts changed settings in force.
    pub(super) fn set(&mut self, settings: Settings) -> Result<(), Error> {
        let only_the_limit = Settings { limit: settings.limit, ..self.settings };
        if only_the_limit == settings {
            self.kernel.set_executor_limit(Some(settings.limit))?;
        } else {
            self.kernel.reconfigure(configure(&self.base, settings)?);
        }
        self.settings = settings;
        Ok(())
    }

    /// A message arrives.
    pub(super) fn told(&mut self, stream: u64, tell: MasterEvent, world: &mut World<'_>) {
        if let MasterEvent::Subscribed = tell {
            self.stream = Some(stream);
            world.judge.subscribed(self.now(world.agenda));
            self.offer_queue.reset(self.kernel.registered());
            let again = self.streams > 0;
            self.streams += 1;
            let event = ControllerEvent::Registered { framework_id: "simulated".to_owned(), again };
            return self.steward_hears(event, world);
        }
        if self.stream != Some(stream) {
            return;
        }
        match tell {
            MasterEvent::Subscribed => {}
            MasterEvent::Offers(offers) => self.take_in(offers, world),
            MasterEvent::Rescinded(offer) => {
                let id = format!("O{offer}");
                self.offer_queue.rescind(&id);
                world.judge.rescinded(offer);
            }
            MasterEvent::Update(update) => {
                world.judge.update_arrives(&update);
                self.steward_hears(ControllerEvent::Update(update), world);
            }
            MasterEvent::AgentLost(agent) => {
                world.judge.agent_lost(agent, self.now(world.agenda));
                self.steward_hears(
                    ControllerEvent::AgentLost { agent_id: agent.to_string() },
                    world,
                );
            }
        }
    }

    fn take_in(&mut self, offers: Vec<SimOffer>, world: &mut World<'_>) {
        world.judge.offers_arrive(&offers, world.agenda.now);
        let overflow = self.offer_queue.push(offers);
        if !overflow.is_empty() {
            world.judge.overflow(&overflow);
            let ids: Vec<String> = overflow.iter().map(|it| format!("O{}", it.number)).collect();
            let epoch = self.kernel.epoch();
            let mut desk =
                SimulatedCalls::new(&self.kernel, self.stream, self.now(world.agenda), world);
            self.controller.overflow(epoch, &ids, &mut desk);
            world.judge.overflow_ends();
        }
        if self.offer_queue.len() > 0 {
            let handler = self.dice.roll(self.handlers.len() as u64) as usize;
            self.call_handler(handler, world.agenda);
        }
    }

    fn steward_hears(&mut self, event: ControllerEvent, world: &mut World<'_>) {
        let now = self.now(world.agenda);
        let mut desk = SimulatedCalls::new(&self.kernel, self.stream, now, world);
        self.controller.handle(event, now, &mut desk);
        self.controller.run_timers(now, &mut desk);
        world.judge.stewards_turn_ends();
    }

    /// The control thread wakes up.
    pub(super) fn poll(&mut self, world: &mut World<'_>) {
        world.agenda.after(POLL_EVERY.as_millis() as u64, Item::Poll);
        let now = self.now(world.agenda);
        let mut desk = SimulatedCalls::new(&self.kernel, self.stream, now, world);
        self.controller.run_timers(now, &mut desk);
        world.corners.polled();
        world.judge.polled(self.stream.is_some(), now);
    }

    /// Tries to subscribe, and tries again if there is no master.
    pub(super) fn subscribe(&mut self, world: &mut World<'_>) {
        if self.stream.is_some() || world.cluster.subscribed() {
            return;
        }
        if world.cluster.subscribe(world.agenda) {
            let stream = world.cluster.network.stream;
            world.agenda.after(1, Item::Told { stream, tell: MasterEvent::Subscribed });
        } else {
            let later = SUBSCRIBE_AGAIN + self.dice.roll(SUBSCRIBE_AGAIN);
            world.agenda.after(later, Item::Subscribe);
        }
    }

    /// The stream is broken. Tries to subscribe after so long.
    pub(super) fn disconnect(&mut self, after: u64, world: &mut World<'_>) {
        world.agenda.after(after.max(1), Item::Subscribe);
        if self.stream.take().is_some() {
            self.kernel.disconnected();
            self.offer_queue.reset(self.kernel.epoch());
            world.judge.disconnected();
            self.steward_hears(ControllerEvent::Disconnected, world);
        }
    }

    /// Kills part of the executors.
    pub(super) fn kill_some(&mut self, percent: u8, world: &mut World<'_>) {
        let now = self.now(world.agenda);
        let executors = self.kernel.snapshot(now).executors;
        let chosen = executors.iter().filter(|_| self.dice.percent(percent)).map(|view| view.id);
        let chosen = chosen.collect();
        self.kill(chosen, self.options.kill_grace, world);
    }

    fn kill(&mut self, executors: Vec<ExecutorId>, grace: Duration, world: &mut World<'_>) {
        let now = self.now(world.agenda);
        world.judge.kills(&self.kernel, &executors, now);
        let mut desk = SimulatedCalls::new(&self.kernel, self.stream, now, world);
        self.controller.kill(executors, grace, now, &mut desk);
    }

    /// As `Engine::shutdown`: closes, lets handlers finish, and asks everybody to end.
    pub(super) fn shut_down(&mut self, timeout: Duration, world: &mut World<'_>) {
        self.kernel.close();
        self.offer_queue.close();
        world.judge.closed();
        self.finish_batches(world);
        let left = self.kernel.close().into_iter().map(|target| target.id).collect();
        self.kill(left, self.options.kill_grace.min(timeout), world);
    }
}

fn base_config(scenario: &Scenario) -> ConfigBuilder {
    Config::builder()
        .executor_memory(scenario.executor_memory)
        .memory_overhead(Some(scenario.memory_overhead))
        .extra_cores(scenario.extra_cores)
        .gpu_cap(Gpus::new(scenario.gpu_cap))
        .executor_gpus(match scenario.executor_gpus {
            0 => ExecutorGpus::WhatThereIs,
            gpus => ExecutorGpus::Exactly(Gpus::new(gpus)),
        })
        .fixed_port(scenario.fixed_port.then_some(super::wire::PORT))
        .exclusion(Some(scenario.exclusion()))
        .unreachable(UnreachableRule {
            release_after: Some(scenario.release_after),
            forget_after: scenario.forget_after(),
        })
}

fn configure(base: &ConfigBuilder, settings: Settings) -> Result<Config, Error> {
    let given = |amount: MilliCpus| Some(amount).filter(|amount| *amount > MilliCpus::ZERO);
    let cores = given(settings.executor_cores);
    let zones: Vec<String> = (0..settings.zones).map(|zone| format!("z{zone}")).collect();
    let constraint = match settings.zones {
        0 => Constraint::none(),
        _ => Constraint::parse(&format!("zone:{}", zones.join(",")))?,
    };
    base.clone()
        .executor_limit(Some(settings.limit))
        .core_cap(given(settings.core_cap))
        .executor_cores(cores.map_or(ExecutorCores::WholeOffer, ExecutorCores::Fixed))
        .constraint(constraint)
        .build()
}

/// Where calls and notices go.
pub(super) struct SimulatedCalls<'a, 'w> {
    kernel: &'a Kernel,
    world: &'a mut World<'w>,
    connected: bool,
    now: Timestamp,
    /// Whose answers these are.
    handler: usize,
    pub(super) placed: u32,
    pub(super) never_launched: Vec<String>,
}

impl<'a, 'w> SimulatedCalls<'a, 'w> {
    pub(super) fn new(
        kernel: &'a Kernel,
        stream: Option<u64>,
        now: Timestamp,
        world: &'a mut World<'w>,
    ) -> SimulatedCalls<'a, 'w> {
        let (connected, never_launched) = (stream.is_some(), Vec::new());
        SimulatedCalls { kernel, world, connected, now, handler: 0, placed: 0, never_launched }
    }

    pub(super) fn of_handler(self, handler: usize) -> SimulatedCalls<'a, 'w> {
        SimulatedCalls { handler, ..self }
    }

    /// Sends a call on its way; `false` if there is no stream to send it on.
    fn send(&mut self, call: &Call<'_>) -> bool {
        // As a cluster manager does with answers to offers of an earlier subscription.
        let stale = match call {
            Call::Accept(accept) => accept.epoch != self.kernel.epoch(),
            Call::Decline { epoch, .. } => *epoch != self.kernel.epoch(),
            _ => false,
        };
        let sent = self.connected && !stale;
        self.world.judge.called(call, (self.handler, stale), self.kernel, self.now);
        self.world.recorder.called(call, self.world.agenda.now);
        self.world.corners.called(call, stale);
        if let (true, Some(ask)) = (sent, ask(call)) {
            self.world.cluster.network.ask(self.world.agenda, ask);
        }
        sent
    }
}

impl CallSink for SimulatedCalls<'_, '_> {
    fn call(&mut self, call: Call<'_>) {
        if !self.send(&call) {
            let why = "there is no subscription".to_owned();
            self.notice(Notice::CallFailed { why });
        }
    }

    fn notice(&mut self, notice: Notice) {
        self.world.judge.noticed(&notice, self.now);
        self.world.recorder.noticed(&notice, self.world.agenda.now);
        self.world.corners.noticed(&notice, self.world.agenda.now);
    }
}

impl AnswerSink for SimulatedCalls<'_, '_> {
    fn call(&mut self, call: Call<'_>) -> bool {
        self.send(&call)
    }

    fn placed(&mut self, placed: Vec<PlacedExecutor>) {
        self.placed += placed.len() as u32;
        for executor in placed {
            self.notice(Notice::Placed(executor));
        }
    }

    fn never_launched(&mut self, executors: Vec<String>) {
        self.never_launched.extend(executors);
    }
}

/// The call as it travels.
fn ask(call: &Call<'_>) -> Option<FrameworkCall> {
    let ids = |offers: &[&str]| offers.iter().filter_map(|id| offer_number(id)).collect();
    Some(match call {
        Call::Accept(accept) => FrameworkCall::Accept {
            agent: AgentRef::parse(accept.agent_id)?,
            offers: accept.offers.iter().filter_map(|offer| offer_number(offer.id)).collect(),
            tasks: accept.executors.iter().map(order).collect(),
            refuse: accept.refuse,
        },
        Call::Decline { offers, refuse, .. } => {
            FrameworkCall::Decline { offers: ids(offers), refuse: *refuse }
        }
        Call::Revive { .. } => FrameworkCall::Revive,
        Call::Suppress { .. } => FrameworkCall::Suppress,
        Call::Kill { executor, agent_id, grace } => FrameworkCall::Kill {
            executor: (*executor).to_owned(),
            agent: agent_id.and_then(AgentRef::parse),
            grace: *grace,
        },
        Call::Reconcile(questioned) => {
            let pair = |it: &crate::engine::cluster_manager::ReconcileTask<'_>| {
                Some((it.executor.to_owned(), AgentRef::parse(it.agent_id)?))
            };
            FrameworkCall::Reconcile(questioned.iter().filter_map(pair).collect())
        }
        Call::Acknowledge { update, uuid } => {
            let uuid = u64::from_le_bytes((*uuid).try_into().ok()?);
            FrameworkCall::Acknowledge { executor: update.executor.clone(), uuid }
        }
        Call::Want(_) | Call::Forget { .. } => return None,
    })
}

fn order(launch: &Launch<'_>) -> Order {
    let mut amounts = Amounts::default();
    for piece in &launch.pieces {
        let kind = (piece.resource.name, piece.resource.role());
        match piece.amount {
            Amount::Scalar(amount) => {
                if let Some(at) = SCALARS.iter().position(|known| *known == kind) {
                    amounts.scalars[at] += amount.thousandths();
                }
            }
            Amount::Port(_) => amounts.port = true,
        }
    }
    Order { executor: launch.executor.to_owned(), amounts }
}
