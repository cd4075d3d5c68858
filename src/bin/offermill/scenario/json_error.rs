//! Sentences about lines that are no valid JSON, or not the JSON that was expected, in the words of the file formats.

use serde_json::error::Category;

/// Describes why a line can't be read: the column if it is known, what was found, and what was `expected`.
pub(super) fn describe(error: &serde_json::Error, text: &str, expected: &str) -> String {
    if text.trim().is_empty() {
        return format!("the line is blank, expected {expected}");
    }
    let message = error.to_string();
    // serde_json counts lines within the text, which is one line of the file.
    let message = &message[..message.rfind(" at line ").unwrap_or(message.len())];
    let sentence = match error.classify() {
        Category::Data => data_sentence(message),
        Category::Syntax | Category::Eof | Category::Io => syntax_sentence(message).to_owned(),
    };
    let rest = match sentence.contains("expected") {
        true => String::new(),
        false => format!(", expected {expected}"),
    };
    match error.column() {
        // What is wrong was noticed after the whole line had been read.
        0 => format!("{sentence}{rest}"),
        column => format!("column {column}: {sentence}{rest}"),
    }
}

/// Describes text that is no JSON.
fn syntax_sentence(message: &str) -> &'static str {
    match message {
        "EOF while parsing a list" => "the line ends within an array",
        "EOF while parsing an object" => "the line ends within an object",
        "EOF while parsing a string" => "the line ends within a string",
        "EOF while parsing a value" => "the line ends before a value",
        "expected `:`" => "no \":\" after a key, expected one",
        "expected `,` or `]`" => "an array goes on without a comma, expected \",\" or \"]\"",
        "expected `,` or `}`" => "an object goes on without a comma, expected \",\" or \"}\"",
        "expected ident" => "an unknown word, expected true, false or null",
        "expected value" => "no value that can stand here, expected another one",
        "expected `\"`" => "no quote, expected a string",
        "invalid number" => "not a number of JSON, expected digits",
        "number out of range" => "the number is out of range, expected one below 1.8e308",
        "key must be a string" => "a key without quotes, expected a string",
        "trailing comma" => "a comma at the end of an array or an object, expected none",
        "trailing characters" => "more follows, expected the end of the line or of the array",
        "recursion limit exceeded" => "too many levels, expected at most 127",
        control if control.starts_with("control character") => {
            "a control character in a string, expected it to be escaped"
        }
        // Those that are left are about escapes.
        _ => "an invalid escape in a string, expected one of JSON's, such as \\n or \\u00e4",
    }
}

/// Describes JSON that isn't what was expected. Sentences of the formats' own checks stay as they are.
fn data_sentence(message: &str) -> String {
    if let Some(key) = message.strip_prefix("missing field ") {
        return format!("the key {} is missing", quoted(key));
    }
    if let Some(key) = message.strip_prefix("duplicate field ") {
        return format!("the key {} occurs twice, expected each once", quoted(key));
    }
    for (prefix, what) in [("unknown field ", "key"), ("unknown variant ", "value")] {
        if let Some(rest) = message.strip_prefix(prefix) {
            return format!("unknown {what} {}", quoted(rest));
        }
    }
    for prefix in ["invalid type: ", "invalid value: ", "invalid length "] {
        let rest = message.strip_prefix(prefix);
        // What was found may be a string with the same words.
        if let Some((found, wanted)) = rest.and_then(|rest| rest.rsplit_once(", expected ")) {
            let wanted = wanted_value(wanted);
            return match prefix {
                "invalid length " if wanted == "an object" => {
                    "found an array, expected an object".to_owned()
                }
                "invalid length " => format!("found an array of {found}, expected {wanted}"),
                _ => format!("found {}, expected {wanted}", found_value(found)),
            };
        }
    }
    message.to_owned()
}

/// Names in quotes instead of backticks.
fn quoted(names: &str) -> String {
    names.replace('`', "\"")
}

/// A value that was found.
fn found_value(found: &str) -> String {
    let number = |prefix: &str| found.strip_prefix(prefix).map(|it| it.trim_matches('`'));
    if let Some(number) = number("integer ").or_else(|| number("floating point ")) {
        return format!("the number {number}");
    }
    if let Some(flag) = number("boolean ") {
        return flag.to_owned();
    }
    match found {
        "null" | "unit value" => "null".to_owned(),
        "sequence" => "an array".to_owned(),
        "map" => "an object".to_owned(),
        text if text.starts_with("string ") => format!("the {text}"),
        _ => "another value".to_owned(),
    }
}

