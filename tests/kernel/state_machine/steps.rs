//! Random settings, offers and events for the state machine test.

use std::collections::BTreeSet;

use offermill::config::{Compatibility, ExclusionRule, RefuseDurations, UnreachableRule};
use offermill::resources::{Gpus, Mebibytes, MilliCpus, PortRange};
use offermill::{DEFAULT_ROLE, Revocability, Scope, Task, TaskState, UpdateReason};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use proptest_state_machine::ReferenceStateMachine;

use crate::history::{Event, Relic, Scene, Step, Whom};
use crate::reference::{GangPicks, Model};
use crate::world::{Amount, Entry, OfferData, Setup, secs};

const AGENTS: [&str; 6] = ["S0", "S1", "S2", "S3", "S4", "S5"];
const ROLES: [&str; 4] = [DEFAULT_ROLE, "etl", "etl/night", "ads"];
/// The maximum time by which the clock goes back, in milliseconds.
const BACK_MS_MAX: u64 = 3_000;

impl ReferenceStateMachine for Scene {
    type State = Scene;
    type Transition = Step;

    fn init_state() -> BoxedStrategy<Scene> {
        let scene = |(setup, plain_ids)| Scene::new(setup, plain_ids, BACK_MS_MAX);
        (setups(), any::<bool>()).prop_map(scene).boxed()
    }

    fn transitions(scene: &Scene) -> BoxedStrategy<Step> {
        let after = prop_oneof![
            20 => 0i64..1_500,
            2 => -2_000i64..0,
            2 => 5_000i64..15_000,
            2 => 55_000i64..130_000,
            1 => 300_000i64..1_000_000,
            1 => 900_000i64..2_000_000,
        ];
        let deadlines = scene.deadlines();
        let after = match deadlines.is_empty() {
            true => after.boxed(),
            // Concentrate events around the deadlines.
            false => prop_oneof![1 => after, 1 => select(deadlines)].boxed(),
        };
        (after, events(scene)).prop_map(|(after, event)| Step { after, event }).boxed()
    }

    fn preconditions(scene: &Scene, step: &Step) -> bool {
        scene.admits(step)
    }

    fn apply(mut scene: Scene, step: &Step) -> Scene {
        scene.play(step);
        scene
    }
}

fn setups() -> BoxedStrategy<Setup> {
    let sizes = (
        option::of(select(vec![500u64, 1000, 2000, 3000, 333])),
        option::weighted(0.7, 0u64..30_000),
        1u64..3000,
        select(vec![0u64, 384]),
        0u32..3,
    );
    let gpus = (0u32..7, option::weighted(0.4, 0u32..4));
    let caps = (0u32..20, any::<bool>());
    let port = option::weighted(0.2, select(vec![31_000u16, 31_005]));
    let port = (port, prop::bool::weighted(0.3));
    let zones = select(vec![vec![], vec![], vec!["a"], vec!["a", "b"]]);
    let exclusion = option::weighted(0.8, (1u8..4, option::of(10u64..4000)));
    let release = option::weighted(0.8, select(vec![0u64, 5, 60, 300]));
    let rules = (exclusion, release, select(vec![1u64, 60, 600]), 1u64..200, 0u64..10);
    (sizes, gpus, caps, port, zones, rules, any::<bool>())
        .prop_map(|(sizes, gpus, caps, port, zones, rules, consolidate)| {
            let (executor_cores, core_cap, memory, overhead, extra_cores) = sizes;
            let core_cap = core_cap.map(|cap| cap.max(executor_cores.unwrap_or(1000)));
            let (gpu_cap, executor_gpus) = gpus;
            let (limit, limited) = caps;
            let (port, revocable) = port;
            let (exclusion, release, forget, launch_timeout, revive) = rules;
            Setup {
                core_cap,
                executor_cores,
                memory,
                overhead,
                extra_cores,
                gpu_cap,
                executor_gpus: executor_gpus.map(|gpus| gpus.min(gpu_cap)),
                limit: (limited || core_cap.is_none()).then_some(limit),
                port,
                revocable,
                zones,
                refuse: RefuseDurations {
                    unmet_constraint: secs(120),
                    reached_cap: secs(121),
                    other: secs(5),
                    stopping: secs(122),
                },
                exclusion: exclusion.map(|(failures, expiry)| ExclusionRule {
                    failures,
                    // All settings have the same window, because it is unspecified when a failure is forgotten if the
                    // window changes.
                    window: secs(1200),
                    expiry: expiry.map(secs),
                }),
                consolidate,
                compatibility: Compatibility::default(),
                locality_wait: None,
                unreachable: UnreachableRule {
                    release_after: release.map(secs),
                    forget_after: secs(forget),
                },
                launch_timeout: secs(launch_timeout),
                revive_interval: secs(revive),
            }
        })
        .boxed()
}

