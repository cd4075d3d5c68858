//! Sandboxes, the working folders of executors: `<work folder>/sandboxes/<framework>/<agent>/<executor>/`, with the
//! files that standard output and standard error go to.
//!
//! They stay when executors end, so that their output can be read. All of it belongs to this user and is closed to
//! others, see [`private_files`](crate::private_files): folders are made and entered by directory handles, from the
//! work folder as it was at the start, so nothing that other users rename or plant can redirect an executor.

use std::fs::File;
use std::io;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::error::Error;
use crate::private_files::PrivateFolder;

/// The maximum number of frameworks of one process that can receive an id in the same millisecond.
const SAME_MILLISECOND_MAX: u32 = 1000;

/// The folder of one framework's sandboxes.
#[derive(Debug)]
pub(crate) struct Sandboxes {
    framework_id: String,
    folder: PrivateFolder,
}

impl Sandboxes {
    /// Creates the folder of a new framework. The folder's name is the framework's id; creating it reserves the id.
    ///
    /// # Errors
    /// If the folder can't be created, or if the work folder belongs to another user or may be written by others.
    pub(crate) fn create(work_dir: &Path) -> Result<Sandboxes, Error> {
        Self::reserve(work_dir).map_err(|error| {
            let allowed = format!("a folder in which sandboxes can be created ({error})");
            Error::setting("work folder", work_dir.display(), allowed)
        })
    }

    fn reserve(work_dir: &Path) -> io::Result<Sandboxes> {
        let parent = PrivateFolder::open(work_dir)?.subfolder("sandboxes")?;
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let stem = format!("local-{}-{}", since.as_millis(), std::process::id());
        for attempt in 0..SAME_MILLISECOND_MAX {
            let framework_id = match attempt {
                0 => stem.clone(),
                number => format!("{stem}-{number}"),
            };
            match parent.create_folder(&framework_id) {
                Ok(folder) => return Ok(Sandboxes { framework_id, folder }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// The framework's id.
    pub(crate) fn framework_id(&self) -> &str {
        &self.framework_id
    }

    /// Creates the sandbox of an executor, with empty output files. Fails if one of the files exists.
    pub(crate) fn make(&self, agent_id: &str, executor: &str) -> io::Result<Sandbox> {
        let folder = self.folder.subfolder(agent_id)?.subfolder(executor)?;
        let stdout = folder.create_file("stdout")?;
        let stderr = folder.create_file("stderr")?;
        Ok(Sandbox { folder, stdout, stderr })
    }
}

/// One executor's folder, with the files that its output goes to.
#[derive(Debug)]
pub(crate) struct Sandbox {
    pub(super) folder: PrivateFolder,
    pub(super) stdout: File,
    pub(super) stderr: File,
}

/// Whether an executor's id is a valid folder name. Mesos refuses the same ids.
pub(crate) fn is_valid_name(executor: &str) -> bool {
    let allowed = |c: char| !c.is_control() && c != '/' && c != '\\';
    (1..=255).contains(&executor.len())
        && executor != "."
        && executor != ".."
        && executor.chars().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: no id leads out of the sandboxes. Method: ids that would, and a valid one.
    #[test]
    fn ids_stay_inside() {
        for id in ["", ".", "..", "../x", "a/b", "a\\b", "a\0b", "a\nb", &"x".repeat(256)] {
            assert!(!is_valid_name(id), "{id:?}");
        }
        assert!(is_valid_name("etl-s44we8-17.4"));
    }
}
