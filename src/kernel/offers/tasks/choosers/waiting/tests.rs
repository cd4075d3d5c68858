use std::cell::Cell;
use std::collections::BTreeMap;

use proptest::prelude::*;

use super::task_tree::TaskTree;
use super::*;
use crate::config::{Config, Queue};
use crate::ids::IdScheme;
use crate::kernel::offers::tasks::choosers::task_order::TaskOrder;
use crate::kernel::offers::tasks::choosers::{BatchCaps, Chooser};
use crate::kernel::{Kernel, Picks, QueuesLeft};
use crate::resources::{Gpus, Mebibytes};

/// What waits, as a plain list: rank, tag and queue, and the task.
type Listed = BTreeMap<(RankedTag, QueueId), Task>;

fn sums(cores: u64, memory: u64, gpus: u32) -> ResourceSums {
    let (cores, memory) = (MilliCpus::from_millis(cores), Mebibytes::new(memory));
    ResourceSums { cores, memory, gpus: Gpus::new(gpus) }
}

fn sized(tag: u64, needs: ResourceSums) -> Task {
    task(((0, tag), needs), QueueId::DEFAULT)
}

/// A kernel with three queues beside the default one, each of which is bounded otherwise.
fn kernel() -> Kernel {
    let cores = MilliCpus::from_millis;
    let config = Config::builder()
        .core_cap(Some(cores(9000)))
        .queue(Queue::new("cores").max_cores(Some(cores(3000))))
        .queue(Queue::new("memory").max_memory(Some(Mebibytes::new(2500))))
        .queue(Queue::new("guaranteed").guaranteed_cores(cores(4000)));
    Kernel::new(config.build().unwrap(), IdScheme::plain())
}

fn no_queues() -> QueuesLeft {
    Kernel::new(Config::builder().build().unwrap(), IdScheme::plain()).queues_left()
}

/// What a plain list would pick: each task in its order, if queue and caps have room for it and a room takes it; rooms
/// in turn or the tightest one.
fn plain_picks(
    all: &Listed,
    rooms: &[Room],
    (mut queues, mut caps): (QueuesLeft, BatchCaps),
    consolidates: bool,
) -> Vec<(u32, Task)> {
    let by_memory = plainly_by_memory(all, rooms, (queues.clone(), caps));
    let (mut left, mut turn, mut picks) = (rooms.to_vec(), 0, Vec::new());
    for task in all.values() {
        let before = (queues.clone(), caps);
        let is_admitted = caps.take(task.sums()) && queues.take(task).is_ok();
        let fitting = (0..left.len()).filter(|at| left[*at].fits(task));
        let found = if consolidates {
            let key = |at: &usize| match by_memory {
                true => left[*at].left().memory.get(),
                false => left[*at].left().cores.millis(),
            };
            fitting.min_by_key(|at| (key(at), *at))
        } else {
            fitting.min_by_key(|at| (*at < turn, *at))
        };
        if let Some(at) = found.filter(|_| is_admitted) {
            left[at].take(task).unwrap();
            picks.push((at as u32, *task));
            turn = (at + 1) % left.len();
        } else {
            (queues, caps) = before;
        }
    }
    picks
}

/// Whether memory is scarcer than cores for the first tasks that one room with all there is would have.
fn plainly_by_memory(
    all: &Listed,
    rooms: &[Room],
    (mut queues, mut caps): (QueuesLeft, BatchCaps),
) -> bool {
    let all_there_is = rooms.iter().fold(sums(0, 0, 0), |sum, it| sum.saturating_add(it.left()));
    let (mut left, mut wanted) = (all_there_is, sums(0, 0, 0));
    for task in all.values().filter(|task| rooms.iter().any(|room| room.fits(task))) {
        let before = (queues.clone(), caps);
        let own = task.sums();
        if own.fits_in(left) && caps.take(own) && queues.take(task).is_ok() {
            left = left.saturating_sub(own);
            wanted = wanted.saturating_add(own);
        } else {
            (queues, caps) = before;
        }
    }
    wanted.memory.get() * all_there_is.cores.millis()
        > wanted.cores.millis() * all_there_is.memory.get()
}

#[derive(Clone, Debug)]
enum WaitingStep {
    Insert(Vec<(u64, Task)>),
    Remove(u64, Task),
    /// Some that were picked before wait again.
    PutBack(usize),
    Batch {
        rooms: Vec<Room>,
        caps: BatchCaps,
        consolidates: bool,
    },
}

