//! What the documentation says of tasks, sentence by sentence.

use offermill::resources::{Gpus, Mebibytes, MilliCpus};
use offermill::{
    Decisions, DemandCall, IdScheme, Kernel, Offer, Phase, Picks, Reason, ReasonKind, Task,
};

use crate::world::{Entry, OfferData, Setup, at, lend, secs};

fn task(tag: u64, millis: u64) -> Task {
    Task::new(tag, MilliCpus::from_millis(millis), Mebibytes::new(1))
}

fn small() -> Setup {
    Setup { executor_cores: Some(100), memory: 1, ..Setup::default() }
}

struct Fixture {
    kernel: Kernel,
    decisions: Decisions,
}

impl Fixture {
    fn new(setup: &Setup) -> Fixture {
        let kernel = Kernel::new(setup.config(), IdScheme::unique("t", 1).unwrap());
        Fixture { kernel, decisions: Decisions::new() }
    }

    /// Commits picks on offers of these agents, 4 cores each. Returns the tags that were placed.
    fn commit(
        &mut self,
        agents: &[&str],
        picks: &Picks,
        between: impl FnOnce(&Kernel),
    ) -> Vec<u64> {
        let batch: Vec<OfferData> =
            agents.iter().map(|agent| OfferData::new(agent, 4.0, 1000.0)).collect();
        let Fixture { kernel, decisions } = self;
        let mut handler = kernel.handler();
        lend(&batch, |offers| {
            let rooms = handler.propose(offers, at(0));
            between(kernel);
            rooms.commit(picks, at(0), decisions);
        });
        self.kernel.check().unwrap();
        self.decisions.accepts().flat_map(|it| it.tasks().map(|(tag, _)| tag)).collect()
    }

    fn unplaced(&self) -> Vec<(u64, ReasonKind)> {
        self.decisions.unplaced().iter().map(|it| (it.tag, it.reason.kind())).collect()
    }
}

fn picks(list: &[(u32, Task)]) -> Picks {
    let mut picks = Picks::new();
    list.iter().for_each(|(room, task)| picks.push(*room, *task));
    picks
}

/// Goal: "the picks are cut off: the first one that is too much, and all after it". Method: a task that fits behind one
/// that doesn't.
#[test]
fn caps_cut_off_from_the_end() {
    let mut fixture = Fixture::new(&Setup { core_cap: Some(2000), ..small() });
    let picks = picks(&[(0, task(1, 1500)), (0, task(2, 1000)), (0, task(3, 500))]);
    assert_eq!(fixture.commit(&["S1"], &picks, |_| {}), [1]);
    assert_eq!(fixture.unplaced(), [(2, ReasonKind::CoreCap), (3, ReasonKind::CoreCap)]);
    let expected = Reason::CoreCap {
        cap: MilliCpus::from_cores(2),
        acquired: MilliCpus::from_millis(1500),
        asked: MilliCpus::from_cores(1),
    };
    assert_eq!(fixture.decisions.unplaced()[0].reason, expected);
}

/// Goal: "a pick that its room can't take after the picks before is left out; the others aren't concerned". Method: too
/// many cores, a room that doesn't exist, a task without cores.
#[test]
fn what_does_not_fit_is_left_out_alone() {
    let mut fixture = Fixture::new(&small());
    let list = [
        (0, task(1, 3000)),
        (0, task(2, 2000)),
        (7, task(3, 1)),
        (0, task(4, 0)),
        (0, task(5, 1000)),
    ];
    assert_eq!(fixture.commit(&["S1", "S2"], &picks(&list), |_| {}), [1, 5]);
    let malformed = ReasonKind::Malformed;
    assert_eq!(fixture.unplaced(), [(2, ReasonKind::Cpus), (3, malformed), (4, malformed)]);
    assert_eq!(fixture.decisions.declines().len(), 1);
    assert_eq!(fixture.decisions.declines()[0].reason, Reason::NotPicked);
    assert_eq!(fixture.decisions.declines()[0].refuse, secs(5));
    assert_eq!(fixture.kernel.offer_counts().declined(ReasonKind::NotPicked), 1);
}

