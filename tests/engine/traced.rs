//! What the engine emits with the feature `tracing`.

use std::fmt::{Debug, Write as _};
use std::sync::{Arc, LazyLock, Mutex};
use std::thread::Builder;
use std::time::Duration;

use offermill::TaskState;
use offermill::engine::Notice;
use offermill::engine::cluster_manager::Event;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Metadata, Subscriber};

use crate::Fixture;
use crate::recorder::{Call, update};

/// Keeps each event as a line: its level, its target, its fields and its thread.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

struct Line(String);

/// Parts of events at which the subscriber panics: of the tests about that alone.
const PANICS: [&str; 2] = ["framework_id=traced-P", "timeout=7.007s"];

/// The subscriber of this process, which other tests write to as well.
static LINES: LazyLock<Lines> = LazyLock::new(|| {
    let lines = Lines::default();
    tracing::subscriber::set_global_default(lines.clone()).unwrap();
    lines
});

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, " {}={value:?}", field.name()).unwrap();
    }
}

impl Subscriber for Lines {
    fn enabled(&self, _metadata: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _span: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let metadata = event.metadata();
        let mut line = Line(format!("{} {}", metadata.level(), metadata.target()));
        event.record(&mut line);
        write!(line.0, " on {}", std::thread::current().name().unwrap_or("?")).unwrap();
        let panics = PANICS.iter().any(|part| line.0.contains(part));
        self.0.lock().unwrap().push(line.0);
        assert!(!panics, "traced-panic");
    }

    fn enter(&self, _span: &Id) {}

    fn exit(&self, _span: &Id) {}
}

impl Lines {
    /// Asserts that a line has all these parts.
    #[track_caller]
    fn assert_has(&self, parts: &[&str]) {
        let lines = self.0.lock().unwrap();
        let found = lines.iter().any(|line| parts.iter().all(|part| line.contains(part)));
        assert!(found, "{parts:?}: {lines:#?}");
    }
}

/// Goal: subscriptions, launches, ends, losses, exclusions, failures and the drain are emitted, each at its level, and
/// text from the cluster is printable. Method: one of each; a subscriber for the whole process, which other tests
/// write to as well.
#[test]
fn what_happens_is_emitted() {
    let lines = &*LINES;
    let fixture = Fixture::new(Some(3), |_| {});
    let framework_id = "traced-F".to_owned();
    fixture.cluster.send(Event::Registered { framework_id, again: true });
    let executors = fixture.launch("o1", 3);
    for executor in &executors[..2] {
        fixture.cluster.send(update(executor, TaskState::Failed));
    }
    fixture.cluster.send(Event::AgentLost { agent_id: "traced-\u{1b}[2J".to_owned() });
    fixture.cluster.send(Event::CallFailed { why: "traced-why".to_owned() });
    fixture.cluster.send(Event::Disconnected);
    fixture.notices.wait_for(|notice| matches!(notice, Notice::Disconnected).then_some(()));
    assert!(!fixture.engine.shutdown(Duration::from_millis(20)).drained);

    lines.assert_has(&["INFO offermill message=registered framework_id=traced-F again=true"]);
    lines.assert_has(&[
        "INFO offermill message=placed",
        &executors[0],
        "millicores=1000 memory_mib=128",
    ]);
    lines.assert_has(&["WARN offermill message=ended", &executors[1], "state=Failed fate=Failed"]);
    lines.assert_has(&["WARN offermill message=agent excluded agent_id=S0 remaining_s="]);
    lines.assert_has(&["WARN offermill message=agent lost agent_id=traced-\\u{1b}[2J"]);
    lines.assert_has(&["WARN offermill message=call failed why=traced-why"]);
    lines.assert_has(&["WARN offermill message=disconnected"]);
    lines.assert_has(&["INFO offermill message=drain began timeout=20ms"]);
    lines.assert_has(&["INFO offermill message=drain ended drained=false executors=1"]);
}

/// Goal: a subscriber that panics breaks nothing: notices reach the observer, which is told once, and a shutdown kills
/// all executors. Method: a subscriber that panics at each registration with a certain framework's id, and when a drain
/// begins.
#[test]
fn a_subscriber_that_panics_breaks_nothing() {
    let lines = &*LINES;
    let fixture = Fixture::new(Some(1), |_| {});
    for _ in 0..2 {
        let framework_id = "traced-P".to_owned();
        fixture.cluster.send(Event::Registered { framework_id, again: true });
    }
    let executors = fixture.launch("o1", 1);
    fixture.notices.wait_for(|notice| matches!(notice, Notice::Placed(_)).then_some(()));
    let told = fixture.notices.wait_for_many(1, |notice| match notice {
        Notice::CallFailed { why } => Some(why.clone()),
        _ => None,
    });
    assert_eq!(told, ["a subscriber of `tracing` panicked: traced-panic"]);
    assert_eq!(fixture.engine.broken(), None);
    fixture.cluster.end_when_killed(&executors[0]);
    let report = fixture.engine.shutdown(Duration::from_millis(7_007));
    assert!(report.drained && report.broken.is_none(), "{report:?}");
    let killed = |call: &Call| matches!(call, Call::Kill(_)).then_some(());
    fixture.cluster.wait_for(killed);
    lines.assert_has(&["INFO offermill message=drain began timeout=7.007s"]);
}

/// Goal: an engine that is dropped emits no drain, as it waits for no executor. Method: the events of the thread that
/// drops it.
#[test]
fn a_drop_is_no_drain() {
    let lines = &*LINES;
    let engine = Fixture::new(Some(1), |_| {}).engine;
    let dropping = Builder::new().name("traced-drop".to_owned()).spawn(move || drop(engine));
    dropping.unwrap().join().unwrap();
    let lines = lines.0.lock().unwrap();
    assert!(!lines.iter().any(|line| line.ends_with(" on traced-drop")), "{lines:#?}");
}
