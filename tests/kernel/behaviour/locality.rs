//! The locality wait: waiting for offers of wanted hosts.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use offermill::resources::{ExecutorResources, Gpus, Mebibytes, MilliCpus};
use offermill::{ExecutorId, Reason, ReasonKind, Recovered, TaskState, Timestamp};
use proptest::prelude::*;

use super::Fixture;
use crate::world::{OfferData, Setup, at, secs};

fn waiting(wait: u64) -> Setup {
    Setup { locality_wait: Some(Duration::from_millis(wait)), ..Setup::default() }
}

/// An offer with room for three executors.
fn offer_data(agent: &str, host: &str) -> OfferData {
    OfferData::new(agent, 3.0, 900.0).on_host(host)
}

fn request(fixture: &Fixture, hosts: &[&str], now: u64) {
    fixture.kernel.request_executors(None, hosts.iter().copied(), at(now)).unwrap();
}

/// The number of executors that each offer got.
fn placed(fixture: &mut Fixture, batch: &[OfferData], now: u64) -> Vec<usize> {
    fixture.offer(batch, now);
    let mut each = vec![0; batch.len()];
    for accept in fixture.decisions.accepts() {
        each[accept.offers[0] as usize] = accept.executors.len();
    }
    each
}

/// Goal: during the wait each wanted host gets one executor and other hosts none, with the reason and the end of the
/// wait; the wait includes its last millisecond. Method: three hosts, one of them wanted, on both sides of the end.
#[test]
fn wanted_hosts_come_first_for_a_while() {
    let mut fixture = Fixture::new(&waiting(3000));
    request(&fixture, &["b", "elsewhere"], 1000);
    let batch = [offer_data("S1", "a"), offer_data("S2", "b"), offer_data("S3", "b")];
    assert_eq!(placed(&mut fixture, &batch, 1000), [0, 1, 0]);
    let until = at(4001);
    for decline in fixture.declines() {
        assert_eq!(
            (decline.reason, decline.refuse),
            (Reason::Locality { until }, at(3001).since(at(0)))
        );
    }
    assert_eq!(placed(&mut fixture, &batch, 4000), [0, 0, 0], "the host has one");
    assert_eq!(fixture.declines()[0].refuse, Duration::from_millis(1));
    let text = fixture.kernel.explain(at(4000)).to_string();
    assert!(
        text.contains(
            "other hosts wanted  5 offers, the last: agent S3: other hosts are wanted for 1 s more"
        ),
        "{text}"
    );
    assert_eq!(placed(&mut fixture, &batch, 4001), [3, 3, 3]);
    let text = fixture.kernel.explain(at(4001)).to_string();
    assert!(
        text.ends_with("other hosts wanted  5 offers"),
        "a miss that is over isn't told: {text}"
    );
}

/// Goal: without a wait, with a wait of zero, or without wanted hosts, hosts don't matter. Method: each of them, with
/// an offer in the moment of the request; at the executor limit in between.
#[test]
fn nothing_waits_unless_asked_to() {
    for setup in [Setup::default(), waiting(0)] {
        let mut fixture = Fixture::new(&setup);
        request(&fixture, &["b"], 0);
        assert_eq!(
            placed(&mut fixture, &[offer_data("S1", "a"), offer_data("S2", "b")], 0),
            [3, 3]
        );
        fixture.kernel.set_executor_limit(Some(6)).unwrap();
        assert_eq!(placed(&mut fixture, &[offer_data("S3", "c")], 5), [0]);
        fixture.kernel.set_executor_limit(None).unwrap();
        assert_eq!(placed(&mut fixture, &[offer_data("S3", "c")], 5), [3]);
    }
    let mut fixture = Fixture::new(&waiting(3000));
    assert_eq!(placed(&mut fixture, &[offer_data("S1", "a")], 0), [3]);
    request(&fixture, &[], 0);
    assert_eq!(placed(&mut fixture, &[offer_data("S2", "b")], 0), [3]);
}

