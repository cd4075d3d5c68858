//! Polls, ticks and reports: they write no line that a batch reads.

use super::scenes::{NOW, Scene, Size, after, config};
use crate::DemandCall;
use crate::kernel::lines::{LINE, SharedWord, WordAddresses};
use crate::sync::counting::{Write, record_writes};

/// The words that each batch or update reads.
const READ: [SharedWord; 8] = [
    SharedWord::Admission,
    SharedWord::Policy,
    SharedWord::Settings,
    SharedWord::Gpus,
    SharedWord::Agent,
    SharedWord::Executor,
    SharedWord::Stack,
    SharedWord::Own(0),
];

fn assert_apart(scene: &Scene, what: &str, writes: &[Write]) {
    let lines = WordAddresses::of(&scene.kernel, &[&scene.handler]);
    let pair = |address: usize| address / (2 * LINE);
    for write in writes {
        let word = lines.word(write.address);
        let named = matches!(word, SharedWord::Timers | SharedWord::Demand);
        assert!(named, "{what} wrote {word:?} at {:x}", write.address);
        for read in READ {
            let mut places = lines.places(read);
            let shared = places.find(|place| {
                pair(place.start) <= pair(write.address)
                    && pair(write.address) <= pair(place.end - 1)
            });
            assert!(shared.is_none(), "{what} wrote {word:?} on a line with {read:?}");
        }
    }
}

/// Goal: a thread that polls, ticks and reports costs handlers no line, however often it does so. Method: each of these
/// calls, with and without room, executors and other activity; all that is written is the demand word (when a call is
/// due) and words of their own.
#[test]
fn timers_and_reports_write_no_line_that_batches_read() {
    for limit in [None, Some(4)] {
        let mut scene = Scene::new(config().executor_limit(limit));
        scene.warm_up(Size::of(4, 1));
        scene.offer(Size::of(4, 1), NOW);
        for seconds in [0, 1, 30, 90, 200] {
            let now = after(seconds);
            let kernel = scene.kernel.clone();
            assert_apart(&scene, "a poll", &record_writes(|| drop(kernel.poll_demand(now))));
            assert_apart(&scene, "a tick", &record_writes(|| drop(kernel.tick(now))));
            assert_apart(&scene, "totals", &record_writes(|| drop(kernel.totals())));
            assert_apart(&scene, "counts", &record_writes(|| drop(kernel.offer_counts())));
            let small = Size { memory: 0.0, ..Size::of(4, 1) };
            scene.offer(small, now);
        }
    }
}

/// Goal: a poll that returns nothing writes almost nothing. Method: a poll without room after the one that suppressed,
/// and polls with room: at most the counters' lock and the watchdog's time.
#[test]
fn a_poll_with_nothing_to_say_writes_little() {
    let scene = Scene::new(config().executor_limit(Some(0)));
    assert_eq!(scene.kernel.poll_demand(NOW), Some(DemandCall::Suppress));
    let quiet = record_writes(|| assert_eq!(scene.kernel.poll_demand(after(1)), None));
    assert!(scene.count(&quiet).get(&SharedWord::Timers).is_none_or(|count| count.writes <= 1));
    assert!(!scene.count(&quiet).contains_key(&SharedWord::Demand));
    let mut scene = Scene::new(config());
    scene.offer(Size { memory: 0.0, ..Size::of(4, 1) }, NOW);
    let open = record_writes(|| assert_eq!(scene.kernel.poll_demand(after(1)), None));
    let counts = scene.count(&open);
    assert!(counts.keys().all(|word| *word == SharedWord::Timers), "{counts:?}");
    assert!(counts[&SharedWord::Timers].writes <= 3, "{counts:?}");
}
