//! The simulated framework: the engine's parts around a kernel, run step by step on one thread.
//!
//! Each step does what one of the engine's threads would do: offers go through the offer queue to offer handlers, all
//! other events to the controller.

use std::sync::Arc;
use std::time::Duration;

mod calls;
mod handlers;
mod hosts;
mod queued_work;
mod task_kinds;
mod tasks;
mod work;
mod work_fate;

use super::event_queue::{EventQueue, SimEvent};
use super::network::FaultWindow;
use super::offer_buffer::OfferBuffer;
use super::queues::SimQueues;
use super::rng::Rng;
use super::scenario::Scenario;
use super::settings::FrameworkSettings;
use super::wire::{MasterEvent, PORT, SimOffer};
use super::world::World;
use crate::config::{Config, ConfigBuilder, ExecutorCores, ExecutorGpus, UnreachableRule};
use crate::constraint::Constraint;
use crate::engine::controller::{Controller, ControllerEvent, POLL_EVERY};
use crate::engine::kill_retry::KillTerms;
use crate::engine::offer_handler::OfferHandler;
use crate::engine::offer_queue::OfferQueue;
use crate::engine::recorded_kernel::RecordedKernel;
use crate::engine::{EngineOptions, TaskChooser};
use crate::error::Error;
use crate::ids::{ExecutorId, IdScheme};
use crate::kernel::Kernel;
use crate::launch::{Command, LaunchContext, Launcher};
use crate::resources::{Gpus, MilliCpus};
use crate::time::Timestamp;
use calls::SimulatedCalls;
use handlers::SimHandler;
pub(super) use hosts::IDLE_TIMEOUT;
use queued_work::QueuedWork;
use tasks::SimulatedTasks;
pub(super) use work::SimulatedWork;
pub(super) use work_fate::WorkFate;

/// The stream of random numbers that the framework uses.
const FRAMEWORK_STREAM: u64 = 5;
/// The minimum time between two attempts to subscribe, in milliseconds.
const SUBSCRIBE_RETRY_MS: u64 = 1_000;

pub(super) struct Framework {
    pub(super) kernel: Kernel,
    pub(super) settings: FrameworkSettings,
    base: ConfigBuilder,
    queues: SimQueues,
    handlers: Vec<SimHandler>,
    pub(super) offer_queue: OfferQueue<SimOffer>,
    pub(super) batch: Vec<SimOffer>,
    pub(super) buffer: OfferBuffer,
    /// What is placed, if it isn't equal executors.
    pub(super) tasks: Option<Arc<dyn SimulatedWork>>,
    pub(super) controller: Controller,
    pub(super) options: EngineOptions,
    /// The number of the subscription's stream, if there is a subscription; then the number of subscriptions so far.
    pub(super) stream: Option<u64>,
    streams: u32,
    /// How far the framework's clock is ahead of virtual time, in milliseconds.
    pub(super) ahead: u64,
    /// While this fault lasts, batches are answered by a clock that is behind.
    pub(super) lagging: FaultWindow,
    /// While this fault lasts, the calls of a batch are made one by one.
    pub(super) slow: FaultWindow,
    pub(super) rng: Rng,
    is_closed: bool,
}

struct NoCommand;

impl Launcher for NoCommand {
    fn command(&self, _context: &LaunchContext<'_>) -> Command {
        Command::default()
    }
}

impl Framework {
    pub(super) fn new(scenario: &Scenario) -> Result<Framework, Error> {
        let settings = FrameworkSettings::of(scenario);
        let (base, queues) = (base_config(scenario), SimQueues::of(scenario));
        let ids = if scenario.plain_ids {
            IdScheme::plain()
        } else {
            IdScheme::unique("sim", scenario.seed)?
        };
        let kernel = Kernel::new(configure(&base, queues, settings)?, ids);
        kernel.disconnected();
        let options = EngineOptions {
            handlers: scenario.handlers as usize,
            offers_queued_max: scenario.queue as usize,
            batch_max: scenario.batch as usize,
            kill_grace: Duration::from_secs(2),
            ..EngineOptions::default()
        };
        let recorded_kernel = RecordedKernel::from(kernel.clone());
        let tasks = scenario.tasks.then(|| -> Arc<dyn SimulatedWork> {
            match scenario.work_queue {
                true => Arc::new(QueuedWork::new(kernel.clone(), scenario)),
                false => Arc::new(SimulatedTasks::new(kernel.clone(), scenario)),
            }
        });
        let handler = |_| {
            let chooser = tasks.clone().map(|tasks| tasks as Arc<dyn TaskChooser>);
            let launcher: Arc<dyn Launcher> = match tasks.clone() {
                Some(tasks) => tasks,
                None => Arc::new(NoCommand),
            };
            SimHandler::new(OfferHandler::new(recorded_kernel.clone(), launcher, chooser))
        };
        Ok(Framework {
            handlers: (0..options.handlers).map(handler).collect(),
            offer_queue: OfferQueue::new(options.offers_queued_max),
            batch: Vec::new(),
            buffer: OfferBuffer::new(scenario.zones),
            tasks,
            controller: Controller::new(recorded_kernel, options.clone())
                .with_late_binding(scenario.binds_late),
            kernel,
            settings,
            base,
            queues,
            options,
            stream: None,
            streams: 0,
            ahead: 0,
            lagging: FaultWindow::default(),
            slow: FaultWindow::default(),
            rng: Rng::new(scenario.seed, FRAMEWORK_STREAM),
            is_closed: false,
        })
    }

