//! Which resources agents offer, and when.

use std::sync::Arc;
use std::time::Duration;

use super::bench::{Bench, EPOCH, Folder, launch, scalar};
use crate::cluster::local::{AgentAttributes, LocalCluster, LocalConfig};
use crate::engine::cluster_manager::{
    Call, ClusterManager, Event, Events, OwnedAttributeValue, OwnedResource, OwnedValue,
};
use crate::resources::PortRange;
use crate::status::{TaskState, UpdateReason};

const LONG: Duration = Duration::from_secs(600);
/// A duration of many allocation intervals.
const A_WHILE: Duration = Duration::from_millis(400);

fn ports(resources: &[OwnedResource]) -> &[PortRange] {
    match resources.iter().find(|resource| resource.name == "ports").map(|it| &it.value) {
        Some(OwnedValue::Ranges(ranges)) => ranges,
        other => panic!("ports are {other:?}"),
    }
}

/// Goal: each agent offers all its resources, with its own name, attributes and ports. Method: the first batch of three
/// agents.
#[test]
fn agents_offer_what_they_have() {
    let bench =
        Bench::with("have", "local-cluster[3,2,1024]", |it| it.ports(PortRange::new(4000, 4008)));
    let offers = bench.offers();
    assert_eq!(offers.len(), 3);
    for (number, offer) in offers.iter().enumerate() {
        assert_eq!(offer.agent_id, format!("{}-S{number}", bench.framework_id));
        assert_eq!(offer.hostname, format!("agent-{number}"));
        assert_eq!((scalar(offer, "cpus"), scalar(offer, "mem")), (2000, 1_024_000));
        let first = 4000 + 3 * number as u64;
        assert_eq!(ports(&offer.resources), [PortRange::new(first, first + 2)]);
        let zone = if number == 1 { "west" } else { "east" };
        assert_eq!(offer.attributes[0].value, OwnedAttributeValue::Text(zone.into()));
        assert_eq!(offer.attributes[1].value, OwnedAttributeValue::Text(format!("r{number}")));
    }
    assert!(!bench.is_offered(A_WHILE), "one open offer an agent");
}

/// Goal: resources in use are not offered, the rest is, and a port is assigned once. Method: an executor with a port,
/// and the offers while it runs and after it.
#[test]
fn what_is_left_is_offered() {
    let bench = Bench::new("left", "local-cluster[1,2,512]");
    let offer = bench.offer();
    let mut server = launch("server", &["sleep", "1000"]);
    server.resources.port = Some(31_500);
    bench.accept(&offer, &[server], Duration::ZERO);
    let rest = bench.offer();
    assert_eq!((scalar(&rest, "cpus"), scalar(&rest, "mem")), (1000, 448_000));
    let around = [PortRange::new(31_000, 31_499), PortRange::new(31_501, 32_000)];
    assert_eq!(ports(&rest.resources), around);
    bench.decline(&rest, LONG);
    bench.kill("server", Duration::ZERO);
    bench.update("server", TaskState::Killed);
    let whole = bench.offer();
    assert_eq!(scalar(&whole, "cpus"), 2000, "more is free than was refused");
    assert_eq!(ports(&whole.resources), [PortRange::new(31_000, 32_000)]);
}

/// Goal: refusals last for their duration or until a revive; suppression lasts until a revive. Method: each in turn.
#[test]
fn refusals_and_suppression_hold() {
    let bench = Bench::new("refusals", "local-cluster[1,1,512]");
    bench.decline(&bench.offer(), Duration::ZERO);
    let declined = bench.offer();
    bench.call(Call::Decline { epoch: EPOCH + 1, offers: &[&declined.id], refuse: LONG });
    assert!(
        !bench.is_offered(A_WHILE),
        "it is still open: the decline was of another subscription"
    );
    bench.decline(&declined, Duration::from_millis(100));
    bench.decline(&bench.offer(), LONG);
    assert!(!bench.is_offered(A_WHILE));
    bench.call(Call::Revive { epoch: 1 });
    let revived = bench.offer();
    bench.call(Call::Suppress { epoch: 1 });
    bench.decline(&revived, Duration::ZERO);
    assert!(!bench.is_offered(A_WHILE));
    bench.call(Call::Revive { epoch: 1 });
    let rest = bench.offer();
    bench.accept(&rest, &[], LONG);
    assert!(!bench.is_offered(A_WHILE), "an accept refuses what it leaves");
}

