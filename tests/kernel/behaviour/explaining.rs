//! Explanations of why nothing is placed, and the nearest misses.

use offermill::config::ExclusionRule;
use offermill::{
    Decisions, Explanation, Handler, IdScheme, Kernel, Miss, Reason, ReasonKind, TaskState,
    Timestamp,
};
use proptest::collection::vec;
use proptest::prelude::*;

use super::Fixture;
use crate::world::{OfferData, Setup, at, lend, secs};

/// The nearest miss of this kind.
fn nearest(explanation: &Explanation, kind: ReasonKind) -> Option<Miss> {
    let declined = explanation.declined.iter().find(|declined| declined.kind == kind)?;
    declined.nearest.clone()
}

/// The explanation's lines as text.
fn lines(fixture: &Fixture, now: u64) -> Vec<String> {
    fixture.kernel.explain(at(now)).to_string().lines().map(str::to_owned).collect()
}

/// Goal: the text explains what the kernel waits for, whether offers arrive, and what the nearest miss was. Method: a
/// kernel in each of its states, and the expected text.
#[test]
fn it_reads_well() {
    let exclusion = Some(ExclusionRule { failures: 1, ..ExclusionRule::default() });
    let mut fixture =
        Fixture::new(&Setup { limit: Some(2), memory: 4096, exclusion, ..Setup::default() });
    assert_eq!(
        lines(&fixture, 0),
        ["waiting for 2 more executors", "offers  none came yet"],
        "nothing happened yet"
    );
    let failed = fixture.offer(&[OfferData::new("S3", 1.0, 4096.0)], 1_000)[0];
    fixture.update(failed, TaskState::Failed, 1_000);
    let offers = [("S3", 4096.0), ("S5", 1.0), ("S7", 3584.0), ("S8", 3583.9)];
    fixture.offer(&offers.map(|(agent, memory)| OfferData::new(agent, 2.0, memory)), 62_000);
    let placed = fixture.offer(&[OfferData::new("S9", 1.0, 4096.0)], 63_500);
    assert_eq!(
        lines(&fixture, 65_000),
        [
            "waiting for 1 more executor",
            "offers             6 in all, the last 1 s ago",
            "agents             5 known, 1 excluded, for 59 min more",
            "too little memory  3 offers, nearest: agent S7: memory 3584 of 4096 MiB, 3 s ago",
            "agent excluded     1 offer, nearest: agent S3: excluded for 59 min more, 3 s ago",
        ]
    );
    fixture.kernel.set_executor_limit(Some(1)).unwrap();
    fixture.offer(&[OfferData::new("S9", 1.0, 4096.0)], 65_000);
    fixture.kernel.poll_demand(at(65_000));
    let said = lines(&fixture, 65_000);
    assert_eq!(said[0], "nothing more is wanted: limit of 1 executor reached");
    assert!(said[1].ends_with("7 in all, the last just now, suppressed"), "{said:?}");
    let limited = "1 offer, the last: limit of 1 executor reached, just now";
    assert!(said.iter().any(|line| line.ends_with(limited)), "{said:?}");
    fixture.kernel.set_executor_limit(None).unwrap();
    let said = lines(&fixture, 4_000_000);
    assert_eq!(said[0], "waiting for as many executors as fit");
    assert!(said.iter().any(|line| line == "executor limit reached  1 offer"), "{said:?}");
    assert!(said.iter().any(|line| line == "agent excluded          1 offer"), "it is over");
    fixture.kernel.disconnected();
    assert_eq!(lines(&fixture, 0)[0], "waiting for a subscription");
    fixture.kernel.close();
    assert_eq!(lines(&fixture, 0)[0], "closed: nothing more is placed");
    fixture.update(placed[0], TaskState::Finished, 65_000);
}

