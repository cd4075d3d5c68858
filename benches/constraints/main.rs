//! Benches of constraints: reading them, asking them, and having them remembered.
#![expect(clippy::expect_used, reason = "a bench that can't be set up must stop")]

mod agents;

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput};
use offermill::constraint::Memo;
use offermill::{Attribute, AttributeValue, Constraint, Offer};

use agents::{ENTRIES, EXPRESSION};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let mut criterion = Criterion::default()
        .sample_size(30)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_millis(1500))
        .configure_from_args();
    reading(&mut criterion);
    asking(&mut criterion);
    criterion.final_summary();
}

fn asking(criterion: &mut Criterion) {
    let agents = agents::agents();
    let offers: Vec<Offer<'_>> =
        agents.iter().map(|own| Offer::new("o", "a", "h", &[], own)).collect();
    for (name, text) in [("entries", ENTRIES), ("expression", EXPRESSION)] {
        let constraint = Constraint::parse(text).expect("a constraint");
        let mut memos = vec![Memo::default(); offers.len()];
        for (memo, offer) in memos.iter_mut().zip(&offers) {
            assert_eq!(constraint.check_with(memo, offer), Ok(()));
        }
        let mut group = criterion.benchmark_group(format!("constraints/{name}"));
        group.throughput(Throughput::Elements(offers.len() as u64));
        group.bench_function("asked", |bencher| {
            bencher.iter(|| {
                let offers = black_box(&offers[..]);
                offers.iter().filter(|offer| constraint.check(offer).is_ok()).count()
            });
        });
        if name == "entries" {
            let plain = Plain::read(text);
            group.bench_function("plain asked", |bencher| {
                bencher.iter(|| {
                    let offers = black_box(&offers[..]);
                    offers.iter().filter(|offer| plain.holds(offer.attributes)).count()
                });
            });
        }
        group.bench_function("remembered", |bencher| {
            bencher.iter(|| {
                let offers = black_box(&offers[..]).iter().zip(&mut memos);
                offers.filter_map(|(offer, memo)| constraint.check_with(memo, offer).ok()).count()
            });
        });
        group.finish();
    }
}

/// The baseline: entries as they are read, and one loop in the other. Right for agents like these.
struct Plain(Vec<(String, Vec<String>)>);

impl Plain {
    fn read(text: &str) -> Plain {
        let entry = |entry: &str| {
            let (name, values) = entry.split_once(':').expect("a colon");
            let values = values.split(',').filter(|value| !value.is_empty());
            (name.to_owned(), values.map(str::to_owned).collect())
        };
        Plain(text.split(';').map(entry).collect())
    }

    fn holds(&self, attributes: &[Attribute<'_>]) -> bool {
        self.0.iter().all(|(name, values)| {
            let named = |attribute: &&Attribute<'_>| attribute.name == name;
            attributes.iter().filter(named).any(|attribute| match attribute.value {
                _ if values.is_empty() => true,
                AttributeValue::Text(text) => values.iter().any(|value| value == text),
                AttributeValue::Scalar(number) => {
                    values.iter().any(|value| value.parse::<f64>().is_ok_and(|n| n <= number))
                }
                AttributeValue::Ranges(_) | AttributeValue::Set(_) => false,
            })
        })
    }
}

fn reading(criterion: &mut Criterion) {
    let long =
        format!("zone:{}", (0..6_000).map(|n| format!("z{n}")).collect::<Vec<_>>().join(","));
    let deep = format!("expr:: {}a{}", "(".repeat(30_000), ")".repeat(30_000));
    let mut group = criterion.benchmark_group("constraints/read");
    for (name, text) in [
        ("entries", ENTRIES),
        ("expression", EXPRESSION),
        ("6000 values", &long),
        ("30000 deep", &deep),
    ] {
        group.throughput(Throughput::Bytes(text.len() as u64));
        group.bench_with_input(BenchmarkId::from_parameter(name), text, |bencher, text| {
            bencher.iter(|| Constraint::parse(black_box(text)));
        });
    }
    group.finish();
}
