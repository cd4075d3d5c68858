//! Settings on standard input (`--properties-file -`): a parent's secrets then never are in a file.
//!
//! They end with a line of their own, [`END`]. What comes after it is left in the pipe for those who read commands, so
//! the input is read byte by byte.

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Stdin};
use std::time::{Duration, Instant};

use offermill::config::properties::PROPERTIES_BYTES_MAX;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, read};

/// The value of `--properties-file` that means standard input.
pub(super) const STANDARD_INPUT: &str = "-";
/// The line after the settings, a comment for those who read properties.
const END: &[u8] = b"# end of settings";
/// How long the settings may take to arrive.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Reads the settings on standard input, without their last line. Of settings that are too long, it reads no more than
/// is needed to see that they are.
///
/// # Errors
/// If they don't end, or don't arrive in time.
pub(super) fn read_settings() -> io::Result<String> {
    let until = Instant::now() + TIMEOUT;
    read_to_end_line(&mut BufReader::with_capacity(1, TimedInput { input: io::stdin(), until }))
}

/// Standard input until a time.
struct TimedInput {
    input: Stdin,
    until: Instant,
}

impl Read for TimedInput {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let left = self.until.saturating_duration_since(Instant::now());
            let timeout = Timespec::try_from(left).map_err(io::Error::other)?;
            match poll(&mut [PollFd::new(&self.input, PollFlags::IN)], Some(&timeout)) {
                Ok(0) => return Err(ErrorKind::TimedOut.into()),
                Ok(_) => {}
                // A signal: some time is left.
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            // Another process that shares the input may have taken what was there.
            match read(&self.input, &mut *buffer) {
                Err(Errno::AGAIN | Errno::INTR) => {}
                result => return Ok(result?),
            }
        }
    }
}

fn read_to_end_line(reader: &mut impl BufRead) -> io::Result<String> {
    let mut bytes = Vec::new();
    // One byte more is too long, which is reported with other mistakes of the content.
    while bytes.len() <= PROPERTIES_BYTES_MAX {
        let begin = bytes.len();
        let left = PROPERTIES_BYTES_MAX + END.len() + 2 - begin;
        reader.by_ref().take(left as u64).read_until(b'\n', &mut bytes)?;
        let line = &bytes[begin..];
        if line.trim_ascii_end() == END {
            bytes.truncate(begin);
            break;
        }
        if !line.ends_with(b"\n") && bytes.len() <= PROPERTIES_BYTES_MAX {
            let end = String::from_utf8_lossy(END);
            let why = format!("the input ended before the line \"{end}\"");
            return Err(io::Error::new(ErrorKind::UnexpectedEof, why));
        }
    }
    String::from_utf8(bytes).map_err(|_| io::Error::new(ErrorKind::InvalidData, "it isn't UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: settings end with their last line, and what follows is left; input without that line, or that isn't
    /// UTF-8, is refused; settings that are too long are read no further than that. Method: inputs of each kind.
    #[test]
    fn settings_end_with_a_line() {
        let rest = |mut input: &[u8]| {
            let text = read_to_end_line(&mut input);
            (text.map_err(|error| error.kind()), input.len())
        };
        let read = |text: &str| Ok(text.to_owned());
        assert_eq!(rest(b"# end of settings\nlimit 1\n"), (read(""), 8));
        assert_eq!(
            rest(b"a=1\nb=# end of settings\n# end of settings\r\nx"),
            (read("a=1\nb=# end of settings\n"), 1)
        );
        assert_eq!(rest(b"a=1\n# end of settings"), (read("a=1\n"), 0));
        for cut in [&b""[..], b"a=1", b"a=1\n", b"# end of setting"] {
            assert_eq!(rest(cut), (Err(ErrorKind::UnexpectedEof), 0));
        }
        assert_eq!(rest(b"a=\xff\n# end of settings\nx"), (Err(ErrorKind::InvalidData), 1));
        for piece in ["x", "x\n"] {
            let endless = piece.repeat(2 * PROPERTIES_BYTES_MAX);
            let (text, _) = rest(endless.as_bytes());
            assert!((1..64).contains(&(text.unwrap().len() - PROPERTIES_BYTES_MAX)));
        }
    }
}