/// Tasks of a few ranks, some of which take no cores, or more than any room has, or are of a queue that isn't there.
fn ranked_task() -> impl Strategy<Value = (u64, Task)> {
    let rank = prop_oneof![0u64..3, Just(u64::MAX)];
    let tag = prop_oneof![9 => 0u64..200, 1 => Just(u64::MAX)];
    let few = prop_oneof![Just((500, 500, 0)), Just((1500, 100, 0)), Just((100, 1500, 1))];
    let cores = prop_oneof![1 => Just(0u64), 20 => 1u64..3000, 2 => Just(u64::MAX)];
    let many = (cores, 0u64..3000, prop_oneof![5 => Just(0u32), 1 => 1u32..3]);
    let needs = prop_oneof![few, many];
    (rank, tag, needs, 0u8..5).prop_map(|(rank, tag, (cores, memory, gpus), queue)| {
        (rank, task(((rank, tag), sums(cores, memory, gpus)), QueueId::new(queue)))
    })
}

fn waiting_steps() -> impl Strategy<Value = Vec<WaitingStep>> {
    let room = (0u64..4000, 0u64..4096, 0u32..3, 0u32..6);
    let rooms = prop::collection::vec(room, 0..8).prop_map(|rooms| {
        let room =
            |((cores, memory, gpus, tasks), at)| Room::new(at, sums(cores, memory, gpus), tasks);
        rooms.into_iter().zip(0..).map(room).collect()
    });
    let caps = prop_oneof![
        Just(BatchCaps::default()),
        (0u64..9, 0u64..6000, 0u32..3)
            .prop_map(|(executors, cores, gpus)| BatchCaps::new(executors, sums(cores, 0, gpus))),
    ];
    let batch = (rooms, caps, any::<bool>())
        .prop_map(|(rooms, caps, consolidates)| WaitingStep::Batch { rooms, caps, consolidates });
    let step = prop_oneof![
        3 => prop::collection::vec(ranked_task(), 0..150).prop_map(WaitingStep::Insert),
        2 => ranked_task().prop_map(|(rank, task)| WaitingStep::Remove(rank, task)),
        1 => (0usize..20).prop_map(WaitingStep::PutBack),
        4 => batch,
    ];
    prop::collection::vec(step, 0..16)
}

proptest! {
    /// Goal: a batch picks what it would of a plain list, in the same order and on the same rooms, whatever waits, and
    /// within queues and caps. Method: random tasks that come, go, are picked and put back, beside such a list; rooms
    /// in turn, and the tightest one.
    #[test]
    fn a_batch_picks_what_it_would_of_a_plain_list(steps in waiting_steps()) {
        let (mut waiting, mut listed) = (WaitingTasks::new(), Listed::new());
        let (kernel, mut chooser) = (kernel(), Chooser::new());
        let mut picked: Vec<(u64, Task)> = Vec::new();
        for step in steps {
            match step {
                WaitingStep::Insert(tasks) => {
                    for (rank, task) in tasks {
                        let place = ((rank, task.tag), task.queue);
                        let is_free = !listed.contains_key(&place);
                        prop_assert_eq!(waiting.insert(rank, &task), is_free);
                        listed.entry(place).or_insert(task);
                    }
                }
                WaitingStep::Remove(rank, task) => {
                    let was_there = listed.remove(&((rank, task.tag), task.queue)).is_some();
                    prop_assert_eq!(waiting.remove(rank, &task), was_there);
                }
                WaitingStep::PutBack(count) => {
                    let count = count.min(picked.len());
                    for (rank, task) in picked.drain(..count) {
                        let place = ((rank, task.tag), task.queue);
                        let is_free = !listed.contains_key(&place);
                        prop_assert_eq!(waiting.insert(rank, &task), is_free);
                        listed.entry(place).or_insert(task);
                    }
                }
                WaitingStep::Batch { rooms, caps, consolidates } => {
                    let (queues, mut picks) = (kernel.queues_left(), Picks::new());
                    let expected = plain_picks(&listed, &rooms, (queues.clone(), caps), consolidates);
                    let admitted = waiting.admitted(queues, caps);
                    let count = match consolidates {
                        true => chooser.consolidate_waiting(&rooms, admitted, &mut picks),
                        false => chooser.round_robin_waiting(&rooms, admitted, &mut picks),
                    };
                    prop_assert_eq!(count, picks.len());
                    let found: Vec<_> = picks.iter().map(|pick| (pick.room, pick.task)).collect();
                    prop_assert_eq!(&found, &expected);
                    for room in &rooms {
                        let has_one = listed.values().any(|it| {
                            it.cores > MilliCpus::ZERO && it.sums().fits_in(room.left())
                        });
                        prop_assert_eq!(waiting.have_one_for(room), has_one);
                    }
                    for (_, task) in expected {
                        let is_it = |(_, it): &(_, &Task)| **it == task;
                        let place = *listed.iter().find(is_it).unwrap().0;
                        let ((rank, _), _) = place;
                        listed.remove(&place);
                        prop_assert!(waiting.remove(rank, &task));
                        picked.push((rank, task));
                    }
                }
            }
            prop_assert_eq!((waiting.len(), waiting.is_empty()), (listed.len(), listed.is_empty()));
            waiting.queues.values().for_each(TaskTree::check);
        }
        let all: Vec<Task> = listed.into_values().collect();
        prop_assert_eq!(waiting.all(), all.clone());
        prop_assert_eq!((waiting.take(), waiting.take()), (all, Vec::new()));
    }
}

