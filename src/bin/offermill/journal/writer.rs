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
use crate::scenario::{Head, line};

/// A journal's files while they are written. A closing line of answers is never ahead of its event.
#[derive(Debug)]
pub(crate) struct Files {
    events: Sheet,
    answers: Sheet,
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
        Ok(Files { events, answers, ev: 0, last: Timestamp::ORIGIN })
    }

    /// Writes the first line of each.
    ///
    /// # Errors
    /// When that fails.
    pub(crate) fn begin(&mut self, head: &Head, config: &Config) -> io::Result<()> {
        self.events.write(head)?;
        self.answers.write(&lines::init(config))
    }
}

impl Journal for Files {
    fn record(&mut self, entry: &Entry) -> io::Result<()> {
        let ev = self.ev;
        if let Some(event) = lines::event(entry, self.last) {
            self.events.write(&event)?;
            self.ev += 1;
            self.last = entry.at;
        }
        lines::answers(ev, entry).iter().try_for_each(|answer| self.answers.write(answer))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.events.flush()?;
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

    fn write(&mut self, value: &impl Serialize) -> io::Result<()> {
        let line = line(value);
        self.bytes += line.len() as u64;
        if line.len() > LINE_BYTES_MAX || self.bytes > FILE_BYTES_MAX {
            let why = format!("{}: it would be too long to be read again", self.path.display());
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
        }
        self.file.write_all(line.as_bytes()).map_err(|error| self.named(&error))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush().map_err(|error| self.named(&error))
    }

    fn named(&self, error: &io::Error) -> io::Error {
        io::Error::new(error.kind(), format!("{}: {error}", self.path.display()))
    }
}
