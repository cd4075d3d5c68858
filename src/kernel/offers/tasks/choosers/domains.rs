//! [`Domains`]: zones, racks or hosts by name, and the tasks in each.

use std::collections::HashMap;

use crate::kernel::offers::tasks::rooms::Rooms;
use crate::offer::{AttributeValue, Offer};

/// The domains over which tasks are [spread](super::Chooser::spread), such as zones, racks or hosts, with the number of
/// tasks in each. The framework keeps it for as long as the tasks live, and [forgets](Domains::forget) domains that are
/// gone.
///
/// ```
/// # use offermill::choosers::{Chooser, Domains};
/// # use offermill::resources::{Mebibytes, MilliCpus};
/// # use offermill::{Config, Decisions, IdScheme, Kernel, Offer, Picks, Resource, Task, Timestamp};
/// # let config = Config::builder().executor_memory(Mebibytes::new(100)).memory_overhead(Some(Mebibytes::ZERO));
/// # let kernel = Kernel::new(config.build()?, IdScheme::plain());
/// # let resources = [Resource::scalar("cpus", 4.0), Resource::scalar("mem", 4096.0)];
/// # let mut offers = [("O1", "S1"), ("O2", "S2")].map(|(id, agent)| Offer::new(id, agent, "h", &resources, &[]));
/// # (offers[0].zone, offers[1].zone) = (Some("east"), Some("west"));
/// # let (mut handler, mut picks, now) = (kernel.handler(), Picks::new(), Timestamp::ORIGIN);
/// # let tasks = [1, 2, 3, 4].map(|tag| Task::new(tag, MilliCpus::from_cores(1), Mebibytes::new(512)));
/// let mut domains = Domains::new();
/// let rooms = handler.propose(&offers, now);
/// let of_room = domains.of_rooms(&rooms, |offer| Domains::text(offer, "@zone"));
/// Chooser::new().spread(rooms.list(), &of_room, domains.tasks(), 1, &tasks, &mut picks);
/// assert_eq!(picks.iter().map(|pick| of_room[pick.room as usize]).collect::<Vec<_>>(), [0, 1, 0, 1]);
/// # let mut decisions = Decisions::new();
/// rooms.commit(&picks, now, &mut decisions);
/// for accepted in decisions.accepts() {
///     let zone = Domains::text(&offers[accepted.offers[0] as usize], "@zone").unwrap();
///     domains.add(zone, accepted.executors.len() as u32); // `remove` when they end
/// }
/// assert_eq!(domains.tasks(), [2, 2]);
/// # Ok::<(), offermill::Error>(())
/// ```
///
/// Where several threads choose, count the tasks when they are picked, under the lock under which the next ones are,
/// and take off those that are [not placed](crate::Decisions::unplaced): two batches that are counted after their
/// commits may together exceed the difference that each kept. So counted, no batch makes a difference larger than is
/// asked for, of what is placed and what is about to be. What is taken off, because it has ended or wasn't placed, may
/// leave a larger one, which later batches level as far as they have room where there are fewest.
#[derive(Clone, Debug, Default)]
pub struct Domains {
    numbers: HashMap<Box<str>, u32>,
    tasks: Vec<u32>,
}

impl Domains {
    /// The number of no domain: rooms in none are not used.
    pub const NONE: u32 = u32::MAX;

    /// Creates an empty set of domains.
    #[must_use]
    pub fn new() -> Domains {
        Domains::default()
    }

    /// The number of a domain: its position in [`Domains::tasks`]. A new name is added, without tasks.
    pub fn number(&mut self, name: &str) -> u32 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = self.tasks.len() as u32;
        self.numbers.insert(name.into(), number);
        self.tasks.push(0);
        number
    }

    /// The domain of each room, by the name that `name` returns for its first offer; [`Domains::NONE`] if that is none.
    pub fn of_rooms<'r>(
        &mut self,
        rooms: &'r Rooms<'_>,
        name: impl Fn(&'r Offer<'r>) -> Option<&'r str>,
    ) -> Vec<u32> {
        let number = |room| match rooms.offer(room).and_then(&name) {
            Some(name) => self.number(name),
            None => Domains::NONE,
        };
        rooms.list().iter().map(number).collect()
    }

    /// The domain of an offer: the text of the attribute of this name, if it has one whose value is a text; or, as in
    /// [constraints](crate::Constraint), its `@hostname`, or the `@region` or `@zone` of its agent's fault domain.
    #[must_use]
    pub fn text<'o>(offer: &Offer<'o>, name: &str) -> Option<&'o str> {
        match name {
            "@hostname" => return Some(offer.hostname).filter(|name| !name.is_empty()),
            "@region" => return offer.region,
            "@zone" => return offer.zone,
            _ => {}
        }
        let texts = offer.attributes.iter().filter(|it| it.name == name);
        texts.into_iter().find_map(|it| match it.value {
            AttributeValue::Text(text) => Some(text),
            _ => None,
        })
    }

    /// The number of tasks in each domain, by the domains' numbers.
    #[must_use]
    pub fn tasks(&self) -> &[u32] {
        &self.tasks
    }

    /// Adds tasks that were placed in a domain; saturates.
    pub fn add(&mut self, name: &str, tasks: u32) {
        let number = self.number(name) as usize;
        self.tasks[number] = self.tasks[number].saturating_add(tasks);
    }

    /// Removes tasks of a domain that have ended, but no more than it has. A domain that isn't known is not added.
    pub fn remove(&mut self, name: &str, tasks: u32) {
        if let Some(number) = self.numbers.get(name) {
            let count = &mut self.tasks[*number as usize];
            *count = count.saturating_sub(tasks);
        }
    }

    /// Forgets a domain, with its tasks. Returns how many it had; `None` if it isn't known.
    ///
    /// Call it when a zone or rack is closed, or when a host has left the cluster: as long as the domain is known, it
    /// counts as one with few tasks, and tasks [wait](super::Chooser::spread) until it has room again. If it offers
    /// resources again, or a task is added, it is known again and begins without tasks; so if tasks may still run in
    /// it, forget it once they have ended.
    ///
    /// Numbers have no gaps: the last domain gets the number of the forgotten one. What
    /// [`of_rooms`](Domains::of_rooms) and [`number`](Domains::number) have returned before is no longer valid.
    pub fn forget(&mut self, name: &str) -> Option<u32> {
        let number = self.numbers.remove(name)?;
        let tasks = self.tasks.swap_remove(number as usize);
        let last = self.tasks.len() as u32;
        if let Some(moved) = self.numbers.values_mut().find(|it| **it == last) {
            *moved = number;
        }
        Some(tasks)
    }
}
