use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;

use super::{Chooser, Domains, Gang, GangState};
use crate::kernel::offers::tasks::picks::{Picks, Task};
use crate::kernel::offers::tasks::room::Room;
use crate::resources::{Gpus, Mebibytes, MilliCpus};
use crate::{Reason, ResourceSums, Timestamp};

fn room(position: u32, cores: u64, memory: u64, tasks: u32) -> Room {
    let cores = MilliCpus::from_millis(cores);
    Room::new(
        position,
        ResourceSums { cores, memory: Mebibytes::new(memory), gpus: Gpus::ZERO },
        tasks,
    )
}

fn task(tag: u64, cores: u64, memory: u64) -> Task {
    Task::new(tag, MilliCpus::from_millis(cores), Mebibytes::new(memory))
}

/// Rooms of up to 4 cores and 4 GiB, and tasks of up to 2 cores and 2 GiB with the tags 0, 1, 2 and so on.
fn rooms_and_tasks() -> impl Strategy<Value = (Vec<Room>, Vec<Task>)> {
    let rooms = prop::collection::vec((0u64..4000, 0u64..4096, 0u32..6), 0..12);
    let tasks = prop::collection::vec((0u64..2000, 0u64..2048), 0..40);
    (rooms, tasks).prop_map(|(rooms, tasks)| {
        let rooms = rooms.iter().zip(0..).map(|((c, m, n), at)| room(at, *c, *m, *n)).collect();
        let tasks = tasks.iter().zip(0..).map(|((c, m), tag)| task(tag, *c, *m)).collect();
        (rooms, tasks)
    })
}

/// Replays picks, in the order of the tasks. `check` gets what is left of the rooms before each task, and its room. A
/// pick must fit.
fn replay(
    rooms: &[Room],
    tasks: &[Task],
    picks: &Picks,
    mut check: impl FnMut(&[Room], &Task, Option<usize>),
) {
    let mut left = rooms.to_vec();
    let mut picks = picks.iter().peekable();
    for task in tasks {
        let pick = picks.next_if(|pick| pick.task.tag == task.tag);
        let room = pick.map(|pick| pick.room as usize);
        check(&left, task, room);
        if let Some(room) = room {
            assert_eq!(left[room].take(task), Ok(()), "{task:?} on {room}");
        }
    }
    assert_eq!(picks.next(), None, "a pick of no task, or in another order");
}

