//! Invalid and extreme offers: they cause no panic and no over-commitment, and take linear time.
//!
//! The sizes are chosen so that quadratic work would take minutes; no time is asserted.

use offermill::limits::{EXECUTOR_CORES_MAX, EXECUTORS_PER_AGENT_MAX, TOTAL_CORES_MAX};
use offermill::resources::PortRange;
use offermill::{Amount, Decisions, IdScheme, Kernel, Offer, Resource, Value};

use crate::world::{Entry, OfferData, Setup, at, lend};

const STRANGE: [f64; 14] = [
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::MAX,
    f64::MIN,
    f64::MIN_POSITIVE,
    -0.0,
    -1.0,
    1e-4,
    0.0005,
    1e15,
    9_007_199_254_740.992,
    1.0,
    3.5,
];

fn kernel(setup: &Setup) -> Kernel {
    Kernel::new(setup.config(), IdScheme::plain())
}

/// Checks that each offer is answered once, and that no more of a resource is taken than was offered.
fn expect_sound(offers: &[Offer<'_>], decisions: &Decisions) {
    let mut answers = vec![0u32; offers.len()];
    decisions.declines().iter().for_each(|row| answers[row.offer as usize] += 1);
    let mut taken: Vec<Vec<u64>> =
        offers.iter().map(|offer| vec![0; offer.resources.len()]).collect();
    for accept in decisions.accepts() {
        accept.offers.iter().for_each(|offer| answers[*offer as usize] += 1);
        for executor in accept.executors {
            assert!(executor.resources.cores <= EXECUTOR_CORES_MAX, "{}", executor.resources.cores);
            for piece in accept.pieces(executor) {
                assert!(accept.offers.contains(&piece.offer));
                if let Amount::Scalar(scalar) = piece.amount {
                    taken[piece.offer as usize][piece.resource as usize] += scalar.thousandths();
                }
            }
        }
    }
    assert!(answers.iter().all(|count| *count == 1), "each offer is answered once");
    for (offer, taken) in offers.iter().zip(taken) {
        for (resource, taken) in offer.resources.iter().zip(taken) {
            let Value::Scalar(offered) = resource.value else { continue };
            assert!(taken <= offered.thousandths(), "{taken} of {resource:?}");
        }
    }
}

/// Goal: numbers that aren't quantities count as zero, huge ones do no harm, and no cap is exceeded. Method: all pairs
/// of unusual numbers as cores and memory, under each kind of setting.
#[test]
fn strange_numbers_are_harmless() {
    let setups = [
        Setup { core_cap: Some(20_000), ..Setup::default() },
        Setup { core_cap: Some(2_500), executor_cores: None, ..Setup::default() },
        Setup { executor_cores: None, ..Setup::default() },
        Setup { limit: Some(30), gpu_cap: 5, ..Setup::default() },
        Setup { limit: Some(30), gpu_cap: 5, executor_gpus: Some(2), ..Setup::default() },
    ];
    for setup in setups {
        let kernel = kernel(&setup);
        let (mut handler, mut decisions) = (kernel.handler(), Decisions::new());
        for (index, cpus) in STRANGE.into_iter().enumerate() {
            let batch: Vec<OfferData> = STRANGE
                .into_iter()
                .map(|memory| {
                    let offer_data = OfferData::new(&format!("S{index}"), cpus, memory);
                    offer_data
                        .with(Entry::scalar("gpus", memory))
                        .with(Entry::scalar("cpus", memory))
                })
                .collect();
            lend(&batch, |offers| {
                handler.resource_offers(offers, at(0), &mut decisions);
                expect_sound(offers, &decisions);
            });
            let totals = kernel.totals();
            let cap = setup.core_cap.unwrap_or(TOTAL_CORES_MAX.millis());
            assert!(totals.cores.millis() <= cap);
            assert!(totals.executors <= setup.limit.unwrap_or(u32::MAX));
            kernel.check().unwrap();
        }
    }
}

/// Goal: an agent that offers unlimited resources gets as many executors as the kernel can count per agent, and no
/// more. Method: two such offers, for the smallest possible executors.
#[test]
fn an_endless_agent_is_filled_once() {
    let kernel = kernel(&Setup { executor_cores: Some(1), memory: 1, ..Setup::default() });
    let (mut handler, mut decisions) = (kernel.handler(), Decisions::new());
    let world = OfferData::new("S1", f64::MAX, f64::MAX);
    for expected in [EXECUTORS_PER_AGENT_MAX, 0] {
        lend(std::slice::from_ref(&world), |offers| {
            handler.resource_offers(offers, at(0), &mut decisions);
        });
        assert_eq!(decisions.executors(), expected as usize);
    }
    let roles = [world.clone().for_role("a"), world.for_role("b")]
        .map(|offer_data| OfferData { agent: "S2".into(), ..offer_data });
    lend(&roles, |offers| {
        handler.resource_offers(offers, at(0), &mut decisions);
        expect_sound(offers, &decisions);
    });
    assert_eq!(decisions.executors(), EXECUTORS_PER_AGENT_MAX as usize, "two roles, one agent");
    kernel.check().unwrap();
}

/// Goal: an offer may have any number of resources and intervals. Method: 200 000 slivers that add up to 50 executors;
/// 200 000 intervals around the requested port.
#[test]
fn slivers_add_up_in_linear_time() {
    let kernel = kernel(&Setup { port: Some(7337), limit: Some(99), ..Setup::default() });
    let (mut handler, mut decisions) = (kernel.handler(), Decisions::new());
    let ranges: Vec<PortRange> = (0..100_000)
        .map(|begin| PortRange::new(begin, begin.saturating_sub(1)))
        .chain((0..100_000).map(|begin| PortRange::new(begin + 7337, u64::MAX)))
        .collect();
    let mut resources = Vec::new();
    for number in 0..100_000 {
        let role = ["*", "etl"][number % 2];
        resources.push(Resource::scalar("cpus", 0.001).reserved_for(role));
        resources.push(Resource::scalar("mem", 0.05).reserved_for(role));
    }
    resources.push(Resource::ranges("ports", &ranges));
    let offers = [Offer::new("o", "S1", "h", &resources, &[])];
    handler.resource_offers(&offers, at(0), &mut decisions);
    assert_eq!(decisions.executors(), 1);
    expect_sound(&offers, &decisions);
    kernel.reconfigure(Setup::default().config());
    handler.resource_offers(&offers, at(0), &mut decisions);
    assert_eq!(decisions.executors(), 50);
    kernel.check().unwrap();
}

/// Goal: an agent may occur any number of times in a batch, with one role or with a role per offer. Method: 100 000
/// offers of one agent, each a hundredth of an executor.
#[test]
fn one_agent_may_fill_a_batch() {
    let resources = [Resource::scalar("cpus", 0.01), Resource::scalar("mem", 1.0)];
    let roles: Vec<String> = (0..100_000).map(|number| format!("role-{number}")).collect();
    let offer = Offer::new("o", "S1", "h", &resources, &[]);
    for (same_role, executors) in [(true, 1000), (false, 0)] {
        let offers: Vec<Offer<'_>> = roles
            .iter()
            .map(|role| offer.with_role(if same_role { "etl" } else { role }))
            .collect();
        let kernel = kernel(&Setup::default());
        let (mut handler, mut decisions) = (kernel.handler(), Decisions::new());
        handler.resource_offers(&offers, at(0), &mut decisions);
        assert_eq!(decisions.executors(), executors);
        assert_eq!(decisions.declines().len(), if same_role { 0 } else { offers.len() });
        kernel.check().unwrap();
    }
}

/// Goal: names may be empty, long, equal and in any script. Method: such names, in one batch and the next.
#[test]
fn names_are_only_names() {
    let long = "x".repeat(1 << 20);
    let names = ["", " ", "\0", "*", "S1", "s1", "S1 ", "агент", "\u{202e}", &long];
    let resources = [Resource::scalar("cpus", 1.0), Resource::scalar("mem", 100.0)];
    let kernel = kernel(&Setup::default());
    let (mut handler, mut decisions) = (kernel.handler(), Decisions::new());
    let mut offers = Vec::new();
    for id in names {
        for agent in names {
            offers.push(Offer::new(id, agent, agent, &resources, &[]).with_role(id));
        }
    }
    for _ in 0..2 {
        handler.resource_offers(&offers, at(0), &mut decisions);
        expect_sound(&offers, &decisions);
        let named = (names.len() - 1) * (names.len() - 1);
        assert_eq!(decisions.executors(), named);
    }
    assert_eq!(kernel.agents_known(), names.len() - 1);
    kernel.check().unwrap();
}
