//! Offers that are refused because of a claim that is given back.

use super::*;
use crate::config::Queue;
use crate::{Change, DemandCall, Handler, IdScheme, Kernel, Offer, Picks, Resource, Scope};
use crate::{StatusUpdate, Task, TaskState, Timestamp};

const ETL: QueueId = QueueId::new(1);
const ONE: QueueAmount = QueueAmount::new(MilliCpus::from_cores(1), Mebibytes::new(1));

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_millis(seconds * 1000)
}

/// Executors of one core in a queue with room for one of them.
fn kernel() -> Kernel {
    let etl = Queue::new("etl").max_cores(Some(MilliCpus::from_cores(1)));
    let config = Config::builder().queue(etl).executor_queue(ETL);
    Kernel::new(config.build().unwrap(), IdScheme::unique("q", 1).unwrap())
}

/// Claims the only room, as a batch of another thread does.
fn claim(kernel: &Kernel) {
    let queues = kernel.0.queues.get().unwrap();
    queues.claim(&kernel.config(), ETL, ONE).unwrap();
}

fn offer(handler: &mut Handler, is_picked: bool, now: Timestamp) -> Decisions {
    let mut decisions = Decisions::new();
    let resources = [Resource::scalar("cpus", 1.0), Resource::scalar("mem", 9000.0)];
    let offers = [Offer::new("o", "S1", "host", &resources, &[])];
    if is_picked {
        let mut picks = Picks::new();
        picks.push(0, Task::new(1, ONE.cores, ONE.memory).in_queue(ETL));
        handler.propose(&offers, now).commit(&picks, now, &mut decisions);
    } else {
        handler.resource_offers(&offers, now, &mut decisions);
    }
    decisions
}

/// Goal: offers that were refused because of a claim that another batch gives back are asked for again, also if they
/// were refused after the revive. Method: such a claim beside a batch of either kind; a revive that is sent before the
/// answers are.
#[test]
fn refusals_for_claims_that_are_given_back_are_revived() {
    for is_picked in [false, true] {
        let kernel = kernel();
        let mut handler = kernel.handler();
        claim(&kernel);
        let decisions = offer(&mut handler, is_picked, at(10));
        let reason = decisions.declines()[0].reason;
        assert!(matches!(reason, Reason::QueueCores { .. }), "{reason}");
        assert_eq!(kernel.poll_demand(at(10)), None, "the queue is full");
        kernel.0.give_back_claim(Some(ETL), ONE);
        assert_eq!(kernel.poll_demand(at(20)), Some(DemandCall::Revive));
        kernel.answers_sent(&decisions);
        assert_eq!(kernel.poll_demand(at(30)), Some(DemandCall::Revive));
        kernel.0.give_back_claim(None, ONE);
        assert_eq!(kernel.poll_demand(at(40)), None, "nothing was refused since");
        kernel.check().unwrap();
    }
}

/// Goal: a claim that is given back while a batch is answered is noticed by that batch. Method: a batch of executors
/// that is planned before a claim is given back, and refuses offers after that.
#[test]
fn claims_that_are_given_back_during_a_batch_revive() {
    let kernel = kernel();
    let core = &*kernel.0;
    let config = kernel.config();
    let (mut plan, mut candidates) = (Plan::new(0), CandidateSet::default());
    claim(&kernel);
    assert_eq!(core.executor_queue_room(&config, &mut plan).cores, MilliCpus::ZERO);
    core.refuse_by_queue(&config, &mut candidates, &plan, &mut Decisions::new());
    assert_eq!(kernel.poll_demand(at(10)), None);
    core.give_back_claim(Some(ETL), ONE);
    assert_eq!(kernel.poll_demand(at(20)), Some(DemandCall::Revive));
    let mut decisions = Decisions::new();
    core.refuse_by_queue(&config, &mut candidates, &plan, &mut decisions);
    assert!(decisions.at_queue);
    assert_eq!(kernel.poll_demand(at(30)), Some(DemandCall::Revive));
}

