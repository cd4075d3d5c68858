//! The control socket's file: accessible to its owner only, never in the place of another file, removed at the end.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, Mode, OFlags, fchmod, flock};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind as bind_to, connect, listen,
    socket_with,
};

/// The permissions of the file: to connect, a process needs write permission.
const MODE: u32 = 0o600;
/// The backlog of connections that were not accepted yet.
const BACKLOG_MAX: i32 = 16;
/// The attempts to lock the folder while another run opens a socket in it.
const LOCK_TRIES: u32 = 20;
/// The pause between two attempts.
const LOCK_PAUSE: Duration = Duration::from_millis(50);
/// The pause between two attempts to connect.
const CONNECT_PAUSE: Duration = Duration::from_millis(20);

/// A socket's file, removed when this is dropped unless another file has taken its place.
#[derive(Debug)]
pub(super) struct SocketFile {
    path: PathBuf,
    identity: (u64, u64),
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if fs::symlink_metadata(&self.path).is_ok_and(|found| identity(&found) == self.identity) {
            // The next run replaces a file that can't be removed.
            let _left = fs::remove_file(&self.path);
        }
    }
}

/// Creates a socket at `path` and listens to it.
///
/// # Errors
/// With the rest of a sentence that begins with the path: the path is too long, in use or no socket, or no socket can
/// be created there.
pub(super) fn bind(path: &Path) -> Result<(UnixListener, SocketFile), String> {
    let address = SocketAddrUnix::new(path)
        .map_err(|_| "must be a path of 1 to 107 bytes for a socket, or - for standard input")?;
    let no_socket = |error: io::Error| format!("the socket can't be created: {error}");
    // Two runs that find the same unused socket must not remove each other's new one.
    let _lock = lock_folder(path);
    remove_unused(path, &address)?;
    let kind = SocketType::STREAM;
    let socket = socket_with(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None);
    let socket: OwnedFd = socket.map_err(|error| no_socket(error.into()))?;
    // On Linux the file is created with the mode of its socket, so others can never connect.
    let _unsupported = fchmod(&socket, Mode::from_raw_mode(MODE));
    bind_to(&socket, &address).map_err(|error| no_socket(error.into()))?;
    let open = || -> io::Result<SocketFile> {
        let file =
            SocketFile { path: path.to_owned(), identity: identity(&fs::symlink_metadata(path)?) };
        fs::set_permissions(path, fs::Permissions::from_mode(MODE))?;
        listen(&socket, BACKLOG_MAX)?;
        Ok(file)
    };
    let file = open().map_err(no_socket)?;
    Ok((UnixListener::from(socket), file))
}

/// Removes a socket that no process listens to any more.
fn remove_unused(path: &Path, address: &SocketAddrUnix) -> Result<(), String> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(format!("the socket can't be created: {error}")),
    };
    if !found.file_type().is_socket() {
        return Err("another file exists there, which is not a socket".to_owned());
    }
    match try_connect(address) {
        // A socket with a full backlog is in use, too.
        Ok(_) | Err(Errno::AGAIN) => {
            Err("another process already listens there; expected a socket of this run's own"
                .to_owned())
        }
        Err(Errno::CONNREFUSED | Errno::NOENT) => match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(format!("the socket of a former run can't be removed: {error}"))
            }
            _ => Ok(()),
        },
        Err(error) => Err(format!(
            "a socket exists there, and it can't be determined whether it is in use: {error}"
        )),
    }
}

/// Connects without blocking. The socket stays non-blocking.
fn try_connect(address: &SocketAddrUnix) -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(&socket, address)?;
    Ok(socket)
}

/// Connects to a run. While it has no room for another connection, tries again until `give_up`.
///
/// # Errors
/// If no process listens at `path`, or `give_up` has passed.
pub(super) fn connect_until(path: &Path, give_up: Instant) -> io::Result<UnixStream> {
    let address = SocketAddrUnix::new(path)?;
    loop {
        match try_connect(&address) {
            Ok(socket) => {
                let stream = UnixStream::from(socket);
                stream.set_nonblocking(false)?;
                return Ok(stream);
            }
            Err(Errno::AGAIN) if Instant::now() < give_up => std::thread::sleep(CONNECT_PAUSE),
            Err(Errno::AGAIN) => {
                return Err(io::Error::new(ErrorKind::TimedOut, "it accepts no connection"));
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Locks the folder until the returned file is dropped; `None` if another process holds the lock for too long, or the
/// folder can't be locked.
fn lock_folder(path: &Path) -> Option<File> {
    let parent = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    // Without this flag, opening a pipe in the folder's place would block for ever.
    let flags = OFlags::DIRECTORY.bits().cast_signed();
    let path = parent.unwrap_or(Path::new("."));
    let folder = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
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
