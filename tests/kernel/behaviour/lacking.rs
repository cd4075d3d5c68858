//! What explanations say that no agent of the cluster has.

use std::time::Duration;

use offermill::resources::{Gpus, Mebibytes, MilliCpus};
use offermill::{
    ClusterLack, Decisions, IdScheme, Kernel, Picks, ReasonKind, Recovered, StatusUpdate, TaskState,
};

use super::Fixture;
use crate::world::{Entry, OfferData, Setup, at, lend, secs};

/// The texts of what no agent has.
fn lacks(fixture: &Fixture, now: u64) -> Vec<String> {
    fixture.kernel.explain(at(now)).lacks.iter().map(ToString::to_string).collect()
}

/// Goal: each kind that no agent has enough of is named with the agent that has most of it, and nothing once an agent
/// has enough. Method: agents that lack cores, memory and GPUs, then one with enough of each but not of all, then one
/// that would do; the clock moves on, so that each picture is a new one.
#[test]
fn what_no_agent_has_is_named() {
    let (gpu_cap, executor_gpus) = (8, Some(2));
    let setup = Setup { executor_cores: Some(64_000), memory: 4096, ..Setup::default() };
    let mut fixture = Fixture::new(&Setup { gpu_cap, executor_gpus, ..setup });
    assert!(lacks(&fixture, 0).is_empty(), "nothing was offered");
    let agent = |agent: &str, cores: f64, memory: f64, gpus: f64| {
        OfferData::new(agent, cores, memory).with(Entry::scalar("gpus", gpus))
    };
    fixture.offer(&[agent("S1", 16.0, 100.0, 1.0), agent("S2", 2.5, 3000.0, 1.0)], 1_000);
    let cores = "no agent has 64 cores for executors, the largest has 16 (agent S1)";
    let memory = "no agent has 4096 MiB for executors, the largest has 3000 MiB (agent S2)";
    let gpus = "no agent has 2 GPUs for executors, the largest has 1 (agent S1)";
    assert_eq!(lacks(&fixture, 2_000), [cores, memory, gpus]);
    let explanation = fixture.kernel.explain(at(2_000));
    assert_eq!(explanation.capacity_at, Some(at(2_000)));
    let ClusterLack::Cores { asked, largest, agent: named } = &explanation.lacks[0] else {
        panic!("{explanation}")
    };
    assert_eq!([*asked, *largest], [64, 16].map(MilliCpus::from_cores));
    assert_eq!((&*named.agent_id, named.hostname.as_deref()), ("S1", Some("host")));
    let text = explanation.to_string();
    assert!(text.contains(&format!("\ncluster        {memory}\n")), "{text}");

    fixture.offer(&[agent("S3", 64.0, 100.0, 2.0), agent("S4", 1.0, 5000.0, 0.0)], 3_000);
    let together = "no agent has 64 cores, 4096 MiB and 2 GPUs together for executors";
    assert_eq!(lacks(&fixture, 4_000), [together]);
    let placed = fixture.offer(&[agent("S5", 64.0, 4096.0, 2.0)], 5_000);
    assert_eq!(placed.len(), 1);
    fixture.offer(&[agent("S1", 16.0, 100.0, 1.0)], 5_000);
    assert!(lacks(&fixture, 6_000).is_empty(), "it has room once the executor ends");
    fixture.update(placed[0], TaskState::Finished, 6_000);
    assert!(lacks(&fixture, 7_000).is_empty());
}

/// Goal: what executors use counts as the agent's, so a full cluster lacks nothing. Method: an agent that executors
/// fill, and a small one; then executors become larger than any agent.
#[test]
fn a_full_cluster_lacks_nothing() {
    let mut fixture = Fixture::new(&Setup { executor_cores: Some(4_000), ..Setup::default() });
    assert_eq!(fixture.offer(&[OfferData::new("S1", 8.0, 8000.0)], 0).len(), 2);
    fixture.offer(&[OfferData::new("S1", 0.1, 7800.0), OfferData::new("S2", 1.0, 8000.0)], 1_000);
    assert!(lacks(&fixture, 2_000).is_empty());
    let larger = Setup { executor_cores: Some(9_000), memory: 50, ..Setup::default() };
    fixture.kernel.reconfigure(larger.config());
    assert!(lacks(&fixture, 3_000).is_empty(), "no offer was declined under these settings yet");
    fixture.offer(&[OfferData::new("S2", 1.0, 8000.0)], 4_000);
    let explanation = fixture.kernel.explain(at(5_000));
    let [ClusterLack::Cores { asked, largest, agent }] = &explanation.lacks[..] else {
        panic!("{explanation}")
    };
    assert_eq!([*asked, *largest].map(MilliCpus::whole_cores), [9, 8]);
    assert_eq!(&*agent.agent_id, "S1");
    fixture.kernel.set_executor_limit(Some(2)).unwrap();
    assert!(lacks(&fixture, 6_000).is_empty(), "nothing is wanted");
}