/// Goal: a framework that picks by what [`Rooms::queues_left`](crate::Rooms::queues_left) says is offered again what it
/// left unpicked because of a claim that is given back, also if it was declined after the revive; one that hasn't asked
/// or was told of all there is isn't. Method: such a claim while the framework looks, and without a look; a revive that
/// is sent before the answers are; a look at a queue that is empty.
#[test]
fn rooms_that_are_not_picked_for_a_claim_are_revived() {
    for (is_claimed, looks) in [(true, true), (true, false), (false, true)] {
        let kernel = kernel();
        let mut handler = kernel.handler();
        if is_claimed {
            claim(&kernel);
        }
        let resources = [Resource::scalar("cpus", 1.0), Resource::scalar("mem", 9000.0)];
        let offers = [Offer::new("o", "S1", "host", &resources, &[])];
        let (picks, mut decisions) = (Picks::new(), Decisions::new());
        let rooms = handler.propose(&offers, at(10));
        if looks {
            let left = if is_claimed { MilliCpus::ZERO } else { ONE.cores };
            assert_eq!(rooms.queues_left().room(ETL).cores, left);
        }
        rooms.commit(&picks, at(10), &mut decisions);
        assert_eq!(decisions.declines()[0].reason, Reason::NotPicked);
        assert_eq!(kernel.poll_demand(at(10)), None);
        if is_claimed {
            kernel.0.give_back_claim(Some(ETL), ONE);
        }
        let revive = (is_claimed && looks).then_some(DemandCall::Revive);
        assert_eq!(kernel.poll_demand(at(20)), revive);
        kernel.answers_sent(&decisions);
        assert_eq!(kernel.poll_demand(at(30)), revive);
    }
}

/// Goal: a claim that is given back between a look at a queue and the commit is noticed by that commit. Method: such a
/// claim, a look before it is given back, and no picks.
#[test]
fn claims_that_are_given_back_before_the_commit_revive() {
    let kernel = kernel();
    let mut handler = kernel.handler();
    claim(&kernel);
    let resources = [Resource::scalar("cpus", 1.0), Resource::scalar("mem", 9000.0)];
    let offers = [Offer::new("o", "S1", "host", &resources, &[])];
    let rooms = handler.propose(&offers, at(10));
    assert_eq!(rooms.queues_left().room(ETL).cores, MilliCpus::ZERO);
    kernel.0.give_back_claim(Some(ETL), ONE);
    rooms.commit(&Picks::new(), at(10), &mut Decisions::new());
    assert_eq!(kernel.poll_demand(at(20)), Some(DemandCall::Revive));
}

/// Goal: an executor that returns isn't killed because of a claim that another batch gives back, but asked about again;
/// it is killed if an executor has the room. Method: one that was given up returns beside such a claim, and after it;
/// another one beside an executor that took its place.
#[test]
fn returns_are_not_refused_for_a_claim_that_is_given_back() {
    for is_given_back in [true, false] {
        let kernel = kernel();
        assert_eq!(offer(&mut kernel.handler(), false, at(10)).executors(), 1);
        let update = |state, now| kernel.status_update(&StatusUpdate::new("q-1-0.0", state), now);
        update(TaskState::Unreachable, at(10));
        assert_eq!(kernel.tick(at(4000)).given_up.len(), 1);
        // Another batch has booked the room, and may find that its agent is excluded or a cap reached.
        let claims = kernel.0.open_claims();
        claim(&kernel);
        let outcome = update(TaskState::Running, at(4001));
        assert_eq!((outcome.change, outcome.kill), (Change::Nothing, false));
        assert_eq!(kernel.reconcile(Scope::InDoubt, at(4001)).len(), 1);
        if is_given_back {
            kernel.0.give_back_claim(Some(ETL), ONE);
        }
        drop(claims);
        let outcome = update(TaskState::Running, at(4002));
        let change = if is_given_back { Change::Readmitted } else { Change::Refused };
        assert_eq!((outcome.change, outcome.kill), (change, !is_given_back));
        assert_eq!(kernel.totals().executors, u32::from(is_given_back));
        if !is_given_back {
            kernel.0.give_back_claim(Some(ETL), ONE);
        }
        kernel.check().unwrap();
    }
}
