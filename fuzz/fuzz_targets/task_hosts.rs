//! Tasks in hosts and queues: hosts that are added with their first tasks, run, are lost, idle and end, while tasks
//! come and go and queues and caps change.
//!
//! After each step the kernel has placed, left out and freed what the naive books of `tests/kernel/tasks` say; each
//! agent has the host that they have, with as many tasks; what is said of former hosts has no effect; queues hold what
//! they hold in the books, and `check()` finds nothing.
//!
//! The input is a script. Every byte string is valid. If its first byte is a digit, ids are plain. Each line is a step:
//! a letter, then one character for each value:
//!
//! | step | |
//! |---|---|
//! | `p` agent, then for each task: queue, cores, memory | tasks are picked for the agent's host, on an offer of what is free |
//! | `u` agent | its host runs |
//! | `e` which, whether it fails | a task ends |
//! | `l` agent | its host is lost, with its tasks |
//! | `i` agent | the framework looks whether its host is idle |
//! | `t` agent | and ends it, if nothing has happened since |
//! | `k` agent | ends it, whatever is in it |
//! | `c` core cap, memory, limit, then for each of two queues: maximum of cores and of memory, guarantee of both | settings are changed |
//! | `d` queue, whether it has demand | |
//!
//! `0` to `9`, `a` to `z`, `A` to `Z` stand for 0 to 61: of cores and of their bounds for that many tenths, of memory
//! for that many times 10 MiB. A cap or maximum of 0 is none. Missing values are 0.

#![cfg_attr(fuzzing, no_main)]

mod base62;
#[path = "../../tests/kernel/tasks/host_books.rs"]
mod host_books;
#[path = "../../tests/kernel/world.rs"]
#[allow(dead_code)]
mod world;

use base62::base62;
use host_books::{HostStep, HostedPair, QueueTerms};

/// The maximum numbers of steps, and of tasks in a step. Later ones are ignored.
const STEPS_MAX: usize = 400;
const TASKS_MAX: usize = 20;
const CORES_UNIT: u64 = 100;
const MEMORY_UNIT: u64 = 10;

fn check(data: &[u8]) {
    play(data, |_| {});
}

fn show(data: &[u8]) {
    play(data, |step| println!("{step:?}"));
}

fn play(data: &[u8], watch: impl Fn(&HostStep)) {
    let mut pair = HostedPair::new(data.first().is_some_and(u8::is_ascii_digit));
    for line in data.split(|byte| *byte == b'\n').take(STEPS_MAX) {
        let Some(step) = step(line) else { continue };
        watch(&step);
        pair.play(&step);
    }
}

fn number(byte: u8) -> u64 {
    base62(byte).unwrap_or_default().into()
}

fn step(line: &[u8]) -> Option<HostStep> {
    let value = |at: usize| line.get(at).map_or(0, |byte| number(*byte));
    let index = |at: usize| value(at) as usize;
    Some(match line.first()? {
        b'p' => {
            let task = |values: &[u8]| {
                let value = |at: usize| values.get(at).map_or(0, |byte| number(*byte));
                (value(0) as u8, value(1) * CORES_UNIT, value(2) * MEMORY_UNIT)
            };
            let tasks = line.get(2..).unwrap_or_default().chunks(3).take(TASKS_MAX);
            HostStep::Place { agent: index(1), tasks: tasks.map(task).collect() }
        }
        b'u' => HostStep::Up(index(1)),
        b'e' => HostStep::End(index(1), value(2) % 2 == 1),
        b'l' => HostStep::Lose(index(1)),
        b'i' => HostStep::Look(index(1)),
        b't' => HostStep::EndIdle(index(1)),
        b'k' => HostStep::EndHost(index(1)),
        b'c' => {
            let terms = |first: usize| {
                let units = [CORES_UNIT, MEMORY_UNIT];
                let most =
                    [0, 1].map(|kind| Some(value(first + kind) * units[kind]).filter(|it| *it > 0));
                let least = [0, 1].map(|kind| {
                    let least = value(first + 2 + kind) * units[kind];
                    most[kind].map_or(least, |most| least.min(most))
                });
                QueueTerms { most, least }
            };
            let caps = (value(1) * CORES_UNIT, value(2) * MEMORY_UNIT, value(3) as u32);
            HostStep::Reconfigure { terms: [terms(4), terms(8)], caps }
        }
        b'd' => HostStep::Demand(value(1) as u8, value(2) % 2 == 1),
        _ => return None,
    })
}

offermill_fuzz::harness!(check, show);
