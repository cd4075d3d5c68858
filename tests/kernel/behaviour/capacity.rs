//! The picture of the cluster's capacity.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use offermill::attributes::{self, OwnedAttribute};
use offermill::config::{Compatibility, ExecutorCores};
use offermill::resources::{Gpus, Mebibytes, MilliCpus};
use offermill::{
    Attribute, ClusterCapacity, Config, Decisions, Handler, IdScheme, Kernel, Offer, Resource,
    ResourceSums, Revocability, TaskState,
};

use super::Fixture;
use crate::world::{Entry, OfferData, Setup, at};

fn sums(cores: u64, memory: u64) -> ResourceSums {
    let (cores, memory) = (MilliCpus::from_cores(cores), Mebibytes::new(memory));
    ResourceSums { cores, memory, gpus: Gpus::ZERO }
}

/// Of one agent: what is offered, used and free.
fn shown(capacity: &ClusterCapacity, agent: &str) -> Option<[ResourceSums; 3]> {
    let view = capacity.agents().find(|view| view.agent_id() == agent)?;
    Some([view.offered(), view.used(), view.free()])
}

/// Goal: what is free follows launches and ends at once, and offers of what is left don't change it; what others took
/// is seen with the next offer. Method: the life of one agent of 8 cores, with executors of one core.
#[test]
fn what_is_free_follows_executors_and_offers() {
    let mut fixture = Fixture::new(&Setup { limit: Some(3), ..Setup::default() });
    assert_eq!(fixture.kernel.capacity(at(0)).sums().agents, 0);
    let placed = fixture.offer(&[OfferData::new("S1", 8.0, 8000.0)], 1);
    assert_eq!(placed.len(), 3);
    let free = |fixture: &Fixture, now| {
        let capacity = fixture.kernel.capacity(at(now));
        let [_, used, free] = shown(&capacity, "S1").unwrap();
        let executors = capacity.agents().next().unwrap().executors();
        assert_eq!(u64::from(executors), used.cores.whole_cores());
        assert_eq!(capacity.sums().free, free);
        assert_eq!(capacity.largest_agent(), used.saturating_add(free));
        (used.cores.whole_cores(), free.cores.whole_cores())
    };
    assert_eq!(free(&fixture, 2), (3, 5));
    fixture.update(placed[0], TaskState::Finished, 3);
    assert_eq!(free(&fixture, 4), (2, 6));
    // Offered again, and one more placed.
    assert_eq!(fixture.offer(&[OfferData::new("S1", 6.0, 7800.0)], 5).len(), 1);
    assert_eq!(free(&fixture, 6), (3, 5));
    fixture.update(placed[1], TaskState::Finished, 7);
    // Another framework took two cores.
    assert_eq!(fixture.offer(&[OfferData::new("S1", 4.0, 7800.0)], 8).len(), 1);
    assert_eq!(free(&fixture, 9), (3, 3));
    let capacity = fixture.kernel.capacity(at(10));
    let view = capacity.agents().next().unwrap();
    assert_eq!((view.offered_at(), view.executors()), (Some(at(8)), 3));
    // One that was there when the offer was recorded.
    fixture.update(placed[2], TaskState::Finished, 11);
    assert_eq!(free(&fixture, 12), (2, 4));
}

