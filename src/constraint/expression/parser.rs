//! Operator-precedence parser for expressions. Operators wait on an explicit stack until one follows that binds no more
//! closely, so nested parentheses don't cause recursion.

use super::lexer::Lexer;
use super::token::{SpannedToken, Token};
use super::tree::{Join, Node, Tree};
use super::{CONDITIONS_MAX, PATTERN_BYTES_MAX, errors, place};
use crate::constraint::condition::{Comparison, Condition, Test, Values};
use crate::constraint::facts::Subject;
use crate::constraint::numbers::{decimal, digits_only};
use crate::constraint::pattern::{PATTERNS_MAX, Pattern};
use crate::constraint::syntax_error::SyntaxError;
use crate::resources::PortRange;

/// Parses the expression that begins at `start` of `text`.
pub(super) fn parse(text: &str, start: usize) -> Result<(Tree, Vec<Condition>), SyntaxError> {
    let mut tokens = Lexer::new(text, start);
    let ahead = tokens.next()?;
    let parser = Parser {
        text,
        tokens,
        ahead,
        tree: Tree::default(),
        conditions: Vec::new(),
        patterns: 0,
        pattern_bytes: 0,
        waiting: Vec::new(),
        done: Vec::new(),
    };
    parser.run()
}

struct Parser<'a> {
    text: &'a str,
    tokens: Lexer<'a>,
    ahead: SpannedToken<'a>,
    tree: Tree,
    conditions: Vec<Condition>,
    patterns: usize,
    pattern_bytes: usize,
    waiting: Vec<StackItem>,
    /// The roots of the parsed parts that aren't joined yet.
    done: Vec<u32>,
}

enum StackItem {
    Join(Join),
    /// An open parenthesis: its position, and whether `not` precedes it.
    Open {
        start: usize,
        negated: bool,
    },
}

impl<'a> Parser<'a> {
    fn run(mut self) -> Result<(Tree, Vec<Condition>), SyntaxError> {
        loop {
            self.operand()?;
            if !self.operator()? {
                break;
            }
        }
        self.join_down_to(None);
        if let Some(StackItem::Open { start, .. }) = self.waiting.pop() {
            return Err(errors::unclosed(self.text, start));
        }
        Ok((self.tree.with_root(self.done.pop()), self.conditions))
    }

    /// Parses negations and opening parentheses, up to and including a condition.
    fn operand(&mut self) -> Result<(), SyntaxError> {
        let mut negated = false;
        loop {
            let spot = self.advance()?;
            match spot.token {
                Token::Keyword("not") => negated = !negated,
                Token::Mark("(") => {
                    self.waiting.push(StackItem::Open { start: spot.start, negated });
                    negated = false;
                }
                Token::Word(name) => {
                    return self.condition(Subject::Attribute(name.into()), negated);
                }
                Token::Quoted(name) => {
                    return self.condition(Subject::Attribute(name.into()), negated);
                }
                Token::Place(name) => {
                    let subject = match name {
                        "hostname" => Subject::Hostname,
                        "region" => Subject::Region,
                        "zone" => Subject::Zone,
                        _ => return Err(errors::no_such_place(self.text, &spot)),
                    };
                    return self.condition(subject, negated);
                }
                Token::Keyword(_) | Token::Mark(_) | Token::End => {
                    return Err(errors::no_condition(self.text, &spot));
                }
            }
        }
    }

    /// Parses closing parentheses and a join after a condition. Returns `false` at the end.
    fn operator(&mut self) -> Result<bool, SyntaxError> {
        loop {
            let spot = self.advance()?;
            let join = match spot.token {
                Token::Keyword("and") => Join::And,
                Token::Keyword("or") => Join::Or,
                Token::End => return Ok(false),
                Token::Mark(")") => {
                    self.join_down_to(None);
                    let Some(StackItem::Open { negated, .. }) = self.waiting.pop() else {
                        return Err(errors::unopened(self.text, &spot));
                    };
                    if negated {
                        self.negate_last();
                    }
                    continue;
                }
                _ => return Err(errors::no_join(self.text, &spot)),
            };
            self.join_down_to(Some(join));
            self.waiting.push(StackItem::Join(join));
            return Ok(true);
        }
    }

