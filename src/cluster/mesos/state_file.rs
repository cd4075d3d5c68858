//! What has to outlive this program: the framework's id, and which executors it has started.
//!
//! A text file, to which lines are appended: an executor's line *before* the call that launches it leaves, so that none
//! is ever on the cluster that the file doesn't know, and a line when its end is reported. What was never launched
//! after all, the cluster says when it is asked after the restart. It is written to the operating system at once but
//! not forced to the disk: it survives the program, also by SIGKILL, but the machine only as far as that has written
//! it.
//!
//! ```text
//! offermill framework 1
//! id 5a21…-0001
//! + etl-t9x3k2-0.0 5a21…-S0 host-0 2000 1408 0 -
//! - etl-t9x3k2-0.0 finished
//! ```
//!
//! Fields have spaces between them, and in them `%20` and the like. The file is locked while it is in use: two programs
//! under one framework id would end each other's subscription for ever. It is written anew, without what has ended,
//! when it is opened and when it has grown; a new file replaces the old one in one step. Only then it is forced to the
//! disk, so that the step can't leave an empty file. What is there and no regular file isn't opened: a pipe would have
//! that wait for good, and a device would be replaced.
//!
//! A thread of its own writes it: `ledger_writer.rs`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::engine::cluster_manager::RecoveredExecutor;
use crate::error::Error;
use crate::resources::{ExecutorResources, Gpus, Mebibytes, MilliCpus};

const HEAD: &str = "offermill framework 1";
/// A file that is longer is not one of ours: ten million executors have 1 GB.
const BYTES_MAX: u64 = 2 << 30;
/// The file is written anew when it has grown by so much since it was last, and to twice its length.
const GROWTH_MAX: u64 = 4 << 20;

/// The file, and what it says.
#[derive(Debug)]
pub(super) struct StateFile {
    path: PathBuf,
    file: File,
    /// Holds the lock for as long as this lives; the file itself is replaced now and then.
    _lock: File,
    book: FrameworkState,
    /// Bytes in the file, and how many there were when it was last written anew.
    length: u64,
    anew: u64,
    /// The file lacks something that the book has, or still has something else: it must be written anew before
    /// anything is added to it.
    outdated: bool,
}

/// What the file says.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct FrameworkState {
    pub(super) framework_id: Option<String>,
    /// Those that have not ended, by id.
    pub(super) executors: BTreeMap<String, RecoveredExecutor>,
    /// How many have finished.
    pub(super) finished: u64,
}

impl StateFile {
    /// Opens the file, or makes it.
    pub(super) fn open(path: &Path) -> Result<StateFile, Error> {
        let fail = |doing: &str, error: io::Error| {
            Error::cluster(
                format!("framework id file {}", path.display()),
                format!("{doing}: {error}"),
            )
        };
        let lock_path = sibling(path, ".lock");
        [path, &lock_path, &sibling(path, ".new")]
            .into_iter()
            .try_for_each(is_for_files)
            .map_err(|error| fail("it can't be opened", error))?;
        let lock = OpenOptions::new().create(true).truncate(false).write(true).open(&lock_path);
        let lock = lock.map_err(|error| fail("its lock can't be made", error))?;
        match lock_patiently(&lock) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let why = "another program that runs now has it";
                return Err(Error::cluster(format!("framework id file {}", path.display()), why));
            }
            Err(TryLockError::Error(error)) => return Err(fail("it can't be locked", error)),
        }
        let mut text = Vec::new();
        match File::open(path) {
            Ok(file) => {
                let read = file.take(BYTES_MAX + 1).read_to_end(&mut text);
                read.map_err(|error| fail("it can't be read", error))?;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(fail("it can't be opened", error)),
        }
        let book = read(&text)
            .map_err(|why| Error::cluster(format!("framework id file {}", path.display()), why))?;
        let (file, length) =
            write_anew(path, &book).map_err(|error| fail("it can't be written", error))?;
        Ok(StateFile {
            path: path.to_owned(),
            file,
            _lock: lock,
            book,
            length,
            anew: length,
            outdated: false,
        })
    }

    pub(super) fn book(&self) -> &FrameworkState {
        &self.book
    }

    /// The cluster has given the framework an id. If it is another than before, its executors are others too; but what
    /// has finished is done.
    pub(super) fn identify(&mut self, framework_id: &str) -> io::Result<()> {
        if self.book.framework_id.as_deref() == Some(framework_id) {
            return Ok(());
        }
        self.book = FrameworkState {
            framework_id: Some(framework_id.to_owned()),
            executors: BTreeMap::new(),
            finished: self.book.finished,
        };
        self.renew()
    }

    /// These are about to be launched. If this fails they must not be.
    pub(super) fn launch(&mut self, executors: &[RecoveredExecutor]) -> io::Result<()> {
        let mut lines = String::new();
        executors.iter().for_each(|it| write_line(&mut lines, it));
        self.append(&lines)?;
        let own = executors.iter().map(|it| (it.executor.clone(), it.clone()));
        self.book.executors.extend(own);
        Ok(())
    }

    /// This one has ended.
    pub(super) fn end(&mut self, executor: &str, finished: bool) -> io::Result<()> {
        if self.book.executors.remove(executor).is_none() {
            return Ok(());
        }
        self.book.finished += u64::from(finished);
        let how = if finished { "finished" } else { "ended" };
        let written = self.append(&format!("- {} {how}\n", Field(executor)));
        self.outdated |= written.is_err();
        written
    }

    /// The framework is no more: nothing of it is to be found again.
    pub(super) fn remove(&mut self) -> io::Result<()> {
        self.book = FrameworkState::default();
        std::fs::remove_file(&self.path)
    }

    fn append(&mut self, lines: &str) -> io::Result<()> {
        if self.outdated || self.length - self.anew > GROWTH_MAX.max(self.anew) {
            self.renew()?;
        }
        self.file.seek(SeekFrom::Start(self.length))?;
        if let Err(error) = self.file.write_all(lines.as_bytes()) {
            // Half a line is none.
            let _full = self.file.set_len(self.length);
            return Err(error);
        }
        self.length += lines.len() as u64;
        Ok(())
    }

    fn renew(&mut self) -> io::Result<()> {
        self.outdated = true;
        (self.file, self.length) = write_anew(&self.path, &self.book)?;
        (self.anew, self.outdated) = (self.length, false);
        Ok(())
    }
}

