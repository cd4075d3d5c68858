//! [`MasterObserver`]: who is told what happens to a master, and how often it is told what clients can cause at will.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::cluster::standalone::master::{MasterNotice, NoticeSource};

/// The most notices of a source that are told in an interval. Those beyond are counted.
const NOTICES_MAX: u64 = 20;
/// The same of the frameworks of a principal, which may be many.
const FRAMEWORK_NOTICES_MAX: u64 = 200;
/// The most sources that are told apart in an interval.
const SOURCES_MAX: usize = 64;
/// The length of such an interval.
const INTERVAL: Duration = Duration::from_secs(10);

/// What is called with each notice.
type Observe = dyn Fn(&MasterNotice) + Send + Sync;

/// Takes notices, on the master's thread, while nothing of the master is borrowed. It must not block.
#[derive(Clone, Default)]
pub struct MasterObserver(Option<Arc<Observe>>);

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

/// Passes notices on. Of those that clients can cause as often as they like, it passes on a few of each source at a
/// time, and then their number: nobody can fill a log, nor hide what others cause.
#[derive(Debug)]
pub(super) struct NoticeGate {
    observer: MasterObserver,
    /// When the interval began.
    began: Cell<Duration>,
    /// The notices of each source in it.
    sources: RefCell<HashMap<NoticeSource, u64>>,
}

impl NoticeGate {
    pub(super) fn new(observer: MasterObserver) -> NoticeGate {
        NoticeGate { observer, began: Cell::default(), sources: RefCell::default() }
    }

    /// Passes a notice on, unless it is one too many of its source.
    pub(super) fn tell(&self, notice: &MasterNotice, now: Duration) {
        if let Some(source) = notice.source() {
            self.tick(now);
            if !self.count(source) {
                return;
            }
        }
        self.observer.tell(notice);
    }

    /// Counts a notice. Returns whether it is told.
    fn count(&self, source: NoticeSource) -> bool {
        let mut sources = self.sources.borrow_mut();
        let is_known = sources.contains_key(&source) || sources.len() < SOURCES_MAX;
        let source = if is_known { source } else { NoticeSource::Others };
        let most = most_of(&source);
        let notices = sources.entry(source).or_default();
        *notices = notices.saturating_add(1);
        *notices <= most
    }

    /// Tells how many notices weren't told, once the interval is over.
    pub(super) fn tick(&self, now: Duration) {
        if now < self.began.get().saturating_add(INTERVAL) {
            return;
        }
        self.began.set(now);
        for (source, notices) in self.sources.take() {
            let notices = notices.saturating_sub(most_of(&source));
            if notices > 0 {
                self.observer.tell(&MasterNotice::NoticesOmitted { source, notices });
            }
        }
    }
}

/// The most notices of a source that are told in an interval.
fn most_of(source: &NoticeSource) -> u64 {
    match source {
        NoticeSource::Frameworks { .. } => FRAMEWORK_NOTICES_MAX,
        _ => NOTICES_MAX,
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

    fn refusal(address: &str) -> MasterNotice {
        let from = Some(format!("{address}:4000").parse().unwrap());
        MasterNotice::CredentialsRefused { from, why: "a wrong token" }
    }

    fn came(name: &str, principal: &str) -> MasterNotice {
        let principal = Some(principal.to_owned());
        let (id, name) = (String::new(), name.to_owned());
        MasterNotice::FrameworkRegistered { id, name, principal, again: false }
    }

    /// Goal: clients can neither fill a log nor hide what others cause, and nothing is left out without a word. Method:
    /// one client and one framework that cause thousands of notices at once, beside others; and time.
    #[test]
    fn notices_of_a_source_are_bounded() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let telling = Arc::clone(&told);
        let gate = NoticeGate::new(MasterObserver::new(move |notice: &MasterNotice| {
            telling.lock().unwrap().push(notice.clone());
        }));
        let now = Duration::from_secs(100);
        let take = || std::mem::take(&mut *told.lock().unwrap());
        (0..1000).for_each(|_| gate.tell(&refusal("10.0.0.1"), now));
        assert_eq!(take().len() as u64, NOTICES_MAX);
        (0..5000).for_each(|at| gate.tell(&came(&format!("a{at}"), "noisy"), now));
        assert_eq!(take().len() as u64, FRAMEWORK_NOTICES_MAX);
        for other in [
            refusal("10.0.0.2"),
            refusal("[fd00::1]"),
            came("b", "calm"),
            MasterNotice::ClientTooSlow,
        ] {
            gate.tell(&other, now);
            assert_eq!(take(), [other]);
        }
        gate.tick(now + INTERVAL);
        let mut omitted: Vec<String> = take().iter().map(ToString::to_string).collect();
        omitted.sort();
        assert_eq!(
            omitted,
            [
                "4800 more lines about frameworks of principal noisy in 10 s, which aren't shown",
                "980 more lines about refusals of clients at 10.0.0.1 in 10 s, which aren't shown",
            ]
        );
        gate.tell(&refusal("10.0.0.1"), now + INTERVAL);
        assert_eq!(take(), [refusal("10.0.0.1")]);
    }

    /// Goal: a client with many addresses takes neither memory nor lines without end. Method: refusals of ten thousand
    /// addresses, and of as many that only differ in the last half of an IPv6 address.
    #[test]
    fn sources_are_bounded() {
        let told = Arc::new(Mutex::new(0));
        let telling = Arc::clone(&told);
        let count = move |_: &MasterNotice| *telling.lock().unwrap() += 1;
        let gate = NoticeGate::new(MasterObserver::new(count));
        let now = Duration::from_secs(100);
        for at in 0..10_000 {
            gate.tell(&refusal(&format!("[fd00::{at:x}]")), now);
        }
        assert_eq!(*told.lock().unwrap(), NOTICES_MAX);
        for at in 0..10_000 {
            gate.tell(&refusal(&format!("10.1.{}.{}", at / 250, at % 250)), now);
        }
        assert!(*told.lock().unwrap() <= SOURCES_MAX as u64 + 2 * NOTICES_MAX);
        assert!(gate.sources.borrow().len() <= SOURCES_MAX + 1);
    }
}
