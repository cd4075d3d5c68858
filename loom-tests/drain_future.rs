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

impl Bell {
    fn wait(&self) {
        let mut has_rung = lock(&self.has_rung);
        while !*has_rung {
            has_rung = self.rung.wait(has_rung).unwrap();
        }
        *has_rung = false;
    }
}

fn poll<F: Future + Unpin>(future: &mut F, bell: &Arc<Bell>) -> Poll<F::Output> {
    let waker = Waker::from(Arc::clone(bell));
    Pin::new(future).poll(&mut Context::from_waker(&waker))
}

/// Polls a future, each time after its waker was called, until it completes.
fn block_on<F: Future + Unpin>(mut future: F) -> F::Output {
    let bell = Arc::new(Bell::default());
    loop {
        if let Poll::Ready(output) = poll(&mut future, &bell) {
            return output;
        }
        bell.wait();
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

/// Goal: all futures are woken, each by its last waker. Method: the end of the last executor, while another thread
/// polls two futures, one of them with a waker that it replaces; what is not woken is a deadlock.
#[test]
fn the_last_end_wakes_every_future() {
    explore("drain/end-poll-both", Some(2), || {
        let kernel = kernel(config());
        let executor = offer(&kernel, 1).remove(0);
        let mut futures = [kernel.drained(), kernel.drained()];
        let bells = [(); 2].map(|()| Arc::new(Bell::default()));
        let here = kernel.clone();
        let ((), reports) = race(
            move || finish(&here, &executor),
            move || {
                let former = Arc::new(Bell::default());
                drop(poll(&mut futures[0], &former));
                let [first, second] = &mut futures;
                [(first, &bells[0]), (second, &bells[1])]
                    .map(|(future, bell)| poll(future, bell).is_pending().then_some((future, bell)))
                    .map(|waiting| {
                        waiting.is_none_or(|(future, bell)| {
                            bell.wait();
                            poll(future, bell).is_ready()
                        })
                    })
            },
        );
        assert_eq!(reports, [true, true]);
    });
}