/// Whether there is a regular file, maybe by way of a link, or nothing yet.
fn is_for_files(path: &Path) -> io::Result<()> {
    match std::fs::metadata(path) {
        Ok(found) if !found.is_file() => {
            Err(io::Error::other(format!("{} is no regular file", path.display())))
        }
        // Opening it says what is wrong.
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Takes the lock, or waits for it a moment: who had it may be ending just now.
fn lock_patiently(lock: &File) -> Result<(), TryLockError> {
    for _ in 0..20 {
        match lock.try_lock() {
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(50)),
            done => return done,
        }
    }
    lock.try_lock()
}

fn sibling(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Writes the book into a new file, which then takes the old one's place.
fn write_anew(path: &Path, book: &FrameworkState) -> io::Result<(File, u64)> {
    let mut text = format!("{HEAD}\n");
    if let Some(id) = &book.framework_id {
        let _infallible = writeln!(text, "id {}", Field(id));
    }
    if book.finished > 0 {
        let _infallible = writeln!(text, "finished {}", book.finished);
    }
    book.executors.values().for_each(|it| write_line(&mut text, it));
    let new = sibling(path, ".new");
    let mut file = File::create(&new)?;
    file.write_all(text.as_bytes())?;
    file.sync_data()?;
    std::fs::rename(&new, path)?;
    Ok((file, text.len() as u64))
}

fn write_line(text: &mut String, it: &RecoveredExecutor) {
    let (executor, agent, host) = (Field(&it.executor), Field(&it.agent_id), Field(&it.hostname));
    let (cores, memory, gpus) =
        (it.resources.cores.millis(), it.resources.memory.get(), it.resources.gpus.get());
    let port = it.resources.port.map_or_else(|| "-".to_owned(), |port| port.to_string());
    let _infallible = writeln!(text, "+ {executor} {agent} {host} {cores} {memory} {gpus} {port}");
}

/// A text without spaces and line ends, and never empty.
struct Field<'a>(&'a str);

impl std::fmt::Display for Field<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0.is_empty() {
            return f.write_str("%");
        }
        for c in self.0.chars() {
            if c == '%' || c == ' ' || c.is_ascii_control() {
                write!(f, "%{:02x}", u32::from(c))?;
            } else {
                f.write_char(c)?;
            }
        }
        Ok(())
    }
}

fn unfield(text: &str) -> Option<String> {
    let mut plain = String::with_capacity(text.len());
    let mut parts = text.split('%');
    plain.push_str(parts.next()?);
    for part in parts {
        if part.is_empty() && text == "%" {
            break;
        }
        let code = u8::from_str_radix(part.get(..2)?, 16).ok().filter(u8::is_ascii)?;
        plain.push(code.into());
        plain.push_str(part.get(2..)?);
    }
    Some(plain)
}

/// Reads a file's text. What follows the last line end was cut off when the machine stopped, and means nothing.
fn read(text: &[u8]) -> Result<FrameworkState, String> {
    if text.len() as u64 > BYTES_MAX {
        return Err("it is longer than such a file can be".to_owned());
    }
    let text = str::from_utf8(text).map_err(|_| "it is no text".to_owned())?;
    let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
    let mut lines = (1_usize..).zip(whole.lines());
    match lines.next() {
        None if text.is_empty() => return Ok(FrameworkState::default()),
        Some((_, HEAD)) => {}
        _ => return Err(format!("it is not ours: its first line is not {HEAD:?}")),
    }
    let mut book = FrameworkState::default();
    for (number, line) in lines {
        read_line(line, &mut book)
            .ok_or_else(|| format!("line {number} can't be read: {line:.80?}"))?;
    }
    Ok(book)
}

fn read_line(line: &str, book: &mut FrameworkState) -> Option<()> {
    let mut fields = line.split(' ');
    let kind = fields.next()?;
    let first = fields.next()?;
    let rest: Vec<&str> = fields.collect();
    match (kind, rest.as_slice()) {
        ("id", []) => book.framework_id = Some(unfield(first)?),
        ("finished", []) => book.finished = first.parse().ok()?,
        ("+", [agent, host, cores, memory, gpus, port]) => {
            let executor = unfield(first)?;
            let former = RecoveredExecutor {
                executor: executor.clone(),
                agent_id: unfield(agent)?,
                hostname: unfield(host)?,
                resources: ExecutorResources {
                    cores: MilliCpus::from_millis(cores.parse().ok()?),
                    memory: Mebibytes::new(memory.parse().ok()?),
                    gpus: Gpus::new(gpus.parse().ok()?),
                    port: if *port == "-" { None } else { Some(port.parse().ok()?) },
                },
            };
            book.executors.insert(executor, former);
        }
        ("-", [how]) => {
            let known = book.executors.remove(&unfield(first)?).is_some();
            book.finished += u64::from(known && *how == "finished");
        }
        _ => return None,
    }
    Some(())
}

#[cfg(test)]
#[path = "tests/state_file.rs"]
mod tests;
