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
pub(super) struct EventRecorder {
    panics_on: fn(&Event) -> bool,
    events: Mutex<Vec<Event>>,
    more: Condvar,
}

impl Events for EventRecorder {
    fn send(&self, event: Event) {
        if (self.panics_on)(&event) {
            panic!("too much for this receiver");
        }
        self.events.lock().unwrap().push(event);
        self.more.notify_all();
    }
}

impl fmt::Debug for EventRecorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventRecorder").field("events", &self.events).finish_non_exhaustive()
    }
}

impl EventRecorder {
    pub(super) fn new(panics_on: fn(&Event) -> bool) -> Arc<EventRecorder> {
        Arc::new(EventRecorder { panics_on, events: Mutex::default(), more: Condvar::new() })
    }

    /// Waits for the first event for which `find` returns a value.
    #[track_caller]
    pub(super) fn wait<T>(&self, find: impl Fn(&Event) -> Option<T>) -> T {
        let events = self.events.lock().unwrap();
        let missing = |events: &mut Vec<Event>| events.iter().find_map(&find).is_none();
        let patience = Duration::from_secs(20);
        let (events, _) = self.more.wait_timeout_while(events, patience, missing).unwrap();
        events.iter().find_map(&find).unwrap_or_else(|| panic!("not received: {events:#?}"))
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
fn a_panicking_subscriber_is_reported() {
    let fake = FakeMaster::new(sound);
    let cluster = MesosCluster::new(mesos(&[fake.port()])).unwrap();
    let sink = EventRecorder::new(|event| matches!(event, Event::Registered { .. }));
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
fn a_panicking_call_sender_is_reported() {
    let fake = FakeMaster::new(|call| match call.kind.as_str() {
        "REVIVE" => Answer::status("400 Bad Request", "", "no"),
        _ => sound(call),
    });
    let cluster = MesosCluster::new(mesos(&[fake.port()])).unwrap();
    let sink = EventRecorder::new(|event| matches!(event, Event::CallFailed { .. }));
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
fn calls_after_the_stop_fail() {
    let fake = FakeMaster::new(sound);
    let cluster = MesosCluster::new(mesos(&[fake.port()])).unwrap();
    let sink = EventRecorder::new(|_| false);
    cluster.start(sink.clone()).unwrap();
    sink.wait(|event| matches!(event, Event::Registered { .. }).then_some(()));
    cluster.stop();
    let error = cluster.send_message("e", "a", Vec::new()).unwrap_err().to_string();
    assert!(error.contains("there is no subscription now"), "{error}");
}
