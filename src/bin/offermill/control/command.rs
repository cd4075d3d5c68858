//! The control commands: their syntax, their help text and a parser.

use std::fmt;

use offermill::allocation::{Load, ShuffleData};
use offermill::config::text::parse_cores;
use offermill::resources::MilliCpus;

/// The help text of the commands.
pub(crate) const HELP: &str = "\
limit N | none       set the executor limit. A lower limit ends no executor; use kill
limit N locality HOST=N...
                     the same, and set where executors start, as \"locality\" does
kill NAME...         ask executors to end: those that are alive; the reply names the
                     rest. The limit stays, so others replace them unless it is
                     lowered before. Of a run of tasks, NAME may be the id of a task
                     that is in flight, whose attempt then has failed
status               print the state of the run and what the cluster has; ends with an
                     empty line
status json          the same as one line of JSON
load pending=N running=N [speculative=N] [unschedulable=N]
                     set the number of tasks until the next load command; a number
                     that isn't given is 0. With dynamic allocation the limit follows
executor NAME WHAT   set the activity of an executor, for dynamic allocation: busy or
                     idle (the default), cached or uncached (whether it holds cached
                     blocks), shuffle-needed, shuffle-kept or shuffle-gone (whether it
                     holds shuffle data, and whether a job needs it)
registered CORES     set how many cores have registered with the framework's driver;
                     with + or -, add or subtract
locality HOST=N...   set how many tasks have their data on which hosts: executors start
                     there if possible (spark.locality.wait); or \"locality none\"
queues               print the queues: their bounds, what they take, their tasks or
                     executors; ends with an empty line
queues json          the same as one line of JSON
queues NAME:BOUND=VALUE,...;NAME:...
                     change these bounds, as --queues has them, all of them or none;
                     \"none\" takes a bound away, and others stay. Ends nothing
stop                 stop the run, like Ctrl-C
help                 print this; ends with an empty line
quit                 close the connection
NAME is an executor's id, the part of it after the last \"-\", or its number. In a run of
tasks it is first an executor's whole id, then the id of a task; a number alone is always
the id of a task, and what \"status\" lists has both.";

/// What the commands to a master are.
pub(crate) const MASTER_COMMANDS: &str = concat!(
    "  status              workers and frameworks, and what is free\n",
    "  status json         the same for programs, as GET /state has it\n",
    "  drain ID [GRACE]    a worker takes no executors any more, ends those that it has within GRACE\n",
    "                      (10s), and leaves; its program ends then\n",
    "  decommission ID     a worker takes no executors any more, and leaves once those that it has have\n",
    "                      ended by themselves; its program ends then\n",
    "  help                this text"
);

/// The words that a command may begin with.
pub(crate) const WORDS: &str =
    "limit, kill, status, load, executor, registered, locality, queues, stop, help or quit";

/// The maximum number of executors that one command asks to end: the reply has a sentence for each that isn't alive.
const KILL_NAMES_MAX: usize = 10_000;

/// A control command.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ControlCommand {
    Limit {
        limit: Option<u32>,
        /// Hosts as in `Locality`; `None` leaves them as they are.
        hosts: Option<Vec<(String, u32)>>,
    },
    /// The names of executors, from 1 to [`KILL_NAMES_MAX`].
    Kill(Vec<String>),
    Status {
        is_json: bool,
    },
    Load(Load),
    Executor {
        name: String,
        activity: Activity,
    },
    Registered(RegisteredCores),
    /// Hosts, and the number of tasks that have their data there.
    Locality(Vec<(String, u32)>),
    Queues {
        is_json: bool,
    },
    /// New bounds of queues, in the form of `--queues`.
    ChangeQueues(String),
    Stop,
    Help,
    Quit,
}

/// The activity of an executor, as dynamic allocation sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Activity {
    Busy,
    Idle,
    Cached(bool),
    Shuffle(ShuffleData),
}

/// The cores that have registered with the framework's driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RegisteredCores {
    Total(MilliCpus),
    Added(MilliCpus),
    Removed(MilliCpus),
}

