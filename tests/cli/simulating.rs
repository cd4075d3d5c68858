//! Tests of `offermill simulate`: its output, its files, and the arguments that it rejects.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;

use crate::support::{Folder, Run, finish, offermill};

/// A search through short scenarios.
const SEARCH: [&str; 5] = ["simulate", "--seed", "9", "--faults", "none"];

/// A scenario that takes a fraction of a second.
const SMALL: [&str; 7] = ["simulate", "--agents", "8", "--executors", "30", "--duration", "1min"];

fn small<'a>(flags: &[&'a str]) -> Vec<&'a str> {
    [&SMALL[..], flags].concat()
}

/// A summary without the row that depends on the machine.
fn timeless(output: &str) -> String {
    let lines = output.lines().filter(|line| !line.starts_with("real time"));
    lines.collect::<Vec<_>>().join("\n")
}

fn fingerprint(output: &str) -> String {
    let line = output.lines().find_map(|line| line.strip_prefix("fingerprint"));
    line.unwrap_or_else(|| panic!("no fingerprint in\n{output}")).trim().to_owned()
}

/// Goal: a seed determines the run and all its figures. Method: play one seed twice, then another.
#[test]
fn a_seed_gives_one_run() {
    let folder = Folder::new();
    let play = |seed| finish(&folder, &small(&["--seed", seed]));
    let (first, again, other) = (play("7"), play("7"), play("8"));
    assert_eq!(first.code, Some(0), "{}{}", first.output, first.errors);
    assert_eq!(timeless(&first.output), timeless(&again.output));
    assert!(first.output.lines().any(|line| line.starts_with("real time")));
    assert_ne!(fingerprint(&first.output), fingerprint(&other.output));
}

/// Goal: without `--seed` a seed is chosen, and the printed command reproduces the run. Method: run that command.
#[test]
fn the_printed_command_plays_it_again() {
    let folder = Folder::new();
    let first = finish(&folder, &SMALL);
    let command = first.output.lines().find_map(|line| line.strip_prefix("again ")).unwrap();
    let arguments: Vec<&str> = command.split_whitespace().skip(1).collect();
    let again = finish(&folder, &arguments);
    assert_eq!(timeless(&first.output), timeless(&again.output));
}

/// Goal: a saved scenario gives the same run, from a file and from standard input. Method: compare fingerprints.
#[test]
fn a_saved_scenario_is_the_same_world() {
    let folder = Folder::new();
    let first = finish(&folder, &small(&["--seed", "7", "--write-scenario", "world.txt"]));
    let saved = finish(&folder, &["simulate", "--scenario", "world.txt"]);
    assert_eq!(saved.code, Some(0), "{}", saved.errors);
    assert_eq!(fingerprint(&first.output), fingerprint(&saved.output));
    let mut command = offermill(&folder.0, &["simulate", "--scenario", "-"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let text = fs::read(folder.0.join("world.txt")).unwrap();
    child.stdin.take().unwrap().write_all(&text).unwrap();
    let ended = child.wait_with_output().unwrap();
    let output = String::from_utf8(ended.stdout).unwrap();
    assert_eq!(fingerprint(&first.output), fingerprint(&output));
}

/// The text between two marks.
fn between<'a>(html: &'a str, from: &str, to: &str) -> &'a str {
    html.split_once(from).and_then(|(_, rest)| rest.split_once(to)).unwrap().0
}

