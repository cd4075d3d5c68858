//! The future of a drain: no wake-up is lost. This model runs the whole kernel.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use super::scenes::{config, finish, kernel, offer};
use super::{explore, race};
use crate::Fate;
use crate::sync::{Condvar, Mutex, lock};

/// A waker that a model's thread waits for.
#[derive(Default)]
struct Bell {
    has_rung: Mutex<bool>,
    rung: Condvar,
}

impl Wake for Bell {
    fn wake(self: Arc<Bell>) {
        *lock(&self.has_rung) = true;
        self.rung.notify_all();
    }
}

/// Polls a future, each time after its waker was called, until it completes.
fn block_on<F: Future + Unpin>(mut future: F) -> F::Output {
    let bell = Arc::new(Bell::default());
    let waker = Waker::from(Arc::clone(&bell));
    loop {
        if let Poll::Ready(output) = Pin::new(&mut future).poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        let mut has_rung = lock(&bell.has_rung);
        while !*has_rung {
            has_rung = bell.rung.wait(has_rung).unwrap();
        }
        *has_rung = false;
    }
}

/// Goal: the end of the last executor wakes the future that waits for it. Method: the end and a poll at once; a lost
/// wake-up is a deadlock.
#[test]
fn the_last_end_wakes_the_future() {
    explore("drain/end-poll", Some(3), || {
        let kernel = kernel(config());
        let executor = offer(&kernel, 1).remove(0);
        let drained = kernel.drained();
        let here = kernel.clone();
        let ((), report) = race(move || finish(&here, &executor), move || block_on(drained));
        assert!(report.drained);
        assert_eq!(report.executors[0].fate, Fate::Finished);
    });
}
