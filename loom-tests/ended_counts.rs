//! Ends that updaters count beside the agents' cells.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering};

use super::agents::{NOW, one_agent};
use super::drain::end_across_the_close;
use super::scenes::finish_by_updater;
use super::{explore, race};
use crate::kernel::state::admission::{Admission, ReleaseCounter};
use crate::kernel::state::agents::AgentTable;
use crate::limits::EXECUTORS_PER_AGENT_MAX;

/// The counter of the first updater.
fn counter() -> ReleaseCounter {
    Admission::new().take_counter()
}

/// Goal: an agent never seems to have fewer executors than live there. Method: an executor lives there all the time;
/// another one comes and ends by an updater, while another thread counts the agent's executors and the room for more.
#[test]
fn no_live_executor_is_missed() {
    explore("ended/count", None, || {
        let (agents, key) = one_agent();
        agents.reserve(key, 1, NOW).unwrap();
        let (here, there) = (Arc::clone(&agents), Arc::clone(&agents));
        let ((), (count, room)) = race(
            move || {
                here.reserve(key, 1, NOW).unwrap();
                here.count_ended(key.index(), counter());
            },
            move || (there.executors(key), there.capacity(key, NOW).unwrap().executors),
        );
        assert!((1..=2).contains(&count), "{count}");
        assert!((EXECUTORS_PER_AGENT_MAX - 2..EXECUTORS_PER_AGENT_MAX).contains(&room.into()));
        assert_eq!(agents.executors(key), 1);
    });
}

/// Goal: an agent that is full takes one executor for each that has ended. Method: one ends by an updater, and two
/// threads place one each.
#[test]
fn an_end_makes_room_for_one() {
    explore("ended/full", None, || {
        let (agents, key) = one_agent();
        agents.reserve(key, EXECUTORS_PER_AGENT_MAX, NOW).unwrap();
        let (here, there) = (Arc::clone(&agents), Arc::clone(&agents));
        let place = move |agents: &AgentTable| u32::from(agents.reserve(key, 1, NOW).is_ok());
        let (one, other) = race(
            move || {
                here.count_ended(key.index(), counter());
                place(&here)
            },
            move || place(&there),
        );
        assert_eq!(one + other, 1);
        assert_eq!(agents.executors(key), EXECUTORS_PER_AGENT_MAX);
    });
}

/// Goal: a thread that forgets an agent sees what was done before the end of its last executor. Method: an updater's
/// end and an attempt to forget the agent at once; a third word is written before the end.
#[test]
fn who_forgets_an_agent_sees_its_executors_ends() {
    explore("ended/retire", None, || {
        let (agents, key) = one_agent();
        agents.reserve(key, 1, NOW).unwrap();
        let done = Arc::new(AtomicU32::new(0));
        let (here, there, does) = (Arc::clone(&agents), Arc::clone(&agents), Arc::clone(&done));
        let ((), (retired, seen)) = race(
            move || {
                does.store(1, Ordering::Relaxed);
                here.count_ended(key.index(), counter());
            },
            move || (there.retire(key, NOW), done.load(Ordering::Relaxed)),
        );
        assert!(!retired || seen == 1);
        assert_eq!(retired, !agents.retire(key, NOW), "forgotten once");
        assert_eq!(agents.executors(key), 0);
    });
}

/// Goal: updaters lose no end, though each writes the count of its own counter without a read-modify-write. Method: one
/// ends an executor and is dropped while another one is made, which takes the first one's counter or the shared one,
/// and ends an executor of the same agent.
#[test]
fn a_counter_that_is_handed_on_loses_no_end() {
    explore("ended/handover", None, || {
        let (agents, key) = one_agent();
        agents.reserve(key, 2, NOW).unwrap();
        let admission = Arc::new(Admission::new());
        let first = admission.take_counter();
        let (here, there) = (Arc::clone(&agents), Arc::clone(&agents));
        let (admits, gives) = (Arc::clone(&admission), admission);
        race(
            move || {
                here.count_ended(key.index(), first);
                gives.return_counter(first);
            },
            move || {
                let second = admits.take_counter();
                there.used_counters.add(second);
                there.count_ended(key.index(), second);
            },
        );
        assert_eq!(agents.executors(key), 0);
    });
}

/// Goal: an executor that an updater has ended is reported with its own agent, even if that is forgotten before the
/// close and the executor's resources are released after it. Method: all at once.
#[test]
fn an_updaters_end_across_the_close_is_named_right() {
    explore("drain/updater-sweep-close", Some(2), || end_across_the_close(finish_by_updater));
}
