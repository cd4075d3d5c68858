//! A thread that syncs a file to its disk at most once a second while it grows, so that a failure of the machine loses
//! little of it.

use std::io::{self, ErrorKind};
use std::sync::mpsc::{RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

/// The time between two syncs.
pub(super) const SYNC_INTERVAL: Duration = Duration::from_secs(1);

/// The thread, which ends once this is dropped. Nothing waits for it: a file system may hang.
#[derive(Debug)]
pub(super) struct PeriodicSync {
    /// Has a message if something was written that no sync has begun to bring to the disk.
    written: SyncSender<()>,
    /// Why the last sync failed. There are no further ones.
    error: Arc<OnceLock<String>>,
    _stop: Sender<()>,
}

impl PeriodicSync {
    /// Starts the thread, which calls `sync` after writes, once per `interval` at most.
    ///
    /// # Errors
    /// If no thread can be started.
    pub(super) fn start(
        interval: Duration,
        sync: impl Fn() -> io::Result<()> + Send + 'static,
    ) -> io::Result<PeriodicSync> {
        let (stop, stopped) = channel();
        let (written, waiting) = sync_channel(1);
        let error = Arc::new(OnceLock::new());
        let failed = Arc::clone(&error);
        let run = move || {
            while waiting.recv().is_ok() {
                match sync() {
                    Ok(()) => {}
                    Err(error) if is_unsupported(&error) => return,
                    Err(error) => {
                        let _first = failed.set(error.to_string());
                        return;
                    }
                }
                if stopped.recv_timeout(interval) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
        };
        thread::Builder::new().name("offermill-sync".to_owned()).spawn(run)?;
        Ok(PeriodicSync { written, error, _stop: stop })
    }

    /// Something was written.
    pub(super) fn written(&self) {
        // A message that is there already stands for this write as well; without a thread there is no sync.
        let _sent = self.written.try_send(());
    }

    /// Why the file can't be synced, if that has failed.
    pub(super) fn error(&self) -> Option<&str> {
        self.error.get().map(String::as_str)
    }
}

/// Whether a file of this kind, or on this file system, can't be synced at all: what is written is there all the same.
pub(super) fn is_unsupported(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, RecvTimeoutError};

    use super::*;

    const SOON: Duration = Duration::from_millis(1);

    /// Starts syncs each of which sends a message, and fails with this error if there is one.
    fn start(fails: Option<ErrorKind>) -> (PeriodicSync, Receiver<()>) {
        let (tell, told) = channel();
        let sync = move || {
            let _sent = tell.send(());
            fails.map_or(Ok(()), |kind| Err(io::Error::new(kind, "no disk")))
        };
        (PeriodicSync::start(SOON, sync).unwrap(), told)
    }

    /// Goal: what was written is synced, what wasn't isn't, and the thread ends with its owner. Method: syncs that
    /// each send a message, without a write, and after writes.
    #[test]
    fn what_was_written_is_synced() {
        let (periodic, told) = start(None);
        let none = || told.recv_timeout(Duration::from_millis(50));
        assert_eq!(none(), Err(RecvTimeoutError::Timeout));
        for _ in 0..3 {
            periodic.written();
            assert_eq!(told.recv(), Ok(()));
            assert_eq!(none(), Err(RecvTimeoutError::Timeout), "once is enough");
        }
        assert_eq!(periodic.error(), None);
        drop(periodic);
        assert!(told.recv().is_err());
    }

    /// Goal: a sync that fails is told and is the last one, unless the file can't be synced at all. Method: each error.
    #[test]
    fn errors_are_told() {
        for (kind, expected) in
            [(ErrorKind::Other, Some("no disk")), (ErrorKind::InvalidInput, None)]
        {
            let (periodic, told) = start(Some(kind));
            periodic.written();
            assert_eq!(told.recv(), Ok(()));
            assert!(told.recv().is_err(), "the thread has ended");
            assert_eq!(periodic.error(), expected);
        }
    }
}
