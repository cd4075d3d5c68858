//! The results file: JSON lines, of which the last one about a task says what became of it. It is the record from which
//! a later run resumes.
//!
//! A line is written before each attempt is launched, in one write with those of its batch, and another when the
//! attempt has ended. So a task whose last line is `started` was in flight when the program was killed.

use std::collections::HashMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileTypeExt;

use offermill::ProcessExit;
use offermill::private_files::lock_with_retry;
use serde::{Deserialize, Serialize};

use crate::tasks::periodic_sync::{PeriodicSync, SYNC_INTERVAL, is_unsupported};

/// The longest line that is read, in bytes. Messages of clusters are shorter.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// What became of a task, or of one attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ResultState {
    /// An attempt is about to be launched.
    Started,
    /// That attempt was not launched after all.
    NotStarted,
    /// The attempt failed, and the task is started again.
    Retried,
    /// The attempt was lost, for example with its agent, and the task is started again.
    Lost,
    /// The run was stopped, and ended the attempt.
    Stopped,
    Succeeded,
    Failed,
    /// A task that it waits for did not succeed.
    Skipped,
}

/// A line of the results file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TaskResult {
    pub(crate) id: String,
    pub(crate) state: ResultState,
    /// How many attempts were started, former runs included.
    pub(crate) attempts: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) executor: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) started: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ended: Option<String>,
    /// The file with its output, on its agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) output: Option<String>,
    /// [`TaskSpec::fingerprint`](crate::tasks::task::TaskSpec::fingerprint).
    pub(crate) fingerprint: String,
}

impl TaskResult {
    /// A line without details.
    pub(crate) fn new(
        id: &str,
        state: ResultState,
        attempts: u32,
        fingerprint: String,
    ) -> TaskResult {
        TaskResult {
            id: id.to_owned(),
            state,
            attempts,
            exit_code: None,
            reason: None,
            agent: None,
            executor: None,
            started: None,
            ended: None,
            output: None,
            fingerprint,
        }
    }
}

/// What a results file says of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FormerResult {
    pub(crate) state: ResultState,
    pub(crate) attempts: u32,
    pub(crate) fingerprint: String,
}

/// The results file, open for this run alone.
#[derive(Debug)]
pub(crate) struct ResultsFile {
    file: File,
    /// How many bytes whole lines have.
    whole: u64,
    /// `None` if it is a device.
    periodic_sync: Option<PeriodicSync>,
}

impl ResultsFile {
    /// Opens the file, reads what former runs have written, and starts to sync what this one writes. A last line that
    /// was not written to its end is removed.
    ///
    /// # Errors
    /// With a sentence, if it has results and `resumes` is false, if another run has it open, or if it can't be used.
    pub(crate) fn open(
        name: &str,
        resumes: bool,
    ) -> Result<(ResultsFile, HashMap<String, FormerResult>), String> {
        let failed = |error: io::Error| format!("the results file {name} can't be used: {error}");
        let mut options = OpenOptions::new();
        let mut file = options.read(true).append(true).create(true).open(name).map_err(failed)?;
        match lock_with_retry(&file) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(format!("the results file {name} is in use by another run"));
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        let metadata = file.metadata().map_err(failed)?;
        let length = metadata.len();
        if metadata.file_type().is_char_device() {
            // Such as /dev/null, which has no former results.
            return Ok((ResultsFile { file, whole: 0, periodic_sync: None }, HashMap::new()));
        }
        if !metadata.is_file() {
            return Err(format!("the results file {name} is a pipe or a device, not a file"));
        }
        if length > 0 && !resumes {
            return Err(format!(
                "the results file {name} has results already; give --resume to continue that run, \
                 or --results with another name"
            ));
        }
        let (former, whole) = read_results(name, &mut BufReader::new(&file))?;
        if whole < length {
            file.set_len(whole).map_err(failed)?;
        }
        file.seek(SeekFrom::End(0)).map_err(failed)?;
        // Opened anew: so each tells its errors, and a sync that hangs keeps no lock.
        let synced = OpenOptions::new().write(true).open(name).map_err(failed)?;
        let periodic_sync = PeriodicSync::start(SYNC_INTERVAL, move || synced.sync_data());
        let periodic_sync = Some(periodic_sync.map_err(failed)?);
        Ok((ResultsFile { file, whole, periodic_sync }, former))
    }

    /// Writes lines, in one piece.
    ///
    /// # Errors
    /// If they can't be written. Then none of them is in the file, so that later ones don't follow half a line.
    pub(crate) fn write(&mut self, results: &[TaskResult]) -> io::Result<()> {
        let mut text = Vec::with_capacity(results.len() * 200);
        for result in results {
            serde_json::to_writer(&mut text, result)?;
            text.push(b'\n');
        }
        let written = self.file.write_all(&text);
        match &written {
            Ok(()) => self.whole += text.len() as u64,
            // A device can't be cut.
            Err(_) => drop(self.file.set_len(self.whole)),
        }
        self.periodic_sync.iter().for_each(PeriodicSync::written);
        written
    }

