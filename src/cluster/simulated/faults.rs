//! Faults: from the scenario's data to what happens.

use super::network::Window;
use super::scenario::{Fault, FaultKind};
use super::simulation::{Simulation, Stage};
use super::wire::{AgentRef, MasterEvent, masters_update};
use crate::resources::MilliCpus;
use crate::status::{TaskState, UpdateReason};

/// A storm's offers come so far apart, in milliseconds.
const STORM_EVERY: u64 = 3;

impl Simulation {
    /// The fault with this number happens, unless faults are over.
    pub(super) fn befall(&mut self, index: usize) {
        let Some(fault) = self.scenario.faults.get(index).copied() else { return };
        let of_the_cluster = !fault.kind.is_the_frameworks();
        if self.stage != Stage::Faults && !(self.stage == Stage::Draining && of_the_cluster) {
            return;
        }
        self.recorder.mark(self.agenda.now, describe(&fault));
        use FaultKind as K;
        match fault.kind {
            K::AgentDies | K::AgentPartitioned | K::MasterFailsOver | K::ConnectionBreaks => {
                self.part_company(&fault);
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
            K::ExecutorsCrash => self.cluster.crash(&mut self.agenda, fault.percent),
            K::ClockJumps => self.framework.ahead += fault.amount,
            K::OfferStorm => {
                for number in 0..fault.amount.min(1_000) {
                    self.agenda.after(number * STORM_EVERY, super::agenda::Item::Storm);
                }
            }
            K::LimitChanges | K::CoreCapChanges | K::ConstraintChanges | K::ExecutorCoresChange => {
                self.change_settings(&fault)
            }
            K::ExecutorsKilled => {
                let (framework, mut world) = self.parts();
                framework.kill_some(fault.percent, &mut world);
            }
            K::StrayUpdates => self.stray_updates(fault.amount.min(1_000)),
            K::Shutdown => self.shut_down(),
        }
    }

    fn part_company(&mut self, fault: &Fault) {
        let machine = fault.agent % self.scenario.agents;
        let lasts = fault.lasts.as_millis() as u64;
        match fault.kind {
            FaultKind::AgentDies => {
                self.cluster.die(&mut self.agenda, machine, lasts, fault.amount == 1);
            }
            FaultKind::AgentPartitioned => {
                self.cluster.cut_off(&mut self.agenda, machine, lasts);
            }
            FaultKind::MasterFailsOver => {
                self.cluster.fail_over(&mut self.agenda, lasts);
                let (framework, mut world) = self.parts();
                framework.disconnect(lasts, &mut world);
            }
            _ => {
                self.cluster.unsubscribe();
                let (framework, mut world) = self.parts();
                framework.disconnect(lasts, &mut world);
            }
        }
    }

    fn open_window(&mut self, fault: &Fault) {
        let until = self.agenda.now + fault.lasts.as_millis() as u64;
        let window = Window { until, percent: fault.percent, amount: fault.amount };
        let (cluster, network) = (&mut self.cluster, FaultKind::MessagesLost);
        let place = match fault.kind {
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
                debug_assert_eq!(kind, network);
                &mut cluster.network.lost
            }
        };
        *place = window;
    }

    fn change_settings(&mut self, fault: &Fault) {
        let mut settings = self.framework.settings;
        let amount = fault.amount;
        let count = u32::try_from(amount).unwrap_or(u32::MAX);
        match fault.kind {
            FaultKind::LimitChanges => settings.limit = count,
            FaultKind::CoreCapChanges => settings.core_cap = MilliCpus::from_millis(amount),
            FaultKind::ConstraintChanges => settings.zones = count.min(self.scenario.zones),
            _ => settings.executor_cores = MilliCpus::from_millis(amount),
        }
        if let Err(error) = self.framework.set(settings) {
            self.recorder.mark(self.agenda.now, format!("refused: {error}"));
        }
    }

    /// Updates about executors that nobody launched, and about agents that nobody has.
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
            let dice = &mut self.cluster.dice;
            let number = dice.roll(1 << 40);
            let name =
                dice.pick(&["", "nobody", "sim-0-1.1", "sim-", "18446744073709551615", "-1"]);
            let name = if dice.percent(50) { format!("{name}{number}") } else { name.to_owned() };
            let state = dice.pick(&STATES);
            let agent = AgentRef { machine: dice.roll(50) as u32 + 1_000, incarnation: 0 };
            let update = masters_update(&name, agent, state, UpdateReason::Other);
            self.cluster.network.tell(&mut self.agenda, MasterEvent::Update(update));
        }
    }
}

/// A fault in a few words.
fn describe(fault: &Fault) -> String {
    let text = fault.to_string();
    text.split_once(' ').map_or_else(String::new, |(_, rest)| rest.to_owned())
}
