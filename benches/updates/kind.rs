//! What updates say, and whom they say it to.

use offermill::{IdScheme, Kernel, TaskState};

use crate::live_executors::LiveExecutors;
use crate::support::locked::Locked;
use crate::support::plain::Plain;
use crate::support::scheduler::{Baseline, Ours, Scheduler};
use crate::support::{self, ENOUGH, MET, agreement};

/// A kind of update.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An executor has ended.
    Ended,
    /// An executor that was launched runs.
    Running,
    /// An executor runs, as was known before: a cluster says so again and again.
    Duplicate,
    /// An executor runs that a former run has started, and this one doesn't know.
    Unknown,
    /// An executor has ended; its id is a mere number.
    EndedNumbered,
}

impl Kind {
    pub(crate) const ALL: [Kind; 5] =
        [Kind::Ended, Kind::Running, Kind::Duplicate, Kind::Unknown, Kind::EndedNumbered];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Ended => "ended",
            Kind::Running => "running",
            Kind::Duplicate => "duplicate",
            Kind::Unknown => "unknown id",
            Kind::EndedNumbered => "ended, plain numeric id",
        }
    }

    pub(crate) fn state(self) -> TaskState {
        match self {
            Kind::Ended | Kind::EndedNumbered => TaskState::Finished,
            Kind::Running | Kind::Duplicate | Kind::Unknown => TaskState::Running,
        }
    }

    pub(crate) fn kernel(self) -> Kernel {
        let config = support::config(MET, None);
        match self {
            Kind::EndedNumbered => Kernel::new(config, IdScheme::plain()),
            _ => support::kernel(&config),
        }
    }

    fn plain(self) -> Plain {
        let plain = Plain::new(&support::config(MET, None), MET, ENOUGH);
        if self == Kind::EndedNumbered { plain.numbered() } else { plain }
    }

    pub(crate) fn baseline(self) -> Baseline {
        Baseline::over(self.plain())
    }

    pub(crate) fn locked(self) -> Locked {
        Locked::over(self.plain())
    }

    /// Prepares executors to which an update of this kind applies, unless enough are left.
    pub(crate) fn prepare<D: Scheduler>(self, executors: &mut LiveExecutors<D>) {
        match self {
            Kind::Ended | Kind::EndedNumbered | Kind::Running => executors.begin_anew(),
            Kind::Duplicate if executors.is_empty() => {
                executors.begin_anew();
                executors.all_run();
            }
            Kind::Unknown if executors.is_empty() => {
                executors.unmatched(|number| format!("bench-s44we7-{number}.{number}"));
            }
            Kind::Duplicate | Kind::Unknown => {}
        }
    }

    /// Shows that kernel and baseline make the same of updates, under this kind's ids.
    pub(crate) fn prove(self) {
        use TaskState::{Failed, Finished, Running};
        let mut ours = LiveExecutors::new(Ours::new(&self.kernel()));
        let mut baseline = LiveExecutors::new(self.baseline());
        ours.begin_anew();
        baseline.begin_anew();
        let LiveExecutors { scheduler: ours, names: our_names, .. } = ours;
        let LiveExecutors { scheduler: baseline, names: plain_names, .. } = baseline;
        let mut schedulers = (ours, baseline);
        for names in our_names.iter().zip(&plain_names) {
            let names = (names.0.as_str(), names.1.as_str());
            let number = our_names.len() + 1;
            let unknown = format!("bench-s44we7-{number}.0");
            let unplaced = number.to_string();
            for (names, state) in [
                (names, Running),
                (names, Running),
                ((unknown.as_str(), unknown.as_str()), Running),
                ((unplaced.as_str(), unplaced.as_str()), Finished),
                (names, Finished),
                (names, Running),
                (names, Failed),
            ] {
                agreement::check_update((&mut schedulers.0, &mut schedulers.1), names, state);
            }
        }
    }
}
