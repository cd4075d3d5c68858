//! Compares the kernel's decisions for a case with the naive ones, and checks what is guaranteed for any decisions.

use std::collections::{BTreeMap, BTreeSet};

use offermill::config::{ExecutorCores, ExecutorGpus, Placement as Policy};
use offermill::limits::TOTAL_CORES_MAX;
use offermill::resources::{Gpus, Mebibytes, MilliCpus, PortRange};
use offermill::{
    Accepted, Amount as Cut, Config, Decisions, IdScheme, Kernel, Label, Left, Offer, Piece,
    Placed, Reservation, ReservationKind, Reservations, ReservedBy, Resource, Revocability,
    Timestamp, Value,
};

use super::case::{Amount, By, Case, Entry, Reserved, Settings};
use super::naive::{self, Amounts, Caps, Placement, Room};

/// Runs the case in a kernel. Panics if its decisions are wrong.
pub(crate) fn check(case: &Case) {
    let kernel = Kernel::new(config(&case.settings), IdScheme::plain());
    let (mut handler, mut decisions) = (kernel.handler(), Decisions::new());
    lend(case, |offers| {
        handler.resource_offers(offers, Timestamp::ORIGIN, &mut decisions);
        expect_naive(case, &decisions);
        for accepted in decisions.accepts() {
            let mut used = Amounts::new();
            let mut ports = BTreeMap::new();
            for executor in accepted.executors {
                let pieces = accepted.pieces(executor);
                expect_promises(case, executor, pieces);
                for piece in pieces {
                    let place = (piece.offer as usize, piece.resource as usize);
                    match piece.amount {
                        Cut::Scalar(scalar) => {
                            *used.entry(place).or_default() += u128::from(scalar.thousandths());
                        }
                        Cut::Port(port) => {
                            let first = ports.insert(place, u64::from(port)).is_none();
                            assert!(first, "two ports of {place:?}");
                        }
                    }
                }
            }
            expect_order(case, &accepted, &used);
            expect_sums(case, &accepted, offers, &used, &ports);
        }
    });
    kernel.check().expect("the accounts agree");
}

/// The executors of a case that was placed in an empty kernel.
struct Totals<'a> {
    settings: &'a Settings,
    executors: u64,
    cores: u64,
    gpus: u64,
}

impl Caps for Totals<'_> {
    fn room(&self, _agent: &str) -> Room {
        let cap = self.settings.cap.unwrap_or(TOTAL_CORES_MAX.millis());
        Room {
            executors: u64::from(self.settings.limit) - self.executors,
            cores: cap - self.cores,
            gpus: u64::from(self.settings.gpu_cap) - self.gpus,
        }
    }

    fn add(&mut self, _agent: &str, cores: u64, gpus: u64) -> u64 {
        self.executors += 1;
        self.cores += cores;
        self.gpus += gpus;
        self.executors - 1
    }
}

fn place<'a>(case: &'a Case, caps: &mut Totals<'_>) -> Placement<'a> {
    let mut placement = Placement::new(case.settings.request());
    for (position, offer) in case.offers.iter().enumerate() {
        let resources = offer.entries.iter().map(Entry::offered);
        placement.add(position, &offer.agent, &offer.role, resources);
    }
    placement.place(caps);
    placement
}

