//! Journals: changes of the settings and the close are replayed at their places.

use std::sync::Arc;
use std::time::Duration;

use offermill::engine::cluster_manager::Event;
use offermill::engine::journal::{JournalEntry, Operation};
use offermill::resources::Mebibytes;

use crate::journal::{Tape, kernel, play, start};
use crate::recorder::{Call, Notices, Recorder, offer};

/// Goal: settings and wanted hosts that are changed through the engine are on record, and replayed at their places.
/// Method: the memory overhead is changed, then the hosts, with offers after each; without either entry, the
/// journal isn't replayed.
#[test]
fn changed_settings_are_replayed() {
    let cluster = Arc::new(Recorder::default());
    let notices = Notices::default();
    let tape = Tape::default();
    let engine = start(&cluster, &notices, tape.clone(), false);
    cluster.send(Event::Registered { framework_id: "F".to_owned(), again: false });
    let larger = engine.kernel().config().to_builder().memory_overhead(Some(Mebibytes::new(500)));
    engine.reconfigure(larger.build().unwrap());
    cluster.send(Event::Offers(vec![offer("o1", "S0", 1)]));
    assert_eq!(cluster.declined_when(1)[0].0, "o1", "too small now");
    let waiting = kernel().config().to_builder().locality_wait(Some(Duration::from_secs(600)));
    engine.reconfigure(waiting.build().unwrap());
    engine.set_locality(&["host-of-S2"]);
    cluster.send(Event::Offers(vec![offer("o2", "S1", 1)]));
    assert_eq!(cluster.declined_when(2)[1].0, "o2", "another host is wanted");
    engine.shutdown(Duration::ZERO);
    let entries = tape.entries();
    play(&entries).unwrap();
    let changes: [fn(&Operation) -> bool; 2] = [
        |operation| matches!(operation, Operation::Reconfigured(_)),
        |operation| matches!(operation, Operation::Locality(_)),
    ];
    for is_left_out in changes {
        let others = entries.iter().filter(|entry| !is_left_out(&entry.operation)).cloned();
        assert!(play(&others.collect::<Vec<_>>()).is_err());
    }
}

/// Goal: a close is on record before the first operation that it acts on, whether the engine or the kernel itself is
/// asked for it. Method: close by each, with an executor running and an offer declined
/// afterwards, and play the journal.
#[test]
fn a_close_is_replayed() {
    for by_kernel in [false, true] {
        let cluster = Arc::new(Recorder::default());
        let notices = Notices::default();
        let tape = Tape::default();
        let engine = start(&cluster, &notices, tape.clone(), false);
        cluster.send(Event::Registered { framework_id: "F".to_owned(), again: false });
        cluster.send(Event::Offers(vec![offer("o1", "S0", 1)]));
        cluster.wait_for(|call| matches!(call, Call::Accept { .. }).then_some(()));
        let left = if by_kernel { engine.kernel().close() } else { engine.close() };
        assert_eq!(left.len(), 1);
        assert!(by_kernel || engine.close() == left, "closing again tells the same");
        cluster.send(Event::Offers(vec![offer("o2", "S1", 1)]));
        let declined = cluster.declined_when(1);
        assert_eq!(declined[0].0, "o2");
        engine.shutdown(Duration::ZERO);
        let entries = tape.entries();
        let closes = |entry: &&JournalEntry| matches!(entry.operation, Operation::Close);
        assert_eq!(entries.iter().filter(closes).count(), 1, "by the kernel: {by_kernel}");
        play(&entries).unwrap();
    }
}
