//! Reading a file of tasks, with bounded memory.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use crate::tasks::order::TaskList;
use crate::tasks::parse::{is_object, line_text, parse_line};
use crate::tasks::task::{TaskDefaults, TaskSpec};

/// The longest line, in bytes.
const LINE_BYTES_MAX: usize = 1 << 20;
/// The largest file, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 28;
/// The most tasks of a file.
const TASKS_MAX: usize = 1_000_000;
/// The most ids in `after` of all tasks together, which bounds the memory that a file takes.
const AFTER_MAX: usize = if cfg!(test) { 1_000 } else { 10_000_000 };

/// Where lines come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineSource {
    /// A file that has an end of its own.
    File,
    /// Standard input or a pipe, which also ends if the program that writes to it ends early.
    Pipe,
}

/// Reads tasks from a file, or from standard input if the name is `-`.
///
/// # Errors
/// With a sentence about what is wrong.
pub(crate) fn read_tasks(name: &str, defaults: &TaskDefaults) -> Result<TaskList, String> {
    if name == "-" {
        let mut input = io::stdin().lock();
        let tasks = read_lines("standard input", &mut input, LineSource::Pipe, defaults)?;
        return TaskList::new("standard input".to_owned(), tasks);
    }
    let file = File::open(Path::new(name)).map_err(|error| unreadable(name, &error))?;
    let read = |file: &File| {
        let is_file = file.metadata().is_ok_and(|metadata| metadata.is_file());
        let source = if is_file { LineSource::File } else { LineSource::Pipe };
        read_lines(name, &mut BufReader::new(file), source, defaults)
    };
    TaskList::new(name.to_owned(), read_at_rest(name, &file, read)?)
}

fn unreadable(name: &str, error: &io::Error) -> String {
    format!("the tasks' file {name} can't be read: {error}")
}

/// Has `read` read a file.
///
/// # Errors
/// Those of `read`; if it is a folder, or is changed meanwhile; as [`File::metadata`].
fn read_at_rest<T>(
    name: &str,
    file: &File,
    read: impl FnOnce(&File) -> Result<T, String>,
) -> Result<T, String> {
    let metadata = || file.metadata().map_err(|error| unreadable(name, &error));
    let before = metadata()?;
    if before.is_dir() {
        return Err(format!("the tasks' file {name} is a folder"));
    }
    let what = read(file)?;
    let after = metadata()?;
    let is_same = before.len() == after.len() && before.modified().ok() == after.modified().ok();
    if before.is_file() && !is_same {
        return Err(format!(
            "the tasks' file {name} was changed while it was read; give it once it is complete, or \
             pipe it into `--tasks -`"
        ));
    }
    Ok(what)
}

fn read_lines(
    name: &str,
    input: &mut dyn BufRead,
    source: LineSource,
    defaults: &TaskDefaults,
) -> Result<Vec<TaskSpec>, String> {
    let mut tasks: Vec<TaskSpec> = Vec::new();
    let (mut bytes, mut read_bytes, mut line, mut after) = (Vec::new(), 0, 0, 0);
    loop {
        bytes.clear();
        line += 1;
        let mut limited = Read::take(&mut *input, LINE_BYTES_MAX as u64 + 1);
        let read = limited.read_until(b'\n', &mut bytes);
        let read = read.map_err(|error| format!("{name} can't be read, line {line}: {error}"))?;
        if read == 0 {
            break;
        }
        read_bytes += read as u64;
        if read > LINE_BYTES_MAX {
            return Err(format!("{name}, line {line}: it is longer than {LINE_BYTES_MAX} bytes"));
        }
        if read_bytes > FILE_BYTES_MAX {
            return Err(format!("{name} has more than {FILE_BYTES_MAX} bytes (line {line})"));
        }
        let task = parse_line(&bytes, line, defaults);
        let Some(task) = task.map_err(|why| format!("{name}, line {line}: it {why}"))? else {
            continue;
        };
        if source == LineSource::Pipe && is_cut_command(&bytes, line) {
            return Err(format!(
                "{name}, line {line}: it has no newline at its end, so it may be part of a command; end the last \
                 line with one"
            ));
        }
        after += task.after.len();
        if after > AFTER_MAX {
            return Err(format!("{name} has more than {AFTER_MAX} ids in \"after\" (line {line})"));
        }
        tasks.push(task);
        if tasks.len() > TASKS_MAX {
            return Err(format!("{name} has more than {TASKS_MAX} tasks (line {line})"));
        }
    }
    if tasks.is_empty() {
        return Err(format!("{name} has no tasks: each line is a command, or a JSON object"));
    }
    Ok(tasks)
}

