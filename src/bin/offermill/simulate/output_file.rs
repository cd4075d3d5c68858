//! Output files that are written atomically: to a temporary file, which then replaces the old one.

use std::io::Write;
use std::path::{Path, PathBuf};

use offermill::private_files::{check_replaceable, replace, resolve};

use crate::output::remark;

/// The path of a file to write at the end, checked at the start.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct OutputFile {
    path: PathBuf,
}

impl OutputFile {
    /// Checks that a file can be created in the path's folder.
    ///
    /// # Errors
    /// With a sentence that says why it can't.
    pub(super) fn check(flag: &str, path: &Path) -> Result<OutputFile, String> {
        let complain = |why: String| format!("{flag} {}: {why}", path.display());
        if path == Path::new("-") {
            let why = "it can't go to standard output; a file of that name is ./-";
            return Err(complain(why.to_owned()));
        }
        if path.file_name().is_none() || path.is_dir() {
            return Err(complain("this is a folder, not a file".to_owned()));
        }
        // The target of a link is replaced, not the link; and only regular files, no devices.
        let path = resolve(path).map_err(|error| complain(error.to_string()))?;
        if path.exists() && !path.is_file() {
            return Err(complain("this is not a regular file".to_owned()));
        }
        let file = OutputFile { path };
        check_replaceable(&file.path).map_err(|error| {
            let folder = file.folder().display().to_string();
            complain(format!("the folder {folder} can't be written to: {error}"))
        })?;
        Ok(file)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the file, which only its owner may read. On failure, prints the error and returns false.
    pub(super) fn write(&self, text: &str) -> bool {
        let written = replace(&self.path, |file| {
            file.write_all(text.as_bytes())?;
            file.sync_all()
        });
        if let Err(error) = &written {
            remark(&format!("{} can't be written: {error}", self.path.display()));
        }
        written.is_ok()
    }

    fn folder(&self) -> &Path {
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        folder.unwrap_or(Path::new("."))
    }
}
