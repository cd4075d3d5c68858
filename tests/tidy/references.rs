//! What the crate's front page names: files, models, scenes and tests.

/// The words in backticks of a documentation text, with `a/{b,c}` written out as `a/b` and `a/c`.
pub(crate) fn quoted(text: &str) -> Vec<String> {
    text.split('`').skip(1).step_by(2).flat_map(spread).collect()
}

fn spread(word: &str) -> Vec<String> {
    let Some((start, rest)) = word.split_once('{') else { return vec![word.to_owned()] };
    let Some((choices, end)) = rest.split_once('}') else { return vec![word.to_owned()] };
    choices.split(',').map(|choice| format!("{start}{choice}{end}")).collect()
}

/// Whether a word has the form of a test function's name: at least four words, joined by underscores.
pub(crate) fn is_test_name(word: &str) -> bool {
    let lower = word.chars().all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '_');
    lower && word.matches('_').count() >= 3
}

/// Whether a word has the form of a path, of a model's name or of a scene's name: `snapshot/…`.
pub(crate) fn is_path(word: &str) -> bool {
    let plain = |it: char| it.is_ascii_alphanumeric() || "_-./".contains(it);
    word.contains('/') && word.chars().all(plain)
}
