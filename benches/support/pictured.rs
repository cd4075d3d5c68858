//! What can be asked for pictures by one thread while others work.

use std::hint::black_box;

use offermill::Kernel;

use super::NOW;
use super::locked::Locked;

pub(crate) trait Pictured: Send {
    /// Takes the sums.
    fn totals(&self);

    /// Takes a picture of all executors and agents; says whether it is one moment's.
    fn picture(&self) -> bool;

    /// Asks why more executors are waited for.
    fn explain(&self);
}

impl Pictured for Kernel {
    fn totals(&self) {
        black_box(Kernel::totals(self));
    }

    fn picture(&self) -> bool {
        black_box(self.snapshot(NOW)).exact
    }

    fn explain(&self) {
        black_box(Kernel::explain(self, NOW));
    }
}

impl Pictured for Locked {
    fn totals(&self) {
        black_box(self.plain().totals());
    }

    /// No other thread changes anything meanwhile; the rows are returned after the lock is released.
    fn picture(&self) -> bool {
        let picture = self.plain().picture();
        black_box(picture);
        true
    }

    fn explain(&self) {
        let explanation = self.plain().explain(NOW);
        black_box(explanation);
    }
}
