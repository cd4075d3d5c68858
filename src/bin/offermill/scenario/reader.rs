//! Reads files of lines: bounded, and with the line's number in every complaint.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use serde::de::DeserializeOwned;

use super::event::{Event, What};
use super::head::{FORMAT, Head};
use crate::text::format::printable;

/// The longest line, in bytes.
pub(crate) const LINE_BYTES_MAX: usize = 16 << 20;
/// The longest file, in bytes. A scenario is kept in memory while it is played, where it takes a few times as much; one
/// of nothing but tiny events, up to thirty times.
pub(crate) const FILE_BYTES_MAX: u64 = 256 << 20;
/// The longest complaint, in characters.
const COMPLAINT_MAX: usize = 400;

/// What is wrong, and where.
#[derive(Debug)]
pub(crate) struct Fault {
    file: String,
    line: u64,
    what: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.what)
    }
}

/// A scenario.
#[derive(Debug)]
pub(crate) struct Scenario {
    pub(crate) head: Head,
    pub(crate) events: Vec<Event>,
    /// The number of the last line, if it was left out because the file ends in the middle of it.
    pub(crate) cut: Option<u64>,
}

/// Reads a scenario; `-` is standard input.
///
/// # Errors
/// Says which line is not what was expected.
pub(crate) fn scenario(path: &Path) -> Result<Scenario, Fault> {
    let mut lines = Lines::open(path)?;
    read_scenario(&mut lines)
}

/// The longest time in which nothing happens, in milliseconds: a day.
const GAP_MAX: u64 = 24 * 3_600_000;
/// The longest time that a scenario may take, in milliseconds: a hundred days.
const TIME_MAX: u64 = 100 * GAP_MAX;

impl Scenario {
    /// Looks whether moments follow each other, and not too far.
    ///
    /// # Errors
    /// Says which line is out of place in time.
    pub(crate) fn check_moments(&self, path: &Path) -> Result<(), Fault> {
        let mut now = 0_u64;
        for (line, event) in (2..).zip(&self.events) {
            let at = match (event.at_ms, &event.what) {
                (Some(at), _) => at,
                (None, What::AdvanceMs(ms)) => now.saturating_add(*ms),
                (None, _) => now,
            };
            let most = now.saturating_add(GAP_MAX).min(TIME_MAX);
            if !(now..=most).contains(&at) {
                let file = printable(&path.to_string_lossy());
                let what = format!("its moment is {at} ms, expected {now} to {most}");
                return Err(Fault { file, line, what });
            }
            now = at;
        }
        Ok(())
    }
}

/// Reads a scenario that is in memory.
#[cfg(test)]
pub(crate) fn from_text(text: &str) -> Result<Scenario, Fault> {
    read_scenario(&mut Lines::new("text".to_owned(), text.as_bytes()))
}

fn read_scenario(lines: &mut Lines<impl BufRead>) -> Result<Scenario, Fault> {
    let head = match lines.next::<Head>("a head such as {\"format\":1,\"conf\":{}}")? {
        Next::Value(head) => head,
        Next::Cut | Next::End => {
            let allowed = "expected a head such as {\"format\":1,\"conf\":{}}";
            return Err(lines.fault(format!("no whole line, {allowed}")));
        }
    };
    if head.format != FORMAT {
        let what = format!("\"format\" is {}, expected {FORMAT}", head.format);
        return Err(lines.fault(what));
    }
    let mut scenario = Scenario { head, events: Vec::new(), cut: None };
    loop {
        match lines.next::<Event>("an event: an object with one key that says which")? {
            Next::Value(event) => scenario.events.push(event),
            Next::End => return Ok(scenario),
            Next::Cut => {
                scenario.cut = Some(lines.number);
                return Ok(scenario);
            }
        }
    }
}

/// What comes next in a file.
pub(crate) enum Next<T> {
    Value(T),
    /// The file ends in the middle of a line.
    Cut,
    End,
}

/// A file, line by line.
pub(crate) struct Lines<R> {
    file: String,
    reader: R,
    /// The last line's number, from 1.
    number: u64,
    line: Vec<u8>,
    left: u64,
}

impl Lines<BufReader<Box<dyn Read>>> {
    /// Opens a file; `-` is standard input.
    pub(crate) fn open(path: &Path) -> Result<Self, Fault> {
        let opened: io::Result<(String, Box<dyn Read>)> = if path == Path::new("-") {
            Ok(("standard input".to_owned(), Box::new(io::stdin())))
        } else {
            let name = printable(&path.to_string_lossy());
            File::open(path).map(|file| (name, Box::new(file) as Box<dyn Read>))
        };
        match opened {
            Ok((file, reader)) => Ok(Lines::new(file, BufReader::new(reader))),
            Err(error) => {
                let what = format!("can't be read: {error}, expected a file of lines");
                let file = printable(&path.to_string_lossy());
                Err(Fault { file, line: 1, what })
            }
        }
    }
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn new(file: String, reader: R) -> Lines<R> {
        Lines { file, reader, number: 0, line: Vec::new(), left: FILE_BYTES_MAX }
    }

