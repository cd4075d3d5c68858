//! Tasks of unequal sizes: proposal, round robin, commit; for each task. Remembering its id is counted, too.

use crate::ours::Ours;
use crate::stream::{TASKS_AN_OFFER, TaskStream};
use crate::{Scene, Size, counted};

/// Kinds of tasks, where they don't vary.
const KINDS: usize = 16;

pub(crate) const SCENES: [(&str, Scene); 4] = [
    ("tasks/placed, 100", |size| placed(size, 100, KINDS, true)),
    ("tasks/placed, 1", |size| placed(size, 1, KINDS, true)),
    ("tasks/placed, not recorded, 100", |size| placed(size, 100, KINDS, false)),
    ("tasks/placed, 4096 kinds, 100", |size| placed(size, 100, 4096, true)),
];

/// Four tasks on each agent, by batches of this many offers.
fn placed(size: Size, batch: usize, kinds: usize, is_recorded: bool) -> u64 {
    let mut stream = TaskStream::new(Ours::new(is_recorded), size.agents, batch, kinds);
    let batches = (size.agents / batch) as u64;
    let mut elements = 0;
    for lap in 0..=size.laps {
        if lap == 0 {
            stream.place(batches);
        } else {
            counted(|| stream.place(batches));
            elements += batches * (batch * TASKS_AN_OFFER) as u64;
        }
        stream.end_all();
    }
    elements
}
