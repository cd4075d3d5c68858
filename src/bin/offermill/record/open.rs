//! `--journal FILE`: checks the path, creates both files and writes their first lines.

use std::io;
use std::path::{Path, PathBuf};

use super::head::{config_of, head};
use super::writer::JournalFiles;
use crate::scenario::IdsLine;
use crate::settings::RunSettings;
use crate::settings::draft::SettingsDraft;

/// Opens the journal at `path`; there is none without a path. On failure, returns `None` and adds the reason to the
/// draft's problems.
pub(crate) fn open(
    path: Option<&str>,
    draft: &mut SettingsDraft,
    settings: &RunSettings,
) -> Option<Option<JournalFiles>> {
    let Some(path) = path else { return Some(None) };
    if path == "-" {
        let sentence =
            "--journal is \"-\", but must be a file: the answers are written to a second file";
        draft.problems.push(sentence.to_owned());
        return None;
    }
    if is_descriptor(Path::new(path)) {
        let sentence = format!(
            "--journal is {path:?}, but must be the name of a file: a second file is written beside it, and other \
             output would be mixed with both"
        );
        draft.problems.push(sentence);
        return None;
    }
    let config = &settings.config;
    let ids = IdsLine { prefix: settings.id_prefix.clone(), epoch: settings.epoch };
    let head = head(draft, settings.executors.are_named().then_some(ids), config);
    if config_of(&head).ok().map(|(config, _)| config).as_ref() != Some(config) {
        let remark = "--journal: a setting that decisions depend on can't be written to a journal; a \
                      replay may differ";
        draft.remarks.push(remark.to_owned());
    }
    let sentence = |(path, error): (PathBuf, io::Error)| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            format!("--journal: {path:?} exists and isn't empty; it is not overwritten")
        }
        _ => format!("--journal: {path:?} can't be created: {error}"),
    };
    let created = JournalFiles::create(Path::new(path)).and_then(|mut files| {
        files.begin(&head, config).map_err(|error| (PathBuf::from(path), error))?;
        Ok(files)
    });
    created.map(Some).map_err(|error| draft.problems.push(sentence(error))).ok()
}

/// Whether a path names an open file of a process, such as `/dev/stdout` or `/dev/fd/3`.
fn is_descriptor(path: &Path) -> bool {
    let is_standard =
        ["/dev/stdin", "/dev/stdout", "/dev/stderr"].iter().any(|it| path == Path::new(it));
    let is_in_proc =
        path.starts_with("/proc") && path.parent().is_some_and(|it| it.ends_with("fd"));
    is_standard || path.parent() == Some(Path::new("/dev/fd")) || is_in_proc
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a journal isn't mixed with other output. Method: names of open files, and names of usual files.
    #[test]
    fn open_files_are_no_names_of_journals() {
        for path in ["/dev/stdout", "/dev/stderr", "/dev/fd/3", "/proc/self/fd/1", "/proc/7/fd/1"] {
            assert!(is_descriptor(Path::new(path)), "{path}");
        }
        for path in ["journal", "/dev/full", "fd/1", "/tmp/fd/1", "./stdout"] {
            assert!(!is_descriptor(Path::new(path)), "{path}");
        }
    }
}
