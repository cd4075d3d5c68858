//! Files outside of a [`PrivateFolder`](super::PrivateFolder), in a folder that the user names and that others may be
//! able to write, such as `/tmp`.

use std::fs::{File, OpenOptions, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

use rustix::fs::{FileType, Mode, OFlags, fchmod, fstat};
use rustix::io::Errno;
use tempfile::NamedTempFile;

use super::{FILE_MODE, check, check_owner, effective_uid, refused};

/// Creates a file with mode 0600, and opens it for writing.
///
/// # Errors
/// If it exists, also as a link, or if it can't be created.
pub fn create_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).open(path)
}

/// Opens a file for reading.
///
/// # Errors
/// If it can't be opened, isn't a regular file, belongs to another user, or may be written by others. A link is such an
/// error, whatever it leads to.
pub fn open_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    let file = open_regular(&mut options, path)?;
    check(&fstat(&file)?)?;
    Ok(file)
}

/// Opens a file to lock it, or creates it. From then on other users can't open it. Those who opened it when it had
/// another mode may still hold its lock: it isn't replaced, because another program of this user may hold it as well.
///
/// # Errors
/// If it can't be opened or created, isn't a regular file, or belongs to another user. A link is such an error.
pub fn open_lock(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(FILE_MODE);
    let file = open_regular(&mut options, path)?;
    let found = fstat(&file)?;
    check_owner(&found)?;
    if found.st_uid != effective_uid() {
        check(&found)?;
    } else if Mode::from_raw_mode(found.st_mode).intersects(Mode::RWXG | Mode::RWXO) {
        // Some file systems have no modes.
        let _unsupported = fchmod(&file, Mode::RUSR | Mode::WUSR);
    }
    Ok(file)
}

/// Takes the lock of a file. Waits up to a second if it is held, because the other program may just be ending, or a
/// process that it forked may have yet to execute a program: until then such a process holds the lock too.
///
/// # Errors
/// If the lock is still held then, or can't be taken.
pub fn lock_with_retry(lock: &File) -> Result<(), TryLockError> {
    for _ in 0..20 {
        match lock.try_lock() {
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(50)),
            done => return done,
        }
    }
    lock.try_lock()
}

/// Writes a file anew: `write` fills a file with a random name in the same folder, with mode 0600, which then takes the
/// place of `path` atomically. A link at `path` is replaced, not followed. Returns the new file, open for writing.
///
/// # Errors
/// If the file can't be created, `write` fails, or the file at `path` can't be replaced; it is unchanged then.
pub fn replace(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<File> {
    let mut file = temporary_file(path)?;
    write(file.as_file_mut())?;
    file.persist(path).map_err(|error| error.error)
}

/// Checks that a file can be created in the folder of `path`, as [`replace`] does.
///
/// # Errors
/// If no file can be created.
pub fn check_replaceable(path: &Path) -> io::Result<()> {
    temporary_file(path).map(drop)
}

/// Creates a file with a random name beside `path`. It is removed when it is dropped.
fn temporary_file(path: &Path) -> io::Result<NamedTempFile> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    // File names are limited to 255 bytes.
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let short: String = name.chars().take(48).collect();
    tempfile::Builder::new()
        .prefix(&format!(".{short}."))
        .suffix(".part")
        .permissions(Permissions::from_mode(FILE_MODE))
        .tempfile_in(folder.unwrap_or(Path::new(".")))
}

/// Opens an existing file for writing at its start: a regular file or pipe of this user's or of root that others can't
/// write, or any character device. Opening a pipe doesn't block.
///
/// # Errors
/// If it can't be opened, or if it is no character device and belongs to another user or may be written by others. A
/// link is such an error.
pub fn open_output(path: &Path) -> io::Result<File> {
    let file = open_unfollowed(OpenOptions::new().write(true), path)?;
    let found = fstat(&file)?;
    // Terminals and /dev/null may be written by others.
    if FileType::from_raw_mode(found.st_mode) != FileType::CharacterDevice {
        check(&found)?;
    }
    Ok(file)
}

/// Opens a regular file without following a link.
fn open_regular(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let file = open_unfollowed(options, path)?;
    if FileType::from_raw_mode(fstat(&file)?.st_mode) != FileType::RegularFile {
        return Err(not_regular());
    }
    Ok(file)
}

/// Opens a file without following a link. Opening a pipe doesn't block.
fn open_unfollowed(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let opened = options.custom_flags(flags.bits().cast_signed()).open(path);
    opened.map_err(|error| match Errno::from_io_error(&error) {
        Some(Errno::LOOP) => refused("it is a link, which is not followed".to_owned()),
        Some(Errno::ISDIR) => not_regular(),
        _ => error,
    })
}

fn not_regular() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")
}
