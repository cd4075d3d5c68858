//! Splits a line into words as a shell does, with quotation marks and backslashes but no expansion.

/// Returns the words of a line. A line with unbalanced quotation marks is one word.
pub(super) fn split_words(line: &str) -> Vec<String> {
    try_split(line).unwrap_or_else(|| vec![line.to_owned()])
}

fn try_split(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
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

    /// Goal: lines are split as a shell splits them. Method: use each kind of quotation.
    #[test]
    fn words_are_split_as_by_a_shell() {
        for (line, words) in [
            ("", &[] as &[&str]),
            (" a  b\t", &["a", "b"]),
            ("'a b'c \"d 'e'\" ''", &["a bc", "d 'e'", ""]),
            ("a\\ b \"\\\"\\\\\\c$\"", &["a b", "\"\\\\c$"]),
            ("it's", &["it's"]),
            ("a \\", &["a \\"]),
        ] {
            assert_eq!(split_words(line), words, "{line}");
        }
    }
}
