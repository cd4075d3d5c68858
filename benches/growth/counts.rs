//! How often lines are written that other threads use, too. `tests/counting` asserts these numbers, the bench `growth`
//! reckons with them.

/// Writes of a batch or an update in the steady state. Where a field counts words of many lines, each line is written
/// once, but for executors' cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Writes {
    /// The admission word.
    pub(crate) admission: u64,
    /// The counter of what was released: one of [`OWN_COUNTERS`] that an updater has to itself, or all others'.
    pub(crate) released: u64,
    /// The next executor's number.
    pub(crate) sequence: u64,
    /// The head of a stack of free executors' cells, of which there are eight.
    pub(crate) stack: u64,
    /// Agents' cells.
    pub(crate) agents: u64,
    /// An updater's counts of agents' ends, which no other updater writes that has a counter of its own.
    pub(crate) ended: u64,
    /// Executors' cells …
    pub(crate) executors: u64,
    /// … and the words written in them.
    pub(crate) words: u64,
    /// Hints of executors' agents, 32 of which share a line.
    pub(crate) hints: u64,
    /// Links of executors' cells, 16 of which share a line.
    pub(crate) links: u64,
    /// Counters in the handler's own lines, which no other thread writes.
    pub(crate) own: u64,
}

/// A batch that is declined, each offer for the same kind of reason: batches, offers, declines, and when they came.
pub(crate) const DECLINED: Writes = Writes {
    admission: 0,
    released: 0,
    sequence: 0,
    stack: 0,
    agents: 0,
    ended: 0,
    executors: 0,
    words: 0,
    hints: 0,
    links: 0,
    own: 4,
};

/// A batch that is accepted completely, on `agents` agents: whatever its size, the lines that all handlers share are
/// written once each.
pub(crate) const fn launched(agents: u64, executors: u64) -> Writes {
    Writes {
        admission: 1,
        released: 0,
        sequence: 1,
        stack: 1,
        agents,
        ended: 0,
        executors,
        // Six words of what it holds, the state, and the state again.
        words: 7 * executors,
        hints: executors,
        // The stack that it goes back to.
        links: executors,
        // Batches, offers, accepts, executors, and when they came.
        own: 5,
    }
}

/// An update that ends an executor.
pub(crate) const ENDED: Writes = Writes {
    admission: 0,
    released: 1,
    sequence: 0,
    stack: 1,
    agents: 1,
    ended: 0,
    executors: 1,
    // The state, and how it ended wiped out.
    words: 2,
    hints: 0,
    // The next free cell.
    links: 1,
    own: 0,
};

/// An update by an updater that ends an executor: the first of 64 whose cells it frees together with the last one.
pub(crate) const ENDED_BY_UPDATER: Writes =
    Writes { stack: 0, links: 0, agents: 0, ended: 1, ..ENDED };

/// The number of updaters that have a counter to themselves.
pub(crate) const OWN_COUNTERS: u32 = 2;

/// The number of updates that change the counter of what was released and a stack of free cells in one step.
pub(crate) const AHEAD: u64 = 64;

/// Updates in one batch that end `executors` executors, each on its own agent.
pub(crate) const fn ended(executors: u64) -> Writes {
    let settled = executors.div_ceil(AHEAD);
    Writes {
        admission: 0,
        released: settled,
        sequence: 0,
        stack: settled,
        agents: executors,
        ended: 0,
        executors,
        words: 2 * executors,
        hints: 0,
        links: executors,
        own: 0,
    }
}

/// The first update that says that an executor runs.
pub(crate) const RUNNING: Writes = Writes {
    admission: 0,
    released: 0,
    sequence: 0,
    stack: 0,
    agents: 0,
    ended: 0,
    executors: 1,
    words: 1,
    hints: 0,
    links: 0,
    own: 0,
};