/// Goal: the parts of an agent's offer in one batch are added up, by role, and resources that executors may not use
/// aren't in it. Method: one agent with offers to two roles, one of them in two parts; reserved, revocable and foreign
/// resources.
#[test]
fn parts_and_roles_of_a_batch_add_up() {
    let config = Config::builder().executor_limit(Some(0)).revocable(true);
    let kernel = Kernel::new(config.clone().build().unwrap(), IdScheme::plain());
    kernel.set_executor_limit(Some(1)).unwrap();
    let resources = |cpus| [Resource::scalar("cpus", cpus), Resource::scalar("mem", 10.5)];
    let (one, two, three) = (resources(1.0), resources(2.0), resources(4.0));
    let other = [
        Resource::scalar("cpus", 8.0).reserved_for("eng"),
        Resource::scalar("cpus", 16.0).with_revocability(Revocability::Revocable),
        Resource::scalar("cpus", 32.0).reserved_for("ops"),
        Resource::scalar("gpus", 2.0),
    ];
    let offers = [
        Offer::new("1", "S1", "h", &one, &[]),
        Offer::new("2", "S1", "h", &two, &[]).with_role("eng"),
        Offer::new("3", "S2", "h", &one, &[]),
        Offer::new("4", "S1", "h", &three, &[]),
        Offer::new("5", "S1", "h", &other, &[]).with_role("eng"),
    ];
    kernel.handler().resource_offers(&offers, at(1), &mut Decisions::new());
    let capacity = kernel.capacity(at(1));
    let cores = MilliCpus::from_cores;
    let [offered, ..] = shown(&capacity, "S1").unwrap();
    assert_eq!((offered.cores, offered.gpus.get()), (cores(1 + 2 + 4 + 8 + 16), 2));
    assert_eq!(offered.memory, Mebibytes::new(31), "the halves of a MiB count");
    let by_role = capacity.by_role();
    assert_eq!(by_role.keys().copied().collect::<Vec<_>>(), ["*", "eng"]);
    assert_eq!(by_role["*"].unreserved.cores, cores(1 + 4 + 1));
    let eng = by_role["eng"];
    assert_eq!(
        [eng.reserved.cores, eng.unreserved.cores, eng.revocable.cores],
        [8, 2, 16].map(cores)
    );
}

