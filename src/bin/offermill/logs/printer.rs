//! Prints the output of an executor: as it is for programs, and made printable for a terminal.

use std::io::{self, IsTerminal, Write};

use crate::text::styled::StyledText;

/// Prints to standard output or standard error.
pub(super) struct LogPrinter {
    output: Box<dyn Write>,
    /// The beginning of a character whose end wasn't read yet; `None` if bytes are printed as they are.
    rest: Option<Vec<u8>>,
}

impl LogPrinter {
    pub(super) fn to_stdout() -> LogPrinter {
        LogPrinter::new(Box::new(io::stdout()), io::stdout().is_terminal())
    }

    pub(super) fn to_stderr() -> LogPrinter {
        LogPrinter::new(Box::new(io::stderr()), io::stderr().is_terminal())
    }

    fn new(output: Box<dyn Write>, is_terminal: bool) -> LogPrinter {
        LogPrinter { output, rest: is_terminal.then(Vec::new) }
    }

    /// Prints bytes. A character that is cut off at the end is kept for the next ones.
    pub(super) fn print(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(rest) = &mut self.rest else { return self.output.write_all(bytes) };
        rest.extend_from_slice(bytes);
        let whole = rest.len() - cut_off(rest);
        let text = String::from_utf8_lossy(rest.get(..whole).unwrap_or(rest)).into_owned();
        rest.drain(..whole);
        self.output.write_all(StyledText::program_output(&text).as_str().as_bytes())
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }

    /// Prints what was kept, as nothing follows.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        let rest = self.rest.take().unwrap_or_default();
        let text = String::from_utf8_lossy(&rest);
        self.output.write_all(text.as_bytes())?;
        self.output.flush()
    }
}

/// How many bytes at the end are the beginning of a character.
fn cut_off(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes.get(bytes.len().saturating_sub(4)..).unwrap_or(bytes)) {
        Ok(_) => 0,
        // The last four bytes may begin within a character.
        Err(_) => (1..=3.min(bytes.len()))
            .find(|length| {
                let end = bytes.get(bytes.len() - length..).unwrap_or_default();
                std::str::from_utf8(end)
                    .is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
            })
            .unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};

    use super::*;

    struct Kept(Sender<Vec<u8>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.send(bytes.to_vec()).map_err(io::Error::other)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Goal: a terminal gets no control characters, and whole characters however the output is cut; programs get the
    /// bytes. Method: a text with codes, wide characters and bytes that are none, in pieces of each length.
    #[test]
    fn output_is_printed_whole() {
        let text = [b"a\x1b[2J\tb\n", "é名🦀\n".as_bytes(), b"\xff\xe5\n", b"end \xe5"].concat();
        for length in 1..=text.len() {
            for is_terminal in [false, true] {
                let (sender, kept) = channel();
                let mut printer = LogPrinter::new(Box::new(Kept(sender)), is_terminal);
                text.chunks(length).for_each(|piece| printer.print(piece).unwrap());
                printer.finish().unwrap();
                let printed: Vec<u8> = kept.try_iter().flatten().collect();
                match is_terminal {
                    false => assert_eq!(printed, text),
                    true => assert_eq!(
                        String::from_utf8(printed).unwrap(),
                        "a\\u{1b}[2J\tb\né名🦀\n\u{fffd}\u{fffd}\nend \u{fffd}",
                        "{length}"
                    ),
                }
            }
        }
    }
}