/// Goal: a gang is placed as a whole, cut off as a whole by a cap, and left out as a whole if one of its rooms or
/// agents can't take it. Method: one gang of each kind, with other picks around it.
#[test]
fn gangs_are_placed_whole_or_not_at_all() {
    let gang = |mut picks: Picks, tags: [u64; 2], rooms: [u32; 2]| {
        picks.push_gang(&[(rooms[0], task(tags[0], 1000)), (rooms[1], task(tags[1], 1000))]);
        picks
    };
    let mut fixture = Fixture::new(&Setup { core_cap: Some(3500), ..small() });
    let mut wanted = gang(gang(Picks::new(), [1, 2], [0, 1]), [3, 4], [0, 1]);
    wanted.push(0, task(5, 100));
    assert_eq!(fixture.commit(&["S1", "S2"], &wanted, |_| {}), [1, 2]);
    assert_eq!(fixture.unplaced(), [3, 4, 5].map(|tag| (tag, ReasonKind::CoreCap)));

    let mut fixture = Fixture::new(&small());
    let mut wanted = gang(picks(&[(0, task(1, 3500))]), [2, 3], [1, 0]);
    wanted.push(1, task(4, 4000));
    assert_eq!(fixture.commit(&["S1", "S2"], &wanted, |_| {}), [1, 4]);
    assert_eq!(fixture.unplaced(), [(2, ReasonKind::Cpus), (3, ReasonKind::Cpus)]);

    // What a gang that is left out would have taken is there for the next pick, of its rooms and of the caps.
    let mut fixture = Fixture::new(&Setup { limit: Some(1), ..small() });
    let mut wanted = Picks::new();
    wanted.push_gang(&[(0, task(1, 1000)), (0, task(2, 4000))]);
    wanted.push(0, task(3, 4000));
    assert_eq!(fixture.commit(&["S1"], &wanted, |_| {}), [3]);

    let mut fixture = Fixture::new(&small());
    let mut wanted = gang(Picks::new(), [1, 2], [0, 1]);
    wanted.push(0, task(3, 1000));
    let lose = |kernel: &Kernel| drop(kernel.agent_lost("S2", at(0)));
    assert_eq!(fixture.commit(&["S1", "S2"], &wanted, lose), [3]);
    assert_eq!(fixture.unplaced().len(), 2);
}

/// Goal: GPUs are capped like cores: from the first task that is too much on, nothing is placed, and what was reserved
/// for the rest is given back. Method: three tasks of two GPUs, with a cap of five; the kernel's check counts them.
#[test]
fn gpus_cut_off_as_cores_do() {
    let mut fixture = Fixture::new(&Setup { gpu_cap: 5, ..small() });
    let batch = [OfferData::new("S1", 4.0, 1000.0).with(Entry::scalar("gpus", 8.0))];
    let gpus = |tag, gpus| Task { gpus: Gpus::new(gpus), ..task(tag, 100) };
    let wanted = picks(&[(0, gpus(1, 2)), (0, gpus(2, 2)), (0, gpus(3, 2)), (0, gpus(4, 0))]);
    let mut handler = fixture.kernel.handler();
    lend(&batch, |offers| {
        handler.propose(offers, at(0)).commit(&wanted, at(0), &mut fixture.decisions);
    });
    assert_eq!(fixture.unplaced(), [(3, ReasonKind::GpuCap), (4, ReasonKind::GpuCap)]);
    fixture.kernel.check().unwrap();
}

/// Goal: "if the settings were changed since the proposal, the offers are looked at again". Method: between proposal
/// and commit the constraint changes so that the first of two rooms is gone; picks keep their offers, not their
/// positions.
#[test]
fn picks_follow_their_offers_when_settings_change() {
    let mut fixture = Fixture::new(&small());
    let batch = [
        OfferData::new("S1", 4.0, 1000.0).in_zone("a"),
        OfferData::new("S2", 4.0, 1000.0).in_zone("b"),
    ];
    let wanted = picks(&[(0, task(1, 1000)), (1, task(2, 1000)), (2, task(3, 1000))]);
    let Fixture { kernel, decisions } = &mut fixture;
    let mut handler = kernel.handler();
    lend(&batch, |offers| {
        let rooms = handler.propose(offers, at(0));
        kernel.reconfigure(Setup { zones: vec!["b"], ..small() }.config());
        rooms.commit(&wanted, at(0), decisions);
    });
    let accepted = decisions.accepts().next().unwrap();
    assert_eq!(accepted.offers, [1]);
    assert_eq!(accepted.tasks().map(|(tag, _)| tag).collect::<Vec<_>>(), [2]);
    let expected = [(1, ReasonKind::ConstraintUnmet), (3, ReasonKind::Malformed)];
    assert_eq!(fixture.unplaced(), expected);
}

