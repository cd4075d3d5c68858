//! Syntax errors of expressions, with guesses at what was meant.

use super::token::{SpannedToken, Token};
use crate::constraint::CONSTRAINT_BYTES_MAX;
use crate::constraint::syntax_error::{SyntaxError, quoted, splice};

fn syntax_error(
    offset: usize,
    sentence: impl Into<String>,
    expected: impl Into<std::borrow::Cow<'static, str>>,
    repaired: Option<String>,
) -> SyntaxError {
    SyntaxError { offset, sentence: sentence.into(), expected: expected.into(), repaired }
}

/// Returns the text with `start..end` replaced.
fn replaced(text: &str, start: usize, end: usize, by: &str) -> Option<String> {
    splice(text, start, by, text.get(end..)?)
}

/// Returns a token as messages show it.
fn named(spot: &SpannedToken<'_>, text: &str) -> String {
    match spot.token {
        Token::End => "the end".to_owned(),
        _ => quoted(text.get(spot.start..spot.end).unwrap_or_default()),
    }
}

#[cold]
pub(super) fn expected(spot: &SpannedToken<'_>, wanted: &str, text: &str) -> SyntaxError {
    let sentence = format!("{} is not {wanted}", named(spot, text));
    syntax_error(spot.start, sentence, format!("expected {wanted}"), None)
}

/// A character that can't begin a token. The most likely one is a colon, as in Spark's syntax.
#[cold]
pub(super) fn unexpected_character(text: &str, start: usize, c: char) -> SyntaxError {
    let shown = quoted(&c.to_string());
    let sentence = format!("{shown} has no meaning in an expression");
    match c {
        ':' => {
            let rest = text.get(start + 1..).unwrap_or_default();
            let length = rest.find(|c: char| " \t;()&|".contains(c)).unwrap_or(rest.len());
            let values = rest.get(..length).unwrap_or_default().trim_end_matches(',');
            let meant = match values {
                "" => " ".to_owned(),
                values if values.contains(',') => format!(" in {{{values}}}"),
                value => format!(" = {value}"),
            };
            let repaired = replaced(text, start, start + 1 + length, &meant);
            syntax_error(start, sentence, "expected an operator such as =", repaired)
        }
        ';' | '&' => {
            let repaired = replaced(text, start, start + 1, " and ");
            syntax_error(start, sentence, "expected `and` between conditions", repaired)
        }
        '|' => {
            let repaired = replaced(text, start, start + 1, " or ");
            syntax_error(start, sentence, "expected `or` between conditions", repaired)
        }
        '~' => {
            let repaired = replaced(text, start, start + 1, " like ");
            syntax_error(start, sentence, "expected `like` or `matches`", repaired)
        }
        _ => syntax_error(start, sentence, "expected a name, or this in quotation marks", None),
    }
}

/// Operators of other languages, and their equivalents.
const FOREIGN: [(&str, &str); 5] =
    [("=~", " matches "), ("!~", " not matches "), ("===", "="), ("<>", "!="), ("=>", ">=")];

/// Words that are operators in other languages, and their equivalents.
const WORDS: [(&str, &str); 7] =
    [("eq", "="), ("ne", "!="), ("lt", "<"), ("le", "<="), ("gt", ">"), ("ge", ">="), ("is", "=")];

/// Returns an error if the text at `start` is an operator of another language.
pub(super) fn foreign_operator(text: &str, start: usize) -> Option<SyntaxError> {
    let rest = text.get(start..)?;
    let (foreign, ours) = FOREIGN.into_iter().find(|(foreign, _)| rest.starts_with(foreign))?;
    let sentence = format!("`{foreign}` is not an operator of an expression");
    let repaired = replaced(text, start, start + foreign.len(), ours);
    Some(syntax_error(start, sentence, format!("expected `{}`", ours.trim()), repaired))
}

#[cold]
pub(super) fn unclosed_quote(text: &str, start: usize, mark: char) -> SyntaxError {
    let repaired = splice(text, text.len(), &mark.to_string(), "");
    let expected = format!("expected a second {mark} to close it");
    syntax_error(start, "a quotation mark is not closed", expected, repaired)
}

#[cold]
pub(super) fn unclosed(text: &str, start: usize) -> SyntaxError {
    let repaired = splice(text, text.len(), ")", "");
    syntax_error(start, "a parenthesis is not closed", "expected a ) for it", repaired)
}

#[cold]
pub(super) fn unopened(text: &str, spot: &SpannedToken<'_>) -> SyntaxError {
    let repaired = replaced(text, spot.start, spot.end, "");
    syntax_error(
        spot.start,
        "a closing parenthesis has no opening one",
        "expected a ( before it",
        repaired,
    )
}

/// A condition is missing: `and` at the end, `and and`, `()`, or an empty expression.
#[cold]
pub(super) fn no_condition(text: &str, spot: &SpannedToken<'_>) -> SyntaxError {
    let sentence = format!("a condition is missing before {}", named(spot, text));
    let expected = "expected a condition, as `zone = east` or `rack`";
    let repaired = match spot.token {
        Token::End => {
            let ends = |c: char| c.is_whitespace() || "&|!".contains(c);
            let head = text.trim_end();
            let cut = head.rfind(ends).and_then(|at| head.get(..at));
            cut.map(|head| head.trim_end_matches(ends))
                .filter(|head| super::after_prefix(head).is_some_and(|start| start < head.len()))
                .and_then(|head| splice(text, head.len(), "", ""))
        }
        Token::Keyword(_) => replaced(text, spot.start, spot.end, ""),
        _ => None,
    };
    syntax_error(spot.start, sentence, expected, repaired)
}

