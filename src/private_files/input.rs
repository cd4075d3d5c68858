//! Files that the user names to be read, such as those with secrets: whose they are, and who else may use them.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::{
    Access, AtFlags, CWD, FileType, Mode, OFlags, Stat, accessat, fcntl_getfl, fcntl_setfl, fstat,
    stat,
};

use super::{check, is_trusted, is_trusted_group, refused};

/// What users other than this one and root may do with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileAccess {
    /// Nothing; or it is neither a regular file nor a pipe, so its permissions say nothing about its text.
    Private,
    /// The file's group may read it.
    ReadByGroup,
    /// All may read it.
    ReadByAll,
    /// Its group or all may write it, so its text may be theirs.
    Written,
    /// It is a regular file that belongs to the user of this id, so its text may be theirs. (The owner of a pipe is
    /// checked by [`open_input`], because the pipes that a process inherits may be those of the user that started it.)
    Foreign(u32),
}

impl FileAccess {
    /// Reads the owner and the permissions of an open file. A group that is the user's alone isn't other users: it is
    /// taken for that if it is the effective group of this process and has the id of its user.
    ///
    /// # Errors
    /// If the file's metadata can't be read.
    pub fn of(file: &File) -> io::Result<FileAccess> {
        Ok(FileAccess::from_stat(&fstat(file)?))
    }

    /// Reads the owner and the permissions of a file without opening it, for a remark: the file may be another one when
    /// it is opened. Links are followed.
    ///
    /// # Errors
    /// If there is no such file, or if this user may not read it.
    pub fn of_path(path: &Path) -> io::Result<FileAccess> {
        let found = stat(path)?;
        accessat(CWD, path, Access::READ_OK, AtFlags::EACCESS)?;
        Ok(FileAccess::from_stat(&found))
    }

    fn from_stat(found: &Stat) -> FileAccess {
        match FileType::from_raw_mode(found.st_mode) {
            FileType::RegularFile if !is_trusted(found.st_uid) => {
                return FileAccess::Foreign(found.st_uid);
            }
            FileType::RegularFile => {}
            // Other systems than Linux say of pipes without a name that their group may write them.
            FileType::Fifo if cfg!(target_os = "linux") || found.st_nlink > 0 => {}
            _ => return FileAccess::Private,
        }
        let mut others = Mode::from_raw_mode(found.st_mode);
        if is_trusted_group(found.st_gid) {
            others -= Mode::RWXG;
        }
        if others.intersects(Mode::WGRP | Mode::WOTH) {
            FileAccess::Written
        } else if others.contains(Mode::ROTH) {
            FileAccess::ReadByAll
        } else if others.contains(Mode::RGRP) {
            FileAccess::ReadByGroup
        } else {
            FileAccess::Private
        }
    }

    /// Fails if the text of the file may be another user's.
    ///
    /// # Errors
    /// With the reason.
    pub fn check_author(self) -> io::Result<()> {
        match self {
            FileAccess::Foreign(owner) => {
                Err(io::Error::other(format!("it belongs to another user, whose id is {owner}")))
            }
            FileAccess::Written => {
                Err(io::Error::other("it can be written by others; chmod go-w would do"))
            }
            FileAccess::Private | FileAccess::ReadByGroup | FileAccess::ReadByAll => Ok(()),
        }
    }

    /// Fails if the text of the file may be another user's, or if others may read it.
    ///
    /// # Errors
    /// With the reason.
    pub fn check_private(self) -> io::Result<()> {
        self.check_author()?;
        match self {
            FileAccess::Private => Ok(()),
            _ => Err(io::Error::other("other users may read it; chmod go-r would do")),
        }
    }
}

/// Opens a file, a pipe or a device for reading. Links are followed. Opening a pipe waits for its writer.
///
/// # Errors
/// If it can't be opened, or if it is a pipe of another user, which might never have a writer, or one that others may
/// write. The pipes that this process inherited, such as `/dev/stdin`, are no such error.
pub fn open_input(path: &Path) -> io::Result<File> {
    let is_pipe = |found: &Stat| FileType::from_raw_mode(found.st_mode) == FileType::Fifo;
    let found = stat(path)?;
    if is_pipe(&found) {
        if is_inherited(path) {
            return File::open(path);
        }
        // Before it is opened, because that waits for a writer; and after it, because another may have taken its place.
        check(&found)?;
        let file = File::open(path)?;
        check(&fstat(&file)?)?;
        return Ok(file);
    }
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if is_pipe(&fstat(&file)?) {
        return Err(refused("a pipe has taken its place".to_owned()));
    }
    fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    Ok(file)
}

/// Whether a path names a descriptor of a process, such as `/dev/fd/3` or `/proc/self/fd/3`: not a file in a folder
/// that is reached through one.
fn is_inherited(path: &Path) -> bool {
    let parts: Vec<_> = path.components().map(|part| part.as_os_str().to_str()).collect();
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    match parts.as_slice() {
        [Some("/"), Some("dev"), Some("stdin")] => true,
        [Some("/"), Some("dev"), Some("fd"), Some(number)]
        | [Some("/"), Some("proc"), Some(_), Some("fd"), Some(number)] => is_number(number),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::path::PathBuf;

    use rustix::fs::{FileType, chmod, mknodat};

    use super::*;

    fn pipe(folder: &Path, mode: u32) -> PathBuf {
        let path = folder.join(format!("pipe-{mode:o}"));
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        chmod(&path, Mode::from_raw_mode(mode)).unwrap();
        path
    }

    /// Goal: a pipe that others may write is refused as a file is, before it is opened, and when it comes as an
    /// inherited one. Method: pipes that all, and that a foreign group may write.
    #[test]
    fn pipes_that_others_may_write_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        for mode in [0o622, 0o666, 0o602] {
            let path = pipe(folder.path(), mode);
            assert_eq!(FileAccess::of_path(&path).unwrap(), FileAccess::Written, "{mode:o}");
            let both = OpenOptions::new().read(true).write(true).open(&path).unwrap();
            assert_eq!(FileAccess::of(&both).unwrap(), FileAccess::Written, "{mode:o}");
            let error = open_input(&path).unwrap_err();
            assert!(error.to_string().contains("other users may write it"), "{error}");
        }
    }

    /// Goal: a pipe of this user's own is read, and so is one that was inherited. Method: a pipe with a writer; a pipe
    /// without a name.
    #[test]
    fn own_pipes_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = pipe(folder.path(), 0o600);
        let writer = {
            let path = path.clone();
            std::thread::spawn(move || std::fs::write(path, "text").unwrap())
        };
        let mut file = open_input(&path).unwrap();
        assert_eq!(FileAccess::of(&file).unwrap(), FileAccess::Private);
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        writer.join().unwrap();
        assert_eq!(text, "text");
        let (reader, mut writer) = std::io::pipe().unwrap();
        writer.write_all(b"more").unwrap();
        drop(writer);
        let reader = File::from(std::os::fd::OwnedFd::from(reader));
        assert_eq!(FileAccess::of(&reader).unwrap(), FileAccess::Private);
    }
}
