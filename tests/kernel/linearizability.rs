//! Linearizability tests: the answers of concurrent calls must be those of some sequential order.
//!
//! Four threads make a few calls each. Each call is stamped before and after. For each history, a search (Wing and
//! Gong's algorithm, which remembers failed states) looks for an order of the calls' effects that respects the stamps
//! and that a sequential ledger explains: placed executors, freed resources, and the totals and snapshots that were
//! read.
//!
//! Three calls have two effects instead of one, and so does the ledger. A batch is planned with the state at one
//! instant and admitted at a later one, with a plan that is at most smaller. An end is decided at one instant, after
//! which a duplicate frees nothing, and leaves the totals at a later one. A new limit may be applied from one instant
//! on, and must be applied from a later one on, before the call returns.
//!
//! A seed determines the calls, and is printed (`OFFERMILL_SEED` sets another). How the threads interleave is not
//! determined.

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;

use offermill::{Change, Decisions, ExecutorId, IdScheme, Kernel, StatusUpdate, TaskState};

use crate::threads::{Rng, seed};
use crate::world::{OfferData, Setup, at, lend};

const THREADS: usize = 4;
const CALLS: usize = 6;
/// The number of pairs of calls that must have overlapped.
const OVERLAPS_MIN: usize = 500;
const HISTORIES: u64 = 4_000;
const CAP: u32 = 4;
const LIMIT: u32 = 3;

/// A call and its answer. Sets of executors are bit masks.
#[derive(Clone, Debug)]
enum Call {
    /// Offers with room for this number of executors, and the executors that were placed.
    Offer {
        room: u32,
        placed: u64,
    },
    /// The end of one executor is reported; `freed` is whether that freed anything.
    End {
        executor: u64,
        freed: bool,
    },
    SetLimit(u32),
    Close,
    Totals {
        executors: u32,
        closed: bool,
    },
    /// An exact snapshot.
    Snapshot {
        executors: u64,
        closed: bool,
    },
}

/// A call between its two stamps.
#[derive(Clone, Debug)]
struct Stamped {
    from: u64,
    to: u64,
    call: Call,
}

/// An effect, which happens at one instant.
#[derive(Clone, Debug)]
enum Effect {
    Planned { room: u32, placed: u64 },
    Admitted { placed: u64 },
    Ended { executor: u64, freed: bool },
    Uncounted,
    LimitSeen(u32),
    LimitInForce,
    Closed,
    Totals { executors: u32, closed: bool },
    Snapshot { executors: u64, closed: bool },
}

/// The sequential model of the kernel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Ledger {
    alive: u64,
    counted: u32,
    limit: u32,
    /// The previous limit, as long as a batch may still apply it.
    fading: Option<u32>,
    closed: bool,
}

impl Ledger {
    fn new() -> Ledger {
        Ledger { alive: 0, counted: 0, limit: LIMIT, fading: None, closed: false }
    }

    /// The number of further executors that are allowed: by the limit, and by the previous one.
    fn rooms(&self) -> impl Iterator<Item = u32> {
        let limits = [Some(self.limit), self.fading].into_iter().flatten();
        let (counted, closed) = (self.counted, self.closed);
        limits.map(move |limit| if closed { 0 } else { limit.min(CAP).saturating_sub(counted) })
    }

    /// Returns the ledger after `effect`. `None` if the effect is not possible now.
    fn after(&self, effect: &Effect) -> Option<Ledger> {
        let mut next = self.clone();
        let possible = match *effect {
            Effect::Planned { room, placed } => {
                self.rooms().any(|free| room.min(free) == placed.count_ones())
            }
            Effect::Admitted { placed } => {
                next.alive |= placed;
                next.counted += placed.count_ones();
                self.rooms().any(|free| placed.count_ones() <= free)
            }
            Effect::Ended { executor, freed } => {
                next.alive &= !executor;
                freed == (self.alive & executor != 0)
            }
            Effect::Uncounted => {
                next.counted -= 1;
                true
            }
            Effect::LimitSeen(limit) => {
                next.fading = Some(self.limit);
                next.limit = limit;
                self.fading.is_none()
            }
            Effect::LimitInForce => {
                next.fading = None;
                true
            }
            Effect::Closed => {
                next.closed = true;
                true
            }
            Effect::Totals { executors, closed } => {
                (executors, closed) == (self.counted, self.closed)
            }
            Effect::Snapshot { executors, closed } => {
                let stands = (executors, closed) == (self.alive, self.closed);
                stands && executors.count_ones() == self.counted
            }
        };
        possible.then_some(next)
    }
}

/// An effect, the stamps between which it happens, and the index of the effect of the same call that precedes it.
struct Event {
    from: u64,
    to: u64,
    effect: Effect,
    after: Option<usize>,
}

