//! Choosing from the queue, on handler threads: which tasks start on which rooms, and with which commands.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use offermill::choosers::BatchCaps;
use offermill::config::Placement;
use offermill::engine::TaskChooser;
use offermill::launch::{Command, Hosting, LaunchContext, Launcher};
use offermill::{Picks, Room, Rooms, Timestamp, Unplaced};

use crate::tasks::queue::{TaskQueue, TaskQueueState, TaskStage, TaskTerms};
use crate::tasks::results::ResultState;

impl TaskChooser for TaskQueue {
    /// Takes tasks that have room, in their order, and puts on record that they start. Without a record none is taken.
    fn choose(&self, rooms: &Rooms<'_>, now: Timestamp, picks: &mut Picks) {
        let mut guard = self.lock();
        let state = &mut *guard;
        if state.is_stopping || state.failure.is_some() {
            return;
        }
        let mut queues = rooms.queues_left();
        for task in state.picked.values() {
            // If it is booked already, it takes its room twice until its launch is prepared. Nothing revives offers
            // that are declined for that: they come again once they are refused no more, a second later at most.
            let _has_room = queues.take(task);
        }
        let caps = self.caps_left(state);
        let TaskQueueState { hosts, ready, pauses, chooser, survey, .. } = state;
        survey.offered(rooms, hosts.as_ref(), now);
        let mut pick = |list: &[Room], queues, caps, picks: &mut Picks| {
            let is_wanted = |room: &Room| ready.waiting().have_one_for(room);
            let open = pauses.open_rooms(rooms, list, is_wanted, now);
            let list = open.as_deref().unwrap_or(list);
            let wanted = ready.waiting().admitted(queues, caps);
            match self.terms.placement {
                Placement::Consolidate => chooser.consolidate_waiting(list, wanted, picks),
                _ => chooser.round_robin_waiting(list, wanted, picks),
            };
        };
        match hosts {
            Some(hosts) => hosts.pick(rooms, &queues, caps, picks, pick),
            None => pick(rooms.list(), queues, caps, picks),
        }
        state.picked.extend(picks.iter().map(|pick| (pick.task.tag, pick.task)));
        let started = SystemTime::now();
        let mut lines = Vec::with_capacity(picks.len());
        for pick in picks.iter().filter(|pick| !self.is_host(pick.task.tag)) {
            let offer = rooms.offer_of(pick.room);
            let place = offer.map_or(("", ""), |offer| (offer.agent_id, offer.hostname));
            let number = pick.task.tag as u32;
            self.start(state, number, place, started);
            lines.push(self.line(state, number, ResultState::Started));
        }
        if !self.caps_left(state).take(self.list.least) {
            // The kernel declines all until something ends.
            state.survey.stop();
        }
        if !state.write(&lines) {
            for pick in &*picks {
                self.return_pick(state, pick.task.tag);
            }
            picks.clear();
        }
    }

    fn without_rooms(&self, rooms: &Rooms<'_>, now: Timestamp) {
        let mut state = self.lock();
        if !state.is_stopping && state.failure.is_none() {
            let TaskQueueState { survey, hosts, .. } = &mut *state;
            survey.offered(rooms, hosts.as_ref(), now);
        }
    }

    fn unplaced(&self, unplaced: &[Unplaced]) {
        let mut guard = self.lock();
        let state = &mut *guard;
        let mut lines = Vec::with_capacity(unplaced.len());
        for it in unplaced {
            if !self.return_pick(state, it.tag) {
                continue;
            }
            let mut line = self.line(state, it.tag as u32, ResultState::NotStarted);
            line.reason = Some(it.reason.to_string());
            lines.push(line);
        }
        state.write(&lines);
    }

    fn killing(&self, tag: u64) {
        self.lock().hosts.iter().for_each(|hosts| hosts.ending(tag));
    }
}

impl TaskQueue {
    /// What the caps leave. Hosts count as tasks do.
    fn caps_left(&self, state: &TaskQueueState) -> BatchCaps {
        let TaskTerms { tasks_max, most, .. } = self.terms;
        let (hosts, taken) = match &state.hosts {
            Some(hosts) => (hosts.count(), state.taken.saturating_add(hosts.sums())),
            None => (0, state.taken),
        };
        let left = most.saturating_sub(taken);
        let executors = u64::from(tasks_max).saturating_sub(state.counts.running + hosts);
        BatchCaps::new(executors, left)
    }

    /// Whether a tag is that of a host.
    pub(super) fn is_host(&self, tag: u64) -> bool {
        tag >= self.list.first_host()
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
        let task = &self.list.tasks[number as usize];
        let own = task.sums();
        state.counts.running += 1;
        state.demand.take_off(task.queue);
        state.taken = state.taken.saturating_add(own);
        state.survey.taken(place.0, own);
        state.too_large.started(own);
        let progress = &mut state.progress[number as usize];
        progress.stage = TaskStage::InFlight;
        // A results file may say any number.
        progress.attempts = progress.attempts.saturating_add(1);
        place.0.clone_into(&mut progress.agent_id);
        place.1.clone_into(&mut progress.host);
        progress.executor.clear();
        progress.is_killed = false;
        progress.started = Some(at);
    }

    /// Takes back what was picked and not placed. Returns whether it is a task whose attempt was about to start: no
    /// host, and no task that the choice never came to because it broke off.
    pub(super) fn return_pick(&self, state: &mut TaskQueueState, tag: u64) -> bool {
        state.picked.remove(&tag);
        let is_task = state.hosts.as_mut().is_none_or(|hosts| hosts.take_back(tag));
        if !is_task {
            return false;
        }
        let number = tag as u32;
        let task = &self.list.tasks[number as usize];
        let progress = &mut state.progress[number as usize];
        if progress.stage != TaskStage::InFlight {
            return false;
        }
        progress.attempts -= 1;
        progress.started = None;
        state.land(number, task);
        self.put_back(state, number);
        true
    }
}

impl Launcher for TaskQueue {
    fn command(&self, context: &LaunchContext<'_>) -> Command {
        let tag = context.tag.unwrap_or_default();
        let mut state = self.lock();
        state.picked.remove(&tag);
        if let Some(command) = state.hosts.as_mut().and_then(|hosts| hosts.command(context)) {
            return command;
        }
        let number = tag as usize;
        let Some(task) = self.list.tasks.get(number) else { return Command::default() };
        let attempt = state.progress[number].attempts;
        let hosting = match &state.hosts {
            Some(hosts) => hosts.hosting(tag),
            None => Hosting::Alone,
        };
        drop(state);
        let own = [
            ("OFFERMILL_TASK_ID".to_owned(), task.id.clone()),
            ("OFFERMILL_TASK_ATTEMPT".to_owned(), attempt.to_string()),
        ];
        // A later variable of a name replaces an earlier one.
        let all = self.terms.variables.iter().chain(&task.env).chain(&own).cloned();
        let variables: BTreeMap<String, String> = all.collect();
        let command =
            Command::new(task.argv.clone()).with_form(self.terms.form).with_environment(variables);
        let command = command.with_hosting(hosting);
        match &self.terms.setup {
            Some(setup) => command.with_setup(Arc::clone(setup)),
            None => command,
        }
    }
}
