//! Which executors of a run on this machine were which tasks, for `offermill logs`: a file beside the sandboxes of the
//! run, `sandboxes/<run>/tasks`, with a JSON object a line, in the order in which attempts were placed.

use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::path::Path;

use offermill::private_files::PrivateFolder;
use serde::{Deserialize, Serialize};

/// The file's name. Beside it are the folders of agents, which are called otherwise.
const FILE: &str = "tasks";
/// The longest line that is read, in bytes. An id has fewer, even with all its characters escaped.
const LINE_BYTES_MAX: u64 = 8 << 10;

/// An attempt of a task.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct IndexedAttempt {
    /// The task's id.
    pub(crate) id: String,
    /// The executor that the attempt was.
    pub(crate) executor: String,
}

/// Writes the index.
#[derive(Debug)]
pub(crate) struct AttemptIndex(File);

impl AttemptIndex {
    /// Creates the index of a run in the folder of all runs' sandboxes.
    ///
    /// # Errors
    /// If it can't be created, or is there.
    pub(crate) fn create(sandboxes: &Path, run: &str) -> io::Result<AttemptIndex> {
        let run = PrivateFolder::open_existing(sandboxes)?.existing_subfolder(run)?;
        run.create_file(FILE).map(AttemptIndex)
    }

    /// Adds an attempt.
    ///
    /// # Errors
    /// If it can't be written. A part of it may be written then, so that no other can be added.
    pub(crate) fn add(&mut self, id: &str, executor: &str) -> io::Result<()> {
        let attempt = IndexedAttempt { id: id.to_owned(), executor: executor.to_owned() };
        let mut line = serde_json::to_vec(&attempt)?;
        line.push(b'\n');
        self.0.write_all(&line)
    }
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

    /// Goal: attempts are read as they were written, whatever their ids, and half a line is none. Method: ids of all
    /// kinds, and the longest one of characters that are escaped; half a line; a run without index.
    #[test]
    fn attempts_are_read_as_they_were_written() {
        let folder = tempfile::tempdir().unwrap();
        let sandboxes = PrivateFolder::open(folder.path()).unwrap();
        let run = sandboxes.create_folder("local-1-1").unwrap();
        assert!(!read_attempts(&run, |attempt| panic!("{attempt:?}")).unwrap());
        let mut index = AttemptIndex::create(folder.path(), "local-1-1").unwrap();
        let longest = "\"".repeat(1024);
        let ids = ["lint", "7", "a b/../c", "\u{1f980}", &longest, "lint"];
        ids.iter().for_each(|id| index.add(id, &format!("{}-0.0", id.len())).unwrap());
        index.0.write_all(br#"{"id":"un"#).unwrap();
        let mut read = Vec::new();
        assert!(read_attempts(&run, |attempt| read.push((attempt.id, attempt.executor))).unwrap());
        let expected = ids.map(|id| (id.to_owned(), format!("{}-0.0", id.len())));
        assert_eq!(read, expected);
        assert!(AttemptIndex::create(folder.path(), "local-1-1").is_err(), "it is there");
    }
}
