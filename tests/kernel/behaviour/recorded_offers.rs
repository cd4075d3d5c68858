//! What is recorded of agents' offers for the picture of the capacity, and when.

use std::time::Duration;

use offermill::config::Compatibility;
use offermill::resources::MilliCpus;
use offermill::{Attribute, Config, Decisions, IdScheme, Kernel, Offer, Resource};

use crate::world::at;

/// Goal: nothing of what agents offer is recorded if the picture is switched off. Method: agents that are offered to
/// one role and to two, before the first picture and after it.
#[test]
fn a_picture_that_is_off_records_nothing() {
    let config = Config::builder().capacity_refresh(Duration::MAX).build().unwrap();
    let kernel = Kernel::new(config, IdScheme::plain());
    let (mut handler, mut decisions) = (kernel.handler(), Decisions::new());
    let resources = [Resource::scalar("cpus", 0.5)];
    let offer = |agent, role| Offer::new("o", agent, "h", &resources, &[]).with_role(role);
    for now in 0..3 {
        handler.resource_offers(&[offer("S1", "*")], at(now), &mut decisions);
        handler.resource_offers(&["*", "eng"].map(|it| offer("S2", it)), at(now), &mut decisions);
        let capacity = kernel.capacity(at(now));
        assert!(capacity.agents().all(|agent| agent.offered_at().is_none()));
    }
    assert_eq!(kernel.agents_known(), 2);
}

/// Goal: attributes that change with equal amounts are seen within a minute by the handler that knows the agent.
/// Method: an agent that is offered to one role and to two.
#[test]
fn changed_attributes_are_seen_within_a_minute() {
    for roles in [&["*"][..], &["*", "eng"]] {
        let config = Config::builder().capacity_refresh(Duration::ZERO).build().unwrap();
        let kernel = Kernel::new(config, IdScheme::plain());
        let mut handler = kernel.handler();
        let resources = [Resource::scalar("cpus", 0.5)];
        for (zone, now) in [("east", 0), ("west", 60_000), ("north", 120_000)] {
            let attributes = [Attribute::text("zone", zone)];
            let offer = |role| Offer::new("o", "S1", "h", &resources, &attributes).with_role(role);
            let offers: Vec<Offer<'_>> = roles.iter().map(|role| offer(*role)).collect();
            handler.resource_offers(&offers, at(now), &mut Decisions::new());
            let capacity = kernel.capacity(at(now));
            assert_eq!(Vec::from_iter(capacity.by_attribute("zone").into_keys()), [zone]);
        }
    }
}

/// Goal: equal offers of an agent that aren't used together add up. Method: an agent with one offer, and then with two
/// that are each like that one.
#[test]
fn equal_offers_one_by_one_add_up() {
    let mut compatibility = Compatibility::default();
    compatibility.merge_offers = false;
    let config = Config::builder().capacity_refresh(Duration::ZERO).compatibility(compatibility);
    let kernel = Kernel::new(config.build().unwrap(), IdScheme::plain());
    let mut handler = kernel.handler();
    let resources = [Resource::scalar("cpus", 0.5)];
    let offer = || Offer::new("o", "S1", "h", &resources, &[]);
    for (now, offers) in [(0, &[offer()][..]), (1, &[offer(), offer()])] {
        handler.resource_offers(offers, at(now), &mut Decisions::new());
        let offered = kernel.capacity(at(now)).sums().offered;
        assert_eq!(offered.cores, MilliCpus::from_millis(500 * offers.len() as u64));
    }
}

/// Goal: the offers of an agent that takes no executor are no other agent's. Method: an agent that was reported lost,
/// in one batch with the first agent, which is offered to two roles.
#[test]
fn offers_of_refusing_agents_count_nowhere() {
    let config = Config::builder().capacity_refresh(Duration::ZERO).build().unwrap();
    let kernel = Kernel::new(config, IdScheme::plain());
    let mut handler = kernel.handler();
    let resources = [Resource::scalar("cpus", 0.5)];
    let offer = |agent, role| Offer::new("o", agent, "h", &resources, &[]).with_role(role);
    handler.resource_offers(&[offer("S1", "*")], at(0), &mut Decisions::new());
    kernel.agent_lost("S2", at(0));
    let offers = [offer("S2", "ops"), offer("S1", "*"), offer("S1", "eng"), offer("S2", "*")];
    for now in 1..3 {
        handler.resource_offers(&offers, at(now), &mut Decisions::new());
        let capacity = kernel.capacity(at(now));
        assert_eq!(capacity.by_role().into_keys().collect::<Vec<_>>(), ["*", "eng"]);
        assert_eq!(capacity.sums().offered.cores, MilliCpus::from_cores(1));
    }
}