fn events(history: &[Stamped]) -> Vec<Event> {
    let mut events: Vec<Event> = Vec::new();
    for Stamped { from, to, call } in history {
        let (first, second) = match *call {
            Call::Offer { room, placed } => (
                Effect::Planned { room, placed },
                (placed != 0).then_some(Effect::Admitted { placed }),
            ),
            Call::End { executor, freed } => {
                (Effect::Ended { executor, freed }, freed.then_some(Effect::Uncounted))
            }
            Call::SetLimit(limit) => (Effect::LimitSeen(limit), Some(Effect::LimitInForce)),
            Call::Close => (Effect::Closed, None),
            Call::Totals { executors, closed } => (Effect::Totals { executors, closed }, None),
            Call::Snapshot { executors, closed } => (Effect::Snapshot { executors, closed }, None),
        };
        let at = events.len();
        events.push(Event { from: *from, to: *to, effect: first, after: None });
        events.extend(second.map(|effect| Event { from: *from, to: *to, effect, after: Some(at) }));
    }
    assert!(events.len() <= 64, "a set of events is one word");
    events
}

/// Whether some sequential order explains `history`.
fn explained(history: &[Stamped]) -> bool {
    fn search(
        events: &[Event],
        done: u64,
        ledger: &Ledger,
        dead_ends: &mut HashSet<(u64, Ledger)>,
    ) -> bool {
        if done.count_ones() as usize == events.len() {
            return true;
        }
        if dead_ends.contains(&(done, ledger.clone())) {
            return false;
        }
        let is_done = |at: usize| done & 1 << at != 0;
        let open = || events.iter().enumerate().filter(|(at, _)| !is_done(*at));
        // No effect precedes the effects of calls that had returned when its call began.
        let first_return = open().map(|(_, event)| event.to).min().unwrap_or_default();
        for (at, event) in open() {
            let next = event.from < first_return && event.after.is_none_or(is_done);
            let Some(after) = next.then(|| ledger.after(&event.effect)).flatten() else { continue };
            if search(events, done | 1 << at, &after, dead_ends) {
                return true;
            }
        }
        dead_ends.insert((done, ledger.clone()));
        false
    }
    search(&events(history), 0, &Ledger::new(), &mut HashSet::new())
}

/// The state that the threads of a history share.
struct Harness {
    kernel: Kernel,
    stamps: AtomicU64,
    ready: AtomicUsize,
    /// Executors whose placement has been returned.
    known: Mutex<Vec<ExecutorId>>,
}

fn bit(id: ExecutorId) -> u64 {
    // The sequence of planned executors has gaps, but doesn't reach sixty with so few calls.
    1u64.checked_shl(id.sequence() as u32).expect("too many executors")
}

impl Harness {
    fn new(ids: IdScheme) -> Harness {
        let setup =
            Setup { core_cap: Some(u64::from(CAP) * 1000), limit: Some(LIMIT), ..Setup::default() };
        Harness {
            kernel: Kernel::new(setup.config(), ids),
            stamps: AtomicU64::new(0),
            ready: AtomicUsize::new(0),
            known: Mutex::default(),
        }
    }

    fn end(&self, id: ExecutorId) -> Call {
        let name = self.kernel.executor_name(id).to_string();
        let update = StatusUpdate::new(&name, TaskState::Finished);
        let outcome = self.kernel.status_update(&update, at(2));
        let freed = matches!(outcome.change, Change::Ended(_));
        assert_eq!(freed, outcome.freed.is_some());
        Call::End { executor: bit(id), freed }
    }

    fn snapshot(&self) -> Call {
        let snapshot = self.kernel.snapshot(at(3));
        let totals = snapshot.totals;
        if !snapshot.exact {
            return Call::Totals { executors: totals.executors, closed: totals.closed };
        }
        let executors = snapshot.executors.iter().fold(0, |all, view| all | bit(view.id));
        assert_eq!(executors.count_ones(), totals.executors);
        Call::Snapshot { executors, closed: totals.closed }
    }

    fn offer(&self, handler: &mut offermill::Handler, agent: &str, room: u32) -> Call {
        let offer_data = OfferData::new(agent, f64::from(room), 10_000.0);
        let mut decisions = Decisions::new();
        lend(&[offer_data], |offers| handler.resource_offers(offers, at(1), &mut decisions));
        let ids = decisions.accepts().flat_map(|accept| accept.executors).map(|one| one.id);
        let ids: Vec<ExecutorId> = ids.collect();
        self.known.lock().unwrap().extend(&ids);
        Call::Offer { room, placed: ids.into_iter().fold(0, |all, id| all | bit(id)) }
    }

    /// Makes one thread's calls.
    fn run(&self, thread: usize, mut rng: Rng) -> Vec<Stamped> {
        let mut handler = self.kernel.handler();
        let agent = format!("S{thread}");
        self.ready.fetch_add(1, Ordering::SeqCst);
        while self.ready.load(Ordering::SeqCst) < THREADS {
            thread::yield_now();
        }
        let one = |_| {
            let ended = match self.known.lock().unwrap().as_slice() {
                [] => None,
                known => Some(known[rng.below(known.len() as u64) as usize]),
            };
            let choice = rng.below(24);
            if rng.below(3) == 0 {
                thread::yield_now();
            }
            let from = self.stamps.fetch_add(1, Ordering::SeqCst);
            let call = match (choice, ended) {
                (0..8, Some(id)) => self.end(id),
                (0..4, None) | (8..15, _) => {
                    self.offer(&mut handler, &agent, 1 + choice as u32 % 3)
                }
                (15..17, _) => {
                    let limit = choice as u32 % 4;
                    self.kernel.set_executor_limit(Some(limit)).unwrap();
                    Call::SetLimit(limit)
                }
                (17..20, _) => self.snapshot(),
                (20, _) if rng.below(3) == 0 => {
                    self.kernel.close();
                    Call::Close
                }
                _ => {
                    let totals = self.kernel.totals();
                    Call::Totals { executors: totals.executors, closed: totals.closed }
                }
            };
            let to = self.stamps.fetch_add(1, Ordering::SeqCst);
            Stamped { from, to, call }
        };
        (0..CALLS).map(one).collect()
    }
}

