//! Links are followed one at a time, each only if it belongs to this user or to root. The system would follow them all.

use std::ffi::{CString, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Stat, readlinkat};

use super::{check_owner, refused};

/// The maximum number of links that lead from one to the next. Linux has the same limit.
pub(super) const LINKS_MAX: u32 = 40;

/// Returns where the link at `path` leads, through the links that it leads to, or `path` itself if there is no link.
/// Links among the parents of these paths are followed by the system, whoever they belong to.
///
/// # Errors
/// If one of the links belongs to another user, or if they lead nowhere.
pub fn resolve(path: &Path) -> io::Result<PathBuf> {
    let mut place = path.to_owned();
    for _ in 0..=LINKS_MAX {
        match read_link(&place) {
            Ok(Some(target)) => place = target,
            Ok(None) => return Ok(place),
            Err(error) if error.kind() == io::ErrorKind::NotFound && place == path => {
                return Ok(place);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(leads_nowhere()),
            Err(error) if place == path => return Err(error),
            Err(error) => {
                let why = format!("it leads to {}: {error}", place.display());
                return Err(io::Error::new(error.kind(), why));
            }
        }
    }
    Err(leads_nowhere())
}

/// Returns the path to which the link at `path` leads, or nothing if it is not a link. `path` must not end with a
/// slash: the system follows the link of such a path.
///
/// # Errors
/// If there is nothing at `path`, or if the link belongs to another user.
pub(super) fn read_link(path: &Path) -> io::Result<Option<PathBuf>> {
    let (found, target) = look_at(path)?;
    let Some(target) = target else { return Ok(None) };
    check_owner(&found).map_err(|_| {
        let owner = found.st_uid;
        refused(format!("it is a link of another user, whose id is {owner}, which is not followed"))
    })?;
    let folder = path.parent().unwrap_or(Path::new(""));
    Ok(Some(folder.join(OsStr::from_bytes(target.as_bytes()))))
}

pub(super) fn leads_nowhere() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "it is a link that leads nowhere")
}

/// What is at `path`, and its target if it is a link. Both are of the same link, even if the path is changed meanwhile.
#[cfg(target_os = "linux")]
fn look_at(path: &Path) -> io::Result<(Stat, Option<CString>)> {
    use rustix::fs::{Mode, OFlags, fstat, open};
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let handle = open(path, flags, Mode::empty())?;
    let found = fstat(&handle)?;
    let target = is_link(&found).then(|| readlinkat(&handle, "", Vec::new())).transpose()?;
    Ok((found, target))
}

/// What is at `path`, and its target if it is a link. Not every system can open a link.
#[cfg(not(target_os = "linux"))]
fn look_at(path: &Path) -> io::Result<(Stat, Option<CString>)> {
    use rustix::fs::{AtFlags, CWD, statat};
    let found = statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW)?;
    let target = is_link(&found).then(|| readlinkat(CWD, path, Vec::new())).transpose()?;
    Ok((found, target))
}

fn is_link(found: &Stat) -> bool {
    FileType::from_raw_mode(found.st_mode) == FileType::Symlink
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// Goal: links of one's own are followed to their end, and those without one are named. Method: a file through
    /// three links, relative and absolute; nothing at all; a link to nothing; a circle.
    #[test]
    fn links_are_followed_to_their_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("file"), "").unwrap();
        symlink("file", path("one")).unwrap();
        symlink(path("one"), path("two")).unwrap();
        symlink("two", path("three")).unwrap();
        for name in ["file", "three"] {
            assert_eq!(resolve(&path(name)).unwrap(), path("file"));
        }
        assert_eq!(resolve(&path("missing")).unwrap(), path("missing"));
        symlink("missing", path("dangling")).unwrap();
        symlink("circle", path("circle")).unwrap();
        for name in ["dangling", "circle"] {
            let why = resolve(&path(name)).unwrap_err().to_string();
            assert_eq!(why, "it is a link that leads nowhere");
        }
    }
}
