//! The plain loop: one thread, no atomics, fields instead of words; and the same behind a lock.
//!
//! It makes the kernel's decisions on the benches' offers and tasks, with the same hash and the same memo of the
//! constraint's answers. What the benches don't ask for is left out: GPUs, revocable resources, several offers of one
//! agent in a batch, gangs, changes of policy.

use std::collections::VecDeque;
use std::hint::black_box;
use std::sync::{Arc, Mutex, PoisonError};

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use offermill::constraint::Memo;
use offermill::resources::{ExecutorResources, Gpus, MilliCpus, Scalar};
use offermill::{
    Amount, Constraint, Decline, Offer, Piece, Reason, ResourceKind, Revocability, Task, Timestamp,
    Value,
};

use crate::ours::sum;
use crate::stream::{PlacedAt, TaskScheduler};
use crate::support::fleet::Batch;
use crate::support::{ENOUGH, MET, NOW};

struct Agent {
    memo: Memo,
    number: u32,
    seen: Timestamp,
}

/// What an agent offered last, for reports.
#[derive(Default, Clone, Copy)]
#[expect(dead_code, reason = "no report is asked for here")]
struct Offered {
    cores: u64,
    memory: u64,
    at: Timestamp,
    tasks: u32,
    next_sequence: u64,
}

#[derive(Default, Clone, Copy)]
struct AgentAccount {
    tasks: u32,
    excluded_until: Timestamp,
    offered: Offered,
}

/// A task that lives, or has lived.
struct Cell {
    sequence: u64,
    agent: u32,
    taken: ExecutorResources,
    tag: u64,
    placed_at: Timestamp,
    is_live: bool,
}

#[derive(Clone)]
struct Room {
    offer: u32,
    agent: u32,
    cores: u64,
    memory: u64,
    placed: u32,
    start: u32,
}

/// A task that was placed.
#[derive(Clone, Copy, Default)]
struct Row {
    sequence: u64,
    slot: u32,
    tag: u64,
    taken: ExecutorResources,
    pieces: (u32, u32),
}

/// A thread's answer.
#[derive(Default, Clone)]
struct Answer {
    accepts: Vec<(u32, (u32, u32))>,
    rows: Vec<Row>,
    pieces: Vec<Piece>,
    declines: Vec<Decline>,
    /// The tasks that live, with their cells.
    live: VecDeque<(u64, u32)>,
}

pub(crate) struct Books {
    constraint: Constraint,
    /// Whether what agents offer is kept.
    records: bool,
    agents: HashMap<Arc<str>, Agent, RandomState>,
    accounts: Vec<AgentAccount>,
    cells: Vec<Cell>,
    free: Vec<u32>,
    next_sequence: u64,
    live: u32,
    cores: u64,
    rooms: Vec<Room>,
    left: Vec<(u64, u64)>,
    ring: Vec<u32>,
    /// Room and task.
    order: Vec<(u32, Task)>,
    answer: Answer,
}

impl Books {
    pub(crate) fn new(records: bool) -> Books {
        Books {
            constraint: Constraint::parse(MET).expect("a constraint"),
            records,
            agents: HashMap::default(),
            accounts: Vec::new(),
            cells: Vec::new(),
            free: Vec::new(),
            next_sequence: 0,
            live: 0,
            cores: 0,
            rooms: Vec::new(),
            left: Vec::new(),
            ring: Vec::new(),
            order: Vec::new(),
            answer: Answer::default(),
        }
    }