/// A reported state, often one that changes something.
pub(crate) fn states() -> impl Strategy<Value = TaskState> {
    select(vec![
        TaskState::Staging,
        TaskState::Starting,
        TaskState::Running,
        TaskState::Running,
        TaskState::Running,
        TaskState::Killing,
        TaskState::Finished,
        TaskState::Failed,
        TaskState::Failed,
        TaskState::Killed,
        TaskState::Error,
        TaskState::Lost,
        TaskState::Lost,
        TaskState::Dropped,
        TaskState::Unreachable,
        TaskState::Unreachable,
        TaskState::Gone,
        TaskState::GoneByOperator,
        TaskState::Unknown,
    ])
}

/// The reason of a status update.
pub(crate) fn reasons() -> impl Strategy<Value = UpdateReason> {
    prop_oneof![
        3 => Just(UpdateReason::Other),
        2 => select(vec![
            UpdateReason::AgentDisconnected,
            UpdateReason::AgentRemoved,
            UpdateReason::Reconciliation,
            UpdateReason::InvalidOffers,
            UpdateReason::AgentDraining,
            UpdateReason::Preempted,
        ]),
    ]
}

fn events(scene: &Scene) -> BoxedStrategy<Event> {
    let offers = (0usize..2, vec(offer_data(), 0..7))
        .prop_map(|(handler, batch)| Event::Offers { handler, batch });
    let tasks = (0usize..2, vec(offer_data(), 0..7), vec(gang_picks(), 0..9))
        .prop_map(|(handler, batch, gangs)| Event::Tasks { handler, batch, gangs });
    let updates = (whom(&scene.model), states(), reasons())
        .prop_map(|(whom, state, reason)| Event::Update { whom, state, reason });
    let bindings = bindings(&scene.model);
    let numbers = vec(number(&scene.model), 0..3);
    let killed = numbers.prop_map(|picks| {
        let unique: BTreeSet<u64> = picks.into_iter().flatten().collect();
        Event::Kill(unique.into_iter().collect())
    });
    let placed = scene.model.executors.len();
    let unseen: Vec<u64> =
        scene.model.living().filter(|it| scene.deadline(*it).is_some()).collect();
    let seen_again = match unseen.is_empty() {
        true => Just(Event::Tick).boxed(),
        false => (select(unseen), select(vec![TaskState::Running, TaskState::Unreachable]))
            .prop_map(|(number, state)| {
                let reason = UpdateReason::Other;
                Event::Update { whom: Whom::Number(number), state, reason }
            })
            .boxed(),
    };
    let unbound = scene.model.living().any(|it| scene.model.is_unbound(it));
    let sent = (0usize..2).prop_map(|handler| Event::Sent { handler });
    let behind = prop_oneof![1 => Just(0u64), 1 => 1u64..2_000];
    let ends = match (scene.model.closed, scene.model.counts.batches) {
        // Closing early would hide too much.
        (false, 0..6) => Just(Event::Poll).boxed(),
        _ => select(vec![Event::Drain, Event::Close]).boxed(),
    };
    prop_oneof![
        30 => offers,
        20 => tasks,
        if placed > 0 { 50 } else { 2 } => updates,
        if unbound { 30 } else { 2 } => bindings,
        3 => killed,
        3 => select(AGENTS.to_vec()).prop_map(Event::AgentLost),
        2 => select(AGENTS.to_vec()).prop_map(Event::Readmit),
        2 => whom(&scene.model).prop_map(Event::ExecutorLost),
        3 => option::weighted(0.8, 0u32..12).prop_map(Event::Limit),
        2 => setups().prop_map(|setup| Event::Reconfigure(Box::new(setup))),
        if scene.model.connected { 2 } else { 30 } => Just(Event::Registered),
        1 => Just(Event::Disconnected),
        8 => Just(Event::Poll),
        8 => Just(Event::Tick),
        15 => seen_again,
        6 => sent,
        1 => option::weighted(0.8, 0u32..12).prop_map(Event::Storm),
        4 => behind.prop_map(|behind| Event::Drivers { behind }),
        3 => vec(relics(), 0..5).prop_map(Event::Adopt),
        3 => select(vec![Scope::All, Scope::InDoubt, Scope::InDoubt]).prop_map(Event::Reconcile),
        if scene.model.closed { 6 } else { 1 } => ends,
    ]
    .boxed()
}