    /// Creates nodes for the joins that have waited since the last open parenthesis and bind at least as closely as
    /// `join`; for all of them if it is `None`.
    fn join_down_to(&mut self, join: Option<Join>) {
        while let Some(StackItem::Join(last)) = self.waiting.last()
            && join.is_none_or(|join| *last >= join)
        {
            let join = *last;
            self.waiting.pop();
            let (Some(second), Some(first)) = (self.done.pop(), self.done.pop()) else { return };
            let node = self.tree.push(Node::Both(join, first, second));
            self.done.push(node);
        }
    }

    /// Advances to the next token and returns the current one.
    fn advance(&mut self) -> Result<SpannedToken<'a>, SyntaxError> {
        if self.ahead.token == Token::End {
            return Ok(self.ahead.clone());
        }
        Ok(std::mem::replace(&mut self.ahead, self.tokens.next()?))
    }

    /// Parses the rest of a condition after its subject.
    fn condition(&mut self, subject: Subject, negated: bool) -> Result<(), SyntaxError> {
        let mut negated = negated;
        let test = match self.ahead.token.clone() {
            Token::Mark(mark @ ("=" | "==" | "!=")) => {
                self.advance()?;
                negated ^= mark == "!=";
                Test::In(Values::of_set(vec![self.value(mark)?]))
            }
            Token::Mark(mark @ ("<" | "<=" | ">" | ">=")) => {
                self.advance()?;
                self.comparison(mark)?
            }
            Token::Keyword(word @ ("in" | "like" | "matches" | "not")) => {
                self.advance()?;
                let word = if word == "not" {
                    negated = !negated;
                    match self.advance()? {
                        SpannedToken { token: Token::Keyword(word), .. } if word != "not" => word,
                        spot => return Err(errors::no_operator(self.text, &spot)),
                    }
                } else {
                    word
                };
                match word {
                    "in" => self.set_or_intervals()?,
                    "like" => self.glob()?,
                    "matches" => self.pattern()?,
                    _ => return Err(errors::no_operator(self.text, &self.ahead)),
                }
            }
            _ => Test::Present,
        };
        if self.conditions.len() == CONDITIONS_MAX {
            return Err(errors::too_many(self.ahead.start, CONDITIONS_MAX, "conditions"));
        }
        let node = self.tree.push(Node::Condition(place(&self.conditions)));
        self.conditions.push(Condition { subject, test, negated });
        self.done.push(node);
        Ok(())
    }

    /// Negates the part parsed last. Two negations cancel out.
    fn negate_last(&mut self) {
        let Some(last) = self.done.pop() else { return };
        let negated = match self.tree.node(last) {
            Node::Not(inner) => inner,
            Node::Both(..) => self.tree.push(Node::Not(last)),
            Node::Condition(at) => {
                if let Some(condition) = self.conditions.get_mut(at as usize) {
                    condition.negated = !condition.negated;
                }
                last
            }
        };
        self.done.push(negated);
    }

    /// Parses a value after `operator`.
    fn value(&mut self, operator: &str) -> Result<Box<str>, SyntaxError> {
        let spot = self.advance()?;
        match spot.token {
            Token::Word(word) if word.contains(['*', '?']) => {
                Err(errors::glob_for_value(self.text, &spot, operator))
            }
            Token::Word(word) => Ok(word.into()),
            Token::Quoted(text) => Ok(text.into()),
            Token::Keyword(_) => Err(errors::keyword_for_value(self.text, &spot)),
            _ => Err(errors::expected(&spot, "a value", self.text)),
        }
    }

    fn comparison(&mut self, mark: &str) -> Result<Test, SyntaxError> {
        let spot = self.advance()?;
        let number = match &spot.token {
            Token::Word(word) => decimal(word),
            Token::Quoted(text) => decimal(text),
            _ => None,
        };
        let comparison = match mark {
            "<" => Comparison::Less,
            "<=" => Comparison::AtMost,
            ">" => Comparison::Greater,
            _ => Comparison::AtLeast,
        };
        match number {
            Some(number) => Ok(Test::Compared(comparison, number)),
            None => Err(errors::no_number(self.text, &spot, mark)),
        }
    }

    fn set_or_intervals(&mut self) -> Result<Test, SyntaxError> {
        let spot = self.advance()?;
        match spot.token {
            Token::Mark("{") => {
                let mut values = Vec::new();
                self.list("}", |parser| parser.value("in").map(|value| values.push(value)))?;
                Ok(Test::In(Values::of_set(values)))
            }
            Token::Mark("[") => {
                let mut intervals = Vec::new();
                self.list("]", |parser| {
                    parser.interval().map(|interval| intervals.push(interval))
                })?;
                Ok(Test::Within(merged(intervals)))
            }
            _ => Err(errors::no_list(self.text, &spot)),
        }
    }

    /// Parses items separated by commas up to `close`. A trailing comma is allowed.
    fn list(
        &mut self,
        close: &'static str,
        mut item: impl FnMut(&mut Self) -> Result<(), SyntaxError>,
    ) -> Result<(), SyntaxError> {
        loop {
            item(self)?;
            let mut spot = self.advance()?;
            if spot.token == Token::Mark(",") {
                if self.ahead.token != Token::Mark(close) {
                    continue;
                }
                spot = self.advance()?;
            }
            if spot.token == Token::Mark(close) {
                return Ok(());
            }
            return Err(errors::unclosed_list(self.text, &spot, close));
        }
    }

    fn interval(&mut self) -> Result<PortRange, SyntaxError> {
        let spot = self.advance()?;
        let interval = match spot.token {
            Token::Word(word) => {
                let (begin, end) = word.split_once('-').unwrap_or((word, word));
                digits_only(begin).zip(digits_only(end))
            }
            _ => None,
        };
        match interval {
            Some((begin, end)) if begin <= end => Ok(PortRange::new(begin, end)),
            Some((begin, end)) => Err(errors::reversed(self.text, &spot, begin, end)),
            None => Err(errors::expected(&spot, "an interval of whole numbers, as 1-9", self.text)),
        }
    }

    fn glob(&mut self) -> Result<Test, SyntaxError> {
        let (text, _) = self.pattern_text("a pattern, in which * and ? stand for characters")?;
        Ok(Test::Like(text))
    }

    fn pattern(&mut self) -> Result<Test, SyntaxError> {
        let (text, start) = self.pattern_text("a regular expression in quotation marks")?;
        self.patterns += 1;
        if self.patterns > PATTERNS_MAX {
            return Err(errors::too_many(start, PATTERNS_MAX, "regular expressions"));
        }
        match Pattern::new(&text) {
            Ok(pattern) => Ok(Test::Matches(text, pattern)),
            Err(why) => Err(errors::bad_pattern(start, &why)),
        }
    }

    /// Parses the text of a pattern. Returns it with its position.
    fn pattern_text(&mut self, wanted: &str) -> Result<(Box<str>, usize), SyntaxError> {
        let (text, start) = self.text_of(wanted)?;
        self.pattern_bytes += text.len();
        if self.pattern_bytes > PATTERN_BYTES_MAX {
            return Err(errors::too_many(start, PATTERN_BYTES_MAX, "bytes of patterns"));
        }
        Ok((text, start))
    }

    fn text_of(&mut self, wanted: &str) -> Result<(Box<str>, usize), SyntaxError> {
        let spot = self.advance()?;
        match spot.token {
            Token::Word(word) => Ok((word.into(), spot.start)),
            Token::Quoted(text) => Ok((text.into(), spot.start)),
            Token::Keyword(_) => Err(errors::keyword_for_value(self.text, &spot)),
            _ => Err(errors::expected(&spot, wanted, self.text)),
        }
    }
}

/// Sorts intervals and merges those that overlap. Intervals that only touch stay separate: a scalar can lie between 1
/// and 2.
fn merged(mut intervals: Vec<PortRange>) -> Box<[PortRange]> {
    intervals.sort_unstable();
    intervals.dedup_by(|next, last| {
        let overlaps = next.begin <= last.end;
        if overlaps {
            last.end = last.end.max(next.end);
        }
        overlaps
    });
    intervals.into()
}