impl ControlCommand {
    /// Parses a line. `None` if it is blank.
    ///
    /// # Errors
    /// With a sentence that says what was expected.
    pub(super) fn parse(line: &str) -> Result<Option<ControlCommand>, String> {
        let mut words = line.split_whitespace();
        let Some(first) = words.next() else { return Ok(None) };
        let rest: Vec<&str> = words.collect();
        Ok(Some(match (first, &rest[..]) {
            ("limit", [limit]) => ControlCommand::Limit { limit: parse_limit(limit)?, hosts: None },
            ("limit", [limit, "locality", hosts @ ..]) => ControlCommand::Limit {
                limit: parse_limit(limit)?,
                hosts: Some(parse_hosts(hosts)?),
            },
            ("limit", _) => return Err(expected("limit", "a number of executors, or \"none\"")),
            ("kill", []) => return Err(expected("kill", "names of executors")),
            ("kill", names) if names.len() > KILL_NAMES_MAX => {
                let what = format!("at most {KILL_NAMES_MAX} names of executors");
                return Err(expected("kill", &what));
            }
            ("kill", names) => {
                ControlCommand::Kill(names.iter().map(|&name| name.to_owned()).collect())
            }
            ("status", []) => ControlCommand::Status { is_json: false },
            ("status", ["json"]) => ControlCommand::Status { is_json: true },
            ("status", _) => return Err(expected("status", "nothing, or \"json\"")),
            ("load", counts) => ControlCommand::Load(parse_load(counts)?),
            ("executor", [name, activity]) => ControlCommand::Executor {
                name: (*name).to_owned(),
                activity: parse_activity(activity)?,
            },
            ("executor", _) => {
                return Err(expected("executor", "a name and one of its activities"));
            }
            ("registered", [cores]) => ControlCommand::Registered(parse_registered(cores)?),
            ("registered", _) => return Err(expected("registered", "a number of cores")),
            ("locality", hosts) => ControlCommand::Locality(parse_hosts(hosts)?),
            ("queues", []) => ControlCommand::Queues { is_json: false },
            ("queues", ["json"]) => ControlCommand::Queues { is_json: true },
            ("queues", bounds) => ControlCommand::ChangeQueues(bounds.join(" ")),
            ("stop", []) => ControlCommand::Stop,
            ("help", []) => ControlCommand::Help,
            ("quit", []) => ControlCommand::Quit,
            ("stop" | "help" | "quit", _) => return Err(expected(first, "nothing")),
            _ => return Err(format!("{} is not a command; expected {WORDS}", quoted(first))),
        }))
    }
}

/// As in `after "limit" was expected: a number of executors, or "none"`.
fn expected(word: &str, what: &str) -> String {
    format!("after \"{word}\" was expected: {what}")
}

/// A client's word, quoted, escaped and shortened.
fn quoted(word: &str) -> String {
    const SHOWN_MAX: usize = 60;
    let mut shown: String = word.chars().take(SHOWN_MAX).collect();
    if shown.len() < word.len() {
        shown.push('…');
    }
    format!("{shown:?}")
}

