//! Close and drain: no executor is admitted any more, and the drain waits until all have ended and reports how.
//!
//! 1. `close` sets the closed bit in the admission word. From then on no commit succeeds: a handler that loaded the
//!    word before finds it changed, gives back what it reserved, and declines its batch as stopping.
//! 2. The first thread that closes lists every executor in any state except `Vacant`. If an executor's commit came
//!    before the bit, it is listed even if its handler has not published it yet, because it was `Reserved` before the
//!    commit. An executor that is `Reserved` and then not admitted never existed; it is removed from the list in the
//!    end. Executors that ended after the bit was set are listed, because their cells are not freed and say how they
//!    ended. If an executor ended just before the bit, its cell may still say so for a moment until it is freed.
//!    Therefore the list records how an executor had ended, so that all reports agree.
//! 3. The caller asks the listed executors to end. Status updates are applied as always.
//! 4. `drain` parks until admission counts no executor or the timeout has passed. A [`DrainFuture`] leaves its waker
//!    instead, and has no timeout.
//! 5. A thread that ends an executor and finds none counted takes the lock and then wakes the waiters; of several that
//!    end the last ones, at least one finds that. A waiter looks at admission under the same lock before it parks. So
//!    it either sees zero or is parked when it is woken; without the lock the wake-up could come between the look and
//!    the parking, and be lost. A future looks at admission and leaves its waker under one lock, for the same reason;
//!    it is woken after the lock is released.
//! 6. The report says how each listed executor ended. A cell that becomes vacant after the bit was set is not freed, so
//!    it still says how its executor ended. If an agent is forgotten after the bit was set, its cell keeps its name and
//!    is not reused, so that each listed executor is reported with its own agent.
//!
//! Offers that arrive during steps 2 to 6 are declined. Closing again, or waiting again or from several threads,
//! changes nothing and reports the same list.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::ids::ExecutorId;
use crate::kernel::reports::agent_names::AgentNames;
use crate::kernel::state::drain::ListedExecutor;
use crate::kernel::state::executor_state::CellStage;
use crate::kernel::state::target::Target;
use crate::kernel::{Core, Kernel};
use crate::status::Fate;
use crate::sync::{Ordering, fence, wait_for};

/// The result of a drain.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct DrainReport {
    /// Whether every executor whose resources were counted has ended.
    pub drained: bool,
    /// Each executor that lived when the kernel was closed. An executor whose end was being applied may be among them.
    pub executors: Vec<Drained>,
}

/// One executor in a [`DrainReport`], whether it has ended or not: [`Drained::fate`] tells.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Drained {
    /// The executor and its agent.
    pub executor: Target,
    /// How it ended, or that it has not ended ([`Fate::Alive`], [`Fate::Unreachable`]).
    pub fate: Fate,
}

impl Kernel {
    /// Closes the kernel permanently: no executor is placed any more, and offers are declined as stopping. Returns the
    /// executors to be asked to end (pass them to [`Kernel::kill_executors`]). Closing again returns those that are
    /// still alive.
    ///
    /// A handler that committed just before may not have answered yet; its executors are among those returned. Join
    /// handler threads before you send kills, so that no kill overtakes its launch.
    ///
    /// # Consistency
    /// Once it has returned, no executor is placed or readmitted. A batch that another thread is answering is admitted
    /// before it, and its executors are returned, or its offers are declined.
    pub fn close(&self) -> Vec<Target> {
        self.0.close()
    }

