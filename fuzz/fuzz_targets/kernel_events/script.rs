//! The script format: parses bytes to events. Every byte string is valid, and each line is one event, so that a
//! fuzzer's insertion or deletion changes one event and not all later ones.
//!
//! The first line contains the settings. Each further line is an event: a letter, then one character per value. `0` to
//! `9`, `a` to `z`, `A` to `Z` stand for 0 to 61, and any other byte for its number. If a value is one of a list, its
//! index wraps around at the end of the list. Missing values are 0.
//!
//! | line | event |
//! |---|---|
//! | `w` jump | time passes, or goes back: [`JUMPS`] |
//! | `o` handler, then words: agent (a capital from `L` on: none yet), role, zone, cores, memory, GPUs, ports, and triples of resource, amount, role | offers, one per word |
//! | `P` handler, then words: offers as above; `+` room, cores, memory, GPUs, tag, or `&` and the same | offers, and tasks that are picked, `&` in a gang with the one before |
//! | `u` whom, state, reason | an update: [`STATES`], [`REASONS`] |
//! | `b` whom, agent, [what is known of it](FACTS) | an executor is bound |
//! | `k` whom … | executors are asked to end |
//! | `l` agent, `x` whom | an agent or an executor is reported lost |
//! | `m` limit plus one, 0 for none | executor limit |
//! | `c` settings | reconfiguration |
//! | `r`, `d` | registered, disconnected |
//! | `p`, `t`, `q` scope | demand is polled, a tick, reconciliation |
//! | `s` handler, `h` handler | answers were sent, the handler is replaced |
//! | `z`, `Z` | close, drain |
//!
//! Settings, one character each: whether ids are plain (in the first line only), an executor's cores, core cap, memory,
//! overhead, extra cores, GPU cap, an executor's GPUs plus one, limit plus one, port, zones, failures before exclusion,
//! its expiry, release and forgetting of the unreachable, launch timeout, revive interval, whether to consolidate.
//!
//! Whom: a digit or lower-case letter selects a live executor, an upper-case letter any executor that was placed, and
//! any other byte an executor that the kernel never placed.

use offermill::config::{ExclusionRule, RefuseDurations, UnreachableRule};
use offermill::resources::{Gpus, Mebibytes, MilliCpus, PortRange};
use offermill::{DEFAULT_ROLE, Revocability, Scope, Task, TaskState, UpdateReason};

use crate::base62::base62;
use crate::history::{Event, HANDLERS, Scene, Step, Whom};
use crate::reference::{GangPicks, Known};
use crate::world::{Amount, Entry, Setup, OfferData, secs};

const OFFERS_MAX: usize = 12;
const ENTRIES_MAX: usize = 12;
const KILLS_MAX: usize = 8;
const PICKS_MAX: usize = 24;

const AGENTS: [&str; 8] =
    ["S0", "S1", "S2", "S3", "S4", "S5", "", "an agent with a name of its own"];
const ROLES: [&str; 3] = [DEFAULT_ROLE, "etl", "ads"];
const ZONES: [Option<&str>; 4] = [Some("a"), Some("b"), Some("c"), None];
/// What a cluster says of the zone of an agent that it chose.
const FACTS: [Option<Option<&str>>; 5] =
    [None, Some(None), Some(Some("a")), Some(Some("b")), Some(Some("c"))];
const UNKNOWN_IDS: [&str; 8] = [
    "",
    "nobody",
    "test-10-0",
    "99999999",
    "test-10-99999999.0",
    "test-10-0.99999999999",
    "test-10-00.0",
    "18446744073709551616",
];
/// Invalid and extreme quantities.
const ODD: [f64; 12] = [
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
    -1.0,
    -0.0,
    1e300,
    9e12,
    1e-9,
    0.333,
    0.0005,
    1.9995,
    3.001,
];

/// Absurd amounts of tasks.
const ABSURD: [u64; 5] = [u64::MAX, 0, 1, 1 << 53, u32::MAX as u64];
/// In milliseconds.
const JUMPS: [i64; 26] = [
    10,
    0,
    1,
    500,
    999,
    1_000,
    1_500,
    5_000,
    10_000,
    15_000,
    60_000,
    66_000,
    120_000,
    130_000,
    300_000,
    600_000,
    840_000,
    901_000,
    4_000_000,
    100_000_000,
    -1,
    -500,
    -3_000,
    -100_000,
    i64::MAX,
    i64::MIN,
];
/// The maximum backward jump of the clock, in milliseconds, unless every agent is certainly remembered: it is
/// unspecified how long an idle agent is remembered.
const BACK_MS_MAX: i64 = 3_000;

