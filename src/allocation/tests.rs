//! Tests of the allocator: tables of short histories, then properties over random ones.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;

use super::{
    AllocationAdvice, AllocationRule, AllocationRuleBuilder, Allocator, Load, ShuffleData,
};
use crate::ids::ExecutorId;
use crate::time::Timestamp;

fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn id(number: u32) -> ExecutorId {
    ExecutorId { sequence: u64::from(number), slot: number }
}

fn seconds(number: u64) -> Duration {
    Duration::from_secs(number)
}

fn tasks(pending: u64, running: u64) -> Load {
    Load { pending, running, ..Load::default() }
}

/// An allocator with executors 0, 1, … from the start.
fn allocator(rule: AllocationRuleBuilder, executors: u32) -> Allocator {
    let mut allocator = Allocator::new(rule.build().unwrap(), at(0));
    (0..executors).for_each(|number| allocator.added(id(number), at(0)));
    allocator
}

/// Steps every 100 ms from `from` to `until`. Returns the times at which the limit changes, with the new limit.
fn limits(allocator: &mut Allocator, load: Load, from: u64, until: u64) -> Vec<(u64, u32)> {
    let steps = (from..=until).step_by(100);
    steps.filter_map(|now| Some((now, allocator.step(at(now), &load).limit?))).collect()
}

/// Goal: growth of the limit doubles with each timeout while tasks wait, up to the need. Method: a backlog of 40 tasks,
/// two per executor, from the start.
#[test]
fn growth_doubles_up_to_what_is_needed() {
    let rule = AllocationRule::builder().slots(2).max(100).sustained_timeout(Some(seconds(2)));
    let mut allocator = allocator(rule, 0);
    let seen = limits(&mut allocator, tasks(30, 10), 0, 30_000);
    assert_eq!(seen, [(1_000, 1), (3_000, 3), (5_000, 7), (7_000, 15), (9_000, 20)]);
    let seen = limits(&mut allocator, tasks(80, 0), 30_100, 33_000);
    assert_eq!(seen, [(30_100, 21), (32_100, 23)], "what is needed anew comes at once, from 1 on");
}

/// Goal: growth stops at the maximum, and starts again at 1 when there is room. Method: a huge load, then less, then
/// more again.
#[test]
fn growth_stops_at_the_maximum() {
    let mut allocator = allocator(AllocationRule::builder().max(6), 0);
    let seen = limits(&mut allocator, tasks(u64::MAX, u64::MAX), 0, 9_000);
    assert_eq!(seen, [(1_000, 1), (2_000, 3), (3_000, 6)]);
    let seen = limits(&mut allocator, tasks(2, 1), 9_100, 9_500);
    assert_eq!(seen, [(9_100, 3)]);
    let seen = limits(&mut allocator, tasks(9, 0), 9_600, 15_000);
    assert_eq!(seen, [(9_600, 4), (10_600, 6)]);
}

/// Goal: the limit doesn't grow without a backlog, and a backlog that ends briefly waits for its whole timeout again.
/// Method: tasks that only run; then tasks that wait for almost a second, twice.
#[test]
fn only_a_lasting_backlog_counts() {
    let mut allocator = allocator(AllocationRule::builder().max(100), 0);
    assert_eq!(limits(&mut allocator, tasks(0, 50), 0, 5_000), []);
    assert_eq!(limits(&mut allocator, tasks(1, 50), 5_100, 6_000), []);
    assert_eq!(limits(&mut allocator, tasks(0, 51), 6_100, 6_100), []);
    assert_eq!(limits(&mut allocator, tasks(1, 50), 6_200, 7_300), [(7_200, 1)]);
}

/// Goal: growth starts from the number of executors that exist. Method: a limit that has fallen below the number of
/// executors, then a backlog.
#[test]
fn growth_begins_at_the_executors_there_are() {
    let rule = AllocationRule::builder().max(100).initial(8).idle_timeout(seconds(600));
    let mut allocator = allocator(rule, 8);
    assert_eq!(limits(&mut allocator, tasks(0, 1), 0, 0), [(0, 1)]);
    let seen = limits(&mut allocator, tasks(50, 0), 1_000, 4_500);
    assert_eq!(seen, [(2_000, 9), (3_000, 10), (4_000, 12)], "a leap isn't doubled");
}