fn number<T: std::str::FromStr>(text: &str) -> Option<T> {
    // Unlike `parse`, this rejects "+5".
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

fn parse_limit(text: &str) -> Result<Option<u32>, String> {
    if text == "none" {
        return Ok(None);
    }
    let what = || {
        let is_too_large = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let bound = if is_too_large { format!(" up to {}", u32::MAX) } else { String::new() };
        format!("a number of executors{bound}, or \"none\", not {}", quoted(text))
    };
    number(text).map(Some).ok_or_else(|| expected("limit", &what()))
}

/// Parses the numbers of a load, each of which may be given once.
fn parse_load(words: &[&str]) -> Result<Load, String> {
    const WHAT: &str = "pending=N and running=N, optionally speculative=N and unschedulable=N";
    let wrong = |why: fmt::Arguments<'_>| expected("load", &format!("{WHAT}; {why}"));
    let mut load = Load::default();
    let mut seen = Vec::new();
    for word in words {
        let Some((name, count)) = word.split_once('=') else {
            return Err(wrong(format_args!("{} is not one of them", quoted(word))));
        };
        let place = match name {
            "pending" => &mut load.pending,
            "running" => &mut load.running,
            "speculative" => &mut load.speculative,
            "unschedulable" => &mut load.unschedulable,
            _ => return Err(wrong(format_args!("{} is not one of them", quoted(name)))),
        };
        if seen.contains(&name) {
            return Err(wrong(format_args!("{name} is given twice")));
        }
        seen.push(name);
        let whole = "a whole number";
        *place =
            number(count).ok_or_else(|| wrong(format_args!("{} is not {whole}", quoted(count))))?;
    }
    if seen.is_empty() { Err(expected("load", WHAT)) } else { Ok(load) }
}

fn parse_activity(text: &str) -> Result<Activity, String> {
    Ok(match text {
        "busy" => Activity::Busy,
        "idle" => Activity::Idle,
        "cached" => Activity::Cached(true),
        "uncached" => Activity::Cached(false),
        "shuffle-needed" => Activity::Shuffle(ShuffleData::Needed),
        "shuffle-kept" => Activity::Shuffle(ShuffleData::Kept),
        "shuffle-gone" => Activity::Shuffle(ShuffleData::None),
        _ => {
            let all = "busy, idle, cached, uncached, shuffle-needed, shuffle-kept or shuffle-gone";
            return Err(expected("executor NAME", &format!("{all}, not {}", quoted(text))));
        }
    })
}

fn parse_registered(text: &str) -> Result<RegisteredCores, String> {
    let (kind, cores): (fn(MilliCpus) -> RegisteredCores, &str) = match text.split_at_checked(1) {
        Some(("+", cores)) => (RegisteredCores::Added, cores),
        Some(("-", cores)) => (RegisteredCores::Removed, cores),
        _ => (RegisteredCores::Total, text),
    };
    match (cores, parse_cores("registered", cores)) {
        // `parse_cores` rejects 0, as no executor has 0 cores, but 0 cores may have registered.
        ("0", _) => Ok(kind(MilliCpus::ZERO)),
        (_, Ok(cores)) => Ok(kind(cores)),
        _ => {
            let what = format!("a number of cores, optionally with + or -, not {}", quoted(text));
            Err(expected("registered", &what))
        }
    }
}

fn parse_hosts(words: &[&str]) -> Result<Vec<(String, u32)>, String> {
    const WHAT: &str = "HOST=N, a number of tasks for each host, or \"none\"";
    if words == ["none"] {
        return Ok(Vec::new());
    }
    if words.is_empty() {
        return Err(expected("locality", WHAT));
    }
    let hosts = words.iter().map(|word| {
        let host = word.rsplit_once('=').filter(|(host, _)| !host.is_empty());
        let read = host.and_then(|(host, tasks)| Some((host.to_owned(), number(tasks)?)));
        read.ok_or_else(|| expected("locality", &format!("{WHAT}, not {}", quoted(word))))
    });
    hosts.collect()
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// Goal: each command is parsed as the help text says. Method: a row each.
    #[test]
    fn commands_are_parsed() {
        let cores = MilliCpus::from_cores;
        let load = Load { pending: 20, running: 4, ..Load::default() };
        let all = Load { speculative: 2, unschedulable: 1, ..load };
        let executor = |activity| ControlCommand::Executor { name: "17.4".into(), activity };
        let none = || Some(Vec::new());
        let rows = [
            ("limit 5", ControlCommand::Limit { limit: Some(5), hosts: None }),
            ("limit none", ControlCommand::Limit { limit: None, hosts: None }),
            ("limit 0 locality none", ControlCommand::Limit { limit: Some(0), hosts: none() }),
            (
                "limit 2 locality a=3",
                ControlCommand::Limit { limit: Some(2), hosts: Some(vec![("a".into(), 3)]) },
            ),
            ("  kill\ta-1.0  17 ", ControlCommand::Kill(vec!["a-1.0".into(), "17".into()])),
            ("status\r", ControlCommand::Status { is_json: false }),
            ("status json", ControlCommand::Status { is_json: true }),
            ("load pending=20 running=4", ControlCommand::Load(load)),
            ("load running=4 pending=20 unschedulable=1 speculative=2", ControlCommand::Load(all)),
            ("load pending=0", ControlCommand::Load(Load::default())),
            ("executor 17.4 busy", executor(Activity::Busy)),
            ("executor 17.4 idle", executor(Activity::Idle)),
            ("executor 17.4 uncached", executor(Activity::Cached(false))),
            ("executor 17.4 shuffle-kept", executor(Activity::Shuffle(ShuffleData::Kept))),
            ("registered 4", ControlCommand::Registered(RegisteredCores::Total(cores(4)))),
            ("registered 0", ControlCommand::Registered(RegisteredCores::Total(cores(0)))),
            ("registered +2", ControlCommand::Registered(RegisteredCores::Added(cores(2)))),
            ("registered -2", ControlCommand::Registered(RegisteredCores::Removed(cores(2)))),
            ("locality a=3 b=1", ControlCommand::Locality(vec![("a".into(), 3), ("b".into(), 1)])),
            ("locality none", ControlCommand::Locality(Vec::new())),
            ("queues", ControlCommand::Queues { is_json: false }),
            ("queues json", ControlCommand::Queues { is_json: true }),
            ("queues a:max-cores=1;  b", ControlCommand::ChangeQueues("a:max-cores=1; b".into())),
            ("stop", ControlCommand::Stop),
            ("help", ControlCommand::Help),
            ("quit", ControlCommand::Quit),
        ];
        for (line, command) in rows {
            assert_eq!(ControlCommand::parse(line), Ok(Some(command)), "{line}");
        }
        assert_eq!(ControlCommand::parse(" \t "), Ok(None));
    }

    /// Goal: a wrong line is refused, with what was expected. Method: a row each.
    #[test]
    fn others_are_refused_with_what_was_expected() {
        let rows = [
            ("Limit 5", "\"Limit\" is not a command; expected limit, kill, status,"),
            ("limit", "after \"limit\" was expected: a number of executors, or \"none\""),
            ("limit 5 6", "after \"limit\" was expected"),
            ("limit 5 locality", "after \"locality\" was expected: HOST=N"),
            ("limit x locality none", "or \"none\", not \"x\""),
            ("limit -1", "a number of executors, or \"none\", not \"-1\""),
            ("limit +1", "not \"+1\""),
            ("limit 4294967296", "executors up to 4294967295, or \"none\", not \"4294967296\""),
            ("kill", "after \"kill\" was expected: names of executors"),
            ("status yaml", "nothing, or \"json\""),
            ("load", "after \"load\" was expected: pending=N and running=N"),
            ("load 5", "\"5\" is not one of them"),
            ("load waiting=5", "\"waiting\" is not one of them"),
            ("load pending=x", "\"x\" is not a whole number"),
            ("load pending=", "\"\" is not a whole number"),
            ("load pending=1 pending=1", "pending is given twice"),
            ("executor 17", "a name and one of its activities"),
            ("executor 17 asleep", "shuffle-gone, not \"asleep\""),
            ("registered many", "a number of cores, optionally with + or -, not \"many\""),
            ("registered +", "not \"+\""),
            ("registered +-2", "not \"+-2\""),
            ("locality", "HOST=N"),
            ("locality a", "not \"a\""),
            ("locality =1", "not \"=1\""),
            ("stop now", "after \"stop\" was expected: nothing"),
            ("\u{1b}[2J", "\"\\u{1b}[2J\" is not a command"),
        ];
        for (line, sentence) in rows {
            let error = ControlCommand::parse(line).unwrap_err();
            assert!(error.contains(sentence), "{line}: {error}");
        }
    }

    /// Goal: a list of names has a limited length. Method: the longest, and one more.
    #[test]
    fn a_kill_is_bounded() {
        let kill = |names| ControlCommand::parse(&format!("kill{}", " 7".repeat(names)));
        assert!(kill(KILL_NAMES_MAX).is_ok());
        let error = kill(KILL_NAMES_MAX + 1).unwrap_err();
        assert_eq!(error, "after \"kill\" was expected: at most 10000 names of executors");
    }

    proptest! {
        /// Goal: every line is a command, or fails with a sentence of one line and of limited length; none panics.
        /// Method: words of the language and any text, in any order.
        #[test]
        fn every_line_has_an_answer(
            words in vec(prop_oneof![
                Just("limit".to_owned()), Just("kill".to_owned()), Just("load".to_owned()),
                Just("pending=".to_owned()), Just("running=3".to_owned()), Just("json".to_owned()),
                Just("executor".to_owned()), Just("registered".to_owned()),
                Just("locality".to_owned()), Just("none".to_owned()), Just("status".to_owned()),
                Just("+é".to_owned()), Just("é".to_owned()), "[-+=0-9.]{0,24}", ".{0,200}",
            ], 0..6),
            gap in "[ \t]{1,3}",
        ) {
            let line = words.join(&gap);
            match ControlCommand::parse(&line) {
                Ok(None) => prop_assert!(line.trim().is_empty()),
                Ok(Some(_)) => {}
                Err(sentence) => {
                    prop_assert!(!sentence.contains('\n') && sentence.len() < 2_000, "{}", sentence);
                    prop_assert!(sentence.contains("expected"), "{}", sentence);
                }
            }
        }
    }
}
