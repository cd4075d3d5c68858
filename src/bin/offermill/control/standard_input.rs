//! Commands on standard input. Their replies are events, labelled with the command's number and with the name that the
//! client gave it.

use std::io::{self, BufRead, BufReader, Read, Stdin};
use std::thread::Builder;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, read};

use crate::control::command::ControlCommand;
use crate::control::lines::{self, Line};
use crate::control::request::{AnswerLabel, ControlRequest, exchange};

/// The longest line, in bytes without its line feed: enough for the hosts of a large cluster.
const LINE_BYTES_MAX: usize = 1 << 20;
/// The longest name of a command, in bytes.
const ID_BYTES_MAX: usize = 64;
/// The beginning of a line that names its command.
const ID: &str = "id=";

/// Starts a thread that reads commands from standard input. Calls `at_end` when it ends or can't be read, and after the
/// command `quit`.
///
/// # Errors
/// If no thread can be started.
pub(super) fn read_standard_input<S, E>(send: S, at_end: E) -> io::Result<()>
where
    S: Fn(ControlRequest) -> bool + Send + 'static,
    E: FnOnce(io::Result<()>) + Send + 'static,
{
    let read = move || {
        let mut reader = BufReader::new(InputReader(io::stdin()));
        at_end(read_commands(&mut reader, &send));
    };
    Builder::new().name("offermill-control-input".into()).spawn(read)?;
    Ok(())
}

/// Waits for input even if another process, which shares it, has set it to non-blocking mode.
struct InputReader(Stdin);

impl Read for InputReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match read(&self.0, &mut *buffer) {
                // If polling fails, the next read returns the error.
                Err(Errno::AGAIN) => {
                    let _ready = poll(&mut [PollFd::new(&self.0, PollFlags::IN)], None);
                }
                result => return Ok(result?),
            }
        }
    }
}

fn read_commands(
    reader: &mut impl BufRead,
    send: &impl Fn(ControlRequest) -> bool,
) -> io::Result<()> {
    let mut number = 0;
    let mut has_run_ended = false;
    while let Some(line) = lines::next(reader, LINE_BYTES_MAX)? {
        let (id, command) = parse(line);
        let Some(command) = command.transpose() else { continue };
        number += 1;
        let is_quit = command == Ok(ControlCommand::Quit);
        // Once the run has ended, nobody answers, but the end of the input still says that nobody waits, either.
        if !has_run_ended {
            (_, has_run_ended) = exchange(command, Some(AnswerLabel { number, id }), send);
        }
        if is_quit {
            break;
        }
    }
    Ok(())
}

/// Parses a line: the name of the command, if it has one, and the command; none if the line is blank.
fn parse(line: Line) -> (Option<String>, Result<Option<ControlCommand>, String>) {
    let text = match line {
        Line::Text(text) => text,
        Line::TooLong { ref beginning, .. } | Line::NotUtf8(ref beginning) => {
            return (id_of(&String::from_utf8_lossy(beginning)), line.text().map(|_| None));
        }
    };
    let Some(named) = text.trim_start().strip_prefix(ID) else {
        return (None, ControlCommand::parse(&text));
    };
    let (id, rest) = named.split_once(char::is_whitespace).unwrap_or((named, ""));
    if !is_id(id) {
        let allowed = format!("1 to {ID_BYTES_MAX} letters, digits and _.:-");
        return (None, Err(format!("after \"{ID}\" was expected: {allowed}")));
    }
    let command = ControlCommand::parse(rest).and_then(|command| match command {
        None => Err(format!("after \"{ID}{id}\" was expected: a command")),
        command => Ok(command),
    });
    (Some(id.to_owned()), command)
}

/// The name of a command, of whose line only the beginning may be known.
fn id_of(beginning: &str) -> Option<String> {
    let (id, _) = beginning.trim_start().strip_prefix(ID)?.split_once(char::is_whitespace)?;
    is_id(id).then(|| id.to_owned())
}

