//! The two files of a journal.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use offermill::engine::journal::{Entry, Journal};
use offermill::{Config, Timestamp};
use serde::Serialize;

use super::lines;
use crate::scenario::reader::{FILE_BYTES_MAX, LINE_BYTES_MAX};
use crate::scenario::{Answer, Head, line};

/// So many bytes of answers wait for their events to be in the file, roughly.
const DUE_MAX: usize = 64 * 1024;

/// A journal's files while they are written. Whatever ends this process, no answer is in its file before its event is.
#[derive(Debug)]
pub(crate) struct Files {
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

#[derive(Debug)]
struct Sheet {
    path: PathBuf,
    file: BufWriter<File>,
    bytes: u64,
}

impl Files {
    /// Makes both files, readable only to their owner. An empty one that is there already will do, as will what isn't
    /// a file, such as a pipe.
    ///
    /// # Errors
    /// With the file's name, when one is there and isn't empty, or can't be made.
    pub(crate) fn create(path: &Path) -> Result<Files, (PathBuf, io::Error)> {
        let mut answers = path.as_os_str().to_owned();
        answers.push(".answers");
        let (events, answers) = (Sheet::create(path)?, Sheet::create(Path::new(&answers))?);
        let (due, early, last) = (Vec::new(), Vec::new(), Timestamp::ORIGIN);
        Ok(Files { events, answers, due, due_bytes: 0, early, ev: 0, last })
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

impl Journal for Files {
    fn record(&mut self, entry: &Entry) -> io::Result<()> {
        let answers = lines::answers(self.ev, entry);
        let Some(event) = lines::event(entry, self.last) else {
            self.early.extend(answers);
            return Ok(());
        };
        self.due_bytes += self.events.write(&event)?;
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
        let mut options = OpenOptions::new();
        let file = options.create(true).append(true).mode(0o600).open(path).map_err(told)?;
        let metadata = file.metadata().map_err(told)?;
        if metadata.is_file() && metadata.len() > 0 {
            return Err(told(io::ErrorKind::AlreadyExists.into()));
        }
        Ok(Sheet { path: path.to_owned(), file: BufWriter::new(file), bytes: 0 })
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
