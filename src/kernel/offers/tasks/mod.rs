//! Tasks of unequal sizes on offers: propose, choose, commit. The design:
//!
//! 1. [`Handler::propose`](crate::Handler::propose) looks at a batch as `resource_offers` does, with the same code:
//!    constraint, exclusions, maintenance, wanted hosts, caps. It returns [`Rooms`](crate::Rooms): what is left of each
//!    candidate's offers, and the declines of the rest.
//! 2. The configured executor is the least that a room has, and that the caps must leave: demand, suppress, near misses
//!    and what the cluster lacks follow from it as before. A task may take more or less than it.
//! 3. The framework pushes tasks on rooms into [`Picks`](crate::Picks), in its own order, or has a
//!    [chooser](crate::choosers) do it. Rooms and picks are plain data; nothing shared is held meanwhile.
//! 4. [`Rooms::commit`](crate::Rooms::commit) checks the picks in their order: one that its room can't take is left
//!    out; the first one that the caps don't admit cuts off the rest. A gang is left out or cut off as a whole.
//! 5. The plan goes the way of other plans, `offers::commit`, which is generic over what is placed: one
//!    compare-exchange for all its unequal tasks, cut off from its end when other commits come first. Placement of
//!    equal executors keeps its own planner, which costs less than picks, and shares all steps before and after.
//! 6. If the policy was replaced or plans were invalidated since the proposal, the commit looks at the offers again and
//!    carries the picks over by their offers. So no task is placed under an older state, and no call is made to choose.
//! 7. A gang that isn't placed leaves nothing behind, and reserves no GPUs that are of no use to it. Whoever keeps it
//!    for a later batch holds nothing of the kernel's, so gangs can't wait for each other; see [`choosers::Gang`].
//! 8. A task is an executor: it has an id and a cell with its own amounts, so its end frees exactly these; see `tags`.
//! 9. A host, in which tasks run, is an executor as well, picked in a gang with its first tasks; see `hosts`.

mod check;
pub mod choosers;
mod commit;
pub(crate) mod hosts;
pub(crate) mod picks;
pub(crate) mod planned_task;
mod propose;
pub(crate) mod queues_left;
pub(crate) mod room;
pub(crate) mod rooms;
pub(crate) mod scratch;