fn is_id(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.:-".contains(&byte);
    (1..=ID_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::model::reply::ControlReply;

    /// Goal: each line that isn't blank is a command with the next number, whether it can be read or not, and carries
    /// the client's name for it. Method: lines of each kind, answered by a run that records them.
    #[test]
    fn commands_are_numbered_and_named() {
        let input = b"limit 2\n\n  id=k-7.a:B_ kill 4 5\nid=x\nid=a/b stop\nid= stop\n\
            id=u \xff\nno such\nid=q quit\nstop\n";
        let seen = RefCell::new(Vec::new());
        let record = |request: ControlRequest| {
            let AnswerLabel { number, id } = request.label.clone().unwrap();
            seen.borrow_mut().push((number, id, request.command.clone()));
            request.reply(ControlReply::Done(String::new()));
            true
        };
        read_commands(&mut &input[..], &record).unwrap();
        let seen = seen.into_inner();
        let ids: Vec<Option<&str>> = seen.iter().map(|(_, id, _)| id.as_deref()).collect();
        let named = [None, Some("k-7.a:B_"), Some("x"), None, None, Some("u"), None, Some("q")];
        assert_eq!(ids, named);
        assert!(seen.iter().map(|(number, ..)| *number).eq(1..=8));
        let kill = ControlCommand::Kill(vec!["4".to_owned(), "5".to_owned()]);
        assert_eq!(seen[1].2, Ok(kill));
        let errors: Vec<&str> = seen
            .iter()
            .filter_map(|(_, _, command)| command.as_ref().err())
            .map(|it| &**it)
            .collect();
        let expected = "after \"id=\" was expected: 1 to 64 letters, digits and _.:-";
        let head = ["after \"id=x\" was expected: a command", expected, expected];
        assert_eq!(errors[..3], head);
        assert_eq!(errors[3], "the line is not UTF-8");
        assert!(errors[4].starts_with("\"no\" is not a command"), "{errors:?}");
    }

    /// Goal: a line that is too long is answered under its name, if that is whole. Method: names at several places of
    /// the line, and one that would be cut off.
    #[test]
    fn a_line_that_is_too_long_has_a_name() {
        let rest = "x".repeat(LINE_BYTES_MAX);
        let far = " ".repeat(120);
        for (line, expected) in [
            (format!("id=k-1 kill {rest}"), Some("k-1")),
            (format!(" \tid=k-1 kill {rest}"), Some("k-1")),
            (format!("id={rest}"), None),
            (format!("{far}id=k-1234567 kill {rest}"), None),
        ] {
            let line = lines::next(&mut line.as_bytes(), LINE_BYTES_MAX).unwrap().unwrap();
            let (id, command) = parse(line);
            assert_eq!(id.as_deref(), expected);
            assert!(command.unwrap_err().starts_with("the line is too long"));
        }
    }

    /// Goal: a run that has ended is asked nothing more, but its input is read to the end, or to `quit`, which tell
    /// that the client has ended. Method: commands for a run that has ended.
    #[test]
    fn the_input_has_an_end_after_that_of_the_run() {
        for (input, left) in
            [(&b"limit 1\nlimit 2\nlimit 3"[..], &b""[..]), (b"stop\nquit\nx", b"x")]
        {
            let asked = RefCell::new(0);
            let refuse = |_: ControlRequest| {
                *asked.borrow_mut() += 1;
                false
            };
            let mut reader = input;
            read_commands(&mut reader, &refuse).unwrap();
            assert_eq!((*asked.borrow(), reader), (1, left));
        }
    }

    /// Goal: a name has a limited length. Method: the longest, and one that is longer.
    #[test]
    fn names_are_bounded() {
        let longest = "x".repeat(ID_BYTES_MAX);
        for (name, is_allowed) in [(longest.clone(), true), (longest + "x", false)] {
            let (id, command) = parse(Line::Text(format!("id={name} stop")));
            assert_eq!((id.is_some(), command.is_ok()), (is_allowed, is_allowed));
        }
    }
}