    /// Why the file can't be synced to its disk, which is tried about once a second, if that has failed.
    pub(crate) fn sync_error(&self) -> Option<String> {
        let error = self.periodic_sync.as_ref()?.error()?;
        Some(format!("it can't be synced to its disk: {error}"))
    }

    /// Makes what was written outlive this machine.
    ///
    /// # Errors
    /// As [`File::sync_data`]. A file that can't be synced at all has the lines all the same.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file
            .sync_data()
            .or_else(|error| if is_unsupported(&error) { Ok(()) } else { Err(error) })
    }
}

/// The last line about each task, and how many bytes whole lines have.
fn read_results(
    name: &str,
    input: &mut dyn BufRead,
) -> Result<(HashMap<String, FormerResult>, u64), String> {
    let mut former = HashMap::new();
    let (mut whole, mut line, mut bytes) = (0, 0, Vec::new());
    loop {
        bytes.clear();
        line += 1;
        let read = Read::take(&mut *input, LINE_BYTES_MAX).read_until(b'\n', &mut bytes);
        let read = read.map_err(|error| format!("the results file {name}: {error}"))?;
        if read == 0 || (bytes.last() != Some(&b'\n') && (read as u64) < LINE_BYTES_MAX) {
            return Ok((former, whole));
        }
        let result: TaskResult = serde_json::from_slice(&bytes).map_err(|_| {
            format!("{name}, line {line}: it is no result; give --results with another name")
        })?;
        whole += read as u64;
        let TaskResult { id, state, attempts, fingerprint, .. } = result;
        former.insert(id, FormerResult { state, attempts, fingerprint });
    }
}

/// The exit code of a process; of one that a signal has ended, 128 and the signal's number, as in a shell.
pub(super) fn exit_code(exit: ProcessExit) -> Option<i32> {
    match exit {
        ProcessExit::Code(code) => Some(code),
        ProcessExit::Signal(signal) => Some(128 + signal),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch() -> (tempfile::TempDir, String) {
        let folder = tempfile::tempdir().unwrap();
        let name = folder.path().join("results.jsonl").to_str().unwrap().to_owned();
        (folder, name)
    }

    /// Goal: the last line about a task counts, and one that was torn off by a crash is removed. Method: write lines,
    /// and half a line.
    #[test]
    fn the_last_whole_line_counts() {
        let (_folder, name) = scratch();
        let (mut file, former) = ResultsFile::open(&name, false).unwrap();
        assert!(former.is_empty());
        let result = |id, state, attempts| TaskResult::new(id, state, attempts, String::new());
        let lines = [result("a", ResultState::Started, 1), result("b", ResultState::Started, 1)];
        file.write(&lines).unwrap();
        file.write(&[result("a", ResultState::Succeeded, 1)]).unwrap();
        let busy = ResultsFile::open(&name, true).unwrap_err();
        assert!(busy.ends_with("is in use by another run"), "{busy}");
        drop(file);
        let whole = std::fs::read(&name).unwrap();
        std::fs::write(&name, [&whole[..], br#"{"id":"b","state":"succ"#].concat()).unwrap();
        let (file, former) = ResultsFile::open(&name, true).unwrap();
        assert_eq!(
            (former["a"].state, former["b"].state),
            (ResultState::Succeeded, ResultState::Started)
        );
        drop(file);
        assert_eq!(std::fs::read(&name).unwrap(), whole);
        let refused = ResultsFile::open(&name, false).unwrap_err();
        assert!(refused.contains("--resume"), "{refused}");
    }

    /// Goal: a pipe is refused at once, and a device is only written to. Method: a named pipe, which nobody writes to;
    /// devices without end, and without room.
    #[test]
    fn pipes_are_refused_and_devices_are_not_read() {
        let (folder, name) = scratch();
        assert!(std::process::Command::new("mkfifo").arg(&name).status().unwrap().success());
        let why = ResultsFile::open(&name, true).unwrap_err();
        assert!(why.ends_with("is a pipe or a device, not a file"), "{why}");
        let result = TaskResult::new("a", ResultState::Started, 1, String::new());
        let (mut null, _) = ResultsFile::open("/dev/null", false).unwrap();
        null.write(std::slice::from_ref(&result)).unwrap();
        let (mut full, _) = ResultsFile::open("/dev/full", false).unwrap();
        assert!(full.write(&[result]).is_err());
        drop(folder);
    }

    /// Goal: a file of something else is never written to. Method: a text.
    #[test]
    fn other_files_are_refused() {
        let (_folder, name) = scratch();
        std::fs::write(&name, "notes\nmore").unwrap();
        let why = ResultsFile::open(&name, true).unwrap_err();
        assert!(why.contains("line 1: it is no result"), "{why}");
        assert_eq!(std::fs::read_to_string(&name).unwrap(), "notes\nmore");
    }
}