    /// Closes the kernel if it is open, waits until no executor is counted or `timeout` has passed, and reports every
    /// executor that was counted when the kernel was closed.
    ///
    /// # Consistency
    /// All calls, one after the other or at once, report the same executors; a later call knows of more ends. Executors
    /// that were [given up](crate::Ticked::given_up) aren't waited for, but reported as unreachable.
    ///
    /// # Blocking
    /// Parks the thread, without polling, until another thread applies the update that ends the last executor. Updates
    /// that are applied on this thread only come too late.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use offermill::{Config, Decisions, Fate, IdScheme, Kernel, Offer, Resource};
    /// # use offermill::{StatusUpdate, TaskState, Timestamp};
    /// # let kernel = Kernel::new(Config::builder().executor_limit(Some(2)).build()?, IdScheme::plain());
    /// # let resources = [Resource::scalar("cpus", 1.0), Resource::scalar("mem", 4096.0)];
    /// # let offers = ["S1", "S2"].map(|agent| Offer::new(agent, agent, "host", &resources, &[]));
    /// # let now = Timestamp::ORIGIN;
    /// // Two executors run; a thread applies status updates.
    /// # kernel.handler().resource_offers(&offers, now, &mut Decisions::new());
    /// let remaining = kernel.close();
    /// let kills = kernel.kill_executors(remaining.iter().map(|target| target.id));
    /// assert_eq!(kills.len(), 2); // the framework sends a KILL for each
    /// let report = std::thread::scope(|scope| {
    ///     scope.spawn(|| kernel.status_update(&StatusUpdate::new("0", TaskState::Killed), now));
    ///     kernel.drain(Duration::from_millis(200))
    /// });
    /// assert!(!report.drained, "one didn't end in time");
    /// let fates: Vec<Fate> = report.executors.iter().map(|executor| executor.fate).collect();
    /// assert_eq!(fates, [Fate::Killed, Fate::Alive]);
    /// # Ok::<(), offermill::Error>(())
    /// ```
    pub fn drain(&self, timeout: Duration) -> DrainReport {
        self.0.drain(timeout)
    }

    /// [`Kernel::drain`] for hosts whose threads must not park: closes the kernel if it is open, and returns a future
    /// that completes when no executor is counted, with the same report. It needs no runtime. `examples/async_drain.rs`
    /// shows a host.
    ///
    /// It has no timeout: race it with a timer of your runtime. If the timer wins, `drain(Duration::ZERO)` reports
    /// which executors are left. Several futures and threads may wait at the same time.
    ///
    /// The thread that ends the last executor, in [`Kernel::status_update`] or [`Kernel::tick`], calls the wakers. The
    /// kernel holds no lock meanwhile, but an [engine](crate::engine::Engine) with a journal holds that of its
    /// recording: a waker should do no more than have its task polled, and must not call the engine. The panic of a
    /// waker is reported by the panic hook and has no other effect.
    ///
    /// The future and its waker keep the kernel's memory. A runtime that keeps a task only by its waker keeps both
    /// until the drain completes, even after the last [`Kernel`] was dropped.
    ///
    /// # Blocking
    /// The call closes the kernel: the first one lists all executors, and others wait for that. A poll, and a drop,
    /// take the lock of the waiters, for a time in proportion to the futures that wait. The poll that completes writes
    /// the report.
    pub fn drained(&self) -> DrainFuture {
        self.0.close();
        DrainFuture::new(Arc::clone(&self.0))
    }
}

/// A future that completes when the executors of a closed kernel have ended; see
/// [`Kernel::drained`](crate::Kernel::drained).
///
/// It may be polled by any executor and moved between threads. Polling it again after it completed returns the report
/// again. Dropping it ends the waiting; the kernel stays closed.
#[must_use = "the kernel is closed, but nothing waits until the future is polled"]
pub struct DrainFuture {
    core: Arc<Core>,
    /// Its number among the futures that wait, once it waits.
    number: Option<u64>,
}

impl fmt::Debug for DrainFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DrainFuture").finish_non_exhaustive()
    }
}

impl DrainFuture {
    pub(crate) fn new(core: Arc<Core>) -> DrainFuture {
        DrainFuture { core, number: None }
    }
}

impl Future for DrainFuture {
    type Output = DrainReport;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<DrainReport> {
        let DrainFuture { core, number } = &mut *self;
        let emptied = || core.admission.load().executors() == 0;
        if core.drain.poll(number, context.waker(), emptied) {
            Poll::Ready(core.drain_report(true))
        } else {
            Poll::Pending
        }
    }
}

impl Drop for DrainFuture {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.core.drain.stop_waiting(number);
        }
    }
}

impl Core {
    /// Steps 1 and 2. Returns the executors to be asked to end.
    pub(crate) fn close(&self) -> Vec<Target> {
        self.admission.close();
        let listed = self.drain.listed.get_or_init(|| self.list_executors());
        let live = |target: &&Target| {
            self.executors.get(target.id.slot).is_some_and(|executor| {
                let state = executor.state();
                state.sequence == target.id.sequence && state.stage != CellStage::Vacant
            })
        };
        let mut targets = Vec::with_capacity(listed.len());
        targets.extend(listed.iter().map(|listed| &listed.target).filter(live).cloned());
        targets
    }

