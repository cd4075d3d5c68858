//! The framework id file: the framework's id and its executors, kept for the next run.
//!
//! It is a text file to which lines are appended: a line for an executor *before* the call that launches it is sent, so
//! that no executor is on the cluster that is not in the file, and a line when its end is reported. Executors that were
//! never launched are found by reconciliation after a restart. Lines are written to the operating system at once but
//! not synced to the disk: they survive the program's end, also by SIGKILL, but not always a crash of the machine.
//!
//! ```text
//! offermill framework 1
//! id 5a21…-0001
//! + etl-t9x3k2-0.0 5a21…-S0 host-0 2000 1408 0 -
//! - etl-t9x3k2-0.0 finished
//! ```
//!
//! An executor that is in a queue has the queue's name as one more field.
//!
//! When a run has ended, the file is removed. If its framework could not be torn down, only the framework's id is left:
//! the next run continues the framework, and kills executors of the run that has ended.
//!
//! Fields are separated by spaces; spaces in them are written as `%20`. The file is locked while it is in use: two
//! programs with one framework id would end each other's subscription forever. When it is opened and when it has grown,
//! it is rewritten without executors that have ended; the new file replaces the old one atomically. It is synced to the
//! disk before that, so that the replacement can't leave an empty file. Paths that exist and aren't regular files are
//! refused: opening a pipe would block, and a device would be replaced. Files of other users are refused, too, and the
//! file and its lock can be opened by this user only: see `private_files`.
//!
//! A thread of its own writes the file: see `state_writer.rs`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::engine::cluster_manager::RecoveredExecutor;
use crate::error::Error;
use crate::offer::Binding;
use crate::private_files::{lock_with_retry, open_file, open_lock, replace, resolve};
use crate::resources::{ExecutorResources, Gpus, Mebibytes, MilliCpus};

const HEAD: &str = "offermill framework 1";
/// The maximum length of a file that is read, in bytes. Ten million executors take 1 GB.
const BYTES_MAX: u64 = 2 << 30;
/// The file is rewritten when it has doubled since the last rewrite, and grown by at least this number of bytes.
const GROWTH_MIN: u64 = 4 << 20;

/// The open file and its content.
#[derive(Debug)]
pub(super) struct StateFile {
    path: PathBuf,
    file: File,
    /// Holds the lock. The file itself is replaced at each rewrite.
    _lock: File,
    state: FrameworkState,
    /// The file's length in bytes.
    length: u64,
    /// Its length after the last rewrite.
    rewritten_length: u64,
    /// The file differs from `state`: it must be rewritten before lines are appended.
    outdated: bool,
    /// See [`MesosConfig::before_rewrite`](super::MesosConfig::before_rewrite).
    pub(super) before_rewrite: Option<fn(&Path)>,
}

/// The content of the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct FrameworkState {
    pub(super) framework_id: Option<String>,
    /// The executors that have not ended, by id.
    pub(super) executors: BTreeMap<String, RecoveredExecutor>,
    /// The number of executors that have finished.
    pub(super) finished: u64,
}

impl StateFile {
    /// Opens the file, or creates it.
    pub(super) fn open(path: &Path) -> Result<StateFile, Error> {
        let fail = |doing: &str, error: io::Error| {
            Error::cluster_from(format!("framework id file {}: {doing}", path.display()), error)
        };
        let path = &resolve(path).map_err(|error| fail("it can't be opened", error))?;
        let lock_path = sibling(path, ".lock");
        [path, &lock_path]
            .into_iter()
            .try_for_each(|path| check_regular_file(path))
            .map_err(|error| fail("it can't be opened", error))?;
        let lock = open_lock(&lock_path);
        let lock = lock.map_err(|error| fail("its lock file can't be opened", error))?;
        match lock_with_retry(&lock) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let why = "another process uses it";
                return Err(Error::cluster(format!("framework id file {}", path.display()), why));
            }
            Err(TryLockError::Error(error)) => return Err(fail("it can't be locked", error)),
        }
        let mut text = Vec::new();
        match open_file(path) {
            Ok(file) => {
                let read = file.take(BYTES_MAX + 1).read_to_end(&mut text);
                read.map_err(|error| fail("it can't be read", error))?;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(fail("it can't be opened", error)),
        }
        let state = read(&text)
            .map_err(|why| Error::cluster(format!("framework id file {}", path.display()), why))?;
        let (file, length) =
            rewrite(path, &state).map_err(|error| fail("it can't be written", error))?;
        Ok(StateFile {
            path: path.to_owned(),
            file,
            _lock: lock,
            state,
            length,
            rewritten_length: length,
            outdated: false,
            before_rewrite: None,
        })
    }

    pub(super) fn state(&self) -> &FrameworkState {
        &self.state
    }

    /// Sets the framework's id. If it is a new one, the executors of the old one are removed; the count of finished
    /// executors stays.
    pub(super) fn identify(&mut self, framework_id: &str) -> io::Result<()> {
        if self.state.framework_id.as_deref() == Some(framework_id) {
            return Ok(());
        }
        self.state = FrameworkState {
            framework_id: Some(framework_id.to_owned()),
            executors: BTreeMap::new(),
            finished: self.state.finished,
        };
        self.rewrite_file()
    }

    /// Adds executors that are about to be launched. If this fails, they must not be launched.
    pub(super) fn launch(&mut self, executors: &[RecoveredExecutor]) -> io::Result<()> {
        let mut lines = String::new();
        executors.iter().for_each(|it| write_line(&mut lines, it));
        self.append(&lines)?;
        let own = executors.iter().map(|it| (it.executor.clone(), it.clone()));
        self.state.executors.extend(own);
        Ok(())
    }

    /// Removes an executor that has ended.
    pub(super) fn end(&mut self, executor: &str, finished: bool) -> io::Result<()> {
        if self.state.executors.remove(executor).is_none() {
            return Ok(());
        }
        self.state.finished += u64::from(finished);
        let how = if finished { "finished" } else { "ended" };
        let written = self.append(&format!("- {} {how}\n", Field(executor)));
        self.outdated |= written.is_err();
        written
    }

    /// Removes the file, because the framework was torn down.
    pub(super) fn remove(&mut self) -> io::Result<()> {
        self.state = FrameworkState::default();
        std::fs::remove_file(&self.path)
    }

    /// Marks the run as complete: its framework could not be torn down, so the next run continues it, but neither its
    /// executors nor those that have finished count for that run.
    pub(super) fn complete(&mut self) -> io::Result<()> {
        let framework_id = self.state.framework_id.take();
        self.state = FrameworkState { framework_id, ..FrameworkState::default() };
        self.rewrite_file()
    }

    fn append(&mut self, lines: &str) -> io::Result<()> {
        if self.outdated
            || self.length - self.rewritten_length > GROWTH_MIN.max(self.rewritten_length)
        {
            self.rewrite_file()?;
        }
        self.file.seek(SeekFrom::Start(self.length))?;
        if let Err(error) = self.file.write_all(lines.as_bytes()) {
            // Removes the incomplete line.
            let _full = self.file.set_len(self.length);
            return Err(error);
        }
        self.length += lines.len() as u64;
        Ok(())
    }

    fn rewrite_file(&mut self) -> io::Result<()> {
        self.outdated = true;
        if let Some(wait) = self.before_rewrite {
            wait(&self.path);
        }
        (self.file, self.length) = rewrite(&self.path, &self.state)?;
        self.rewritten_length = self.length;
        self.outdated = false;
        Ok(())
    }
}

