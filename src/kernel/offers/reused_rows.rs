//! [`ReusedRows`]: rows of which each is written anew in every batch that has rows, in any order.

use std::fmt;
use std::ops::{Deref, DerefMut};

/// Rows in reused memory. They are not filled with blanks before they are written: that would cost a row as much as
/// writing it.
pub(crate) struct ReusedRows<T> {
    /// The rows of this batch, and further ones of earlier batches.
    rows: Vec<T>,
    used: usize,
}

impl<T: fmt::Debug> fmt::Debug for ReusedRows<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&**self).finish()
    }
}

impl<T> Default for ReusedRows<T> {
    fn default() -> ReusedRows<T> {
        ReusedRows { rows: Vec::new(), used: 0 }
    }
}

impl<T: Clone> ReusedRows<T> {
    pub(crate) fn clear(&mut self) {
        self.used = 0;
    }

    /// Makes it `count` rows, which say anything until they are written. `blank` is for those that there never were.
    #[inline]
    pub(crate) fn begin(&mut self, count: u32, blank: T) {
        self.used = count as usize;
        if self.rows.len() < self.used {
            self.rows.resize(self.used, blank);
        }
    }
}

impl<T> Deref for ReusedRows<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        &self.rows[..self.used]
    }
}

impl<T> DerefMut for ReusedRows<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.rows[..self.used]
    }
}