    fn list_executors(&self) -> Vec<ListedExecutor> {
        let mut agent_names = AgentNames::new(&self.agents);
        let present = self.executors.iter().filter_map(|(slot, executor)| {
            let state = executor.state();
            if state.is_freed() {
                return None;
            }
            let id = ExecutorId { sequence: state.sequence, slot };
            let agent = executor.agent();
            let tag = self.read_tag(id);
            // Acquire: pairs with the fence in `ExecutorCell::before_reserving`. If agent or tag are of the cell's next
            // executor, the state says now that the cell was freed or is the next executor's; then the former one
            // ended before the bit was set.
            fence(Ordering::Acquire);
            let now = executor.state();
            if now.is_freed() || now.sequence != state.sequence {
                return None;
            }
            // If the agent was forgotten, the executor ended before the bit was set or is not admitted.
            let agent_id = agent_names.id_now(agent)?;
            let ended = (state.stage == CellStage::Vacant).then_some(state.fate);
            Some(ListedExecutor { target: Target { id, agent_id, tag }, ended })
        });
        present.collect()
    }

    /// Steps 4 and 6, on a thread that parks.
    pub(crate) fn drain(&self, timeout: Duration) -> DrainReport {
        self.close();
        let emptied = || self.admission.load().executors() == 0;
        let drained = wait_for(&self.drain.waiters, &self.drain.emptied, timeout, emptied);
        self.drain_report(drained)
    }

    /// Step 6.
    fn drain_report(&self, drained: bool) -> DrainReport {
        let listed = self.drain.listed.get().map_or(&[][..], |listed| listed);
        let fates = listed.iter().filter_map(|ListedExecutor { target, ended }| {
            if let Some(fate) = *ended {
                return Some(Drained { executor: target.clone(), fate });
            }
            let Target { id, .. } = target;
            let executor = self.executors.get(id.slot)?;
            let state = executor.state();
            if state.sequence != id.sequence {
                return None;
            }
            let fate = match state.stage {
                CellStage::Vacant if state.is_freed() => return None,
                // No executor is counted or will be: this one was not admitted.
                CellStage::Reserved if drained => return None,
                CellStage::Vacant => state.fate,
                CellStage::Unreachable | CellStage::GivenUp => Fate::Unreachable,
                CellStage::Reserved | CellStage::Launching | CellStage::Running => Fate::Alive,
            };
            let mut target = target.clone();
            if target.agent_id.is_empty()
                && let Some(agent_id) = self.agents.id(executor.agent())
            {
                // It was bound since the list was made. Cells and agents keep their names once the kernel is closed.
                target.agent_id = agent_id;
            }
            Some(Drained { executor: target, fate })
        });
        let mut executors = Vec::with_capacity(listed.len());
        executors.extend(fates);
        DrainReport { drained, executors }
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use crate::kernel::state::executors::{Allocation, ExecutorCell};
    use crate::resources::ExecutorResources;
    use crate::{Config, IdScheme, Timestamp};

    /// Goal: an executor that was planned when the kernel was closed is reported while it may still be admitted, and
    /// not once it was given back. Method: one that is reserved, then withdrawn.
    #[test]
    fn what_was_not_admitted_is_not_reported() {
        let kernel = Kernel::new(Config::builder().build().unwrap(), IdScheme::plain());
        let core = &*kernel.0;
        let agent = core.agents.find_or_insert("S1", "host", Timestamp::ORIGIN).unwrap().index();
        let mut cells = Vec::new();
        assert!(core.executors.claim_from(0, 1, &mut cells));
        let executor = core.executors.get(cells[0]).unwrap();
        ExecutorCell::before_reserving();
        let allocation = Allocation { agent, resources: ExecutorResources::NONE };
        executor.reserve(7, &allocation, Timestamp::ORIGIN);
        assert_eq!(core.close().len(), 1);
        let reported = |drained| {
            core.drain_report(drained).executors.iter().map(|it| it.fate).collect::<Vec<_>>()
        };
        assert_eq!((reported(false), reported(true)), (vec![Fate::Alive], vec![]));
        executor.withdraw(7);
        assert_eq!((reported(false), reported(true)), (vec![], vec![]));
    }
}
