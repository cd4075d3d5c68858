//! Tests of the bar that `offermill run --tasks` draws on a terminal.

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use crate::support::{Folder, finish};
use crate::terminal::{Screen, TerminalRun};

/// Nine tasks that end at once, one of which fails, and two that wait for a file.
const TASKS: usize = 11;
/// What the shell of a terminal runs.
const PLAIN: &str = "exec \"$@\"";
/// A terminal whose rows suffice for all that a test has on it.
const SIZE: (usize, usize) = (40, 80);

/// A folder with a file of tasks.
fn folder_with_tasks() -> Folder {
    let folder = Folder::new();
    let go = folder.0.join("go");
    let wait = format!("until [ -e {} ]; do sleep 0.05; done\n", go.display());
    let bad = "{\"id\": \"bad\", \"command\": \"exit 3\"}\n";
    folder.write("tasks", &["true\n".repeat(TASKS - 3), bad.to_owned(), wait.repeat(2)].concat());
    folder
}

fn flags<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let size = ["--task-cores", "0.5", "--task-memory", "16m"];
    [&["run", "--master", "local-cluster[2,2,128]", "--tasks", "tasks"], &size[..], more].concat()
}

/// Starts them on a terminal, and waits until those that wait are left.
fn start(folder: &Folder, size: (usize, usize), line: &str, more: &[&str]) -> TerminalRun {
    let mut run = TerminalRun::start(&folder.0, size, line, &flags(more));
    let left = "9 of 11 tasks ended: 8 succeeded, 1 failed; 2 running";
    run.wait_for("the bar", |screen| has_frame(screen) && screen.count(left) == 1);
    assert!(!run.screen.shows_cursor, "the cursor would jump about");
    run
}

/// Whether one frame is there, and nothing of another one.
fn has_frame(screen: &Screen) -> bool {
    ["tasks on local-", "━", "tasks ended", "offers "].iter().all(|part| screen.count(part) == 1)
}

/// Asserts that nothing is left of the bar, and that a shell could go on.
#[track_caller]
fn assert_clean(screen: &Screen) {
    let text = screen.text();
    assert_eq!((screen.count("━"), screen.count("running for")), (0, 0), "{text}");
    assert!(screen.shows_cursor && !screen.is_styled && screen.is_at_line_start(), "{text}");
    assert_eq!(screen.after_cursor(), "", "{text}");
}

/// Goal: on a terminal a bar shows how many tasks have ended; what a user should notice stays above it; in the end it
/// is gone, the summary is there once, and the terminal is as before. Method: tasks of which one fails and two wait, on
/// a terminal with a size and on one that has none.
#[test]
fn a_bar_is_drawn_and_erased() {
    for size in [SIZE, (0, 0)] {
        let folder = folder_with_tasks();
        let mut run = start(&folder, size, PLAIN, &[]);
        folder.write("go", "");
        assert_eq!(run.end(), Some(1), "{}", run.screen.text());
        assert_clean(&run.screen);
        let text = run.screen.text();
        let ended = "tasks      11 of 11 tasks ended: 10 succeeded, 1 failed";
        for (part, times) in [(" s  task bad failed on agent-", 1), (ended, 1), ("offers ", 1)] {
            assert_eq!(run.screen.count(part), times, "{part}: {text}");
        }
        folder.assert_deserted();
    }
}

/// Goal: Ctrl-C ends the run in an orderly way, and the bar with it; a second one ends it at once, and leaves a
/// terminal that a shell can use. Method: tasks that wait, one Ctrl-C; tasks that ignore SIGTERM, two.
#[test]
fn ctrl_c_leaves_a_clean_terminal() {
    let folder = folder_with_tasks();
    let mut run = start(&folder, SIZE, PLAIN, &[]);
    run.type_keys("\u{3}");
    assert_eq!(run.end(), Some(1), "{}", run.screen.text());
    assert_clean(&run.screen);
    let summary = "tasks      9 of 11 tasks ended: 8 succeeded, 1 failed";
    assert_eq!(run.screen.count(summary), 1, "{}", run.screen.text());
    folder.assert_deserted();

    let folder = folder_with_tasks();
    let tasks = fs::read_to_string(folder.0.join("tasks")).unwrap();
    folder.write("tasks", &tasks.replace("until", "trap '' TERM; until"));
    let mut run = start(&folder, SIZE, PLAIN, &[]);
    run.type_keys("\u{3}");
    run.wait_for("the end begins", |screen| screen.count("stopping for ") == 1);
    // What follows at once counts as the same one.
    sleep(Duration::from_millis(500));
    run.type_keys("\u{3}");
    assert_eq!(run.end(), Some(130), "{}", run.screen.text());
    let screen = &run.screen;
    assert!(screen.shows_cursor && !screen.is_styled, "{}", screen.text());
    assert!(screen.is_at_line_start() && screen.after_cursor().is_empty(), "{}", screen.text());
    assert_eq!(screen.count("offermill: ended at once"), 1, "{}", screen.text());
    folder.assert_deserted();
}