/// Checks that tags are balanced.
fn assert_balanced(html: &str) {
    let mut open: Vec<&str> = Vec::new();
    let script = format!("<script>{}</script>", between(html, "<script>", "</script>"));
    let style = format!("<style>{}</style>", between(html, "<style>", "</style>"));
    let html = html.replace(&script, "").replace(&style, "");
    for tag in html.split('<').skip(1) {
        let (tag, _) = tag.split_once('>').unwrap();
        let name = tag.split([' ', '\n']).next().unwrap();
        if let Some(closed) = name.strip_prefix('/') {
            assert_eq!(open.pop(), Some(closed).map(|name| name.trim()), "{tag}");
        } else if !tag.ends_with('/') && !tag.starts_with('!') {
            open.push(
                html[tag.as_ptr() as usize - html.as_ptr() as usize..].get(..name.len()).unwrap(),
            );
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

/// Goal: the report is one self-contained file with every plot, and is small. Method: harsh faults; search for titles,
/// tags and addresses.
#[test]
fn the_report_is_complete() {
    let folder = Folder::new();
    let flags = ["--seed", "7", "--faults", "harsh", "--check", "off", "--report", "a report.html"];
    let ended = finish(&folder, &small(&flags));
    assert_eq!(ended.code, Some(0), "{}{}", ended.output, ended.errors);
    let html = fs::read_to_string(folder.0.join("a report.html")).unwrap();
    for title in [
        "Executors over time",
        "Cores over time",
        "Offers per second",
        "Agents up over time",
        "Declined offers by reason",
        "Placement latency",
        "Launch latency",
        "Spread: executors per agent",
        "Summary",
        "Events of the cluster",
        "Run it again",
        "The scenario",
    ] {
        assert!(html.contains(title), "{title}");
    }
    assert_balanced(&html);
    for load in ["http:", "https:", "src=", "href=", "@import", "url("] {
        assert!(!html.contains(load), "{load}");
    }
    assert!(html.contains(&fingerprint(&ended.output)));
    assert!(html.len() < 1_500_000, "{}", html.len());
    let left: Vec<_> = fs::read_dir(&folder.0).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert_eq!(left, ["a report.html"]);
}

/// Goal: the first Ctrl-C shuts the framework down, and the measurements are still printed. Method: a scenario that
/// takes a month of virtual time.
#[test]
fn a_signal_drains() {
    for signal in ["INT", "TERM"] {
        let folder = Folder::new();
        let flags = ["--seed", "7", "--duration", "30d", "--check", "off", "--report", "cut.html"];
        let run = Run::start(&folder, &small(&flags));
        sleep(Duration::from_millis(700));
        run.signal(signal);
        let ended = run.end();
        assert_eq!(ended.code, Some(0), "{}{}", ended.output, ended.errors);
        assert!(ended.errors.contains("the simulated framework shuts down"), "{}", ended.errors);
        assert!(ended.output.contains("; shut down by "), "{}", ended.output);
        assert!(fs::read_to_string(folder.0.join("cut.html")).unwrap().contains("</html>"));
    }
}

/// Goal: a search prints how many scenarios it played, and its output is reproducible. Method: a few seeds without
/// faults, with a line for each.
#[test]
fn a_search_tells_what_it_played() {
    let folder = Folder::new();
    let flags = [&SEARCH[..], &["--seeds", "3"]].concat();
    let ended = finish(&folder, &flags);
    assert_eq!(ended.code, Some(0), "{}{}", ended.output, ended.errors);
    assert!(ended.output.starts_with("3 seeds from 9: "), "{}", ended.output);
    assert!(ended.output.contains(" offers, no violation\n"), "{}", ended.output);
    let verbose = || timeless(&finish(&folder, &[&flags[..], &["--verbose"]].concat()).output);
    let lines = verbose();
    assert!((9..12).all(|seed| lines.contains(&format!("seed {seed}: "))), "{lines}");
    assert_eq!(lines, verbose());
}

/// Goal: a closed pipe ends a search in an orderly way, and doesn't affect a single run. Method: read a line or
/// nothing.
#[test]
fn a_closed_pipe_is_no_failure() {
    let folder = Folder::new();
    let search = [&SEARCH[..], &["--seeds", "1000000", "--verbose", "--plain"]].concat();
    for (arguments, lines) in [(search, 2), (small(&["--seed", "7"]), 0)] {
        let mut child = offermill(&folder.0, &arguments).spawn().unwrap();
        let mut reader = BufReader::new(child.stdout.take().unwrap());
        for _ in 0..lines {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            assert!(line.starts_with("seed ") && line.ends_with('\n'), "{line:?}");
        }
        drop(reader);
        let ended = child.wait_with_output().unwrap();
        let errors = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(0), "{errors}");
        assert!(!errors.contains("panicked"), "{errors}");
    }
}

/// Goal: a failure to write results is an error, also without a violation. Method: write each kind of result to a
/// device that is always full.
#[cfg(target_os = "linux")]
#[test]
fn results_that_are_lost_are_a_failure() {
    let folder = Folder::new();
    let search = [&SEARCH[..], &["--seeds", "2"]].concat();
    for arguments in [
        small(&["--seed", "7"]),
        small(&["--seed", "7", "--json"]),
        search.clone(),
        [&search[..], &["--json"]].concat(),
        [&search[..], &["--verbose"]].concat(),
    ] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let ended = offermill(&folder.0, &arguments).stdout(full).output().unwrap();
        let errors = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(5), "{arguments:?}: {errors}");
        let told = errors.matches("standard output can't be written: ").count();
        assert_eq!(told, 1, "{arguments:?}: {errors}");
    }
}

/// Goal: zero executors are allowed, as in a scenario. Method: run with none.
#[test]
fn there_may_be_no_executors() {
    let flags = ["simulate", "--agents", "3", "--executors", "0", "--duration", "1min"];
    let ended = finish(&Folder::new(), &[&flags[..], &["--seed", "7"]].concat());
    assert_eq!(ended.code, Some(0), "{}{}", ended.output, ended.errors);
    assert!(ended.output.contains(" 0 placed; "), "{}", ended.output);
}