const STATES: [(u8, TaskState); 14] = [
    (b'r', TaskState::Running),
    (b'f', TaskState::Failed),
    (b'l', TaskState::Lost),
    (b'u', TaskState::Unreachable),
    (b'F', TaskState::Finished),
    (b'k', TaskState::Killed),
    (b's', TaskState::Staging),
    (b'S', TaskState::Starting),
    (b'K', TaskState::Killing),
    (b'e', TaskState::Error),
    (b'd', TaskState::Dropped),
    (b'g', TaskState::Gone),
    (b'o', TaskState::GoneByOperator),
    (b'?', TaskState::Unknown),
];
const REASONS: [(u8, UpdateReason); 7] = [
    (b'-', UpdateReason::Other),
    (b'd', UpdateReason::AgentDisconnected),
    (b'r', UpdateReason::AgentRemoved),
    (b'q', UpdateReason::Reconciliation),
    (b'i', UpdateReason::InvalidOffers),
    (b'D', UpdateReason::AgentDraining),
    (b'p', UpdateReason::Preempted),
];
const EVENTS: &[u8] = b"ouwkpltxmcrdqshzZbP";

/// A script with its parsed first line.
pub(crate) struct Script<'a> {
    pub(crate) setup: Setup,
    pub(crate) plain_ids: bool,
    events: &'a [u8],
}

impl<'a> Script<'a> {
    pub(crate) fn new(data: &'a [u8]) -> Script<'a> {
        let end = data.iter().position(|byte| *byte == b'\n').unwrap_or(data.len());
        let (first, events) = data.split_at(end);
        let mut values = Values(first);
        let plain_ids = values.flag();
        Script { setup: setup(&mut values), plain_ids, events }
    }

    /// Returns the lines, one per event.
    pub(crate) fn lines(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.events.split(|byte| *byte == b'\n').filter(|line| !line.is_empty())
    }
}

/// The unread rest of a line.
#[derive(Clone, Copy)]
struct Values<'a>(&'a [u8]);

impl<'a> Values<'a> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn number(&mut self) -> usize {
        self.byte().map_or(0, number)
    }

    fn flag(&mut self) -> bool {
        self.number() % 2 == 1
    }

    fn one_of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.number() % list.len()]
    }

    fn named<T: Copy>(&mut self, list: &[(u8, T)]) -> T {
        let Some(byte) = self.byte() else { return list[0].1 };
        let named = list.iter().find(|(name, _)| *name == byte);
        named.unwrap_or(&list[number(byte) % list.len()]).1
    }

    fn words(self) -> impl Iterator<Item = Values<'a>> {
        self.0.split(|byte| *byte == b' ').filter(|word| !word.is_empty()).map(Values)
    }
}

fn number(byte: u8) -> usize {
    base62(byte).unwrap_or(byte).into()
}

/// Parses settings. A setting that isn't listed here has its default.
#[allow(clippy::needless_update)]
fn setup(values: &mut Values<'_>) -> Setup {
    let executor_cores =
        values.one_of(&[None, Some(500), Some(1000), Some(2000), Some(3000), Some(333)]);
    let core_cap = match values.number() {
        0 => None,
        cores => Some((cores as u64 * 1000).max(executor_cores.unwrap_or(1000))),
    };
    let memory = (values.number() as u64 * 100).max(1);
    let overhead = values.one_of(&[0, 384]);
    let extra_cores = values.one_of(&[0, 1, 2]);
    let gpu_cap = values.number() as u32 % 8;
    let executor_gpus = (values.number() as u32 % 8).checked_sub(1).map(|gpus| gpus.min(gpu_cap));
    let limit = (values.number() as u32).checked_sub(1);
    let port = values.one_of(&[None, Some(31_000), Some(31_005)]);
    let zones = values.one_of(&[&[][..], &["a"], &["a", "b"]]).to_vec();
    let failures = values.one_of(&[0, 1, 2, 3]);
    let expiry = values.one_of(&[None, Some(10), Some(600), Some(4000)]).map(secs);
    let release_after = values.one_of(&[None, Some(0), Some(5), Some(60), Some(300)]).map(secs);
    let forget_after = secs(values.one_of(&[1, 60, 600]));
    // The window is the same in all settings, because it is unspecified when a failure is forgotten if the window
    // changes.
    let rule = ExclusionRule { failures, window: secs(1200), expiry };
    Setup {
        core_cap,
        executor_cores,
        memory,
        overhead,
        extra_cores,
        gpu_cap,
        executor_gpus,
        // The number of executors must be limited, or scripts would be slow.
        limit: if core_cap.is_none() { limit.or(Some(20)) } else { limit },
        port,
        zones,
        refuse: RefuseDurations {
            unmet_constraint: secs(120),
            reached_cap: secs(121),
            other: secs(5),
            stopping: secs(122),
        },
        exclusion: (failures > 0).then_some(rule),
        unreachable: UnreachableRule { release_after, forget_after },
        launch_timeout: secs(values.number() as u64 * 5),
        revive_interval: secs(values.number() as u64 % 10),
        consolidate: values.flag(),
        revocable: values.flag(),
        ..Setup::default()
    }
}

