//! The baseline behind one lock: what one writes when somebody else is there, too.
//!
//! A [`Plain`] loop in a mutex that each thread takes for a batch or an update, and no longer. Its decisions are the
//! loop's, and so the kernel's; its answers are in the thread's own rows.

use std::hint::black_box;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use offermill::resources::MilliCpus;
use offermill::{Config, StatusUpdate, TaskState};

use super::NOW;
use super::fleet::Batch;
use super::plain::{Answer, Placed, Plain};
use super::scheduler::{Scheduler, reuse};

/// A thread's part in a loop that several share.
#[derive(Clone)]
pub(crate) struct Locked {
    plain: Arc<Mutex<Plain>>,
    answer: Answer,
    noted: Vec<Placed>,
    /// Whether ids are plain numbers.
    numbered: bool,
}

impl Locked {
    /// The first thread's; a clone is another's.
    pub(crate) fn new(config: &Config, constraint: &str, cap: MilliCpus) -> Locked {
        Locked::over(Plain::new(config, constraint, cap))
    }

    pub(crate) fn over(plain: Plain) -> Locked {
        let (numbered, plain) = (plain.is_numbered(), Arc::new(Mutex::new(plain)));
        Locked { plain, answer: Answer::default(), noted: Vec::new(), numbered }
    }

    pub(crate) fn plain(&self) -> MutexGuard<'_, Plain> {
        self.plain.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Scheduler for Locked {
    fn answer(&mut self, batch: Batch) {
        let mut plain = self.plain.lock().unwrap_or_else(PoisonError::into_inner);
        plain.answer(batch, NOW, &mut self.answer);
        drop(plain);
        black_box(&self.answer);
    }

    fn note(&mut self) {
        self.noted.extend_from_slice(&self.answer.placed);
    }

    fn noted(&mut self, names: &mut Vec<String>) {
        // Without the lock: ids' texts are the cluster's work.
        reuse(names, self.noted.drain(..), |placed, name| placed.write_name(self.numbered, name));
    }

    fn update(&mut self, name: &str, state: TaskState) {
        black_box(self.plain().update(&StatusUpdate::new(name, state), NOW));
    }
}