/// A single task or a gang, on rooms that may not be there, of amounts that may be absurd.
fn gang_picks() -> impl Strategy<Value = GangPicks> {
    let cores = prop_oneof![20 => 1u64..4_000, 1 => select(vec![0, 1 << 40, u64::MAX])];
    let memory = prop_oneof![20 => 0u64..3_000, 1 => select(vec![1 << 40, u64::MAX])];
    let gpus = prop_oneof![8 => Just(0), 4 => 1u32..4, 1 => Just(u32::MAX)];
    let room = prop_oneof![30 => 0u32..5, 1 => select(vec![9, u32::MAX])];
    let pick =
        (room, cores, memory, gpus, 0u64..100).prop_map(|(room, cores, memory, gpus, tag)| {
            let task = Task::new(tag, MilliCpus::from_millis(cores), Mebibytes::new(memory));
            (room, Task { gpus: Gpus::new(gpus), ..task })
        });
    prop_oneof![4 => vec(pick.clone(), 1), 1 => vec(pick, 2..5)]
}

/// Often the agent of an executor that isn't bound yet.
fn bindings(model: &Model) -> BoxedStrategy<Event> {
    let unbound: Vec<u64> = model.living().filter(|number| model.is_unbound(*number)).collect();
    let whom = match unbound.is_empty() {
        true => whom(model),
        false => {
            let known = select(unbound).prop_map(Whom::Number);
            prop_oneof![4 => known, 1 => whom(model)].boxed()
        }
    };
    let agent = prop_oneof![30 => select(AGENTS.to_vec()), 1 => Just("")];
    let zone = option::weighted(0.6, option::weighted(0.8, select(vec!["a", "b", "c"])));
    (whom, agent, zone).prop_map(|(whom, agent, zone)| Event::Bind { whom, agent, zone }).boxed()
}

/// Executors of an earlier run; occasionally two with the same name.
fn relics() -> impl Strategy<Value = Relic> {
    let name = select(vec!["old-0", "old-1", "old-2", "old-3", "former", "früher"]);
    let agent = prop_oneof![4 => select(AGENTS.to_vec()), 1 => Just("")];
    (name, agent, 0u64..4_000, option::weighted(0.3, 0u64..3)).prop_map(
        |(name, agent, cores, gpus)| Relic { name, agent, cores, gpus: gpus.unwrap_or(0) },
    )
}

