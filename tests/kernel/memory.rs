//! Tests of the kernel's allocations: how much it allocates, when, and whether it is freed.
//!
//! Only allocations of the calling thread are counted, so that concurrent tests don't interfere.

use std::fmt::Write as _;

use allocation_counter::{AllocationInfo, measure};
use offermill::{
    Attribute, Decisions, ExecutorId, Handler, IdScheme, Kernel, Offer, Reason, ReasonKind,
    Resource, StatusUpdate, TaskState,
};

use crate::world::{Setup, at, secs};

const HOSTNAME: &str = "host.example.org";

fn kernel(setup: &Setup) -> Kernel {
    Kernel::new(setup.config(), IdScheme::unique("memory", 36).unwrap())
}

/// Reports the ends of executors without allocating: the name is written into a reused string.
#[derive(Default)]
struct Clerk {
    name: String,
}

impl Clerk {
    fn tell(&mut self, kernel: &Kernel, id: ExecutorId, state: TaskState, now: u64) {
        self.name.clear();
        write!(self.name, "{}", kernel.executor_name(id)).unwrap();
        kernel.status_update(&StatusUpdate::new(&self.name, state), at(now));
    }
}

/// Goal: a million agents that come and go leave no memory behind. Method: twelve virtual days with ten new agents
/// every ten seconds, some with an executor that ends, half of these with a failure; the last 900 000 must not allocate
/// anything that remains.
#[test]
fn a_million_agents_leave_nothing_behind() {
    let kernel = kernel(&Setup { limit: Some(1000), ..Setup::default() });
    let (mut handler, mut decisions, mut clerk) =
        (kernel.handler(), Decisions::new(), Clerk::default());
    let mut most = 0;
    let resources = [Resource::scalar("cpus", 1.0), Resource::scalar("mem", 100.0)];
    let mut pass_through = |tens: std::ops::Range<u64>| {
        for ten in tens {
            let now = ten * 10_000;
            let agents: [String; 10] = std::array::from_fn(|one| format!("agent-{ten:06}{one}"));
            let offer = |agent| Offer::new("offer", agent, HOSTNAME, &resources, &[]);
            let offers = agents.each_ref().map(|agent| offer(agent));
            kernel.set_executor_limit(Some(u32::from(ten % 2 == 0))).unwrap();
            handler.resource_offers(&offers, at(now), &mut decisions);
            let placed = decisions.accepts().next().map(|accept| accept.executors[0].id);
            if let Some(id) = placed {
                let end = if ten % 4 == 0 { TaskState::Failed } else { TaskState::Finished };
                clerk.tell(&kernel, id, end, now);
            }
            kernel.tick(at(now));
            most = most.max(kernel.agents_known());
        }
    };
    measure(|| pass_through(0..10_000));
    let AllocationInfo { bytes_current, .. } = measure(|| pass_through(10_000..100_000));
    println!("most agents at a time: {most}; bytes left by 900 000 agents: {bytes_current}");
    assert!(most < 1200, "15 min of agents, and those whose failure may count: {most}");
    assert!(bytes_current.abs() < 64 * 1024, "{bytes_current} bytes");
    kernel.tick(at(1_000_000_000 + 3_600_001));
    assert_eq!((kernel.agents_known(), kernel.snapshot(at(0)).agents.len()), (0, 0));
    kernel.check().unwrap();
}

/// Goal: an agent takes at most 506 bytes without shared texts, including a handler's memory of it, with a copy of its
/// id, and the record of its offer; each further handler that knows it takes at most 148 more. Method: 100 000 agents,
/// all of them candidates; the memory that is freed with the handler is the handler's.
#[test]
fn an_agent_costs_at_most_506_bytes() {
    const AGENTS: usize = 100_000;
    let agents: Vec<String> = (0..AGENTS).map(|number| format!("agent-{number:06}")).collect();
    let resources = [Resource::scalar("cpus", 0.5)];
    let offers: Vec<Offer<'_>> =
        agents.iter().map(|agent| Offer::new("offer", agent, HOSTNAME, &resources, &[])).collect();
    let mut kept = None;
    let all = measure(|| {
        let kernel = kernel(&Setup::default());
        let mut handler = kernel.handler();
        let mut decisions = Decisions::new();
        for batch in offers.chunks(100) {
            handler.resource_offers(batch, at(0), &mut decisions);
        }
        drop(decisions);
        kept = Some((kernel, handler));
    });
    let (kernel, handler) = kept.unwrap();
    assert_eq!(kernel.agents_known(), AGENTS);
    let given_back = measure(|| drop(handler));
    let handlers = -given_back.bytes_current as usize;
    let ids: usize = agents.iter().map(String::len).sum();
    let shared = all.bytes_current as usize - handlers - ids - HOSTNAME.len() * AGENTS;
    let (shared, handlers) = (shared / AGENTS, handlers / AGENTS);
    println!("bytes an agent, texts aside: {shared}, and {handlers} in a handler");
    assert!(shared + handlers <= 506, "{shared} bytes");
    assert!(handlers <= 148, "{handlers} bytes in a handler");
}

