//! What is recorded of agents' offers, and the picture that is built from it.

use std::time::Duration;

use loom::sync::Arc;
use loom::thread;

use super::scenes::{LATER, NOW, STILL_LATER, config, kernel};
use super::{explore, race};
use crate::kernel::state::agents::AgentTable;
use crate::kernel::state::offered::{OfferedCell, OfferedRecord};
use crate::kernel::state::offered_amounts::{OfferedAmounts, ResourceSums};
use crate::kernel::state::offered_details::OfferedDetails;
use crate::kernel::state::offered_numbers::{NumberLine, OfferedNumbers};
use crate::resources::{Gpus, MilliCpus};
use crate::{Attribute, ClusterCapacity, Decisions, Handler, Kernel, Offer, Resource};

/// Goal: what a forgotten agent offered is never shown for the agent that has its cell now, and an agent whose
/// fingerprint says so is recorded. Method: the agent is recorded while it is forgotten and another gets its cell and
/// is recorded, too.
#[test]
fn a_record_is_its_own_agents() {
    explore("capacity/record-reuse", Some(3), || {
        let agents = Arc::new(AgentTable::new());
        let old = agents.find_or_insert("S0", "host", NOW).unwrap();
        let (here, there) = (Arc::clone(&agents), Arc::clone(&agents));
        let (_recorded, new) = race(
            move || here.record_offered(old, 7, |numbers, _| numbers.executors = 1),
            move || {
                assert!(there.retire(old, NOW));
                let new = there.find_or_insert("S1", "host", NOW).unwrap();
                there.record_offered(new, 8, |numbers, _| numbers.executors = 2);
                new
            },
        );
        let mut records = agents.records().flatten();
        let record = records.find_map(|(_, _, record)| copy(record, new.generation()).unwrap().1);
        assert!(record.is_none_or(|numbers| numbers.executors == 2), "{record:?}");
        let offered = agents.capacity(new, NOW).unwrap().offered;
        assert!(offered != 8 || record.is_some(), "it isn't recorded, and never will be");
    });
}

/// Reads the record of an agent as a picture does for the first time: its number and its numbers.
fn copy(record: OfferedRecord<'_>, generation: u64) -> Result<(u64, Option<OfferedNumbers>), ()> {
    let mut copied = Err(());
    let read = |record: Option<(&OfferedNumbers, &OfferedDetails)>, number| {
        copied = Ok((number, record.map(|(numbers, _)| *numbers)));
    };
    record.read(generation, read);
    copied
}

/// While `look` looks, an agent that is suspect is forgotten, another gets its cell and is suspected for longer, and a
/// third thread readmits that. Returns the first agent's generation and what `look` returned.
fn look_at_a_reused_cell<T: 'static>(look: fn(&AgentTable) -> T) -> (u64, T) {
    let agents = Arc::new(AgentTable::new());
    let old = agents.suspect("S0", LATER, NOW).unwrap();
    let (here, there) = (Arc::clone(&agents), agents);
    let ((), seen) = race(
        move || {
            assert!(here.retire(old, LATER));
            here.suspect("S1", STILL_LATER, NOW).unwrap();
            let readmission = thread::spawn(move || here.readmit("S1", NOW));
            assert!(readmission.join().unwrap());
        },
        move || look(&there),
    );
    (old.generation(), seen)
}

/// Goal: what is shown of an agent isn't the next agent's in its cell. Method: the cell's words are read while it is
/// reused.
#[test]
fn a_view_is_of_one_agent() {
    explore("capacity/view-reuse", Some(3), || {
        let (old, views) = look_at_a_reused_cell(|agents| {
            let cells = agents.records().flatten();
            cells.filter_map(|(cell, ends, _)| cell.view(NOW, ends)).collect::<Vec<_>>()
        });
        let views = views.iter().filter(|view| view.generation == old);
        views.for_each(|view| assert_eq!(view.suspect_until, Some(LATER), "{view:?}"));
    });
}

/// Goal: an agent is shown under its own name. Method: agents are listed while a cell is reused.
#[test]
fn a_view_has_its_own_name() {
    explore("capacity/name-reuse", Some(2), || {
        let (old, views) = look_at_a_reused_cell(|agents| {
            agents.views(NOW).map(|(_, view, name)| (view, name)).collect::<Vec<_>>()
        });
        for (view, name) in views {
            assert_eq!(&*name.id, if view.generation == old { "S0" } else { "S1" });
        }
    });
}

