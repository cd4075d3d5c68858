//! Tests of the parser for properties files.

use super::*;
use proptest::prelude::*;

fn read(text: &str) -> Vec<(String, String)> {
    parse_properties(text).unwrap().into_iter().map(|it| (it.key, it.value)).collect()
}

/// Goal: each property has the number of the line in which it begins, of which messages speak. Method: comments, a
/// continued line, an escaped line break, and a key that is given again.
#[test]
fn properties_have_their_lines() {
    let text = "# a\n\nb 1\\\n  2\nc \\n\nd 3\nb 4\n=5\n";
    let properties = parse_properties(text).unwrap();
    let lines: Vec<(&str, usize)> = properties.iter().map(|it| (&*it.key, it.line)).collect();
    assert_eq!(lines, [("b", 7), ("c", 5), ("d", 6), ("", 8)]);
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

/// Goal: an ordinary `spark-defaults.conf` is parsed as Spark parses it. Method: all three separators, comments, blank
/// lines, each kind of line end, a repeated key.
#[test]
fn an_ordinary_file_is_read() {
    let text = "\u{feff}# defaults\r\n  ! more\rspark.cores.max    8\n\nspark.a=1\r\n\
                spark.b: x y \t\n\tspark.c = :z\nspark.a 2\nspark.empty\nspark.last=end";
    let expected = [
        ("spark.cores.max", "8"),
        ("spark.a", "2"),
        ("spark.b", "x y"),
        ("spark.c", ":z"),
        ("spark.empty", ""),
        ("spark.last", "end"),
    ];
    assert_eq!(read(text), pairs(&expected));
}

/// Goal: separators are Java's. Method: each separator, with white space and doubled.
#[test]
fn separators_are_javas() {
    for (text, key, value) in [
        ("k=v", "k", "v"),
        ("k = v", "k", "v"),
        ("k : = v", "k", "= v"),
        ("k==v", "k", "=v"),
        ("k= =v", "k", "=v"),
        ("k  =  v=w", "k", "v=w"),
        ("=v", "", "v"),
        ("a\\=b\\:c\\ d e", "a=b:c d", "e"),
        ("k \\=v", "k", "=v"),
        ("k=\\ v\\ ", "k", "v"),
        ("k=\\n v \\r", "k", "\n v \r"),
        ("#k", "", ""),
        ("k#=v#", "k#", "v#"),
    ] {
        let expected = if text.starts_with('#') { vec![] } else { pairs(&[(key, value)]) };
        assert_eq!(read(text), expected, "{text}");
    }
}

/// Goal: continued lines are joined as in Java. Method: indentation, blank lines and comments after a backslash, an
/// even number of backslashes, a backslash at the very end.
#[test]
fn continued_lines_are_joined() {
    assert_eq!(read("k = a,\\\n    b,\\\r\n\tc\nl m"), pairs(&[("k", "a,b,c"), ("l", "m")]));
    assert_eq!(read("k\\\n  ey\\\n=v"), pairs(&[("key", "v")]));
    assert_eq!(read("k a\\\n\nl b"), pairs(&[("k", "a"), ("l", "b")]));
    assert_eq!(read("k a\\\n#b"), pairs(&[("k", "a#b")]));
    assert_eq!(read("k a\\\\\nl b"), pairs(&[("k", "a\\"), ("l", "b")]));
    assert_eq!(read("k a\\"), pairs(&[("k", "a")]));
    assert_eq!(read("# not continued \\\nk v"), pairs(&[("k", "v")]));
}

/// Goal: escapes are decoded. Method: one of each, and a surrogate pair.
#[test]
fn escapes_are_undone() {
    let text = "k=a\\tb\\u00e9\\uD83D\\uDE00\\q\\\"x";
    assert_eq!(read(text), pairs(&[("k", "a\tb\u{e9}\u{1f600}q\"x")]));
}

/// Goal: errors in invalid files contain the line number but not the line's text. Method: each error, with a secret on
/// the same line.
#[test]
fn errors_name_the_line_and_keep_secrets() {
    for escape in ["\\u12", "\\u12g4", "\\ud800", "\\udc00x", "\\ud800\\u0041", "\\u"] {
        let text = format!("a 1\n\n# c\nspark.mesos.secret hunter2{escape}");
        let error = parse_properties(&text).unwrap_err();
        assert!(error.is_setting());
        assert!(error.to_string().contains("in line 4 of the properties file"), "{error}");
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
    let error = parse_properties(&"x".repeat(PROPERTIES_BYTES_MAX + 1)).unwrap_err();
    assert!(error.to_string().contains("at most 1048576 bytes"), "{error}");
    assert!(parse_properties(&"x\n".repeat(PROPERTIES_BYTES_MAX / 2)).is_ok());
}

/// Escapes every character that could be special.
fn escaped(text: &str) -> String {
    let mut units = [0; 2];
    text.chars()
        .flat_map(|c| c.encode_utf16(&mut units).to_vec())
        .map(|unit| format!("\\u{unit:04X}"))
        .collect()
}

proptest! {
    /// Goal: the parser never panics. Method: arbitrary texts, and texts that consist of special characters.
    #[test]
    fn reader_is_total(text in prop_oneof![any::<String>(), "[\\\\u0d8=: \t\r\n#ab]{0,60}"]) {
        let _ = parse_properties(&text);
    }

    /// Goal: any key and value can be expressed. Method: escape every character of both and parse them back.
    #[test]
    fn what_is_escaped_is_read_back(key: String, value: String) {
        let read = read(&format!("{}={}", escaped(&key), escaped(&value)));
        let expected = pairs(&[(&key, trim(&value))]);
        prop_assert_eq!(read, expected);
    }
}
