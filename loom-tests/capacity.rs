//! What is recorded of agents' offers, and the picture that is built from it.

use std::time::Duration;

use loom::sync::Arc;
use loom::thread;

use super::scenes::{LATER, NOW, STILL_LATER, config, kernel};
use super::{explore, race};
use crate::kernel::state::agents::AgentTable;
use crate::kernel::state::offered::{OfferedCell, OfferedRecord};
use crate::resources::MilliCpus;
use crate::{Attribute, ClusterCapacity, Decisions, Handler, Kernel, Offer, Resource};

/// Goal: what a forgotten agent offered is never shown for the agent that has its cell now, and an agent whose
/// fingerprint says so is recorded. Method: the agent is recorded while it is forgotten and another gets its cell and
/// is recorded, too.
#[test]
fn a_record_is_its_own_agents() {
    explore("capacity/record-reuse", None, || {
        let agents = Arc::new(AgentTable::new());
        let old = agents.find_or_insert("S0", "host", NOW).unwrap();
        let (here, there) = (Arc::clone(&agents), Arc::clone(&agents));
        let (_recorded, new) = race(
            move || here.record_offered(old, 7, |record| record.executors = 1),
            move || {
                assert!(there.retire(old, NOW));
                let new = there.find_or_insert("S1", "host", NOW).unwrap();
                there.record_offered(new, 8, |record| record.executors = 2);
                new
            },
        );
        let mut records = agents.records().flatten();
        let record = records.find_map(|(_, record)| copy(record, new.generation()).unwrap().1);
        assert!(record.as_ref().is_none_or(|record| record.executors == 2), "{record:?}");
        let offered = agents.capacity(new, NOW).unwrap().offered;
        assert!(offered != 8 || record.is_some(), "it isn't recorded, and never will be");
    });
}

/// Reads the record of an agent as a picture does.
fn copy(record: &OfferedCell, generation: u64) -> Result<(u64, Option<OfferedRecord>), ()> {
    let mut copied = Err(());
    record.read(generation, |record, revision| copied = Ok((revision, record.cloned())));
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
            cells.filter_map(|(cell, _)| cell.view(NOW)).collect::<Vec<_>>()
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
        let record = move |agents: &AgentTable, offered: u32| {
            agents.record_offered(agent, offered, |record| record.executors = offered)
        };
        let (here, there) = (Arc::clone(&agents), Arc::clone(&agents));
        let (one, other) = race(move || record(&here, 7), move || record(&there, 9));
        assert!(one || other, "the first that has the lock records");
        let mut records = agents.records().flatten();
        let record = records.find_map(|(_, record)| copy(record, agent.generation()).unwrap().1);
        let recorded = record.unwrap().executors;
        assert_eq!(agents.capacity(agent, NOW).unwrap().offered, recorded);
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
    let records = records.filter_map(|(_, record)| copy(record, agent.generation()).unwrap().1);
    records.map(|record| record.sum().cores).collect()
}

/// Goal: a report that finds the number of its last reading has read the record. Method: a record is read while it is
/// rewritten; if its number is the last one, so is what was read.
#[test]
fn a_number_is_of_its_record() {
    explore("capacity/record-read", None, || {
        let cell = Arc::new(OfferedCell::default());
        let rewrite = |cell: &OfferedCell, executors| {
            let write = |record: &mut OfferedRecord| {
                record.executors = executors;
                true
            };
            let _written = cell.rewrite(write, || ());
        };
        rewrite(&cell, 1);
        let (here, there) = (Arc::clone(&cell), Arc::clone(&cell));
        let ((), read) = race(move || rewrite(&here, 2), move || copy(&there, 0));
        let (last, current) = copy(&cell, 0).unwrap();
        if let Ok((revision, record)) = read {
            let executors = |record: Option<OfferedRecord>| record.unwrap().executors;
            assert!(revision != last || executors(record) == executors(current));
            assert!(revision <= last);
        }
    });
}

/// Goal: a picture that is built after a change shows it, whatever was built during it. Method: an agent offers more
/// while the first picture is built; the one after both shows what is recorded.
#[test]
fn a_change_is_shown_by_the_next_picture() {
    explore("capacity/record-rebuild", None, || {
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
                let (cell, record) = there.0.agents.records().flatten().next().unwrap();
                // A word that the handler writes, or loom wouldn't switch threads under the lock.
                let look = |_: &mut OfferedRecord| {
                    cell.record_seen(NOW);
                    false
                };
                record.rewrite(look, || ())
            },
        );
        offer(&mut handler, "west");
        let zones = kernel.capacity(NOW).by_attribute("zone");
        assert_eq!(zones.keys().collect::<Vec<_>>(), ["west"]);
    });
}
