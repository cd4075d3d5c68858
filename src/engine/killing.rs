//! Kills until their effect is reported: a cluster may lose a call, and need not tell.

use std::collections::BTreeMap;
use std::time::Duration;

use super::seam::Call;
use super::steward::Outlet;
use crate::time::Timestamp;

/// A kill without effect is tried again after so long, then after twice as long, up to the most.
const AGAIN_AFTER: Duration = Duration::from_secs(15);
const AGAIN_AFTER_MAX: Duration = Duration::from_secs(300);
/// A stray is asked so often. One that is out of reach for longer is noticed anew when it comes back.
pub(super) const STRAY_TRIES: u32 = 20;

/// The kills that have not been confirmed.
#[derive(Default)]
pub(super) struct Kills {
    /// In the order of ids, so that equal histories make equal calls.
    open: BTreeMap<String, Kill>,
}

struct Kill {
    agent_id: Option<String>,
    grace: Duration,
    again_at: Timestamp,
    again_after: Duration,
    /// Of an executor that the kernel doesn't count on: how often it will still be asked.
    stray_tries: Option<u32>,
}

impl Kills {
    /// Asks an executor of the kernel's to end.
    pub(super) fn ask(
        &mut self,
        executor: String,
        agent_id: &str,
        grace: Duration,
        now: Timestamp,
        out: &mut dyn Outlet,
    ) {
        out.call(Call::Kill { executor: &executor, agent_id: Some(agent_id), grace });
        self.open.insert(executor, Kill::new(Some(agent_id), grace, now, None));
    }

    /// Asks an executor to end that nobody here wants.
    pub(super) fn ask_stray(
        &mut self,
        executor: &str,
        agent_id: Option<&str>,
        grace: Duration,
        now: Timestamp,
        out: &mut dyn Outlet,
    ) {
        out.call(Call::Kill { executor, agent_id, grace });
        let kill = || Kill::new(agent_id, grace, now, Some(STRAY_TRIES));
        self.open.entry(executor.to_owned()).or_insert_with(kill);
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

    /// Tries those again that are due.
    pub(super) fn repeat(&mut self, now: Timestamp, out: &mut dyn Outlet) {
        self.open.retain(|executor, kill| {
            if now < kill.again_at {
                return true;
            }
            match &mut kill.stray_tries {
                Some(0) => return false,
                Some(tries) => *tries -= 1,
                None => {}
            }
            kill.again_after = (kill.again_after * 2).min(AGAIN_AFTER_MAX);
            kill.again_at = now.plus(kill.again_after);
            let agent_id = kill.agent_id.as_deref();
            out.call(Call::Kill { executor, agent_id, grace: kill.grace });
            true
        });
    }
}

impl Kill {
    fn new(
        agent_id: Option<&str>,
        grace: Duration,
        now: Timestamp,
        stray_tries: Option<u32>,
    ) -> Kill {
        let again_after = AGAIN_AFTER.max(grace);
        let (again_at, agent_id) = (now.plus(again_after), agent_id.map(str::to_owned));
        Kill { agent_id, grace, again_at, again_after, stray_tries }
    }
}