/// Goal: with `--json`, standard output is one object and nothing else. Method: a run and a search.
#[test]
fn the_summary_is_one_object() {
    let folder = Folder::new();
    let ended = finish(&folder, &small(&["--seed", "7", "--json"]));
    let summary: Value = serde_json::from_str(&ended.output).unwrap();
    assert_eq!(summary["seed"], 7);
    let count = |value: &Value| value.as_u64().unwrap();
    let declined = summary["declined"].as_object().unwrap();
    let declined: u64 = declined.values().map(count).sum();
    assert_eq!(count(&summary["offers"]), count(&summary["accepted"]) + declined);
    assert!(summary["violation"].is_null() && summary["drain"]["left"].is_u64(), "{summary}");
    let ended = finish(&folder, &[&SEARCH[..], &["--seeds", "2", "--json"]].concat());
    let summary: Value = serde_json::from_str(&ended.output).unwrap();
    assert_eq!((&summary["seeds_played"], &summary["first_seed"]), (&2.into(), &9.into()));
}

/// Goal: invalid arguments are rejected before the start, with the allowed values. Method: each kind of error.
#[test]
fn bad_input_is_refused() {
    let folder = Folder::new();
    folder.write("garbled.txt", "seed=7 agents=many\n");
    folder.write("letter.txt", "Dear Sir or Madam,\n");
    std::os::unix::fs::symlink("nowhere", folder.0.join("dangling")).unwrap();
    for (arguments, words) in [
        (&["--agents", "0"][..], "--agents is \"0\""),
        (&["--agents", "1000001"], "1000000"),
        (&["--agents", "-1"], "--agents is \"-1\""),
        (&["--executors", "4194304"], "4194303"),
        (&["--executors", "ten"], "--executors is \"ten\""),
        (&["--duration", "0"], "from 1ms to 30d"),
        (&["--duration", "31d"], "from 1ms to 30d"),
        (&["--duration", "99999999999999999999d"], "from 1ms to 30d"),
        (&["--duration", "soon"], "--duration is \"soon\""),
        (&["--seed", "-3"], "--seed is \"-3\""),
        (&["--seeds", "0"], "--seeds is \"0\""),
        (&["--seeds", "9", "--seed", "18446744073709551615"], "there are no such seeds"),
        (&["--faults", "hars"], "a similar value exists: 'harsh'"),
        (&["--check", "always"], "each-step"),
        (&["--seeds", "5", "--agents", "3"], "cannot be used with"),
        (&["--seeds", "5", "--report", "r.html"], "cannot be used with"),
        (&["--scenario", "garbled.txt", "--seed", "1"], "cannot be used with"),
        (&["--verbose"], "--seeds"),
        (&["--verbose", "--seed", "7"], "required arguments were not provided"),
        (&["--verbose", "--agents", "3"], "cannot be used with"),
        (&["--verbose", "--scenario", "letter.txt"], "cannot be used with"),
        (&["--report", "no/such/folder/r.html"], "--report no/such/folder/r.html: the folder"),
        (&["--report", "dangling"], "--report dangling: it is a link that leads nowhere"),
        (&["--report", "/dev/null"], "this is not a regular file"),
        (&["--report", "-"], "--report -: it can't go to standard output"),
        (&["--report", "."], "this is a folder, not a file"),
        (&["--report", "same", "--write-scenario", "same"], "are the same file"),
        (&["--scenario", "missing.txt"], "--scenario missing.txt: "),
        (&["--scenario", "garbled.txt"], "garbled.txt: "),
        (&["--scenario", "letter.txt"], "line 1"),
    ] {
        let ended = finish(&folder, &[&["simulate"], arguments].concat());
        assert_eq!(ended.code, Some(2), "{arguments:?}: {}", ended.errors);
        assert!(ended.errors.contains(words), "{arguments:?}: {}", ended.errors);
        assert!(ended.output.is_empty() && !ended.errors.contains("panicked"), "{arguments:?}");
    }
    assert!(!folder.0.join("same").exists() && !folder.0.join("r.html").exists());
}

/// Goal: the help lists the exit codes and examples. Method: print it.
#[test]
fn the_help_has_examples() {
    let help = finish(&Folder::new(), &["simulate", "--help"]);
    assert_eq!(help.code, Some(0));
    for words in ["Examples:", "Exit codes:", "--write-scenario", "[possible values: none, mild"] {
        assert!(help.output.contains(words), "{words} in\n{}", help.output);
    }
    assert!(help.output.lines().all(|line| line.chars().count() <= 100));
}