/// The number of pairs of calls that overlap.
fn overlaps(history: &[Stamped]) -> usize {
    let pairs = history.iter().enumerate().flat_map(|(at, one)| {
        history[at + 1..].iter().filter(|other| one.from < other.to && other.from < one.to)
    });
    pairs.count()
}

/// Goal: concurrent calls return what some sequential order of them would return, each at an instant between call and
/// return. Method: thousands of short histories of four threads on a small kernel, each searched for such an order. On
/// a busy machine, where threads seldom run at a time, there are more of them.
#[test]
fn histories_are_explained_by_an_order() {
    let seed = seed();
    let (mut calls, mut overlapping, mut histories) = (0, 0, 0);
    for number in 0..10 * HISTORIES {
        if number >= HISTORIES && overlapping > OVERLAPS_MIN {
            break;
        }
        histories += 1;
        let unique = || IdScheme::unique("line", 0).unwrap();
        let harness = Harness::new(if number % 2 == 0 { unique() } else { IdScheme::plain() });
        let history: Vec<Stamped> = thread::scope(|scope| {
            let spawn = |thread| {
                let rng = Rng(seed.wrapping_add(number * 100 + thread as u64));
                let harness = &harness;
                scope.spawn(move || harness.run(thread, rng))
            };
            let threads: Vec<_> = (0..THREADS).map(spawn).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        calls += history.len();
        overlapping += overlaps(&history);
        assert!(explained(&history), "no order explains history {number}: {history:#?}");
        harness.kernel.check().unwrap();
    }
    println!(
        "linearizability: {histories} histories, {calls} calls, {overlapping} pairs overlapped"
    );
    assert!(overlapping > OVERLAPS_MIN, "the test has to test something");
}

/// Goal: the search rejects histories that no order explains, and accepts all others. Method: pairs of hand-written
/// histories: one that is impossible, and one that differs by a stamp or an answer and is possible.
#[test]
fn invalid_histories_are_rejected() {
    let stamped = |from, to, call| Stamped { from, to, call };
    let offer = |from, to, room, placed| stamped(from, to, Call::Offer { room, placed });
    let end = |from, to, freed| stamped(from, to, Call::End { executor: 1, freed });
    let totals = |from, to, executors| stamped(from, to, Call::Totals { executors, closed: false });
    let cases = [
        (false, vec![offer(0, 3, 1, 1), totals(1, 2, 1), totals(4, 5, 0)], "totals go back"),
        (true, vec![offer(0, 5, 1, 1), totals(1, 2, 0), totals(3, 4, 1)], "totals go on"),
        (false, vec![offer(0, 1, 1, 1), end(2, 4, true), end(3, 5, true)], "freed twice"),
        (true, vec![offer(0, 1, 1, 1), end(2, 4, false), end(3, 5, true)], "freed once"),
        (
            false,
            vec![offer(0, 1, 1, 1), end(2, 3, false), end(4, 5, true)],
            "a duplicate was first",
        ),
        (false, vec![offer(0, 1, 2, 3), offer(2, 3, 2, 12)], "over the limit"),
        (true, vec![offer(0, 1, 2, 3), offer(2, 3, 2, 4)], "at the limit"),
        (false, vec![offer(0, 1, 2, 1)], "room, and declined"),
        (true, vec![stamped(0, 1, Call::SetLimit(1)), offer(2, 3, 2, 1)], "a lower limit"),
        (false, vec![stamped(0, 1, Call::SetLimit(1)), offer(2, 3, 2, 3)], "beyond a lower limit"),
        (true, vec![stamped(0, 3, Call::SetLimit(1)), offer(1, 2, 2, 3)], "while it is lowered"),
        (false, vec![stamped(0, 1, Call::Close), offer(2, 3, 1, 1)], "placed after the close"),
        (true, vec![stamped(0, 2, Call::Close), offer(1, 3, 1, 1)], "placed before the close"),
        (
            false,
            vec![offer(0, 1, 2, 3), stamped(2, 3, Call::Snapshot { executors: 1, closed: false })],
            "somebody is missing in the picture",
        ),
        (
            true,
            vec![offer(0, 3, 2, 3), stamped(1, 2, Call::Snapshot { executors: 3, closed: false })],
            "the picture shows who is being placed",
        ),
    ];
    for (right, history, what) in cases {
        assert_eq!(explained(&history), right, "{what}");
    }
}