#[cold]
pub(super) fn no_join(text: &str, spot: &SpannedToken<'_>) -> SyntaxError {
    let sentence = format!("{} follows a condition", named(spot, text));
    if let Token::Word(word) = spot.token
        && let Some((_, ours)) = WORDS.into_iter().find(|(one, _)| one.eq_ignore_ascii_case(word))
    {
        let repaired = replaced(text, spot.start, spot.end, ours);
        return syntax_error(spot.start, sentence, format!("expected `{ours}`"), repaired);
    }
    let names = matches!(spot.token, Token::Word(_) | Token::Quoted(_) | Token::Place(_));
    let repaired = (names || spot.token == Token::Mark("("))
        .then(|| replaced(text, spot.start, spot.start, "and "))
        .flatten();
    syntax_error(spot.start, sentence, "expected `and`, `or` or the end", repaired)
}

#[cold]
pub(super) fn no_such_place(text: &str, spot: &SpannedToken<'_>) -> SyntaxError {
    let sentence = format!("there is no {}", named(spot, text));
    let meant = text
        .get(spot.start..spot.end)
        .map(str::to_lowercase)
        .filter(|meant| ["@hostname", "@region", "@zone"].contains(&meant.as_str()));
    let repaired = meant.and_then(|meant| replaced(text, spot.start, spot.end, &meant));
    syntax_error(spot.start, sentence, "expected @hostname, @region or @zone", repaired)
}

#[cold]
pub(super) fn no_operator(text: &str, spot: &SpannedToken<'_>) -> SyntaxError {
    let sentence = format!("`not` before {} negates nothing", named(spot, text));
    syntax_error(spot.start, sentence, "expected `in`, `like` or `matches`", None)
}

#[cold]
pub(super) fn no_list(text: &str, spot: &SpannedToken<'_>) -> SyntaxError {
    let sentence = format!("`in` before {} has no list", named(spot, text));
    let repaired = match &spot.token {
        Token::Word(word) => replaced(text, spot.start, spot.end, &format!("{{{word}}}")),
        Token::Mark("(") => {
            let close = text.get(spot.end..).and_then(|rest| rest.find(')'));
            close.and_then(|close| {
                let items = text.get(spot.end..spot.end + close)?;
                replaced(text, spot.start, spot.end + close + 1, &format!("{{{items}}}"))
            })
        }
        _ => None,
    };
    syntax_error(spot.start, sentence, "expected {value, ...} or [1-9, ...]", repaired)
}

#[cold]
pub(super) fn unclosed_list(
    text: &str,
    spot: &SpannedToken<'_>,
    close: &'static str,
) -> SyntaxError {
    let sentence = format!("{} is not allowed in a list", named(spot, text));
    let repaired = match spot.token {
        Token::End => splice(text, text.trim_end().len(), close, ""),
        Token::Word(_) | Token::Quoted(_) => replaced(text, spot.start, spot.start, ","),
        _ => None,
    };
    syntax_error(spot.start, sentence, format!("expected , or {close}"), repaired)
}

#[cold]
pub(super) fn glob_for_value(text: &str, spot: &SpannedToken<'_>, operator: &str) -> SyntaxError {
    let sentence = format!("{} is a pattern, and `{operator}` takes none", named(spot, text));
    let before = text.get(..spot.start).map(str::trim_end).unwrap_or_default();
    let like = match operator {
        "!=" => " not like ",
        _ => " like ",
    };
    let repaired = before
        .strip_suffix(operator)
        .filter(|_| operator != "in")
        .and_then(|before| replaced(text, before.trim_end().len(), spot.start, like));
    syntax_error(
        spot.start,
        sentence,
        "expected `like` before it, or quotation marks around",
        repaired,
    )
}

#[cold]
pub(super) fn keyword_for_value(text: &str, spot: &SpannedToken<'_>) -> SyntaxError {
    let shown = text.get(spot.start..spot.end).unwrap_or_default();
    let sentence = format!("`{shown}` is a keyword");
    let repaired = replaced(text, spot.start, spot.end, &format!("\"{shown}\""));
    syntax_error(spot.start, sentence, "expected a value; this one in quotation marks", repaired)
}

#[cold]
pub(super) fn no_number(text: &str, spot: &SpannedToken<'_>, operator: &str) -> SyntaxError {
    let sentence =
        format!("{} is not a number, and `{operator}` compares numbers", named(spot, text));
    syntax_error(spot.start, sentence, "expected a number such as 3, -0.5 or 1e6", None)
}

#[cold]
pub(super) fn reversed(text: &str, spot: &SpannedToken<'_>, begin: u64, end: u64) -> SyntaxError {
    let repaired = replaced(text, spot.start, spot.end, &format!("{end}-{begin}"));
    let sentence = format!("the interval {begin}-{end} ends before it begins");
    syntax_error(spot.start, sentence, "expected the smaller number first", repaired)
}

#[cold]
pub(super) fn bad_pattern(start: usize, why: &str) -> SyntaxError {
    let sentence = format!("this is not a regular expression: {why}");
    syntax_error(start, sentence, "expected a regular expression", None)
}

#[cold]
pub(super) fn too_many(offset: usize, most: usize, what: &str) -> SyntaxError {
    syntax_error(
        offset,
        format!("it has too many {what}"),
        format!("expected no more than {most}"),
        None,
    )
}

#[cold]
pub(super) fn too_long(text: &str, bytes: usize) -> SyntaxError {
    let sentence = format!("it has {bytes} bytes when written out in full");
    let expected = format!("expected no more than {CONSTRAINT_BYTES_MAX}");
    syntax_error(text.len(), sentence, expected, None)
}