    /// A complaint about the line that was read last.
    pub(crate) fn fault(&self, what: String) -> Fault {
        let mut what = printable(&what);
        if let Some((at, _)) = what.char_indices().nth(COMPLAINT_MAX) {
            what.truncate(at);
            what.push('…');
        }
        Fault { file: self.file.clone(), line: self.number.max(1), what }
    }

    /// Reads a line as what was `expected`.
    pub(crate) fn next<T: DeserializeOwned>(&mut self, expected: &str) -> Result<Next<T>, Fault> {
        self.line.clear();
        self.number += 1;
        let limit = LINE_BYTES_MAX as u64 + 1;
        let read = (&mut self.reader).take(limit).read_until(b'\n', &mut self.line);
        if let Err(error) = read {
            let why = format!("can't be read: {error}, expected a file of lines");
            return Err(self.fault(why));
        }
        if self.line.is_empty() {
            return Ok(Next::End);
        }
        let length = self.line.len() as u64;
        if length == limit && self.line.last() != Some(&b'\n') {
            let allowed = format!("expected at most {LINE_BYTES_MAX} bytes");
            return Err(self.fault(format!("the line is too long, {allowed}")));
        }
        if length > self.left {
            let allowed = format!("expected at most {FILE_BYTES_MAX} bytes");
            return Err(self.fault(format!("the file is too long, {allowed}")));
        }
        self.left -= length;
        let is_whole = self.line.pop_if(|byte| *byte == b'\n').is_some();
        let Ok(text) = str::from_utf8(&self.line) else {
            return match is_whole {
                true => Err(self.fault("not UTF-8, expected JSON in UTF-8".to_owned())),
                false => Ok(Next::Cut),
            };
        };
        // Some editors begin a file so.
        let text = text.strip_prefix('\u{feff}').filter(|_| self.number == 1).unwrap_or(text);
        match serde_json::from_str(text) {
            Ok(value) => Ok(Next::Value(value)),
            Err(error) if error.is_eof() && !is_whole => Ok(Next::Cut),
            Err(error) => Err(self.fault(complaint(&error, text, expected))),
        }
    }
}

