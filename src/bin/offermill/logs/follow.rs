//! Reads the output of an executor to its end, or for as long as the executor lives.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::thread::sleep;
use std::time::{Duration, Instant};

use offermill::private_files::PrivateFolder;

use crate::logs::printer::LogPrinter;

/// How often files are looked at.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// How often it is checked whether the executor lives.
const LIFE_INTERVAL: Duration = Duration::from_secs(1);
/// How many checks in a row must find no process: an executor's starts after its sandbox was made.
const ABSENT_CHECKS: u32 = 2;
/// The most bytes that are read at a time.
const PIECE_BYTES: usize = 64 * 1024;

/// A file of an executor's output, and where it is printed.
pub(super) struct LogFile {
    file: File,
    printer: LogPrinter,
}

impl LogFile {
    pub(super) fn new(file: File, printer: LogPrinter) -> LogFile {
        LogFile { file, printer }
    }

    /// Prints what is there now and wasn't printed yet. A file that has become shorter is printed from its beginning.
    fn print_rest(&mut self) -> io::Result<()> {
        let length = self.file.metadata()?.len();
        if self.file.stream_position()? > length {
            self.file.seek(SeekFrom::Start(0))?;
        }
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            match self.file.read(&mut piece) {
                Ok(0) => return self.printer.flush(),
                Ok(length) => self.printer.print(piece.get(..length).unwrap_or_default())?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Prints the files; with a sandbox, until the executor in it has ended.
///
/// # Errors
/// If a file can't be read or printed.
pub(super) fn follow(files: &mut [LogFile], sandbox: Option<&PrivateFolder>) -> io::Result<()> {
    let mut absent = 0;
    let mut check_at = Instant::now();
    loop {
        // What it printed before it ended is there once it has.
        let has_ended = sandbox.is_none() || absent >= ABSENT_CHECKS;
        files.iter_mut().try_for_each(LogFile::print_rest)?;
        if has_ended {
            return files.iter_mut().try_for_each(|file| file.printer.finish());
        }
        if let Some(sandbox) = sandbox.filter(|_| check_at <= Instant::now()) {
            absent = if has_process(sandbox) { 0 } else { absent + 1 };
            check_at = Instant::now() + LIFE_INTERVAL;
        }
        sleep(LOOK_INTERVAL);
    }
}

/// Whether a process works in a sandbox: the executor or its watchdog. On other systems than Linux this isn't known.
fn has_process(sandbox: &PrivateFolder) -> bool {
    // The path without links, as the system says the folders of processes.
    let Ok(sandbox) = fs::read_link(sandbox.handle_path()) else { return true };
    let Ok(processes) = fs::read_dir("/proc") else { return true };
    let mut folders = processes.flatten().filter_map(|it| it.path().join("cwd").read_link().ok());
    folders.any(|folder| folder.starts_with(&sandbox))
}
