//! [`PrivateFolder`]: a folder of this user's, held by a directory handle.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf, absolute};
use std::sync::Arc;

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, fstat, mkdirat, open, openat, stat, statat,
};
use rustix::io::Errno;

use super::{check, check_owner, refused};

/// The mode of new folders, 0700.
const FOLDER_MODE: Mode = Mode::RWXU;

/// A folder that belongs to this user or to root, and that others may not write, held by a directory handle: it stays
/// the same folder even if it is renamed. Clones share the handle.
#[derive(Clone, Debug)]
pub struct PrivateFolder {
    handle: Arc<OwnedFd>,
    path: PathBuf,
}

impl PrivateFolder {
    /// Opens the folder at `path`, or creates it and its missing parents with mode 0700. Links in the path are
    /// followed, but a link in the folder's own place only if it belongs to this user or to root.
    ///
    /// # Errors
    /// If the folder can't be opened or created, if it belongs to another user, or if others may write it. The error
    /// says which.
    pub fn open(path: &Path) -> io::Result<PrivateFolder> {
        let path = absolute(path)?;
        match statat(CWD, &path, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) if FileType::from_raw_mode(found.st_mode) == FileType::Symlink => {
                check_owner(&found)
                    .map_err(|error| refused(format!("it is a link, and {error}")))?;
            }
            _ => {}
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut existing = path.as_path();
        let mut missing: Vec<OsString> = Vec::new();
        let handle = loop {
            match (open(existing, flags, Mode::empty()), existing.parent(), existing.file_name()) {
                (Ok(handle), ..) => break handle,
                (Err(Errno::NOENT), Some(parent), Some(name)) => {
                    missing.push(name.to_owned());
                    existing = parent;
                }
                (Err(error), ..) => return Err(error.into()),
            }
        };
        let mut folder = PrivateFolder { handle: Arc::new(handle), path: existing.to_owned() };
        while let Some(name) = missing.pop() {
            folder.make(&name)?;
            folder = folder.enter(&name)?;
        }
        folder.check()?;
        Ok(PrivateFolder { path, ..folder })
    }

    /// Opens the folder `name` in this one, or creates it with mode 0700. A link is not followed.
    ///
    /// # Errors
    /// If the folder can't be opened or created, if it belongs to another user, or if others may write it.
    pub fn subfolder(&self, name: impl AsRef<OsStr>) -> io::Result<PrivateFolder> {
        let name = name.as_ref();
        self.make(name)?;
        let folder = self.enter(name)?;
        folder.check()?;
        Ok(folder)
    }

    /// Creates the folder `name` in this one with mode 0700.
    ///
    /// # Errors
    /// If it exists, also as a link, or if it can't be created.
    pub fn create_folder(&self, name: impl AsRef<OsStr>) -> io::Result<PrivateFolder> {
        let name = name.as_ref();
        check_name(name)?;
        mkdirat(&self.handle, name, FOLDER_MODE)?;
        let folder = self.enter(name)?;
        folder.check()?;
        Ok(folder)
    }

    /// Creates the file `name` in this folder with mode 0600, and opens it for writing.
    ///
    /// # Errors
    /// If it exists, also as a link, or if it can't be created.
    pub fn create_file(&self, name: impl AsRef<OsStr>) -> io::Result<File> {
        let name = name.as_ref();
        check_name(name)?;
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(openat(&self.handle, name, flags, Mode::RUSR | Mode::WUSR)?.into())
    }

    /// The folder's path when it was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path with which a child process of this one can enter the folder, even if the folder was renamed. It is
    /// valid while this value lives. On systems without `/proc` it is [`path`](Self::path).
    #[must_use]
    pub fn handle_path(&self) -> PathBuf {
        let through_handle = PathBuf::from(format!("/proc/self/fd/{}", self.handle.as_raw_fd()));
        let is_same = match (stat(&through_handle), fstat(&self.handle)) {
            (Ok(found), Ok(own)) => (found.st_dev, found.st_ino) == (own.st_dev, own.st_ino),
            _ => false,
        };
        if is_same { through_handle } else { self.path.clone() }
    }

    /// Fails if the folder belongs to another user, or if others may write it.
    fn check(&self) -> io::Result<()> {
        check(&fstat(&self.handle)?).map_err(|error| {
            let way_out = "close it with chmod go-w if it is yours, or use another folder";
            refused(format!("{}: {error}; {way_out}", self.path.display()))
        })
    }

    /// Creates the folder `name` unless something of that name exists.
    fn make(&self, name: &OsStr) -> io::Result<()> {
        check_name(name)?;
        match mkdirat(&self.handle, name, FOLDER_MODE) {
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens the folder `name`, but no link.
    fn enter(&self, name: &OsStr) -> io::Result<PrivateFolder> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let path = self.path.join(name);
        let handle = openat(&self.handle, name, flags, Mode::empty()).map_err(|error| {
            let why = match error {
                Errno::LOOP | Errno::NOTDIR => "it is a link or a file, not a folder".to_owned(),
                error => io::Error::from(error).to_string(),
            };
            io::Error::new(io::Error::from(error).kind(), format!("{}: {why}", path.display()))
        })?;
        Ok(PrivateFolder { handle: Arc::new(handle), path })
    }
}

/// Fails if `name` is not the name of something in a folder.
fn check_name(name: &OsStr) -> io::Result<()> {
    let bytes = name.as_encoded_bytes();
    if matches!(bytes, b"" | b"." | b"..") || bytes.contains(&b'/') || bytes.contains(&0) {
        let why = format!("{name:?} is not the name of a file or folder");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    Ok(())
}
