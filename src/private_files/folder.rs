//! [`PrivateFolder`]: a folder of this user's, held by a directory handle.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf, absolute};
use std::sync::Arc;

use rustix::fs::{Dir, FileType, Mode, OFlags, fstat, mkdirat, open, openat, stat};
use rustix::io::Errno;

use super::links::{LINKS_MAX, leads_nowhere, read_link};
use super::{check, refused};

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
    /// Opens the folder at `path` as [`open`](Self::open) does, but creates none.
    ///
    /// # Errors
    /// If there is no such folder, if it belongs to another user, or if others may write it.
    pub fn open_existing(path: &Path) -> io::Result<PrivateFolder> {
        let path: PathBuf = absolute(path)?.components().collect();
        let folder = PrivateFolder { handle: Arc::new(open_existing(&path)?), path };
        folder.check()?;
        Ok(folder)
    }

    /// Opens the folder `name` in this one. A link is not followed.
    ///
    /// # Errors
    /// If there is no such folder, if it belongs to another user, or if others may write it.
    pub fn existing_subfolder(&self, name: impl AsRef<OsStr>) -> io::Result<PrivateFolder> {
        check_name(name.as_ref())?;
        let folder = self.enter(name.as_ref())?;
        folder.check()?;
        Ok(folder)
    }

    /// Returns the names in this folder, in no particular order, except those that aren't Unicode.
    ///
    /// # Errors
    /// If the folder can't be read.
    pub fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.handle)? {
            let entry = entry?;
            if let Ok(name) = entry.file_name().to_str()
                && !matches!(name, "." | "..")
            {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }

    /// Opens the file `name` in this folder for reading.
    ///
    /// # Errors
    /// If there is no such file, or if it is a link, a pipe or something else that is no regular file.
    pub fn open_file(&self, name: impl AsRef<OsStr>) -> io::Result<File> {
        let name = name.as_ref();
        check_name(name)?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(openat(&self.handle, name, flags, Mode::empty())?);
        match FileType::from_raw_mode(fstat(&file)?.st_mode) {
            FileType::RegularFile => Ok(file),
            _ => Err(refused(format!("{}: it is no regular file", self.path.join(name).display()))),
        }
    }

    /// Opens the folder at `path`, or creates it and its missing parents with mode 0700. Links among its parents are
    /// followed; a link in the folder's own place, and those to which it leads, only if they belong to this user or to
    /// root.
    ///
    /// # Errors
    /// If the folder can't be opened or created, if it or a parent that was missing belongs to another user, or if
    /// others may write it. The error says which.
    pub fn open(path: &Path) -> io::Result<PrivateFolder> {
        // Without a slash at the end: the system would follow a link before it.
        let path: PathBuf = absolute(path)?.components().collect();
        match open_existing(&path) {
            Ok(handle) => {
                let folder = PrivateFolder { handle: Arc::new(handle), path };
                folder.check()?;
                Ok(folder)
            }
            Err(error) if Errno::from_io_error(&error) == Some(Errno::NOENT) => {
                Self::create_with_parents(&path)
            }
            Err(error) => Err(error),
        }
    }

    /// Creates the folder at `path` and its missing parents. What others create there meanwhile is checked as well.
    fn create_with_parents(path: &Path) -> io::Result<PrivateFolder> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut existing = path;
        let mut missing: Vec<&OsStr> = Vec::new();
        let handle = loop {
            let (Some(parent), Some(name)) = (existing.parent(), existing.file_name()) else {
                return Err(Errno::NOENT.into());
            };
            missing.push(name);
            existing = parent;
            match open(existing, flags, Mode::empty()) {
                Ok(handle) => break handle,
                Err(Errno::NOENT) => {}
                Err(error) => return Err(error.into()),
            }
        };
        let mut folder = PrivateFolder { handle: Arc::new(handle), path: existing.to_owned() };
        while let Some(name) = missing.pop() {
            folder = folder.subfolder(name)?;
        }
        Ok(folder)
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

/// Opens the folder at `path`. A link in its place is read, checked and followed here: the system opens none.
fn open_existing(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut place = path.to_owned();
    for _ in 0..=LINKS_MAX {
        match open(&place, flags, Mode::empty()) {
            Ok(handle) => return Ok(handle),
            Err(Errno::NOENT) if place != path => return Err(leads_nowhere()),
            // Linux returns the latter for a link.
            Err(error @ (Errno::LOOP | Errno::NOTDIR)) => {
                let target = read_link(&place).map_err(|error| {
                    io::Error::new(error.kind(), format!("{}: {error}", place.display()))
                })?;
                place = target.ok_or(error)?.components().collect();
            }
            Err(error) => return Err(error.into()),
        }
    }
    Err(leads_nowhere())
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
