//! Fault injection: applies a scenario's faults to the cluster and the framework.

use super::{Simulation, Stage};
use crate::cluster::simulated::event_queue::SimEvent;
use crate::cluster::simulated::network::FaultWindow;
use crate::cluster::simulated::scenario::{Fault, FaultKind};
use crate::cluster::simulated::wire::{AgentRef, MasterEvent, master_update};
use crate::resources::MilliCpus;
use crate::status::{TaskState, UpdateReason};

/// The time between two rounds of an offer storm, in milliseconds.
const STORM_EVERY_MS: u64 = 3;

impl Simulation {
    /// Injects the fault with this index, unless faults are over.
    pub(super) fn inject_fault(&mut self, index: usize) {
        let Some(fault) = self.scenario.faults.get(index).copied() else { return };
        let hits_cluster = !fault.kind.is_the_frameworks();
        if self.stage != Stage::Faults && !(self.stage == Stage::Draining && hits_cluster) {
            return;
        }
        self.recorder.mark(self.events.now, describe(&fault));
        use FaultKind as K;
        match fault.kind {
            K::AgentDies | K::AgentPartitioned | K::MasterFailsOver | K::ConnectionBreaks => {
                self.break_connection(&fault);
            }
            K::MessagesLost
            | K::MessagesDuplicated
            | K::MessagesReordered
            | K::MessagesDelayed
            | K::OffersRescinded
            | K::LaunchesFail
            | K::LaunchesHang
            | K::KillsOutlived
            | K::ClockLags
            | K::AnswersDelayed => self.open_window(&fault),
            K::ExecutorsCrash => self.cluster.crash_executors(&mut self.events, fault.percent),
            K::ClockJumps => self.framework.ahead += fault.amount,
            K::OfferStorm => {
                for number in 0..fault.amount.min(1_000) {
                    self.events.after(number * STORM_EVERY_MS, SimEvent::Storm);
                }
            }
            K::LimitChanges
            | K::CoreCapChanges
            | K::ConstraintChanges
            | K::ExecutorCoresChange
            | K::QueuesChange => self.change_settings(&fault),
            K::ExecutorsKilled => {
                let (framework, mut world) = self.split();
                framework.kill_some(fault.percent, &mut world);
            }
            K::StrayUpdates => self.stray_updates(fault.amount.min(1_000)),
            K::Shutdown => self.shut_down(),
        }
    }

    fn break_connection(&mut self, fault: &Fault) {
        let machine = fault.agent % self.scenario.agents;
        let lasts = fault.lasts.as_millis() as u64;
        match fault.kind {
            FaultKind::AgentDies => {
                self.cluster.kill_machine(&mut self.events, machine, lasts, fault.amount == 1);
            }
            FaultKind::AgentPartitioned => {
                self.cluster.partition(&mut self.events, machine, lasts);
            }
            FaultKind::MasterFailsOver => {
                self.cluster.fail_over(&mut self.events, lasts);
                let (framework, mut world) = self.split();
                framework.disconnect(lasts, &mut world);
            }
            _ => {
                self.cluster.unsubscribe();
                let (framework, mut world) = self.split();
                framework.disconnect(lasts, &mut world);
            }
        }
    }

    fn open_window(&mut self, fault: &Fault) {
        let until = self.events.now + fault.lasts.as_millis() as u64;
        let window = FaultWindow { until, percent: fault.percent, amount: fault.amount };
        let cluster = &mut self.cluster;
        let target = match fault.kind {
            FaultKind::MessagesDuplicated => &mut cluster.network.duplicated,
            FaultKind::MessagesReordered => &mut cluster.network.reordered,
            FaultKind::MessagesDelayed => &mut cluster.network.delayed,
            FaultKind::OffersRescinded => &mut cluster.rescinding,
            FaultKind::LaunchesFail => &mut cluster.failing,
            FaultKind::LaunchesHang => &mut cluster.hanging,
            FaultKind::KillsOutlived => &mut cluster.outliving,
            FaultKind::ClockLags => &mut self.framework.lagging,
            FaultKind::AnswersDelayed => &mut self.framework.slow,
            kind => {
                debug_assert_eq!(kind, FaultKind::MessagesLost);
                &mut cluster.network.lost
            }
        };
        *target = window;
    }

    fn change_settings(&mut self, fault: &Fault) {
        let mut settings = self.framework.settings;
        let amount = fault.amount;
        let count = u32::try_from(amount).unwrap_or(u32::MAX);
        match fault.kind {
            FaultKind::LimitChanges => settings.limit = count,
            FaultKind::CoreCapChanges => settings.core_cap = MilliCpus::from_millis(amount),
            FaultKind::ConstraintChanges => settings.zones = count.min(self.scenario.zones),
            FaultKind::QueuesChange => settings.queue_round = amount,
            _ => settings.executor_cores = MilliCpus::from_millis(amount),
        }
        if let Some(late) = &mut self.cluster.late {
            // What it has placed elsewhere is unwelcome from now on.
            late.zones = settings.zones;
        }
        if let Err(error) = self.framework.apply_settings(settings) {
            self.recorder.mark(self.events.now, format!("refused: {error}"));
        }
    }

    /// Sends updates about executors that were never launched, on agents that don't exist.
    fn stray_updates(&mut self, count: u64) {
        const STATES: [TaskState; 6] = [
            TaskState::Running,
            TaskState::Failed,
            TaskState::Finished,
            TaskState::Unreachable,
            TaskState::Lost,
            TaskState::Staging,
        ];
        for _ in 0..count {
            let rng = &mut self.cluster.rng;
            let number = rng.below(1 << 40);
            let name = rng.pick(&["", "nobody", "sim-0-1.1", "sim-", "18446744073709551615", "-1"]);
            let name = if rng.percent(50) { format!("{name}{number}") } else { name.to_owned() };
            let state = rng.pick(&STATES);
            let agent = AgentRef { machine: rng.below(50) as u32 + 1_000, incarnation: 0 };
            let mut update = master_update(&name, agent, state, UpdateReason::Other);
            if self.cluster.late.is_some() {
                // The first agent that is named counts.
                update.agent_id = None;
            }
            self.cluster.network.send_event(&mut self.events, MasterEvent::Update(update));
        }
    }
}

/// A short description of a fault.
fn describe(fault: &Fault) -> String {
    let text = fault.to_string();
    text.split_once(' ').map_or_else(String::new, |(_, rest)| rest.to_owned())
}