/// Goal: if an agent's fingerprint is that of an offer, that offer is recorded. Method: two handlers record different
/// offers of the agent.
#[test]
fn a_fingerprint_is_of_the_record() {
    explore("capacity/record-record", None, || {
        let agents = Arc::new(AgentTable::new());
        let agent = agents.find_or_insert("S0", "host", NOW).unwrap();
        let record = move |agents: &AgentTable, offered: u16| {
            let write = |numbers: &mut OfferedNumbers, _: &mut _| numbers.executors = offered;
            agents.record_offered(agent, offered.into(), write)
        };
        let (here, there) = (Arc::clone(&agents), Arc::clone(&agents));
        let (one, other) = race(move || record(&here, 7), move || record(&there, 9));
        assert!(one || other, "the first that has the lock records");
        let mut records = agents.records().flatten();
        let record = records.find_map(|(_, _, record)| copy(record, agent.generation()).unwrap().1);
        let recorded = record.unwrap().executors;
        assert_eq!(agents.capacity(agent, NOW).unwrap().offered, recorded.into());
        assert!(if recorded == 7 { one } else { other }, "which is not recorded will be");
    });
}

/// Offers a part of a core, which is too small for an executor.
fn offer_part(handler: &mut Handler, cores: f64) {
    let resources = [Resource::scalar("cpus", cores)];
    let offers = [Offer::new("o", "S0", "host", &resources, &[])];
    handler.resource_offers(&offers, NOW, &mut Decisions::new());
}

fn shown(capacity: &ClusterCapacity) -> Vec<MilliCpus> {
    capacity.agents().map(|agent| agent.offered().cores).collect()
}

/// What is recorded of all agents.
fn recorded(kernel: &Kernel) -> Vec<MilliCpus> {
    let agent = kernel.0.agents.find("S0").unwrap();
    let records = kernel.0.agents.records().flatten();
    let records = records.filter_map(|(_, _, record)| copy(record, agent.generation()).unwrap().1);
    records.map(|numbers| numbers.offered.cores).collect()
}

/// A record by itself.
#[derive(Default)]
struct Cell {
    offered: OfferedCell,
    line: NumberLine,
}

impl Cell {
    /// Records this number of executors of so many GPUs each, as a handler does.
    fn rewrite(&self, executors: u16) {
        let write = |numbers: &mut OfferedNumbers, details: &mut OfferedDetails| {
            numbers.executors = executors;
            details.set_size(gpus(executors));
            details.set_one("*", &OfferedAmounts::default());
            true
        };
        let _written = self.offered.rewrite(&self.line, write, || ());
    }

    fn record(&self) -> OfferedRecord<'_> {
        OfferedRecord::new(&self.offered, Some(&self.line))
    }
}

fn gpus(count: u16) -> ResourceSums {
    ResourceSums { gpus: Gpus::new(count.into()), ..ResourceSums::NONE }
}

/// Goal: a report that finds the number of its last reading has read the record. Method: a record is read while it is
/// rewritten, with its lock and without; if its number is the last one, so is what was read.
#[test]
fn a_number_is_of_its_record() {
    explore("capacity/record-read", Some(3), || {
        let cell = Arc::new(Cell::default());
        cell.rewrite(1);
        let (here, there) = (Arc::clone(&cell), Arc::clone(&cell));
        let ((), (read, locked)) = race(
            move || here.rewrite(2),
            move || (there.record().numbers(), copy(there.record(), 0)),
        );
        let (last, current) = copy(cell.record(), 0).unwrap();
        assert_eq!(cell.record().begun(), last);
        let locked = locked.ok().map(|(number, numbers)| (number, numbers.unwrap()));
        for (number, numbers) in [read, locked].into_iter().flatten() {
            assert!(number != last || Some(numbers) == current);
            assert!(number <= last);
            assert_eq!(u64::from(numbers.executors), number);
        }
    });
}

/// Goal: details that have changed are read again, and those that are read with the lock belong to the numbers. Method:
/// a report that knows a record reads it while it is rewritten with another size of executors, and once more.
#[test]
fn details_are_of_the_numbers() {
    explore("capacity/details-read", Some(3), || {
        let cell = Arc::new(Cell::default());
        cell.rewrite(1);
        let (here, there) = (Arc::clone(&cell), Arc::clone(&cell));
        let ((), mut known) = race(
            move || here.rewrite(2),
            move || {
                let mut known = (1, gpus(1));
                look(there.record(), &mut known);
                known
            },
        );
        look(cell.record(), &mut known);
        assert_eq!(known, (2, gpus(2)));
    });
}

