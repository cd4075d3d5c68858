//! Parsing one line of a file of tasks: a JSON object, or a shell command.

use std::fmt::{self, Formatter};
use std::str::Utf8Error;

use offermill::config::QueueId;
use offermill::config::text::{parse_cores, parse_memory};
use offermill::limits::{EXECUTOR_CORES_MAX, EXECUTOR_MEMORY_MAX};
use offermill::resources::{Gpus, Mebibytes, MilliCpus};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::{Map, Value};

use crate::tasks::task::{TaskDefaults, TaskSpec};

/// The longest id, in bytes.
const ID_BYTES_MAX: usize = 200;
/// The longest argument that Linux passes to a program, in bytes.
const ARGUMENT_BYTES_MAX: usize = 128 * 1024 - 1;
/// The most retries of a task.
pub(crate) const RETRIES_MAX: u64 = 1_000_000;
/// The keys of a task.
const KEYS: [&str; 9] =
    ["id", "command", "cores", "memory", "gpus", "retries", "after", "queue", "env"];

/// Parses a line. `None` if it has no task: it is empty, or a comment that begins with `#`.
///
/// # Errors
/// With what is wrong, as the rest of a sentence that begins with the line.
pub(crate) fn parse_line(
    bytes: &[u8],
    line: u64,
    defaults: &TaskDefaults,
) -> Result<Option<TaskSpec>, String> {
    let text = line_text(bytes, line).map_err(|error| {
        format!("is not text in UTF-8, from byte {} on", error.valid_up_to() + 1)
    })?;
    if text.is_empty() || text.starts_with('#') {
        return Ok(None);
    }
    if text.contains('\0') {
        return Err("contains a zero byte, which no command can have".to_owned());
    }
    let task = if is_object(text) {
        let object: TaskObject = serde_json::from_str(text).map_err(|error| no_object(&error))?;
        if let Some(key) = object.twice {
            return Err(format!("has the key {key:?} twice"));
        }
        if object.values.get("env").is_some_and(Value::is_object) {
            let WithEnv { env } = serde_json::from_str(text).map_err(|error| no_object(&error))?;
            if let Some(name) = env.twice {
                return Err(format!("has the variable {name:?} twice in \"env\""));
            }
        }
        from_object(&object.values, line, defaults)?
    } else {
        plain(shell(text), line, defaults)
    };
    if let Some(long) = task.argv.iter().find(|it| it.len() > ARGUMENT_BYTES_MAX) {
        let bytes = long.len();
        return Err(format!("has a command of {bytes} bytes; at most {ARGUMENT_BYTES_MAX} start"));
    }
    Ok(Some(task))
}

/// A line without the blanks around it.
///
/// # Errors
/// If it is no text in UTF-8.
pub(super) fn line_text(bytes: &[u8], line: u64) -> Result<&str, Utf8Error> {
    let text = std::str::from_utf8(bytes)?;
    // Some editors put a byte order mark at the begin of a file.
    let text = if line == 1 { text.trim_start_matches('\u{feff}') } else { text };
    Ok(text.trim())
}

/// Whether a line is a JSON object, and not a group of shell commands in braces.
pub(super) fn is_object(text: &str) -> bool {
    let inner = text.strip_prefix('{').map(str::trim_start);
    inner.is_some_and(|inner| inner.starts_with(['"', '}']))
}

/// The keys and values of a JSON object.
#[derive(Default)]
struct TaskObject {
    values: Map<String, Value>,
    /// The last key that stands twice, of which the first value would be lost.
    twice: Option<String>,
}

/// A task's object, of which only the variables are looked at: the map that they are read into has each name once.
#[derive(Deserialize)]
struct WithEnv {
    env: TaskObject,
}

impl<'de> Deserialize<'de> for TaskObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<TaskObject, D::Error> {
        deserializer.deserialize_map(TaskObjectVisitor)
    }
}

struct TaskObjectVisitor;

impl<'de> Visitor<'de> for TaskObjectVisitor {
    type Value = TaskObject;