/// A value that was expected, by its name in Rust.
fn wanted_value(wanted: &str) -> &str {
    match wanted {
        "u8" => "a whole number from 0 to 255",
        "u16" => "a whole number from 0 to 65535",
        "u32" => "a whole number from 0 to 4294967295",
        "u64" | "usize" => "a whole number from 0 to 18446744073709551615",
        "i64" => "a whole number",
        "f64" | "a JSON number" => "a number",
        "a boolean" => "true or false",
        "a sequence" => "an array",
        "a map" | "map" => "an object",
        "a tuple of size 2" => "an array of two",
        "fewer elements in array" => "fewer elements",
        "unit" => "null",
        "option" | "any value" => "another value",
        "variant identifier" | "string or map" | "string only" => "a name in quotes",
        kind if kind.starts_with("enum ") || kind.starts_with("variant index ") => {
            "a name in quotes"
        }
        kind if ["struct ", "internally tagged enum ", "tuple ", "unit variant ", "newtype "]
            .iter()
            .any(|name| kind.starts_with(name)) =>
        {
            "an object"
        }
        own => own,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use serde_json::{Value, json};

    use super::super::reader::{LineReader, NextLine};
    use super::super::{AnswerLine, ScenarioEvent, ScenarioHead};
    use serde::de::DeserializeOwned;

    /// Words of serde, of Rust's types and of its syntax.
    const FOREIGN_WORDS: [&str; 24] = [
        "EOF",
        "invalid type",
        "invalid value",
        "invalid length",
        "missing field",
        "unknown field",
        "duplicate field",
        "unknown variant",
        "variant",
        "struct",
        "sequence",
        " map",
        "tuple",
        "trailing",
        "identifier",
        "tagged",
        "untagged",
        "newtype",
        "u32",
        "u64",
        "i64",
        "f64",
        "Line",
        "`",
    ];

    /// Reads one whole line. Returns its error, which must be in the words of the format.
    fn error_of<T: DeserializeOwned>(line: &str) -> Option<String> {
        let mut reader = LineReader::new("F".to_owned(), Cursor::new(format!("{line}\n")));
        let error = match reader.next::<T>("EXPECTED") {
            Ok(NextLine::Value(_)) => return None,
            Ok(NextLine::Incomplete | NextLine::End) => panic!("{line}: not read"),
            Err(error) => error.to_string(),
        };
        assert!(error.starts_with("F:1: "), "{line}: {error}");
        assert!(error.to_lowercase().contains("expected"), "{line}: {error}");
        let own = error.replace("TASK_", "");
        let foreign = FOREIGN_WORDS.iter().find(|word| own.contains(**word));
        assert!(foreign.is_none(), "{line}: {error}");
        Some(error)
    }

    /// All values that differ from `value` in one place: a value of another kind, a key that is missing, and an
    /// unknown key.
    fn mutations(value: &Value) -> Vec<Value> {
        let others = [
            json!(null),
            json!(true),
            json!(-1),
            json!(1.5),
            json!(1e300),
            json!(u64::MAX),
            json!("x, expected y"),
            json!([]),
            json!([1, 2, 3]),
            json!({}),
            json!({"a": [1]}),
        ];
        let mut all: Vec<Value> = others.into_iter().filter(|other| other != value).collect();
        match value {
            Value::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    all.extend(mutations(item).into_iter().map(|changed| {
                        let mut items = items.clone();
                        items[at] = changed;
                        Value::Array(items)
                    }));
                }
            }
            Value::Object(entries) => {
                for (key, entry) in entries {
                    all.extend(mutations(entry).into_iter().map(|changed| {
                        let mut entries = entries.clone();
                        entries.insert(key.clone(), changed);
                        Value::Object(entries)
                    }));
                    let mut without = entries.clone();
                    without.remove(key);
                    all.push(Value::Object(without));
                }
                let mut with = entries.clone();
                with.insert("odd".to_owned(), json!(1));
                all.push(Value::Object(with));
            }
            _ => {}
        }
        all
    }

    /// Counts the errors of all changes of one place, and of all cuts, of lines.
    fn errors_of_changes<T: DeserializeOwned>(lines: &[Value]) -> usize {
        let mut errors = 0;
        for line in lines {
            assert_eq!(error_of::<T>(&line.to_string()), None);
            for changed in mutations(line) {
                errors += usize::from(error_of::<T>(&changed.to_string()).is_some());
            }
            let text = line.to_string();
            for end in (1..text.len()).filter(|end| text.is_char_boundary(*end)) {
                let cut = error_of::<T>(&text[..end]);
                assert!(cut.is_some(), "{}", &text[..end]);
                for inserted in [",", "\"", "}", "]", ":", "\\", "\u{1}", "tru", "01"] {
                    let broken = format!("{}{inserted}{}", &text[..end], &text[end..]);
                    errors += usize::from(error_of::<T>(&broken).is_some());
                }
            }
        }
        errors
    }

    /// Goal: whatever is wrong with a line, its error is in the words of the format, and says what was expected.
    /// Method: a head, events and answers with a change in each place, cut at each byte, and with a stray character at
    /// each.
    #[test]
    fn errors_are_in_the_words_of_the_format() {
        let resource = json!({"name": "cpus", "role": "r", "scalar": 4.0, "standing": "revocable"});
        let ports = json!({"name": "ports", "ranges": [[1, 2]]});
        let offer = json!({"id": "o", "agent": "a", "host": "h", "resources": [resource, ports],
            "attributes": [{"name": "zone", "text": "east"}]});
        let task = json!({"id": "0", "agent": "a", "cpus": 1.0, "mem": 2.0, "gpus": 0.0,
            "resources": [{"name": "cpus", "scalar": 1.0}], "env": {"A": "b"},
            "uris": [{"value": "u", "cache": true}], "labels": [["a", "b"]],
            "container": {"type": "MESOS", "image": "i"}});
        let heads = [json!({"format": 1, "conf": {"a": "b"}, "conduct": "offermill",
            "ids": {"prefix": "p", "epoch": 1}})];
        let events = [
            json!({"at_ms": 5, "offers": [offer]}),
            json!({"status": {"task": "0", "agent": "a", "state": "TASK_LOST", "reason": "R"}}),
            json!({"request_total": 3, "local": {"h": 2}}),
            json!({"kill": ["0"]}),
            json!({"stop": true}),
        ];
        let answers = [
            json!({"init": "ok", "executor_memory": 1, "max_cores": 4}),
            json!({"ev": 0, "call": "accept", "offers": ["o"], "refuse_seconds": 1.0,
                "tasks": [task]}),
            json!({"ev": 0, "call": "decline", "offer": "o", "refuse_seconds": 1.0}),
            json!({"ev": 0, "call": "revive"}),
            json!({"ev": 0, "call": "shuffle_register", "host": "h", "port": 7337}),
            json!({"ev": 0, "after": {"cores": 4, "executors": 1, "limit": null, "stopped": false,
                "agents": {"a": {"failures": 0, "tasks": ["0"]}}}}),
        ];
        assert!(errors_of_changes::<ScenarioHead>(&heads) > 100);
        assert!(errors_of_changes::<ScenarioEvent>(&events) > 1000);
        assert!(errors_of_changes::<AnswerLine>(&answers) > 1000);
    }

    /// Goal: the sentences read well. Method: one of each kind.
    #[test]
    fn sentences_say_what_was_found() {
        for (line, expected) in [
            (
                "{\"ev\":\"x\",\"call\":\"revive\"}",
                "found the string \"x\", expected a whole number from 0",
            ),
            ("{\"ev\":1,\"after\":[]}", "found an array, expected an object"),
            ("{\"ev\":1,\"after\":7}", "found the number 7, expected an object"),
            (
                "{\"ev\":1,\"call\":\"revve\"}",
                "unknown value \"revve\", expected one of \"accept\", ",
            ),
            ("{\"ev\":1,\"call\":\"kill\"}", "the key \"task\" is missing, expected EXPECTED"),
            ("{\"ev\":1,\"ev\":1}", "the key \"ev\" occurs twice, expected each once"),
            ("{\"ev\":1,\"call", "the line ends within a string, expected EXPECTED"),
            ("{\"ev\":1,\"call\":\"revive\"} {}", "more follows, expected the end of the line"),
            ("{\"ev\":1}", "neither \"init\" nor \"call\" nor \"after\", expected EXPECTED"),
        ] {
            let error = error_of::<AnswerLine>(line).unwrap();
            assert!(error.contains(expected), "{line}: {error}");
        }
    }
}
