//! Reads scenarios and other files of JSON lines. Sizes are bounded, and each error has a line number.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use serde::de::DeserializeOwned;

use super::event::{EventKind, ScenarioEvent};
use super::head::{FORMAT, ScenarioHead};
use super::json_error;
use crate::text::format::printable;

/// The maximum length of a line, in bytes.
pub(crate) const LINE_BYTES_MAX: usize = 16 << 20;
/// The maximum length of a file, in bytes. A scenario is kept in memory while it is played and takes a few times its
/// length there; up to thirty times if all its events are tiny.
pub(crate) const FILE_BYTES_MAX: u64 = 256 << 20;
/// The maximum length of an error, in characters.
const ERROR_MAX: usize = 400;

/// An error at a line of a file.
#[derive(Debug)]
pub(crate) struct LineError {
    file: String,
    /// Its number, from 1; none if the file can't be opened.
    line: Option<u64>,
    what: String,
}

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.what),
            None => write!(f, "{}: {}", self.file, self.what),
        }
    }
}

/// The contents of a scenario.
#[derive(Debug)]
pub(crate) struct ScenarioFile {
    pub(crate) head: ScenarioHead,
    pub(crate) events: Vec<ScenarioEvent>,
    /// The number of the last line, if it is incomplete and was therefore ignored.
    pub(crate) incomplete_line: Option<u64>,
}

/// Reads a scenario; `-` is standard input.
///
/// # Errors
/// With the first line that is invalid.
pub(crate) fn scenario(path: &Path) -> Result<ScenarioFile, LineError> {
    let mut lines = LineReader::open(path)?;
    read_scenario(&mut lines)
}

/// The maximum time between two events, in milliseconds: a day.
const GAP_MAX: u64 = 24 * 3_600_000;
/// The maximum duration of a scenario, in milliseconds: a hundred days.
const TIME_MAX: u64 = 100 * GAP_MAX;

impl ScenarioFile {
    /// Checks that the times of events don't decrease, increase by at most [`GAP_MAX`], and stay below [`TIME_MAX`].
    ///
    /// # Errors
    /// With the first line whose time is invalid.
    pub(crate) fn check_times(&self, path: &Path) -> Result<(), LineError> {
        let mut now = 0_u64;
        for (line, event) in (2..).zip(&self.events) {
            let at = match (event.at_ms, &event.kind) {
                (Some(at), _) => at,
                (None, EventKind::AdvanceMs(ms)) => now.saturating_add(*ms),
                (None, _) => now,
            };
            let most = now.saturating_add(GAP_MAX).min(TIME_MAX);
            if !(now..=most).contains(&at) {
                let file = printable(&path.to_string_lossy());
                let what = format!("its time is {at} ms, expected {now} to {most}");
                return Err(LineError { file, line: Some(line), what });
            }
            now = at;
        }
        Ok(())
    }
}

/// Reads a scenario from memory.
#[cfg(test)]
pub(crate) fn from_text(text: &str) -> Result<ScenarioFile, LineError> {
    read_scenario(&mut LineReader::new("text".to_owned(), text.as_bytes()))
}

fn read_scenario(lines: &mut LineReader<impl BufRead>) -> Result<ScenarioFile, LineError> {
    let head = lines.next::<ScenarioHead>("a head such as {\"format\":1,\"conf\":{}}");
    if head.is_err() && lines.line.starts_with(b"{\"init\"") {
        let what = "this is a file of answers, expected the journal or scenario that they answer";
        return Err(lines.error(what.to_owned()));
    }
    let head = match head? {
        NextLine::Value(head) => head,
        NextLine::Incomplete | NextLine::End => {
            let allowed = "expected a head such as {\"format\":1,\"conf\":{}}";
            return Err(lines.error(format!("no complete line, {allowed}")));
        }
    };
    if head.format != FORMAT {
        let what = format!("\"format\" is {}, expected {FORMAT}", head.format);
        return Err(lines.error(what));
    }
    let mut scenario = ScenarioFile { head, events: Vec::new(), incomplete_line: None };
    loop {
        match lines.next::<ScenarioEvent>("an event: an object with one key, the kind of event")? {
            NextLine::Value(event) => scenario.events.push(event),
            NextLine::End => return Ok(scenario),
            NextLine::Incomplete => {
                scenario.incomplete_line = Some(lines.number);
                return Ok(scenario);
            }
        }
    }
}

/// The result of reading a line.
pub(crate) enum NextLine<T> {
    Value(T),
    /// The file ends in the middle of the line.
    Incomplete,
    End,
}

/// Reads a file line by line.
pub(crate) struct LineReader<R> {
    file: String,
    reader: R,
    /// The last line's number, from 1.
    number: u64,
    line: Vec<u8>,
    left: u64,
}

