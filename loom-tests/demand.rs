//! Suppress and revive: no revive is lost, whatever overtakes it, and none is returned twice.

use std::time::Duration;

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};

use super::scenes::{
    LATER, NOW, STILL_LATER, config, finish, kernel, offer, offer_of, offer_to, update,
    used_handler,
};
use super::{explore, race};
use crate::config::ExclusionRule;
use crate::kernel::state::admission::{Admission, ReleaseCounter};
use crate::kernel::state::demand::{DemandCall, DemandState};
use crate::resources::MilliCpus;
use crate::{Config, Constraint, Decisions, Handler, Kernel, TaskState};

const CORE: MilliCpus = MilliCpus::from_cores(1);

type Words = (Admission, DemandState);

fn has_room(words: &Words) -> bool {
    words.0.load().executors() == 0
}

fn poll(words: &Words) -> Option<DemandCall> {
    let mut calls = words.1.lock();
    calls.poll(has_room(words), Duration::ZERO, NOW)
}

/// The word is full. One thread polls by `poll`; the other releases and polls by it.
fn suppress_and_release(poll: fn(&Words) -> Option<DemandCall>) {
    let words = Arc::new((Admission::new(), DemandState::new()));
    words.0.commit(words.0.load(), 1, CORE).unwrap();
    let (here, there) = (Arc::clone(&words), Arc::clone(&words));
    let calls = race(
        move || {
            here.0.release(ReleaseCounter::SHARED, 1, CORE);
            poll(&here)
        },
        move || poll(&there),
    );
    assert_eq!(poll(&words), None, "room, and nobody said so: {calls:?}");
}

/// Goal: room that appears while a poll suppresses is not missed. Method: both at once. In the end there is room, so a
/// further poll must have nothing to return.
#[test]
fn no_revive_is_lost() {
    explore("demand/suppress-release", None, || suppress_and_release(poll));
}

/// Mutant: the caps are checked before the lock is taken.
#[test]
#[ignore = "mutant"]
fn mutant_look_before_the_lock() {
    explore("mutant demand/suppress-release", None, || {
        suppress_and_release(|words| {
            let has_room = has_room(words);
            words.1.lock().poll(has_room, Duration::ZERO, NOW)
        });
    });
}

fn two_polls(poll: fn(&DemandState) -> Option<DemandCall>) {
    let demand = Arc::new(DemandState::new());
    assert_eq!(demand.lock().poll(false, Duration::ZERO, NOW), Some(DemandCall::Suppress));
    let (here, there) = (Arc::clone(&demand), Arc::clone(&demand));
    let (one, other) = race(move || poll(&here), move || poll(&there));
    assert!(one.is_some() ^ other.is_some(), "{one:?} and {other:?}");
}

/// Goal: two polls at once return one revive. Method: both after a suppression, with room.
#[test]
fn two_polls_give_one_revive() {
    explore("demand/poll-poll", None, || {
        two_polls(|demand| demand.lock().poll(true, Duration::ZERO, NOW));
    });
}

/// Mutant: checks whether it is suppressed, then takes the lock.
#[test]
#[ignore = "mutant"]
fn mutant_revive_in_two_steps() {
    explore("mutant demand/poll-poll", None, || {
        two_polls(|demand| {
            if !demand.suppressed() {
                return None;
            }
            demand.request_revive();
            demand.lock().poll(true, Duration::ZERO, NOW)
        });
    });
}

/// At the limit an executor ends and another is placed, while `poll` polls.
fn poll_and_refill(poll: fn(&Kernel) -> Option<DemandCall>) {
    let kernel = kernel(config().executor_limit(Some(1)));
    let executor = offer(&kernel, 1).remove(0);
    let (here, there) = (kernel.clone(), kernel.clone());
    let (placed, call) = race(
        move || {
            finish(&here, &executor);
            offer(&here, 1).len()
        },
        move || poll(&there),
    );
    assert_eq!(placed, 1);
    let suppressed = kernel.0.demand.suppressed();
    assert_eq!(call == Some(DemandCall::Suppress), suppressed, "recorded and not said: {call:?}");
}

/// Goal: a suppression that is recorded is returned. Method: a poll at the limit, while room appears and is used again;
/// at the end the kernel is recorded as suppressed if the poll returned so.
#[test]
fn what_is_recorded_is_said() {
    explore("demand/poll-refill", Some(3), || poll_and_refill(|kernel| kernel.poll_demand(NOW)));
}

/// Mutant: a poll that has suppressed checks the caps again and, if there is room, returns what is due then.
#[test]
#[ignore = "mutant"]
fn mutant_second_look_forgets() {
    explore("mutant demand/poll-refill", Some(3), || {
        poll_and_refill(|kernel| {
            let call = kernel.poll_demand(NOW);
            if call.is_some() && kernel.wanted() > 0 { kernel.poll_demand(NOW) } else { call }
        });
    });
}