    /// The time by the framework's clock.
    pub(super) fn now(&self, events: &EventQueue) -> Timestamp {
        Timestamp::from_millis(events.now + self.ahead)
    }

    /// Applies changed settings.
    pub(super) fn apply_settings(&mut self, settings: FrameworkSettings) -> Result<(), Error> {
        let only_the_limit = FrameworkSettings { limit: settings.limit, ..self.settings };
        if only_the_limit == settings {
            self.kernel.set_executor_limit(Some(settings.limit))?;
        } else {
            self.kernel.reconfigure(configure(&self.base, self.queues, settings)?);
            self.tasks.iter().for_each(|tasks| tasks.set(settings));
        }
        self.settings = settings;
        Ok(())
    }

    /// Handles an event of the master.
    pub(super) fn receive(&mut self, stream: u64, event: MasterEvent, world: &mut World<'_>) {
        if let MasterEvent::Subscribed = event {
            self.stream = Some(stream);
            world.checker.subscribed(self.now(world.events));
            self.offer_queue.reset(self.kernel.registered());
            let again = self.streams > 0;
            self.streams += 1;
            let event = ControllerEvent::Registered { framework_id: "simulated".to_owned(), again };
            return self.send_to_controller(event, world);
        }
        if self.stream != Some(stream) {
            return;
        }
        match event {
            MasterEvent::Subscribed => {}
            MasterEvent::Offers(offers) => self.queue_offers(offers, world),
            MasterEvent::Rescinded(offer) => {
                let id = format!("O{offer}");
                self.offer_queue.rescind(&id);
                world.checker.rescinded(offer);
            }
            MasterEvent::Update(update) => {
                world.checker.update_arrives(&update);
                self.send_to_controller(ControllerEvent::Update(update), world);
            }
            MasterEvent::AgentLost(agent) => {
                world.checker.agent_lost(agent, self.now(world.events));
                self.send_to_controller(
                    ControllerEvent::AgentLost { agent_id: agent.to_string() },
                    world,
                );
            }
        }
    }

    fn queue_offers(&mut self, offers: Vec<SimOffer>, world: &mut World<'_>) {
        world.checker.offers_arrive(&offers, world.events.now);
        let overflow = self.offer_queue.push(offers);
        if !overflow.is_empty() {
            world.checker.overflow(&overflow);
            let ids: Vec<String> = overflow.iter().map(|it| format!("O{}", it.number)).collect();
            let epoch = self.kernel.epoch();
            let mut calls =
                SimulatedCalls::new(&self.kernel, self.stream, self.now(world.events), world);
            self.controller.overflow(epoch, &ids, &mut calls);
            world.checker.overflow_ends();
        }
        if self.offer_queue.len() > 0 {
            let handler = self.rng.below(self.handlers.len() as u64) as usize;
            self.wake_handler(handler, world.events);
        }
    }

    fn send_to_controller(&mut self, event: ControllerEvent, world: &mut World<'_>) {
        let now = self.now(world.events);
        let mut calls = SimulatedCalls::new(&self.kernel, self.stream, now, world);
        self.controller.handle(event, now, &mut calls);
        self.controller.run_timers(now, &mut calls);
        world.checker.controller_returned();
    }

    /// The control thread wakes up.
    pub(super) fn poll(&mut self, world: &mut World<'_>) {
        world.events.after(POLL_EVERY.as_millis() as u64, SimEvent::Poll);
        let now = self.now(world.events);
        let mut calls = SimulatedCalls::new(&self.kernel, self.stream, now, world);
        self.controller.run_timers(now, &mut calls);
        world.corners.polled();
        world.checker.polled(self.stream.is_some(), now);
        self.end_hosts(now, world);
    }