/// Checks that executors, their order, pieces and reasons equal the naive ones.
fn expect_naive(case: &Case, decisions: &Decisions) {
    let mut totals = Totals { settings: &case.settings, executors: 0, cores: 0, gpus: 0 };
    let has_room = case.settings.request().is_allowed(totals.room(""));
    let naive = place(case, &mut totals);
    let mut accepts = decisions.accepts();
    for group in &naive.groups {
        if group.executors.is_empty() {
            for offer in &group.offers {
                let mut rows = decisions.declines().iter();
                let row = rows.find(|row| row.offer as usize == *offer).expect("an answer");
                match group.shortage.filter(|_| has_room) {
                    Some(reason) => assert_eq!(row.reason, reason),
                    None => assert!(row.reason.is_cap(), "{:?}", row.reason),
                }
            }
            continue;
        }
        let accepted = accepts.next().expect("an accept for each group with executors");
        let offers: Vec<usize> = accepted.offers.iter().map(|offer| *offer as usize).collect();
        assert_eq!(offers, group.offers);
        assert_eq!(accepted.executors.len(), group.executors.len());
        for (placed, expected) in accepted.executors.iter().zip(&group.executors) {
            assert_eq!(placed.id.sequence(), expected.number, "in the order of placement");
            assert_eq!(placed.resources.cores.millis(), expected.cores);
            assert_eq!(u64::from(placed.resources.gpus.get()), expected.gpus);
            let (mut pieces, mut port) = (Amounts::new(), None);
            for piece in accepted.pieces(placed) {
                let place = (piece.offer as usize, piece.resource as usize);
                match piece.amount {
                    Cut::Scalar(scalar) => {
                        let twice = pieces.insert(place, u128::from(scalar.thousandths()));
                        assert_eq!(twice, None, "two pieces of {place:?}");
                    }
                    Cut::Port(_) => port = Some(place),
                }
            }
            assert_eq!((pieces, port), (expected.pieces.clone(), expected.port));
        }
    }
    assert!(accepts.next().is_none());
    let accepted: usize = decisions.accepts().map(|accepted| accepted.offers.len()).sum();
    assert_eq!(accepted + decisions.declines().len(), case.offers.len());
}

/// Checks that the pieces of an executor add up to its resources, come from usable resources, and use one supply
/// (revocable or not) per name.
fn expect_promises(case: &Case, executor: &Placed, pieces: &[Piece]) {
    let settings = &case.settings;
    let mut sums: BTreeMap<&str, u128> = BTreeMap::new();
    let mut supplies: BTreeMap<&str, BTreeSet<bool>> = BTreeMap::new();
    for piece in pieces {
        let offer = &case.offers[piece.offer as usize];
        let entry = &offer.entries[piece.resource as usize];
        assert!(
            entry.offered().is_usable(&offer.role, &settings.request()),
            "{entry} has to be left alone"
        );
        supplies
            .entry(&entry.name)
            .or_default()
            .insert(entry.revocability == Revocability::Revocable);
        match piece.amount {
            Cut::Scalar(scalar) => {
                assert!(["cpus", "mem", "gpus"].contains(&entry.name.as_str()), "{entry}");
                let whole = entry.name != "gpus" || scalar.thousandths().is_multiple_of(1000);
                assert!(whole, "a part of a GPU of {entry}");
                *sums.entry(&entry.name).or_default() += u128::from(scalar.thousandths());
            }
            Cut::Port(port) => {
                assert!(entry.offered().has_port(port) && settings.port == Some(port), "{entry}");
            }
        }
    }
    assert!(supplies.values().all(|supplies| supplies.len() == 1), "mixed: {supplies:?}");
    let sum = |name| sums.get(name).copied().unwrap_or_default();
    assert_eq!(sum("cpus"), u128::from(executor.resources.cores.millis()));
    assert_eq!(sum("mem"), u128::from(settings.memory) * 1000);
    assert_eq!(sum("gpus"), u128::from(executor.resources.gpus.get()) * 1000);
    if let Some(cores) = settings.cores {
        assert_eq!(executor.resources.cores.millis(), cores);
    }
    assert!(settings.gpus.is_none_or(|gpus| executor.resources.gpus.get() == gpus));
    let ports = pieces.iter().filter(|piece| matches!(piece.amount, Cut::Port(_))).count();
    assert_eq!(ports, usize::from(settings.port.is_some()));
}

/// Checks the order of use: unreserved resources are used only if no reserved ones of the same name and supply are
/// left, and revocable ones only if the others don't suffice for one more executor.
fn expect_order(case: &Case, accepted: &Accepted<'_>, used: &Amounts) {
    let mut places = Vec::new();
    for offer in accepted.offers.iter().map(|offer| *offer as usize) {
        let line = &case.offers[offer];
        for (at, entry) in line.entries.iter().enumerate() {
            let offered = entry.offered();
            let usable = offered.usable_amount(&line.role, &case.settings.request());
            let taken = used.get(&(offer, at)).copied().unwrap_or_default();
            let left = usable.checked_sub(taken).expect("no more than there is");
            places.push((&*entry.name, offered.is_revocable(), offered.is_reserved(), taken, left));
        }
    }
    for name in ["cpus", "mem", "gpus"] {
        let sum = |wanted_revocable, wanted_reserved| {
            places
                .iter()
                .filter(|(other, revocable, reserved, ..)| {
                    (*other, *revocable, *reserved) == (name, wanted_revocable, wanted_reserved)
                })
                .fold((0, 0), |sum, (.., taken, left)| (sum.0 + taken, sum.1 + left))
        };
        for revocable in [false, true] {
            let (reserved, unreserved) = (sum(revocable, true), sum(revocable, false));
            assert!(unreserved.0 == 0 || reserved.1 == 0, "{name}: unreserved before reserved");
        }
        if sum(true, true).0 + sum(true, false).0 > 0 {
            let share = match name {
                "cpus" => accepted.executors[0].resources.cores.millis(),
                "mem" => case.settings.memory * 1000,
                _ => u64::from(accepted.executors[0].resources.gpus.get()) * 1000,
            };
            let non_revocable = sum(false, true).1 + sum(false, false).1;
            assert!(non_revocable < u128::from(share), "{name}: revocable before others");
        }
    }
}