impl LineReader<BufReader<Box<dyn Read>>> {
    /// Opens a file; `-` is standard input.
    pub(crate) fn open(path: &Path) -> Result<Self, LineError> {
        let opened: io::Result<(String, Box<dyn Read>)> = if path == Path::new("-") {
            Ok(("standard input".to_owned(), Box::new(io::stdin())))
        } else {
            let name = printable(&path.to_string_lossy());
            File::open(path).map(|file| (name, Box::new(file) as Box<dyn Read>))
        };
        match opened {
            Ok((file, reader)) => Ok(LineReader::new(file, BufReader::new(reader))),
            Err(error) => {
                let what = format!("can't be read: {error}, expected a file of lines");
                let file = printable(&path.to_string_lossy());
                Err(LineError { file, line: None, what })
            }
        }
    }
}

impl<R: BufRead> LineReader<R> {
    pub(crate) fn new(file: String, reader: R) -> LineReader<R> {
        LineReader { file, reader, number: 0, line: Vec::new(), left: FILE_BYTES_MAX }
    }

    /// Creates an error about the line that was read last.
    pub(crate) fn error(&self, what: String) -> LineError {
        let mut what = printable(&what);
        if let Some((at, _)) = what.char_indices().nth(ERROR_MAX) {
            what.truncate(at);
            what.push('…');
        }
        LineError { file: self.file.clone(), line: Some(self.number.max(1)), what }
    }

