//! [`MasterObserver`]: who is told what happens to a master, and how often it is told of refusals.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::cluster::standalone::master::MasterNotice;

/// The most refusals that are told in an interval. Those beyond are counted.
const REFUSALS_MAX: u64 = 20;
/// The length of such an interval.
const REFUSALS_INTERVAL: Duration = Duration::from_secs(10);

/// Takes notices, on the master's thread, while nothing of the master is borrowed. It must not block.
#[derive(Clone, Default)]
pub struct MasterObserver(Option<Arc<ObserveNotice>>);

/// A function that takes notices.
type ObserveNotice = dyn Fn(&MasterNotice) + Send + Sync;

impl MasterObserver {
    /// An observer that calls a function.
    #[must_use]
    pub fn new(observe: impl Fn(&MasterNotice) + Send + Sync + 'static) -> MasterObserver {
        MasterObserver(Some(Arc::new(observe)))
    }

    fn tell(&self, notice: &MasterNotice) {
        trace(notice);
        if let Some(observe) = &self.0 {
            observe(notice);
        }
    }
}

impl fmt::Debug for MasterObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MasterObserver").field(&self.0.is_some()).finish()
    }
}

/// Passes notices on. Of refusals, which clients without credentials can cause as often as they like, it passes on a
/// few at a time, and then their number.
#[derive(Debug)]
pub(super) struct NoticeGate {
    observer: MasterObserver,
    /// When the interval of refusals began.
    began: Cell<Duration>,
    refusals: Cell<u64>,
}

impl NoticeGate {
    pub(super) fn new(observer: MasterObserver) -> NoticeGate {
        NoticeGate { observer, began: Cell::default(), refusals: Cell::default() }
    }

    /// Passes a notice on, unless it is a refusal too many.
    pub(super) fn tell(&self, notice: &MasterNotice, now: Duration) {
        if notice.is_refusal() {
            self.tick(now);
            self.refusals.set(self.refusals.get().saturating_add(1));
            if self.refusals.get() > REFUSALS_MAX {
                return;
            }
        }
        self.observer.tell(notice);
    }

    /// Tells how many refusals weren't told, once the interval is over.
    pub(super) fn tick(&self, now: Duration) {
        if now < self.began.get().saturating_add(REFUSALS_INTERVAL) {
            return;
        }
        self.began.set(now);
        let refusals = self.refusals.replace(0).saturating_sub(REFUSALS_MAX);
        if refusals > 0 {
            self.observer.tell(&MasterNotice::RefusalsOmitted { refusals });
        }
    }
}

/// Emits an event of the crate `tracing`. A subscriber that panics doesn't end the master.
#[cfg(feature = "tracing")]
fn trace(notice: &MasterNotice) {
    use crate::cluster::standalone::master::NoticeLevel;
    use tracing::{debug, error, info, warn};

    const TARGET: &str = "offermill::master";
    let emit = || match notice.level() {
        NoticeLevel::Error => error!(target: TARGET, "{notice}"),
        NoticeLevel::Warn => warn!(target: TARGET, "{notice}"),
        NoticeLevel::Info => info!(target: TARGET, "{notice}"),
        NoticeLevel::Debug => debug!(target: TARGET, "{notice}"),
    };
    let _panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(emit));
}

/// Without the feature there are no events.
#[cfg(not(feature = "tracing"))]
fn trace(_notice: &MasterNotice) {}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// Goal: clients that are refused can't fill a log, and none of their refusals is lost without a word. Method: a
    /// thousand refusals at once, another notice, and time.
    #[test]
    fn refusals_are_bounded() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let telling = Arc::clone(&told);
        let gate = NoticeGate::new(MasterObserver::new(move |notice: &MasterNotice| {
            telling.lock().unwrap().push(notice.clone());
        }));
        let refusal = MasterNotice::CredentialsRefused { from: None, why: "a wrong token" };
        let now = Duration::from_secs(100);
        (0..1000).for_each(|_| gate.tell(&refusal, now));
        assert_eq!(told.lock().unwrap().len() as u64, REFUSALS_MAX);
        gate.tell(&MasterNotice::ClientTooSlow, now);
        assert_eq!(told.lock().unwrap().last(), Some(&MasterNotice::ClientTooSlow));
        gate.tick(now + REFUSALS_INTERVAL);
        let refusals = 1000 - REFUSALS_MAX;
        let omitted = MasterNotice::RefusalsOmitted { refusals };
        assert_eq!(told.lock().unwrap().last(), Some(&omitted));
        gate.tell(&refusal, now + REFUSALS_INTERVAL);
        assert_eq!(told.lock().unwrap().last(), Some(&refusal));
        gate.tick(now + REFUSALS_INTERVAL * 2);
        assert_eq!(told.lock().unwrap().len() as u64, REFUSALS_MAX + 3);
    }
}
