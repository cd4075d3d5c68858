//! The socket in the file system: for its owner only, in nobody's place, and gone at the end.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, Mode, OFlags, fchmod, flock};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind as bind_to, connect, listen,
    socket_with,
};

/// Read and written by the owner; to connect one has to be able to write.
const MODE: u32 = 0o600;
/// So many clients may wait to be let in.
const WAITING_MAX: i32 = 16;
/// Whoever else opens a socket in the same folder has this many tries' time to be done.
const LOCK_TRIES: u32 = 20;
const LOCK_PAUSE: Duration = Duration::from_millis(50);

/// A socket's file, removed when this is dropped, if it is still the same.
#[derive(Debug)]
pub(super) struct Claim {
    path: PathBuf,
    identity: (u64, u64),
}

impl Drop for Claim {
    fn drop(&mut self) {
        if fs::symlink_metadata(&self.path).is_ok_and(|found| identity(&found) == self.identity) {
            // What can't be removed is replaced by the next run.
            let _left = fs::remove_file(&self.path);
        }
    }
}

/// Makes a socket at `path` and listens to it.
///
/// # Errors
/// The rest of a sentence that began with the path: that it is too long, in use, no socket, or in a place where none
/// can be made.
pub(super) fn bind(path: &Path) -> Result<(UnixListener, Claim), String> {
    let address = SocketAddrUnix::new(path)
        .map_err(|_| "must be a path of 1 to 107 bytes for a socket, or - for standard input")?;
    let no_socket = |error: io::Error| format!("no socket can be made there: {error}");
    // Two runs that find the same remains don't remove each other's new socket.
    let _lock = lock_folder(path);
    clear_remains(path, &address)?;
    let kind = SocketType::STREAM;
    let socket = socket_with(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None);
    let socket: OwnedFd = socket.map_err(|error| no_socket(error.into()))?;
    // On Linux the file begins with the mode of its socket, so that there is no moment at which others may connect.
    let _elsewhere = fchmod(&socket, Mode::from_raw_mode(MODE));
    bind_to(&socket, &address).map_err(|error| no_socket(error.into()))?;
    let claim = || -> io::Result<Claim> {
        let claim =
            Claim { path: path.to_owned(), identity: identity(&fs::symlink_metadata(path)?) };
        fs::set_permissions(path, fs::Permissions::from_mode(MODE))?;
        listen(&socket, WAITING_MAX)?;
        Ok(claim)
    };
    let claim = claim().map_err(no_socket)?;
    Ok((UnixListener::from(socket), claim))
}

/// Removes a socket to which nobody listens any more.
fn clear_remains(path: &Path, address: &SocketAddrUnix) -> Result<(), String> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(format!("no socket can be made there: {error}")),
    };
    if !found.file_type().is_socket() {
        return Err("there is something else already, and it is no socket".to_owned());
    }
    match try_connect(address) {
        // One whose queue is full is alive, too.
        Ok(()) | Err(Errno::AGAIN) => {
            Err("somebody listens there already; expected a socket of this run's own".to_owned())
        }
        Err(Errno::CONNREFUSED | Errno::NOENT) => match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(format!("the remains of a former run can't be removed: {error}"))
            }
            _ => Ok(()),
        },
        Err(error) => {
            Err(format!("there is a socket, and whether it is in use can't be told: {error}"))
        }
    }
}

/// Without waiting for anybody.
fn try_connect(address: &SocketAddrUnix) -> Result<(), Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(&socket, address)
}

/// Locks the folder for as long as the file lives; goes on without if others hold it for long, or it can't be locked.
fn lock_folder(path: &Path) -> Option<File> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    // A pipe in its place would have that wait for good.
    let flags = OFlags::DIRECTORY.bits().cast_signed();
    let folder = folder.unwrap_or(Path::new("."));
    let folder = OpenOptions::new().read(true).custom_flags(flags).open(folder).ok()?;
    for _ in 0..LOCK_TRIES {
        match flock(&folder, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => std::thread::sleep(LOCK_PAUSE),
            locked => return locked.is_ok().then_some(folder),
        }
    }
    None
}

fn identity(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}
