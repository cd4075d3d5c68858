//! Reads the agents of a shard anew. What has not changed since the last picture is taken from there.

use std::sync::Arc;

use super::capacity_shard::{
    AgentDetails, AgentRow, AgentShard, RecordRow, RolePart, SHARD, UNREAD, Withheld,
};
use crate::kernel::state::agent::{AgentCell, AgentView};
use crate::kernel::state::agents::AgentAndRecord;
use crate::kernel::state::offered::OfferedRecord;
use crate::kernel::state::offered_amounts::{AmountKind, ResourceSums};
use crate::kernel::state::offered_details::OfferedDetails;
use crate::kernel::state::offered_numbers::OfferedNumbers;
use crate::time::Timestamp;

/// The shards of the last picture but one that the last one doesn't share. If no one else has them any more, the next
/// picture gets their memory.
#[derive(Debug, Default)]
pub(super) struct SpareShards(Vec<Arc<AgentShard>>);

impl SpareShards {
    /// Replaces the shards by those of `last` that `next` doesn't share.
    pub(super) fn replace(&mut self, last: &[Arc<AgentShard>], next: &[Arc<AgentShard>]) {
        self.0.clear();
        let differ = last.iter().zip(next).filter(|(last, next)| !Arc::ptr_eq(last, next));
        self.0.extend(differ.map(|(last, _)| Arc::clone(last)));
    }

    /// Returns memory for rows.
    fn take(&mut self) -> Vec<AgentRow> {
        let spare = std::iter::from_fn(|| self.0.pop()).find_map(Arc::into_inner);
        let mut rows = spare.map_or_else(|| Vec::with_capacity(SHARD), |spare| spare.rows);
        rows.clear();
        rows
    }
}

/// A shard that is being read.
pub(super) struct ShardDraft<'a> {
    last: &'a Arc<AgentShard>,
    spare: &'a mut SpareShards,
    /// Empty while they are the last shard's. Then those up to the last that has changed.
    rows: Vec<AgentRow>,
    details: Option<Vec<AgentDetails>>,
    /// Those of the records that were read.
    parts: Vec<RolePart>,
    withheld: Vec<Withheld>,
    /// Whether an agent came or went.
    pub(super) is_any_new: bool,
}

