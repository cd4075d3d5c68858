//! Output files that are written atomically: to a temporary file, which then replaces the old one.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

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
        // Replace the target of a symbolic link, not the link; and only regular files, no devices.
        let target = path.is_symlink().then(|| path.canonicalize().ok()).flatten();
        let path = target.unwrap_or_else(|| path.to_owned());
        if path.exists() && !path.is_file() {
            return Err(complain("this is not a regular file".to_owned()));
        }
        let file = OutputFile { path };
        let probe = file.temporary_path();
        fs::File::create(&probe).and_then(|_| fs::remove_file(&probe)).map_err(|error| {
            let folder = file.folder().display().to_string();
            complain(format!("the folder {folder} can't be written to: {error}"))
        })?;
        Ok(file)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the file. On failure, prints the error and returns false.
    pub(super) fn write(&self, text: &str) -> bool {
        let temporary = self.temporary_path();
        let written =
            write_and_sync(&temporary, text).and_then(|()| fs::rename(&temporary, &self.path));
        if let Err(error) = &written {
            // Creating the temporary file may have failed; then there is nothing to remove.
            let _unfinished = fs::remove_file(&temporary);
            remark(&format!("{} can't be written: {error}", self.path.display()));
        }
        written.is_ok()
    }

    fn folder(&self) -> &Path {
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        folder.unwrap_or(Path::new("."))
    }

    /// The temporary file. It is in the same folder, so that renaming doesn't copy, and has the process id in its name,
    /// so that two processes don't share it.
    fn temporary_path(&self) -> PathBuf {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        // File names are limited to 255 bytes.
        let short: String = name.chars().take(48).collect();
        self.folder().join(format!(".{short}.{}.part", std::process::id()))
    }
}

fn write_and_sync(path: &Path, text: &str) -> io::Result<()> {
    let mut file = fs::File::create(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}
