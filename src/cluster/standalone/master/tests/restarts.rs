//! Masters end, and others begin with their journals.

use std::time::Duration;

use super::world::TestWorld;
use crate::cluster::standalone::master::{LaunchKey, MasterSettings, StandaloneMaster};
use crate::resources::Scalar;

impl TestWorld {
    /// As [`TestWorld::restart_master`], with a journal whose last entries are lost.
    pub(super) fn restart_master_without(&mut self, last: usize) {
        self.journal.truncate(self.journal.len().saturating_sub(last));
        self.restart_master();
    }

    /// The master ends without a goodbye, and another begins with its journal.
    pub(super) fn restart_master(&mut self) {
        self.undelivered.clear();
        self.term += 1;
        self.now = Duration::ZERO;
        for worker in &mut self.workers {
            worker.connection = None;
        }
        for framework in &mut self.frameworks {
            framework.connection = None;
            framework.offers.clear();
        }
        let settings = settings(self.term, self.max_cores);
        self.master = StandaloneMaster::new(settings, self.journal.clone());
        self.deliver();
    }

    /// An operator tears down what the master knows of frameworks. Without the end of a journal it may know some again
    /// that are gone.
    pub(super) fn tear_down_all(&mut self) {
        for framework in self.master.overview().frameworks {
            assert!(self.master.tear_down_of(&framework.id, None, self.now));
            self.deliver();
        }
    }
}

/// The settings of a master of this term.
pub(super) fn settings(term: u64, max_cores: Option<Scalar>) -> MasterSettings {
    let recovery_timeout = Duration::from_secs(15);
    let launch_key = LaunchKey::try_from("0f".repeat(32)).unwrap();
    MasterSettings {
        cluster: "c".to_owned(),
        term,
        launch_key,
        max_cores,
        recovery_timeout,
        worker_timeout: Duration::from_secs(60),
    }
}