/// Two threads poll by `poll` at the limit, one of them after the executor has ended.
fn two_drivers(poll: fn(&Kernel) -> Option<DemandCall>) {
    let kernel = kernel(config().executor_limit(Some(1)).revive_interval(Duration::ZERO));
    let executor = offer(&kernel, 1).remove(0);
    let (here, there) = (kernel.clone(), kernel.clone());
    let (one, other) = race(
        move || {
            finish(&here, &executor);
            poll(&here)
        },
        move || poll(&there),
    );
    // The batch that reached the limit had offers refused, so that a revive is due in any case.
    let revives = [one, other].into_iter().filter(|call| *call == Some(DemandCall::Revive));
    assert_eq!(revives.count(), 1, "{one:?} and {other:?}");
    assert_ne!(one, Some(DemandCall::Suppress), "it came after the end");
    assert_eq!(kernel.poll_demand(NOW), None, "all was said: {one:?} and {other:?}");
}

/// Goal: concurrent polls together return what one would. Method: an end and a poll in each of two threads, at the
/// limit.
#[test]
fn two_drivers_say_what_one_would() {
    explore("demand/two-drivers", Some(3), || two_drivers(|kernel| kernel.poll_demand(NOW)));
}

/// Mutant: the caps are checked before the lock is taken.
#[test]
#[ignore = "mutant"]
fn mutant_drivers_look_before_the_lock() {
    explore("mutant demand/two-drivers", Some(3), || {
        two_drivers(|kernel| {
            let has_room = kernel.wanted() > 0;
            kernel.0.demand.lock().poll(has_room, Duration::ZERO, NOW)
        });
    });
}

/// The connection to the cluster, which orders calls: a call that is sent gets its position.
type Way = AtomicU64;

fn send(way: &Way) -> u64 {
    way.fetch_add(1, Ordering::AcqRel)
}

/// Answers an offer through a handler and sends the answer by `tell`. Returns the position of the refusal, if it was
/// one.
fn refuse(
    kernel: &Kernel,
    handler: &mut Handler,
    way: &Way,
    tell: fn(&Kernel, &Decisions, &Way) -> u64,
) -> Option<u64> {
    let mut decisions = Decisions::new();
    offer_of("S0", 1, |offers| handler.resource_offers(offers, NOW, &mut decisions));
    let sent = tell(kernel, &decisions, way);
    (decisions.executors() == 0).then_some(sent)
}

fn send_then_tell(kernel: &Kernel, decisions: &Decisions, way: &Way) -> u64 {
    let sent = send(way);
    kernel.answers_sent(decisions);
    sent
}

fn tell_then_send(kernel: &Kernel, decisions: &Decisions, way: &Way) -> u64 {
    kernel.answers_sent(decisions);
    send(way)
}

/// A refusal is sent by `tell`, while `welcome` makes such offers wanted and a revive is sent if one is due. If the
/// refusal was sent last, another revive must be due.
fn refusal_and_revive(
    kernel: Kernel,
    mut handler: Handler,
    tell: fn(&Kernel, &Decisions, &Way) -> u64,
    welcome: impl FnOnce(&Kernel) + 'static,
) {
    let way = Arc::new(Way::new(0));
    let (here, there) = ((kernel.clone(), Arc::clone(&way)), (kernel.clone(), way));
    let (refused, revived) = race(
        move || refuse(&here.0, &mut handler, &here.1, tell),
        move || {
            welcome(&there.0);
            (there.0.poll_demand(LATER) == Some(DemandCall::Revive)).then(|| send(&there.1))
        },
    );
    let due = kernel.poll_demand(STILL_LATER) == Some(DemandCall::Revive);
    if let Some(refused) = refused {
        assert!(due || revived.is_some_and(|revived| revived > refused), "refused for good");
        assert_eq!(kernel.poll_demand(STILL_LATER), None, "one revive is enough");
    }
}

fn at_the_limit(tell: fn(&Kernel, &Decisions, &Way) -> u64) {
    let kernel = kernel(config().executor_limit(Some(1)).revive_interval(Duration::ZERO));
    let mut handler = used_handler(&kernel);
    let executor = offer(&kernel, 1).remove(0);
    // It keeps the answer, so that the batch of the race is answered by that, or finds that it doesn't hold.
    assert!(offer_to(&mut handler, "S0", 1).is_empty());
    assert_eq!(kernel.poll_demand(NOW), Some(DemandCall::Suppress));
    refusal_and_revive(kernel, handler, tell, move |kernel| finish(kernel, &executor));
}