/// Parses the event of a line.
pub(crate) fn step(line: &[u8], scene: &Scene) -> Step {
    let mut values = Values(line);
    let name = values.byte().unwrap_or(b'p');
    let event = match EVENTS.contains(&name) {
        true => name,
        false => EVENTS[number(name) % EVENTS.len()],
    };
    Step::now(match event {
        b'w' => return wait(&mut values, scene),
        b'o' => {
            let handler = values.number() % HANDLERS;
            Event::Offers { handler, batch: values.words().take(OFFERS_MAX).map(offer_data).collect() }
        }
        b'P' => tasks(values),
        b'u' => Event::Update {
            whom: whom(&mut values, scene),
            state: values.named(&STATES),
            reason: values.named(&REASONS),
        },
        b'b' => Event::Bind {
            whom: whom(&mut values, scene),
            agent: values.one_of(&AGENTS),
            zone: values.one_of(&FACTS),
        },
        b'k' => Event::Kill(kills(values, scene)),
        b'l' => Event::AgentLost(values.one_of(&AGENTS)),
        b'x' => Event::ExecutorLost(whom(&mut values, scene)),
        b'm' => Event::Limit((values.number() as u32).checked_sub(1)),
        b'c' => Event::Reconfigure(Box::new(setup(&mut values))),
        b'r' => Event::Registered,
        b'd' => Event::Disconnected,
        b'p' => Event::Poll,
        b't' => Event::Tick,
        b'q' => Event::Reconcile(values.one_of(&[Scope::All, Scope::InDoubt])),
        b's' => Event::Sent { handler: values.number() % HANDLERS },
        b'h' => Event::Replaced { handler: values.number() % HANDLERS },
        b'z' => Event::Close,
        _ => Event::Drain,
    })
}

/// Offers and picks.
fn tasks(mut values: Values<'_>) -> Event {
    let handler = values.number() % HANDLERS;
    let (mut batch, mut gangs) = (Vec::new(), Vec::<GangPicks>::new());
    for mut word in values.words() {
        match word.0.first() {
            Some(b'+' | b'&') if gangs.iter().flatten().count() >= PICKS_MAX => {}
            Some(b'&') => {
                word.byte();
                let pick = pick(&mut word);
                match gangs.last_mut() {
                    Some(gang) => gang.push(pick),
                    None => gangs.push(vec![pick]),
                }
            }
            Some(b'+') => {
                word.byte();
                gangs.push(vec![pick(&mut word)]);
            }
            _ if batch.len() < OFFERS_MAX => batch.push(offer_data(word)),
            _ => {}
        }
    }
    Event::Tasks { handler, batch, gangs }
}

/// A task and its room. Characters that stand for no number are absurd amounts.
fn pick(values: &mut Values<'_>) -> (u32, Task) {
    let amount = |byte: Option<u8>, unit: u64| match byte {
        Some(byte) if !byte.is_ascii_alphanumeric() => ABSURD[usize::from(byte) % ABSURD.len()],
        byte => byte.map_or(0, number) as u64 * unit,
    };
    let room = values.number() as u32;
    let cores = MilliCpus::from_millis(amount(values.byte(), 250));
    let memory = Mebibytes::new(amount(values.byte(), 64));
    let gpus = u32::try_from(amount(values.byte(), 1)).unwrap_or(u32::MAX);
    let tag = values.number() as u64;
    (room, Task { gpus: Gpus::new(gpus), ..Task::new(tag, cores, memory) })
}

