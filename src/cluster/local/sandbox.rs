//! Sandboxes: `<work folder>/sandboxes/<framework>/<agent>/<executor>/`, with the executor's
//! output.
//!
//! They are left in place when executors end: what an executor wrote is what its owner wants to
//! see.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf, absolute};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::error::Error;

/// How many frameworks may try to begin in the same millisecond of the same process.
const NAMESAKES_MAX: u32 = 1000;

/// The folder of one framework's sandboxes.
#[derive(Debug)]
pub(super) struct Sandboxes {
    framework_id: String,
    root: PathBuf,
}

impl Sandboxes {
    /// Makes the folder, and with it the framework's id: the file system sees to it that nobody
    /// else has it.
    ///
    /// # Errors
    /// When the folder can't be made.
    pub(super) fn create(work_dir: &Path) -> Result<Sandboxes, Error> {
        Self::claim(work_dir).map_err(|error| {
            let allowed = format!("a folder in which sandboxes can be made ({error})");
            Error::setting("work folder", work_dir.display(), allowed)
        })
    }

    fn claim(work_dir: &Path) -> io::Result<Sandboxes> {
        let parent = absolute(work_dir)?.join("sandboxes");
        fs::create_dir_all(&parent)?;
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let stem = format!("local-{}-{}", since.as_millis(), std::process::id());
        for namesake in 0..NAMESAKES_MAX {
            let framework_id = match namesake {
                0 => stem.clone(),
                number => format!("{stem}-{number}"),
            };
            let root = parent.join(&framework_id);
            match fs::create_dir(&root) {
                Ok(()) => return Ok(Sandboxes { framework_id, root }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// The framework's id.
    pub(super) fn framework_id(&self) -> &str {
        &self.framework_id
    }

    /// Makes the sandbox of an executor.
    pub(super) fn make(&self, agent_id: &str, executor: &str) -> io::Result<Sandbox> {
        let path = self.root.join(agent_id).join(executor);
        fs::create_dir_all(&path)?;
        let stdout = File::create(path.join("stdout"))?;
        let stderr = File::create(path.join("stderr"))?;
        Ok(Sandbox { path, stdout, stderr })
    }
}

/// One executor's folder, with the files that its output goes to.
#[derive(Debug)]
pub(super) struct Sandbox {
    pub(super) path: PathBuf,
    pub(super) stdout: File,
    pub(super) stderr: File,
}

/// Whether an executor's id can name a folder: nothing that Mesos would refuse as an id.
pub(super) fn can_name(executor: &str) -> bool {
    let allowed = |c: char| !c.is_control() && c != '/' && c != '\\';
    (1..=255).contains(&executor.len())
        && executor != "."
        && executor != ".."
        && executor.chars().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: no id leads out of its sandbox. Method: the ids that could, and one that is as it
    /// should be.
    #[test]
    fn ids_stay_inside() {
        for id in ["", ".", "..", "../x", "a/b", "a\\b", "a\0b", "a\nb", &"x".repeat(256)] {
            assert!(!can_name(id), "{id:?}");
        }
        assert!(can_name("etl-s44we8-17.4"));
    }
}