/// Goal: the loss of an agent ends its offer and its executors, and the agent comes back under another id. Method: lose
/// one of two agents, twice, and restore it, twice.
#[cfg(target_os = "linux")]
#[test]
fn an_agent_is_lost_and_comes_back() {
    let bench = Bench::new("lost", "local-cluster[2,2,512]");
    let offers = bench.offers();
    for (offer, id) in offers.iter().zip(["here", "there"]) {
        bench.accept(offer, &[launch(id, &["sleep", "1000"])], Duration::ZERO);
        bench.update(id, TaskState::Running);
    }
    let mut open = Vec::new();
    while open.len() < 2 {
        open.extend(bench.offers());
    }
    let lost = &offers[0].agent_id;
    let open = open.iter().find(|offer| offer.agent_id == *lost).unwrap();

    bench.cluster.lose_agent(0).unwrap();
    bench.cluster.lose_agent(0).unwrap();
    bench.expect("rescission", |event| match event {
        Event::Rescinded { offer_id } if *offer_id == open.id => Some(()),
        _ => None,
    });
    bench.expect("loss", |event| match event {
        Event::AgentLost { agent_id } if agent_id == lost => Some(()),
        _ => None,
    });
    let gone = bench.update("here", TaskState::Gone);
    assert_eq!(gone.reason, UpdateReason::AgentRemoved);
    let sandbox = bench.sandbox(&offers[0], "here");
    super::bench::until("gone", || super::bench::processes_in(&sandbox).is_empty());
    let more = bench.try_expect(A_WHILE, |event| match event {
        Event::Update(update)
            if update.executor == "here" && update.state != TaskState::Starting =>
        {
            Some(update.clone())
        }
        _ => None,
    });
    assert!(more.is_none(), "its end was reported before, but {more:?}");
    bench.accept(open, &[launch("late", &["true"])], Duration::ZERO);
    assert_eq!(bench.update("late", TaskState::Dropped).reason, UpdateReason::InvalidOffers);

    bench.cluster.restore_agent(0).unwrap();
    bench.cluster.restore_agent(0).unwrap();
    let back = bench.offer();
    assert_eq!(back.agent_id, format!("{}-S2", bench.framework_id));
    assert_eq!(back.hostname, offers[0].hostname);
    assert_eq!(back.attributes, offers[0].attributes);
    assert_eq!(scalar(&back, "cpus"), 2000);
    assert!(bench.cluster.lose_agent(2).unwrap_err().is_setting());
    bench.reconcile(&["here", "there"]);
    bench.update("here", TaskState::Gone);
    bench.update("there", TaskState::Running);
}

struct Deaf;

impl Events for Deaf {
    fn send(&self, event: Event) {
        panic!("nothing was started, but {event:?} was sent");
    }
}

/// Goal: invalid settings are rejected before anything starts. Method: each setting, and a work folder below a file.
#[test]
fn bad_settings_start_nothing() {
    let config = || LocalConfig::new("local-cluster[7,1,512]".parse().unwrap());
    let attributes = AgentAttributes::parse("p:[%d-5]").unwrap();
    for bad in [
        config().attributes(attributes),
        config().allocation_interval(Duration::ZERO),
        config().allocation_interval(Duration::MAX),
        config().grace(Duration::MAX),
        config().ports(PortRange::new(9, 1)),
        config().ports(PortRange::new(0, 1)),
        config().ports(PortRange::new(1, 65_536)),
    ] {
        assert!(LocalCluster::new(bad).unwrap_err().is_setting());
    }
    let folder = Folder::new("bad-settings");
    let file = folder.0.join("file");
    std::fs::write(&file, "").unwrap();
    let cluster = LocalCluster::new(config().work_dir(file.join("below"))).unwrap();
    let error = cluster.start(Arc::new(Deaf)).unwrap_err();
    assert!(error.is_setting());
    assert!(error.to_string().contains("a folder in which sandboxes can be created"));
    assert!(cluster.call(Call::Revive { epoch: 1 }).unwrap_err().is_cluster());
    cluster.stop();
}

/// Goal: no executor gets a port that belongs to another agent. Method: more agents than ports.
#[test]
fn agents_without_a_share_of_the_ports_offer_none() {
    let bench = Bench::with("portless", "local-cluster[3,1,512]", |it| {
        it.ports(PortRange::new(4000, 4001))
    });
    for offer in bench.offers() {
        assert!(offer.resources.iter().all(|resource| resource.name != "ports"));
    }
}