/// Goal: an executor takes at most 128 bytes. Method: 100 000 executors on 100 agents.
#[test]
fn an_executor_costs_at_most_128_bytes() {
    const EACH: usize = 1000;
    let agents: Vec<String> = (0..100).map(|number| format!("agent-{number}")).collect();
    let resources = [Resource::scalar("cpus", 1000.0), Resource::scalar("mem", 1e6)];
    let mut kept = None;
    for (scheme, name) in
        [(IdScheme::unique("memory", 36).unwrap(), "unique"), (IdScheme::plain(), "plain")]
    {
        let cost = measure(|| {
            let kernel = Kernel::new(Setup::default().config(), scheme);
            let (mut handler, mut decisions) = (kernel.handler(), Decisions::new());
            for agent in &agents {
                let offers = [Offer::new("offer", agent, HOSTNAME, &resources, &[])];
                handler.resource_offers(&offers, at(0), &mut decisions);
                assert_eq!(decisions.executors(), EACH);
            }
            kept = Some((kernel, handler));
        });
        let executors = kept.take().map_or(0, |(kernel, _)| kernel.totals().executors);
        let bytes = cost.bytes_current as usize / executors as usize;
        println!("bytes an executor with {name} ids: {bytes}");
        assert!(bytes <= 128, "{bytes} bytes with {name} ids");
    }
}

/// Offers the same offers in batches, again and again.
struct Round<'a> {
    kernel: &'a Kernel,
    handler: &'a mut Handler,
    decisions: Decisions,
    placed: Vec<ExecutorId>,
    clerk: Clerk,
}

impl Round<'_> {
    /// Offers everything once, and ends the launched executors. Returns their number.
    fn run(&mut self, offers: &[Offer<'_>], now: u64) -> usize {
        let mut executors = 0;
        for batch in offers.chunks(100) {
            self.handler.resource_offers(batch, at(now), &mut self.decisions);
            self.placed.clear();
            for accept in self.decisions.accepts() {
                self.placed.extend(accept.executors.iter().map(|executor| executor.id));
            }
            for id in &self.placed {
                self.clerk.tell(self.kernel, *id, TaskState::Running, now);
                self.clerk.tell(self.kernel, *id, TaskState::Finished, now);
            }
            executors += self.placed.len();
        }
        self.kernel.poll_demand(at(now));
        executors
    }
}

/// Goal: with plain ids, too, memory is as much as the most executors at a time need, however many there were: pages
/// of numbers are given back. A few old executors keep a page each. Method: 300 000 executors, of which the last 2000
/// are alive, and every 20 000th of the others; the last 200 000 must not allocate more than the pages of old ones.
#[test]
fn numbers_of_ended_executors_leave_nothing_behind() {
    const AT_ONCE: u64 = 1000;
    let kernel = Kernel::new(Setup::default().config(), IdScheme::plain());
    let (mut handler, mut decisions) = (kernel.handler(), Decisions::new());
    let mut clerk = Clerk::default();
    let cpus = [Resource::scalar("cpus", AT_ONCE as f64), Resource::scalar("mem", 1e9)];
    let offers = [Offer::new("offer", "agent", HOSTNAME, &cpus, &[])];
    let mut lives = std::collections::VecDeque::with_capacity(3000);
    let mut pass_through = |times: std::ops::Range<u64>| {
        for _ in times {
            handler.resource_offers(&offers, at(0), &mut decisions);
            let placed = decisions.accepts().flat_map(|accept| accept.executors);
            lives.extend(placed.map(|executor| executor.id));
            while lives.len() > 2 * AT_ONCE as usize {
                let id: ExecutorId = lives.pop_front().unwrap();
                if id.sequence() % 20_000 != 7 {
                    clerk.tell(&kernel, id, TaskState::Finished, 0);
                }
            }
        }
    };
    measure(|| pass_through(0..100));
    let cost = measure(|| pass_through(100..300));
    println!("bytes left by 200 000 executors with plain ids: {}", cost.bytes_current);
    assert!(cost.bytes_current < 64 * 1024, "{cost:?}");
    assert_eq!(kernel.totals().executors, 2000 + 298_000 / 20_000 + 1);
    for old in (7..298_000).step_by(20_000) {
        assert!(kernel.executor_id(&old.to_string()).is_some(), "{old} is lost");
    }
    kernel.check().unwrap();
}

