//! Whose the text of a file may be that the user named, and who may read it: remarks and problems.

use std::fs::File;
use std::io;

use offermill::private_files::Exposure;

/// Adds a remark about the file with a secret at `path` if others may read it, or a problem if the secret may be
/// theirs.
pub(crate) fn report_exposure(
    exposure: Exposure,
    path: &str,
    remarks: &mut Vec<String>,
    problems: &mut Vec<String>,
) {
    let sentence =
        |may| format!("{path:?} has a secret in it and can be {may}; chmod go-rwx would do");
    match exposure {
        Exposure::Private => {}
        Exposure::ReadByGroup => remarks.push(sentence("read by its group")),
        Exposure::ReadByAll => remarks.push(sentence("read by everybody")),
        Exposure::Written => problems.push(sentence("written by others")),
        Exposure::Foreign(owner) => problems.push(format!(
            "{path:?} has a secret in it and belongs to another user, whose id is {owner}"
        )),
    }
}

/// Fails if the text of a file may be another user's.
pub(crate) fn check_author(file: &File) -> io::Result<()> {
    match Exposure::of(file)? {
        Exposure::Foreign(owner) => {
            Err(io::Error::other(format!("it belongs to another user, whose id is {owner}")))
        }
        Exposure::Written => {
            Err(io::Error::other("it can be written by others; chmod go-w would do"))
        }
        _ => Ok(()),
    }
}