/// Checks that used and remaining amounts add up to the offered ones: for each resource, and for each name, reservation
/// and revocability.
fn expect_sums(
    case: &Case,
    accepted: &Accepted<'_>,
    offers: &[Offer<'_>],
    used: &Amounts,
    ports: &BTreeMap<(usize, usize), u64>,
) {
    let mut sums: BTreeMap<String, (u128, u128)> = BTreeMap::new();
    let remainder = accepted.left(offers);
    let mut seen = 0;
    for (offer, resource, left) in remainder.iter() {
        seen += 1;
        assert!(accepted.offers.contains(&offer));
        let place = (offer as usize, resource as usize);
        let entry = &case.offers[place.0].entries[place.1];
        match (&entry.amount, left) {
            (Amount::Scalar(value), Left::Scalar(left)) => {
                let offered = naive::thousandths(*value);
                let used = used.get(&place).copied().unwrap_or_default();
                let left = u128::from(left.thousandths());
                assert_eq!(used + left, offered, "{entry}");
                let bare = Entry { amount: Amount::Scalar(0.0), ..entry.clone() };
                let sum = sums.entry(bare.to_string()).or_default();
                *sum = (sum.0 + used + left, sum.1 + offered);
            }
            (Amount::Ranges(offered), Left::Ports(left)) => {
                assert!(left.ranges().is_sorted_by(|one, next| one.end + 1 < next.begin));
                expect_ports(offered, ports.get(&place).copied(), left.ranges());
            }
            (Amount::Set(offered), Left::Set(left)) => assert_eq!(left, offered),
            (_, left) => panic!("{left:?} is left of {entry}"),
        }
    }
    let all: usize =
        accepted.offers.iter().map(|offer| case.offers[*offer as usize].entries.len()).sum();
    assert_eq!(seen, all);
    assert!(sums.values().all(|(one, other)| one == other));
}

/// Compares sets of ports at the numbers where they can differ: at the ends of ranges and next to them.
fn expect_ports(offered: &[PortRange], taken: Option<u64>, left: &[PortRange]) {
    let ends = offered.iter().chain(left).flat_map(|range| [range.begin, range.end]).chain(taken);
    for end in ends {
        for number in [end.saturating_sub(1), end, end.saturating_add(1)] {
            let within = |ranges: &[PortRange]| {
                ranges.iter().any(|range| range.begin <= number && number <= range.end)
            };
            let expected = within(offered) && taken != Some(number);
            assert_eq!(within(left), expected, "{number} of {offered:?} without {taken:?}");
        }
    }
}

fn config(settings: &Settings) -> Config {
    let cores = |millis| ExecutorCores::Fixed(MilliCpus::from_millis(millis));
    let gpus = |gpus| ExecutorGpus::Exactly(Gpus::new(gpus));
    let placement = if settings.consolidate { Policy::Consolidate } else { Policy::RoundRobin };
    Config::builder()
        .executor_cores(settings.cores.map_or(ExecutorCores::WholeOffer, cores))
        .executor_memory(Mebibytes::new(settings.memory))
        .memory_overhead(Some(Mebibytes::ZERO))
        .executor_gpus(settings.gpus.map_or(ExecutorGpus::WhatThereIs, gpus))
        .gpu_cap(Gpus::new(settings.gpu_cap))
        .fixed_port(settings.port)
        .core_cap(settings.cap.map(MilliCpus::from_millis))
        .executor_limit(Some(settings.limit))
        .revocable(settings.revocable)
        .placement(placement)
        .build()
        .expect("sound settings")
}

/// The data that a resource borrows besides its own texts.
struct Loans<'a> {
    labels: Vec<Vec<Label<'a>>>,
    items: Vec<&'a str>,
}