    fn expecting(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<TaskObject, A::Error> {
        let mut object = TaskObject::default();
        while let Some((key, value)) = map.next_entry::<String, Value>()? {
            if object.values.insert(key.clone(), value).is_some() {
                object.twice = Some(key);
            }
        }
        Ok(object)
    }
}

fn shell(line: &str) -> Vec<String> {
    ["/bin/sh", "-c", line].map(str::to_owned).to_vec()
}

/// A task with this command and the defaults, whose id is its line.
fn plain(argv: Vec<String>, line: u64, defaults: &TaskDefaults) -> TaskSpec {
    let TaskDefaults { cores, memory, retries } = *defaults;
    TaskSpec {
        id: line.to_string(),
        line,
        argv,
        cores,
        memory,
        gpus: Gpus::ZERO,
        retries,
        after: Vec::new(),
        queue_name: None,
        queue: QueueId::DEFAULT,
        env: Vec::new(),
    }
}

fn from_object(
    object: &Map<String, Value>,
    line: u64,
    defaults: &TaskDefaults,
) -> Result<TaskSpec, String> {
    if let Some(unknown) = object.keys().find(|key| !KEYS.contains(&key.as_str())) {
        return Err(format!("has the unknown key {unknown:?}; expected {}", KEYS.join(", ")));
    }
    let value = |key: &str| object.get(key).filter(|value| !value.is_null());
    let argv = command(value("command"))?;
    let mut task = plain(argv, line, defaults);
    if let Some(id) = value("id") {
        task.id = id_text("id", id)?;
    }
    if let Some(cores) = value("cores") {
        task.cores = cores_of("cores", &amount_text("cores", cores)?)?;
    }
    if let Some(memory) = value("memory") {
        task.memory = memory_of("memory", &amount_text("memory", memory)?)?;
    }
    if let Some(gpus) = value("gpus") {
        let number = gpus.as_u64().and_then(|gpus| u32::try_from(gpus).ok());
        task.gpus = Gpus::new(number.ok_or_else(|| must("gpus", gpus, "a whole number"))?);
    }
    if let Some(retries) = value("retries") {
        let number = retries.as_u64().filter(|retries| *retries <= RETRIES_MAX);
        let allowed = || must("retries", retries, "a whole number, at most a million");
        task.retries = number.ok_or_else(allowed)? as u32;
    }
    if let Some(after) = value("after") {
        task.after = match after {
            Value::Array(ids) => {
                ids.iter().map(|id| id_text("after", id)).collect::<Result<_, _>>()?
            }
            id => vec![id_text("after", id)?],
        };
    }
    if let Some(queue) = value("queue") {
        let name = queue.as_str().ok_or_else(|| must("queue", queue, "the name of a queue"))?;
        task.queue_name = Some(name.to_owned());
    }
    if let Some(env) = value("env") {
        let object = env.as_object().ok_or_else(|| must("env", env, "an object of texts"))?;
        task.env = object.iter().map(variable).collect::<Result<_, _>>()?;
    }
    Ok(task)
}

fn must(key: &str, value: &Value, allowed: &str) -> String {
    let shown: String = value.to_string().chars().take(60).collect();
    format!("has {shown} as {key:?}, which must be {allowed}")
}

/// A text for the shell, or a list of a program and its arguments.
fn command(value: Option<&Value>) -> Result<Vec<String>, String> {
    const ALLOWED: &str = "a text for the shell, or a list of a program and its arguments";
    let value = value.ok_or_else(|| format!("has no \"command\", which must be {ALLOWED}"))?;
    let argv = match value {
        Value::String(line) if !line.trim().is_empty() => Some(shell(line)),
        Value::Array(words) => {
            words.iter().map(|word| word.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>()
        }
        _ => None,
    };
    let argv = argv.filter(|argv| argv.first().is_some_and(|program| !program.is_empty()));
    let argv = argv.ok_or_else(|| must("command", value, ALLOWED))?;
    if argv.iter().any(|word| word.contains('\0')) {
        return Err("has a zero byte in \"command\", which no command can have".to_owned());
    }
    Ok(argv)
}

/// An id: a text, or a whole number.
fn id_text(key: &str, value: &Value) -> Result<String, String> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) if number.is_u64() => number.to_string(),
        other => return Err(must(key, other, "a text or a whole number")),
    };
    if text.is_empty() || text.len() > ID_BYTES_MAX || text.chars().any(char::is_control) {
        let allowed = format!("of 1 to {ID_BYTES_MAX} bytes without control characters");
        return Err(must(key, value, &allowed));
    }
    Ok(text)
}

/// A number or a text with one.
fn amount_text(key: &str, value: &Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        other => Err(must(key, other, "a number, or a text with one")),
    }
}

/// Why a line is no object, without the number of the line, which is that within the text.
fn no_object(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let what = match text.rsplit_once(" at line ") {
        _ if error.is_eof() => "it ends too early",
        Some((what, _)) => what,
        None => &text,
    };
    format!("is no JSON object: {what}, at column {}", error.column())
}

/// Parses the cores of a task.
///
/// # Errors
/// With what is wrong.
pub(crate) fn cores_of(name: &str, text: &str) -> Result<MilliCpus, String> {
    let cores = parse_cores(name, text).map_err(|error| format!("has wrong cores: {error}"))?;
    if cores > EXECUTOR_CORES_MAX {
        return Err(format!("asks for {cores:#}; at most {EXECUTOR_CORES_MAX} are possible"));
    }
    Ok(cores)
}

/// Parses the memory of a task.
///
/// # Errors
/// With what is wrong.
pub(crate) fn memory_of(name: &str, text: &str) -> Result<Mebibytes, String> {
    let memory = parse_memory(name, text).map_err(|error| format!("has wrong memory: {error}"))?;
    if memory == Mebibytes::ZERO {
        return Err(format!("asks for {memory}; at least 1 MiB is needed"));
    }
    if memory > EXECUTOR_MEMORY_MAX {
        return Err(format!("asks for {memory}; at most {EXECUTOR_MEMORY_MAX} are possible"));
    }
    Ok(memory)
}

