//! What a worker keeps on the disk: the id that a master gave it, and the highest term that it was told. The files are
//! in the work folder. A lock keeps two workers from having one id.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::private_files::{lock_with_retry, open_file, open_lock, replace};

const FILE: &str = "worker.json";
const LOCK: &str = "worker.lock";
const VERSION: u32 = 1;
/// The most bytes of the file.
const BYTES_MAX: u64 = 64 * 1024;

/// The content of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Identity {
    version: u32,
    id: Option<String>,
    term: u64,
}

/// The file with the worker's id and term, locked as long as this lives.
#[derive(Debug)]
pub(super) struct IdentityFile {
    path: PathBuf,
    identity: Identity,
    _lock: File,
}

impl IdentityFile {
    /// Locks and reads the file in a work folder, which exists.
    ///
    /// # Errors
    /// If another worker has locked it, or if it can't be read or isn't such a file.
    pub(super) fn open(work_dir: &Path) -> Result<IdentityFile, Error> {
        let refuse = |allowed: String| Error::setting("work folder", work_dir.display(), allowed);
        let lock = open_lock(&work_dir.join(LOCK)).map_err(|error| {
            refuse(format!("a folder with a {LOCK} that can be locked ({error})"))
        })?;
        lock_with_retry(&lock).map_err(|_| {
            refuse("a folder of this worker's own; another worker uses it".to_owned())
        })?;
        let path = work_dir.join(FILE);
        let identity = read(&path).map_err(|error| {
            refuse(format!("a folder whose {FILE} was written by this version ({error})"))
        })?;
        Ok(IdentityFile { path, identity, _lock: lock })
    }

    /// The id, if a master gave one.
    pub(super) fn id(&self) -> Option<&str> {
        self.identity.id.as_deref()
    }

    /// The highest term; 0 if there was none.
    pub(super) fn term(&self) -> u64 {
        self.identity.term
    }

    /// Writes the id and the term, so that they are there after a power failure.
    ///
    /// # Errors
    /// If the file can't be written.
    pub(super) fn write(&mut self, id: &str, term: u64) -> io::Result<()> {
        let identity = Identity { version: VERSION, id: Some(id.to_owned()), term };
        if identity == self.identity {
            return Ok(());
        }
        let text = serde_json::to_vec(&identity)?;
        let _file = replace(&self.path, |file| {
            file.write_all(&text)?;
            file.sync_all()
        })?;
        if let Some(folder) = self.path.parent() {
            File::open(folder)?.sync_all()?;
        }
        self.identity = identity;
        Ok(())
    }
}

/// Reads the file. A missing one says nothing.
fn read(path: &Path) -> io::Result<Identity> {
    let file = match open_file(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Identity::default()),
        Err(error) => return Err(error),
    };
    let mut text = Vec::new();
    file.take(BYTES_MAX).read_to_end(&mut text)?;
    let identity: Identity = serde_json::from_slice(&text)?;
    if identity.version != VERSION {
        return Err(io::Error::other(format!("its version is {}", identity.version)));
    }
    Ok(identity)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: id and term outlive the worker, two workers don't share them, and other files are refused. Method: write
    /// and read again; a second lock; texts of other kinds.
    #[test]
    fn id_and_term_outlive_the_worker() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = IdentityFile::open(folder.path()).unwrap();
        assert_eq!((file.id(), file.term()), (None, 0));
        file.write("w-1", 7).unwrap();
        let error = IdentityFile::open(folder.path()).unwrap_err().to_string();
        assert!(error.contains("another worker uses it"), "{error}");
        drop(file);
        let file = IdentityFile::open(folder.path()).unwrap();
        assert_eq!((file.id(), file.term()), (Some("w-1"), 7));
        drop(file);
        for text in ["", "{}", "{\"version\":2,\"id\":null,\"term\":1}", "[1]", "\u{0}"] {
            std::fs::write(folder.path().join(FILE), text).unwrap();
            let error = IdentityFile::open(folder.path()).unwrap_err();
            assert!(error.is_setting(), "{text:?}: {error}");
        }
    }
}