/// What a line is, and what it should be.
fn complaint(error: &serde_json::Error, text: &str, expected: &str) -> String {
    if text.trim().is_empty() {
        return format!("the line is blank, expected {expected}");
    }
    let told = error.to_string();
    // The line is known better here.
    let end = told.rfind(" at line ").unwrap_or(told.len());
    let told = told.get(..end).unwrap_or(&told);
    let rest = match told.contains("expected") {
        true => String::new(),
        false => format!(", expected {expected}"),
    };
    format!("column {}: {told}{rest}", error.column())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &[u8]) -> Result<Scenario, String> {
        read_scenario(&mut Lines::new("F".to_owned(), text)).map_err(|fault| fault.to_string())
    }

    const HEAD: &str = "{\"format\":1,\"conf\":{}}\n";

    /// Goal: a byte order mark at the beginning is no mistake, and one later is. Method: both.
    #[test]
    fn a_byte_order_mark_may_begin_a_file() {
        assert!(read(format!("\u{feff}{HEAD}").as_bytes()).is_ok());
        assert!(read(format!("{HEAD}\u{feff}{{\"stop\":true}}\n").as_bytes()).is_err());
    }

    /// Goal: what isn't a scenario is told with its line and what was expected. Method: each kind of
    /// mistake.
    #[test]
    fn mistakes_have_their_line() {
        for (line, told) in [
            (
                "{\"offrs\":[]}",
                "F:2: column 8: unknown event \"offrs\", expected one of registered",
            ),
            ("{\"offers\":7}", "F:2: column 11: invalid type: integer `7`, expected a sequence"),
            ("[]", "F:2: column 0: invalid type: sequence, expected an event"),
            ("{}", "F:2: column 2: no event, expected one of"),
            ("", "F:2: the line is blank, expected an event"),
            ("{\"stop\":true,\"stop\":true}", "a second event, \"stop\", expected one a line"),
            (
                "{\"at_ms\":1,\"at_ms\":2,\"stop\":true}",
                "\"at_ms\" comes twice, expected each once",
            ),
            ("{\"stop\":false}", "false, expected true"),
            ("{\"kill\":[\"1\"],\"local\":{}}", "expected it beside \"request_total\""),
            ("{\"request_total\":1,\"local\":{\"a\":1,\"a\":2}}", "\"a\" comes twice"),
            (
                "{\"status\":{\"task\":\"0\",\"state\":\"TASK_ODD\"}}",
                "expected one of TASK_STAGING",
            ),
            ("{\"status\":{\"state\":\"TASK_LOST\"}}", "missing field `task`, expected an event"),
            ("{\"kill\":[\"1\"]", "EOF while parsing an object, expected an event"),
            ("{\"advance_ms\":-1}", "invalid value: integer `-1`, expected u64"),
        ] {
            let error = read(format!("{HEAD}{line}\n").as_bytes()).unwrap_err();
            assert!(error.starts_with("F:2: ") && error.contains(told), "{line}: {error}");
        }
        let offer = |resource: &str| {
            format!(
                "{HEAD}{{\"offers\":[{{\"id\":\"o\",\"agent\":\"a\",\"host\":\"h\",\"resources\":[{resource}]}}]}}\n"
            )
        };
        for (resource, told) in [
            ("{\"name\":\"cpus\"}", "has 0 values, expected one: scalar, ranges or set"),
            ("{\"name\":\"cpus\",\"scalar\":1,\"set\":[]}", "has 2 values"),
            ("{\"name\":\"cpus\",\"scalar\":1,\"scalar\":2}", "duplicate field `scalar`"),
            ("{\"name\":\"cpus\",\"scalar\":\"x\"}", "expected a number, \"NaN\""),
            ("{\"name\":\"cpus\",\"scalr\":1}", "unknown field `scalr`, expected one of"),
        ] {
            let error = read(offer(resource).as_bytes()).unwrap_err();
            assert!(error.starts_with("F:2: ") && error.contains(told), "{resource}: {error}");
        }
        assert!(read(offer("{\"name\":\"cpus\",\"scalar\":\"NaN\"}").as_bytes()).is_ok());
    }

    /// Goal: what isn't a head is told, too. Method: each kind of mistake.
    #[test]
    fn heads_are_demanded() {
        for (text, told) in [
            ("", "F:1: no whole line, expected a head such as"),
            ("{\"format\":1,\"co", "F:1: no whole line, expected a head"),
            ("{\"stop\":true}\n", "F:1: column 7: unknown field `stop`, expected one of"),
            ("{\"format\":1}\n", "missing field `conf`, expected a head"),
            ("{\"format\":2,\"conf\":{}}\n", "\"format\" is 2, expected 1"),
            ("{\"format\":1,\"conf\":{\"a\":1}}\n", "invalid type: integer `1`, expected a string"),
            ("{\"format\":1,\"conf\":{\"a\":\"1\",\"a\":\"2\"}}\n", "\"a\" comes twice"),
        ] {
            let error = read(text.as_bytes()).unwrap_err();
            assert!(error.starts_with("F:1: ") && error.contains(told), "{text}: {error}");
        }
        let error = read(b"{\"format\":1,\"conf\":{}}\n\"\xff\"\n").unwrap_err();
        assert_eq!(error, "F:2: not UTF-8, expected JSON in UTF-8");
    }

    /// Goal: a file that a killed program left is read as far as it goes. Method: all ends of one.
    #[test]
    fn a_cut_file_is_read_up_to_its_cut() {
        let whole = format!("{HEAD}{{\"kill\":[\"ä\"]}}\n{{\"stop\":true}}\n");
        for end in HEAD.len()..=whole.len() {
            let scenario = read(&whole.as_bytes()[..end]).unwrap();
            let lines = whole.as_bytes()[..end].split_inclusive(|byte| *byte == b'\n');
            let complete = lines.filter(|line| matches!(line, [.., b'}' | b'\n'])).count();
            assert_eq!(scenario.events.len() + 1, complete, "{end}");
            let is_cut = !matches!(whole.as_bytes()[..end], [.., b'}' | b'\n']);
            assert_eq!(scenario.cut.is_some(), is_cut, "{end}");
        }
    }

    /// Goal: a line without an end takes no memory without an end. Method: one byte too many.
    #[test]
    fn long_lines_are_refused() {
        let endless = HEAD.as_bytes().chain(io::repeat(b' '));
        let mut lines = Lines::new("F".to_owned(), BufReader::new(endless));
        let error = read_scenario(&mut lines).unwrap_err().to_string();
        assert_eq!(error, "F:2: the line is too long, expected at most 16777216 bytes");
    }

    proptest! {
        /// Goal: reading is total. Method: lines of the format's own marks and words.
        #[test]
        fn no_text_is_too_odd(text in "(\\{|\\}|\\[|\\]|\"|:|,|1|-|\n|\"offers\"|\"format\"|\"conf\"|ä){0,40}") {
            let _either = read(text.as_bytes());
            let _either = read(format!("{HEAD}{text}").as_bytes());
        }
    }
}
