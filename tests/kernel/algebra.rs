//! Property test of resource allocation: random offers and settings against a naive implementation.

use offermill::Revocability;
use offermill::resources::PortRange;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use crate::placement::case::{Amount, By, Case, Entry, Layer, OfferLine, Reserved, Settings};
use crate::placement::checker::check;

const ROLES: [&str; 6] = ["*", "eng", "eng/etl", "eng/etl/night", "ads", "en"];

fn layers() -> impl Strategy<Value = Layer> {
    let label = (select(vec!["why", "k"]), option::of(select(vec!["so", ""])))
        .prop_map(|(key, value)| (key.to_owned(), value.map(str::to_owned)));
    let by = (option::of(Just("alice".to_owned())), vec(label, 0..3))
        .prop_map(|(principal, labels)| By { principal, labels });
    let role = prop_oneof![2 => Just("*"), 2 => Just("eng"), 2 => select(ROLES.to_vec())];
    (role, option::of(by)).prop_map(|(role, by)| Layer { role: role.to_owned(), by })
}

fn reserved() -> impl Strategy<Value = Reserved> {
    prop_oneof![
        2 => Just(Reserved::none()),
        2 => layers().prop_map(Reserved::Old),
        2 => vec(layers(), 0..4).prop_map(Reserved::Refined),
    ]
}

fn entries() -> impl Strategy<Value = Entry> {
    let strange = vec![f64::NAN, f64::INFINITY, -1.0, -0.0, 1e300, 9e12, 0.0005, 0.0];
    let value = prop_oneof![
        6 => (0u32..9).prop_map(f64::from),
        4 => (0u32..9_000).prop_map(|thousandths| f64::from(thousandths) / 1000.0),
        1 => select(strange),
    ];
    let scalar = (select(vec!["cpus", "cpus", "gpus", "disk", "ports"]), value)
        .prop_map(|(name, value)| (name, Amount::Scalar(value)));
    let memory = (0u32..2_000).prop_map(|value| ("mem", Amount::Scalar(f64::from(value))));
    let range = (30_990u64..31_010, 0u64..20)
        .prop_map(|(begin, length)| PortRange::new(begin, (begin + length).saturating_sub(3)));
    let ranges = (select(vec!["ports", "ports", "cpus"]), vec(range, 0..4))
        .prop_map(|(name, ranges)| (name, Amount::Ranges(ranges)));
    let set = Just(("cpus", Amount::Set(vec!["a".to_owned(), "b".to_owned()])));
    let named = prop_oneof![6 => scalar, 4 => memory, 2 => ranges, 1 => set];
    let revocability = prop_oneof![
        6 => Just(Revocability::NonRevocable),
        4 => Just(Revocability::Revocable),
        1 => select(vec![Revocability::Shared, Revocability::Disk]),
    ];
    (named, reserved(), revocability).prop_map(|((name, amount), reserved, revocability)| Entry {
        name: name.to_owned(),
        reserved,
        revocability,
        amount,
    })
}

fn offers() -> impl Strategy<Value = OfferLine> {
    let role = prop_oneof![2 => Just("eng/etl"), 2 => select(ROLES.to_vec())];
    let usual = vec![
        ("cpus", Amount::Scalar(4.0)),
        ("mem", Amount::Scalar(900.0)),
        ("gpus", Amount::Scalar(2.0)),
        ("ports", Amount::Ranges(vec![PortRange::new(31_000, 31_000)])),
    ];
    let non_revocable = |(name, amount): (&str, Amount)| {
        let (name, reserved) = (name.to_owned(), Reserved::none());
        Entry { name, reserved, revocability: Revocability::NonRevocable, amount }
    };
    let usual: Vec<Entry> = usual.into_iter().map(non_revocable).collect();
    let entries = (any::<bool>(), vec(entries(), 0..12)).prop_map(move |(with_usual, mut more)| {
        more.extend(usual.iter().filter(|_| with_usual).cloned());
        more
    });
    (select(vec!["S1", "S2"]), role, entries).prop_map(|(agent, role, entries)| OfferLine {
        agent: agent.to_owned(),
        role: role.to_owned(),
        entries,
    })
}

fn settings() -> impl Strategy<Value = Settings> {
    let cores = option::weighted(0.7, select(vec![500u64, 1_000, 2_000, 333]));
    let gpus = (option::weighted(0.4, 0u32..4), 0u32..9);
    let port = option::weighted(0.2, select(vec![31_000u16, 31_005]));
    let caps = (option::weighted(0.3, 0u64..20_000), prop_oneof![Just(64u32), 0u32..6]);
    let rest = (1u64..600, prop::bool::weighted(0.7), any::<bool>());
    (cores, gpus, port, caps, rest).prop_map(
        |(cores, (gpus, gpu_cap), port, (cap, limit), (memory, revocable, consolidate))| {
            let settings =
                Settings { cores, memory, gpus, gpu_cap, port, cap, limit, revocable, consolidate };
            settings.sound()
        },
    )
}

proptest! {
    /// Goal: executors take the required amounts from usable resources, and used and remaining amounts add up to the
    /// offered ones for each resource, role and reservation. Method: random offers of all forms through a handler;
    /// compare the decisions with the naive ones piece by piece, and check each guarantee separately.
    #[test]
    fn used_and_left_are_what_was_offered(settings in settings(), offers in vec(offers(), 0..6)) {
        let case = Case { settings, offers };
        if std::panic::catch_unwind(|| check(&case)).is_err() {
            // In the syntax of the fuzz target.
            return Err(TestCaseError::fail(case.to_string()));
        }
        let text = case.to_string();
        prop_assert_eq!(Case::parse(&text).to_string(), text);
    }
}