/// Goal: what is shown of each role is what was offered to it last. Method: an agent that is offered to other roles,
/// and to more and fewer of them, each time; with offers of one role that are used together, and one by one.
#[test]
fn roles_come_and_go() {
    let resources: Vec<[Resource<'_>; 1]> =
        (0..6).map(|part| [Resource::scalar("cpus", f64::from(1 << part) / 1000.0)]).collect();
    for merge_offers in [true, false] {
        let mut compatibility = Compatibility::default();
        compatibility.merge_offers = merge_offers;
        let config = Config::builder().capacity_refresh(Duration::ZERO);
        let config = config.compatibility(compatibility).build().unwrap();
        let kernel = Kernel::new(config, IdScheme::plain());
        let mut handler = kernel.handler();
        for roles in [
            &["*", "eng"][..],
            &["ops", "eng", "*", "eng"],
            &["eng"],
            &["*", "b", "a", "b", "c", "a"],
            &["*", "a"],
        ] {
            let parts = || roles.iter().zip(&resources);
            let offers: Vec<Offer<'_>> = parts()
                .map(|(role, part)| Offer::new("o", "S1", "h", part, &[]).with_role(role))
                .collect();
            handler.resource_offers(&offers, at(1), &mut Decisions::new());
            let mut expected = BTreeMap::<&str, u64>::new();
            for ((role, _), part) in parts().zip(0..) {
                *expected.entry(*role).or_default() += 1u64 << part;
            }
            let capacity = kernel.capacity(at(1));
            let shown = capacity.by_role().into_iter();
            let shown: BTreeMap<&str, u64> =
                shown.map(|(role, offer)| (role, offer.unreserved.cores.millis())).collect();
            assert_eq!(shown, expected);
            let agent = capacity.agents().next().unwrap();
            assert_eq!(agent.roles().count(), shown.len(), "each role is there once");
        }
    }
}

/// Goal: sums by an attribute's values, and a fingerprint that follows the attributes. Method: agents in two zones, one
/// that is in both and one in none; one whose attributes grow.
#[test]
fn sums_by_attribute() {
    let config = Config::builder().capacity_refresh(Duration::ZERO).build().unwrap();
    let kernel = Kernel::new(config, IdScheme::plain());
    let resources = [Resource::scalar("cpus", 2.0)];
    let (east, west) = (Attribute::text("zone", "east"), Attribute::text("zone", "west"));
    let (both, tier) = ([east, west], [east, Attribute::scalar("tier", 3.0)]);
    let mut handler = kernel.handler();
    let mut offer = |agent: &str, attributes: &[Attribute<'_>]| {
        let offers = [Offer::new("o", agent, "h", &resources, attributes)];
        handler.resource_offers(&offers, at(1), &mut Decisions::new());
        let capacity = kernel.capacity(at(1_000_000));
        let view = capacity.agents().find(|view| view.agent_id() == agent).unwrap();
        let attributes: Vec<String> =
            view.attributes().iter().map(OwnedAttribute::to_string).collect();
        (view.attributes_fingerprint(), attributes.join(";"))
    };
    let fingerprint = offer("S1", &[east]).0;
    assert_eq!(offer("S2", &[west]).1, "zone:west");
    assert_eq!(offer("S3", &both).1, "zone:east;zone:west");
    assert_eq!(offer("S4", &[]), (0, String::new()));
    assert_eq!(offer("S5", &[east]), (fingerprint, "zone:east".to_owned()));
    let grown = offer("S1", &tier);
    assert_eq!(grown.1, "zone:east;tier:3");
    assert_ne!(grown.0, fingerprint);
    let capacity = kernel.capacity(at(2_000_000));
    let zones = capacity.by_attribute("zone");
    let cores = |zone: &str| (zones[zone].agents, zones[zone].free.cores.whole_cores());
    assert_eq!((zones.len(), cores("east"), cores("west")), (2, (3, 6), (2, 4)));
    assert!(capacity.by_attribute("rack").is_empty());
}

/// Goal: attributes that change with equal amounts are seen. Method: a handler that meets the agent for the first time;
/// one whose clock has jumped ahead and back; with offers to one role and to two.
#[test]
fn changed_attributes_are_seen() {
    for roles in [&["*"][..], &["*", "eng"]] {
        let config = Config::builder().capacity_refresh(Duration::ZERO).build().unwrap();
        let kernel = Kernel::new(config, IdScheme::plain());
        let resources = [Resource::scalar("cpus", 2.0)];
        let offer = |handler: &mut Handler, agent: &str, zone: &str, now: u64| {
            let attributes = [Attribute::text("zone", zone)];
            let offers = roles
                .iter()
                .map(|role| Offer::new("o", agent, "h", &resources, &attributes).with_role(role));
            let offers = Vec::from_iter(offers);
            handler.resource_offers(&offers, at(now), &mut Decisions::new());
            kernel.capacity(at(now)).by_attribute("zone").keys().cloned().collect::<Vec<_>>()
        };
        assert_eq!(offer(&mut kernel.handler(), "S1", "east", 0), ["east"]);
        assert_eq!(offer(&mut kernel.handler(), "S1", "west", 1_000), ["west"]);
        let mut handler = kernel.handler();
        assert_eq!(offer(&mut handler, "S1", "north", 1_000_000_000_000), ["north"]);
        let _not_yet = offer(&mut handler, "S1", "west", 0);
        assert_eq!(offer(&mut handler, "S1", "west", 200_000), ["west"]);
    }
}

/// Goal: a change of one amount alone is seen with the first offer that has it. Method: an agent whose cores, memory
/// and GPUs change one after the other, little and much, within a second.
#[test]
fn each_amount_is_seen_at_once() {
    let too_many = ExecutorCores::Fixed(MilliCpus::from_cores(8000));
    let config = Config::builder().executor_cores(too_many).capacity_refresh(Duration::ZERO);
    let config = config.build().unwrap();
    let kernel = Kernel::new(config, IdScheme::plain());
    let mut handler = kernel.handler();
    let amounts: [(u32, u32, u32); 8] = [
        (4, 1000, 0),
        (5, 1000, 0),
        (5, 1001, 0),
        (5, 900_000, 0),
        (5, 900_000, 1),
        (5, 900_000, 900),
        (6000, 900_000, 900),
        (4, 1000, 0),
    ];
    for ((cores, memory, gpus), now) in amounts.into_iter().zip(1..) {
        let resources = [
            Resource::scalar("cpus", f64::from(cores)),
            Resource::scalar("mem", f64::from(memory)),
            Resource::scalar("gpus", f64::from(gpus)),
        ];
        let offers = [Offer::new("o", "S1", "h", &resources, &[])];
        let mut decisions = Decisions::new();
        handler.resource_offers(&offers, at(now), &mut decisions);
        let shown = shown(&kernel.capacity(at(now)), "S1").unwrap();
        let expected = ResourceSums { gpus: Gpus::new(gpus), ..sums(cores.into(), memory.into()) };
        assert_eq!(shown[0], expected, "{decisions:?}");
    }
}

/// Goal: many agents are shown each with their own roles and executors. Method: more agents than a shard holds, each
/// offered to two roles, with amounts of their own; from shard to shard one executor more on each.
#[test]
fn each_of_many_agents_has_its_own() {
    const AGENTS: u32 = 600;
    let config = Config::builder().executor_cores(ExecutorCores::Fixed(MilliCpus::from_cores(1)));
    let config = config.executor_limit(Some(0)).build().unwrap();
    let kernel = Kernel::new(config, IdScheme::plain());
    let mut handler = kernel.handler();
    let executors_on = |agent: u32| 1 + agent / 256;
    let mut executors = 0;
    for agent in 0..AGENTS {
        let name = format!("S{agent}");
        let resources = [f64::from(agent + 1), f64::from(agent) + 1000.0]
            .map(|cores| [Resource::scalar("cpus", cores), Resource::scalar("mem", 9000.0)]);
        let offers = [("*", &resources[0]), ("eng", &resources[1])];
        let offers =
            offers.map(|(role, own)| Offer::new(role, &name, "h", own, &[]).with_role(role));
        executors += executors_on(agent);
        kernel.set_executor_limit(Some(executors)).unwrap();
        let mut decisions = Decisions::new();
        handler.resource_offers(&offers, at(agent.into()), &mut decisions);
        assert_eq!(decisions.executors(), executors_on(agent) as usize);
    }
    let capacity = kernel.capacity(at(1_000));
    assert_eq!(capacity.agents().count(), AGENTS as usize);
    for view in capacity.agents() {
        let number: u32 = view.agent_id()[1..].parse().unwrap();
        let (agent, own) = (u64::from(number), executors_on(number));
        let roles: BTreeMap<_, _> = view.roles().map(|it| (it.role, it.unreserved)).collect();
        assert_eq!(roles["*"].cores, MilliCpus::from_cores(agent + 1), "{view:?}");
        assert_eq!(roles["eng"].cores, MilliCpus::from_cores(agent + 1000), "{view:?}");
        let used = sums(own.into(), u64::from(own) * 1408);
        assert_eq!((view.executors(), view.used()), (own, used), "{view:?}");
    }
    let (agents, executors) = (u64::from(AGENTS), u64::from(executors));
    assert_eq!(capacity.sums().used, sums(executors, executors * 1408));
    let free = capacity.sums().offered.saturating_sub(capacity.sums().used);
    assert_eq!(capacity.sums().free, free);
    assert_eq!(capacity.largest_agent().cores, MilliCpus::from_cores(2 * agents + 999));
    assert_eq!(capacity.largest_free().unwrap().agent_id(), "S599");
}

/// Goal: a role and attributes that change together are both seen. Method: an agent whose offer has another role and
/// another zone, each from a handler that meets the agent for the first time.
#[test]
fn a_role_and_attributes_change_together() {
    let config = Config::builder().capacity_refresh(Duration::ZERO).build().unwrap();
    let kernel = Kernel::new(config, IdScheme::plain());
    let resources = [Resource::scalar("cpus", 0.5)];
    for (minute, (role, zone)) in (1..).zip([("eng", "east"), ("ops", "west"), ("etl", "north")]) {
        let now = at(minute * 60_000);
        let attributes = [Attribute::text("zone", zone)];
        let offers = [Offer::new("o", "S1", "h", &resources, &attributes).with_role(role)];
        kernel.handler().resource_offers(&offers, now, &mut Decisions::new());
        let capacity = kernel.capacity(now);
        assert_eq!(capacity.by_role().keys().copied().collect::<Vec<_>>(), [role]);
        assert_eq!(capacity.by_attribute("zone").keys().collect::<Vec<_>>(), [zone]);
        assert_eq!(capacity.agents().next().unwrap().seen_at(), now);
    }
}

/// Goal: a change of an attribute's value is seen, of whatever kind it is. Method: an attribute with values of each
/// kind, two of each, each from a handler that meets the agent for the first time.
#[test]
fn attributes_of_each_kind_are_seen() {
    let config = Config::builder().capacity_refresh(Duration::ZERO).build().unwrap();
    let kernel = Kernel::new(config, IdScheme::plain());
    let resources = [Resource::scalar("cpus", 0.5)];
    let texts = ["a:x", "a:y", "a:1", "a:2", "a:[1-2]", "a:[1-3]", "a:{x}", "a:{y}"];
    for (text, now) in texts.into_iter().zip(0..) {
        let owned = attributes::parse(text).unwrap();
        let items = attributes::Items::of(&owned);
        let lent = attributes::borrow(&owned, &items);
        let offers = [Offer::new("o", "S1", "h", &resources, &lent)];
        kernel.handler().resource_offers(&offers, at(now), &mut Decisions::new());
        let capacity = kernel.capacity(at(now));
        assert_eq!(capacity.agents().next().unwrap().attributes(), &owned[..]);
    }
}

/// Goal: an agent is recorded whatever it offers. Method: the first agent, with amounts whose fingerprint was the one
/// that stands for no record.
#[test]
fn no_amounts_look_unrecorded() {
    let mut fixture = Fixture::new(&Setup { limit: Some(1), ..Setup::default() });
    fixture.offer(&[OfferData::new("S1", 65_535.0, 6_553_500.0)], 1);
    let capacity = fixture.kernel.capacity(at(2));
    assert_eq!(capacity.agents().next().unwrap().offered_at(), Some(at(1)));
}

/// Goal: what an agent offers is recorded at once, however much it is. Method: one kind alone, each power of two after
/// nothing of it. With shifted amounts in the fingerprint, 1024 GPUs looked like none.
#[test]
fn great_amounts_are_recorded_at_once() {
    let config = Config::builder().capacity_refresh(Duration::ZERO).build().unwrap();
    let kernel = Kernel::new(config, IdScheme::plain());
    let mut handler = kernel.handler();
    let mut offer = |kind, amount: u64, now| {
        let resources = [Resource::scalar(kind, amount as f64)];
        let offers = [Offer::new("o", "S1", "h", &resources, &[])];
        handler.resource_offers(&offers, at(now), &mut Decisions::new());
        let offered = kernel.capacity(at(now)).agents().next().unwrap().offered();
        [offered.cores.millis() / 1000, offered.memory.get(), offered.gpus.get().into()]
    };
    let mut now = 0;
    for (kind, name) in ["cpus", "mem", "gpus"].into_iter().enumerate() {
        for amount in (0..32).map(|power| 1 << power) {
            now += 2;
            let mut expected = [0; 3];
            assert_eq!(offer(name, 0, now), expected, "{name} after {amount}");
            expected[kind] = amount;
            assert_eq!(offer(name, amount, now + 1), expected, "{name}");
        }
    }
}

/// Goal: a picture is returned again until it is as old as the setting says, by either direction of the clock; it never
/// changes. Method: pictures at times around the interval, beside offers.
#[test]
fn a_picture_lasts_for_the_interval() {
    let config = Config::builder().capacity_refresh(Duration::from_millis(100)).build().unwrap();
    let kernel = Kernel::new(config, IdScheme::plain());
    let first = kernel.capacity(at(1_000));
    let resources = [Resource::scalar("cpus", 2.0)];
    let offers = [Offer::new("o", "S1", "h", &resources, &[])];
    kernel.handler().resource_offers(&offers, at(1_000), &mut Decisions::new());
    for now in [1_000, 1_099, 901] {
        assert!(Arc::ptr_eq(&first, &kernel.capacity(at(now))), "{now}");
    }
    let next = kernel.capacity(at(1_100));
    assert_eq!((next.version(), next.time(), next.sums().agents), (2, at(1_100), 1));
    assert_eq!((first.version(), first.sums().agents), (1, 0));
    assert_eq!(kernel.capacity(at(0)).version(), 3, "the clock went back");
}

/// Goal: agents that are excluded, suspect or forgotten. Method: an agent that is lost before it is offered, offered,
/// and forgotten; its cell is another agent's afterwards, which offers the same.
#[test]
fn agents_come_and_go() {
    let mut fixture = Fixture::new(&Setup { limit: Some(1), memory: 9000, ..Setup::default() });
    fixture.kernel.agent_lost("S1", at(0));
    let capacity = fixture.kernel.capacity(at(1));
    let view = capacity.agents().next().unwrap();
    assert_eq!((view.suspect_until(), view.offered_at()), (Some(at(10_000)), None));
    assert_eq!((view.hostname(), view.free()), ("", ResourceSums::NONE));
    fixture.offer(&[OfferData::new("S1", 4.0, 1000.0)], 2);
    let capacity = fixture.kernel.capacity(at(3));
    assert_eq!(capacity.agents().next().unwrap().hostname(), "host");
    assert_eq!(capacity.sums().offered, ResourceSums::NONE, "it is suspect");
    fixture.offer(&[OfferData::new("S1", 4.0, 1000.0)], 10_000);
    assert_eq!(fixture.kernel.capacity(at(10_000)).sums().free, sums(4, 1000));
    fixture.kernel.agent_lost("S1", at(10_000));
    let capacity = fixture.kernel.capacity(at(10_001));
    assert_eq!((capacity.sums().withheld, capacity.sums().free), (sums(4, 1000), sums(0, 0)));
    assert!(capacity.largest_free().is_none());
    fixture.kernel.tick(at(1_000_000));
    fixture.offer(&[OfferData::new("S2", 4.0, 1000.0)], 1_000_000);
    let capacity = fixture.kernel.capacity(at(1_000_000));
    let names: Vec<&str> = capacity.agents().map(|view| view.agent_id()).collect();
    assert_eq!(names, ["S2"]);
    assert_eq!(shown(&capacity, "S2").unwrap()[2], sums(4, 1000));
}

/// Goal: a suspicion that is extended while it is in force is shown as it is then, beside agents of which nothing has
/// changed. Method: one of three agents is lost once more, and then another; nothing else happens between pictures.
#[test]
fn extended_suspicions_are_shown() {
    let mut fixture = Fixture::new(&Setup { limit: Some(1), memory: 9000, ..Setup::default() });
    let agents = ["S1", "S2", "S3"];
    fixture.offer(&agents.map(|agent| OfferData::new(agent, 4.0, 1000.0)), 0);
    let suspect = |kernel: &Kernel, now| {
        let capacity = kernel.capacity(at(now));
        agents.map(|agent| {
            let view = capacity.agents().find(|view| view.agent_id() == agent).unwrap();
            view.suspect_until().map(|until| until.as_millis())
        })
    };
    fixture.kernel.agent_lost("S2", at(1_000));
    assert_eq!(suspect(&fixture.kernel, 1_000), [None, Some(11_000), None]);
    fixture.kernel.agent_lost("S2", at(5_000));
    assert_eq!(suspect(&fixture.kernel, 5_000), [None, Some(15_000), None]);
    fixture.kernel.agent_lost("S1", at(6_000));
    assert_eq!(suspect(&fixture.kernel, 6_000), [Some(16_000), Some(15_000), None]);
    assert_eq!(suspect(&fixture.kernel, 15_500), [Some(16_000), None, None]);
}

/// Goal: absurd amounts saturate. Method: agents that offer as much as a number can say, and more.
#[test]
fn absurd_amounts_saturate() {
    let mut fixture = Fixture::new(&Setup { limit: Some(2), ..Setup::default() });
    let huge = |agent: &str| OfferData::new(agent, 1e300, f64::INFINITY);
    let large = |agent: &str| OfferData::new(agent, 1e12, 1e15);
    let batch: Vec<OfferData> =
        (0..3000).map(|one| if one % 2 == 0 { huge("S1") } else { large("S2") }).collect();
    fixture.offer(&batch, u64::MAX);
    let capacity = fixture.kernel.capacity(at(u64::MAX));
    let sums = capacity.sums();
    assert!(sums.offered.cores >= MilliCpus::from_cores(1_000_000_000_000), "{sums:?}");
    assert!(sums.free.cores <= sums.offered.cores);
    assert_eq!(fixture.kernel.capacity(at(0)).sums().agents, 2);
}

/// Goal: after a change of settings what they make usable is shown, and what changes of it. Method: revocable cores
/// that are first of no use, then usable, and then fewer, on an agent with too little memory for an executor.
#[test]
fn changed_settings_change_what_is_shown() {
    let config = |revocable| {
        let config = Config::builder().capacity_refresh(Duration::ZERO);
        config.revocable(revocable).build().unwrap()
    };
    let kernel = Kernel::new(config(false), IdScheme::plain());
    let mut handler = kernel.handler();
    let mut offered = |revocable_cores: f64, now| {
        let revocable = Resource::scalar("cpus", revocable_cores);
        let resources = [
            Resource::scalar("cpus", 2.0),
            Resource::scalar("mem", 16.0),
            revocable.with_revocability(Revocability::Revocable),
        ];
        let offers = [Offer::new("1", "S1", "h", &resources, &[])];
        handler.resource_offers(&offers, at(now), &mut Decisions::new());
        let [offered, ..] = shown(&kernel.capacity(at(now)), "S1").unwrap();
        offered.cores.whole_cores()
    };
    assert_eq!(offered(8.0, 1), 2);
    kernel.reconfigure(config(true));
    assert_eq!(offered(8.0, 2), 2 + 8);
    assert_eq!(offered(4.0, 3), 2 + 4);
}

/// Goal: executors that take what an agent offers differ in size, so the end of one is seen with its agent's next
/// offer, also if that looks like the one before. Method: two executors that take half of an agent each; the first one
/// ends, its half is offered again, and is too small by then. The same with GPUs, and a third executor.
#[test]
fn half_of_an_agent_is_offered_again() {
    let setup = Setup { executor_cores: None, ..Setup::default() };
    let mut fixture = Fixture::new(&setup);
    let half = [OfferData::new("S1", 4.0, 1000.0)];
    let first = fixture.offer(&half, 1)[0];
    assert_eq!(fixture.offer(&half, 2).len(), 1);
    fixture.update(first, TaskState::Finished, 3);
    fixture.kernel.reconfigure(Setup { memory: 2000, ..setup }.config());
    assert_eq!(fixture.offer(&half, 4), []);
    let capacity = fixture.kernel.capacity(at(5));
    let [offered, used, free] = shown(&capacity, "S1").unwrap();
    assert_eq!((offered, used, free), (sums(4, 1000), sums(4, 100), sums(4, 1000)));

    let mut fixture = Fixture::new(&Setup { gpu_cap: 8, ..Setup::default() });
    let half = [OfferData::new("S1", 1.0, 100.0).with(Entry::scalar("gpus", 2.0))];
    let first = fixture.offer(&half, 1)[0];
    assert_eq!(fixture.offer(&half, 2).len(), 1);
    fixture.update(first, TaskState::Finished, 3);
    assert_eq!(fixture.offer(&half, 4).len(), 1);
    let capacity = fixture.kernel.capacity(at(5));
    assert_eq!(capacity.agents().next().unwrap().offered_at(), Some(at(4)));
}
