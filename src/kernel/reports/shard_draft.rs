//! Reads the agents of a shard anew. What has not changed since the last picture is taken from there.

use std::sync::Arc;

use super::capacity_shard::{AgentRow, AgentShard, AgentTexts, RecordRow, RolePart, SHARD, UNREAD};
use crate::kernel::state::agent::{AgentCell, AgentView};
use crate::kernel::state::offered::{OfferedCell, OfferedRecord};
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

    fn copy(&mut self, rows: &[AgentRow]) -> Vec<AgentRow> {
        let spare = std::iter::from_fn(|| self.0.pop()).find_map(Arc::into_inner);
        let mut copy = spare.map_or_else(|| Vec::with_capacity(SHARD), |spare| spare.rows);
        copy.clear();
        copy.extend_from_slice(rows);
        copy
    }
}

/// A shard that is being read.
pub(super) struct ShardDraft<'a> {
    last: &'a Arc<AgentShard>,
    spare: &'a mut SpareShards,
    /// Empty while they are the last shard's.
    rows: Vec<AgentRow>,
    texts: Option<Vec<AgentTexts>>,
    /// Those of the records that were read.
    parts: Vec<RolePart>,
    /// Whether an agent came or went.
    pub(super) is_any_new: bool,
}

impl<'a> ShardDraft<'a> {
    pub(super) fn new(last: &'a Arc<AgentShard>, spare: &'a mut SpareShards) -> ShardDraft<'a> {
        ShardDraft {
            last,
            spare,
            rows: Vec::new(),
            texts: None,
            parts: Vec::new(),
            is_any_new: false,
        }
    }

    /// Reads the agent in the cell at this position. The positions must grow.
    #[inline]
    pub(super) fn read(
        &mut self,
        at: usize,
        cell: &AgentCell,
        record: &OfferedCell,
        now: Timestamp,
    ) {
        let last = self.last.rows.get(at).unwrap_or(&AgentRow::EMPTY);
        let view = cell.view(now);
        let is_same = match &view {
            None => last.generation().is_none(),
            Some(view) => last.shows(view) && last.is_read(record),
        };
        if !is_same && !view.is_some_and(|view| self.update(at, &view, cell, record)) {
            self.leave_out(at);
        }
    }

    /// Updates the row of an agent that has changed, where it lies: most rows of most shards change from one picture to
    /// the next, and copies would take a sixth of the time. Returns `false` if the agent was forgotten.
    #[inline]
    fn update(
        &mut self,
        at: usize,
        view: &AgentView,
        cell: &AgentCell,
        record: &OfferedCell,
    ) -> bool {
        let generation = view.generation;
        let row = self.row_at(at);
        let is_other = row.generation() != Some(generation);
        row.see(view);
        let is_read = row.is_record_read(record);
        let is_named = row.is_name_known(record);
        if (is_other || !is_named) && !self.read_name(at, generation, cell, is_other) {
            return false;
        }
        if !is_read {
            let copy = |record: Option<&_>, revision| self.copy(at, record, revision);
            if !record.read(generation, copy) {
                // It is being written. What was read before of the same agent stays.
                self.row_at(at).revision = UNREAD;
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
        let texts = self.texts_at(at);
        if is_other {
            *texts = AgentTexts::default();
        }
        texts.name = Some(name);
        true
    }

    /// Copies the numbers of the record of the agent at this position, its revision among them, and what it points to.
    #[inline]
    fn copy(&mut self, at: usize, record: Option<&OfferedRecord>, revision: u64) {
        let texts = self.texts.as_deref().unwrap_or(&self.last.texts).get(at);
        if !texts.is_some_and(|texts| texts.are_of(record)) {
            self.copy_texts(at, record);
        }
        let row = self.row_at(at);
        row.revision = revision;
        let Some(record) = record else {
            row.record = None;
            return;
        };
        row.record.get_or_insert(RecordRow::EMPTY).copy(record);
        if !record.is_plain() {
            self.copy_parts(at, record);
        }
    }

    #[cold]
    fn copy_texts(&mut self, at: usize, record: Option<&OfferedRecord>) {
        let texts = self.texts_at(at);
        texts.role = record.and_then(|record| record.first.role.clone());
        texts.attributes = record.and_then(|record| record.attributes.clone());
    }

    #[cold]
    fn copy_parts(&mut self, at: usize, record: &OfferedRecord) {
        self.parts.extend(record.roles().map(|offered| RolePart { at, offered: offered.clone() }));
    }

    /// Removes the agent at this position, if there is one.
    pub(super) fn leave_out(&mut self, at: usize) {
        let texts = self.texts.as_deref().unwrap_or(&self.last.texts).get(at);
        if texts.is_some_and(|texts| texts.name.is_some()) {
            *self.texts_at(at) = AgentTexts::default();
        }
        self.is_any_new |= self.last.rows.get(at).is_some_and(|last| last.generation().is_some());
        *self.row_at(at) = AgentRow::EMPTY;
    }

    fn texts_at(&mut self, at: usize) -> &mut AgentTexts {
        let texts = self.texts.get_or_insert_with(|| self.last.texts.to_vec());
        if texts.len() <= at {
            texts.resize(at + 1, AgentTexts::default());
        }
        &mut texts[at]
    }

    #[inline(always)]
    fn row_at(&mut self, at: usize) -> &mut AgentRow {
        if self.rows.len() <= at {
            self.extend_rows(at);
        }
        &mut self.rows[at]
    }

    /// Copies the last shard's rows, unless they are copied, and adds empty ones up to this position.
    #[cold]
    fn extend_rows(&mut self, at: usize) {
        if self.rows.is_empty() {
            self.rows = self.spare.copy(&self.last.rows);
        }
        self.rows.resize(self.rows.len().max(at + 1), AgentRow::EMPTY);
    }

    /// Returns the shard; the last one if nothing has changed.
    pub(super) fn finish(self) -> Arc<AgentShard> {
        let ShardDraft { last, rows, texts, mut parts, .. } = self;
        if rows.is_empty() {
            return Arc::clone(last);
        }
        // Those of agents whose records were not read.
        let read = parts.len();
        let stays = |part: &&RolePart| {
            let record = rows.get(part.at).and_then(|row| row.record.as_ref());
            let is_read = parts.binary_search_by_key(&part.at, |part| part.at).is_ok();
            !is_read && record.is_some_and(|record| !record.is_plain)
        };
        let stay: Vec<RolePart> = last.parts.iter().filter(stays).cloned().collect();
        parts.extend(stay);
        if read > 0 && parts.len() > read {
            parts.sort_by_key(|part| part.at);
        }
        let texts = texts.map_or_else(|| Arc::clone(&last.texts), Arc::from);
        Arc::new(AgentShard::new(rows, texts, parts.into()))
    }
}
