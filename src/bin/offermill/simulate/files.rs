//! Files that are there in whole or not at all.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::output::remark;

/// A file to be written at the end, which could be written at the start.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Target {
    path: PathBuf,
}

impl Target {
    /// Tries whether the file's folder takes a file.
    ///
    /// # Errors
    /// A sentence that says what is in the way.
    pub(super) fn check(flag: &str, path: &Path) -> Result<Target, String> {
        let complain = |why: String| format!("{flag} {}: {why}", path.display());
        if path == Path::new("-") {
            let why = "it can't go to standard output; a file of that name is ./-";
            return Err(complain(why.to_owned()));
        }
        if path.file_name().is_none() || path.is_dir() {
            return Err(complain("this is a folder, not a file".to_owned()));
        }
        // What a link leads to is replaced, not the link; and nothing that isn't a file, such as a device.
        let led_to = path.is_symlink().then(|| path.canonicalize().ok()).flatten();
        let path = led_to.unwrap_or_else(|| path.to_owned());
        if path.exists() && !path.is_file() {
            return Err(complain("this is not a regular file".to_owned()));
        }
        let target = Target { path };
        let probe = target.draft();
        fs::File::create(&probe).and_then(|_| fs::remove_file(&probe)).map_err(|error| {
            let folder = target.folder().display().to_string();
            complain(format!("the folder {folder} can't be written to: {error}"))
        })?;
        Ok(target)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes it. A failure is told, and false.
    pub(super) fn write(&self, text: &str) -> bool {
        let draft = self.draft();
        let written = write_through(&draft, text).and_then(|()| fs::rename(&draft, &self.path));
        if let Err(error) = &written {
            // It may not have come so far that there is one.
            let _unfinished = fs::remove_file(&draft);
            remark(&format!("{} can't be written: {error}", self.path.display()));
        }
        written.is_ok()
    }

    fn folder(&self) -> &Path {
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        folder.unwrap_or(Path::new("."))
    }

    /// Beside the file, so that renaming doesn't copy; with this process' number, so that two runs
    /// don't meet in it.
    fn draft(&self) -> PathBuf {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        // A file's name may have 255 bytes.
        let short: String = name.chars().take(48).collect();
        self.folder().join(format!(".{short}.{}.part", std::process::id()))
    }
}

fn write_through(path: &Path, text: &str) -> io::Result<()> {
    let mut file = fs::File::create(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}