/// A number below `below`, in an order without a pattern.
fn random(state: &mut u64, below: u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state % below
}

/// Goal: the tree stays one, and knows what its tasks need at least, whichever way it grows and shrinks. Method:
/// thousands of tasks of thousands of kinds, added and removed in their order, in the opposite one and in none, checked
/// now and then.
#[test]
fn the_minima_are_those_of_the_tasks() {
    let mut state = 7;
    let needs = |at: u64, many: bool| match many {
        // None of which takes less than another.
        true => sums(at + 1, 10_000 - at, 0),
        false => sums(1 + at % 7, 1 + at % 5, (at % 3) as u32),
    };
    let orders: [fn(u64, &mut u64) -> u64; 3] =
        [|at, _| at, |at, _| 1499 - at, |_, state| random(state, 1500)];
    for (many, adds, removes) in [
        (true, orders[0], orders[0]),
        (false, orders[0], orders[1]),
        (true, orders[1], orders[2]),
        (false, orders[2], orders[0]),
        (true, orders[2], orders[2]),
    ] {
        let mut tree = TaskTree::default();
        let mut there = BTreeMap::new();
        for at in 0..1500 {
            let tag = adds(at, &mut state);
            assert_eq!(tree.insert((0, tag), needs(tag, many)), there.insert(tag, ()).is_none());
            if at % 131 == 0 {
                tree.check();
            }
        }
        for at in 0..1500 {
            let tag = removes(at, &mut state);
            let expected = there.remove(&tag).map(|()| needs(tag, many));
            assert_eq!(tree.remove((0, tag)), expected);
            if at % 131 == 0 {
                tree.check();
                let mut tags = Vec::new();
                tree.for_each(&mut |((_, tag), _)| tags.push(tag));
                assert!(tags.iter().eq(there.keys()));
            }
        }
        tree.check();
        assert_eq!(tree.len(), there.len());
    }
}

/// Goal: what has no room costs a look at the minima of all, and what has room a way down the tree, whatever the number
/// of tasks and kinds. Method: a hundred thousand tasks, of which none, the last or each hundredth fits, of two kinds
/// of which neither is the smaller one and of thousands; what is compared is counted.
#[test]
fn tasks_without_room_are_not_looked_at() {
    let mut state = 11;
    let mut kinds = |count: u64| -> Vec<ResourceSums> {
        let mut one = || sums(2000 + random(&mut state, 9000), 2000 + random(&mut state, 9000), 0);
        (0..count).map(|_| one()).collect()
    };
    let thousands = kinds(5000);
    let two = vec![sums(1000, 9000, 0), sums(9000, 1000, 0)];
    let small = sums(1000, 1000, 0);
    for large in [two, thousands] {
        let mut tree = TaskTree::default();
        for tag in 0..100_000 {
            let needs = match tag {
                99_999 => small,
                tag if tag % 100 == 50 => sums(1500, 1500, 0),
                tag => large[tag as usize % large.len()],
            };
            assert!(tree.insert((0, tag), needs));
        }
        let search = |after: Option<u64>, room: ResourceSums| {
            let compared = Cell::new(0);
            let fits = |needs: ResourceSums| {
                compared.set(compared.get() + 1);
                needs.fits_in(room)
            };
            let found = tree.next(after.map(|tag| (0, tag)), &fits).map(|((_, tag), _)| tag);
            (found, compared.get())
        };
        assert_eq!(search(None, sums(999, 9999, 9)), (None, tree.minima()));
        let (found, compared) = search(None, small);
        assert_eq!(found, Some(99_999));
        assert!(compared < 32 * 16 * 4, "{compared} comparisons");
        let mut after = None;
        for at in 0..999 {
            let (found, compared) = search(after, sums(1500, 1500, 0));
            assert_eq!(found, Some(at * 100 + 50));
            assert!(compared < 32 * 16 * 4, "{compared} comparisons");
            after = found;
        }
    }
}

/// A chooser's order in which tasks that it tries in vain are counted.
struct CountedOrder<'w, 'c>(AdmittedTasks<'w>, &'c Cell<usize>);

