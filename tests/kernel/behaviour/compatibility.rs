//! Compatibility: the ways in which schedulers differ.

use offermill::config::{Compatibility, ExclusionRule};
use offermill::{Amount, ExecutorId, ReasonKind, TaskState};
use proptest::prelude::*;
use std::time::Duration;

use super::Fixture;
use crate::spark::{Launch, Refusal, Spark};
use crate::world::{Entry, OfferData, Setup, at};

const PORT: u16 = 31_000;

/// Spark's settings and behaviour.
pub(super) fn spark_setup() -> Setup {
    let rule = ExclusionRule { failures: 2, window: Duration::MAX, expiry: None };
    Setup { compatibility: Compatibility::SPARK_3_5, exclusion: Some(rule), ..Setup::default() }
}

fn setups() -> impl Strategy<Value = Setup> {
    let caps = (prop::option::of(0u64..12), prop::option::of(1u64..4), 0u32..4);
    let rest = (prop::option::of(0u32..6), any::<bool>(), any::<bool>());
    let wait = prop::option::of(0u64..6).prop_map(|wait| wait.map(Duration::from_millis));
    (caps, rest, wait).prop_map(|(caps, (limit, port, constraint), locality_wait)| Setup {
        core_cap: caps.0.map(|cap| cap * 1000),
        executor_cores: caps.1.map(|cores| cores * 1000),
        gpu_cap: caps.2,
        locality_wait,
        limit,
        port: port.then_some(PORT),
        zones: if constraint { vec!["east"] } else { vec![] },
        ..spark_setup()
    })
}

fn entries() -> impl Strategy<Value = Entry> {
    let role = prop::sample::select(vec!["*", "etl", "web"]);
    (0u8..7, 0u32..20, role).prop_map(|(kind, amount, role)| {
        let quarters = f64::from(amount) / 4.0;
        let entry = match kind {
            0..=2 => Entry::scalar("cpus", quarters),
            3 | 4 => Entry::scalar("mem", quarters * 100.0),
            5 => Entry::scalar("gpus", f64::from(amount % 3)),
            _ => Entry::ports(u64::from(PORT) - 10 + u64::from(amount), u64::from(PORT) + 15),
        };
        entry.reserved_for(role)
    })
}

fn offer_data() -> impl Strategy<Value = OfferData> {
    let zone = prop::sample::select(vec![None, Some("east"), Some("west")]);
    let role = prop::sample::select(vec!["*", "etl"]);
    (0u8..6, zone, role, prop::collection::vec(entries(), 0..9)).prop_map(
        |(agent, zone, role, entries)| OfferData {
            late: false,
            zone,
            entries,
            ..OfferData::new(&format!("S{agent}"), 0.0, 0.0)
                .for_role(role)
                .on_host(&format!("h{}", agent / 2))
        },
    )
}

/// An operation on the kernel and on the model of Spark.
#[derive(Clone, Debug)]
enum Step {
    Offer(Vec<OfferData>),
    End(prop::sample::Index, bool),
    /// A new executor limit and wanted hosts.
    Request(Option<u32>, Vec<String>),
    /// Milliseconds pass.
    Wait(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let offer = prop::collection::vec(offer_data(), 1..6).prop_map(Step::Offer);
    let end = (any::<prop::sample::Index>(), any::<bool>());
    let hosts = prop::sample::subsequence(vec!["h0", "h1", "h2", "elsewhere"], 0..4);
    let hosts = hosts.prop_map(|hosts| hosts.into_iter().map(str::to_owned).collect());
    let request = (prop::option::of(0u32..8), hosts);
    let step = prop_oneof![
        6 => offer,
        2 => end.prop_map(|(at, failed)| Step::End(at, failed)),
        1 => request.prop_map(|(limit, hosts)| Step::Request(limit, hosts)),
        1 => (0u64..8).prop_map(Step::Wait),
    ];
    prop::collection::vec(step, 1..16)
}

/// The launches of the kernel's last answer, in order, with their ids.
pub(super) fn launched(fixture: &Fixture, batch: &[OfferData]) -> Vec<(ExecutorId, Launch)> {
    let mut all = Vec::new();
    for accept in fixture.decisions.accepts() {
        let [offer] = accept.offers else { panic!("one offer an accept, not {:?}", accept.offers) };
        let offer = *offer as usize;
        for executor in accept.executors {
            let piece = |piece: &offermill::Piece| match piece.amount {
                Amount::Scalar(amount) => (piece.resource as usize, amount.thousandths()),
                Amount::Port(port) => (piece.resource as usize, u64::from(port)),
            };
            let launch = Launch {
                offer,
                agent: batch[offer].agent.clone(),
                host: batch[offer].host.clone(),
                cores: executor.resources.cores.whole_cores(),
                gpus: u64::from(executor.resources.gpus.get()),
                pieces: accept.pieces(executor).iter().map(piece).collect(),
            };
            all.push((executor.id, launch));
        }
    }
    all.sort_by_key(|(id, _)| *id);
    all
}

/// The reasons for which offers of the kernel's last answer aren't used.
pub(super) fn refused(fixture: &Fixture, offers: usize) -> Vec<Option<Refusal>> {
    let mut all = vec![None; offers];
    for decline in fixture.declines() {
        let refusal = match decline.reason.kind() {
            ReasonKind::ConstraintUnmet => Refusal::UnmetConstraint,
            ReasonKind::CoreCap => Refusal::ReachedCores,
            _ => Refusal::Other,
        };
        assert_eq!(all[decline.offer as usize].replace(refusal), None, "two answers");
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Goal: with Spark's behaviour the kernel places and refuses as Spark does, piece by piece, and waits for wanted
    /// hosts equally long. Method: random batches, ends of executors and requests under random settings, with two
    /// agents per host, compared with the model of Spark's loop.
    #[test]
    fn spark_would_do_the_same(setup in setups(), steps in steps()) {
        let mut fixture = Fixture::new(&setup);
        let mut spark = Spark::new(&setup);
        let mut live = Vec::new();
        let mut now = 1000;
        for step in &steps {
            match step {
                Step::Offer(batch) => {
                    fixture.offer(batch, now);
                    let (launches, refusals) = spark.offers(batch, now);
                    let (ids, own): (Vec<_>, Vec<_>) = launched(&fixture, batch).into_iter().unzip();
                    prop_assert_eq!(own, launches);
                    prop_assert_eq!(refused(&fixture, batch.len()), refusals);
                    live.extend(ids);
                    fixture.kernel.check().unwrap();
                }
                Step::End(at, failed) if !live.is_empty() => {
                    let at = at.index(live.len());
                    let state = if *failed { TaskState::Failed } else { TaskState::Finished };
                    fixture.update(live.remove(at), state, now);
                    spark.end(at, *failed);
                }
                Step::End(..) => {}
                Step::Request(limit, hosts) => {
                    spark.request(*limit, hosts, now);
                    let hosts = hosts.iter().map(String::as_str);
                    fixture.kernel.request_executors(*limit, hosts, at(now)).unwrap();
                }
                Step::Wait(millis) => now += millis,
            }
        }
    }
}
