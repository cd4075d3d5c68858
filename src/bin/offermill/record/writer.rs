//! The two files of a journal.

use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use offermill::engine::journal::{Entry, Journal};
use offermill::{Config, Timestamp};
use rustix::fs::OFlags;
use serde::Serialize;

use super::lines;
use crate::scenario::reader::{FILE_BYTES_MAX, LINE_BYTES_MAX};
use crate::scenario::{Answer, Head, line};

/// So many bytes of answers wait for their events to be in the file, roughly.
const DUE_MAX: usize = 64 * 1024;

/// A journal's files while they are written. Whatever ends this process, no answer is in its file before its event is.
#[derive(Debug)]
pub(crate) struct JournalFiles {
    events: Sheet,
    answers: Sheet,
    /// Answers to events that may not be in their file yet.
    due: Vec<Answer>,
    due_bytes: usize,
    /// Answers that belong to the next event.
    early: Vec<Answer>,
    /// The next event's number.
    ev: u64,
    /// The last event's moment.
    last: Timestamp,
}

/// One of the files, locked. One that was made here goes again if nothing came to be recorded.
#[derive(Debug)]
struct Sheet {
    path: PathBuf,
    file: BufWriter<File>,
    bytes: u64,
    is_fleeting: bool,
}

impl Drop for Sheet {
    fn drop(&mut self) {
        if self.is_fleeting {
            // What can't be removed is as good as empty.
            let _left = fs::remove_file(&self.path);
        }
    }
}

impl JournalFiles {
    /// Makes both files, readable only to their owner. An empty one that is there already will do, as will a device.
    ///
    /// # Errors
    /// With the file's name, when one is there and isn't empty, or is another run's, or can't be made.
    pub(crate) fn create(path: &Path) -> Result<JournalFiles, (PathBuf, io::Error)> {
        let mut answers = path.as_os_str().to_owned();
        answers.push(".answers");
        let (events, answers) = (Sheet::create(path)?, Sheet::create(Path::new(&answers))?);
        let (due, early, last) = (Vec::new(), Vec::new(), Timestamp::ORIGIN);
        Ok(JournalFiles { events, answers, due, due_bytes: 0, early, ev: 0, last })
    }

    /// Writes the first line of each.
    ///
    /// # Errors
    /// When that fails.
    pub(crate) fn begin(&mut self, head: &Head, config: &Config) -> io::Result<()> {
        self.events.write(head)?;
        self.due.push(lines::init(config));
        Ok(())
    }
}

impl Journal for JournalFiles {
    fn record(&mut self, entry: &Entry) -> io::Result<()> {
        let answers = lines::answers(self.ev, entry);
        let Some(event) = lines::event(entry, self.last) else {
            self.early.extend(answers);
            return Ok(());
        };
        self.due_bytes += self.events.write(&event)?;
        (self.events.is_fleeting, self.answers.is_fleeting) = (false, false);
        self.ev += 1;
        self.last = entry.at;
        self.due.append(&mut self.early);
        self.due.extend(answers);
        // Answers are about as long as what they answer to.
        if self.due_bytes > DUE_MAX { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.events.flush()?;
        self.due_bytes = 0;
        self.due.drain(..).try_for_each(|answer| self.answers.write(&answer).map(drop))?;
        self.answers.flush()
    }
}

impl Sheet {
    fn create(path: &Path) -> Result<Sheet, (PathBuf, io::Error)> {
        let told = |error| (path.to_owned(), error);
        let is_fleeting = !path.exists();
        let mut options = OpenOptions::new();
        // A pipe that nobody reads is refused, not waited for.
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        options.create(true).append(true).mode(0o600).custom_flags(flags);
        let file = options.open(path).map_err(told)?;
        let metadata = file.metadata().map_err(told)?;
        if metadata.is_file() {
            take_over(&file).map_err(told)?;
        }
        Ok(Sheet { path: path.to_owned(), file: BufWriter::new(file), bytes: 0, is_fleeting })
    }

    /// Returns how many bytes it wrote.
    fn write(&mut self, value: &impl Serialize) -> io::Result<usize> {
        let line = line(value);
        self.bytes += line.len() as u64;
        if line.len() > LINE_BYTES_MAX || self.bytes > FILE_BYTES_MAX {
            let why = format!("{}: it would be too long to be read again", self.path.display());
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
        }
        self.file.write_all(line.as_bytes()).map_err(|error| self.named(&error))?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush().map_err(|error| self.named(&error))
    }

    fn named(&self, error: &io::Error) -> io::Error {
        io::Error::new(error.kind(), format!("{}: {error}", self.path.display()))
    }
}

/// Locks a file, so that no other run can have it, and hides it from others.
fn take_over(file: &File) -> io::Result<()> {
    file.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => io::Error::other("another run writes it"),
        TryLockError::Error(error) => error,
    })?;
    // Not before: another run may have written just now.
    if file.metadata()?.len() > 0 {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    file.set_permissions(Permissions::from_mode(0o600))
}