    /// Ends hosts that are idle, and executors that came back after they had been given up: others replace them.
    fn end_hosts(&mut self, now: Timestamp, world: &mut World<'_>) {
        let Some(tasks) = self.tasks.as_ref().filter(|_| !self.is_closed) else { return };
        let (returned, idle) = tasks.take_to_end(now);
        world.checker.ends_idle_hosts(&idle, now);
        world.checker.looks_for_ends(now);
        world.corners.hosts_idle(idle.len());
        let names = returned.iter().chain(&idle);
        let executors: Vec<ExecutorId> =
            names.filter_map(|name| self.kernel.executor_id(name)).collect();
        if !executors.is_empty() {
            self.kill(executors, KillTerms::of(&self.options), world);
        }
    }

    /// Tries to subscribe. If there is no master, tries again later.
    pub(super) fn subscribe(&mut self, world: &mut World<'_>) {
        if self.stream.is_some() || world.cluster.subscribed() {
            return;
        }
        if world.cluster.subscribe(world.events) {
            let stream = world.cluster.network.stream;
            world
                .events
                .after(1, SimEvent::EventArrives { stream, event: MasterEvent::Subscribed });
        } else {
            let later = SUBSCRIBE_RETRY_MS + self.rng.below(SUBSCRIBE_RETRY_MS);
            world.events.after(later, SimEvent::Subscribe);
        }
    }

    /// The connection has broken. Tries to subscribe after `after` milliseconds.
    pub(super) fn disconnect(&mut self, after: u64, world: &mut World<'_>) {
        world.events.after(after.max(1), SimEvent::Subscribe);
        if self.stream.take().is_some() {
            self.kernel.disconnected();
            self.offer_queue.reset(self.kernel.epoch());
            world.checker.disconnected();
            self.send_to_controller(ControllerEvent::Disconnected, world);
        }
    }

    /// Kills about `percent` of the executors.
    pub(super) fn kill_some(&mut self, percent: u8, world: &mut World<'_>) {
        let now = self.now(world.events);
        let executors = self.kernel.snapshot(now).executors;
        let chosen = executors.iter().filter(|_| self.rng.percent(percent)).map(|view| view.id);
        let chosen = chosen.collect();
        self.kill(chosen, KillTerms::of(&self.options), world);
    }

    fn kill(&mut self, executors: Vec<ExecutorId>, terms: KillTerms, world: &mut World<'_>) {
        let now = self.now(world.events);
        world.checker.kills(&self.kernel, &executors, now);
        if let Some(tasks) = &self.tasks {
            let tags = executors.iter().filter_map(|id| self.kernel.task_tag(*id));
            tags.for_each(|tag| tasks.killing(tag));
        }
        let mut calls = SimulatedCalls::new(&self.kernel, self.stream, now, world);
        self.controller.kill(executors, terms, now, &mut calls);
    }

    /// Shuts down as `Engine::shutdown` does: closes the kernel, finishes batches, and kills all executors.
    pub(super) fn shut_down(&mut self, timeout: Duration, world: &mut World<'_>) {
        self.is_closed = true;
        self.kernel.close();
        self.offer_queue.close();
        world.checker.closed();
        self.finish_batches(world);
        let remaining = self.kernel.close().into_iter().map(|target| target.id).collect();
        self.kill(remaining, KillTerms::of_shutdown(&self.options, timeout), world);
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
        .fixed_port(scenario.fixed_port.then_some(PORT))
        // Each picture is new, so that those of samples don't depend on how often others are asked for.
        .capacity_refresh(Duration::ZERO)
        .exclusion(Some(scenario.exclusion()))
        .unreachable(UnreachableRule {
            release_after: Some(scenario.release_after),
            forget_after: scenario.forget_after(),
        })
}

fn configure(
    base: &ConfigBuilder,
    queues: SimQueues,
    settings: FrameworkSettings,
) -> Result<Config, Error> {
    let nonzero = |amount: MilliCpus| Some(amount).filter(|amount| *amount > MilliCpus::ZERO);
    let cores = nonzero(settings.executor_cores);
    let zones: Vec<String> = (0..settings.zones).map(|zone| format!("z{zone}")).collect();
    let constraint = match settings.zones {
        0 => Constraint::none(),
        _ => Constraint::parse(&format!("zone:{}", zones.join(",")))?,
    };
    queues
        .configure(base.clone(), settings)
        .executor_limit(Some(settings.limit))
        .core_cap(nonzero(settings.core_cap))
        .executor_cores(cores.map_or(ExecutorCores::WholeOffer, ExecutorCores::Fixed))
        .constraint(constraint)
        .build()
}