/// Whether a line with a task may be the beginning of a longer shell command. An object has an end of its own.
fn is_cut_command(bytes: &[u8], line: u64) -> bool {
    !bytes.ends_with(b"\n") && !line_text(bytes, line).is_ok_and(is_object)
}

#[cfg(test)]
mod tests {
    use super::*;
    use offermill::resources::{Mebibytes, MilliCpus};

    const DEFAULTS: TaskDefaults =
        TaskDefaults { cores: MilliCpus::from_cores(1), memory: Mebibytes::new(1), retries: 0 };

    /// Goal: a file that is changed while it is read is refused, whatever was read. Method: one that stays, grows,
    /// and is cut off, after its lines were read.
    #[test]
    fn a_file_that_grows_is_refused() {
        use std::io::Write as _;

        for (length, is_refused) in [(None, false), (Some(14), true), (Some(4), true)] {
            let mut file = tempfile::NamedTempFile::new().unwrap();
            file.write_all(b"true\ntrue").unwrap();
            let read = |opened: &File| {
                let tasks =
                    read_lines("f", &mut BufReader::new(opened), LineSource::File, &DEFAULTS)?;
                length.into_iter().for_each(|length| file.as_file().set_len(length).unwrap());
                Ok(tasks)
            };
            let read = read_at_rest("f", &File::open(file.path()).unwrap(), read);
            match read {
                Ok(tasks) => assert!(!is_refused && tasks.len() == 2),
                Err(why) => {
                    assert!(is_refused && why.contains("was changed while it was read"), "{why}")
                }
            }
        }
    }

    /// Goal: lines count from 1, and limits hold. Method: tasks between comments, without a last newline; no tasks;
    /// a long line; bytes that aren't text; endless input.
    #[test]
    fn lines_are_read_within_limits() {
        let read = |text: &[u8]| read_lines("f", &mut &*text, LineSource::File, &DEFAULTS);
        let ids = |tasks: Vec<TaskSpec>| tasks.into_iter().map(|it| it.id).collect::<Vec<_>>();
        assert_eq!(ids(read(b"# all\n\ntrue\nfalse").unwrap()), ["3", "4"]);
        assert!(read(b"#\n").unwrap_err().starts_with("f has no tasks"));
        assert!(read(b"true\n\xff\n").unwrap_err().starts_with("f, line 2: it is not text"));
        let mut endless = BufReader::new(io::repeat(b'x'));
        let why = read_lines("f", &mut endless, LineSource::Pipe, &DEFAULTS).unwrap_err();
        assert_eq!(why, "f, line 1: it is longer than 1048576 bytes");
    }

    /// Goal: a shell command that a pipe may have cut off is refused with its line, and nothing else is. Method: a last
    /// line without a newline that is a command, a whole object, part of one, a comment and blank, in a pipe and in a
    /// file.
    #[test]
    fn a_pipe_cuts_no_command() {
        let read = |text: &str, source| {
            let tasks = read_lines("f", &mut text.as_bytes(), source, &DEFAULTS);
            tasks.map(|tasks| tasks.len())
        };
        let object = "true\n {\"command\": \"false\"}";
        for text in ["true\nfalse\n", "true\nfalse\n  ", "true\nfalse\n# and", object] {
            assert_eq!(read(text, LineSource::Pipe), Ok(2), "{text}");
        }
        assert_eq!(read("true\nrm -r /a", LineSource::File), Ok(2));
        let why = read("true\nrm -r /a", LineSource::Pipe).unwrap_err();
        assert!(why.starts_with("f, line 2: it has no newline at its end"), "{why}");
        let why = read(&object[..20], LineSource::Pipe).unwrap_err();
        assert!(why.contains("line 2: it is no JSON object: it ends too early"), "{why}");
        // A byte order mark before an object cuts nothing off.
        assert_eq!(read("\u{feff}{\"command\": \"false\"}", LineSource::Pipe), Ok(1));
        assert!(read("\u{feff}false", LineSource::Pipe).is_err());
    }

    /// Goal: the ids in `after` of all tasks are bounded, since each takes memory. Method: lines that have as many as
    /// are allowed together, and one more.
    #[test]
    fn ids_in_after_are_bounded() {
        let line =
            |ids| format!("{{\"command\":\"true\",\"after\":[{}]}}\n", vec!["1"; ids].join(","));
        let text = [line(1), line(AFTER_MAX - 1)].concat();
        let read = |text: &str| read_lines("f", &mut text.as_bytes(), LineSource::File, &DEFAULTS);
        assert_eq!(read(&text).map(|tasks| tasks.len()), Ok(2));
        let why = read(&[text, line(1)].concat()).unwrap_err();
        assert_eq!(why, format!("f has more than {AFTER_MAX} ids in \"after\" (line 3)"));
    }
}