/// Goal: the initial limit stays until the first load. Method: no load for a long time, then a load below the limit.
#[test]
fn the_first_load_finds_the_initial_executors() {
    let rule = || AllocationRule::builder().min(1).initial(5).max(10);
    let mut first = allocator(rule(), 5);
    assert_eq!(first.limit(), 5);
    assert_eq!(limits(&mut first, Load::default(), 0, 59_900), []);
    assert_eq!(limits(&mut first, tasks(2, 0), 59_950, 59_950), [(59_950, 2)]);
    // It also ends when the first executor has been idle for too long.
    let mut second = allocator(rule(), 5);
    assert_eq!(limits(&mut second, Load::default(), 0, 60_000), [(60_000, 1)]);
    let mut third = allocator(rule(), 0);
    assert_eq!(limits(&mut third, Load::default(), 0, 600_000), [], "nobody was idle");
}

/// Goal: idle executors end after the timeout, in order, down to the limit or the minimum. Method: six executors, one
/// of them busy, with a load for one and without load.
#[test]
fn idle_executors_end_down_to_the_limit() {
    let mut allocator = allocator(AllocationRule::builder().min(2).initial(6).max(10), 6);
    allocator.busy(id(1));
    let load = tasks(0, 1);
    assert_eq!(
        allocator.step(at(0), &load),
        AllocationAdvice { limit: Some(2), kill: vec![], needed: 1 }
    );
    assert!(allocator.step(at(59_999), &load).kill.is_empty());
    assert_eq!(allocator.step(at(60_000), &load).kill, [0, 2, 3, 4].map(id));
    assert_eq!(allocator.executors(), 2);
    assert!(allocator.step(at(60_100), &load).kill.is_empty(), "the minimum");
    // The last two: an executor that died no longer counts as leaving.
    allocator.removed(id(3));
    allocator.removed(id(1));
    assert_eq!(allocator.executors(), 1);
    allocator.added(id(6), at(60_100));
    allocator.added(id(7), at(60_100));
    assert_eq!(allocator.step(at(60_200), &Load::default()).kill, [id(5)]);
    assert!(allocator.step(at(999_999), &Load::default()).kill.is_empty());
}

/// Goal: the idle timeout depends on the data that an executor holds. Method: one row per case, with the time at which
/// the executor ends.
#[test]
fn what_an_executor_holds_keeps_it() {
    use ShuffleData::{Kept, Needed, None as Nothing};
    let (short, long) = (Some(seconds(100)), Some(seconds(200)));
    let rows = [
        (false, Nothing, None, None, Some(60)),
        (true, Nothing, None, None, None),
        (true, Nothing, long, short, Some(200)),
        (false, Kept, None, None, None),
        (false, Kept, long, short, Some(100)),
        (true, Kept, long, short, Some(100)),
        (true, Kept, short, long, Some(100)),
        (true, Kept, None, long, Some(200)),
        (true, Kept, Some(Duration::ZERO), long, Some(0)),
        (false, Needed, short, short, None),
        (true, Needed, short, short, None),
    ];
    for (cached, shuffle, cached_timeout, shuffle_timeout, end) in rows {
        let rule = AllocationRule::builder().cached_idle_timeout(cached_timeout);
        let mut allocator = allocator(rule.shuffle_timeout(shuffle_timeout), 1);
        assert!(allocator.cached(id(0), cached) && allocator.shuffle(id(0), shuffle));
        let mut steps = 0..1_000_u64;
        let ended = steps.find(|now| {
            let advice = allocator.step(at(now * 1_000), &Load::default());
            !advice.kill.is_empty()
        });
        assert_eq!(ended, end, "{cached} {shuffle:?} {cached_timeout:?} {shuffle_timeout:?}");
    }
}

/// Goal: a task restarts the idle time, and a repeated idle report doesn't. Method: reports of busy and idle at known
/// times.
#[test]
fn tasks_start_idleness_anew() {
    let mut allocator = allocator(AllocationRule::builder(), 1);
    allocator.busy(id(0));
    assert!(allocator.step(at(100_000), &Load::default()).kill.is_empty());
    allocator.idle(id(0), at(100_000));
    allocator.idle(id(0), at(130_000));
    allocator.added(id(0), at(140_000));
    assert_eq!(allocator.idle_since(id(0)), Some(at(100_000)));
    assert!(allocator.step(at(159_900), &Load::default()).kill.is_empty());
    assert_eq!(allocator.step(at(160_000), &Load::default()).kill, [id(0)]);
    assert!(!allocator.busy(id(9)) && !allocator.cached(id(9), true), "unknown");
}

