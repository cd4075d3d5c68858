//! Lexer for expressions.

use super::errors;
use super::token::{SpannedToken, Token};
use crate::constraint::syntax_error::SyntaxError;
use crate::constraint::word::{KEYWORDS, word};

/// Operators and punctuation. Longer marks come first.
const MARKS: [&str; 16] =
    ["&&", "||", "==", "!=", "<=", ">=", "(", ")", "{", "}", "[", "]", ",", "=", "<", ">"];

/// Reads an expression token by token.
pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str, at: usize) -> Lexer<'a> {
        Lexer { text, at }
    }

    /// Returns the next token. At the end, it returns [`Token::End`] each time.
    pub(super) fn next(&mut self) -> Result<SpannedToken<'a>, SyntaxError> {
        let ahead = self.text.get(self.at..).unwrap_or_default();
        let rest = ahead.trim_start();
        let start = self.text.len() - rest.len();
        let (token, length) = self.read(rest, start)?;
        self.at = start + length;
        Ok(SpannedToken { token, start, end: self.at })
    }

    fn read(&self, rest: &'a str, start: usize) -> Result<(Token<'a>, usize), SyntaxError> {
        let Some(first) = rest.chars().next() else { return Ok((Token::End, 0)) };
        if let Some(syntax_error) = errors::foreign_operator(self.text, start) {
            return Err(syntax_error);
        }
        if let Some(mark) = MARKS.into_iter().find(|mark| rest.starts_with(mark)) {
            let token = match mark {
                "&&" => Token::Keyword("and"),
                "||" => Token::Keyword("or"),
                mark => Token::Mark(mark),
            };
            return Ok((token, mark.len()));
        }
        match first {
            '!' => Ok((Token::Keyword("not"), 1)),
            '"' | '\'' => self.quoted(rest, start, first),
            '@' => {
                let name = word(rest.get(1..).unwrap_or_default());
                Ok((Token::Place(name), 1 + name.len()))
            }
            _ => match word(rest) {
                "" => Err(errors::unexpected_character(self.text, start, first)),
                word => {
                    let keyword = KEYWORDS.into_iter().find(|one| one.eq_ignore_ascii_case(word));
                    Ok((keyword.map_or(Token::Word(word), Token::Keyword), word.len()))
                }
            },
        }
    }

    /// Reads a text between two equal quotation marks. A backslash escapes a quotation mark or another backslash.
    /// Before any other character it stands for itself, as regular expressions need it.
    fn quoted(
        &self,
        rest: &'a str,
        start: usize,
        mark: char,
    ) -> Result<(Token<'a>, usize), SyntaxError> {
        let mut text = String::new();
        let mut characters = rest.char_indices().skip(1);
        while let Some((at, c)) = characters.next() {
            if c == mark {
                return Ok((Token::Quoted(text), at + 1));
            }
            match c {
                '\\' if rest
                    .get(at + 1..)
                    .is_some_and(|rest| rest.starts_with(['"', '\'', '\\'])) =>
                {
                    text.extend(characters.next().map(|(_, escaped)| escaped));
                }
                c => text.push(c),
            }
        }
        Err(errors::unclosed_quote(self.text, start, mark))
    }
}
