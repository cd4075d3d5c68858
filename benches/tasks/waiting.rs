//! Tasks that wait, of which a batch picks those that have room: by the library's order of them, and by a sorted list
//! that is walked from its start. What is picked is taken out and put back.

use std::hint::black_box;
use std::time::{Duration, Instant};

use offermill::choosers::{BatchCaps, Chooser, WaitingTasks};
use offermill::resources::{Mebibytes, MilliCpus};
use offermill::{Config, IdScheme, Kernel, Picks, ResourceSums, Room, Task};

use crate::support::fleet::random;

/// Tasks that wait.
const WAITING: u64 = 10_000;
/// Agents in a batch.
pub(crate) const AGENTS: u32 = 10;
/// Batches of different rooms.
const BATCHES: usize = 200;

/// Tasks in their order, of which a batch takes some out that are put back.
pub(crate) trait TaskQueue {
    /// Picks those that have room, in their order, with rooms in turn; takes them out.
    fn take_out(&mut self, rooms: &[Room], picks: &mut Picks);

    fn put_back(&mut self, picks: &Picks);
}

/// The library's order.
pub(crate) struct Ours {
    waiting: WaitingTasks,
    chooser: Chooser,
    kernel: Kernel,
}

impl TaskQueue for Ours {
    fn take_out(&mut self, rooms: &[Room], picks: &mut Picks) {
        let admitted = self.waiting.admitted(self.kernel.queues_left(), BatchCaps::default());
        self.chooser.round_robin_waiting(rooms, admitted, picks);
        for pick in &*picks {
            self.waiting.remove(0, &pick.task);
        }
    }

    fn put_back(&mut self, picks: &Picks) {
        for pick in picks {
            self.waiting.insert(0, &pick.task);
        }
    }
}

/// A sorted list.
pub(crate) struct PlainList {
    waiting: Vec<Task>,
    chooser: Chooser,
}

impl TaskQueue for PlainList {
    fn take_out(&mut self, rooms: &[Room], picks: &mut Picks) {
        self.chooser.round_robin(rooms, &self.waiting, picks);
        let mut picked = picks.iter().peekable();
        self.waiting.retain(|task| picked.next_if(|pick| pick.task.tag == task.tag).is_none());
    }

    fn put_back(&mut self, picks: &Picks) {
        self.waiting.extend(picks.iter().map(|pick| pick.task));
        // It merges what is sorted already.
        self.waiting.sort_by_key(|task| task.tag);
    }
}

/// Batches that take tasks out of a queue and put them back.
pub(crate) struct WaitingStream<Q> {
    queue: Q,
    batches: Vec<Vec<Room>>,
    next: usize,
    picks: Picks,
}

/// Queues in which tasks of this many kinds wait, with the same batches. They pick the same, or this panics.
pub(crate) fn streams(kinds: usize) -> (WaitingStream<Ours>, WaitingStream<PlainList>) {
    let mut random = random();
    let mut kind = |at| match at {
        0 => (1000, 1000),
        _ => (100 + random(3900), 100 + random(3900)),
    };
    let kinds: Vec<(u64, u64)> = (0..kinds).map(&mut kind).collect();
    let mut task = |tag| {
        let (cores, memory) = kinds[random(kinds.len() as u64) as usize];
        Task::new(tag, MilliCpus::from_millis(cores), Mebibytes::new(memory))
    };
    let tasks: Vec<Task> = (0..WAITING).map(&mut task).collect();
    // What tasks of such sizes leave of agents.
    let mut room = |agent| {
        let (cores, memory) = (MilliCpus::from_millis(random(4000)), Mebibytes::new(random(4000)));
        Room::new(agent, ResourceSums { cores, memory, ..ResourceSums::NONE }, 100)
    };
    let batches: Vec<Vec<Room>> =
        (0..BATCHES).map(|_| (0..AGENTS).map(&mut room).collect()).collect();
    let config = Config::builder().build().expect("settings");
    let kernel = Kernel::new(config, IdScheme::plain());
    let mut ours = Ours { waiting: WaitingTasks::new(), chooser: Chooser::new(), kernel };
    for task in &tasks {
        assert!(ours.waiting.insert(0, task), "a tag stands twice");
    }
    let plain = PlainList { waiting: tasks, chooser: Chooser::new() };
    let mut ours = WaitingStream::new(ours, batches.clone());
    let mut plain = WaitingStream::new(plain, batches);
    for _ in 0..BATCHES {
        ours.turn();
        plain.turn();
        assert!(ours.picks.iter().eq(&plain.picks), "they don't pick the same");
    }
    (ours, plain)
}

impl<Q: TaskQueue> WaitingStream<Q> {
    fn new(queue: Q, batches: Vec<Vec<Room>>) -> WaitingStream<Q> {
        WaitingStream { queue, batches, next: 0, picks: Picks::new() }
    }

    fn turn(&mut self) {
        self.picks.clear();
        self.queue.take_out(&self.batches[self.next], &mut self.picks);
        black_box(&self.picks);
        self.queue.put_back(&self.picks);
        self.next = if self.next + 1 == self.batches.len() { 0 } else { self.next + 1 };
    }

    /// Has this many batches pick, and put back what they have picked.
    pub(crate) fn run(&mut self, turns: u64) -> Duration {
        let start = Instant::now();
        (0..turns).for_each(|_| self.turn());
        start.elapsed()
    }
}