/// Goal: an executor that the load needs stays, even if the limit hasn't grown yet. Method: a load that arrives at the
/// moment when five executors beyond the limit have been idle for too long.
#[test]
fn needed_executors_stay() {
    let mut allocator = allocator(AllocationRule::builder().initial(5), 5);
    assert_eq!(allocator.step(at(0), &tasks(0, 1)).limit, Some(1));
    let advice = allocator.step(at(60_000), &tasks(3, 0));
    assert_eq!((advice.limit, advice.kill), (None, vec![id(0), id(1)]));
}

/// Goal: the number of needed executors is Spark's. Method: one row per case.
#[test]
fn the_needed_executors_are_counted_as_spark_does() {
    let rows = [
        (Load::default(), 1, 1.0, 0),
        (tasks(1, 0), 4, 1.0, 1),
        (tasks(5, 4), 4, 1.0, 3),
        (tasks(100, 0), 4, 0.5, 13),
        (tasks(1, 0), 4, 0.01, 1),
        (Load { speculative: 1, running: 1, ..Load::default() }, 4, 1.0, 2),
        (tasks(1, 2), 4, 1.0, 1),
        (Load { speculative: 1, ..Load::default() }, 4, 1.0, 2),
        (Load { speculative: 1, ..Load::default() }, 1, 1.0, 1),
        (Load { speculative: 5, ..Load::default() }, 4, 1.0, 2),
        (Load { unschedulable: 1, ..tasks(4, 0) }, 4, 1.0, 4),
        (Load { unschedulable: 5, ..tasks(99, 0) }, 4, 1.0, 25),
        (tasks(u64::MAX, u64::MAX), 1, 1.0, u32::MAX),
    ];
    for (load, slots, ratio, needed) in rows {
        let rule = AllocationRule::builder().slots(slots).ratio(ratio).build().unwrap();
        assert_eq!(load.executors_needed(&rule, 3), needed, "{load:?} {slots} {ratio}");
    }
}

/// Goal: contradictory rules are rejected with a sentence; values that are too large are reduced. Method: one row per
/// case.
#[test]
fn wrong_rules_are_refused() {
    let rule = AllocationRule::builder;
    let rows = [
        (rule().max(0), "maximum of executors is \"0\", but must be at least 1"),
        (rule().min(3).max(2), "minimum of executors is \"3\", but must be at most the maximum, 2"),
        (rule().max(2).initial(3), "initial number of executors is \"3\", but must be at most"),
        (rule().ratio(0.0), "executor allocation ratio is \"0\", but must be above 0, at most 1"),
        (rule().ratio(1.1), "executor allocation ratio is \"1.1\""),
        (rule().ratio(f64::NAN), "executor allocation ratio is \"NaN\""),
        (rule().slots(0), "number of task slots is \"0\""),
        (rule().backlog_timeout(Duration::ZERO), "backlog timeout is \"0ns\", but must be"),
        (rule().sustained_timeout(Some(Duration::ZERO)), "sustained backlog timeout is"),
        (rule().min(u32::MAX), "minimum of executors is"),
    ];
    for (builder, sentence) in rows {
        let error = builder.build().unwrap_err();
        assert!(error.is_setting() && error.to_string().starts_with(sentence), "{error}");
    }
    let rule = rule().max(u32::MAX).min(2).build().unwrap();
    assert_eq!((rule.max(), rule.initial()), (crate::limits::EXECUTORS_MAX, 2));
}

/// An event for an allocator.
#[derive(Clone, Debug)]
enum Event {
    Pass(u64),
    Added(u32),
    Removed(u32),
    Leaving(u32),
    Busy(u32),
    Idle(u32),
    Cached(u32, bool),
    Shuffle(u32, ShuffleData),
    Load(Load),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let id = 0..12_u32;
    let number = || prop_oneof![6 => 0..4_u64, 6 => 0..60_u64, 1 => any::<u64>()];
    let data =
        prop_oneof![Just(ShuffleData::None), Just(ShuffleData::Kept), Just(ShuffleData::Needed)];
    let load =
        (number(), number(), 0..3_u64, 0..3_u64).prop_map(|(pending, running, copies, sets)| {
            Load { pending, running, speculative: copies / 2, unschedulable: sets / 2 }
        });
    let event = prop_oneof![
        16 => prop_oneof![Just(100), 0..3_000_u64].prop_map(Event::Pass),
        6 => id.clone().prop_map(Event::Added),
        2 => id.clone().prop_map(Event::Removed),
        1 => id.clone().prop_map(Event::Leaving),
        2 => id.clone().prop_map(Event::Busy),
        2 => id.clone().prop_map(Event::Idle),
        1 => (id.clone(), any::<bool>()).prop_map(|(id, has)| Event::Cached(id, has)),
        1 => (id, data).prop_map(|(id, data)| Event::Shuffle(id, data)),
        4 => load.prop_map(Event::Load),
    ];
    vec(event, 1..200)
}