/// Goal: a constraint that no agent meets is named while that is so. Method: agents of other zones; one that meets the
/// constraint and is too small.
#[test]
fn a_constraint_that_none_meets_is_named() {
    let setup = Setup { zones: vec!["east"], limit: Some(1), ..Setup::default() };
    let mut fixture = Fixture::new(&setup);
    let west = |agent: &str| OfferData::new(agent, 1.0, 100.0).in_zone("west");
    fixture.offer(&[west("S1")], 0);
    assert_eq!(lacks(&fixture, 0), ["no agent has met the constraint in 1 offer"]);
    fixture.offer(&[west("S1"), OfferData::new("S2", 1.0, 100.0)], 1_000);
    assert_eq!(lacks(&fixture, 1_000), ["no agent has met the constraint in 3 offers"]);
    fixture.offer(&[OfferData::new("S3", 0.5, 100.0).in_zone("east")], 2_000);
    let cores = "no agent has 1 core for executors, the largest has 0.5 (agent S3)";
    assert_eq!(lacks(&fixture, 3_000), [cores]);
}

/// Goal: nothing is said of a constraint that offers weren't compared with. Method: the constraint is replaced by one
/// that the agents offered before would meet.
#[test]
fn a_replaced_constraint_is_not_judged_by_earlier_offers() {
    let setup = |zone| Setup { zones: vec![zone], ..Setup::default() };
    let mut fixture = Fixture::new(&setup("east"));
    fixture.offer(&[OfferData::new("S1", 1.0, 100.0).in_zone("west")], 0);
    assert_eq!(lacks(&fixture, 0).len(), 1);
    fixture.kernel.reconfigure(setup("west").config());
    fixture.offer(&[OfferData::new("S2", 1.0, 100.0).in_zone("north")], 1_000);
    assert!(lacks(&fixture, 1_000).is_empty());
}

/// Goal: nothing is said while an agent may have more than is known. Method: a small agent, and one that is large, on
/// which an executor took the whole offer and ended; that is excluded, or was lost, before it was offered; that is
/// about to be maintained; or whose executor was given up.
#[test]
fn an_agent_that_may_have_more_is_waited_for() {
    let small = || OfferData::new("S2", 0.5, 9000.0);
    let large = || OfferData::new("S1", 16.0, 9000.0);

    let mut fixture = Fixture::new(&Setup { executor_cores: None, ..Setup::default() });
    let placed = fixture.offer(&[large()], 0);
    fixture.offer(&[OfferData::new("S1", 0.0, 8900.0)], 1_000);
    fixture.update(placed[0], TaskState::Finished, 2_000);
    fixture.offer(&[small()], 3_000);
    assert!(lacks(&fixture, 3_000).is_empty(), "the size of what ended isn't known");
    fixture.offer(&[OfferData::new("S1", 0.75, 8900.0)], 4_000);
    let lack = "no agent has 1 core for executors, the largest has 0.75 (agent S1)";
    assert_eq!(lacks(&fixture, 4_000), [lack], "it was offered again");

    let mut fixture = Fixture::new(&Setup::default());
    assert!(fixture.kernel.agent_lost("S1", at(0)).is_empty());
    fixture.offer(&[large(), small()], 1_000);
    assert!(lacks(&fixture, 1_000).is_empty(), "it is suspect");
    fixture.offer(&[small()], 11_000);
    let lack = "no agent has 1 core for executors, the largest has 0.5 (agent S2)";
    assert_eq!(lacks(&fixture, 11_000), [lack], "nothing withholds it, and it isn't offered");

    let rule = offermill::config::ExclusionRule { failures: 1, ..Default::default() };
    let mut fixture = Fixture::new(&Setup { exclusion: Some(rule), ..Setup::default() });
    fixture.kernel.adopt(&[former("old", "S1")], at(0)).unwrap();
    let failed = StatusUpdate::new("old", TaskState::Failed);
    fixture.kernel.status_update(&failed, at(1_000));
    fixture.offer(&[large(), small()], 2_000);
    assert!(lacks(&fixture, 2_000).is_empty(), "it is excluded");

    let mut fixture = Fixture::new(&Setup { memory: 9000, ..Setup::default() });
    let placed = fixture.offer(&[large()], 0);
    fixture.update(placed[0], TaskState::Unreachable, 1_000);
    (2..400).for_each(|second| drop(fixture.kernel.tick(at(second * 1_000))));
    assert_eq!(fixture.executors(), 0, "it was given up");
    fixture.offer(&[small()], 400_000);
    assert!(lacks(&fixture, 400_000).is_empty(), "it isn't counted, and may still be there");

    let fixture = Fixture::new(&Setup::default());
    let batch = [large(), small()];
    let mut handler = fixture.kernel.handler();
    lend(&batch, |offers| {
        let maintained = offers[0].maintained_in(secs(1));
        handler.resource_offers(&[maintained, offers[1]], at(0), &mut Decisions::new());
    });
    assert!(lacks(&fixture, 0).is_empty(), "it is about to be maintained");
}

/// An executor of a former run on an agent.
fn former<'a>(executor: &'a str, agent_id: &'a str) -> Recovered<'a> {
    let resources = offermill::resources::ExecutorResources {
        cores: MilliCpus::from_cores(1),
        memory: Mebibytes::new(100),
        gpus: Gpus::ZERO,
        port: None,
    };
    Recovered::new(executor, agent_id, "host", resources)
}

