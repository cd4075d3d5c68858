//! Shared by all targets: a macro that turns a check into a fuzz target, or on stable Rust into a program that replays
//! files.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs, io};

/// Turns a check, `fn(&[u8])`, which panics if it fails, into a fuzz target. The optional second function prints the
/// meaning of an input, for inputs that aren't readable text.
#[macro_export]
macro_rules! harness {
    ($check:path) => {
        $crate::harness!($check, |data: &[u8]| println!("{}", String::from_utf8_lossy(data)));
    };
    ($check:path, $show:expr) => {
        #[cfg(fuzzing)]
        libfuzzer_sys::fuzz_target!(|data: &[u8]| $check(data));
        #[cfg(fuzzing)]
        const _: fn(&[u8]) = $show;

        /// Without a fuzzer, the target replays files.
        #[cfg(not(fuzzing))]
        fn main() -> std::process::ExitCode {
            $crate::replay(env!("CARGO_BIN_NAME"), $check, $show)
        }
    };
}

/// Replays the files named on the command line and the files in the folders named there. Without names, replays the
/// target's corpus and its recorded failures. With `--print` before the names, prints the content of the files instead.
///
/// A panic continues after the file's name is printed. Fails if a file can't be read or if there is none.
pub fn replay(target: &str, check: fn(&[u8]), show: fn(&[u8])) -> ExitCode {
    let mut names: Vec<PathBuf> = env::args_os().skip(1).map(PathBuf::from).collect();
    let print = names.first().is_some_and(|name| name == Path::new("--print"));
    if print {
        names.remove(0);
    }
    if names.is_empty() {
        let home = Path::new(env!("CARGO_MANIFEST_DIR"));
        names = ["corpus", "artifacts"].map(|kind| home.join(kind).join(target)).into();
        names.retain(|folder| folder.exists());
    }
    let mut replayed = 0;
    let mut each = |path: &Path| -> io::Result<()> {
        let data = fs::read(path)?;
        let _at = At(path);
        if print {
            println!("{}:", path.display());
            show(&data);
        } else {
            check(&data);
        }
        replayed += 1;
        Ok(())
    };
    for name in &names {
        if let Err(error) = walk(name, &mut each) {
            eprintln!("{target}: {}: {error}", name.display());
            return ExitCode::FAILURE;
        }
    }
    if !print {
        println!("{target}: replayed {replayed} files");
    }
    if replayed > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Prints the file's name when a check panics.
struct At<'a>(&'a Path);

impl Drop for At<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("while replaying {}", self.0.display());
        }
    }
}

/// Calls `each` for the files in the order of their names, so that replays are reproducible.
fn walk(path: &Path, each: &mut dyn FnMut(&Path) -> io::Result<()>) -> io::Result<()> {
    if !path.is_dir() {
        return each(path);
    }
    let entries: io::Result<Vec<_>> = fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect();
    let mut entries = entries?;
    entries.sort();
    entries.iter().try_for_each(|entry| walk(entry, each))
}