fn rules() -> impl Strategy<Value = AllocationRule> {
    let timeout = || prop_oneof![1..500_u64, 1..5_000_u64].prop_map(Duration::from_millis);
    let bounds = (0..4_u32, 1..10_u32, 0..8_u32, 1..4_u32, 0.1..=1.0_f64);
    (bounds, timeout(), timeout(), timeout(), timeout(), timeout()).prop_map(
        |((min, more, initial, slots, ratio), backlog, sustained, idle, cached, shuffle)| {
            let max = min + more;
            let rule =
                AllocationRule::builder().min(min).max(max).initial(initial.min(max)).slots(slots);
            let rule = rule.ratio(ratio).backlog_timeout(backlog);
            let rule = rule.sustained_timeout(Some(sustained)).idle_timeout(idle);
            rule.cached_idle_timeout(Some(cached)).shuffle_timeout(Some(shuffle)).build().unwrap()
        },
    )
}

/// A simple model of an executor, updated from the events alone.
#[derive(Clone, Copy, Debug)]
struct Known {
    idle_since: Option<u64>,
    cached: bool,
    shuffle: ShuffleData,
    leaving: bool,
}

/// Applies an event to an allocator and, if it concerns an executor, to the model.
fn tell(event: &Event, now: u64, allocator: &mut Allocator, known: &mut BTreeMap<u32, Known>) {
    match *event {
        Event::Pass(_) | Event::Load(_) => {}
        Event::Added(it) => {
            allocator.added(id(it), at(now));
            let (idle_since, shuffle) = (Some(now), ShuffleData::None);
            let new = Known { idle_since, cached: false, shuffle, leaving: false };
            known.entry(it).or_insert(new);
        }
        Event::Removed(it) => {
            allocator.removed(id(it));
            known.remove(&it);
        }
        Event::Leaving(it) => {
            allocator.leaving(id(it));
            known.entry(it).and_modify(|known| known.leaving = true);
        }
        Event::Busy(it) => {
            allocator.busy(id(it));
            known.entry(it).and_modify(|known| known.idle_since = None);
        }
        Event::Idle(it) => {
            allocator.idle(id(it), at(now));
            known.entry(it).and_modify(|known| {
                known.idle_since.get_or_insert(now);
            });
        }
        Event::Cached(it, has) => {
            allocator.cached(id(it), has);
            known.entry(it).and_modify(|known| known.cached = has);
        }
        Event::Shuffle(it, data) => {
            allocator.shuffle(id(it), data);
            known.entry(it).and_modify(|known| known.shuffle = data);
        }
    }
}

/// Whether an executor has been idle for at least its timeout.
fn may_end(known: &Known, rule: &AllocationRule, now: u64) -> bool {
    let Some(since) = known.idle_since else { return false };
    let mut timeouts = Vec::new();
    if known.cached {
        timeouts.extend(rule.cached_idle_timeout);
    }
    if known.shuffle == ShuffleData::Kept {
        timeouts.extend(rule.shuffle_timeout);
    }
    if !known.cached && known.shuffle == ShuffleData::None {
        timeouts.push(rule.idle_timeout);
    }
    let idle = Duration::from_millis(now - since);
    !known.leaving
        && known.shuffle != ShuffleData::Needed
        && timeouts.iter().any(|timeout| idle >= *timeout)
}