fn variable((name, value): (&String, &Value)) -> Result<(String, String), String> {
    let is_name = !name.is_empty() && !name.contains(['=', '\0']);
    match value.as_str().filter(|value| is_name && !value.contains('\0')) {
        Some(value) => Ok((name.clone(), value.to_owned())),
        None => Err(must(name, value, "a text, as all values of \"env\"")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFAULTS: TaskDefaults =
        TaskDefaults { cores: MilliCpus::from_cores(1), memory: Mebibytes::new(512), retries: 2 };

    fn parse(text: &str) -> Result<Option<TaskSpec>, String> {
        parse_line(text.as_bytes(), 7, &DEFAULTS)
    }

    /// Goal: both forms of a task are read. Method: a command, a whole object, an object with a command alone, and
    /// lines without a task.
    #[test]
    fn both_forms_are_read() {
        let task = parse("echo a && true \r\n").unwrap().unwrap();
        assert_eq!((task.id.as_str(), task.line, task.retries), ("7", 7, 2));
        assert_eq!(task.argv, ["/bin/sh", "-c", "echo a && true"]);
        let text = r#"{"id": "a", "command": ["x", "1 2"], "cores": 0.5, "memory": "1g", "gpus": 1,
            "retries": 0, "after": ["b", 3], "queue": "etl", "env": {"A": "1"}}"#;
        let task = parse(text).unwrap().unwrap();
        assert_eq!((task.id.as_str(), task.cores.millis(), task.memory.get()), ("a", 500, 1024));
        assert_eq!((task.gpus.get(), task.retries), (1, 0));
        assert_eq!(task.queue_name.as_deref(), Some("etl"));
        assert_eq!(
            (task.after, task.argv),
            (vec!["b".into(), "3".into()], vec!["x".into(), "1 2".into()])
        );
        assert_eq!(task.env, [("A".to_owned(), "1".to_owned())]);
        let task = parse(r#"{"command": "x", "id": null, "memory": 64}"#).unwrap().unwrap();
        assert_eq!((task.id.as_str(), task.memory.get()), ("7", 64));
        assert_eq!(parse("{ echo a; }").unwrap().unwrap().argv[2], "{ echo a; }");
        let marked = parse_line("\u{feff}true".as_bytes(), 1, &DEFAULTS).unwrap().unwrap();
        assert_eq!(marked.argv[2], "true");
        for nothing in ["", "  \n", "# echo"] {
            assert_eq!(parse(nothing), Ok(None));
        }
    }

    /// Goal: each mistake has a sentence that names it. Method: one of each.
    #[test]
    fn mistakes_are_named() {
        for (text, expected) in [
            (r#"{"command": "x", "cores": 0}"#, "cores"),
            (r#"{"command": "x", "cores": 2000000}"#, "at most"),
            (r#"{"command": "x", "memory": -1}"#, "memory"),
            (r#"{"command": "x", "memory": "1.5g"}"#, "1536m"),
            (r#"{"command": "x", "memory": 0}"#, "asks for 0 MiB; at least 1 MiB is needed"),
            (r#"{"command": "x", "command": "y"}"#, "the key \"command\" twice"),
            (r#"{"command": "x", "gpus": -1}"#, "gpus"),
            (r#"{"command": "x", "retries": "many"}"#, "retries"),
            (r#"{"command": "x", "queue": 1}"#, "\"queue\", which must be the name of a queue"),
            (r#"{"command": "x", "color": 1}"#, "unknown key \"color\""),
            (r#"{"command": ""}"#, "command"),
            (r#"{"command": []}"#, "command"),
            (r#"{"id": "a"}"#, "no \"command\""),
            (r#"{"command": "x", "id": ""}"#, "\"id\""),
            (r#"{"command": "x", "env": {"A": 1}}"#, "\"A\""),
            (
                r#"{"command": "x", "env": {"A": "1", "A": "2"}}"#,
                "the variable \"A\" twice in \"env\"",
            ),
            (r#"{"command": "x""#, "no JSON object"),
            ("echo \0", "zero byte"),
        ] {
            let why = parse(text).unwrap_err();
            assert!(why.contains(expected), "{text}: {why}");
        }
        assert!(parse_line(b"echo \xff", 1, &DEFAULTS).unwrap_err().contains("byte 6"));
        let long = format!("echo {}", "x".repeat(ARGUMENT_BYTES_MAX));
        assert!(parse(&long).unwrap_err().contains("131071"));
    }

    proptest::proptest! {
        /// Goal: no line makes the parser panic. Method: any bytes, and objects of any values.
        #[test]
        fn no_line_panics(
            bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..80),
            key in 0..KEYS.len(),
            value in r#"-?[0-9]{1,20}|"[^"\\]{0,9}"|\[\]|\{\}|\["a",1\]|null|1e400|true"#,
        ) {
            let _read = parse_line(&bytes, 1, &DEFAULTS);
            let object = format!("{{\"command\":\"x\",\"{}\":{value}}}", KEYS[key]);
            let _read = parse_line(object.as_bytes(), 1, &DEFAULTS);
        }
    }
}
