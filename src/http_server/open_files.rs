//! How many files this program may have open, and how many of them connections may take.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The most files that a program may have open on systems that have no limit, or refuse it.
const FILES_ENOUGH: u64 = 10_240;
/// The most files that are kept free of connections: those of the program, and those that it opens meanwhile.
const FILES_RESERVED_MAX: usize = 256;

/// Raises the soft limit of open files to the hard one. Programs that are started afterwards inherit it. Where it can't
/// be raised, it stays.
pub fn raise_open_files() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    for raised in [maximum, Some(FILES_ENOUGH)] {
        // No limit is above all others.
        let is_higher = current.is_some_and(|now| raised.is_none_or(|raised| raised > now));
        if !is_higher || setrlimit(Resource::Nofile, Rlimit { current: raised, maximum }).is_ok() {
            return;
        }
    }
}

/// How many connections may be open at a time, at most `most`: as many as leave files for other things under the limit
/// of this program, 256 or half of them if that is less.
#[must_use]
pub fn connections_within_files(most: usize) -> usize {
    connections_within(most, getrlimit(Resource::Nofile).current)
}

fn connections_within(most: usize, files: Option<u64>) -> usize {
    let Some(files) = files else { return most };
    let files = usize::try_from(files).unwrap_or(usize::MAX);
    most.min(files - FILES_RESERVED_MAX.min(files / 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: connections never take all files that may be open. Method: limits from none to no limit.
    #[test]
    fn connections_leave_files() {
        for (files, expected) in [
            (None, 2048),
            (Some(u64::MAX), 2048),
            (Some(2304), 2048),
            (Some(1024), 768),
            (Some(512), 256),
            (Some(64), 32),
            (Some(0), 0),
        ] {
            assert_eq!(connections_within(2048, files), expected, "{files:?}");
        }
    }
}