proptest! {
    /// Goal: the limit stays within its bounds; it falls at once to the need and no further; growth doubles or starts
    /// at 1, and happens when its timeout has passed, up to the need. No executor is ended before its timeout, twice,
    /// or below the limit and the load's need; all other overdue executors are ended. Method: random histories, each
    /// step compared with a model of the events.
    #[test]
    fn advice_is_sound(rule in rules(), events in events()) {
        let mut allocator = Allocator::new(rule.clone(), at(0));
        let mut known = BTreeMap::new();
        let (mut now, mut load, mut limit) = (0_u64, Load::default(), rule.initial());
        let (mut waiting_since, mut grew_at, mut growth) = (None, None, 1);
        let mut has_begun = false;
        for event in &events {
            tell(event, now, &mut allocator, &mut known);
            match event {
                Event::Pass(millis) => now += millis,
                Event::Load(next) => load = *next,
                _ => continue,
            }
            let present = u32::try_from(known.len()).unwrap();
            has_begun |= load.is_any() || known.values().any(|it| may_end(it, &rule, now));
            let advice = allocator.step(at(now), &load);
            let needed = load.executors_needed(&rule, present);
            prop_assert_eq!(advice.needed, needed);
            prop_assert_ne!(advice.limit, Some(limit));
            let after = allocator.limit();
            prop_assert_eq!(after, advice.limit.unwrap_or(limit));
            prop_assert!(rule.min() <= after && after <= rule.max());
            if !load.is_backlogged() {
                (waiting_since, grew_at, growth) = (None, None, 1);
            } else {
                waiting_since = waiting_since.or(Some(now));
            }
            let since = match grew_at {
                Some(grew_at) => Some((grew_at, rule.sustained_timeout)),
                None => waiting_since.map(|since| (since, rule.backlog_timeout)),
            };
            let is_due =
                since.is_some_and(|(at, timeout)| Duration::from_millis(now - at) >= timeout);
            let mut expected = limit;
            if has_begun && needed < limit {
                (expected, growth) = (needed.max(rule.min()), 1);
            } else if has_begun && is_due {
                expected = (limit.max(present) + growth).min(needed).min(rule.max()).max(limit);
                let grown = expected - limit;
                growth = if grown == growth { 2 * growth } else { 1 };
                grew_at = if grown > 0 { Some(now) } else { grew_at };
            }
            prop_assert_eq!(after, expected, "limit was {}", limit);
            limit = after;
            let staying = known.values().filter(|it| !it.leaving).count();
            let kept = limit.max(needed.min(rule.max())) as usize;
            let able: Vec<u32> =
                known.iter().filter(|(_, it)| may_end(it, &rule, now)).map(|(id, _)| *id).collect();
            let spare = staying.saturating_sub(kept);
            let expected: Vec<ExecutorId> = able.iter().take(spare).map(|it| id(*it)).collect();
            prop_assert_eq!(&advice.kill, &expected);
            for it in able.into_iter().take(spare) {
                known.entry(it).and_modify(|known| known.leaving = true);
            }
            let left = known.values().filter(|it| !it.leaving).count();
            prop_assert_eq!(allocator.executors(), left);
        }
    }

    /// Goal: equal histories give equal advice, however far the clock jumps ahead or back; and when the clock is
    /// regular again, nothing waits longer than its timeout. Method: random times for two equal allocators, then a
    /// backlog and an idle executor with a regular clock.
    #[test]
    fn wild_time_is_harmless(
        rule in rules(),
        events in events(),
        moments in vec(prop_oneof![0..9_000_u64, any::<u64>(), Just(u64::MAX)], 200),
        after in prop_oneof![0..9_000_u64, 0..u64::MAX / 2],
    ) {
        let mut pair = [Allocator::new(rule.clone(), at(5)), Allocator::new(rule.clone(), at(5))];
        let mut load = Load::default();
        for (event, now) in events.iter().zip(moments) {
            if let Event::Load(next) = event {
                load = *next;
            }
            let advices = pair.each_mut().map(|allocator| {
                tell(event, now, allocator, &mut BTreeMap::new());
                allocator.step(at(now), &load)
            });
            prop_assert_eq!(&advices[0], &advices[1]);
            let limit = pair[0].limit();
            prop_assert!(rule.min() <= limit && limit <= rule.max());
        }
        let [mut allocator, _] = pair;
        let longest = rule.backlog_timeout.max(rule.sustained_timeout);
        let _ = allocator.step(at(after), &tasks(u64::MAX, 0));
        let before = allocator.limit();
        let _ = allocator.step(at(after).plus(longest), &tasks(u64::MAX, 0));
        prop_assert!(allocator.limit() > before || before == rule.max(), "growth waits too long");
        let now = at(after).plus(longest);
        for it in (0..32).map(id) {
            allocator.added(it, now);
            allocator.idle(it, now);
            allocator.cached(it, false);
            allocator.shuffle(it, ShuffleData::None);
        }
        let _ = allocator.step(now.plus(rule.idle_timeout), &Load::default());
        prop_assert_eq!(allocator.executors(), rule.min() as usize, "idleness lasts too long");
    }
}