proptest! {
    /// Goal: the two choosers that need no more than room pick what fits, and leave a task out only if no room has what
    /// it needs. Method: random rooms and tasks, replayed naively.
    #[test]
    fn a_task_is_left_out_only_if_it_fits_nowhere((rooms, tasks) in rooms_and_tasks()) {
        let (mut chooser, mut picks) = (Chooser::new(), Picks::new());
        for in_turn in [true, false] {
            picks.clear();
            let picked = if in_turn {
                chooser.round_robin(&rooms, &tasks, &mut picks)
            } else {
                chooser.consolidate(&rooms, &tasks, &mut picks)
            };
            prop_assert_eq!(picked, picks.len());
            replay(&rooms, &tasks, &picks, |left, task, room| {
                assert!(room.is_some() || left.iter().all(|room| !room.fits(task)), "{task:?}");
            });
        }
    }

    /// Goal: tasks of one size go where executors of this size would go. Method: a naive round robin in passes.
    #[test]
    fn equal_tasks_get_the_rooms_of_equal_executors(
        (rooms, _) in rooms_and_tasks(),
        (cores, memory, count) in (1u64..1500, 0u64..1500, 0u64..60),
    ) {
        let tasks: Vec<Task> = (0..count).map(|tag| task(tag, cores, memory)).collect();
        let mut expected = Vec::new();
        let mut left = rooms.clone();
        while expected.len() < tasks.len() {
            let before = expected.len();
            for (room, at) in left.iter_mut().zip(0u32..) {
                if expected.len() < tasks.len() && room.take(&tasks[0]).is_ok() {
                    expected.push(at);
                }
            }
            if expected.len() == before {
                break;
            }
        }
        let mut picks = Picks::new();
        Chooser::new().round_robin(&rooms, &tasks, &mut picks);
        prop_assert_eq!(picks.iter().map(|pick| pick.room).collect::<Vec<_>>(), expected);
    }

    /// Goal: consolidation picks the tightest room by the scarcer resource. Method: a naive search in each step.
    #[test]
    fn the_tightest_room_is_picked((rooms, tasks) in rooms_and_tasks()) {
        let mut picks = Picks::new();
        Chooser::new().consolidate(&rooms, &tasks, &mut picks);
        let sum = |of: &dyn Fn(&Task) -> u64| tasks.iter().map(of).sum::<u64>();
        let all = |of: &dyn Fn(&Room) -> u64| rooms.iter().map(of).sum::<u64>();
        let by_memory = sum(&|task| task.memory.get()) * all(&|room| room.left().cores.millis())
            > sum(&|task| task.cores.millis()) * all(&|room| room.left().memory.get());
        replay(&rooms, &tasks, &picks, |left, task, picked| {
            let key = |room: &Room| {
                if by_memory { room.left().memory.get() } else { room.left().cores.millis() }
            };
            let fitting = left.iter().zip(0usize..).filter(|(room, _)| room.fits(task));
            let tightest = fitting.min_by_key(|(room, at)| (key(room), *at)).map(|(_, at)| at);
            assert_eq!(picked, tightest, "{task:?}");
        });
    }

    /// Goal: no pick makes two domains further apart than allowed, and a task is left out only if every pick would, or
    /// nothing fits. Method: random domains with tasks, replayed naively.
    #[test]
    fn domains_stay_as_near_as_asked(
        (rooms, tasks) in rooms_and_tasks(),
        of_room in prop::collection::vec(prop_oneof![4 => 0u32..4, 1 => Just(Domains::NONE)], 12),
        tasks_in in prop::collection::vec(0u32..5, 4),
        apart in 1u32..4,
    ) {
        let mut picks = Picks::new();
        Chooser::new().spread(&rooms, &of_room, &tasks_in, apart, &tasks, &mut picks);
        let mut counts = tasks_in;
        replay(&rooms, &tasks, &picks, |left, task, picked| {
            let fewest = *counts.iter().min().unwrap();
            let allowed = |room: usize| {
                let count = counts.get(of_room[room] as usize);
                count.is_some_and(|count| *count < fewest + apart)
            };
            let possible =
                |room: &usize| allowed(*room) && left[*room].fits(task);
            match picked {
                Some(room) => {
                    assert!(allowed(room), "{task:?} on {room}: {counts:?}");
                    let domain = of_room[room] as usize;
                    let fewer = (0..left.len()).filter(possible);
                    let least = fewer.map(|room| counts[of_room[room] as usize]).min();
                    assert_eq!(Some(counts[domain]), least, "another domain has fewer");
                    counts[domain] += 1;
                }
                None => assert_eq!((0..left.len()).find(possible), None, "{task:?}"),
            }
        });
    }

    /// Goal: domains count the tasks of those that are known, by numbers without gaps. Method: random additions,
    /// removals and forgotten domains, held against a map by name.
    #[test]
    fn domains_are_counted_by_name(
        steps in prop::collection::vec((0u8..4, 0usize..5, 0u32..4), 0..60),
    ) {
        let (mut domains, mut expected) = (Domains::new(), BTreeMap::<&str, u32>::new());
        for (step, name, tasks) in steps {
            let name = ["a", "b", "c", "d", "e"][name];
            match step {
                0 => {
                    domains.number(name);
                }
                1 => domains.add(name, tasks),
                2 => domains.remove(name, tasks),
                _ => prop_assert_eq!(domains.forget(name), expected.remove(name)),
            }
            match step {
                0 | 1 => *expected.entry(name).or_default() += tasks * u32::from(step),
                2 => {
                    expected.entry(name).and_modify(|of| *of = of.saturating_sub(tasks));
                }
                _ => {}
            }
            prop_assert_eq!(domains.tasks().len(), expected.len());
            for (name, tasks) in &expected {
                let number = domains.number(name) as usize;
                prop_assert_eq!(domains.tasks()[number], *tasks);
            }
        }
    }

    /// Goal: a gang gets rooms for all of its tasks, or nothing. Method: round robin says whether all fit in turn.
    #[test]
    fn a_gang_is_picked_as_a_whole((rooms, tasks) in rooms_and_tasks()) {
        let (mut chooser, mut turns, mut picks) = (Chooser::new(), Picks::new(), Picks::new());
        let fits = chooser.round_robin(&rooms, &tasks, &mut turns) == tasks.len();
        prop_assert_eq!(chooser.gang(&rooms, &tasks, &mut picks), fits);
        prop_assert_eq!(picks.len(), if fits { tasks.len() } else { 0 });
    }
}