/// Goal: a new executor limit alone doesn't change the hosts and the wait; `set_locality` begins a wait with the next
/// batch; an invalid request changes nothing. Method: each, and offers of a host that isn't wanted.
#[test]
fn each_call_begins_what_it_says() {
    let mut fixture = Fixture::new(&waiting(100));
    request(&fixture, &["b"], 0);
    let other = [offer_data("S1", "a")];
    assert_eq!(placed(&mut fixture, &other, 0), [0]);
    fixture.kernel.set_executor_limit(Some(50)).unwrap();
    assert_eq!(placed(&mut fixture, &other, 100), [0]);
    let limit = offermill::limits::EXECUTORS_MAX + 1;
    assert!(fixture.kernel.request_executors(Some(limit), ["a"], at(100)).is_err());
    assert_eq!(placed(&mut fixture, &other, 100), [0]);
    assert_eq!(fixture.kernel.executor_limit(), Some(50));
    assert_eq!(placed(&mut fixture, &other, 101), [3]);
    fixture.kernel.set_locality(["b"]);
    assert_eq!(fixture.kernel.executor_limit(), Some(50));
    assert_eq!(placed(&mut fixture, &other, 500), [0]);
    assert_eq!(placed(&mut fixture, &other, 600), [0]);
    assert_eq!(placed(&mut fixture, &other, 601), [3]);
    fixture.kernel.request_executors(None, [], at(601)).unwrap();
    assert_eq!((fixture.kernel.executor_limit(), fixture.kernel.wanted() > 100), (None, true));
}

/// Goal: an executor counts on its host, however it was placed, until it ends. Method: one adopted, and one placed
/// before the hosts were named; then their ends, after which the host can get an executor on another agent.
#[test]
fn a_host_is_free_when_its_last_executor_ends() {
    let mut fixture = Fixture::new(&waiting(1000));
    let first = fixture.offer(&[OfferData::new("S1", 1.0, 100.0).on_host("b")], 0)[0];
    request(&fixture, &["b"], 0);
    let former = Recovered::new(
        "old",
        "S2",
        "b",
        ExecutorResources {
            cores: MilliCpus::from_cores(1),
            memory: Mebibytes::new(100),
            gpus: Gpus::ZERO,
            port: None,
        },
    );
    let adopted = fixture.kernel.adopt(&[former], at(0)).unwrap()[0].unwrap();
    let third = [offer_data("S3", "b")];
    assert_eq!(placed(&mut fixture, &third, 1), [0]);
    fixture.update(first, TaskState::Finished, 2);
    assert_eq!(placed(&mut fixture, &third, 3), [0]);
    fixture.update(adopted, TaskState::Finished, 4);
    assert_eq!(placed(&mut fixture, &third, 5), [1]);
    assert_eq!(placed(&mut fixture, &[offer_data("S1", "b")], 6), [0]);
}

/// Goal: many agents on one host, and forgotten agents, are handled correctly. Method: a hundred agents of a wanted
/// host, in one batch and in many, then others after these were forgotten.
#[test]
fn a_host_may_have_many_agents() {
    let mut fixture = Fixture::new(&waiting(u64::MAX));
    request(&fixture, &["b"], 0);
    let batch: Vec<OfferData> = (0..100).map(|n| offer_data(&format!("S{n}"), "b")).collect();
    let one = fixture.offer(&batch, 0);
    assert_eq!(one.len(), 1);
    assert_eq!(fixture.offer(&batch, 1), []);
    fixture.update(one[0], TaskState::Finished, 2);
    let later = 2_000_000;
    assert_eq!(fixture.kernel.tick(at(later)).agents_forgotten, 100);
    assert_eq!(placed(&mut fixture, &[offer_data("T1", "b")], later), [1]);
    assert_eq!(
        placed(&mut fixture, &[offer_data("T2", "b")], later),
        [0],
        "the places are used again"
    );
    assert_eq!(fixture.declines()[0].reason, Reason::Locality { until: Timestamp::MAX });
    assert_eq!(fixture.declines()[0].refuse, secs(5));
}

/// One batch: agents by number, two per host; then the number of executors that end, and the time until the next batch.
type Turn = (Vec<u8>, usize, u64);

