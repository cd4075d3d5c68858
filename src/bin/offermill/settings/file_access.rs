//! Whose the text of a file may be that the user named, and who may read it: remarks and problems.

use offermill::private_files::FileAccess;

/// Adds a remark about the file with a secret at `path` if others may read it, or a problem if the secret may be
/// theirs.
pub(crate) fn report_file_access(
    file_access: FileAccess,
    path: &str,
    remarks: &mut Vec<String>,
    problems: &mut Vec<String>,
) {
    let sentence =
        |may| format!("{path:?} has a secret in it and can be {may}; chmod go-rwx would do");
    match file_access {
        FileAccess::Private => {}
        FileAccess::ReadByGroup => remarks.push(sentence("read by its group")),
        FileAccess::ReadByAll => remarks.push(sentence("read by everybody")),
        FileAccess::Written => problems.push(sentence("written by others")),
        FileAccess::Foreign(owner) => problems.push(format!(
            "{path:?} has a secret in it and belongs to another user, whose id is {owner}"
        )),
    }
}
