//! Kills until their effect is reported: a cluster may lose a call, and need not tell.
//!
//! * A kill without effect is repeated after 15 s, then after twice as long, up to 5 min. The grace period has no part
//!   in that: nobody knows whether the call has arrived, and repeating it changes nothing if it has.
//! * While there is no subscription nothing is repeated, for nobody would hear it. With the next one all kills are made
//!   again at once, and their repetition starts anew.
//! * An executor that is reported alive and not as ending has not heard of its kill, or does not care: the kill is made
//!   again at the next tick, but not within 5 s of the last one.
//! * A kill must not overtake the launch of its executor, or it would have no effect: it is made at the first tick
//!   after the cluster manager was told to launch it (see [`Launches`]).

use std::collections::BTreeMap;
use std::time::Duration;

use super::cluster_manager::Call;
use super::launches::Launches;
use super::sinks::CallSink;
use crate::ids::ExecutorId;
use crate::kernel::Target;
use crate::time::Timestamp;

/// A kill without effect is made again after this time, then after twice as long, up to the most.
const AGAIN_AFTER: Duration = Duration::from_secs(15);
const AGAIN_AFTER_MAX: Duration = Duration::from_secs(300);
/// A kill of an executor that is reported alive is made again after this time.
const AGAIN_IF_ALIVE: Duration = Duration::from_secs(5);
/// A stray is asked so often. One that is out of reach for longer is noticed anew when it comes back.
pub(super) const STRAY_TRIES: u32 = 20;

/// The kills that have not been confirmed.
pub(super) struct Kills {
    launches: Launches,
    /// In the order of ids, so that equal histories make equal calls.
    open: BTreeMap<String, Kill>,
    /// Whether the subscription has ended and the next has not begun.
    disconnected: bool,
}

struct Kill {
    /// The executor, if the kernel knows it.
    id: Option<ExecutorId>,
    agent_id: Option<String>,
    grace: Duration,
    /// When the call was made last.
    asked_at: Timestamp,
    again_at: Timestamp,
    again_after: Duration,
    /// Of an executor that the kernel doesn't count on: how often it will still be asked.
    stray_tries: Option<u32>,
}

impl Kills {
    pub(super) fn new(launches: Launches) -> Kills {
        Kills { launches, open: BTreeMap::new(), disconnected: false }
    }

    /// Asks an executor of the kernel's to end.
    pub(super) fn ask(
        &mut self,
        executor: String,
        target: &Target,
        grace: Duration,
        now: Timestamp,
        out: &mut dyn CallSink,
    ) {
        let mut kill = Kill::new(Some(&target.agent_id), grace, now);
        kill.id = Some(target.id);
        if kill.must_wait(&self.launches) {
            kill.again_at = now;
        } else {
            kill.call(&executor, now, out);
        }
        self.open.insert(executor, kill);
    }

    /// Asks an executor to end that nobody here wants.
    pub(super) fn ask_stray(
        &mut self,
        executor: &str,
        agent_id: Option<&str>,
        grace: Duration,
        now: Timestamp,
        out: &mut dyn CallSink,
    ) {
        let kill = self.open.entry(executor.to_owned()).or_insert_with(|| {
            let stray_tries = Some(STRAY_TRIES);
            Kill { stray_tries, ..Kill::new(agent_id, grace, now) }
        });
        kill.call(executor, now, out);
    }

    /// A subscription has begun: calls that were made before it may be lost.
    pub(super) fn registered(&mut self, now: Timestamp, out: &mut dyn CallSink) {
        self.disconnected = false;
        for (executor, kill) in &mut self.open {
            kill.again_after = AGAIN_AFTER;
            if kill.must_wait(&self.launches) {
                kill.again_at = now;
            } else {
                kill.again_at = now.plus(AGAIN_AFTER);
                kill.call(executor, now, out);
            }
        }
    }

    /// The subscription has ended.
    pub(super) fn disconnected(&mut self) {
        self.disconnected = true;
    }

    /// The cluster says that the executor runs or is about to.
    pub(super) fn seen_alive(&mut self, executor: &str) {
        if let Some(kill) = self.open.get_mut(executor) {
            kill.again_at = kill.again_at.min(kill.asked_at.plus(AGAIN_IF_ALIVE));
        }
    }

    /// The executor has ended, or is forgotten.
    pub(super) fn ended(&mut self, executor: &str) {
        self.open.remove(executor);
    }

    /// The cluster says that it doesn't run: of a stray there will be no other word.
    pub(super) fn not_seen_alive(&mut self, executor: &str) {
        if self.open.get(executor).is_some_and(|kill| kill.stray_tries.is_some()) {
            self.open.remove(executor);
        }
    }

    /// Makes those again that are due.
    pub(super) fn repeat(&mut self, now: Timestamp, out: &mut dyn CallSink) {
        if self.disconnected {
            return;
        }
        self.open.retain(|executor, kill| {
            if now < kill.again_at || kill.must_wait(&self.launches) {
                return true;
            }
            match &mut kill.stray_tries {
                Some(0) => return false,
                Some(tries) => *tries -= 1,
                None => {}
            }
            kill.again_after = (kill.again_after * 2).min(AGAIN_AFTER_MAX);
            kill.again_at = now.plus(kill.again_after);
            kill.call(executor, now, out);
            true
        });
    }
}

impl Kill {
    /// A kill whose call is made now.
    fn new(agent_id: Option<&str>, grace: Duration, now: Timestamp) -> Kill {
        Kill {
            id: None,
            agent_id: agent_id.map(str::to_owned),
            grace,
            asked_at: now,
            again_at: now.plus(AGAIN_AFTER),
            again_after: AGAIN_AFTER,
            stray_tries: None,
        }
    }

    /// Whether the executor's launch may still be to come.
    fn must_wait(&self, launches: &Launches) -> bool {
        self.id.is_some_and(|id| launches.under_way(id))
    }

    fn call(&mut self, executor: &str, now: Timestamp, out: &mut dyn CallSink) {
        self.asked_at = now;
        let agent_id = self.agent_id.as_deref();
        out.call(Call::Kill { executor, agent_id, grace: self.grace });
    }
}