impl TaskOrder for CountedOrder<'_, '_> {
    fn begin(&mut self, rooms: &[Room]) {
        self.0.begin(rooms);
    }

    fn next_task(&mut self) -> Option<Task> {
        self.0.next_task()
    }

    fn settle(&mut self, is_picked: bool, left: &[Room]) {
        self.1.set(self.1.get() + usize::from(!is_picked));
        self.0.settle(is_picked, left);
    }
}

/// Goal: a chooser tries at most one task in vain for each pick, and once more, though each kind has room by itself and
/// many kinds have none once others are placed. Method: thousands of kinds, none smaller than another, and rooms of all
/// shapes.
#[test]
fn few_tasks_are_tried_in_vain() {
    let mut waiting = WaitingTasks::new();
    for tag in 0..5000 {
        assert!(waiting.insert(0, &sized(tag, sums(1 + tag, 5000 - tag, 0))));
    }
    for count in [1, 3, 100] {
        let rooms = (0..count).map(|at| {
            let cores = 100 + 9000 * u64::from(at) / u64::from(count);
            Room::new(at, sums(cores, 10_000 - cores, 0), 1000)
        });
        let rooms: Vec<Room> = rooms.collect();
        let (in_vain, mut picks) = (Cell::new(0), Picks::new());
        let admitted = waiting.admitted(no_queues(), BatchCaps::default());
        let order = CountedOrder(admitted, &in_vain);
        Chooser::new().in_turn(&rooms, order, |room, task| picks.push(room, *task));
        assert!(picks.len() >= count as usize && in_vain.get() <= picks.len() + 1, "{in_vain:?}");
    }
}

/// Goal: nothing of a queue that has no room is looked at, and it holds up no other. Method: a full queue before one
/// without bounds; queues without tasks.
#[test]
fn full_queues_hold_up_no_other() {
    let queue = Queue::new("q").max_cores(Some(MilliCpus::from_cores(1)));
    let config = Config::builder().queue(queue).queue(Queue::new("empty")).build().unwrap();
    let queues = Kernel::new(config, IdScheme::plain()).queues_left();
    let mut waiting = WaitingTasks::new();
    let queue_of = [QueueId::new(1), QueueId::new(1), QueueId::DEFAULT, QueueId::DEFAULT];
    for (tag, queue) in (0..).zip(queue_of) {
        assert!(waiting.insert(tag, &sized(tag, sums(1000, 10, 0)).in_queue(queue)));
    }
    let (room, mut picks) = (Room::new(0, sums(3000, 100, 0), 9), Picks::new());
    let admitted = waiting.admitted(queues, BatchCaps::default());
    Chooser::new().round_robin_waiting(&[room], admitted, &mut picks);
    assert_eq!(picks.iter().map(|pick| pick.task.tag).collect::<Vec<_>>(), [0, 2, 3]);
}

/// Goal: no rooms, no tasks and no tasks left do no harm, nor does what isn't there. Method: each of them.
#[test]
fn nothing_waits_for_nothing() {
    let (mut waiting, mut chooser) = (WaitingTasks::new(), Chooser::new());
    let (one, room) = (sized(1, sums(1, 1, 0)), Room::new(0, sums(1, 1, 0), 1));
    let mut pick = |waiting: &WaitingTasks, rooms: &[Room]| {
        let mut picks = Picks::new();
        for consolidates in [false, true] {
            let admitted = waiting.admitted(no_queues(), BatchCaps::default());
            match consolidates {
                true => chooser.consolidate_waiting(rooms, admitted, &mut picks),
                false => chooser.round_robin_waiting(rooms, admitted, &mut picks),
            };
        }
        picks.len()
    };
    assert_eq!(pick(&waiting, &[room]), 0);
    assert!(!waiting.remove(0, &one) && !waiting.have_one_for(&room));
    assert!(waiting.insert(0, &one) && !waiting.insert(0, &one));
    assert!(waiting.insert(1, &one) && waiting.insert(0, &one.in_queue(QueueId::new(9))));
    assert!(!waiting.remove(2, &one) && !waiting.remove(0, &one.in_queue(QueueId::new(8))));
    assert_eq!((waiting.len(), pick(&waiting, &[]), pick(&waiting, &[room])), (3, 0, 2));
    assert_eq!(pick(&waiting, &[Room::new(0, sums(1, 1, 0), 0)]), 0);
    assert_eq!(waiting.all(), [one, one.in_queue(QueueId::new(9)), one]);
    assert!(waiting.remove(1, &one) && waiting.remove(0, &one.in_queue(QueueId::new(9))));
    assert_eq!((waiting.take(), waiting.len(), waiting.is_empty()), (vec![one], 0, true));
    assert_eq!((waiting.take(), pick(&waiting, &[room])), (vec![], 0));
}
