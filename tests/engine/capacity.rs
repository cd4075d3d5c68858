//! The picture of the cluster's capacity beside a running engine.

#[path = "../support/eventually.rs"]
mod eventually;

use std::time::Duration;

use offermill::TaskState;

use crate::Fixture;
use crate::recorder::update;
use eventually::eventually;

/// Goal: a host asks a running engine for pictures, which follow what the engine does. Method: an offer with room for
/// five executors, of which two are placed, and the end of one, with the time of the engine's clock.
#[test]
fn a_host_asks_for_pictures() {
    let fixture = Fixture::new(Some(2), |_| {});
    let executors = fixture.launch("o1", 5);
    let used_and_free = || {
        let capacity = fixture.engine.kernel().capacity(fixture.engine.clock().now());
        let sums = capacity.sums();
        (sums.used.cores.whole_cores(), sums.free.cores.whole_cores())
    };
    assert_eq!(used_and_free(), (2, 3));
    fixture.cluster.send(update(&executors[0], TaskState::Finished));
    eventually(Duration::from_secs(20), "a core that is free again", || match used_and_free() {
        (1, 4) => Ok(()),
        other => Err(format!("{other:?}")),
    });
}
