//! Private files and folders: the one place that decides which folders are trusted and how files are created.
//!
//! | rule | kept by |
//! |---|---|
//! | A folder is used only if it belongs to this user or to root, and others have no write permission | [`PrivateFolder::open`], [`PrivateFolder::subfolder`] |
//! | Folders below it are reached through directory handles, and links are not followed, so renaming a folder or planting a link redirects nothing | [`PrivateFolder`] |
//! | Output of executors is read from the folders that are trusted, through their handles | [`PrivateFolder::open_existing`], [`PrivateFolder::open_file`] |
//! | New folders have mode 0700, new files 0600 | all functions here |
//! | A new file never opens or overwrites a file that exists, whatever its name leads to | [`PrivateFolder::create_file`], [`create_file`], [`replace`] |
//! | A file that is replaced is written under a random name first | [`replace`] |
//! | A file is read or locked only if it is a regular file of this user's or of root, and others can't write it | [`open_file`], [`open_lock`] |
//! | A file that is locked can't be opened by others from then on | [`open_lock`] |
//! | A pipe is written only if it belongs to this user or to root, and others can't write it | [`open_output`] |
//! | A link in the place of a file or folder that the user named is followed only if it belongs to this user or to root, and so is each link that it leads to | [`resolve`], [`PrivateFolder::open`] |
//! | Whose text a file may have that the user named, and who may read it, is said | [`FileAccess`], [`open_input`] |
//!
//! Not checked are links and folders among the parents of a path that the user named.
//!
//! "Others" are all users but this one and root. A group may write if it is root's, or if it is the effective group of
//! this process and its id is that of the user: where each user has a group of their own, their ids are the same, and
//! files and folders are writable by that group by default. Other groups may have further members.
//!
//! The command line uses this module, too. It is not a part of the documented interface.

mod file;
mod folder;
mod input;
mod links;

use std::io;

use rustix::fs::{Mode, Stat};
use rustix::process::{getegid, geteuid};

pub use file::{
    check_replaceable, create_file, lock_with_retry, open_file, open_lock, open_output, replace,
};
pub use folder::PrivateFolder;
pub use input::{FileAccess, open_input};
pub use links::resolve;

/// The mode of new files, 0600, for the standard library. Systems differ in the type that rustix takes.
const FILE_MODE: u32 = 0o600;

/// Returns the id of the user as whom this process acts.
#[must_use]
pub fn effective_uid() -> u32 {
    geteuid().as_raw()
}

/// Whether the owner of a file is this user or root.
fn is_trusted(owner: u32) -> bool {
    owner == effective_uid() || owner == 0
}

/// Whether a group is root's, or this user's own. Containers with a user id of their own have root's group.
fn is_trusted_group(group: u32) -> bool {
    group == 0 || group == getegid().as_raw() && group == effective_uid()
}

/// Fails if a file or folder belongs to another user, or if others may write it.
fn check(stat: &Stat) -> io::Result<()> {
    check_owner(stat)?;
    let mode = Mode::from_raw_mode(stat.st_mode);
    let foreign_group = mode.contains(Mode::WGRP) && !is_trusted_group(stat.st_gid);
    if mode.contains(Mode::WOTH) || foreign_group {
        let mode = mode.bits();
        return Err(refused(format!("other users may write it: its mode is {mode:04o}")));
    }
    Ok(())
}

/// Fails if a file or folder belongs to another user.
fn check_owner(stat: &Stat) -> io::Result<()> {
    if is_trusted(stat.st_uid) {
        return Ok(());
    }
    Err(refused(format!("it belongs to another user, whose id is {}", stat.st_uid)))
}

fn refused(why: String) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, why)
}
