//! A terminal that a run writes to: a pseudo-terminal, and what its screen shows. Text that no longer fits into a line
//! continues in the next one, also when the width changes, as with most terminals of today.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::spawn;
use std::time::{Duration, Instant};

/// Far longer than any step of a test takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// A run on a terminal. Dropping it kills it.
pub(crate) struct TerminalRun {
    relay: Child,
    input: ChildStdin,
    output: Receiver<Vec<u8>>,
    /// The first bytes of a character or a code of which the rest is yet to come.
    rest: Vec<u8>,
    pub(crate) screen: Screen,
}

impl TerminalRun {
    /// Starts a shell on a terminal of this size, which runs a line with the binary and these arguments in place of
    /// `"$@"`.
    pub(crate) fn start(
        folder: &Path,
        (rows, columns): (usize, usize),
        line: &str,
        arguments: &[&str],
    ) -> TerminalRun {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/terminal.py");
        let mut relay = Command::new("python3")
            .arg(script)
            .args([rows.to_string(), columns.to_string()])
            .args(["sh", "-c", line, "sh", env!("CARGO_BIN_EXE_offermill")])
            .args(arguments)
            .current_dir(folder)
            .env("TERM", "xterm-256color")
            .env_remove("NO_COLOR")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, mut stdout) = (relay.stdin.take().unwrap(), relay.stdout.take().unwrap());
        let (sender, output) = channel();
        spawn(move || {
            let mut piece = [0; 65536];
            while let Ok(length @ 1..) = stdout.read(&mut piece) {
                if sender.send(piece[..length].to_vec()).is_err() {
                    return;
                }
            }
        });
        // A terminal that has no size shows text all the same.
        let screen = if rows == 0 { Screen::new(24, 80) } else { Screen::new(rows, columns) };
        TerminalRun { relay, input, output, rest: Vec::new(), screen }
    }

    /// Types keys.
    pub(crate) fn type_keys(&mut self, keys: &str) {
        let hex: String = keys.bytes().map(|byte| format!("{byte:02x}")).collect();
        writeln!(self.input, "type {hex}").unwrap();
    }

    /// Changes the size.
    pub(crate) fn resize(&mut self, rows: usize, columns: usize) {
        writeln!(self.input, "resize {rows} {columns}").unwrap();
        self.wait_for("the size", |screen| (screen.rows, screen.columns) == (rows, columns));
    }

    /// Follows the output until the screen is as it should.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, what: &str, mut is_so: impl FnMut(&Screen) -> bool) {
        let give_up = Instant::now() + PATIENCE;
        while !is_so(&self.screen) {
            let wait = give_up.saturating_duration_since(Instant::now());
            match self.output.recv_timeout(wait) {
                Ok(piece) => self.follow(&piece),
                Err(error) => panic!("{what}: {error}:\n{}", self.screen.text()),
            }
        }
    }

    /// Follows the output to its end. Returns the exit code.
    #[track_caller]
    pub(crate) fn end(&mut self) -> Option<i32> {
        loop {
            match self.output.recv_timeout(PATIENCE) {
                Ok(piece) => self.follow(&piece),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(error) => panic!("the end: {error}:\n{}", self.screen.text()),
            }
        }
        assert_eq!(self.rest, b"", "the output ends within a code");
        self.relay.wait().unwrap().code()
    }

    fn follow(&mut self, piece: &[u8]) {
        self.rest.extend_from_slice(piece);
        let whole = match std::str::from_utf8(&self.rest) {
            Ok(text) => text.len(),
            Err(error) => error.valid_up_to(),
        };
        let bytes = self.rest.split_off(whole);
        let text = String::from_utf8(std::mem::replace(&mut self.rest, bytes)).unwrap();
        let rest = self.screen.write(&text).as_bytes().to_vec();
        self.rest.splice(0..0, rest);
    }
}

impl Drop for TerminalRun {
    fn drop(&mut self) {
        let _ended = self.relay.kill();
        let _reaped = self.relay.wait();
    }
}

/// A line of the screen.
#[derive(Clone, Debug, Default)]
struct Row {
    text: Vec<char>,
    /// Whether its text continues in the next line.
    is_wrapped: bool,
}

/// What a terminal shows, with the lines that have left it at its top.
#[derive(Debug)]
pub(crate) struct Screen {
    rows: usize,
    columns: usize,
    lines: Vec<Row>,
    row: usize,
    /// The number of columns if the line is full; the next character begins another one then.
    column: usize,
    pub(crate) shows_cursor: bool,
    /// Whether what follows has a colour or another style.
    pub(crate) is_styled: bool,
    /// Whether there was any code.
    pub(crate) has_codes: bool,
}

impl Screen {
    fn new(rows: usize, columns: usize) -> Screen {
        Screen {
            rows,
            columns,
            lines: vec![Row::default()],
            row: 0,
            column: 0,
            shows_cursor: true,
            is_styled: false,
            has_codes: false,
        }
    }

