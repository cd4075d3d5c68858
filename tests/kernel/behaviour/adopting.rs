//! Adoption of executors of a former run.

use offermill::resources::{ExecutorResources, Gpus, Mebibytes, MilliCpus};
use offermill::{Change, Fate, IdScheme, Recovered, Scope, StatusUpdate, TaskState};
use proptest::prelude::*;

use super::Fixture;
use crate::world::{OfferData, Setup, at};

/// An executor of a former run on an agent, with cores.
fn former<'a>(executor: &'a str, agent_id: &'a str, cores: u64) -> Recovered<'a> {
    Recovered::new(
        executor,
        agent_id,
        "host",
        ExecutorResources {
            cores: MilliCpus::from_cores(cores),
            memory: Mebibytes::new(100),
            gpus: Gpus::ZERO,
            port: None,
        },
    )
}

fn update(fixture: &Fixture, executor: &str, state: TaskState) -> offermill::Outcome {
    fixture.kernel.status_update(&StatusUpdate::new(executor, state), at(5))
}

/// Goal: an adopted executor is like any other: counted, reconciled, named by its old name, freed once. Method: its
/// whole life, by the old name.
#[test]
fn adopted_executors_live_on_under_their_old_names() {
    let fixture = Fixture::new(&Setup { limit: Some(2), ..Setup::default() });
    let kernel = &fixture.kernel;
    let adopted =
        kernel.adopt(&[former("old-1", "S1", 1), former("old-2", "S2", 1)], at(1)).unwrap();
    let ids: Vec<_> = adopted.into_iter().flatten().collect();
    assert_eq!(ids.len(), 2);
    assert_eq!(kernel.executor_name(ids[1]).to_string(), "old-2");
    assert_eq!(kernel.executor_id("old-2"), Some(ids[1]));
    assert_eq!((kernel.totals().executors, kernel.wanted()), (2, 0));
    assert_eq!(kernel.reconcile(Scope::InDoubt, at(1)).len(), 2, "their state is unknown");

    assert_eq!(update(&fixture, "old-1", TaskState::Running).change, Change::Running);
    assert_eq!(kernel.reconcile(Scope::InDoubt, at(5)).len(), 1);
    assert_eq!(update(&fixture, "old-2", TaskState::Gone).change, Change::Ended(Fate::Lost));
    let again = update(&fixture, "old-2", TaskState::Gone);
    assert_eq!((again.change, again.freed), (Change::Nothing, None));
    assert_eq!(kernel.totals().executors, 1);
    assert_eq!(kernel.unknown_updates(), 0);
    kernel.check().unwrap();

    assert!(kernel.adopt(&[], at(9)).is_err(), "once");
    let left: Vec<String> =
        kernel.close().iter().map(|left| kernel.executor_name(left.id).to_string()).collect();
    assert_eq!(left, ["old-1"]);
}

/// Goal: what an agent has free isn't less for an executor that is adopted after the agent was offered: it was there,
/// so what it uses wasn't offered. Method: an agent that has room for no executor, one that is adopted there, and
/// offers after its adoption and its end.
#[test]
fn an_adopted_executor_takes_nothing_of_what_was_offered() {
    let mut fixture = Fixture::new(&Setup { memory: 2000, ..Setup::default() });
    let amounts = |fixture: &Fixture| {
        let sums = fixture.kernel.capacity(at(9)).sums();
        (sums.used.cores.whole_cores(), sums.free.cores.whole_cores(), sums.free.memory.get())
    };
    assert_eq!(fixture.offer(&[OfferData::new("S1", 4.0, 1000.0)], 1), []);
    fixture.kernel.adopt(&[former("old", "S1", 3)], at(2)).unwrap();
    assert_eq!(amounts(&fixture), (3, 4, 1000));
    assert_eq!(fixture.offer(&[OfferData::new("S1", 4.0, 1000.0)], 3), []);
    assert_eq!(amounts(&fixture), (3, 4, 1000));
    update(&fixture, "old", TaskState::Finished);
    assert_eq!(fixture.offer(&[OfferData::new("S1", 7.0, 1100.0)], 6), []);
    assert_eq!(amounts(&fixture), (0, 7, 1100));
}

