//! Panics in the manager's tasks: they are reported to the engine, which would otherwise wait for events forever.
//!
//! They are caused by the receiver of events, which is called on the manager's thread; nothing that Mesos sends causes
//! one.

use std::fmt;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use offermill::cluster::mesos::MesosCluster;
use offermill::engine::cluster_manager::{Call as EngineCall, ClusterManager, Event, Events};

use super::master::FakeMaster;
use super::mesos;
use super::script::{Answer, sound};

/// Stores events, but panics on some.
pub(super) struct Brittle {
    is_too_much: fn(&Event) -> bool,
    heard: Mutex<Vec<Event>>,
    more: Condvar,
}

impl Events for Brittle {
    fn send(&self, event: Event) {
        if (self.is_too_much)(&event) {
            panic!("too much for this receiver");
        }
        self.heard.lock().unwrap().push(event);
        self.more.notify_all();
    }
}

impl fmt::Debug for Brittle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Brittle").field("heard", &self.heard).finish_non_exhaustive()
    }
}

impl Brittle {
    pub(super) fn new(is_too_much: fn(&Event) -> bool) -> Arc<Brittle> {
        Arc::new(Brittle { is_too_much, heard: Mutex::default(), more: Condvar::new() })
    }

    /// Waits for the first event for which `find` returns a value.
    #[track_caller]
    pub(super) fn wait<T>(&self, find: impl Fn(&Event) -> Option<T>) -> T {
        let heard = self.heard.lock().unwrap();
        let missing = |heard: &mut Vec<Event>| heard.iter().find_map(&find).is_none();
        let patience = Duration::from_secs(20);
        let (heard, _) = self.more.wait_timeout_while(heard, patience, missing).unwrap();
        heard.iter().find_map(&find).unwrap_or_else(|| panic!("not told: {heard:#?}"))
    }

    fn why_refused(&self) -> String {
        self.wait(|event| match event {
            Event::Refused { why } => Some(why.clone()),
            _ => None,
        })
    }
}

/// Goal: a panic of the subscriber is reported, the subscription ends, and it is reported that the framework wasn't
/// torn down. Method: the receiver panics on the first event of the subscription.
#[test]
fn the_link() {
    let fake = FakeMaster::new(sound);
    let cluster = MesosCluster::new(mesos(&[fake.port()])).unwrap();
    let sink = Brittle::new(|event| matches!(event, Event::Registered { .. }));
    cluster.start(sink.clone()).unwrap();
    let why = sink.why_refused();
    assert!(why.contains("reads events") && why.contains("too much for this receiver"), "{why}");
    let error = cluster.send_message("e", "a", Vec::new()).unwrap_err().to_string();
    assert!(error.contains("there is no subscription now"), "{error}");
    cluster.stop();
    assert!(cluster.why_left().is_some());
}

/// Goal: a panic of a call sender is reported, later calls fail with the right reason, and the framework is torn down
/// nevertheless. Method: the receiver panics on the failure of a call.
#[test]
fn a_lane() {
    let fake = FakeMaster::new(|call| match call.kind.as_str() {
        "REVIVE" => Answer::status("400 Bad Request", "", "no"),
        _ => sound(call),
    });
    let cluster = MesosCluster::new(mesos(&[fake.port()])).unwrap();
    let sink = Brittle::new(|event| matches!(event, Event::CallFailed { .. }));
    cluster.start(sink.clone()).unwrap();
    sink.wait(|event| matches!(event, Event::Registered { .. }).then_some(()));
    cluster.call(EngineCall::Revive { epoch: 1 }).unwrap();
    let why = sink.why_refused();
    assert!(why.contains("sends calls") && why.contains("too much for this receiver"), "{why}");
    let error = cluster.call(EngineCall::Revive { epoch: 1 }).unwrap_err().to_string();
    assert!(error.contains("the manager has ended"), "{error}");
    cluster.stop();
    assert_eq!(fake.calls_of("TEARDOWN").len(), 1);
    assert_eq!(cluster.why_left(), None);
}

/// Goal: calls fail with the right reason after the manager was stopped. Method: a message after the stop.
#[test]
fn after_the_end() {
    let fake = FakeMaster::new(sound);
    let cluster = MesosCluster::new(mesos(&[fake.port()])).unwrap();
    let sink = Brittle::new(|_| false);
    cluster.start(sink.clone()).unwrap();
    sink.wait(|event| matches!(event, Event::Registered { .. }).then_some(()));
    cluster.stop();
    let error = cluster.send_message("e", "a", Vec::new()).unwrap_err().to_string();
    assert!(error.contains("there is no subscription now"), "{error}");
}