    fn collect(&mut self, batch: &[Offer<'_>], answer: &mut Answer) {
        self.rooms.clear();
        for (offer, position) in batch.iter().zip(0u32..) {
            let agent = match self.agents.get_mut(offer.agent_id) {
                Some(agent) => agent,
                None => {
                    self.accounts.push(AgentAccount::default());
                    let number = self.accounts.len() as u32 - 1;
                    let agent = Agent { memo: Memo::default(), number, seen: NOW };
                    self.agents.entry(offer.agent_id.into()).or_insert(agent)
                }
            };
            agent.seen = NOW;
            let mut decline = |reason| {
                let refuse = std::time::Duration::from_secs(5);
                answer.declines.push(Decline::new(position, reason, refuse));
            };
            if let Err(unmet) = self.constraint.check_with(&mut agent.memo, offer) {
                decline(Reason::ConstraintUnmet(unmet));
                continue;
            }
            let until = self.accounts[agent.number as usize].excluded_until;
            if NOW < until {
                decline(Reason::AgentExcluded { until });
                continue;
            }
            let (mut cores, mut memory) = (0, 0);
            for resource in offer.resources {
                let Value::Scalar(scalar) = resource.value else { continue };
                if resource.revocability != Revocability::NonRevocable {
                    continue;
                }
                match resource.kind {
                    ResourceKind::Cpus => cores += scalar.thousandths(),
                    ResourceKind::Memory => memory += scalar.thousandths(),
                    _ => {}
                }
            }
            if self.records {
                let account = &mut self.accounts[agent.number as usize];
                let (tasks, next_sequence) = (account.tasks, self.next_sequence);
                account.offered = Offered { cores, memory, at: NOW, tasks, next_sequence };
            }
            if cores < 100 || memory < 1000 {
                let offered = MilliCpus::from_millis(cores);
                decline(Reason::Cpus { asked: MilliCpus::from_millis(100), offered });
                continue;
            }
            let (agent, memory) = (agent.number, memory / 1000);
            self.rooms.push(Room { offer: position, agent, cores, memory, placed: 0, start: 0 });
        }
    }

    /// Rooms in turn.
    fn choose(&mut self, tasks: &[Task]) {
        self.left.clear();
        self.left.extend(self.rooms.iter().map(|room| (room.cores, room.memory)));
        self.ring.clear();
        self.ring.extend(0..self.rooms.len() as u32);
        self.order.clear();
        let (mut turn, mut cores) = (0, self.cores);
        for task in tasks {
            let (wanted, memory) = (task.cores.millis(), task.memory.get());
            let left = &self.left;
            let fits = |at: &usize| {
                let room = &left[self.ring[*at] as usize];
                room.0 >= wanted && room.1 >= memory
            };
            let found = (turn..self.ring.len()).chain(0..turn).find(fits);
            let Some(at) = found else { continue };
            cores += wanted;
            if cores > ENOUGH.millis() {
                break;
            }
            let room = self.ring[at];
            let left = &mut self.left[room as usize];
            left.0 -= wanted;
            left.1 -= memory;
            self.order.push((room, *task));
            turn = at + 1;
            if left.0 == 0 {
                self.ring.remove(at);
                turn = at;
            }
            if turn == self.ring.len() {
                turn = 0;
            }
        }
        self.cores = cores;
    }

    fn write(&mut self, batch: &[Offer<'_>], answer: &mut Answer) {
        for (room, _) in &self.order {
            self.rooms[*room as usize].placed += 1;
        }
        let mut rows = 0;
        for room in &mut self.rooms {
            room.start = rows;
            rows += std::mem::take(&mut room.placed);
        }
        answer.rows.resize(rows as usize, Row::default());
        self.live += rows;
        for (room, task) in &self.order {
            let room = &mut self.rooms[*room as usize];
            let taken = ExecutorResources {
                cores: task.cores,
                memory: task.memory,
                gpus: Gpus::ZERO,
                port: None,
            };
            let sequence = self.next_sequence;
            self.next_sequence += 1;
            let cell = Cell {
                sequence,
                agent: room.agent,
                taken,
                tag: task.tag,
                placed_at: NOW,
                is_live: true,
            };
            let slot = match self.free.pop() {
                Some(slot) => {
                    self.cells[slot as usize] = cell;
                    slot
                }
                None => {
                    self.cells.push(cell);
                    self.cells.len() as u32 - 1
                }
            };
            self.accounts[room.agent as usize].tasks += 1;
            answer.rows[(room.start + room.placed) as usize] =
                Row { sequence, slot, tag: task.tag, taken, pieces: (0, 0) };
            room.placed += 1;
        }
        for room in &self.rooms {
            if room.placed == 0 {
                let refuse = std::time::Duration::from_secs(5);
                answer.declines.push(Decline::new(room.offer, Reason::NotPicked, refuse));
                continue;
            }
            let offer = &batch[room.offer as usize];
            let find = |kind| offer.resources.iter().position(|resource| resource.kind == kind);
            let cpus = find(ResourceKind::Cpus).expect("cores") as u32;
            let memory = find(ResourceKind::Memory).expect("memory") as u32;
            let rows = (room.start, room.start + room.placed);
            for row in &mut answer.rows[rows.0 as usize..rows.1 as usize] {
                let start = answer.pieces.len() as u32;
                let mut cut = |resource, thousandths| {
                    let amount = Amount::Scalar(Scalar::from_thousandths(thousandths));
                    answer.pieces.push(Piece::new(room.offer, resource, amount));
                };
                cut(cpus, row.taken.cores.millis());
                cut(memory, row.taken.memory.get() * 1000);
                row.pieces = (start, answer.pieces.len() as u32);
            }
            answer.accepts.push((room.offer, rows));
        }
    }

    fn place_into(&mut self, batch: Batch, tasks: &[Task], answer: &mut Answer) {
        answer.accepts.clear();
        answer.rows.clear();
        answer.pieces.clear();
        answer.declines.clear();
        self.collect(batch, answer);
        self.choose(tasks);
        self.write(batch, answer);
        black_box(&answer);
    }

    /// Ends the oldest tasks of an answer's thread, by their ids.
    fn end_oldest(&mut self, count: usize, live: &mut VecDeque<(u64, u32)>) {
        for (sequence, slot) in live.drain(..count) {
            let name = format!("bench-plain-{sequence}.{slot}");
            let slot = name.rsplit_once('.').and_then(|(_, slot)| slot.parse::<u32>().ok());
            let slot = slot.expect("an id");
            let cell = &mut self.cells[slot as usize];
            black_box((cell.tag, cell.placed_at));
            assert!(cell.is_live && cell.sequence == sequence, "ended twice");
            cell.is_live = false;
            self.accounts[cell.agent as usize].tasks -= 1;
            self.cores -= cell.taken.cores.millis();
            self.live -= 1;
            self.free.push(slot);
        }
    }
}

fn note(answer: &mut Answer) {
    let Answer { rows, live, .. } = answer;
    live.extend(rows.iter().map(|row| (row.sequence, row.slot)));
}

fn placed(answer: &Answer) -> (Vec<PlacedAt>, u64) {
    let (mut placed, mut taken) = (Vec::new(), 0);
    for (offer, rows) in &answer.accepts {
        for row in &answer.rows[rows.0 as usize..rows.1 as usize] {
            placed.push((*offer, row.tag));
            taken += sum(&answer.pieces[row.pieces.0 as usize..row.pieces.1 as usize]);
        }
    }
    (placed, taken)
}

impl TaskScheduler for Books {
    fn place(&mut self, batch: Batch, tasks: &[Task]) {
        let mut answer = std::mem::take(&mut self.answer);
        self.place_into(batch, tasks, &mut answer);
        self.answer = answer;
    }

    fn note(&mut self) {
        note(&mut self.answer);
    }

    fn live(&self) -> usize {
        self.answer.live.len()
    }

    fn placed(&self) -> (Vec<PlacedAt>, u64) {
        placed(&self.answer)
    }

    fn end(&mut self, count: usize) {
        let mut live = std::mem::take(&mut self.answer.live);
        self.end_oldest(count, &mut live);
        self.answer.live = live;
    }
}

/// A thread's part in books that several share, which it takes for a batch and no longer.
#[derive(Clone)]
pub(crate) struct Locked {
    books: Arc<Mutex<Books>>,
    answer: Answer,
}

impl Locked {
    pub(crate) fn new() -> Locked {
        Locked { books: Arc::new(Mutex::new(Books::new(true))), answer: Answer::default() }
    }
}

impl TaskScheduler for Locked {
    fn place(&mut self, batch: Batch, tasks: &[Task]) {
        let mut books = self.books.lock().unwrap_or_else(PoisonError::into_inner);
        books.place_into(batch, tasks, &mut self.answer);
    }

    fn note(&mut self) {
        note(&mut self.answer);
    }

    fn live(&self) -> usize {
        self.answer.live.len()
    }

    fn placed(&self) -> (Vec<PlacedAt>, u64) {
        placed(&self.answer)
    }

    fn end(&mut self, count: usize) {
        let mut books = self.books.lock().unwrap_or_else(PoisonError::into_inner);
        books.end_oldest(count, &mut self.answer.live);
    }
}