/// Goal: a kernel with plain ids finds its own executors by number and adopted ones by name, and its totals agree.
/// Method: adopt one, place one, and end both.
#[test]
fn adopted_executors_live_beside_plain_ids() {
    let mut fixture = Fixture::with_ids(&Setup::default(), IdScheme::plain());
    let adopted = fixture.kernel.adopt(&[former("old", "S1", 1)], at(1)).unwrap();
    fixture.kernel.check().unwrap();
    let number = adopted[0].unwrap().sequence().to_string();
    assert_eq!(fixture.kernel.executor_id(&number), None, "its number is no name of it");
    let placed = fixture.start_on("S1", 2);
    let own = fixture.kernel.executor_name(placed).to_string();
    fixture.kernel.check().unwrap();
    for executor in ["old", &own] {
        assert_eq!(update(&fixture, executor, TaskState::Gone).change, Change::Ended(Fate::Lost));
        fixture.kernel.check().unwrap();
    }
}

/// Goal: an executor that can't be adopted is unknown: it is killed when an update reports it. Method: one beyond the
/// limit, one name twice, and a name of the kernel's own scheme.
#[test]
fn who_is_not_adopted_is_a_stray() {
    let fixture = Fixture::with_ids(
        &Setup { limit: Some(1), ..Setup::default() },
        IdScheme::unique("job", 36).unwrap(),
    );
    let former = [
        former("job-10-0.0", "S1", 1),
        former("old-1", "S1", 1),
        former("old-1", "S1", 1),
        former("old-2", "S1", 1),
    ];
    let adopted = fixture.kernel.adopt(&former, at(1)).unwrap();
    assert_eq!(
        adopted.iter().map(Option::is_some).collect::<Vec<_>>(),
        [false, true, false, false]
    );
    let unknown = update(&fixture, "old-2", TaskState::Running);
    assert!(unknown.kill);
    assert_eq!(unknown.change, Change::UnknownExecutor);
    fixture.kernel.check().unwrap();
}

/// Goal: an executor of an impossible size is not adopted, and nothing overflows. Method: the largest numbers, after an
/// executor that fits.
#[test]
fn what_is_too_large_is_not_adopted() {
    let fixture = Fixture::new(&Setup::default());
    let resources = ExecutorResources {
        cores: MilliCpus::from_millis(u64::MAX),
        memory: Mebibytes::new(u64::MAX),
        gpus: Gpus::new(u32::MAX),
        port: None,
    };
    let huge = Recovered::new("huge", "S1", "host", resources);
    let adopted = fixture.kernel.adopt(&[former("old", "S1", 1), huge], at(1)).unwrap();
    assert_eq!(adopted.iter().map(Option::is_some).collect::<Vec<_>>(), [true, false]);
    fixture.kernel.check().unwrap();
}

proptest! {
    /// Goal: whatever is adopted, the caps hold and the totals agree, at once and after all executors have ended.
    /// Method: random former executors under random caps; ends in random order, some of them twice.
    #[test]
    fn adoption_keeps_the_books(
        cores in prop::collection::vec((1_u64..5, 0_usize..4), 0..20),
        limit in prop::option::of(0_u32..12),
        cap in prop::option::of(1_u64..30),
        ends in prop::collection::vec(0_usize..20, 0..40),
    ) {
        let core_cap = cap.map(MilliCpus::from_cores);
        let config = offermill::Config::builder().executor_limit(limit).core_cap(core_cap).build().unwrap();
        let kernel = offermill::Kernel::new(config, IdScheme::unique("job", 36).unwrap());
        let names: Vec<String> = (0..cores.len()).map(|at| format!("old-{at}")).collect();
        let agents = ["S0", "S1", "S2", "S3"];
        let former: Vec<Recovered<'_>> = names
            .iter()
            .zip(&cores)
            .map(|(name, (cores, agent))| former(name, agents[*agent], *cores))
            .collect();
        let adopted = kernel.adopt(&former, at(1)).unwrap();
        kernel.check().unwrap();
        let expected = {
            let (mut count, mut sum) = (0, 0);
            for (cores, _) in &cores {
                let fits = count < limit.unwrap_or(99) && sum + cores <= cap.unwrap_or(999);
                count += u32::from(fits);
                sum += if fits { *cores } else { 0 };
            }
            (count, MilliCpus::from_cores(sum))
        };
        let totals = kernel.totals();
        prop_assert_eq!((totals.executors, totals.cores), expected);
        for at in ends.into_iter().filter(|at| *at < names.len()) {
            let outcome = kernel.status_update(&StatusUpdate::new(&names[at], TaskState::Killed), super::at(9));
            prop_assert!(adopted[at].is_some() || outcome.freed.is_none());
            kernel.check().unwrap();
        }
    }
}

