//! Suppress and revive calls.

use offermill::DemandCall::{Revive, Suppress};
use offermill::{ExecutorId, TaskState};

use super::Fixture;
use crate::world::{OfferData, Setup, at};

/// A kernel whose limit of three executors is reached at time 0.
fn full_fixture() -> (Fixture, Vec<ExecutorId>) {
    let mut fixture = Fixture::new(&Setup { limit: Some(3), ..Setup::default() });
    assert_eq!(fixture.kernel.poll_demand(at(0)), None, "offers come by themselves");
    let placed = fixture.offer(&[OfferData::new("S1", 3.0, 300.0)], 0);
    assert_eq!(placed.len(), 3);
    (fixture, placed)
}

/// Goal: suppress is sent once when nothing can be placed; revive is sent once when something can be placed again,
/// however many executors end. Method: all executors end at the same time, twice.
#[test]
fn many_ends_make_one_revive() {
    let (mut fixture, placed) = full_fixture();
    assert_eq!(fixture.kernel.poll_demand(at(1)), Some(Suppress));
    assert_eq!(fixture.kernel.poll_demand(at(2)), None);
    for id in placed {
        fixture.update(id, TaskState::Finished, 10);
    }
    assert_eq!(fixture.kernel.poll_demand(at(10)), Some(Revive));
    assert_eq!(fixture.kernel.poll_demand(at(11)), None);
    let placed = fixture.offer(&[OfferData::new("S1", 3.0, 300.0)], 12);
    assert_eq!(fixture.kernel.poll_demand(at(12)), Some(Suppress));
    for id in placed {
        fixture.update(id, TaskState::Finished, 13);
        assert_eq!(fixture.kernel.poll_demand(at(13)), None, "at most one revive every 5 s");
    }
    assert_eq!(fixture.kernel.poll_demand(at(5_009)), None);
    assert_eq!(fixture.kernel.poll_demand(at(5_010)), Some(Revive));
    assert_eq!(fixture.kernel.poll_demand(at(99_999)), None);
}

/// Goal: offers that arrive while suppressed are declined, and suppress is sent again, at most once per second. Method:
/// offers at the limit, and after the close.
#[test]
fn stray_offers_are_suppressed_again() {
    let (mut fixture, _) = full_fixture();
    assert_eq!(fixture.kernel.poll_demand(at(0)), Some(Suppress));
    fixture.refused_on("S2", 500);
    assert_eq!(fixture.kernel.poll_demand(at(999)), None);
    assert_eq!(fixture.kernel.poll_demand(at(1000)), Some(Suppress));
    assert_eq!(fixture.kernel.poll_demand(at(9000)), None, "no more unwanted offers");
    fixture.kernel.close();
    fixture.refused_on("S2", 9500);
    assert_eq!(fixture.kernel.poll_demand(at(9500)), Some(Suppress));
}

/// Goal: a higher limit and new settings cause a revive, a lower limit doesn't. Method: each.
#[test]
fn demand_follows_the_settings() {
    let (fixture, _) = full_fixture();
    assert_eq!(fixture.kernel.poll_demand(at(0)), Some(Suppress));
    fixture.kernel.set_executor_limit(Some(2)).unwrap();
    assert_eq!(fixture.kernel.poll_demand(at(1)), None);
    fixture.kernel.set_executor_limit(Some(4)).unwrap();
    assert_eq!(fixture.kernel.poll_demand(at(2)), Some(Revive));
    fixture.kernel.reconfigure(Setup::default().config());
    assert_eq!(fixture.kernel.poll_demand(at(5_002)), Some(Revive));
    fixture.kernel.reconfigure(Setup::default().config());
    assert_eq!(fixture.kernel.poll_demand(at(99_999)), None, "nothing changed");
}

/// Goal: a new subscription starts with offers, and suppress is sent again. Method: register while suppressed.
#[test]
fn a_new_subscription_is_told_anew() {
    let (mut fixture, placed) = full_fixture();
    assert_eq!(fixture.kernel.poll_demand(at(0)), Some(Suppress));
    fixture.kernel.registered();
    assert_eq!(fixture.kernel.poll_demand(at(1)), Some(Suppress));
    fixture.kernel.registered();
    fixture.update(placed[0], TaskState::Finished, 2);
    assert_eq!(fixture.kernel.poll_demand(at(2)), None);
    fixture.start_on("S1", 3);
}

