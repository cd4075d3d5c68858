//! Which executors of a run on this machine were which tasks, for `offermill logs`: a file beside the sandboxes of the
//! run, `sandboxes/<run>/tasks`, with a JSON object a line, in the order in which attempts were placed.

use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::Duration;

use offermill::private_files::PrivateFolder;
use serde::{Deserialize, Serialize};

/// The file's name. Beside it are the folders of agents, which are called otherwise.
const FILE: &str = "tasks";
/// The longest line that is read, in bytes. An id has fewer, even with all its characters escaped.
const LINE_BYTES_MAX: u64 = 8 << 10;

/// How many attempts may wait to be written.
const WAITING_MAX: usize = 10_000;

/// An attempt of a task.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct IndexedAttempt {
    /// The task's id.
    pub(crate) id: String,
    /// The executor that the attempt was.
    pub(crate) executor: String,
}

/// The index of a run that goes on. A thread of its own writes it: a file system may hang.
#[derive(Debug)]
pub(crate) struct AttemptIndex {
    attempts: SyncSender<IndexedAttempt>,
    /// How the thread has ended.
    ended: Receiver<io::Result<()>>,
}

impl AttemptIndex {
    /// Starts to write the index of a run, in the folder of all runs' sandboxes.
    ///
    /// # Errors
    /// If no thread can be started.
    pub(crate) fn start(sandboxes: &Path, run: &str) -> io::Result<AttemptIndex> {
        let (sandboxes, run) = (sandboxes.to_owned(), run.to_owned());
        let (attempts, waiting) = sync_channel(WAITING_MAX);
        let (end, ended) = sync_channel(1);
        let write = move || {
            let written = create(&sandboxes, &run).and_then(|file| write_all(file, &waiting));
            // Before attempts are refused, so that a caller that adds one finds the reason.
            let _gone = end.send(written);
            drop(waiting);
        };
        thread::Builder::new().name("offermill-index".to_owned()).spawn(write)?;
        Ok(AttemptIndex { attempts, ended })
    }

    /// Adds an attempt. Doesn't wait until it is written.
    ///
    /// # Errors
    /// If earlier ones couldn't be written, or are not written in time. Then no other can be added.
    pub(crate) fn add(&self, id: &str, executor: &str) -> io::Result<()> {
        let attempt = IndexedAttempt { id: id.to_owned(), executor: executor.to_owned() };
        self.attempts.try_send(attempt).map_err(|error| match error {
            TrySendError::Full(_) => io::Error::other("it isn't written in time"),
            TrySendError::Disconnected(_) => match self.ended.try_recv() {
                Ok(Err(error)) => error,
                _ => io::Error::other("its thread has ended"),
            },
        })
    }

    /// Waits until all is written, but no longer than this.
    ///
    /// # Errors
    /// If something couldn't be written, or isn't in time.
    pub(crate) fn finish(self, timeout: Duration) -> io::Result<()> {
        drop(self.attempts);
        let ended = self.ended.recv_timeout(timeout);
        ended.unwrap_or_else(|_| Err(io::Error::other("it isn't written in time")))
    }
}

fn create(sandboxes: &Path, run: &str) -> io::Result<File> {
    PrivateFolder::open_existing(sandboxes)?.existing_subfolder(run)?.create_file(FILE)
}

/// Writes attempts as they come, until no more can come.
fn write_all(mut file: File, attempts: &Receiver<IndexedAttempt>) -> io::Result<()> {
    while let Ok(attempt) = attempts.recv() {
        let mut line = serde_json::to_vec(&attempt)?;
        line.push(b'\n');
        file.write_all(&line)?;
    }
    Ok(())
}

/// Calls `found` with each attempt in the index of a run, whose folder is given. Returns false if the run has none: its
/// executors are no tasks.
///
/// # Errors
/// If the index can't be read.
pub(crate) fn read_attempts(
    run: &PrivateFolder,
    mut found: impl FnMut(IndexedAttempt),
) -> io::Result<bool> {
    let file = match run.open_file(FILE) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    let mut input = BufReader::new(file);
    let mut line = Vec::new();
    loop {
        line.clear();
        if Read::take(&mut input, LINE_BYTES_MAX).read_until(b'\n', &mut line)? == 0 {
            return Ok(true);
        }
        // The last line may be written just now.
        if let Ok(attempt) = serde_json::from_slice(&line) {
            found(attempt);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Far longer than any step here takes.
    const PATIENCE: Duration = Duration::from_secs(60);

    /// Goal: attempts are read as they were written, whatever their ids, and half a line is none. Method: ids of all
    /// kinds, and the longest one of characters that are escaped; half a line; a run without index.
    #[test]
    fn attempts_are_read_as_they_were_written() {
        let folder = tempfile::tempdir().unwrap();
        let sandboxes = PrivateFolder::open(folder.path()).unwrap();
        let run = sandboxes.create_folder("local-1-1").unwrap();
        assert!(!read_attempts(&run, |attempt| panic!("{attempt:?}")).unwrap());
        let index = AttemptIndex::start(folder.path(), "local-1-1").unwrap();
        let longest = "\"".repeat(1024);
        let ids = ["lint", "7", "a b/../c", "\u{1f980}", &longest, "lint"];
        ids.iter().for_each(|id| index.add(id, &format!("{}-0.0", id.len())).unwrap());
        index.finish(PATIENCE).unwrap();
        let name = run.path().join(FILE);
        let mut file = File::options().append(true).open(name).unwrap();
        file.write_all(br#"{"id":"un"#).unwrap();
        let mut read = Vec::new();
        assert!(read_attempts(&run, |attempt| read.push((attempt.id, attempt.executor))).unwrap());
        let expected = ids.map(|id| (id.to_owned(), format!("{}-0.0", id.len())));
        assert_eq!(read, expected);
    }

    /// Goal: an index that can't be written says why, when something is added or at the end, and nobody waits for one
    /// that hangs. Method: a run that has an index already; a pipe in the place of a file, which nobody reads.
    #[test]
    fn what_is_not_written_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let sandboxes = PrivateFolder::open(folder.path()).unwrap();
        let run = sandboxes.create_folder("local-1-1").unwrap();
        run.create_file(FILE).unwrap();
        let index = AttemptIndex::start(folder.path(), "local-1-1").unwrap();
        let why = loop {
            if let Err(error) = index.add("a", "a-0.0") {
                break error;
            }
        };
        // The thread may have been slower than all that can wait.
        let is_expected = |error: &io::Error| error.kind() == ErrorKind::AlreadyExists;
        assert!(is_expected(&why) || is_expected(&index.finish(PATIENCE).unwrap_err()), "{why}");

        let (reader, writer) = io::pipe().unwrap();
        let (attempts, waiting) = sync_channel(WAITING_MAX);
        let (end, ended) = sync_channel(1);
        let file = File::from(std::os::fd::OwnedFd::from(writer));
        thread::spawn(move || end.send(write_all(file, &waiting)));
        let index = AttemptIndex { attempts, ended };
        let long = "x".repeat(200);
        let why = loop {
            if let Err(error) = index.add(&long, &long) {
                break error;
            }
        };
        assert_eq!(why.to_string(), "it isn't written in time");
        assert!(index.finish(Duration::ZERO).is_err());
        drop(reader);
    }
}