/// Goal: ids that no cluster can have made are not adopted. Method: an empty one, the longest that Mesos allows, one
/// that is longer, and one of 10 MB; an empty agent id.
#[test]
fn impossible_ids_are_not_adopted() {
    let fixture = Fixture::new(&Setup::default());
    let (longest, longer) = ("x".repeat(255), "x".repeat(256));
    let huge = "y".repeat(10_000_000);
    let former = ["", &longest, &longer, &huge].map(|executor| former(executor, "S1", 1));
    let nowhere = self::former("old", "", 1);
    let adopted = fixture.kernel.adopt(&[&former[..], &[nowhere]].concat(), at(1)).unwrap();
    let is_adopted: Vec<bool> = adopted.iter().map(Option::is_some).collect();
    assert_eq!(is_adopted, [false, true, false, false, false]);
    assert_eq!((fixture.executors(), fixture.kernel.agents_known()), (1, 1));
    assert_eq!(fixture.kernel.executor_id(""), None);
    fixture.kernel.check().unwrap();
}

/// Goal: an executor of more memory than any agent has is not adopted. Method: the largest memory that is adopted, and
/// one mebibyte more.
#[test]
fn impossible_memory_is_not_adopted() {
    let fixture = Fixture::new(&Setup::default());
    let of = |executor, memory| {
        let one = former(executor, "S1", 1);
        let resources = ExecutorResources { memory: Mebibytes::new(memory), ..one.resources };
        Recovered::new(executor, "S1", "host", resources)
    };
    let former = [of("old-1", 1 << 41), of("old-2", (1 << 41) + 1), of("old-3", u64::MAX)];
    let adopted = fixture.kernel.adopt(&former, at(1)).unwrap();
    assert_eq!(adopted.iter().map(Option::is_some).collect::<Vec<_>>(), [true, false, false]);
    fixture.kernel.check().unwrap();
}

/// Goal: the same for cores, which no cap limits here. Method: as many as one executor can have, and more.
#[test]
fn impossible_cores_are_not_adopted() {
    let fixture = Fixture::new(&Setup::default());
    let of = |executor, cores| {
        let one = former(executor, "S1", 1);
        let resources = ExecutorResources { cores, ..one.resources };
        Recovered::new(executor, "S1", "host", resources)
    };
    let most = offermill::limits::EXECUTOR_CORES_MAX;
    let former = [of("old-1", most), of("old-2", most + MilliCpus::from_millis(1))];
    let adopted = fixture.kernel.adopt(&former, at(1)).unwrap();
    assert_eq!(adopted.iter().map(Option::is_some).collect::<Vec<_>>(), [true, false]);
    fixture.kernel.check().unwrap();
}

/// Goal: a number that an adopted executor used up makes no id of this kernel's scheme valid. Method: adopt one and
/// leave one out; look up and report the ids that have their numbers, with both schemes.
#[test]
fn adoption_makes_no_ids_of_this_kernel() {
    for (ids, of_first, of_second) in [
        (IdScheme::plain(), "0", "1"),
        (IdScheme::unique("job", 36).unwrap(), "job-10-0.0", "job-10-1.1"),
    ] {
        let fixture = Fixture::with_ids(&Setup { limit: Some(1), ..Setup::default() }, ids);
        let former = [former("old-1", "S1", 1), former("old-2", "S1", 1)];
        let adopted = fixture.kernel.adopt(&former, at(1)).unwrap();
        assert_eq!(adopted.iter().map(Option::is_some).collect::<Vec<_>>(), [true, false]);
        for name in [of_first, of_second] {
            assert_eq!(fixture.kernel.executor_id(name), None, "{name}");
            assert_eq!(fixture.kernel.executor_lost(name), None, "{name}");
            let outcome = update(&fixture, name, TaskState::Running);
            assert_eq!((outcome.change, outcome.kill), (Change::UnknownExecutor, true), "{name}");
            let mut outcomes = Vec::new();
            let updates = [StatusUpdate::new(name, TaskState::Failed)];
            fixture.kernel.status_updates(&updates, at(5), &mut outcomes);
            assert_eq!(outcomes[0].change, Change::UnknownExecutor, "{name}");
        }
        assert_eq!((fixture.executors(), fixture.kernel.unknown_updates()), (1, 4));
        assert_eq!(update(&fixture, "old-1", TaskState::Running).change, Change::Running);
    }
}