/// Goal: an explanation contains the numbers of its text. Method: a cap, an exclusion without expiry, an agent that is
/// suspect.
#[test]
fn it_has_the_numbers() {
    let exclusion = Some(ExclusionRule { failures: 1, window: secs(60), expiry: None });
    let mut fixture = Fixture::new(&Setup { core_cap: Some(2_000), exclusion, ..Setup::default() });
    let first = fixture.start_on("S1", 0);
    fixture.update(first, TaskState::Failed, 0);
    fixture.start_on("S2", 0);
    fixture.kernel.agent_lost("S2", at(5));
    fixture.offer(&["S2", "S1"].map(|agent| OfferData::new(agent, 1.0, 100.0)), 10);
    let explanation = fixture.kernel.explain(at(12));
    assert_eq!((explanation.wanted, explanation.cap), (1, None));
    assert!(explanation.is_bounded && explanation.is_connected && !explanation.is_closed);
    assert_eq!((explanation.offers, explanation.last_offers), (4, Some(at(10))));
    assert_eq!((explanation.agents, explanation.excluded.agents), (2, 1));
    assert_eq!(explanation.excluded.first_ends, Some(Timestamp::MAX));
    let excluded = nearest(&explanation, ReasonKind::AgentExcluded).unwrap();
    assert_eq!(excluded.to_string(), "agent S1: excluded for ever");
    assert_eq!(
        (&*excluded.why(), excluded.hostname.as_deref()),
        ("excluded for ever", Some("host"))
    );
    let suspect = nearest(&explanation, ReasonKind::AgentSuspect).unwrap();
    assert_eq!(suspect.reason, Reason::AgentSuspect { until: at(10_005) });
    assert!(suspect.to_string().ends_with("not used for 10 s more"), "{suspect}");
    fixture.start_on("S3", 20);
    let Some(Reason::CoreCap { .. }) = fixture.kernel.explain(at(20)).cap else { panic!("no cap") };
}

/// Goal: near misses under earlier settings are dropped. Method: require more memory, then less, with offers in between
/// and without.
#[test]
fn other_settings_have_other_misses() {
    let mut fixture = Fixture::new(&Setup { memory: 4096, ..Setup::default() });
    let near = |fixture: &Fixture| {
        let explanation = fixture.kernel.explain(at(9));
        assert_eq!(explanation.declined[0].kind, ReasonKind::Memory, "counts stay");
        nearest(&explanation, ReasonKind::Memory).map(|miss| miss.to_string())
    };
    fixture.offer(&[OfferData::new("S1", 1.0, 4000.0)], 0);
    assert_eq!(near(&fixture).as_deref(), Some("agent S1: memory 4000 of 4096 MiB"));
    fixture.kernel.reconfigure(Setup { memory: 8192, ..Setup::default() }.config());
    assert_eq!(near(&fixture), None);
    fixture.offer(&[OfferData::new("S2", 1.0, 100.0)], 1);
    assert_eq!(near(&fixture).as_deref(), Some("agent S2: memory 100 of 8192 MiB"));
    fixture.kernel.set_executor_limit(Some(7)).unwrap();
    assert_eq!(near(&fixture).as_deref(), Some("agent S2: memory 100 of 8192 MiB"), "still asked");
}

/// Goal: the near misses of a handler outlive it, and the nearest of several handlers' is reported. Method: three
/// handlers, two of which are dropped.
#[test]
fn misses_outlive_their_handlers() {
    let kernel = Kernel::new(Setup { memory: 900, ..Setup::default() }.config(), IdScheme::plain());
    let near = |now| nearest(&kernel.explain(at(now)), ReasonKind::Memory).map(|it| it.to_string());
    let offer = |mut handler: Handler, memory: f64, now: u64| {
        lend(&[OfferData::new(&format!("S{memory}"), 1.0, memory)], |offers| {
            handler.resource_offers(offers, at(now), &mut Decisions::new());
        });
        handler
    };
    drop(offer(kernel.handler(), 500.0, 0));
    assert_eq!(near(0).as_deref(), Some("agent S500: memory 500 of 900 MiB"));
    drop(offer(kernel.handler(), 600.0, 1));
    let stays = offer(kernel.handler(), 300.0, 5_000);
    assert_eq!(near(5_000).as_deref(), Some("agent S600: memory 600 of 900 MiB"));
    let _stays = offer(stays, 200.0, 99_000);
    assert_eq!(near(99_000).as_deref(), Some("agent S200: memory 200 of 900 MiB"), "the last");
}