proptest! {
    /// Goal: with any compatibility flags and placement, during the wait each wanted host without an executor gets one
    /// if it is offered, and no other host gets one; after it, and without it, all that is offered is used. Method:
    /// random batches and ends, compared with this rule.
    #[test]
    fn a_wanted_host_gets_one(
        merge in any::<bool>(),
        elsewhere in any::<bool>(),
        consolidate in any::<bool>(),
        wanted in prop::sample::subsequence(vec![0u8, 1, 2], 0..4),
        turns in prop::collection::vec((prop::collection::vec(0u8..8, 0..6), 0usize..3, 0u64..40), 1..12),
    ) {
        let mut setup = Setup { consolidate, exclusion: None, ..waiting(50) };
        (setup.compatibility.merge_offers, setup.compatibility.replace_elsewhere) = (merge, elsewhere);
        let mut fixture = Fixture::new(&setup);
        request(&fixture, &wanted.iter().map(|host| ["h0", "h1", "h2"][usize::from(*host)]).collect::<Vec<_>>(), 0);
        let (mut now, mut live) = (0, HashMap::new());
        let turns: Vec<Turn> = turns;
        for (agents, ends, pause) in turns {
            let offered = |agent| offer_data(&format!("S{agent}"), &format!("h{}", agent / 2));
            let batch: Vec<OfferData> = agents.iter().map(offered).collect();
            let held: HashSet<u8> = live.values().copied().collect();
            let ids = fixture.offer(&batch, now);
            let mut hosts = Vec::new();
            for accept in fixture.decisions.accepts() {
                let host = agents[accept.offers[0] as usize] / 2;
                hosts.extend(accept.executors.iter().map(|executor| (executor.id, host)));
            }
            prop_assert_eq!(ids.len(), hosts.len());
            if now <= 50 && !wanted.is_empty() {
                let offered: HashSet<u8> = agents.iter().map(|agent| agent / 2).collect();
                let free = |host: &u8| offered.contains(host) && !held.contains(host);
                let expected: Vec<u8> = wanted.iter().copied().filter(free).collect();
                let mut placed: Vec<u8> = hosts.iter().map(|(_, host)| *host).collect();
                placed.sort_unstable();
                prop_assert_eq!(placed, expected);
                for decline in fixture.declines() {
                    prop_assert_eq!(decline.reason.kind(), ReasonKind::Locality);
                }
            } else {
                prop_assert_eq!(hosts.len(), 3 * agents.len());
            }
            live.extend(hosts);
            let ended: Vec<ExecutorId> = live.keys().copied().take(ends).collect();
            for id in ended {
                live.remove(&id);
                fixture.update(id, TaskState::Failed, now);
            }
            now += pause;
        }
    }
}

/// Goal: a wanted host's executor goes to an agent on which none failed, if there is one. Method: two agents of the
/// host, in both orders; an executor failed on one of them.
#[test]
fn an_agent_without_failures_of_a_wanted_host_comes_first() {
    let mut setup = waiting(3000);
    setup.compatibility.replace_elsewhere = true;
    for order in [["S1", "S2"], ["S2", "S1"]] {
        let mut fixture = Fixture::new(&setup);
        let failing = fixture.start_on("S1", 0);
        fixture.update(failing, TaskState::Failed, 0);
        request(&fixture, &["b"], 0);
        let batch = order.map(|agent| offer_data(agent, "b"));
        let expected = order.map(|agent| usize::from(agent == "S2"));
        assert_eq!(placed(&mut fixture, &batch, 0), expected);
    }
}

/// Goal: an agent of a wanted host that has too many agents to list them all counts for itself. Method: seven agents of
/// a host; the last one gets the executor.
#[test]
fn an_unlisted_agent_gets_one_executor() {
    let mut fixture = Fixture::new(&waiting(3000));
    request(&fixture, &["b"], 0);
    let agents: Vec<OfferData> =
        (1..8).map(|agent| offer_data(&format!("S{agent}"), "b")).collect();
    let first = fixture.offer(&agents, 0);
    assert_eq!(first.len(), 1);
    fixture.update(first[0], TaskState::Finished, 1);
    assert_eq!(placed(&mut fixture, &agents[6..], 2), [1]);
    assert_eq!(placed(&mut fixture, &agents[6..], 3), [0], "it has one");
}

/// Goal: the wait begins with the first batch that may place something. Method: batches at the executor limit, and
/// without a subscription, from the request of hosts on; each ends after the wait would have.
#[test]
fn batches_that_place_nothing_begin_no_wait() {
    let batch = [offer_data("S1", "a")];
    for disconnected in [false, true] {
        let mut fixture = Fixture::new(&waiting(3000));
        fixture.kernel.registered();
        fixture.kernel.set_locality(["b"]);
        if disconnected {
            fixture.kernel.disconnected();
        } else {
            fixture.kernel.set_executor_limit(Some(0)).unwrap();
        }
        for now in [0, 1, 5000] {
            assert_eq!(placed(&mut fixture, &batch, now), [0]);
        }
        fixture.kernel.registered();
        fixture.kernel.set_executor_limit(None).unwrap();
        for (now, executors) in [(5001, 0), (8001, 0), (8002, 3)] {
            assert_eq!(placed(&mut fixture, &batch, now), [executors], "{now}");
        }
    }
}

/// Goal: executors that were there before their host was wanted count. Method: an executor on one agent of the host,
/// and then an offer of another.
#[test]
fn executors_placed_before_the_request_count() {
    let mut fixture = Fixture::new(&waiting(3000));
    let there = fixture.offer(&[OfferData::new("S1", 1.0, 100.0).on_host("b")], 0)[0];
    request(&fixture, &["b"], 1);
    assert_eq!(placed(&mut fixture, &[offer_data("S2", "b")], 1), [0]);
    fixture.update(there, TaskState::Finished, 2);
    assert_eq!(placed(&mut fixture, &[offer_data("S2", "b")], 3), [1]);
}
