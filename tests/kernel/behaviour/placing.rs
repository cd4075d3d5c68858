//! Placement: from offers to executors.

use offermill::constraint::{Mismatch, Unmet};
use offermill::resources::{Gpus, Mebibytes, MilliCpus};
use offermill::{
    Amount, Config, Decisions, IdScheme, Kernel, Offer, Reason, ReasonKind, Resource, Revocability,
};

use super::Fixture;
use crate::world::{Entry, OfferData, Setup, at, lend, secs};

fn cores(cores: u64) -> Option<u64> {
    Some(cores * 1000)
}

/// The number of executors of each accept.
fn counts(fixture: &Fixture) -> Vec<usize> {
    fixture.decisions.accepts().map(|accept| accept.executors.len()).collect()
}

/// Goal: each offer is answered once, and placement is round robin or consolidated as configured. Method: three agents
/// of different sizes under a cap, both ways.
#[test]
fn executors_go_round_or_fill_up() {
    let batch = [4.0, 1.0, 4.0].map(|cpus| OfferData::new(&format!("S{cpus}"), cpus, 9000.0));
    let mut batch = batch.to_vec();
    batch[2].agent = "other".into();
    let setup = Setup { core_cap: cores(6), ..Setup::default() };
    let mut fixture = Fixture::new(&setup);
    assert_eq!(fixture.offer(&batch, 0).len(), 6);
    assert_eq!(counts(&fixture), [3, 1, 2]);
    let mut fixture = Fixture::new(&Setup { consolidate: true, ..setup });
    fixture.offer(&batch, 0);
    assert_eq!(counts(&fixture), [4, 1, 1]);
}

/// Goal: offers are checked against the constraint first, and declined for it. Method: two zones, one of them allowed.
#[test]
fn only_agents_that_meet_the_constraint_are_used() {
    let mut fixture = Fixture::new(&Setup { zones: vec!["east"], ..Setup::default() });
    let offer_data = |agent: &str| OfferData::new(agent, 1.0, 100.0);
    let placed =
        fixture.offer(&[offer_data("S1").in_zone("west"), offer_data("S2").in_zone("east")], 0);
    assert_eq!(placed.len(), 1);
    let decline = fixture.declines()[0];
    let unmet = Unmet { condition: 0, mismatch: Mismatch::Differs };
    assert_eq!((decline.offer, decline.reason), (0, Reason::ConstraintUnmet(unmet)));
    assert_eq!(decline.refuse, secs(120));
    assert_eq!(fixture.kernel.agents_known(), 1, "an agent that doesn't match is not remembered");
}

/// Goal: an executor of the whole offer takes all its whole cores that the cap leaves, one executor per offer. Method:
/// 2.5 and 8 cores under a cap of 7.
#[test]
fn the_whole_offer_is_taken_within_the_cap() {
    let mut fixture =
        Fixture::new(&Setup { executor_cores: None, core_cap: cores(7), ..Setup::default() });
    fixture.offer(&[OfferData::new("S1", 2.5, 900.0), OfferData::new("S2", 8.0, 900.0)], 0);
    let taken: Vec<u64> = fixture
        .decisions
        .accepts()
        .flat_map(|accept| {
            accept.executors.iter().map(|executor| executor.resources.cores.whole_cores())
        })
        .collect();
    assert_eq!(taken, [2, 5]);
    assert_eq!(fixture.refused_on("S3", 0).kind(), ReasonKind::CoreCap);
}

/// Goal: reserved resources are taken first, and each piece names the resource, and thereby the role, from which it is
/// taken. Method: cores in three resources over two offers of one agent.
#[test]
fn reserved_resources_are_taken_first() {
    let mut fixture = Fixture::new(&Setup { executor_cores: cores(3), ..Setup::default() });
    let first = OfferData::new("S1", 2.0, 100.0);
    let second = OfferData {
        entries: vec![
            Entry::scalar("cpus", 1.5).reserved_for("etl").revocability(Revocability::Shared),
            Entry::scalar("cpus", 1.5).reserved_for("etl"),
        ],
        ..OfferData::new("S1", 0.0, 0.0)
    };
    assert_eq!(fixture.offer(&[first, second], 0).len(), 1, "the offers of one agent are merged");
    let accept = fixture.decisions.accepts().next().unwrap();
    assert_eq!(accept.offers, [0, 1]);
    let pieces: Vec<_> = accept
        .pieces(&accept.executors[0])
        .iter()
        .map(|piece| match piece.amount {
            Amount::Scalar(scalar) => (piece.offer, piece.resource, scalar.thousandths()),
            Amount::Port(_) => panic!("no port was asked for"),
        })
        .collect();
    assert_eq!(pieces, [(1, 1, 1500), (0, 0, 1500), (0, 1, 100_000)]);
}