    /// All lines, with those that have left the screen.
    pub(crate) fn text(&self) -> String {
        self.lines.iter().map(|line| line.text.iter().collect::<String>() + "\n").collect()
    }

    /// The number of lines that contain this text.
    pub(crate) fn count(&self, text: &str) -> usize {
        self.text().lines().filter(|line| line.contains(text)).count()
    }

    /// The length of the longest line from the one that contains this text.
    pub(crate) fn longest_from(&self, text: &str) -> usize {
        let lines = self.text();
        let lines = lines.lines().skip_while(|line| !line.contains(text));
        lines.map(|line| line.chars().count()).max().unwrap_or_default()
    }

    /// The text behind the cursor: in its line, and below.
    pub(crate) fn after_cursor(&self) -> String {
        let line = &self.lines[self.row].text;
        let rest = line.get(self.column..).unwrap_or_default().iter().collect::<String>();
        let below = self.lines[self.row + 1..].iter();
        below.fold(rest, |text, line| text + "\n" + &line.text.iter().collect::<String>())
    }

    /// Whether the cursor is at the beginning of a line.
    pub(crate) fn is_at_line_start(&self) -> bool {
        self.column == 0
    }

    /// Writes text. Returns what is at its end if that is the beginning of a code.
    fn write<'a>(&mut self, mut text: &'a str) -> &'a str {
        while let Some(char) = text.chars().next() {
            if char != '\u{1b}' {
                self.put(char);
                text = &text[char.len_utf8()..];
                continue;
            }
            let is_end = |c: char| c.is_ascii_alphabetic() || c == '\\';
            let Some(end) = text[1..].find(is_end) else { return text };
            let code = &text[1..end + 2];
            self.obey(code);
            text = &text[end + 2..];
        }
        text
    }

    fn put(&mut self, char: char) {
        match char {
            '\r' => self.column = 0,
            '\n' => self.next_line(),
            char => {
                assert!(!char.is_control(), "{char:?} in {:?}", self.text());
                if self.column == self.columns {
                    self.lines[self.row].is_wrapped = true;
                    self.next_line();
                    self.column = 0;
                }
                let line = &mut self.lines[self.row].text;
                if line.len() <= self.column {
                    line.resize(self.column + 1, ' ');
                }
                line[self.column] = char;
                self.column += 1;
            }
        }
    }

    fn next_line(&mut self) {
        self.row += 1;
        if self.row == self.lines.len() {
            self.lines.push(Row::default());
        }
    }

    /// Does what a code asks for, which must be one that this terminal knows.
    fn obey(&mut self, code: &str) {
        // The size is no code of the program's.
        if let Some(size) = code.strip_prefix('_').and_then(|size| size.strip_suffix("\u{1b}\\")) {
            let (rows, columns) = size.split_once(';').unwrap();
            return self.resize(rows.parse().unwrap(), columns.parse().unwrap());
        }
        self.has_codes = true;
        let (asked, kind) = code.split_at(code.len() - 1);
        match (asked.strip_prefix('[').unwrap_or_else(|| panic!("{code:?}")), kind) {
            ("?25", "l") => self.shows_cursor = false,
            ("?25", "h") => self.shows_cursor = true,
            (up, "A") => {
                let top = self.lines.len().saturating_sub(self.rows);
                self.row = self.row.saturating_sub(up.parse().unwrap()).max(top);
            }
            // In a full line, the cursor is at its last character.
            ("", "K") => self.clear_line_end(),
            ("", "J") => {
                self.clear_line_end();
                self.lines.truncate(self.row + 1);
            }
            (style, "m") => self.is_styled = style != "0",
            _ => panic!("the code {code:?}"),
        }
    }

    fn clear_line_end(&mut self) {
        let column = self.column.min(self.columns - 1);
        let line = &mut self.lines[self.row];
        line.text.truncate(column);
        line.is_wrapped = false;
    }

    /// Divides all text into lines of another width.
    fn resize(&mut self, rows: usize, columns: usize) {
        let (mut lines, mut cursor) = (Vec::new(), (0, 0));
        let mut text = Vec::new();
        for (row, line) in self.lines.iter().enumerate() {
            let before = text.len();
            text.extend(&line.text);
            if row == self.row {
                let column = before + self.column;
                cursor = (lines.len() + column / columns, column % columns);
            }
            if line.is_wrapped {
                continue;
            }
            let pieces = text.chunks(columns).count().max(1);
            for number in 0..pieces {
                let piece = text.chunks(columns).nth(number).unwrap_or_default();
                lines.push(Row { text: piece.to_vec(), is_wrapped: number + 1 < pieces });
            }
            text.clear();
        }
        lines.resize(lines.len().max(cursor.0 + 1), Row::default());
        *self = Screen { rows, columns, lines, row: cursor.0, column: cursor.1, ..*self };
    }
}
