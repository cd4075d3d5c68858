//! Hosts of tasks: which thread adds one, may join it or ends it, and what is said of a former one.

use super::{explore, race};
use crate::kernel::state::host_state::{HostState, HostWord, TaskHostStage};
use crate::sync::AtomicU32;
use crate::sync::Ordering::Relaxed;
use crate::{Hosts, Joined, TaskHost};
use std::sync::Arc;

/// A task joins the host of an agent. Returns the state that it has made.
type Join = fn(&HostWord) -> Option<HostState>;

/// Joins with a load and a store.
fn join_in_two_steps(word: &HostWord) -> Option<HostState> {
    let state = word.state();
    let joined = match state.stage {
        TaskHostStage::None => HostState {
            stage: TaskHostStage::Starting,
            tasks: 1,
            round: state.round + 1,
            joins: state.joins + 1,
        },
        TaskHostStage::Up => HostState { tasks: state.tasks + 1, joins: state.joins + 1, ..state },
        _ => return None,
    };
    word.store(joined);
    Some(joined)
}

/// Two handlers commit the first picks on one agent. The one that adds the host puts a second task of its batch into
/// it, and has it running; the other one's task joins then, or goes elsewhere. A word beside the host stands for the
/// cluster, which must know a host that others join.
fn first_and_first(join: Join) {
    let word = Arc::new(HostWord::new());
    let known = Arc::new(AtomicU32::new(0));
    let handler = || {
        let (word, known) = (Arc::clone(&word), Arc::clone(&known));
        move || {
            let joined = join(&word)?;
            if joined.stage == TaskHostStage::Starting {
                assert!(word.join_again(joined.round), "another batch has the host");
                known.store(joined.round, Relaxed);
                assert!(word.up(joined.round));
                return Some((true, 2));
            }
            assert_eq!(known.load(Relaxed), joined.round, "the cluster doesn't know the host");
            Some((false, 1))
        }
    };
    let (one, other) = race(handler(), handler());
    let both = [one, other];
    let added = both.iter().flatten().filter(|(is_first, _)| *is_first).count();
    assert_eq!(added, 1, "hosts were added");
    let tasks: u32 = both.iter().flatten().map(|(_, tasks)| tasks).sum();
    let expected = HostState { stage: TaskHostStage::Up, tasks, joins: tasks as u16, round: 1 };
    assert_eq!(word.state(), expected);
}

/// Goal: of two first picks on one agent one adds the host; the other one joins a host that the cluster knows, or goes
/// elsewhere, and no task is lost. Method: both at once.
#[test]
fn one_host_is_added() {
    explore("hosts/first-first", None, || first_and_first(HostWord::join));
}

/// Mutant: who adds the host is decided with a load and a store.
#[test]
#[ignore = "mutant"]
fn mutant_added_in_two_steps() {
    explore("mutant hosts/first-first", None, || first_and_first(join_in_two_steps));
}

/// Ends a host that has been idle, if it is. Returns whether it is to end.
type EndIdle = fn(&HostWord) -> bool;

fn end_idle(word: &HostWord) -> bool {
    word.end_unchanged(word.state())
}

/// A host with one task, which ends; then the timer finds the host idle. A new pick at the same time.
fn idle_and_pick(end_idle: EndIdle) {
    let word = Arc::new(HostWord::new());
    let round = word.join().unwrap().round;
    word.up(round);
    let here = Arc::clone(&word);
    let there = Arc::clone(&word);
    let ending = move || {
        here.leave(round).unwrap();
        end_idle(&here)
    };
    let (is_ending, joined) = race(ending, move || there.join().is_some());
    assert!(!(is_ending && joined), "a task is in a host that is being ended");
    let state = word.state();
    let expected = if is_ending { TaskHostStage::Ending } else { TaskHostStage::Up };
    assert_eq!((state.stage, state.tasks), (expected, u32::from(joined)));
    // Nobody joins before its end is reported, and then the next one adds another.
    if is_ending {
        assert_eq!(word.join(), None);
        assert_eq!(word.lost(round), Some(0));
        assert_eq!(word.join().map(|it| (it.stage, it.round)), Some((TaskHostStage::Starting, 2)));
    }
}

