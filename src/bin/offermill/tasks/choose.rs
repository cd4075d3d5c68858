//! Choosing from the queue, on handler threads: which tasks start on which rooms, and with which commands.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use offermill::config::Placement;
use offermill::engine::TaskChooser;
use offermill::launch::{Command, LaunchContext, Launcher};
use offermill::{Picks, Rooms, Task, Timestamp, Unplaced};

use crate::tasks::queue::{TaskQueue, TaskQueueState, TaskStage, TaskTerms, sums};
use crate::tasks::results::ResultState;

impl TaskChooser for TaskQueue {
    /// Takes tasks that have room, in their order, and puts on record that they start. Without a record none is taken.
    fn choose(&self, rooms: &Rooms<'_>, now: Timestamp, picks: &mut Picks) {
        let mut guard = self.lock();
        let state = &mut *guard;
        if state.is_stopping || state.failure.is_some() {
            return;
        }
        for room in rooms.list() {
            let Some(offer) = rooms.offer(room) else { continue };
            if state.agents.offered(offer.agent_id, offer.hostname, room.left()) {
                state.grown_at = Some(now);
            }
        }
        let first = state.ready.first(rooms.list());
        let task = |number: &u32| {
            let task = &self.list.tasks[*number as usize];
            Task { gpus: task.gpus, ..Task::new((*number).into(), task.cores, task.memory) }
        };
        let wanted: Vec<Task> = first.iter().map(task).collect();
        let wanted = self.within_caps(state, &wanted);
        match self.terms.placement {
            Placement::Consolidate => state.chooser.consolidate(rooms.list(), wanted, picks),
            _ => state.chooser.round_robin(rooms.list(), wanted, picks),
        };
        let started = SystemTime::now();
        let mut lines = Vec::with_capacity(picks.len());
        for pick in &*picks {
            let offer = rooms.list().get(pick.room as usize).and_then(|room| rooms.offer(room));
            let place = offer.map_or(("", ""), |offer| (offer.agent_id, offer.hostname));
            let number = pick.task.tag as u32;
            self.start(state, number, place, started);
            lines.push(self.line(state, number, ResultState::Started));
        }
        if !state.write(&lines) {
            picks.iter().for_each(|pick| self.return_pick(state, pick.task.tag));
            picks.clear();
        }
    }

    fn unplaced(&self, unplaced: &[Unplaced]) {
        let mut guard = self.lock();
        let state = &mut *guard;
        let mut lines = Vec::with_capacity(unplaced.len());
        for it in unplaced {
            self.return_pick(state, it.tag);
            let mut line = self.line(state, it.tag as u32, ResultState::NotStarted);
            line.reason = Some(it.reason.to_string());
            lines.push(line);
        }
        state.write(&lines);
    }
}

impl TaskQueue {
    /// The first of these tasks that the caps admit: the kernel would cut off the others.
    fn within_caps<'t>(&self, state: &TaskQueueState, wanted: &'t [Task]) -> &'t [Task] {
        let TaskTerms { tasks_max, most, .. } = self.terms;
        let mut left = most.saturating_sub(state.taken);
        let room = u64::from(tasks_max).saturating_sub(state.counts.running);
        let is_admitted = |task: &&Task| {
            let own = sums(&self.list.tasks[task.tag as usize]);
            let fits = own.cores <= left.cores && own.gpus <= left.gpus;
            left = left.saturating_sub(own);
            fits
        };
        let admitted = wanted.iter().take(usize::try_from(room).unwrap_or(usize::MAX));
        &wanted[..admitted.take_while(is_admitted).count()]
    }

    /// A task is about to start an attempt on this agent, of this host name.
    pub(super) fn start(
        &self,
        state: &mut TaskQueueState,
        number: u32,
        place: (&str, &str),
        at: SystemTime,
    ) {
        self.take_out(state, number);
        let own = sums(&self.list.tasks[number as usize]);
        state.counts.running += 1;
        state.taken = state.taken.saturating_add(own);
        state.agents.taken(place.0, own);
        let progress = &mut state.progress[number as usize];
        progress.stage = TaskStage::InFlight;
        progress.attempts += 1;
        place.0.clone_into(&mut progress.agent_id);
        place.1.clone_into(&mut progress.host);
        progress.executor.clear();
        progress.started = Some(at);
    }

    /// Takes back what was picked and not placed.
    fn return_pick(&self, state: &mut TaskQueueState, tag: u64) {
        let number = tag as u32;
        let task = &self.list.tasks[number as usize];
        let progress = &mut state.progress[number as usize];
        progress.attempts -= 1;
        progress.started = None;
        state.land(number, sums(task));
        self.put_back(state, number);
    }
}

impl Launcher for TaskQueue {
    fn command(&self, context: &LaunchContext<'_>) -> Command {
        let number = context.tag.unwrap_or_default() as usize;
        let Some(task) = self.list.tasks.get(number) else { return Command::default() };
        let attempt = self.lock().progress[number].attempts;
        let own = [
            ("OFFERMILL_TASK_ID".to_owned(), task.id.clone()),
            ("OFFERMILL_TASK_ATTEMPT".to_owned(), attempt.to_string()),
        ];
        // A later variable of a name replaces an earlier one.
        let all = self.terms.variables.iter().chain(&own).chain(&task.env).cloned();
        let variables: BTreeMap<String, String> = all.collect();
        let command =
            Command::new(task.argv.clone()).with_form(self.terms.form).with_environment(variables);
        match &self.terms.setup {
            Some(setup) => command.with_setup(Arc::clone(setup)),
            None => command,
        }
    }
}