/// Goal: whatever the size becomes, a frame is drawn that fits, and nothing of the former ones is left. Method: wider
/// and narrower terminals, one after the other; some of a few characters, which have no room for a frame; then a usual
/// one, and the end.
#[test]
fn the_bar_follows_the_size() {
    let folder = folder_with_tasks();
    let mut run = start(&folder, SIZE, PLAIN, &[]);
    for columns in [40, 30, 100, 31, 200, 33, 80] {
        run.resize(SIZE.0, columns);
        run.wait_for("a frame", |screen| {
            has_frame(screen) && screen.longest_from("tasks on local-") < columns
        });
    }
    for (rows, columns) in [(1, 1), (2, 5), (3, 200)] {
        run.resize(rows, columns);
        sleep(Duration::from_millis(500));
    }
    run.resize(SIZE.0, SIZE.1);
    folder.write("go", "");
    assert_eq!(run.end(), Some(1), "{}", run.screen.text());
    let screen = &run.screen;
    assert!(screen.shows_cursor && !screen.is_styled && screen.is_at_line_start());
    assert_eq!(screen.count("tasks      11 of 11 tasks ended"), 1, "{}", screen.text());
}

/// Goal: a line above the bar is shown whole, also if it is as wide as the terminal. Method: two tasks that fail with
/// sentences of the same length; after the first the terminal gets that width.
#[test]
fn lines_as_wide_as_the_terminal_are_whole() {
    let folder = Folder::new();
    let go = folder.0.join("go");
    let wait = format!("until [ -e {} ]; do sleep 0.05; done; exit 3", go.display());
    let tasks = [("bad-1", "exit 3"), ("bad-2", &*wait)]
        .map(|(id, command)| format!("{}\n", serde_json::json!({"id": id, "command": command})));
    folder.write("tasks", &tasks.concat());
    let mut run = TerminalRun::start(&folder.0, (SIZE.0, 300), PLAIN, &flags(&[]));
    let is_there = |text: &str, id: &str| {
        text.lines().find(|line| line.contains(&format!(" s  task {id} failed on "))).map(str::len)
    };
    run.wait_for("the first", |screen| screen.count("1 of 2 tasks ended: 1 failed") == 1);
    let width = is_there(&run.screen.text(), "bad-1").unwrap();
    run.resize(SIZE.0, width);
    folder.write("go", "");
    assert_eq!(run.end(), Some(1), "{}", run.screen.text());
    let text = run.screen.text();
    assert_eq!(is_there(&text, "bad-2"), Some(width), "{text}");
}

/// Goal: what is written to a file, or to a terminal that knows no codes, is lines: no code, no carriage return, no
/// bar. Method: standard output, both outputs, and standard error in files, beside a terminal; a dumb terminal; pipes.
#[test]
fn files_have_no_codes() {
    for (line, files) in [
        ("exec \"$@\" >output", &["output"][..]),
        ("exec \"$@\" >output 2>errors", &["output", "errors"]),
        ("TERM=dumb exec \"$@\"", &[]),
    ] {
        let folder = folder_with_tasks();
        folder.write("go", "");
        let mut run = TerminalRun::start(&folder.0, SIZE, line, &flags(&[]));
        assert_eq!(run.end(), Some(1), "{line}: {}", run.screen.text());
        assert!(!run.screen.has_codes && run.screen.shows_cursor, "{line}: {}", run.screen.text());
        let mut texts = vec![run.screen.text()];
        texts.extend(files.iter().map(|file| fs::read_to_string(folder.0.join(file)).unwrap()));
        for text in &texts {
            assert!(!text.contains(['\u{1b}', '\r', '━']), "{line}: {text}");
        }
        let lines = texts.concat();
        assert!(lines.contains("11 of 11 tasks ended: 10 succeeded, 1 failed"), "{line}: {lines}");
    }

    let folder = folder_with_tasks();
    let mut run = start(&folder, SIZE, "exec \"$@\" 2>errors", &[]);
    folder.write("go", "");
    assert_eq!(run.end(), Some(1), "{}", run.screen.text());
    assert_clean(&run.screen);
    assert_eq!(fs::read_to_string(folder.0.join("errors")).unwrap(), "");

    let folder = folder_with_tasks();
    folder.write("go", "");
    let ended = finish(&folder, &flags(&[]));
    let text = ended.output + &ended.errors;
    assert!(!text.contains(['\u{1b}', '\r', '━']), "{text}");
}