/// Goal: refusals that a revive overtook are noticed. Method: a revive between a batch at the limit and the report that
/// its answers were sent; and the same without a revive, where nothing more is due.
#[test]
fn a_revive_that_overtook_refusals_is_repeated() {
    let mut setup = Setup { limit: Some(1), ..Setup::default() };
    setup.revive_interval = std::time::Duration::ZERO;
    let mut fixture = Fixture::new(&setup);
    let placed = fixture.offer(&[OfferData::new("S1", 1.0, 300.0)], 0);
    let resources = [offermill::Resource::scalar("cpus", 1.0)];
    let offers = [offermill::Offer::new("o", "S2", "host", &resources, &[])];
    let (mut handler, mut late) = (fixture.kernel.handler(), offermill::Decisions::new());
    handler.resource_offers(&offers, at(1), &mut late);
    fixture.kernel.answers_sent(&late);
    assert_eq!(fixture.kernel.poll_demand(at(2)), Some(Suppress));
    handler.resource_offers(&offers, at(3), &mut late);
    fixture.update(placed[0], TaskState::Finished, 4);
    assert_eq!(fixture.kernel.poll_demand(at(5)), Some(Revive));
    assert_eq!(fixture.kernel.poll_demand(at(6)), None);
    fixture.kernel.answers_sent(&late);
    assert_eq!(fixture.kernel.poll_demand(at(7)), Some(Revive), "the refusals came after it");
    assert_eq!(fixture.kernel.poll_demand(at(8)), None);
}

/// Goal: refusals under an old policy are noticed, however often the policy has changed since. Method: between a batch
/// and the report that its answers were sent, a multiple of 256 changes, and a revive.
#[test]
fn answers_of_a_policy_long_gone_are_noticed() {
    let setup = Setup { revive_interval: std::time::Duration::ZERO, ..Setup::default() };
    let fixture = Fixture::new(&setup);
    let resources = [offermill::Resource::scalar("cpus", 0.5)];
    let offers = [offermill::Offer::new("o", "S2", "host", &resources, &[])];
    let (mut handler, mut late) = (fixture.kernel.handler(), offermill::Decisions::new());
    handler.resource_offers(&offers, at(1), &mut late);
    for limit in 1..512 {
        fixture.kernel.set_executor_limit(Some(limit)).unwrap();
    }
    fixture.kernel.reconfigure(Setup { memory: 1, ..setup }.config());
    assert_eq!(fixture.kernel.poll_demand(at(2)), Some(Revive));
    fixture.kernel.answers_sent(&late);
    assert_eq!(fixture.kernel.poll_demand(at(2)), Some(Revive), "the refusals came after it");
    assert_eq!(fixture.kernel.poll_demand(at(3)), None);
}

/// Goal: a host that drops the calls of earlier subscriptions gets no call for these that the kernel regards as sent.
/// Method: polls for a subscription that has ended, and for the present one.
#[test]
fn calls_are_for_one_subscription() {
    let fixture = Fixture::new(&Setup { limit: Some(0), ..Setup::default() });
    let first = fixture.kernel.epoch();
    let second = fixture.kernel.registered();
    assert_eq!(fixture.kernel.poll_demand_in(first, at(1)), None);
    assert_eq!(fixture.kernel.poll_demand_in(second, at(1)), Some(Suppress));
    assert_eq!(fixture.kernel.poll_demand_in(second, at(1)), None);
    let third = fixture.kernel.registered();
    assert_eq!(fixture.kernel.poll_demand_in(second, at(1)), None);
    assert_eq!(fixture.kernel.poll_demand_in(third, at(1)), Some(Suppress));
}

/// Goal: a lost revive doesn't end all offers. Method: executors are wanted, and a cluster makes no offers for longer
/// than any refusal; then one that makes offers.
#[test]
fn a_lost_revive_is_repeated() {
    let mut fixture = Fixture::new(&Setup { limit: Some(3), ..Setup::default() });
    let (silence, refusal) = (130_000, 120_000);
    for round in 0..3 {
        let now = round * silence;
        let expected = (round > 0).then_some(Revive);
        assert_eq!(fixture.kernel.poll_demand(at(now)), expected);
        assert_eq!(fixture.kernel.poll_demand(at(now)), None);
        assert_eq!(fixture.kernel.poll_demand(at(now + silence - 1)), None);
    }
    let now = 3 * silence;
    assert!(fixture.offer(&[OfferData::new("S1", 0.1, 1.0)], now - 2).is_empty());
    assert_eq!(fixture.kernel.poll_demand(at(now)), None, "the cluster offers");
    assert_eq!(fixture.kernel.poll_demand(at(now + refusal)), None);
    assert_eq!(fixture.kernel.poll_demand(at(now + silence)), Some(Revive));
}