/// Goal: at each moment the details that are recorded are those that go with the numbers, and the fingerprint is that
/// of the numbers. Method: an agent is recorded with other details while another thread records other numbers with the
/// details that it has seen, and a third reads the record under its lock.
#[test]
fn numbers_have_their_own_details() {
    explore("capacity/numbers-details", Some(2), || {
        let agents = Arc::new(AgentTable::new());
        let agent = agents.find_or_insert("S0", "host", NOW).unwrap();
        let rewrite = move |agents: &AgentTable, details: u16| {
            let write = |numbers: &mut OfferedNumbers, to: &mut OfferedDetails| {
                numbers.details = details.into();
                numbers.executors = details;
                to.set_size(gpus(details));
            };
            agents.record_offered(agent, details.into(), write)
        };
        let check = move |agents: &AgentTable| {
            let (_, _, record) = agents.records().flatten().next().unwrap();
            let mut executors = None;
            record.read(agent.generation(), |record, _| {
                let (numbers, details) = record.unwrap();
                assert_eq!(details.size, gpus(numbers.details as u16));
                executors = Some(numbers.executors);
            });
            executors
        };
        assert!(rewrite(&agents, 1));
        let (here, there, reader) = (Arc::clone(&agents), Arc::clone(&agents), Arc::clone(&agents));
        let reader = thread::spawn(move || check(&reader));
        let (rewritten, renumbered) = race(
            move || rewrite(&here, 2),
            move || {
                let mut numbers = OfferedNumbers::default();
                (numbers.details, numbers.executors) = (1, 7);
                there.record_numbers(agent, 7, numbers)
            },
        );
        reader.join().unwrap();
        let executors = check(&agents).expect("nobody has the lock");
        assert_eq!(agents.capacity(agent, NOW).unwrap().offered, executors.into());
        let recorded = match (rewritten, renumbered) {
            (true, _) => 2,
            (false, true) => 7,
            // The reader had the lock.
            (false, false) => 1,
        };
        assert_eq!(executors, recorded);
    });
}

/// Reads a record of which the number and the size of executors are `known`, as a picture does.
fn look(record: OfferedRecord<'_>, known: &mut (u64, ResourceSums)) {
    if record.begun() == known.0 {
        return;
    }
    match record.numbers() {
        Some((number, numbers)) if numbers.has_same_details(number - known.0) => known.0 = number,
        _ => {
            record.read(0, |record, number| {
                let (numbers, details) = record.unwrap();
                assert_eq!(details.size, gpus(numbers.executors));
                *known = (number, details.size);
            });
        }
    }
}

/// Goal: a picture that is built after a change shows it, whatever was built during it. Method: an agent offers more
/// while the first picture is built; the one after both shows what is recorded.
#[test]
fn a_change_is_shown_by_the_next_picture() {
    explore("capacity/record-rebuild", Some(2), || {
        let kernel = kernel(config().capacity_refresh(Duration::ZERO));
        let mut handler = kernel.handler();
        offer_part(&mut handler, 0.25);
        let there = kernel.clone();
        let ((), during) =
            race(move || offer_part(&mut handler, 0.5), move || shown(&there.capacity(NOW)));
        // Nothing, if the first picture found the record's lock taken.
        let [none, old, new] = [0, 250, 500].map(MilliCpus::from_millis);
        assert!(during == [none] || during == [old] || during == [new], "{during:?}");
        assert_eq!(shown(&kernel.capacity(NOW)), recorded(&kernel));
    });
}

/// Goal: an offer that is to be recorded whatever its fingerprint is, is recorded with the agent's next offer at the
/// latest. Method: a handler that meets the agent for the first time is offered the recorded amounts with another
/// attribute while another thread has the record's lock, as when it builds a picture; and once more.
#[test]
fn what_is_due_is_recorded_in_the_end() {
    explore("capacity/due-read", None, || {
        let kernel = kernel(config().capacity_refresh(Duration::ZERO));
        let offer = |handler: &mut Handler, zone: &str| {
            let resources = [Resource::scalar("cpus", 0.25)];
            let attributes = [Attribute::text("zone", zone)];
            let offers = [Offer::new("o", "S0", "host", &resources, &attributes)];
            handler.resource_offers(&offers, NOW, &mut Decisions::new());
        };
        offer(&mut kernel.handler(), "east");
        let mut handler = kernel.handler();
        let there = kernel.clone();
        let (mut handler, _free) = race(
            move || {
                offer(&mut handler, "west");
                handler
            },
            move || {
                let (cell, _, record) = there.0.agents.records().flatten().next().unwrap();
                // A word that the handler writes, or loom wouldn't switch threads under the lock.
                let look = |_: &mut OfferedNumbers, _: &mut OfferedDetails| {
                    cell.record_seen(NOW);
                    false
                };
                record.rewrite(look)
            },
        );
        offer(&mut handler, "west");
        let zones = kernel.capacity(NOW).by_attribute("zone");
        assert_eq!(zones.keys().collect::<Vec<_>>(), ["west"]);
    });
}