/// Goal: a host is ended only if no task is in it, and no task joins a host that is ended. Method: the last task ends
/// and the idle host is ended, while a pick joins.
#[test]
fn a_pick_and_the_idle_end_exclude_each_other() {
    explore("hosts/idle-pick", None, || idle_and_pick(end_idle));
}

/// Mutant: the host is seen idle, and then ended without a comparison.
#[test]
#[ignore = "mutant"]
fn mutant_ended_without_a_comparison() {
    explore("mutant hosts/idle-pick", None, || {
        idle_and_pick(|word| {
            let seen = word.state();
            let is_idle = seen.tasks == 0;
            if is_idle {
                word.store(HostState { stage: TaskHostStage::Ending, ..seen });
            }
            is_idle
        });
    });
}

/// The end of a task is reported.
type Leave = fn(&HostWord, u32) -> Option<u32>;

/// A host of two tasks is lost, which two threads find out, of which one places the first task of the next host; one of
/// its tasks ends at the same time.
fn loss_and_end(leave: Leave) {
    let word = Arc::new(HostWord::new());
    let round = word.join().unwrap().round;
    assert!(word.join_again(round));
    word.up(round);
    let (here, there) = (Arc::clone(&word), Arc::clone(&word));
    let losing = move || (here.lost(round), here.join().map(|it| it.round));
    let ending = move || (leave(&there, round), there.lost(round));
    let ((lost, next), (left, lost_there)) = race(losing, ending);
    assert!(lost.is_some() != lost_there.is_some(), "the loss was found out twice, or never");
    let ended = u32::from(left.is_some());
    assert_eq!(lost.or(lost_there), Some(2 - ended), "a task ended twice, or never");
    let state = word.state();
    assert_eq!(next, Some(2));
    let expected = HostState { stage: TaskHostStage::Starting, tasks: 1, joins: 3, round: 2 };
    assert_eq!(state, expected, "the next host has its own task");
}

/// Goal: the loss of a host is found out once, each of its tasks ends once, by itself or with the host, and what is
/// said of a former host's tasks doesn't count for the next host. Method: as said there.
#[test]
fn a_loss_beside_the_end_of_a_task() {
    explore("hosts/loss-end", None, || loss_and_end(HostWord::leave));
}

/// Mutant: the end of a task counts for whatever host its agent has.
#[test]
#[ignore = "mutant"]
fn mutant_leaves_any_host() {
    explore("mutant hosts/loss-end", None, || {
        loss_and_end(|word, _| {
            let now = word.state();
            word.leave(now.round)
        });
    });
}

/// Two threads look up an agent's host for the first time, and have a task join it.
fn look_up_twice(join: fn(&Hosts) -> Joined) {
    let hosts = Arc::new(Hosts::new());
    let (here, there) = (Arc::clone(&hosts), Arc::clone(&hosts));
    let (one, other) = race(move || join(&here), move || there.join("S1"));
    let firsts = [one, other].into_iter().filter_map(|joined| match joined {
        Joined::First(host) => Some(host),
        Joined::Member(_) | Joined::Elsewhere => None,
    });
    let firsts: Vec<TaskHost> = firsts.collect();
    assert_eq!(firsts.len(), 1, "hosts were added");
    assert_eq!((hosts.stage("S1"), firsts[0].tasks()), (TaskHostStage::Starting, 1));
    assert_eq!((firsts[0].lost(), hosts.stage("S1")), (Some(1), TaskHostStage::None));
}

/// Goal: an agent has one word, whichever thread asks first. Method: two threads join the host of an agent that is new.
#[test]
fn an_agent_has_one_word() {
    explore("hosts/look-up", None, || look_up_twice(|hosts| hosts.join("S1")));
}

/// Mutant: a thread makes a word of its own.
#[test]
#[ignore = "mutant"]
fn mutant_a_word_of_its_own() {
    explore("mutant hosts/look-up", None, || look_up_twice(|_| Hosts::new().join("S1")));
}