/// Goal: after a close, nothing is placed, whatever was proposed before. Method: close between proposal and commit.
#[test]
fn nothing_is_placed_after_a_close() {
    let mut fixture = Fixture::new(&small());
    let close = |kernel: &Kernel| drop(kernel.close());
    assert!(fixture.commit(&["S1"], &picks(&[(0, task(1, 100))]), close).is_empty());
    assert_eq!(fixture.unplaced(), [(1, ReasonKind::Stopping)]);
    assert_eq!(fixture.decisions.declines()[0].reason, Reason::Stopping);
}

/// Goal: a task counts as one executor, appears in reports with its amounts, and at the limit offers are suppressed, as
/// with executors. Method: a limit of one.
#[test]
fn tasks_count_as_executors() {
    let mut fixture = Fixture::new(&Setup { limit: Some(1), ..small() });
    let wanted = picks(&[(0, task(1, 700)), (1, task(2, 100))]);
    assert_eq!(fixture.commit(&["S1", "S2"], &wanted, |_| {}), [1]);
    assert_eq!(fixture.unplaced(), [(2, ReasonKind::ExecutorLimit)]);
    assert_eq!(fixture.decisions.declines()[0].reason, Reason::ExecutorLimit { limit: 1 });
    assert_eq!(fixture.kernel.poll_demand(at(1)), Some(DemandCall::Suppress));
    let snapshot = fixture.kernel.snapshot(at(1));
    let [executor] = &snapshot.executors[..] else { panic!("{snapshot:?}") };
    assert_eq!((executor.resources.cores.millis(), executor.phase), (700, Phase::Launching));
    assert_eq!(fixture.kernel.task_tag(executor.id), Some(1));
}

/// Goal: executors of the configured size have no tags, also in the cell of a former task. Method: a task ends, and an
/// executor takes its cell.
#[test]
fn executors_have_no_tags() {
    let mut fixture = Fixture::new(&small());
    assert_eq!(fixture.commit(&["S1"], &picks(&[(0, task(9, 100))]), |_| {}), [9]);
    let id = fixture.decisions.accepts().next().unwrap().executors[0].id;
    let name = fixture.kernel.executor_name(id).to_string();
    let ended = offermill::StatusUpdate::new(&name, offermill::TaskState::Finished);
    fixture.kernel.status_update(&ended, at(1));
    let mut handler = fixture.kernel.handler();
    let batch = [OfferData::new("S1", 0.1, 1.0)];
    lend(&batch, |offers| handler.resource_offers(offers, at(2), &mut fixture.decisions));
    let accepted = fixture.decisions.accepts().next().unwrap();
    assert_eq!(accepted.tasks().len(), 0);
    assert_eq!(fixture.kernel.task_tag(accepted.executors[0].id), None);
    assert_eq!(fixture.kernel.task_tag(id), None);
}

/// Goal: a proposal without picks declines each offer once. Method: commit none; and an empty batch.
#[test]
fn no_picks_decline_all() {
    let mut fixture = Fixture::new(&small());
    assert!(fixture.commit(&["S1", "S2", "S1"], &Picks::new(), |_| {}).is_empty());
    let mut declined: Vec<u32> = fixture.decisions.declines().iter().map(|it| it.offer).collect();
    declined.sort_unstable();
    assert_eq!(declined, [0, 1, 2]);
    let mut handler = fixture.kernel.handler();
    let none: [Offer<'_>; 0] = [];
    handler.propose(&none, at(0)).commit(&picks(&[(0, task(1, 1))]), at(0), &mut fixture.decisions);
    assert_eq!(fixture.unplaced(), [(1, ReasonKind::Malformed)]);
}