/// Goal: with domains that must be equal, a task is placed only to make them so. Method: two domains, one of which has
/// a task more.
#[test]
fn equal_domains_take_no_task() {
    let rooms = [room(0, 4000, 4096, 9), room(1, 4000, 4096, 9)];
    let tasks = [task(1, 1000, 1), task(2, 1000, 1)];
    let mut picks = Picks::new();
    assert_eq!(Chooser::new().spread(&rooms, &[0, 1], &[3, 2], 0, &tasks, &mut picks), 1);
    assert_eq!(picks.iter().map(|pick| pick.room).collect::<Vec<_>>(), [1]);
}

/// Goal: a domain with as many tasks as can be counted stays there. Method: the only domain is at the maximum; a second
/// one with room but fewer tasks is used before it.
#[test]
fn a_full_count_of_tasks_does_not_wrap() {
    let mut domains = Domains::new();
    domains.add("a", u32::MAX);
    let rooms = [room(0, 4000, 4096, 9), room(1, 4000, 4096, 1)];
    let tasks = [task(1, 1000, 1), task(2, 1000, 1), task(3, 1000, 1)];
    let (mut chooser, mut picks) = (Chooser::new(), Picks::new());
    assert_eq!(chooser.spread(&rooms, &[0, 0], domains.tasks(), 1, &tasks, &mut picks), 3);
    domains.add("b", u32::MAX - 1);
    picks.clear();
    assert_eq!(chooser.spread(&rooms, &[0, 1], domains.tasks(), 2, &tasks, &mut picks), 3);
    assert_eq!(picks.iter().map(|pick| pick.room).collect::<Vec<_>>(), [1, 0, 0]);
}

/// Goal: a domain that is gone no longer holds up the others, and one that offers again begins without tasks. Method:
/// of two domains the one without tasks has no room any more; it is forgotten, then another one is added, and then it
/// comes back.
#[test]
fn a_forgotten_domain_holds_up_no_other() {
    let mut domains = Domains::new();
    let (east, west) = (domains.number("east"), domains.number("west"));
    domains.add("east", 2);
    let rooms = [room(0, 4000, 4096, 9)];
    let tasks = [task(1, 1000, 1), task(2, 1000, 1)];
    let (mut chooser, mut picks) = (Chooser::new(), Picks::new());
    assert_eq!(chooser.spread(&rooms, &[east], domains.tasks(), 2, &tasks, &mut picks), 0);
    assert_eq!(domains.forget("west"), Some(0));
    assert_eq!(domains.forget("west"), None);
    assert_eq!(domains.tasks(), [2]);
    assert_eq!(chooser.spread(&rooms, &[east], domains.tasks(), 2, &tasks, &mut picks), 2);
    domains.remove("west", 1);
    assert_eq!(domains.tasks(), [2], "what ends in a forgotten domain doesn't add it again");

    domains.add("north", 3);
    assert_eq!(domains.forget("east"), Some(2), "the last domain gets its number");
    assert_eq!(domains.tasks(), [3]);
    assert_eq!((domains.number("north"), domains.number("west")), (east, west));
    assert_eq!(domains.tasks(), [3, 0]);
}

/// Goal: a room takes each kind from one supply, and says what is missing. Method: tasks that fit, and one of each kind
/// that doesn't.
#[test]
fn a_room_says_what_it_lacks() {
    let mut small = room(0, 1000, 100, 2);
    let gpu = Task { gpus: Gpus::new(1), ..task(1, 1, 0) };
    let asked = MilliCpus::from_millis(1001);
    let offered = MilliCpus::from_millis(1000);
    assert_eq!(small.take(&task(1, 1001, 0)), Err(Reason::Cpus { asked, offered }));
    let (asked, offered) = (Mebibytes::new(101), Mebibytes::new(100));
    assert_eq!(small.take(&task(1, 1, 101)), Err(Reason::Memory { asked, offered }));
    let (asked, offered) = (Gpus::new(1), Gpus::ZERO);
    assert_eq!(small.take(&gpu), Err(Reason::Gpus { asked, offered }));
    assert_eq!(small.take(&task(1, 0, 1)), Err(Reason::Malformed));
    assert_eq!(small, room(0, 1000, 100, 2), "what failed changed nothing");
    assert_eq!(small.take(&task(1, 500, 100)), Ok(()));
    assert_eq!(small.take(&task(1, 500, 0)), Ok(()));
    assert_eq!(small.take(&task(1, 1, 0)), Err(Reason::AgentFull));
}