/// An operation on a kernel that places hardly any executors.
#[derive(Clone, Debug)]
enum Step {
    /// After this number of milliseconds a handler gets offers of agents by number: cores, memory, and whether the zone
    /// is allowed.
    Offers(u64, usize, Vec<(u8, u8, u8, bool)>),
    /// A handler is replaced.
    Leave(usize),
    /// The executors' memory changes to this number of MiB.
    Ask(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let offer = (0..5_u8, 0..9_u8, 0..20_u8, any::<bool>());
    prop_oneof![
        8 => (0..6_000_u64, 0..2_usize, vec(offer, 0..6))
            .prop_map(|(later, handler, offers)| Step::Offers(later, handler, offers)),
        1 => (0..2_usize).prop_map(Step::Leave),
        1 => (10..12_u64).prop_map(Step::Ask),
    ]
}

/// A decline as the caller saw it.
#[derive(Clone, Debug)]
struct Seen {
    agent: String,
    reason: Reason,
    at: Timestamp,
    terms: usize,
    handler: usize,
}

impl Seen {
    fn nearness(&self) -> u64 {
        match self.reason {
            Reason::Cpus { offered, .. } => offered.millis(),
            Reason::Memory { offered, .. } => offered.get(),
            _ => 0,
        }
    }
}

/// Checks the reported miss of one kind. `seen` are the declines of that kind under the present settings.
fn check_nearest(miss: Option<Miss>, seen: &[&Seen]) {
    let Some(miss) = miss else {
        assert!(seen.is_empty(), "nothing is named of {seen:?}");
        return;
    };
    let is_it = |seen: &&&Seen| {
        let agent = Some(seen.agent.as_str()) == miss.agent_id.as_deref();
        agent && (seen.reason, seen.at) == (miss.reason, miss.at)
    };
    let named = seen.iter().find(is_it).expect("what is named happened");
    let times = || seen.iter().map(|seen| seen.at);
    let (first, last) = (times().min().unwrap(), times().max().unwrap());
    assert!(last.since(named.at) < secs(20), "{named:?} of {seen:?}");
    let later = seen.iter().filter(|it| it.at >= named.at && it.handler == named.handler);
    let rivals = later.chain(seen.iter().filter(|_| last.since(first) < secs(10)));
    for rival in rivals {
        assert!(rival.nearness() <= named.nearness(), "{rival:?} is nearer than {named:?}");
    }
}

proptest! {
    /// Goal: for each kind of reason a nearest miss is reported, and it did occur. Method: random offers to two
    /// handlers that are replaced at times, under settings that change; each report is compared with all declines.
    #[test]
    fn the_nearest_miss_is_named(steps in vec(step(), 1..40)) {
        let setup = |memory| Setup {
            executor_cores: Some(8_000),
            memory,
            zones: vec!["east"],
            ..Setup::default()
        };
        let kernel = Kernel::new(setup(10).config(), IdScheme::plain());
        let mut handlers = [(0, kernel.handler()), (1, kernel.handler())];
        let (mut now, mut asked, mut terms, mut seen) = (0, 10, 0, Vec::new());
        for step in steps {
            match step {
                Step::Leave(which) => {
                    handlers[which] = (handlers[which].0 + 2, kernel.handler());
                }
                Step::Ask(memory) => {
                    terms += usize::from(asked != memory);
                    asked = memory;
                    kernel.reconfigure(setup(memory).config());
                }
                Step::Offers(later, which, offers) => {
                    now += later;
                    let offer_data = |&(agent, cores, memory, east): &(u8, u8, u8, bool)| {
                        let zone = if east { "east" } else { "west" };
                        OfferData::new(&format!("S{agent}"), cores.into(), memory.into()).in_zone(zone)
                    };
                    let batch: Vec<OfferData> = offers.iter().map(offer_data).collect();
                    let (handler, door) = &mut handlers[which];
                    let mut decisions = Decisions::new();
                    lend(&batch, |offers| door.resource_offers(offers, at(now), &mut decisions));
                    seen.extend(decisions.declines().iter().map(|row| Seen {
                        agent: batch[row.offer as usize].agent.clone(),
                        reason: row.reason,
                        at: at(now),
                        terms,
                        handler: *handler,
                    }));
                }
            }
            let explanation = kernel.explain(at(now));
            for kind in ReasonKind::ALL {
                let in_force = |it: &&Seen| it.reason.kind() == kind && it.terms == terms;
                let in_force: Vec<&Seen> = seen.iter().filter(in_force).collect();
                check_nearest(nearest(&explanation, kind), &in_force);
            }
        }
    }
}

/// Goal: the nearest agent that didn't meet the constraint is shown with the condition that it didn't meet. Method: a
/// constraint of one condition; an agent of another zone.
#[test]
fn an_unmet_condition_is_told() {
    let mut fixture = Fixture::new(&Setup { zones: vec!["east"], ..Setup::default() });
    fixture.offer(&[OfferData::new("S1", 1.0, 100.0).in_zone("west")], 0);
    let miss = nearest(&fixture.kernel.explain(at(0)), ReasonKind::ConstraintUnmet).unwrap();
    let condition = miss.condition.clone().unwrap();
    assert!(condition.contains("zone") && condition.contains("east"), "{condition}");
    assert!(miss.to_string().contains(&condition), "{miss}");
}
