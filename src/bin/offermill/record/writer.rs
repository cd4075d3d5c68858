//! Writes the two files of a journal: events and answers.

use std::fs::{self, File, Permissions, TryLockError};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use offermill::engine::journal::{Journal, JournalEntry};
use offermill::private_files::{create_file, lock_with_retry, open_output, resolve};
use offermill::{Config, Timestamp};
use serde::Serialize;

use super::convert;
use crate::scenario::reader::{FILE_BYTES_MAX, LINE_BYTES_MAX};
use crate::scenario::{AnswerLine, ScenarioHead, line};

/// Answers are flushed after their events when about this many bytes of events are pending.
const PENDING_BYTES_MAX: usize = 64 * 1024;

/// The files of a journal. An answer is written only after its event, even if the process is killed in between.
#[derive(Debug)]
pub(crate) struct JournalFiles {
    events: JournalFile,
    answers: JournalFile,
    /// Answers to events that may not have been written yet.
    pending: Vec<AnswerLine>,
    /// The number of bytes of events since the last flush.
    pending_bytes: usize,
    /// Answers of timer ticks, which belong to the next event.
    early: Vec<AnswerLine>,
    /// The next event's number.
    ev: u64,
    /// The last event's time.
    last: Timestamp,
}

/// One of the files, locked. If this process created it, it is removed again unless something is recorded.
#[derive(Debug)]
struct JournalFile {
    path: PathBuf,
    file: BufWriter<File>,
    bytes: u64,
    is_temporary: bool,
}

impl Drop for JournalFile {
    fn drop(&mut self) {
        if self.is_temporary {
            // If it can't be removed, an empty file remains.
            let _left = fs::remove_file(&self.path);
        }
    }
}

impl JournalFiles {
    /// Creates both files, readable by their owner only. An existing file is used if it is empty or a device.
    ///
    /// # Errors
    /// With the path, if a file exists and isn't empty, belongs to another user, may be written by others, is locked by
    /// another run, or can't be created.
    pub(crate) fn create(path: &Path) -> Result<JournalFiles, (PathBuf, io::Error)> {
        let mut answers = path.as_os_str().to_owned();
        answers.push(".answers");
        Ok(JournalFiles {
            events: JournalFile::create(path)?,
            answers: JournalFile::create(Path::new(&answers))?,
            pending: Vec::new(),
            pending_bytes: 0,
            early: Vec::new(),
            ev: 0,
            last: Timestamp::ORIGIN,
        })
    }

    /// Writes the first line of both files.
    ///
    /// # Errors
    /// If a file can't be written.
    pub(crate) fn begin(&mut self, head: &ScenarioHead, config: &Config) -> io::Result<()> {
        self.events.write(head)?;
        self.pending.push(convert::init(config));
        Ok(())
    }
}

impl Journal for JournalFiles {
    fn record(&mut self, entry: &JournalEntry) -> io::Result<()> {
        let answers = convert::answers(self.ev, entry);
        let Some(event) = convert::event(entry, self.last) else {
            self.early.extend(answers);
            return Ok(());
        };
        self.pending_bytes += self.events.write(&event)?;
        self.events.is_temporary = false;
        self.answers.is_temporary = false;
        self.ev += 1;
        self.last = entry.at;
        self.pending.append(&mut self.early);
        self.pending.extend(answers);
        // Answers are about as long as their events.
        if self.pending_bytes > PENDING_BYTES_MAX { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.events.flush()?;
        self.pending_bytes = 0;
        self.pending.drain(..).try_for_each(|answer| self.answers.write(&answer).map(drop))?;
        self.answers.flush()
    }
}

impl JournalFile {
    fn create(path: &Path) -> Result<JournalFile, (PathBuf, io::Error)> {
        let with_path = |error| (path.to_owned(), error);
        let target = resolve(path).map_err(with_path)?;
        let (file, is_temporary) = match create_file(&target) {
            Ok(file) => (file, true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                (open_output(&target).map_err(with_path)?, false)
            }
            Err(error) => return Err(with_path(error)),
        };
        let metadata = file.metadata().map_err(with_path)?;
        if metadata.is_file() {
            lock(&file).map_err(with_path)?;
        }
        Ok(JournalFile {
            path: path.to_owned(),
            file: BufWriter::new(file),
            bytes: 0,
            is_temporary,
        })
    }

    /// Writes a line and returns its length in bytes.
    fn write(&mut self, value: &impl Serialize) -> io::Result<usize> {
        let line = line(value);
        self.bytes += line.len() as u64;
        if line.len() > LINE_BYTES_MAX || self.bytes > FILE_BYTES_MAX {
            let why = format!("{}: it would become too long for a replay", self.path.display());
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
        }
        self.file.write_all(line.as_bytes()).map_err(|error| self.with_path(&error))?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush().map_err(|error| self.with_path(&error))
    }

    fn with_path(&self, error: &io::Error) -> io::Error {
        io::Error::new(error.kind(), format!("{}: {error}", self.path.display()))
    }
}

/// Locks a file against other runs, and makes it readable by its owner only.
fn lock(file: &File) -> io::Result<()> {
    lock_with_retry(file).map_err(|error| match error {
        TryLockError::WouldBlock => io::Error::other("another run is writing it"),
        TryLockError::Error(error) => error,
    })?;
    // Checked after locking: another run may have written before it released the lock.
    if file.metadata()?.len() > 0 {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    file.set_permissions(Permissions::from_mode(0o600))
}