impl<'a> ShardDraft<'a> {
    /// All agents are to be read.
    pub(super) fn new(last: &'a Arc<AgentShard>, spare: &'a mut SpareShards) -> ShardDraft<'a> {
        ShardDraft {
            last,
            spare,
            rows: Vec::new(),
            details: None,
            parts: Vec::new(),
            withheld: Vec::new(),
            is_any_new: false,
        }
    }

    /// Agents are only to be left out.
    pub(super) fn of_same(last: &'a Arc<AgentShard>, spare: &'a mut SpareShards) -> ShardDraft<'a> {
        ShardDraft { withheld: last.withheld.to_vec(), ..ShardDraft::new(last, spare) }
    }

    /// Reads the agent in the cell at this position. The positions must grow.
    #[inline]
    pub(super) fn read(
        &mut self,
        at: usize,
        (cell, ends, record): AgentAndRecord<'_>,
        now: Timestamp,
    ) {
        let last = self.last.rows.get(at).unwrap_or(&AgentRow::EMPTY);
        let Some(view) = cell.view(now, ends) else {
            if last.generation().is_some() {
                self.leave_out(at);
            }
            return;
        };
        if view.is_withheld() {
            let AgentView { excluded_until, suspect_until, .. } = view;
            self.withheld.push(Withheld { at, excluded_until, suspect_until });
        }
        let is_same = last.shows(&view) && last.is_read(record);
        if !is_same && !self.update(at, &view, cell, record) {
            self.leave_out(at);
        }
    }

    /// Updates the row of an agent that has changed. Returns `false` if the agent was forgotten.
    #[inline]
    fn update(
        &mut self,
        at: usize,
        view: &AgentView,
        cell: &AgentCell,
        record: OfferedRecord<'_>,
    ) -> bool {
        let generation = view.generation;
        let mut row = self.row_at(at);
        let is_other = row.generation() != Some(generation);
        row.see(view);
        if is_other || !row.is_name_known(record) {
            if !self.read_name(at, generation, cell, is_other) {
                return false;
            }
            row = self.row_at(at);
        }
        if !row.is_record_read(record) {
            match record.numbers() {
                Some((revision, numbers)) if row.has_details_of(&numbers, revision) => {
                    let has_usual_size = row.record.is_some_and(|record| record.has_usual_size);
                    row.revision = revision;
                    row.record = Some(RecordRow::new(&numbers, has_usual_size));
                }
                _ => self.read_record(at, generation, record),
            }
        }
        // After the record: if it is another agent's by now, this one was forgotten.
        cell.is_current(generation)
    }

    /// Copies the name of the agent at this position, which is another one than before or had no host name. Returns
    /// `false` if the agent was forgotten.
    #[cold]
    fn read_name(&mut self, at: usize, generation: u64, cell: &AgentCell, is_other: bool) -> bool {
        self.is_any_new |= is_other;
        let Some(name) = cell.name_of(generation) else { return false };
        self.row_at(at).is_named = !name.hostname.is_empty();
        let details = self.details_at(at);
        if is_other {
            *details = AgentDetails::default();
        }
        details.name = Some(name);
        true
    }

    /// Copies the record of the agent at this position with its details, under the lock. If another thread has that,
    /// what was read before of the same agent stays.
    #[cold]
    fn read_record(&mut self, at: usize, generation: u64, record: OfferedRecord<'_>) {
        let copy = |record: Option<(&OfferedNumbers, &OfferedDetails)>, revision| {
            self.copy_record(at, record, revision);
        };
        if !record.read(generation, copy) {
            self.row_at(at).revision = UNREAD;
        }
    }

    fn copy_record(
        &mut self,
        at: usize,
        record: Option<(&OfferedNumbers, &OfferedDetails)>,
        revision: u64,
    ) {
        let usual_size = self.last.usual_size;
        let row = self.row_at(at);
        row.revision = revision;
        row.record =
            record.map(|(numbers, details)| RecordRow::new(numbers, details.size == usual_size));
        let parts = record.map_or(&[][..], |(_, details)| details.parts());
        self.parts.extend(parts.iter().map(|offered| RolePart { at, offered: offered.clone() }));
        let known = self.details.as_deref().unwrap_or(&self.last.details).get(at);
        if !known.is_some_and(|known| known.are_of(record)) {
            let details = self.details_at(at);
            details.role = record.and_then(|(_, details)| details.role.clone());
            details.attributes = record.and_then(|(_, details)| details.attributes.clone());
            details.size = record.map_or(ResourceSums::NONE, |(_, details)| details.size);
        }
    }

    /// Removes the agent at this position, if there is one.
    pub(super) fn leave_out(&mut self, at: usize) {
        let details = self.details.as_deref().unwrap_or(&self.last.details).get(at);
        if details.is_some_and(|details| details.name.is_some()) {
            *self.details_at(at) = AgentDetails::default();
        }
        self.is_any_new |= self.last.rows.get(at).is_some_and(|last| last.generation().is_some());
        self.withheld.retain(|agent| agent.at != at);
        *self.row_at(at) = AgentRow::EMPTY;
    }

    fn details_at(&mut self, at: usize) -> &mut AgentDetails {
        let details = self.details.get_or_insert_with(|| self.last.details.to_vec());
        if details.len() <= at {
            details.resize(at + 1, AgentDetails::default());
        }
        &mut details[at]
    }

    /// The row at the last position that was asked for, or at a later one.
    #[inline(always)]
    fn row_at(&mut self, at: usize) -> &mut AgentRow {
        if self.rows.len() <= at {
            self.copy_rows(at);
            self.rows.push(self.last.rows.get(at).copied().unwrap_or(AgentRow::EMPTY));
        }
        &mut self.rows[at]
    }

    /// Copies the last shard's rows before this position, if they aren't copied; where there are none, empty ones.
    #[inline]
    fn copy_rows(&mut self, end: usize) {
        if self.rows.capacity() == 0 {
            self.rows = self.spare.take();
        }
        let known = self.last.rows.get(self.rows.len()..end.min(self.last.rows.len()));
        self.rows.extend_from_slice(known.unwrap_or_default());
        self.rows.resize(end, AgentRow::EMPTY);
    }

    /// Returns the usual size of executors: the last shard's unless details have changed. If they have, finds out anew
    /// which agents have it.
    fn find_usual_size(&mut self) -> ResourceSums {
        let Some(details) = &self.details else { return self.last.usual_size };
        let mut usual_size = None;
        for (row, details) in self.rows.iter_mut().zip(details) {
            let Some(record) = &mut row.record else { continue };
            let usual_size = *usual_size.get_or_insert(details.size);
            record.has_usual_size = details.size == usual_size;
        }
        usual_size.unwrap_or_default()
    }

    /// Returns the shard; the last one if nothing has changed.
    pub(super) fn finish(mut self) -> Arc<AgentShard> {
        if self.rows.is_empty() && *self.withheld == *self.last.withheld {
            return Arc::clone(self.last);
        }
        self.copy_rows(self.last.rows.len().max(self.rows.len()));
        let usual_size = self.find_usual_size();
        let ShardDraft { last, rows, details, mut parts, withheld, .. } = self;
        // Those of agents whose records were not read.
        let read = parts.len();
        let stays = |part: &&RolePart| {
            let record = rows.get(part.at).and_then(|row| row.record.as_ref());
            let is_read = parts.binary_search_by_key(&part.at, |part| part.at).is_ok();
            !is_read && record.is_some_and(|record| record.kind == AmountKind::Several)
        };
        let stay: Vec<RolePart> = last.parts.iter().filter(stays).cloned().collect();
        parts.extend(stay);
        if read > 0 && parts.len() > read {
            parts.sort_by_key(|part| part.at);
        }
        let details = details.map_or_else(|| Arc::clone(&last.details), Arc::from);
        Arc::new(AgentShard::new(rows, details, usual_size, parts.into(), withheld.into()))
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use crate::kernel::state::agents::AgentTable;

    /// Reads all agents, in one shard. Returns it and whether an agent came or went.
    fn read(agents: &AgentTable, last: &Arc<AgentShard>) -> (Arc<AgentShard>, bool) {
        let mut spare = SpareShards::default();
        let mut draft = ShardDraft::new(last, &mut spare);
        for (at, agent) in agents.records().flatten().enumerate() {
            draft.read(at, agent, Timestamp::ORIGIN);
        }
        let is_any_new = draft.is_any_new;
        (draft.finish(), is_any_new)
    }

    /// Goal: an agent that came or went is noticed, wherever it is among others that stay. Method: one that is known,
    /// with one more before and behind it, and one less.
    #[test]
    fn comers_and_leavers_are_noticed() {
        let agents = AgentTable::new();
        let now = Timestamp::ORIGIN;
        let insert = |name| agents.find_or_insert(name, "host", now).unwrap();
        let none = Arc::new(AgentShard::default());
        assert!(!read(&agents, &none).1, "there is none");
        let keys = ["S0", "S1", "S2"].map(insert);
        let (all, is_any_new) = read(&agents, &none);
        assert!(is_any_new);
        let (same, is_any_new) = read(&agents, &all);
        assert!(!is_any_new && Arc::ptr_eq(&same, &all));
        for (at, key) in keys.into_iter().enumerate() {
            assert!(agents.retire(key, now));
            let (less, is_any_new) = read(&agents, &all);
            assert!(is_any_new, "{at} went");
            assert_eq!(less.rows.iter().filter(|row| row.generation().is_some()).count(), 2);
            insert("S3");
            assert!(read(&agents, &less).1, "one came at {at}");
            assert!(read(&agents, &all).1, "another one is at {at}");
            let other = agents.find("S3").unwrap();
            assert!(agents.retire(other, now));
            insert(["S0", "S1", "S2"][at]);
            assert!(read(&agents, &all).1, "the same name, and another agent");
            let known = read(&agents, &all).0;
            assert!(!read(&agents, &known).1);
            let again = agents.find(["S0", "S1", "S2"][at]).unwrap();
            assert!(agents.retire(again, now));
            assert!(read(&agents, &known).1);
            insert(["S0", "S1", "S2"][at]);
        }
    }
}