    /// The number of the line that was read last, from 1.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Reads the next line, which must be an object. Errors mention what was `expected`.
    pub(crate) fn next<T: DeserializeOwned>(
        &mut self,
        expected: &str,
    ) -> Result<NextLine<T>, LineError> {
        self.line.clear();
        self.number += 1;
        let limit = LINE_BYTES_MAX as u64 + 1;
        let read = (&mut self.reader).take(limit).read_until(b'\n', &mut self.line);
        if let Err(error) = read {
            let why = format!("can't be read: {error}, expected a file of lines");
            return Err(self.error(why));
        }
        if self.line.is_empty() {
            return Ok(NextLine::End);
        }
        let length = self.line.len() as u64;
        if length == limit && self.line.last() != Some(&b'\n') {
            let allowed = format!("expected at most {LINE_BYTES_MAX} bytes");
            return Err(self.error(format!("the line is too long, {allowed}")));
        }
        if length > self.left {
            let allowed = format!("expected at most {FILE_BYTES_MAX} bytes");
            return Err(self.error(format!("the file is too long, {allowed}")));
        }
        self.left -= length;
        let is_whole = self.line.pop_if(|byte| *byte == b'\n').is_some();
        let Ok(text) = str::from_utf8(&self.line) else {
            return match is_whole {
                true => Err(self.error("not UTF-8, expected JSON in UTF-8".to_owned())),
                false => Ok(NextLine::Incomplete),
            };
        };
        // Some editors begin files with a byte order mark.
        let text = text.strip_prefix('\u{feff}').filter(|_| self.number == 1).unwrap_or(text);
        // Otherwise serde would read an array as an object whose keys are left out.
        if text.trim_start().starts_with(|first| first != '{') {
            return Err(self.error(format!("not an object, expected {expected}")));
        }
        match serde_json::from_str(text) {
            Ok(value) => Ok(NextLine::Value(value)),
            Err(error) if error.is_eof() && !is_whole => Ok(NextLine::Incomplete),
            Err(error) => Err(self.error(json_error::describe(&error, text, expected))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &[u8]) -> Result<ScenarioFile, String> {
        read_scenario(&mut LineReader::new("F".to_owned(), text)).map_err(|error| error.to_string())
    }

    const HEAD: &str = "{\"format\":1,\"conf\":{}}\n";

    /// Goal: a byte order mark is allowed at the beginning of a file only. Method: put one at the beginning and one
    /// later.
    #[test]
    fn a_byte_order_mark_may_begin_a_file() {
        assert!(read(format!("\u{feff}{HEAD}").as_bytes()).is_ok());
        assert!(read(format!("{HEAD}\u{feff}{{\"stop\":true}}\n").as_bytes()).is_err());
    }

    /// Goal: errors name the line and what was expected. Method: make each kind of mistake in an event.
    #[test]
    fn errors_name_the_line() {
        for (line, expected) in [
            (
                "{\"offrs\":[]}",
                "F:2: column 8: unknown event \"offrs\", expected one of registered",
            ),
            ("{\"offers\":7}", "F:2: column 11: found the number 7, expected an array"),
            ("[]", "F:2: not an object, expected an event"),
            ("7", "F:2: not an object, expected an event"),
            ("{\"status\":7}", "found the number 7, expected an object"),
            ("{\"request_total\":4294967296}", "too many executors, expected at most 4294967295"),
            ("{}", "F:2: column 2: no event, expected one of"),
            ("", "F:2: the line is blank, expected an event"),
            ("{\"stop\":true,\"stop\":true}", "a second event, \"stop\", expected one per line"),
            (
                "{\"at_ms\":1,\"at_ms\":2,\"stop\":true}",
                "\"at_ms\" occurs twice, expected each once",
            ),
            ("{\"stop\":false}", "false, expected true"),
            ("{\"kill\":[\"1\"],\"local\":{}}", "expected it beside \"request_total\""),
            ("{\"request_total\":1,\"local\":{\"a\":1,\"a\":2}}", "\"a\" occurs twice"),
            (
                "{\"status\":{\"task\":\"0\",\"state\":\"TASK_ODD\"}}",
                "expected one of TASK_STAGING",
            ),
            (
                "{\"status\":{\"state\":\"TASK_LOST\"}}",
                "the key \"task\" is missing, expected an event",
            ),
            ("{\"kill\":[\"1\"]", "the line ends within an object, expected an event"),
            (
                "{\"advance_ms\":-1}",
                "the number -1, expected a whole number from 0 to 18446744073709551615",
            ),
            ("{\"limit\":-1}", "the number -1, expected a whole number from 0 to 4294967295"),
        ] {
            let error = read(format!("{HEAD}{line}\n").as_bytes()).unwrap_err();
            assert!(error.starts_with("F:2: ") && error.contains(expected), "{line}: {error}");
        }
        let offer = |resource: &str| {
            format!(
                "{HEAD}{{\"offers\":[{{\"id\":\"o\",\"agent\":\"a\",\"host\":\"h\",\"resources\":[{resource}]}}]}}\n"
            )
        };
        for (resource, expected) in [
            ("{\"name\":\"cpus\"}", "has 0 values, expected one: scalar, ranges or set"),
            ("{\"name\":\"cpus\",\"scalar\":1,\"set\":[]}", "has 2 values"),
            ("{\"name\":\"cpus\",\"scalar\":1,\"scalar\":2}", "the key \"scalar\" occurs twice"),
            ("{\"name\":\"cpus\",\"scalar\":\"x\"}", "expected a number, \"NaN\""),
            ("{\"name\":\"cpus\",\"scalr\":1}", "unknown key \"scalr\", expected one of"),
        ] {
            let error = read(offer(resource).as_bytes()).unwrap_err();
            assert!(error.starts_with("F:2: ") && error.contains(expected), "{resource}: {error}");
        }
        assert!(read(offer("{\"name\":\"cpus\",\"scalar\":\"NaN\"}").as_bytes()).is_ok());
    }

    /// Goal: errors in the head name the line and what was expected. Method: make each kind of mistake in a head.
    #[test]
    fn heads_are_checked() {
        for (text, expected) in [
            ("", "F:1: no complete line, expected a head such as"),
            ("{\"format\":1,\"co", "F:1: no complete line, expected a head"),
            ("{\"stop\":true}\n", "F:1: column 7: unknown key \"stop\", expected one of"),
            ("{\"format\":1}\n", "the key \"conf\" is missing, expected a head"),
            ("[\"\",\"\",0,1,null,null,{}]\n", "F:1: not an object, expected a head such as"),
            ("{\"format\":2,\"conf\":{}}\n", "\"format\" is 2, expected 1"),
            ("{\"format\":1,\"conf\":{\"a\":1}}\n", "found the number 1, expected a string"),
            ("{\"format\":1,\"conf\":{\"a\":\"1\",\"a\":\"2\"}}\n", "\"a\" occurs twice"),
        ] {
            let error = read(text.as_bytes()).unwrap_err();
            assert!(error.starts_with("F:1: ") && error.contains(expected), "{text}: {error}");
        }
        let error = read(b"{\"format\":1,\"conf\":{}}\n\"\xff\"\n").unwrap_err();
        assert_eq!(error, "F:2: not UTF-8, expected JSON in UTF-8");
    }

    /// Goal: a file that ends in the middle of a line is read up to the last whole line. Method: cut one file at each
    /// byte.
    #[test]
    fn a_cut_file_is_read_up_to_its_cut() {
        let whole = format!("{HEAD}{{\"kill\":[\"ä\"]}}\n{{\"stop\":true}}\n");
        for end in HEAD.len()..=whole.len() {
            let scenario = read(&whole.as_bytes()[..end]).unwrap();
            let lines = whole.as_bytes()[..end].split_inclusive(|byte| *byte == b'\n');
            let complete = lines.filter(|line| matches!(line, [.., b'}' | b'\n'])).count();
            assert_eq!(scenario.events.len() + 1, complete, "{end}");
            let is_cut = !matches!(whole.as_bytes()[..end], [.., b'}' | b'\n']);
            assert_eq!(scenario.incomplete_line.is_some(), is_cut, "{end}");
        }
    }

    /// Goal: the memory for a line is bounded. Method: read an endless line.
    #[test]
    fn long_lines_are_refused() {
        let endless = HEAD.as_bytes().chain(io::repeat(b' '));
        let mut lines = LineReader::new("F".to_owned(), BufReader::new(endless));
        let error = read_scenario(&mut lines).unwrap_err().to_string();
        assert_eq!(error, "F:2: the line is too long, expected at most 16777216 bytes");
    }

    proptest! {
        /// Goal: no text makes the reader panic. Method: read random texts of the format's punctuation and words.
        #[test]
        fn no_text_panics(text in "(\\{|\\}|\\[|\\]|\"|:|,|1|-|\n|\"offers\"|\"format\"|\"conf\"|ä){0,40}") {
            let _either = read(text.as_bytes());
            let _either = read(format!("{HEAD}{text}").as_bytes());
        }
    }
}