/// Goal: updates about numbers that were never handed out allocate nothing, however large the numbers are. Method: each
/// power of two.
#[test]
fn unknown_numbers_allocate_nothing() {
    let kernel = Kernel::new(Setup::default().config(), IdScheme::plain());
    let names: Vec<String> = (0..64).map(|bits| (1u64 << bits).to_string()).collect();
    let updates: Vec<StatusUpdate<'_>> =
        names.iter().map(|name| StatusUpdate::new(name, TaskState::Running)).collect();
    let cost = measure(|| {
        for update in &updates {
            assert!(kernel.status_update(update, at(0)).kill);
        }
    });
    assert_eq!(cost.count_total, 0, "{cost:?}");
}

/// Runs rounds of offers until all memory has its final size, and then counts the allocations of further rounds.
fn allocations(setup: &Setup, offers: &[Offer<'_>], executors: usize) -> (u64, Decisions) {
    allocations_of(&kernel(setup), offers, executors)
}

fn allocations_of(kernel: &Kernel, offers: &[Offer<'_>], executors: usize) -> (u64, Decisions) {
    let (mut handler, decisions, placed) = (kernel.handler(), Decisions::new(), Vec::new());
    let handler = &mut handler;
    let clerk = Clerk::default();
    let mut round = Round { kernel, handler, decisions, placed, clerk };
    for now in 0..3 {
        round.run(offers, now);
    }
    let cost = measure(|| {
        for now in 3..10 {
            // The rounds are seconds apart, so that periodic work is included.
            assert_eq!(round.run(offers, now * 20_000), executors);
        }
    });
    kernel.check().unwrap();
    (cost.count_total, round.decisions)
}

/// Goal: the offer path allocates nothing in the steady state. Method: offers of 10 000 agents that are declined by
/// constraint, declined for being small, some smaller than others, declined at a cap, and accepted and freed again; the
/// nearest misses are recorded anew in each round.
#[test]
fn the_steady_state_allocates_nothing() {
    let agents: Vec<String> = (0..10_000).map(|number| format!("agent-{number}")).collect();
    let resources = [Resource::scalar("cpus", 1.0), Resource::scalar("mem", 900.0)];
    let attributes = [Attribute::text("zone", "west"), Attribute::text("rack", "r7")];
    let offers: Vec<Offer<'_>> = agents
        .iter()
        .map(|agent| Offer::new("offer", agent, HOSTNAME, &resources, &attributes))
        .collect();

    let constrained = Setup { zones: vec!["east", "north"], ..Setup::default() };
    let (count, decisions) = allocations(&constrained, &offers, 0);
    assert!(matches!(decisions.declines()[0].reason, Reason::ConstraintUnmet(_)));
    assert_eq!(count, 0, "declined by constraint");

    let sized: Vec<[Resource<'_>; 2]> = (0..100)
        .map(|size| [Resource::scalar("cpus", 1.0), Resource::scalar("mem", f64::from(size))])
        .collect();
    let small: Vec<Offer<'_>> = agents
        .iter()
        .zip(sized.iter().cycle())
        .map(|(agent, resources)| Offer::new("offer", agent, HOSTNAME, resources, &[]))
        .collect();
    let (count, decisions) = allocations(&Setup::default(), &small, 0);
    assert_eq!(decisions.declines()[0].reason.kind(), ReasonKind::Memory);
    assert_eq!(count, 0, "declined for being small");

    let part = [Resource::scalar("cpus", 0.5)];
    let offer = |agent, role| Offer::new("offer", agent, HOSTNAME, &part, &[]).with_role(role);
    let in_roles: Vec<Offer<'_>> =
        agents.iter().flat_map(|agent| ["eng", "*"].map(|role| offer(agent, role))).collect();
    let (count, _) = allocations(&Setup::default(), &in_roles, 0);
    assert_eq!(count, 0, "offered to two roles, which is recorded again from time to time");

    let limited = Setup { limit: Some(0), ..Setup::default() };
    let (count, decisions) = allocations(&limited, &offers, 0);
    assert_eq!(decisions.declines()[0].reason, Reason::ExecutorLimit { limit: 0 });
    assert_eq!(count, 0, "declined at a cap");

    let (count, _) = allocations(&Setup::default(), &offers, offers.len());
    assert_eq!(count, 0, "accepted and freed");

    let numbered = Kernel::new(Setup::default().config(), IdScheme::plain());
    let (count, _) = allocations_of(&numbered, &offers, offers.len());
    assert_eq!(count, 0, "accepted and freed, with plain ids");

    let matching = Setup { zones: vec!["west"], executor_cores: None, ..Setup::default() };
    let (count, _) = allocations(&matching, &offers, offers.len());
    assert_eq!(count, 0, "accepted whole, under a constraint");
}

/// Goal: a batch of updates allocates nothing once the list of outcomes has its final size. Method: 200 executors that
/// end, are killed, run, and have repeated updates in one batch, twice.
#[test]
fn a_batch_of_updates_allocates_nothing() {
    let kernel = kernel(&Setup::default());
    let (mut handler, mut decisions, mut outcomes) =
        (kernel.handler(), Decisions::new(), Vec::new());
    let resources = [Resource::scalar("cpus", 200.0), Resource::scalar("mem", 1e9)];
    let offers = [Offer::new("offer", "agent", HOSTNAME, &resources, &[])];
    for round in 0..2 {
        handler.resource_offers(&offers, at(round), &mut decisions);
        let placed = decisions.accepts().flat_map(|accept| accept.executors);
        let names: Vec<String> =
            placed.map(|executor| kernel.executor_name(executor.id).to_string()).collect();
        assert_eq!(names.len(), 200);
        let states = [TaskState::Running, TaskState::Finished, TaskState::Killed];
        let updates: Vec<StatusUpdate<'_>> = states
            .iter()
            .flat_map(|state| names.iter().map(|name| StatusUpdate::new(name, *state)))
            .collect();
        outcomes.clear();
        let used = measure(|| kernel.status_updates(&updates, at(round), &mut outcomes));
        assert_eq!((outcomes.len(), kernel.totals().executors), (600, 0));
        assert!(round == 0 || used.count_total == 0, "{used:?}");
    }
}

/// Goal: waiting for wanted hosts allocates nothing in the steady state. Method: offers of 1000 agents, half of them on
/// wanted hosts, during the wait and after it.
#[test]
fn waiting_for_hosts_allocates_nothing() {
    let names: Vec<(String, String)> =
        (0..1000).map(|number| (format!("agent-{number}"), format!("host-{number}"))).collect();
    let resources = [Resource::scalar("cpus", 1.0), Resource::scalar("mem", 900.0)];
    let offers: Vec<Offer<'_>> = names
        .iter()
        .map(|(agent, host)| Offer::new("offer", agent, host, &resources, &[]))
        .collect();
    let wanted = || names.iter().step_by(2).map(|(_, host)| &**host);
    for (wait, executors) in [(secs(3600), 500), (secs(0), 1000)] {
        let kernel = kernel(&Setup { locality_wait: Some(wait), ..Setup::default() });
        kernel.request_executors(None, wanted(), at(0)).unwrap();
        let (count, _) = allocations_of(&kernel, &offers, executors);
        assert_eq!(count, 0);
    }
}

/// Goal: handlers that come and go leave nothing behind, and what they counted stays. Method: 2000 handlers, each of
/// which answers an offer.
#[test]
fn handlers_leave_nothing_behind() {
    let kernel = kernel(&Setup::default());
    let (resources, mut decisions) = ([Resource::scalar("cpus", 0.5)], Decisions::new());
    let offers = [Offer::new("offer", "agent", HOSTNAME, &resources, &[])];
    let mut come_and_go = || {
        for _ in 0..1000 {
            kernel.handler().resource_offers(&offers, at(0), &mut decisions);
        }
    };
    measure(&mut come_and_go);
    let cost = measure(&mut come_and_go);
    assert!(cost.bytes_current.abs() < 16 * 1024, "{cost:?}");
    assert_eq!(kernel.offer_counts().offers, 2000);
}
