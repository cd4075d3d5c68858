//! Spread: domains such as zones get about as many tasks each.

use super::Chooser;
use crate::kernel::offers::tasks::picks::{Picks, Task};
use crate::kernel::offers::tasks::room::Room;

impl Chooser {
    /// Picks for each task a room in the domain with the fewest tasks, so that no two domains are more than `apart`
    /// tasks apart afterwards, except those that were before. Of equal domains the first is tried first, and within one
    /// its rooms take turns. Returns the number of picks.
    ///
    /// `of_room` has the domain of each room ([`Domains::of_rooms`](super::Domains::of_rooms)); rooms without a domain
    /// are not used. `tasks_in` has the tasks in each domain before ([`Domains::tasks`](super::Domains::tasks)). A
    /// domain without rooms counts as well: if the difference to it is reached, tasks wait until it has room again, or
    /// is [forgotten](super::Domains::forget).
    /// With an `apart` of 0 a task is placed only where fewer are than elsewhere.
    pub fn spread(
        &mut self,
        rooms: &[Room],
        of_room: &[u32],
        tasks_in: &[u32],
        apart: u32,
        tasks: &[Task],
        picks: &mut Picks,
    ) -> usize {
        self.begin(rooms);
        let Chooser { left, ring, counts, .. } = self;
        counts.clear();
        counts.extend_from_slice(tasks_in);
        // The rooms in the order of their turns.
        ring.clear();
        ring.extend((0u32..).take(rooms.len().min(of_room.len())));
        let mut picked = 0;
        for task in tasks {
            let fewest = counts.iter().min().copied().unwrap_or(0);
            let mut best: Option<(u32, u32, usize)> = None;
            for (room, turn) in ring.iter().zip(0..) {
                let domain = of_room[*room as usize];
                let Some(count) = counts.get(domain as usize) else { continue };
                let is_better = best.is_none_or(|(most, of, _)| (*count, domain) < (most, of));
                if is_better
                    && count - fewest < apart.max(1)
                    && (apart > 0 || counts.iter().any(|other| other > count))
                    && left[*room as usize].fits(task)
                {
                    best = Some((*count, domain, turn));
                }
            }
            let Some((_, domain, turn)) = best else { continue };
            let room = ring.remove(turn);
            // It was checked that it fits.
            let _ = left[room as usize].take(task);
            ring.push(room);
            // The count of a domain may be at its maximum, as those of `Domains` stay there.
            let count = &mut counts[domain as usize];
            *count = count.saturating_add(1);
            picks.push(room, *task);
            picked += 1;
        }
        picked
    }
}
