//! [`PlacedBatch`]: the executors that a batch of offers places, with their texts in one piece of memory.
//!
//! A handler makes one for each batch and shares it with the control thread, which builds a notice from each row. So
//! few messages are sent for a batch, and no text is allocated on one thread to be freed on another.

use std::fmt::{self, Write as _};
use std::ops::Range;

use super::notice::PlacedExecutor;
use crate::ids::ExecutorId;
use crate::offer::Offer;
use crate::resources::ExecutorResources;

/// By how many digits the numbers in an executor's id may be longer than those of the batch's first.
const DIGITS_MORE: usize = 2;

/// Executors that were placed, in the order of their ACCEPTs.
#[derive(Debug, Default)]
pub(crate) struct PlacedBatch {
    /// For each row, its executor's id as the cluster knows it, its agent's id, and its host name.
    text: String,
    rows: Vec<PlacedRow>,
}

#[derive(Debug)]
struct PlacedRow {
    id: ExecutorId,
    resources: ExecutorResources,
    tag: Option<u64>,
    /// The start of the row's text, and the ends of its three parts.
    start: usize,
    executor_end: usize,
    agent_id_end: usize,
    hostname_end: usize,
}

impl PlacedBatch {
    /// Creates an empty batch with room for `executors`.
    pub(super) fn with_capacity(executors: usize) -> PlacedBatch {
        PlacedBatch { text: String::new(), rows: Vec::with_capacity(executors) }
    }

    /// Adds an executor that was placed on `offer`.
    pub(super) fn push(
        &mut self,
        id: ExecutorId,
        executor: impl fmt::Display,
        offer: Option<&Offer<'_>>,
        resources: ExecutorResources,
        tag: Option<u64>,
    ) {
        let text = &mut self.text;
        let start = text.len();
        // Writing to a string doesn't fail.
        let _written = write!(text, "{executor}");
        let executor_end = text.len();
        text.push_str(offer.map_or("", |offer| offer.agent_id));
        let agent_id_end = text.len();
        text.push_str(offer.map_or("", |offer| offer.hostname));
        let hostname_end = text.len();
        self.rows.push(PlacedRow {
            id,
            resources,
            tag,
            start,
            executor_end,
            agent_id_end,
            hostname_end,
        });
        if let [first] = &*self.rows {
            // The others' texts are about as long: numbers may have a few digits more.
            let each = first.hostname_end - first.start + DIGITS_MORE;
            self.text.reserve(each * (self.rows.capacity() - 1));
        }
    }

    /// The number of executors.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The ids of these rows' executors, as the cluster knows them. Rows that don't exist are left out.
    pub(super) fn names(&self, rows: Range<usize>) -> impl Iterator<Item = &str> {
        let rows = self.rows.get(rows).unwrap_or_default();
        rows.iter().map(|row| self.part(row.start..row.executor_end))
    }

    /// The executors of these rows, as notices report them. Rows that don't exist are left out.
    pub(crate) fn executors(&self, rows: Range<usize>) -> impl Iterator<Item = PlacedExecutor> {
        self.rows.get(rows).unwrap_or_default().iter().map(|row| PlacedExecutor {
            id: row.id,
            executor: self.part(row.start..row.executor_end).to_owned(),
            agent_id: self.part(row.executor_end..row.agent_id_end).to_owned(),
            hostname: self.part(row.agent_id_end..row.hostname_end).to_owned(),
            resources: row.resources,
            tag: row.tag,
        })
    }

    fn part(&self, range: Range<usize>) -> &str {
        self.text.get(range).unwrap_or_default()
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    /// Goal: each executor is reported with its own texts. Method: rows with long, empty and no texts, and names of
    /// some rows.
    #[test]
    fn rows_keep_their_texts() {
        let offers =
            [Offer::new("o", "S1", "host.example", &[], &[]), Offer::new("o", "", "é", &[], &[])];
        let mut batch = PlacedBatch::with_capacity(3);
        let places = [offers.first(), offers.get(1), None];
        for (sequence, offer) in (7..).zip(places) {
            let id = ExecutorId { sequence, slot: 0 };
            let name = format_args!("e.{sequence}");
            batch.push(id, name, offer, ExecutorResources::NONE, Some(sequence));
        }
        let executors: Vec<_> = batch.executors(0..batch.len()).collect();
        let texts = executors.iter().map(|it| (&*it.executor, &*it.agent_id, &*it.hostname));
        let expected = [("e.7", "S1", "host.example"), ("e.8", "", "é"), ("e.9", "", "")];
        assert_eq!(texts.collect::<Vec<_>>(), expected);
        assert_eq!((executors[2].id.sequence(), executors[2].tag), (9, Some(9)));
        assert_eq!(batch.names(1..3).collect::<Vec<_>>(), ["e.8", "e.9"]);
        assert_eq!((batch.names(2..4).count(), batch.len()), (0, 3));
    }
}