/// Goal: resources reserved for a role above the offer's role are used, those for other roles aren't. Method: an offer
/// with both.
#[test]
fn only_reservations_of_the_role_and_those_above_are_used() {
    let mut fixture = Fixture::new(&Setup { executor_cores: cores(2), ..Setup::default() });
    let offer_data = OfferData::new("S1", 1.0, 900.0).for_role("etl/night");
    let others = offer_data.with(Entry::scalar("cpus", 8.0).reserved_for("et"));
    assert_eq!(fixture.offer(std::slice::from_ref(&others), 0), []);
    let above = others.with(Entry::scalar("cpus", 1.0).reserved_for("etl"));
    assert_eq!(fixture.offer(&[above], 0).len(), 1);
}

/// Goal: revocable resources are not used unless configured, and are never mixed with others. Method: cores for two
/// executors, half of them revocable.
#[test]
fn nothing_revocable_is_mixed_with_the_rest() {
    let revocable = |cpus| Entry::scalar("cpus", cpus).revocability(Revocability::Revocable);
    for (asked, expected) in [(false, [0, 0]), (true, [0, 1])] {
        let setup = Setup { executor_cores: cores(2), revocable: asked, ..Setup::default() };
        let mut fixture = Fixture::new(&setup);
        for (cpus, expected) in [1.5, 2.5].into_iter().zip(expected) {
            let offer_data = OfferData::new("S1", 1.5, 900.0).with(revocable(cpus));
            assert_eq!(fixture.offer(&[offer_data], 0).len(), expected);
        }
    }
}

/// Goal: offers of one agent to different roles are not mixed. Method: each alone is too small.
#[test]
fn offers_to_different_roles_are_not_merged() {
    let mut fixture = Fixture::new(&Setup { executor_cores: cores(2), ..Setup::default() });
    let half = OfferData::new("S1", 1.0, 100.0);
    assert_eq!(fixture.offer(&[half.clone(), half.clone().for_role("etl")], 0), []);
    assert_eq!(fixture.declines().len(), 2);
    assert_eq!(fixture.offer(&[half.clone(), half], 0).len(), 1);
}

/// Goal: extra cores are passed to the executor, and neither taken nor counted. Method: a cap that leaves room for
/// exactly the cores without the extra ones.
#[test]
fn extra_cores_are_only_advertised() {
    let setup = Setup { extra_cores: 3, core_cap: cores(2), ..Setup::default() };
    let mut fixture = Fixture::new(&setup);
    assert_eq!(fixture.offer(&[OfferData::new("S1", 2.0, 900.0)], 0).len(), 2);
    let accept = fixture.decisions.accepts().next().unwrap();
    assert_eq!(accept.executors[0].resources.cores, MilliCpus::from_cores(1));
    assert_eq!(accept.executors[0].advertised_cores, MilliCpus::from_cores(4));
    assert_eq!(fixture.kernel.totals().cores, MilliCpus::from_cores(2));
}

/// Goal: memory includes the overhead. Method: an offer that is one MiB too small for it.
#[test]
fn memory_is_taken_with_its_overhead() {
    let mut fixture = Fixture::new(&Setup { memory: 512, overhead: 384, ..Setup::default() });
    fixture.offer(&[OfferData::new("S1", 1.0, 895.999)], 0);
    let (asked, offered) = (Mebibytes::new(896), Mebibytes::new(895));
    assert_eq!(fixture.declines()[0].reason, Reason::Memory { asked, offered });
    assert_eq!(fixture.offer(&[OfferData::new("S1", 1.0, 896.0)], 0).len(), 1);
}

