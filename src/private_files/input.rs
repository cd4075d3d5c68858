//! Files that the user names to be read, such as those with secrets: whose they are, and who else may use them.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, Stat, fcntl_getfl, fcntl_setfl, fstat, stat};

use super::{check_owner, is_trusted, is_trusted_group, refused};

/// What users other than this one and root may do with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exposure {
    /// Nothing; or it is not a regular file, so its permissions say nothing about its text.
    Private,
    /// The file's group may read it.
    ReadByGroup,
    /// All may read it.
    ReadByAll,
    /// Its group or all may write it, so its text may be theirs.
    Written,
    /// It belongs to the user of this id, so its text may be theirs.
    Foreign(u32),
}

impl Exposure {
    /// Reads the owner and the permissions of an open file. A group that is the user's alone isn't other users: it is
    /// taken for that if it is the effective group of this process and has the id of its user.
    ///
    /// # Errors
    /// If the file's metadata can't be read.
    pub fn of(file: &File) -> io::Result<Exposure> {
        let found = fstat(file)?;
        if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
            return Ok(Exposure::Private);
        }
        if !is_trusted(found.st_uid) {
            return Ok(Exposure::Foreign(found.st_uid));
        }
        let mut others = Mode::from_raw_mode(found.st_mode);
        if is_trusted_group(found.st_gid) {
            others -= Mode::RWXG;
        }
        Ok(if others.intersects(Mode::WGRP | Mode::WOTH) {
            Exposure::Written
        } else if others.contains(Mode::ROTH) {
            Exposure::ReadByAll
        } else if others.contains(Mode::RGRP) {
            Exposure::ReadByGroup
        } else {
            Exposure::Private
        })
    }
}

/// Opens a file, a pipe or a device for reading. Links are followed. Opening a pipe waits for its writer.
///
/// # Errors
/// If it can't be opened, or if it is a pipe of another user, which might never have a writer. The pipes that this
/// process inherited, such as `/dev/stdin`, are no such error.
pub fn open_input(path: &Path) -> io::Result<File> {
    let is_pipe = |found: &Stat| FileType::from_raw_mode(found.st_mode) == FileType::Fifo;
    let found = stat(path)?;
    if is_pipe(&found) {
        let is_inherited = ["/dev/fd", "/dev/stdin", "/proc"].iter().any(|it| path.starts_with(it));
        if !is_inherited {
            check_owner(&found)?;
        }
        return File::open(path);
    }
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if is_pipe(&fstat(&file)?) {
        return Err(refused("a pipe has taken its place".to_owned()));
    }
    fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    Ok(file)
}
