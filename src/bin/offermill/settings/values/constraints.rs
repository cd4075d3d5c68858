//! A hint about constraints that may be meant as expressions.

/// What to say about a constraint in Spark's syntax that asks for an attribute with the name `expr`, which one colon
/// too few makes of an expression.
pub(crate) fn expression_hint(text: &str) -> Option<&'static str> {
    const HINT: &str = "the constraint asks for an attribute with the name \"expr\"; expressions begin with \"expr::\"";
    let mut entries = text.split(';').map(|entry| entry.trim().split_once(':'));
    let is_expression = text.trim_start().starts_with("expr::");
    let asks = entries.any(|entry| entry.is_some_and(|(name, _)| name.trim() == "expr"));
    (asks && !is_expression).then_some(HINT)
}
