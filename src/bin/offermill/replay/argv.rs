//! A line as a shell takes it apart: what comes of quotation marks, and nothing else.

/// The words of a line. One whose quotation marks don't match is a word as a whole.
pub(super) fn split(line: &str) -> Vec<String> {
    words(line).unwrap_or_else(|| vec![line.to_owned()])
}

fn words(line: &str) -> Option<Vec<String>> {
    let (mut words, mut word) = (Vec::new(), None::<String>);
    let mut rest = line.chars();
    while let Some(c) = rest.next() {
        match c {
            c if c.is_ascii_whitespace() => words.extend(word.take()),
            '\'' => loop {
                match rest.next()? {
                    '\'' => {
                        word.get_or_insert_default();
                        break;
                    }
                    c => word.get_or_insert_default().push(c),
                }
            },
            '"' => loop {
                match rest.next()? {
                    '"' => {
                        word.get_or_insert_default();
                        break;
                    }
                    '\\' => match rest.next()? {
                        c @ ('"' | '\\') => word.get_or_insert_default().push(c),
                        c => word.get_or_insert_default().extend(['\\', c]),
                    },
                    c => word.get_or_insert_default().push(c),
                }
            },
            '\\' => word.get_or_insert_default().push(rest.next()?),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: words are those that a shell would see. Method: each kind of mark.
    #[test]
    fn words_are_a_shells() {
        for (line, words) in [
            ("", &[] as &[&str]),
            (" a  b\t", &["a", "b"]),
            ("'a b'c \"d 'e'\" ''", &["a bc", "d 'e'", ""]),
            ("a\\ b \"\\\"\\\\\\c$\"", &["a b", "\"\\\\c$"]),
            ("it's", &["it's"]),
            ("a \\", &["a \\"]),
        ] {
            assert_eq!(split(line), words, "{line}");
        }
    }
}