proptest! {
    /// Goal: gangs are picked whole or not at all, in their order, each if what is left of the rooms takes it by turns,
    /// after the picks before; those whose time is over are given up. Method: random gangs of random ages, and a few
    /// tasks that are picked before; replayed by the chooser for one gang on what is left.
    #[test]
    fn gangs_share_what_is_left(
        (rooms, tasks) in rooms_and_tasks(),
        sizes in prop::collection::vec((0usize..5, 0u64..3), 0..10),
        before in 0usize..4,
    ) {
        let (mut chooser, mut picks) = (Chooser::new(), Picks::new());
        let (first, mut rest) = tasks.split_at(before.min(tasks.len()));
        chooser.round_robin(&rooms, first, &mut picks);
        let mut left = rooms.clone();
        picks.iter().for_each(|pick| left[pick.room as usize].take(&pick.task).unwrap());

        let second = Duration::from_secs(1);
        let mut gangs = Vec::new();
        for (size, since) in sizes {
            let (own, others) = rest.split_at(size.min(rest.len()));
            rest = others;
            gangs.push(Gang::new(own, Timestamp::from_millis(since * 1000), 2 * second));
        }
        let picked_before = picks.len();
        let picked = chooser.gangs(&rooms, &mut gangs, Timestamp::from_millis(3000), &mut picks);

        let mut all = picks.iter().skip(picked_before);
        for gang in &gangs {
            let mut alone = Picks::new();
            let fits = Chooser::new().gang(&left, gang.tasks(), &mut alone);
            let expected = match gang.since().as_millis() {
                0 | 1000 => GangState::GivenUp,
                _ if fits => GangState::Picked,
                _ => GangState::Waiting,
            };
            prop_assert_eq!(gang.state(), expected);
            if expected == GangState::Picked {
                for pick in &alone {
                    let own = all.next().unwrap();
                    prop_assert_eq!((own.room, own.task), (pick.room, pick.task));
                    left[pick.room as usize].take(&pick.task).unwrap();
                }
            }
        }
        prop_assert_eq!(all.next(), None);
        let states = gangs.iter().map(Gang::state);
        prop_assert_eq!(states.filter(|state| *state == GangState::Picked).count(), picked);
    }
}

/// Goal: a room that has no more than a task wants is the tightest. Method: such rooms alone, among larger ones and
/// among smaller ones, by cores and by memory.
#[test]
fn a_room_that_is_just_enough_is_picked() {
    for (sizes, expected) in [
        (&[2][..], &[0][..]),
        (&[2, 2, 2], &[0, 1, 2]),
        (&[3, 2, 4, 2, 1], &[1, 3, 0, 2]),
        (&[1, 1, 2], &[2]),
    ] {
        for by_memory in [false, true] {
            let size = |amount| if by_memory { (100, amount) } else { (amount, 100) };
            let rooms = sizes.iter().zip(0..).map(|(amount, at)| (at, size(*amount)));
            let rooms: Vec<Room> = rooms.map(|(at, (c, m))| room(at, c, m, 1)).collect();
            let tasks: Vec<Task> = (0..4)
                .map(|tag| (tag, size(2)))
                .map(|(tag, (cores, memory))| task(tag, cores.min(2), memory.min(2)))
                .collect();
            let mut picks = Picks::new();
            Chooser::new().consolidate(&rooms, &tasks, &mut picks);
            let picked: Vec<u32> = picks.iter().map(|pick| pick.room).collect();
            assert_eq!(picked, expected, "{sizes:?} {by_memory}");
        }
    }
}

/// Goal: if neither cores nor memory is scarcer, cores count. Method: a room with fewer cores and one with less memory.
#[test]
fn of_equally_scarce_resources_cores_count() {
    for (rooms, expected) in
        [([room(0, 4, 2, 9), room(1, 2, 4, 9)], 1), ([room(0, 2, 4, 9), room(1, 4, 2, 9)], 0)]
    {
        let mut picks = Picks::new();
        Chooser::new().consolidate(&rooms, &[task(0, 1, 1)], &mut picks);
        assert_eq!(picks.iter().map(|pick| pick.room).collect::<Vec<_>>(), [expected]);
    }
}

/// Goal: a gang says what it was made of. Method: one with all of it.
#[test]
fn a_gang_says_what_it_is() {
    let (tasks, since) = ([task(1, 2, 3), task(2, 3, 4)], Timestamp::from_millis(7));
    let gang = Gang::new(tasks, since, Duration::from_secs(9));
    assert_eq!((gang.tasks(), gang.since()), (&tasks[..], since));
    assert_eq!((gang.timeout(), gang.state()), (Duration::from_secs(9), GangState::Waiting));
}