/// Mostly an executor that lives, sometimes one that has ended; `None` if none was ever placed.
fn number(model: &Model) -> BoxedStrategy<Option<u64>> {
    let placed = model.executors.len() as u64;
    let living: Vec<u64> = model.living().collect();
    match (placed, living.is_empty()) {
        (0, _) => Just(None).boxed(),
        (_, true) => (0..placed).prop_map(Some).boxed(),
        _ => prop_oneof![4 => select(living), 1 => 0..placed].prop_map(Some).boxed(),
    }
}

fn whom(model: &Model) -> BoxedStrategy<Whom> {
    let strangers = select(vec![
        "",
        "nobody",
        "test-10-0",
        "99999999",
        "test-10-99999999.0",
        "test-10-0.99999999999",
    ]);
    let strangers = strangers.prop_map(Whom::Text);
    let known = (number(model), strangers.clone())
        .prop_map(|(number, stranger)| number.map_or(stranger, Whom::Number));
    prop_oneof![15 => known, 1 => strangers].boxed()
}

fn offer_data() -> BoxedStrategy<OfferData> {
    let id = prop_oneof![30 => Just("offer"), 1 => Just("")];
    let agent = prop_oneof![
        30 => (select(AGENTS.to_vec()), prop::bool::weighted(0.03)),
        10 => Just(("", true)),
        1 => Just(("", false)),
    ];
    let role = prop_oneof![4 => Just(DEFAULT_ROLE), 1 => select(ROLES.to_vec())];
    let zone = option::weighted(0.8, select(vec!["a", "b", "c"]));
    let usual = (1u32..9, 500u32..9000, 0u32..4).prop_map(|(cpus, memory, gpus)| {
        vec![
            Entry::scalar("cpus", f64::from(cpus)),
            Entry::scalar("mem", f64::from(memory)),
            Entry::scalar("gpus", f64::from(gpus)),
            Entry::ports(31_000, 31_004),
        ]
    });
    let entries = prop_oneof![
        2 => usual.clone(),
        2 => (usual, vec(entries(), 0..6)).prop_map(|(mut all, more)| { all.extend(more); all }),
        1 => vec(entries(), 0..9),
    ];
    (id, agent, role, zone, entries)
        .prop_map(|(id, (agent, late), role, zone, entries)| OfferData {
            late,
            host: "host".to_owned(),
            id: id.to_owned(),
            agent: agent.to_owned(),
            role,
            zone,
            entries,
        })
        .boxed()
}

fn entries() -> BoxedStrategy<Entry> {
    let value = prop_oneof![
        6 => (0u32..4_000).prop_map(f64::from),
        6 => (0u32..9_000).prop_map(|thousandths| f64::from(thousandths) / 1000.0),
        1 => select(vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, -0.0, 1e300, 9e12, 1e-9]),
    ];
    let scalar = (select(vec!["cpus", "mem", "gpus", "disk", "ports"]), value)
        .prop_map(|(name, value)| Entry::scalar(name, value));
    let range = (30_990u64..31_010, 0u64..20)
        .prop_map(|(begin, length)| PortRange::new(begin, (begin + length).saturating_sub(3)));
    let ports = vec(range, 0..4).prop_map(|ranges| Entry {
        name: "ports",
        amount: Amount::Ports(ranges),
        role: DEFAULT_ROLE,
        revocability: Revocability::NonRevocable,
    });
    let cpus_as_ranges = Just(Entry { name: "cpus", ..Entry::ports(0, 8) });
    let entry = prop_oneof![8 => scalar, 2 => ports, 1 => cpus_as_ranges];
    let reserved = prop_oneof![2 => Just(DEFAULT_ROLE), 1 => Just("etl"), 1 => Just("ads")];
    let revocability = prop_oneof![
        8 => Just(Revocability::NonRevocable),
        2 => Just(Revocability::Revocable),
        1 => select(vec![Revocability::Shared, Revocability::Disk]),
    ];
    (entry, reserved, revocability)
        .prop_map(|(entry, role, revocability)| entry.reserved_for(role).revocability(revocability))
        .boxed()
}