/// Goal: a fixed port is required, taken, used once per agent, and freed. Method: an agent with room for many executors
/// and one such port.
#[test]
fn a_fixed_port_means_one_executor_an_agent() {
    let mut fixture = Fixture::new(&Setup { port: Some(7337), ..Setup::default() });
    assert_eq!(fixture.refused_on("S1", 0), Reason::Port { port: 7337 });
    let offer_data = OfferData::new("S1", 9.0, 900.0).with(Entry::ports(7000, 8000));
    let placed = fixture.offer(&[offer_data], 0);
    assert_eq!(placed.len(), 1);
    let accept = fixture.decisions.accepts().next().unwrap();
    let port = accept.pieces(&accept.executors[0]).last().unwrap();
    assert_eq!((port.resource, port.amount), (2, Amount::Port(7337)));
    let freed = fixture.update(placed[0], offermill::TaskState::Finished, 1).freed.unwrap();
    assert_eq!((freed.port, freed.cores), (Some(7337), MilliCpus::from_cores(1)));
}

/// Goal: the GPU cap holds, and is the reported reason when it is reached in the middle of a batch. Method: one GPU per
/// executor, a cap of two, three agents.
#[test]
fn the_gpu_cap_is_a_cap() {
    let mut fixture =
        Fixture::new(&Setup { gpu_cap: 2, executor_gpus: Some(1), ..Setup::default() });
    let batch: Vec<OfferData> = (0..3)
        .map(|n| OfferData::new(&format!("S{n}"), 1.0, 100.0).with(Entry::scalar("gpus", 1.0)))
        .collect();
    assert_eq!(fixture.kernel.wanted(), 2);
    let placed = fixture.offer(&batch, 0);
    assert_eq!(placed.len(), 2);
    let (cap, acquired, asked) = (Gpus::new(2), Gpus::new(2), Gpus::new(1));
    assert_eq!(fixture.declines()[0].reason, Reason::GpuCap { cap, acquired, asked });
    assert_eq!(fixture.declines()[0].refuse, secs(120));
    assert_eq!(fixture.kernel.wanted(), 0);
    fixture.update(placed[0], offermill::TaskState::Killed, 1);
    assert_eq!(fixture.offer(&batch[..1], 1).len(), 1);
}

/// Goal: without a configured number the first executor of an offer takes the GPUs that the cap leaves. Method: three
/// GPUs offered, two allowed, room for two executors.
#[test]
fn the_first_executor_takes_the_gpus_that_there_are() {
    let mut fixture = Fixture::new(&Setup { gpu_cap: 2, ..Setup::default() });
    fixture.offer(&[OfferData::new("S1", 2.0, 200.0).with(Entry::scalar("gpus", 3.0))], 0);
    let accept = fixture.decisions.accepts().next().unwrap();
    let gpus: Vec<u32> =
        accept.executors.iter().map(|executor| executor.resources.gpus.get()).collect();
    assert_eq!(gpus, [2, 0]);
}

/// Goal: the rest of an accepted offer is refused for long if a cap is reached, for a short time otherwise, and is
/// requested again when the cap has room. Method: one of two cores, then a higher limit before any poll.
#[test]
fn leftovers_refused_at_a_cap_are_revived() {
    let mut fixture = Fixture::new(&Setup { limit: Some(1), ..Setup::default() });
    fixture.offer(&[OfferData::new("S1", 2.0, 200.0)], 0);
    assert_eq!(fixture.decisions.accepts().next().unwrap().refuse, secs(120));
    fixture.kernel.set_executor_limit(Some(2)).unwrap();
    assert_eq!(fixture.kernel.poll_demand(at(1)), Some(offermill::DemandCall::Revive));
    fixture.offer(&[OfferData::new("S1", 1.5, 150.0)], 2);
    fixture.kernel.set_executor_limit(Some(9)).unwrap();
    fixture.offer(&[OfferData::new("S2", 1.5, 150.0)], 3);
    assert_eq!(fixture.decisions.accepts().next().unwrap().refuse, secs(5));
}

/// Goal: executors that take nothing are impossible, and offers without an id or agent are declined as malformed.
/// Method: both.
#[test]
fn offers_without_names_are_malformed() {
    let mut fixture = Fixture::new(&Setup::default());
    let offer_data = OfferData::new("S1", 1.0, 100.0);
    let nameless = OfferData { id: String::new(), ..offer_data.clone() };
    let homeless = OfferData { agent: String::new(), ..offer_data };
    assert_eq!(fixture.offer(&[nameless, homeless], 0), []);
    assert!(fixture.declines().iter().all(|row| row.reason == Reason::Malformed));
    assert_eq!(fixture.kernel.offer_counts().declined(ReasonKind::Malformed), 2);
}