/// Goal: a refusal at a cap that overtakes the revive is followed by another revive. Method: an offer is refused while
/// the executor ends that used the last room.
#[test]
fn a_refusal_at_a_cap_is_not_for_good() {
    explore("demand/refuse-revive", None, || at_the_limit(send_then_tell));
}

/// Mutant: the kernel is told that the answers were sent before they are.
#[test]
#[ignore = "mutant"]
fn mutant_told_too_soon() {
    explore("mutant demand/refuse-revive", None, || at_the_limit(tell_then_send));
}

/// Like [`at_the_limit`], after a revive in the same millisecond as the next one.
fn soon_after_a_revive(tell: fn(&Kernel, &Decisions, &Way) -> u64) {
    let kernel = kernel(config().executor_limit(Some(1)).revive_interval(Duration::ZERO));
    let first = offer(&kernel, 1).remove(0);
    assert_eq!(kernel.poll_demand(LATER), Some(DemandCall::Suppress));
    finish(&kernel, &first);
    assert_eq!(kernel.poll_demand(LATER), Some(DemandCall::Revive));
    let executor = offer(&kernel, 1).remove(0);
    assert_eq!(kernel.poll_demand(LATER), Some(DemandCall::Suppress));
    let handler = kernel.handler();
    refusal_and_revive(kernel, handler, tell, move |kernel| finish(kernel, &executor));
}

/// Goal: two revives in one millisecond are distinct: a refusal that is sent after the second one isn't related to the
/// first. Method: a refusal at the limit, as above, between two revives at one time.
#[test]
fn two_revives_in_a_millisecond_differ() {
    explore("demand/revive-revive", Some(3), || soon_after_a_revive(send_then_tell));
}

/// Mutant: the kernel is told that the answers were sent before they are.
#[test]
#[ignore = "mutant"]
fn mutant_told_too_soon_between_revives() {
    explore("mutant demand/revive-revive", Some(3), || soon_after_a_revive(tell_then_send));
}

/// Settings with a constraint that the agent doesn't meet, and the same without it.
fn settings(constraint: &str) -> Config {
    let constraint = Constraint::parse(constraint).unwrap();
    config().revive_interval(Duration::ZERO).constraint(constraint).build().unwrap()
}

fn under_a_constraint(tell: fn(&Kernel, &Decisions, &Way) -> u64) {
    let kernel = kernel(config());
    kernel.reconfigure(settings("zone:a"));
    assert_eq!(kernel.poll_demand(NOW), Some(DemandCall::Revive));
    let handler = kernel.handler();
    refusal_and_revive(kernel, handler, tell, |kernel| kernel.reconfigure(settings("")));
}

/// Goal: a refusal under an old policy that overtakes the new one's revive is followed by another revive. Method: an
/// offer is refused for a constraint that is removed.
#[test]
fn a_refusal_under_an_old_policy_is_not_for_good() {
    explore("demand/refuse-reconfigure", Some(3), || under_a_constraint(send_then_tell));
}

/// Mutant: the kernel is told that the answers were sent before they are.
#[test]
#[ignore = "mutant"]
fn mutant_told_too_soon_of_old_answers() {
    explore("mutant demand/refuse-reconfigure", Some(3), || under_a_constraint(tell_then_send));
}

/// An offer of an excluded agent is refused while `readmit` readmits the agent.
fn of_an_excluded_agent(tell: fn(&Kernel, &Decisions, &Way) -> u64, readmit: fn(&Kernel)) {
    let rule = ExclusionRule { failures: 1, expiry: None, ..ExclusionRule::default() };
    let kernel = kernel(config().exclusion(Some(rule)).revive_interval(Duration::ZERO));
    let executor = offer(&kernel, 1).remove(0);
    assert!(update(&kernel, &executor, TaskState::Failed).excluded.is_some());
    assert_eq!(kernel.poll_demand(NOW), None);
    let handler = kernel.handler();
    refusal_and_revive(kernel, handler, tell, readmit);
}

/// Goal: a refusal of an excluded agent that overtakes the revive of its readmission is followed by another revive.
/// Method: an offer of the agent is refused while it is readmitted.
#[test]
fn a_refusal_before_a_readmission_is_not_for_good() {
    explore("demand/refuse-readmit", Some(3), || {
        of_an_excluded_agent(send_then_tell, |kernel| {
            assert!(kernel.readmit_agent("S0", NOW));
        });
    });
}

/// Mutant: a readmission only requests a revive, so that answers from before it don't request another.
#[test]
#[ignore = "mutant"]
fn mutant_readmission_without_a_number() {
    explore("mutant demand/refuse-readmit", Some(3), || {
        of_an_excluded_agent(send_then_tell, |kernel| {
            assert!(kernel.0.agents.readmit("S0", NOW));
            kernel.0.demand.request_revive();
        });
    });
}
