//! Tasks on offers: picks in any order, on rooms that may not be there, of amounts that may be absurd, alone and in
//! gangs, while settings change and agents are lost between proposal and commit.
//!
//! After each round the kernel has placed, left out, declined and freed what the naive books of `tests/kernel/tasks`
//! say, with the same reasons and tags; pieces add up to what each task takes; the totals are those of the books, and
//! `check()` finds nothing.
//!
//! The input is a script. Every byte string is valid. The first line has three characters: whether ids are plain, the
//! core cap, and the executor limit. Each further line is a round, and each word of it, a letter with one character for
//! each value:
//!
//! | word | |
//! |---|---|
//! | `o` cores, memory, GPUs, whether one resource of each name is revocable | an offer of the next agent |
//! | `p` room, cores, memory, GPUs | a task is picked |
//! | `g` room, cores, memory, GPUs | a task is picked, in one gang with the pick before |
//! | `e` which, whether it fails | a task ends after the round |
//! | `c` core cap, limit | settings are changed between proposal and commit |
//! | `l` agent | an agent is lost then, if it offered and the settings are changed, too |
//!
//! `0` to `9`, `a` to `z`, `A` to `Z` stand for 0 to 61, of cores and memory for that many hundred thousandths and MiB;
//! any other byte of a task for an [absurd amount](ABSURD). Missing values are 0.

#![cfg_attr(fuzzing, no_main)]

mod base62;
#[path = "../../tests/kernel/tasks/books.rs"]
mod books;
#[path = "../../tests/kernel/tasks/pair.rs"]
mod pair;
#[path = "../../tests/kernel/world.rs"]
#[allow(dead_code)]
mod world;

use base62::base62;
use pair::{Pair, Round};

/// The maximum numbers of rounds, and of words in a round. Later ones are ignored.
const ROUNDS_MAX: usize = 100;
const WORDS_MAX: usize = 60;
/// The time between two rounds, in milliseconds: exclusions and suspicion end after some.
const ROUND_MS: u64 = 7_000;
const ABSURD: [u64; 6] = [u64::MAX, 0, 1, 1 << 53, 1 << 40, u32::MAX as u64];

fn check(data: &[u8]) {
    play(data, |_| {});
}

fn show(data: &[u8]) {
    play(data, |round| println!("{round:?}"));
}

fn play(data: &[u8], watch: impl Fn(&Round)) {
    let mut lines = data.split(|byte| *byte == b'\n');
    let first = lines.next().unwrap_or_default();
    let value = |at: usize| first.get(at).map_or(0, |byte| number(*byte));
    let mut pair = Pair::new(value(1) * 500, value(2) as u32, value(0) % 2 == 1);
    let rounds = lines.filter(|line| !line.is_empty()).take(ROUNDS_MAX);
    for (line, number) in rounds.zip(1..) {
        let round = round(line);
        watch(&round);
        pair.play(&round, number * ROUND_MS);
    }
}

fn number(byte: u8) -> u64 {
    base62(byte).unwrap_or(byte).into()
}

/// An amount of a task.
fn amount(byte: Option<&u8>, unit: u64) -> u64 {
    match byte {
        None => 0,
        Some(byte) if byte.is_ascii_alphanumeric() => number(*byte) * unit,
        Some(byte) => ABSURD[usize::from(*byte) % ABSURD.len()],
    }
}

fn round(line: &[u8]) -> Round {
    let (mut offers, mut picks, mut ends) = (Vec::new(), Vec::new(), Vec::new());
    let (mut caps, mut lost) = (None, None);
    let words = line.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
    for word in words.take(WORDS_MAX) {
        let value = |at: usize| word.get(at).map_or(0, |byte| number(*byte));
        let room = word.get(1).map_or(0, |byte| number(*byte) as u32);
        let task = (
            room,
            amount(word.get(2), 100),
            amount(word.get(3), 100),
            amount(word.get(4), 1).min(u32::MAX.into()) as u32,
        );
        match word[0] {
            b'o' => offers.push((
                value(1) * 100,
                value(2) * 100,
                value(3) as u32 % 8,
                value(4) % 2 == 1,
            )),
            b'e' => ends.push((value(1) as usize, value(2) % 2 == 1)),
            b'c' => caps = Some((value(1) * 500, value(2) as u32)),
            b'l' => lost = Some(value(1) as usize),
            b'g' if !picks.is_empty() => {
                // The members of a gang follow the first, which has their number.
                let (room, cores, memory, gpus) = task;
                picks.push((room, cores, memory, gpus, 0));
                if let Some(first) = picks.iter_mut().rev().find(|(.., members)| *members > 0) {
                    first.4 += 1;
                }
            }
            _ => {
                let (room, cores, memory, gpus) = task;
                picks.push((room, cores, memory, gpus, 1));
            }
        }
    }
    Round { offers, picks, ends, caps, lost }
}

offermill_fuzz::harness!(check, show);