/// Calls `use_them` with the case's offers in the form that a kernel accepts.
fn lend(case: &Case, use_them: impl FnOnce(&[Offer<'_>])) {
    let entries = || case.offers.iter().flat_map(|offer| &offer.entries);
    let loans: Vec<Loans<'_>> = entries().map(Loans::of).collect();
    let records: Vec<Vec<ReservedBy<'_>>> =
        entries().zip(&loans).map(|(entry, loans)| loans.records(entry)).collect();
    let stacks: Vec<Vec<Reservation<'_>>> =
        entries().zip(&records).map(|(entry, records)| stack(entry, records)).collect();
    let borrowed = records.iter().zip(&stacks).zip(&loans);
    let resources: Vec<Resource<'_>> = entries()
        .zip(borrowed)
        .map(|(entry, ((records, stack), loans))| {
            let value = match &entry.amount {
                Amount::Scalar(_) => None,
                Amount::Ranges(ranges) => Some(Value::Ranges(ranges)),
                Amount::Set(_) => Some(Value::Set(&loans.items)),
            };
            let resource = match (value, &entry.amount) {
                (Some(value), _) => Resource::new(&entry.name, value),
                (None, Amount::Scalar(scalar)) => Resource::scalar(&entry.name, *scalar),
                (None, _) => unreachable!("only scalars are left"),
            };
            let reservations = match &entry.reserved {
                Reserved::Old(layer) => {
                    let dynamic = layer.by.as_ref().and(records.first());
                    Reservations::PreRefinement { role: &layer.role, dynamic }
                }
                Reserved::Refined(_) => Reservations::PostRefinement(stack),
            };
            resource.with_reservations(reservations).with_revocability(entry.revocability)
        })
        .collect();
    let mut rest = &resources[..];
    let ids: Vec<String> = (0..case.offers.len()).map(|number| format!("O{number}")).collect();
    let offers: Vec<Offer<'_>> = case
        .offers
        .iter()
        .zip(&ids)
        .map(|(line, id)| {
            let (own, others) = rest.split_at(line.entries.len());
            rest = others;
            Offer::new(id, &line.agent, "host", own, &[]).with_role(&line.role)
        })
        .collect();
    use_them(&offers);
}

/// Returns the reservations of an entry, one per layer.
fn layers(entry: &Entry) -> impl Iterator<Item = (&str, Option<&By>)> {
    let layers = match &entry.reserved {
        Reserved::Old(layer) => std::slice::from_ref(layer),
        Reserved::Refined(stack) => stack,
    };
    layers.iter().map(|layer| (&*layer.role, layer.by.as_ref()))
}

impl<'a> Loans<'a> {
    fn of(entry: &'a Entry) -> Loans<'a> {
        let labels = layers(entry).map(|(_, by)| {
            let labels = by.into_iter().flat_map(|by| &by.labels);
            labels.map(|(key, value)| (key.as_str(), value.as_deref())).collect()
        });
        let items = match &entry.amount {
            Amount::Set(items) => items.iter().map(String::as_str).collect(),
            _ => Vec::new(),
        };
        Loans { labels: labels.collect(), items }
    }

    fn records(&'a self, entry: &'a Entry) -> Vec<ReservedBy<'a>> {
        let record = |((_, by), labels): ((&str, Option<&'a By>), &'a Vec<Label<'a>>)| ReservedBy {
            principal: by.and_then(|by| by.principal.as_deref()),
            labels,
        };
        layers(entry).zip(&self.labels).map(record).collect()
    }
}

fn stack<'a>(entry: &'a Entry, records: &[ReservedBy<'a>]) -> Vec<Reservation<'a>> {
    let one = |((role, by), record): ((&'a str, Option<&By>), &ReservedBy<'a>)| {
        let kind = by.map_or(ReservationKind::Static, |_| ReservationKind::Dynamic);
        Reservation { kind, role, by: *record }
    };
    layers(entry).zip(records).map(one).collect()
}