/// Goal: nothing is said of a cluster that isn't known well enough. Method: an adopted executor on an agent that was
/// never offered; a kernel whose picture is switched off.
#[test]
fn an_unknown_cluster_lacks_nothing() {
    let small = |kernel: &Kernel| {
        let batch = [OfferData::new("S1", 0.5, 1.0)];
        let mut handler = kernel.handler();
        lend(&batch, |offers| handler.resource_offers(offers, at(0), &mut Decisions::new()));
        kernel.explain(at(0))
    };
    let config = || Setup { limit: Some(9), ..Setup::default() }.config();
    let kernel = Kernel::new(config(), IdScheme::plain());
    assert_eq!(small(&kernel).lacks.len(), 2);

    let kernel = Kernel::new(config(), IdScheme::plain());
    kernel.adopt(&[former("a", "S9")], at(0)).unwrap();
    let explanation = small(&kernel);
    assert!(explanation.lacks.is_empty() && explanation.capacity_at.is_some(), "{explanation}");

    let builder = offermill::Config::builder().capacity_refresh(Duration::MAX);
    let kernel = Kernel::new(builder.build().unwrap(), IdScheme::plain());
    let explanation = small(&kernel);
    assert!(explanation.lacks.is_empty() && explanation.capacity_at.is_none(), "{explanation}");
}

/// Goal: a picture that isn't new is shown with its age. Method: a refresh of a minute, asked again after some seconds.
#[test]
fn an_old_picture_is_told() {
    let builder = offermill::Config::builder().capacity_refresh(Duration::from_secs(60));
    let kernel = Kernel::new(builder.build().unwrap(), IdScheme::plain());
    let mut handler = kernel.handler();
    let mut offer = |now| {
        let batch = [OfferData::new("S1", 0.5, 9000.0)];
        lend(&batch, |offers| handler.resource_offers(offers, at(now), &mut Decisions::new()));
        kernel.explain(at(now)).to_string()
    };
    let lack = "cluster        no agent has 1 core for executors, the largest has 0.5 (agent S1)";
    assert!(offer(1_000).lines().any(|line| line == lack), "{}", offer(1_000));
    let aged = format!("{lack}, as of 7 s ago");
    assert!(offer(8_000).lines().any(|line| line == aged), "{}", offer(8_000));
}

/// Goal: if each kind suffices somewhere but not together, the text names GPUs only if they are asked for. Method: an
/// agent with the cores, another with the memory, and executors without GPUs.
#[test]
fn kinds_that_are_apart_are_named_without_gpus() {
    let setup = Setup { executor_cores: Some(64_000), memory: 4096, ..Setup::default() };
    let mut fixture = Fixture::new(&setup);
    fixture.offer(&[OfferData::new("S1", 64.0, 100.0), OfferData::new("S2", 1.0, 5000.0)], 0);
    let both = "no agent has both 64 cores and 4096 MiB for executors";
    assert_eq!(lacks(&fixture, 1_000), [both]);
    let explanation = fixture.kernel.explain(at(1_000));
    assert_eq!(explanation.lacks[0].agent(), None);
}

/// Goal: nothing is said of a constraint that an agent may have met. Method: an agent that is suspect, so that what it
/// offers isn't recorded, alone and with one that doesn't meet the constraint; and one that met it and was declined
/// because the limit was lowered meanwhile.
#[test]
fn a_constraint_that_one_may_have_met_is_not_named() {
    let setup = Setup { zones: vec!["east"], limit: Some(1), ..Setup::default() };
    let in_zone = |agent, zone| OfferData::new(agent, 1.0, 100.0).in_zone(zone);
    let mut fixture = Fixture::new(&setup);
    assert!(fixture.kernel.agent_lost("S1", at(0)).is_empty());
    fixture.offer(&[in_zone("S1", "east")], 0);
    assert!(lacks(&fixture, 0).is_empty());
    fixture.kernel.agent_lost("S1", at(1_000));
    fixture.offer(&[in_zone("S1", "east"), in_zone("S2", "west")], 1_000);
    assert_eq!(fixture.kernel.explain(at(1_000)).declined.len(), 2);
    assert!(lacks(&fixture, 1_000).is_empty());

    let mut fixture = Fixture::new(&setup);
    let mut handler = fixture.kernel.handler();
    lend(&[in_zone("S1", "east")], |offers| {
        let rooms = handler.propose(offers, at(0));
        fixture.kernel.set_executor_limit(Some(0)).unwrap();
        rooms.commit(&Picks::new(), at(0), &mut fixture.decisions);
    });
    fixture.kernel.set_executor_limit(Some(1)).unwrap();
    fixture.offer(&[in_zone("S2", "west")], 1_000);
    let explanation = fixture.kernel.explain(at(1_000));
    assert!(explanation.declined.iter().any(|it| it.kind == ReasonKind::ExecutorLimit));
    assert!(explanation.lacks.is_empty(), "{explanation}");
}
