//! What happens to a master, as lines of its log.

use offermill::cluster::standalone::master::{MasterNotice, NoticeLevel};
use offermill::cluster::standalone::server::MasterObserver;

use crate::output::log::{Log, LogLevel};

/// Writes each notice to the log, but for a failed journal, which the end of the master says.
pub(super) fn observer(log: Log) -> MasterObserver {
    MasterObserver::new(move |notice: &MasterNotice| {
        if matches!(notice, MasterNotice::JournalFailed { .. }) {
            return;
        }
        let level = match notice.level() {
            NoticeLevel::Error => LogLevel::Error,
            NoticeLevel::Warn => LogLevel::Warn,
            NoticeLevel::Info => LogLevel::Info,
            NoticeLevel::Debug => LogLevel::Debug,
        };
        log.write(level, &notice.to_string());
    })
}
