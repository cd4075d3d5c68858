//! What a proposal shows of the offers: those in rooms, and those in none.

use offermill::choosers::Chooser;
use offermill::resources::{Mebibytes, MilliCpus};
use offermill::{
    Decisions, IdScheme, Kernel, Picks, Reason, ReasonKind, StatusUpdate, Task, TaskState,
};

use crate::world::{OfferData, Setup, at, lend, secs};

/// Goal: a room names its first offer, and an offer without a room is declined with its reason before the commit, which
/// repeats that. Method: an offer that is too small between two that aren't, and a room of a larger batch.
#[test]
fn each_offer_is_in_a_room_or_declined() {
    let kernel = Kernel::new(Setup::default().config(), IdScheme::plain());
    let (mut handler, mut decisions) = (kernel.handler(), Decisions::new());
    let batch = ["S1", "S2", "S3"].map(|agent| OfferData::new(agent, 1.0, 100.0));
    let last = lend(&batch, |offers| handler.propose(offers, at(0)).list()[2]);
    let batch =
        [("S1", 1.0), ("S2", 0.5)].map(|(agent, cores)| OfferData::new(agent, cores, 100.0));
    lend(&batch, |offers| {
        let rooms = handler.propose(offers, at(0));
        let [room] = rooms.list() else { panic!("{rooms:?}") };
        assert_eq!(rooms.offer(room).map(|offer| offer.agent_id), Some("S1"));
        assert!(rooms.offer(&last).is_none(), "a room of another batch");
        let [declined] = rooms.declines() else { panic!("{:?}", rooms.declines()) };
        assert_eq!((declined.offer, declined.reason.kind()), (1, ReasonKind::Cpus));
        rooms.commit(&Picks::new(), at(0), &mut decisions);
    });
    let declined = decisions.declines().iter().map(|it| (it.offer, it.reason.kind()));
    let mut declined: Vec<_> = declined.collect();
    declined.sort_unstable_by_key(|(offer, _)| *offer);
    assert_eq!(declined, [(0, ReasonKind::NotPicked), (1, ReasonKind::Cpus)]);
}

/// Goal: while hosts are wanted, a room is for one task, and those on other hosts are none; afterwards it is for as
/// many as fit. Method: two hosts, one of them wanted, and three picks for its room, of half the size of an executor,
/// before and after the end of the wait.
#[test]
fn a_room_on_a_wanted_host_takes_one_task_while_others_are_waited_for() {
    let (locality_wait, executor_cores) = (Some(secs(3)), Some(2000));
    let setup = Setup { locality_wait, executor_cores, ..Setup::default() };
    let kernel = Kernel::new(setup.config(), IdScheme::plain());
    kernel.request_executors(None, ["b", "elsewhere"], at(1000)).unwrap();
    let (mut handler, mut decisions) = (kernel.handler(), Decisions::new());
    let batch = [("S1", "a"), ("S2", "b")];
    let batch = batch.map(|(agent, host)| OfferData::new(agent, 4.0, 900.0).on_host(host));
    let mut picks = Picks::new();
    for tag in 0..3 {
        picks.push(0, Task::new(tag, MilliCpus::from_cores(1), Mebibytes::new(1)));
    }
    let mut placed = |now| {
        lend(&batch, |offers| {
            let rooms = handler.propose(offers, at(now));
            let agents = rooms.list().iter().map(|room| rooms.offer(room).unwrap().agent_id);
            let agents: Vec<String> = agents.map(String::from).collect();
            rooms.commit(&picks, at(now), &mut decisions);
            let left_out = decisions.unplaced().iter().map(|it| it.reason).collect::<Vec<_>>();
            (agents, decisions.executors(), left_out)
        })
    };
    let (agents, executors, left_out) = placed(1000);
    assert_eq!((agents, executors), (vec!["S2".into()], 1));
    assert_eq!(left_out, [Reason::AgentFull; 2]);
    let (agents, executors, left_out) = placed(4001);
    assert_eq!((agents, executors), (vec!["S1".into(), "S2".into()], 3));
    assert!(left_out.is_empty());
}

/// Goal: rooms on whose agents one failed lately say so and come last in each round. Method: an agent on which a task
/// failed, before one on which none did, with rooms for two tasks each.
#[test]
fn rooms_of_failures_come_last() {
    let mut setup = Setup::default();
    setup.compatibility.replace_elsewhere = true;
    let kernel = Kernel::new(setup.config(), IdScheme::plain());
    let (mut handler, mut decisions) = (kernel.handler(), Decisions::new());
    let task = |tag| Task::new(tag, MilliCpus::from_cores(1), Mebibytes::new(1));
    let mut picks = Picks::new();
    picks.push(0, task(0));
    let batch = ["S1", "S2"].map(|agent| OfferData::new(agent, 2.0, 900.0));
    lend(&batch[..1], |offers| {
        handler.propose(offers, at(0)).commit(&picks, at(0), &mut decisions);
    });
    kernel.status_update(&StatusUpdate::new("0", TaskState::Failed), at(1));
    lend(&batch, |offers| {
        let rooms = handler.propose(offers, at(2));
        let failed = rooms.list().iter().map(offermill::Room::failed_lately);
        assert_eq!(failed.collect::<Vec<_>>(), [true, false]);
        assert!(rooms.list().iter().all(|room| room.tasks() > 2), "{:?}", rooms.list());
        picks.clear();
        Chooser::new().round_robin(rooms.list(), &[1, 2, 3, 4].map(task), &mut picks);
        assert_eq!(picks.iter().map(|pick| pick.room).collect::<Vec<_>>(), [1, 0, 1, 0]);
    });
}
