//! Sandboxes, the working folders of executors: `<work folder>/sandboxes/<framework>/<agent>/<executor>/`, with the
//! files that standard output and standard error go to.
//!
//! They stay when executors end, so that their output can be read. All of it belongs to this user and is closed to
//! others, see [`private_files`](crate::private_files): folders are made and entered by directory handles, from the
//! work folder as it was at the start, so nothing that other users rename or plant can redirect an executor.
//!
//! Folders that were removed are created again in the innermost folder that is left. If the work folder itself was
//! removed, it is opened by its path and checked as at the start.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::error::Error;
use crate::private_files::PrivateFolder;

/// The maximum number of frameworks of one process that can receive an id in the same millisecond.
const SAME_MILLISECOND_MAX: u32 = 1000;

/// The maximum number of attempts to create a sandbox while its folders are being removed.
const ATTEMPTS_MAX: u32 = 3;

/// The folder of one framework's sandboxes.
#[derive(Debug)]
pub(crate) struct Sandboxes {
    framework_id: String,
    /// Locked only to copy or replace the handles: file systems may hang.
    folders: Mutex<FrameworkFolders>,
}

/// The folder of a framework and those that contain it. They share their handles with their clones.
#[derive(Clone, Debug)]
struct FrameworkFolders {
    work: PrivateFolder,
    sandboxes: PrivateFolder,
    /// `None` until it is needed.
    framework: Option<PrivateFolder>,
}

impl FrameworkFolders {
    /// Opens the folders again, and creates those that were removed.
    fn renewed(&self, framework_id: &str) -> io::Result<FrameworkFolders> {
        if let Some(framework) = unless_removed(self.sandboxes.subfolder(framework_id))? {
            return Ok(FrameworkFolders { framework: Some(framework), ..self.clone() });
        }
        let (work, sandboxes) = match unless_removed(self.work.subfolder("sandboxes"))? {
            Some(sandboxes) => (self.work.clone(), sandboxes),
            None => {
                let work = PrivateFolder::open(self.work.path())?;
                let sandboxes = work.subfolder("sandboxes")?;
                (work, sandboxes)
            }
        };
        let framework = Some(sandboxes.subfolder(framework_id)?);
        Ok(FrameworkFolders { work, sandboxes, framework })
    }

    /// Creates the sandbox of an executor.
    fn make(&self, agent_id: &str, executor: &str) -> io::Result<Sandbox> {
        let framework = self.framework.as_ref().ok_or(io::ErrorKind::NotFound)?;
        let folder = framework.subfolder(agent_id)?.subfolder(executor)?;
        let stdout = folder.create_file("stdout")?;
        let stderr = folder.create_file("stderr")?;
        Ok(Sandbox { folder, stdout, stderr })
    }
}

/// The work folder of a worker, in which each framework has a folder of its own.
#[cfg(feature = "standalone")]
#[derive(Clone, Debug)]
pub(crate) struct WorkFolder {
    work: PrivateFolder,
    sandboxes: PrivateFolder,
}

#[cfg(feature = "standalone")]
impl WorkFolder {
    /// Opens the folder, and creates it if it isn't there.
    ///
    /// # Errors
    /// If it can't be created, or if it belongs to another user or may be written by others.
    pub(crate) fn open(work_dir: &Path) -> Result<WorkFolder, Error> {
        let opened = PrivateFolder::open(work_dir)
            .and_then(|work| Ok(WorkFolder { sandboxes: work.subfolder("sandboxes")?, work }));
        opened.map_err(|error| unusable(work_dir, &error))
    }

    /// The sandboxes of a framework, whose folder is made when it is needed.
    pub(crate) fn sandboxes_of(&self, framework_id: &str) -> Sandboxes {
        let WorkFolder { work, sandboxes } = self.clone();
        let folders = Mutex::new(FrameworkFolders { work, sandboxes, framework: None });
        Sandboxes { framework_id: framework_id.to_owned(), folders }
    }
}

fn unusable(work_dir: &Path, error: &io::Error) -> Error {
    let allowed = format!("a folder in which sandboxes can be created ({error})");
    Error::setting("work folder", work_dir.display(), allowed)
}

/// Returns what was opened or created in a folder; `None` if the folder was removed, in which nothing can be created.
fn unless_removed<T>(made: io::Result<T>) -> io::Result<Option<T>> {
    match made {
        Ok(made) => Ok(Some(made)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

impl Sandboxes {
    /// Creates the folder of a new framework. The folder's name is the framework's id; creating it reserves the id.
    ///
    /// # Errors
    /// If the folder can't be created, or if the work folder belongs to another user or may be written by others.
    pub(crate) fn create(work_dir: &Path) -> Result<Sandboxes, Error> {
        Self::reserve(work_dir).map_err(|error| unusable(work_dir, &error))
    }

    fn reserve(work_dir: &Path) -> io::Result<Sandboxes> {
        let work = PrivateFolder::open(work_dir)?;
        let sandboxes = work.subfolder("sandboxes")?;
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let stem = format!("local-{}-{}", since.as_millis(), std::process::id());
        for attempt in 0..SAME_MILLISECOND_MAX {
            let framework_id = match attempt {
                0 => stem.clone(),
                number => format!("{stem}-{number}"),
            };
            match sandboxes.create_folder(&framework_id) {
                Ok(framework) => {
                    let framework = Some(framework);
                    let folders = Mutex::new(FrameworkFolders { work, sandboxes, framework });
                    return Ok(Sandboxes { framework_id, folders });
                }
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

    /// Creates the sandbox of an executor, with empty output files, and the folders around it that were removed.
    ///
    /// # Errors
    /// If a folder or file can't be created, or if one of the files exists.
    pub(crate) fn make(&self, agent_id: &str, executor: &str) -> io::Result<Sandbox> {
        let mut folders = self.folders.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for _ in 1..ATTEMPTS_MAX {
            if let Some(sandbox) = unless_removed(folders.make(agent_id, executor))? {
                return Ok(sandbox);
            }
            if let Some(renewed) = unless_removed(folders.renewed(&self.framework_id))? {
                folders = renewed.clone();
                *self.folders.lock().unwrap_or_else(PoisonError::into_inner) = renewed;
            }
        }
        folders.make(agent_id, executor)
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