/// Goal: no executor is placed on an agent whose maintenance is near or has begun, and the reason says when it begins.
/// Method: both sides of the lead time, and both sides of the beginning.
#[test]
fn agents_near_their_maintenance_are_left_alone() {
    let lead = secs(600);
    let config = Config::builder().executor_memory(Mebibytes::new(1)).maintenance_lead(lead);
    let kernel = Kernel::new(config.build().unwrap(), IdScheme::plain());
    let resources = [Resource::scalar("cpus", 1.0), Resource::scalar("mem", 999.0)];
    let offer = |id, seconds: Option<u64>| {
        let offer = Offer::new(id, id, "host", &resources, &[]);
        seconds.map_or(offer, |seconds| offer.maintained_in(secs(seconds)))
    };
    let offers =
        [offer("a", None), offer("b", Some(600)), offer("c", Some(599)), offer("d", Some(0))];
    let mut decisions = Decisions::new();
    kernel.handler().resource_offers(&offers, at(0), &mut decisions);
    let reasons: Vec<(u32, String)> =
        decisions.declines().iter().map(|it| (it.offer, it.reason.to_string())).collect();
    let expected = [(2, "agent under maintenance in 599 s"), (3, "agent under maintenance")];
    assert_eq!(reasons, expected.map(|(at, why)| (at, why.to_owned())));
    assert_eq!(decisions.accepts().count(), 2);
}

/// Goal: asking what is left of a batch that was not the answered one doesn't fail. Method: the remainder of an empty
/// batch, of one with other resources, and of one with fewer.
#[test]
fn what_is_left_of_another_batch_is_no_panic() {
    let mut fixture = Fixture::new(&Setup::default());
    fixture.offer(&[OfferData::new("S1", 4.0, 900.0), OfferData::new("S2", 4.0, 900.0)], 0);
    let ports = OfferData { entries: vec![Entry::ports(1, 2)], ..OfferData::new("S1", 0.0, 0.0) };
    for other in
        [vec![], vec![ports], vec![OfferData::new("S1", 0.5, 1.0), OfferData::new("S2", 1.0, 1.0)]]
    {
        lend(&other, |offers| {
            for accepted in fixture.decisions.accepts() {
                let left = accepted.left(offers);
                assert!(left.iter().count() <= 2);
            }
        });
    }
}

/// Goal: offers are used together if agent and role are the same, and only then. Method: two offers each for many roles
/// of one agent, and for two roles of many agents, in one batch.
#[test]
fn only_offers_of_one_agent_and_role_are_used_together() {
    let kernel = Kernel::new(Setup::default().config(), IdScheme::plain());
    let names: Vec<String> = (0..300).map(|number| format!("name-{number}")).collect();
    let resources = [Resource::scalar("cpus", 1.0), Resource::scalar("mem", 100.0)];
    let offer = |agent, role| Offer::new("offer", agent, "host", &resources, &[]).with_role(role);
    let mut offers = Vec::new();
    for _ in 0..2 {
        offers.extend(names.iter().map(|role| offer("agent", role)));
        offers.extend(names.iter().flat_map(|agent| ["*", "eng"].map(|role| offer(agent, role))));
    }
    let mut decisions = Decisions::new();
    kernel.handler().resource_offers(&offers, at(0), &mut decisions);
    assert_eq!((decisions.accepts().count(), decisions.executors()), (900, 1800));
    for accept in decisions.accepts() {
        let [first, second] = accept.offers else { panic!("{:?}", accept.offers) };
        assert_eq!(*second - *first, 900, "the same agent and role");
    }
}

/// Goal: executors that take a number of GPUs are as many as fit into each supply. Method: all small numbers of GPUs
/// that are revocable, that aren't, and that an executor takes.
#[test]
fn gpus_of_both_supplies_limit_executors() {
    for (firm, revocable) in (0..5).flat_map(|firm| (0..5).map(move |more| (firm, more))) {
        for each in 1..4 {
            let setup = Setup {
                revocable: true,
                executor_gpus: Some(each),
                gpu_cap: 100,
                ..Setup::default()
            };
            let mut fixture = Fixture::new(&setup);
            let more = Entry::scalar("gpus", f64::from(revocable));
            let offer = OfferData::new("S1", 20.0, 2000.0)
                .with(Entry::scalar("gpus", f64::from(firm)))
                .with(more.revocability(Revocability::Revocable));
            let placed = fixture.offer(&[offer], 0).len() as u32;
            assert_eq!(placed, firm / each + revocable / each, "{firm}, {revocable}, {each}");
            fixture.kernel.check().unwrap();
        }
    }
}
