//! The kernel: proposal, round robin, commit.

use std::collections::VecDeque;
use std::hint::black_box;

use offermill::choosers::Chooser;
use offermill::{
    Amount, Decisions, ExecutorId, Handler, Kernel, Outcome, Picks, StatusUpdate, Task, TaskState,
};

use crate::stream::{PlacedAt, TaskScheduler, config};
use crate::support::fleet::Batch;
use crate::support::{self, NOW};

pub(crate) struct Ours {
    kernel: Kernel,
    handler: Handler,
    chooser: Chooser,
    picks: Picks,
    decisions: Decisions,
    outcomes: Vec<Outcome>,
    live: VecDeque<ExecutorId>,
}

impl Ours {
    /// A kernel that records what agents offer for pictures of the capacity, if `is_recorded`.
    pub(crate) fn new(is_recorded: bool) -> Ours {
        Ours::of(support::kernel(&config(is_recorded)))
    }

    fn of(kernel: Kernel) -> Ours {
        Ours {
            handler: kernel.handler(),
            kernel,
            chooser: Chooser::new(),
            picks: Picks::new(),
            decisions: Decisions::new(),
            outcomes: Vec::new(),
            live: VecDeque::new(),
        }
    }

    /// Another thread's, with the same kernel.
    pub(crate) fn beside(&self) -> Ours {
        Ours::of(self.kernel.clone())
    }
}

impl TaskScheduler for Ours {
    fn place(&mut self, batch: Batch, tasks: &[Task]) {
        let rooms = self.handler.propose(batch, NOW);
        self.picks.clear();
        self.chooser.round_robin(rooms.list(), tasks, &mut self.picks);
        rooms.commit(&self.picks, NOW, &mut self.decisions);
        black_box(&self.decisions);
    }

    fn note(&mut self) {
        let placed = self.decisions.accepts().flat_map(|accept| accept.executors);
        self.live.extend(placed.map(|task| task.id));
    }

    fn live(&self) -> usize {
        self.live.len()
    }

    fn placed(&self) -> (Vec<PlacedAt>, u64) {
        let (mut placed, mut taken) = (Vec::new(), 0);
        for accepted in self.decisions.accepts() {
            for (tag, task) in accepted.tasks() {
                placed.push((accepted.offers[0], tag));
                taken += sum(accepted.pieces(task));
            }
        }
        (placed, taken)
    }

    fn end(&mut self, count: usize) {
        let ended = self.live.drain(..count);
        let names: Vec<String> =
            ended.map(|id| self.kernel.executor_name(id).to_string()).collect();
        for names in names.chunks(100) {
            let updates: Vec<StatusUpdate<'_>> =
                names.iter().map(|name| StatusUpdate::new(name, TaskState::Finished)).collect();
            self.outcomes.clear();
            self.kernel.status_updates(&updates, NOW, &mut self.outcomes);
        }
    }
}

/// A number in which each thousandth of each piece shows.
pub(crate) fn sum(pieces: &[offermill::Piece]) -> u64 {
    let each = pieces.iter().map(|piece| match piece.amount {
        Amount::Scalar(amount) => amount.thousandths() * u64::from(piece.resource + 1),
        Amount::Port(_) => 0,
    });
    each.sum()
}