/// Goal: nothing is due while there is no subscription. Method: a kernel whose limit is reached is disconnected.
#[test]
fn nothing_is_said_while_disconnected() {
    let (fixture, _) = full_fixture();
    fixture.kernel.disconnected();
    assert_eq!(fixture.kernel.poll_demand(at(1)), None);
    assert_eq!(fixture.kernel.poll_demand_in(fixture.kernel.epoch(), at(1)), None);
    fixture.kernel.registered();
    assert_eq!(fixture.kernel.poll_demand(at(2)), Some(Suppress));
}

/// Goal: the wait for offers, after which a revive is repeated, begins anew after a revive and after a time without
/// room. Method: each, shortly before the repetition would be due; it begins with the next poll.
#[test]
fn a_call_and_a_cap_begin_the_wait_for_offers_anew() {
    let (patience, soon) = (130_000, 100_000);
    let fixture = Fixture::new(&Setup { limit: Some(3), ..Setup::default() });
    assert_eq!(fixture.kernel.poll_demand(at(0)), None);
    fixture.kernel.reconfigure(Setup { limit: Some(3), memory: 1, ..Setup::default() }.config());
    assert_eq!(fixture.kernel.poll_demand(at(soon)), Some(Revive));
    assert_eq!(fixture.kernel.poll_demand(at(patience)), None, "as long again");
    fixture.kernel.set_executor_limit(Some(0)).unwrap();
    assert_eq!(fixture.kernel.poll_demand(at(patience + 1)), Some(Suppress));
    assert_eq!(fixture.kernel.poll_demand(at(patience + 2)), None);
    fixture.kernel.set_executor_limit(Some(4)).unwrap();
    assert_eq!(fixture.kernel.poll_demand(at(patience + soon)), Some(Revive));
    assert_eq!(fixture.kernel.poll_demand(at(2 * patience)), None);
    assert_eq!(fixture.kernel.poll_demand(at(3 * patience - 1)), None);
    assert_eq!(fixture.kernel.poll_demand(at(3 * patience)), Some(Revive), "no offer came");
}

/// Goal: one poll with a time far ahead delays later calls by no more than their interval. Method: a suppress and a
/// revive far ahead, then polls at the right time.
#[test]
fn a_jump_of_the_clock_delays_no_call_for_long() {
    let far = 3_000_000_000_000;
    let (mut fixture, placed) = full_fixture();
    assert_eq!(fixture.kernel.poll_demand(at(far)), Some(Suppress));
    fixture.refused_on("S2", 1000);
    assert_eq!(fixture.kernel.poll_demand(at(1000)), Some(Suppress), "offers still arrive");
    for id in placed {
        fixture.update(id, TaskState::Finished, 1000);
    }
    assert_eq!(fixture.kernel.poll_demand(at(far)), Some(Revive));
    fixture.offer(&[OfferData::new("S1", 3.0, 300.0)], 2000);
    fixture.refused_on("S2", 2000);
    let again = |at_ms| fixture.kernel.poll_demand(at(at_ms));
    assert_eq!(again(2000), Some(Suppress));
    fixture.kernel.set_executor_limit(None).unwrap();
    assert_eq!(again(2001), Some(Revive), "it was revived far ahead, not a moment ago");
    assert_eq!(again(far), None, "the watchdog starts far ahead");
    assert_eq!(again(3000), None, "and starts anew here");
    assert_eq!(again(200_000), Some(Revive), "no offer arrives");
}

/// Goal: one tick with a time far ahead doesn't keep agents from being forgotten. Method: such a tick, then an agent
/// that is not offered any more.
#[test]
fn a_jump_of_the_clock_keeps_no_agent() {
    let mut fixture = Fixture::new(&Setup::default());
    fixture.kernel.tick(at(3_000_000_000_000));
    let id = fixture.start_on("S1", 1000);
    fixture.update(id, TaskState::Finished, 1000);
    assert_eq!(fixture.kernel.tick(at(902_000)).agents_forgotten, 1);
}
