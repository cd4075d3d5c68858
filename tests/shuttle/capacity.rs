//! Pictures of the cluster's capacity, built during all other calls.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use offermill::resources::{ExecutorResources, Gpus, Mebibytes, MilliCpus};
use offermill::{CapacitySums, ClusterCapacity, Recovered, ResourceSums, TaskState};

use crate::harness::{Harness, join};
use crate::world::{Setup, at};
use crate::{is_wanted, play};

/// The agents, with the cores of each executor on them: so it shows if one is counted on another agent.
const AGENTS: [(&str, u32); 4] = [("S0", 2), ("S1", 3), ("S2", 5), ("S3", 7)];
/// Times at which agents that were seen at the beginning are forgotten.
const SWEEPS: [u64; 4] = [60, 1_000_000, 1_060_000, 1_120_000];

/// The number of exact pictures with agents that were built while others worked. In std's atomic, which is not part of
/// the scene.
static EXACT: AtomicUsize = AtomicUsize::new(0);

/// Executors of a former run, of these cores each, or as large as their agents.
fn former(cores: Option<u64>) -> [Recovered<'static>; 2] {
    [former_on("a", 1, cores), former_on("b", 2, cores)]
}

fn former_on(executor: &'static str, agent: usize, cores: Option<u64>) -> Recovered<'static> {
    let (agent_id, all) = AGENTS[agent];
    let resources = ExecutorResources {
        cores: MilliCpus::from_cores(cores.unwrap_or(all.into())),
        memory: Mebibytes::new(100),
        gpus: Gpus::ZERO,
        port: None,
    };
    Recovered::new(executor, agent_id, "host", resources)
}

/// Offers these agents one by one. Each gets executors that take all; all but those of the last end.
fn handle(harness: &Harness, agents: [usize; 3]) {
    let mut handler = harness.kernel.handler();
    for (turn, (agent, cores)) in agents.into_iter().map(|agent| AGENTS[agent]).enumerate() {
        let answer = harness.offer(&mut handler, &[agent], f64::from(cores), at(0));
        if turn + 1 < agents.len() {
            answer
                .placed
                .iter()
                .for_each(|id| drop(harness.update(*id, TaskState::Finished, at(1))));
        }
    }
}

/// The sums are those of the agents, each of which is there once, with its own executors; and if the picture is exact,
/// these are all.
fn add_up(picture: &ClusterCapacity, is_fixed: bool) {
    let mut names = HashSet::new();
    let mut sums = CapacitySums::default();
    for agent in picture.agents() {
        let name = agent.agent_id();
        assert!(names.insert(name), "{name} is there twice");
        let (_, cores) = AGENTS.iter().find(|(id, _)| *id == name).unwrap();
        let each = u64::from(*cores) * 1000;
        let [offered, used, free] =
            [agent.offered(), agent.used(), agent.free()].map(|sums| sums.cores.millis());
        assert!(offered == 0 || offered == each, "another's offer: {agent:?}");
        if is_fixed {
            is_explained([offered, used, free], name);
        } else {
            assert!(used.is_multiple_of(each), "another's executor: {agent:?}");
            assert!(free == 0 || free == offered, "another's executor was taken off: {agent:?}");
        }
        let is_withheld = agent.excluded_until().or(agent.suspect_until()).is_some();
        let free = if is_withheld { &mut sums.withheld } else { &mut sums.free };
        *free = free.saturating_add(agent.free());
        sums.agents += 1;
        sums.offered = sums.offered.saturating_add(agent.offered());
        sums.used = sums.used.saturating_add(agent.used());
    }
    assert_eq!(picture.sums(), sums);
    let free_or_used = picture.agents().map(|agent| agent.free().saturating_add(agent.used()));
    let largest = free_or_used.fold(ResourceSums::NONE, ResourceSums::max_of_each);
    assert_eq!(picture.largest_agent(), largest);
    let used = sums.used.cores;
    assert!(!picture.exact() || used == picture.totals().cores, "{used} are used: {picture:?}");
}

/// Whether an agent's cores fit together if all executors have one core: what is offered is all that it has, as if no
/// executors were there.
fn is_explained([offered, used, free]: [u64; 3], name: &str) {
    if name == AGENTS[3].0 {
        // Offered once, when no executor was there: what isn't used is free.
        assert!(offered == 0 || free + used == offered, "{name}: {offered}, {used}, {free}");
    } else if offered > 0 {
        // Two handlers offer it at once at most, and each finds at most the executors of both there.
        let has = offered..=3 * offered + 1000;
        assert!(has.contains(&(free + used)), "{name}: {offered}, {used}, {free}");
    }
}

/// Asks for pictures: each adds up, and none is older than the one before.
fn look(harness: &Harness, is_fixed: bool) {
    let mut version = 0;
    for now in 4..7 {
        let picture = harness.kernel.capacity(at(now));
        assert!(picture.version() >= version, "an older picture");
        assert!(picture.version() > 0 || picture.agents().next().is_none());
        version = picture.version();
        add_up(&picture, is_fixed);
        let is_seen = picture.exact() && picture.sums().agents > 0;
        EXACT.fetch_add(usize::from(is_seen), Ordering::Relaxed);
    }
}

/// Two threads ask for pictures while two handlers place executors and end them, agents are forgotten and known again,
/// one is lost, and executors are adopted.
fn all_at_once(cores: Option<u64>) {
    let executor_cores = cores.map(|cores| cores * 1000);
    let harness = Harness::new(&Setup { executor_cores, ..Setup::default() });
    let mut threads = vec![
        harness.spawn(|harness| handle(harness, [0, 1, 0])),
        harness.spawn(|harness| handle(harness, [2, 3, 0])),
        harness.spawn(|harness| SWEEPS.iter().for_each(|now| drop(harness.kernel.tick(at(*now))))),
        harness.spawn(|harness| {
            for lost in harness.kernel.agent_lost(AGENTS[0].0, at(2)) {
                harness.update(lost.id, TaskState::Gone, at(2));
            }
        }),
        harness.spawn(move |harness| {
            let adopted = harness.kernel.adopt(&former(cores), at(0));
            assert_eq!(adopted.unwrap().into_iter().flatten().count(), 2);
        }),
    ];
    threads.extend([(); 2].map(|()| harness.spawn(move |harness| look(harness, cores.is_some()))));
    join(threads);
    harness.kernel.check().unwrap();
    let picture = harness.kernel.capacity(at(2_000_000));
    assert!(picture.exact(), "at a standstill");
    add_up(&picture, cores.is_some());
    assert_eq!(picture.sums().agents, harness.kernel.agents_known());
}

/// Goal: in each picture every agent is there once, with its own executors and its own offer, and if it is exact, the
/// executors add up to the totals. Method: executors that take all of their agents, so that it shows whose they are.
#[test]
fn pictures_add_up() {
    play("capacity/all", 1500, || all_at_once(None));
    let exact = EXACT.load(Ordering::Relaxed);
    println!("exact pictures while all ran: {exact}");
    assert!(exact > 0 || !is_wanted("capacity/all"), "the scene has to test something");
}

/// Goal: the same for executors of a fixed size, and what is free follows from them. Method: executors of one core,
/// several on each agent.
#[test]
fn pictures_with_a_fixed_size_add_up() {
    play("capacity/fixed", 24_000, || all_at_once(Some(1)));
}