/// Fails if the path exists and is neither a regular file nor a link to one.
fn check_regular_file(path: &Path) -> io::Result<()> {
    match std::fs::metadata(path) {
        Ok(found) if !found.is_file() => {
            Err(io::Error::other(format!("{} is not a regular file", path.display())))
        }
        // Other errors are reported when the file is opened.
        Ok(_) | Err(_) => Ok(()),
    }
}

fn sibling(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Writes the state into a new file, which then replaces the old one.
fn rewrite(path: &Path, state: &FrameworkState) -> io::Result<(File, u64)> {
    let mut text = format!("{HEAD}\n");
    if let Some(id) = &state.framework_id {
        let _infallible = writeln!(text, "id {}", Field(id));
    }
    if state.finished > 0 {
        let _infallible = writeln!(text, "finished {}", state.finished);
    }
    state.executors.values().for_each(|it| write_line(&mut text, it));
    let file = replace(path, |file| {
        file.write_all(text.as_bytes())?;
        file.sync_data()
    })?;
    Ok((file, text.len() as u64))
}

fn write_line(text: &mut String, it: &RecoveredExecutor) {
    let (executor, agent, host) = (Field(&it.executor), Field(&it.agent_id), Field(&it.hostname));
    let (cores, memory, gpus) =
        (it.resources.cores.millis(), it.resources.memory.get(), it.resources.gpus.get());
    let port = it.resources.port.map_or_else(|| "-".to_owned(), |port| port.to_string());
    let _infallible = write!(text, "+ {executor} {agent} {host} {cores} {memory} {gpus} {port}");
    if let Some(queue) = &it.queue_name {
        let _infallible = write!(text, " {}", Field(queue));
    }
    text.push('\n');
}

/// Displays a text escaped: without spaces and line ends, and never empty.
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

/// Parses a file's text. Text after the last line end is an incomplete line, left when the machine stopped, and is
/// ignored.
fn read(text: &[u8]) -> Result<FrameworkState, String> {
    if text.len() as u64 > BYTES_MAX {
        return Err("it is too long for a framework id file".to_owned());
    }
    let text = str::from_utf8(text).map_err(|_| "it is no text".to_owned())?;
    let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
    let mut lines = (1_usize..).zip(whole.lines());
    match lines.next() {
        None if text.is_empty() => return Ok(FrameworkState::default()),
        Some((_, HEAD)) => {}
        _ => return Err(format!("it is no framework id file: its first line is not {HEAD:?}")),
    }
    let mut state = FrameworkState::default();
    for (number, line) in lines {
        read_line(line, &mut state)
            .ok_or_else(|| format!("line {number} can't be read: {line:.80?}"))?;
    }
    Ok(state)
}

fn read_line(line: &str, state: &mut FrameworkState) -> Option<()> {
    let mut fields = line.split(' ');
    let kind = fields.next()?;
    let first = fields.next()?;
    let rest: Vec<&str> = fields.collect();
    match (kind, rest.as_slice()) {
        ("id", []) => state.framework_id = Some(unfield(first)?),
        ("finished", []) => state.finished = first.parse().ok()?,
        ("+", [agent, host, cores, memory, gpus, port, queue @ ..]) if queue.len() <= 1 => {
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
                binding: Binding::Immediate,
                queue: None,
                queue_name: match queue.first() {
                    Some(queue) => Some(unfield(queue)?),
                    None => None,
                },
            };
            state.executors.insert(executor, former);
        }
        ("-", [how]) => {
            let known = state.executors.remove(&unfield(first)?).is_some();
            state.finished += u64::from(known && *how == "finished");
        }
        _ => return None,
    }
    Some(())
}

#[cfg(test)]
#[path = "tests/state_file.rs"]
mod tests;