/// Time passes, and an offer is rescinded, which has no effect.
fn wait(values: &mut Values<'_>, scene: &Scene) -> Step {
    let after = values.one_of(&JUMPS);
    let open = scene.model.agents.values().any(|agent| agent.known == Known::Perhaps);
    Step { after: if open { after.max(-BACK_MS_MAX) } else { after }, event: Event::Rescinded }
}

fn whom(values: &mut Values<'_>, scene: &Scene) -> Whom {
    let byte = values.byte().unwrap_or(b'0');
    let placed = scene.model.executors.len();
    let living: Vec<u64> = match byte {
        b'0'..=b'9' | b'a'..=b'z' => scene.model.living().collect(),
        _ => Vec::new(),
    };
    match byte {
        b'0'..=b'9' | b'a'..=b'z' if !living.is_empty() => {
            Whom::Number(living[number(byte) % living.len()])
        }
        b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' if placed > 0 => {
            Whom::Number((number(byte) % placed) as u64)
        }
        _ => Whom::Text(UNKNOWN_IDS[number(byte) % UNKNOWN_IDS.len()]),
    }
}

/// Each number occurs at most once.
fn kills(mut values: Values<'_>, scene: &Scene) -> Vec<u64> {
    let mut numbers = Vec::new();
    while !values.0.is_empty() && numbers.len() < KILLS_MAX {
        if let Whom::Number(number) = whom(&mut values, scene)
            && !numbers.contains(&number)
        {
            numbers.push(number);
        }
    }
    numbers
}

fn offer_data(mut values: Values<'_>) -> OfferData {
    let (agent, late) = agent_of_offer(&mut values);
    let role = values.one_of(&ROLES);
    let zone = values.one_of(&ZONES);
    let mut entries = vec![
        Entry::scalar("cpus", values.number() as f64),
        Entry::scalar("mem", values.number() as f64 * 256.0),
        Entry::scalar("gpus", (values.number() % 5) as f64),
    ];
    match values.number() % 3 {
        0 => entries.push(Entry::ports(31_000, 31_004)),
        1 => entries.push(Entry::ports(31_003, 31_008)),
        _ => {}
    }
    // An offer has no id if its agent has a long name and no zone.
    let id = if agent.len() > 2 && zone.is_none() { "" } else { "offer" }.to_owned();
    while !values.0.is_empty() && entries.len() < ENTRIES_MAX {
        entries.push(entry(&mut values));
    }
    OfferData { id, agent, host: "host".to_owned(), role, zone, late, entries }
}

/// The agent of an offer, and whether its executor is bound late. Letters from `L` on stand for no agent.
fn agent_of_offer(values: &mut Values<'_>) -> (String, bool) {
    match values.0.first() {
        Some(b'L'..=b'Z') => {
            values.byte();
            (String::new(), true)
        }
        _ => (values.one_of(&AGENTS).to_owned(), false),
    }
}

fn entry(values: &mut Values<'_>) -> Entry {
    let name = values.byte().unwrap_or(b'c');
    let amount = values.byte().unwrap_or(b'0');
    let quantity = match amount {
        b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => number(amount) as f64 * 0.25,
        odd => ODD[usize::from(odd) % ODD.len()],
    };
    let begin = 30_990 + number(amount) as u64;
    let entry = match name {
        b'c' => Entry::scalar("cpus", quantity),
        b'm' => Entry::scalar("mem", quantity * 1024.0),
        b'g' => Entry::scalar("gpus", quantity),
        b'p' => Entry::scalar("ports", quantity),
        b'r' => Entry::ports(begin, begin + 12),
        // Unordered and overlapping on purpose.
        b'R' => {
            let ranges = vec![
                PortRange::new(begin + 9, begin),
                PortRange::new(begin, begin),
                PortRange::new(0, 9),
            ];
            Entry { amount: Amount::Ports(ranges), ..Entry::ports(0, 0) }
        }
        b'C' => Entry { name: "cpus", ..Entry::ports(0, 8) },
        _ => Entry::scalar("disk", quantity),
    };
    let role = values.byte().unwrap_or(b'0');
    let entry = entry.reserved_for(ROLES[number(role) % ROLES.len()]);
    match role {
        b'A'..=b'M' => entry.revocability(Revocability::Revocable),
        b'N'..=b'Z' => entry.revocability(Revocability::Shared),
        _ => entry,
    }
}
