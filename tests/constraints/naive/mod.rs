//! A naive implementation of constraints: a recursive, character-by-character parser, and a matcher that examines one
//! value at a time. It shares no code with the crate, and is also used by the fuzz targets.

mod numbers;

use offermill::{Attribute, AttributeValue, Offer};

use numbers::{javas_number, plain_number};

/// A parsed constraint.
#[derive(Clone, Debug)]
pub(crate) enum Naive {
    /// The name and values of each entry.
    Entries(Vec<(String, Vec<String>)>),
    Expression(Tree),
}

#[derive(Clone, Debug)]
pub(crate) enum Tree {
    Any(Vec<Tree>),
    All(Vec<Tree>),
    Not(Box<Tree>),
    One(Subject, Question),
}

#[derive(Clone, Debug)]
pub(crate) enum Subject {
    Attribute(String),
    Place(String),
}

#[derive(Clone, Debug)]
pub(crate) enum Question {
    Present,
    In(Vec<String>),
    Compare(String, f64),
    Within(Vec<(u64, u64)>),
    Like(String),
    Matches(String),
}

/// Parses a constraint. Returns `None` if the documented grammar doesn't allow it.
pub(crate) fn read(text: &str) -> Option<Naive> {
    if text.len() > 65_536 {
        return None;
    }
    match text.trim_start().strip_prefix("expr::") {
        Some(rest) => {
            let mut reader = Reader { rest, patterns: 0, pattern_bytes: 0 };
            let tree = reader.either()?;
            reader.space();
            (reader.rest.is_empty() && tree.conditions() <= 1024).then_some(Naive::Expression(tree))
        }
        None => entries(text).map(Naive::Entries),
    }
}

fn entries(text: &str) -> Option<Vec<(String, Vec<String>)>> {
    let mut entries: Vec<(String, Vec<String>)> = Vec::new();
    if text.is_empty() {
        return Some(entries);
    }
    for entry in text.split(';') {
        let parts: Vec<&str> = entry.trim().split(':').collect();
        let [name, values] = parts[..] else { return None };
        if entries.iter().any(|(other, _)| other == name) {
            return None;
        }
        let mut values: Vec<String> = values.split(',').map(str::to_owned).collect();
        while values.last().is_some_and(String::is_empty) {
            values.pop();
        }
        entries.push((name.to_owned(), values));
    }
    Some(entries)
}

struct Reader<'a> {
    rest: &'a str,
    patterns: usize,
    pattern_bytes: usize,
}

impl Reader<'_> {
    fn space(&mut self) {
        self.rest = self.rest.trim_start();
    }

    /// Consumes `mark` if it is next.
    fn mark(&mut self, mark: &str) -> bool {
        self.space();
        match self.rest.strip_prefix(mark) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// Consumes a keyword if it is next.
    fn keyword(&mut self, keyword: &str) -> bool {
        self.space();
        let word: String = self.rest.chars().take_while(|c| in_word(*c)).collect();
        let found = word.eq_ignore_ascii_case(keyword);
        if found {
            self.rest = &self.rest[word.len()..];
        }
        found
    }

    fn either(&mut self) -> Option<Tree> {
        let mut trees = vec![self.all()?];
        while self.mark("||") || self.keyword("or") {
            trees.push(self.all()?);
        }
        Some(Tree::Any(trees))
    }

    fn all(&mut self) -> Option<Tree> {
        let mut trees = vec![self.one()?];
        while self.mark("&&") || self.keyword("and") {
            trees.push(self.one()?);
        }
        Some(Tree::All(trees))
    }

    fn one(&mut self) -> Option<Tree> {
        let mut negated = false;
        loop {
            self.space();
            // `!=` isn't a negation.
            if self.rest.starts_with("!=") {
                return None;
            }
            if !(self.mark("!") || self.keyword("not")) {
                break;
            }
            negated = !negated;
        }
        let tree = if self.mark("(") {
            let tree = self.either()?;
            self.mark(")").then_some(tree)?
        } else {
            self.condition()?
        };
        Some(if negated { Tree::Not(Box::new(tree)) } else { tree })
    }

    fn condition(&mut self) -> Option<Tree> {
        let subject = if self.mark("@") {
            let place = ["hostname", "region", "zone"];
            let word: String = self.rest.chars().take_while(|c| in_word(*c)).collect();
            self.rest = &self.rest[word.len()..];
            Subject::Place(place.contains(&&*word).then_some(word)?)
        } else {
            Subject::Attribute(self.text()?)
        };
        let of = |question| Tree::One(subject.clone(), question);
        let negative = |question| Some(Tree::Not(Box::new(of(question))));
        if self.mark("!=") {
            return negative(Question::In(vec![self.value()?]));
        }
        if self.mark("==") || self.mark("=") {
            return Some(of(Question::In(vec![self.value()?])));
        }
        for mark in ["<=", ">=", "<", ">"] {
            if self.mark(mark) {
                let number = self.text()?;
                return Some(of(Question::Compare(mark.to_owned(), plain_number(&number)?)));
            }
        }
        self.space();
        // A single `!` after a name is the keyword `not`.
        let mut ahead = Reader { rest: self.rest, patterns: 0, pattern_bytes: 0 };
        let negated = ahead.mark("!") || ahead.keyword("not");
        let listed = ["in", "like", "matches"].iter().any(|word| {
            let mut further = Reader { rest: ahead.rest, patterns: 0, pattern_bytes: 0 };
            further.keyword(word)
        });
        if !listed {
            return (!negated).then(|| of(Question::Present));
        }
        self.rest = ahead.rest;
        let question = self.question()?;
        if negated { negative(question) } else { Some(of(question)) }
    }

    fn question(&mut self) -> Option<Question> {
        if self.keyword("like") {
            let glob = self.text()?;
            self.pattern_bytes += glob.len();
            return (self.pattern_bytes <= 4096).then_some(Question::Like(glob));
        }
        if self.keyword("matches") {
            let pattern = self.text()?;
            self.patterns += 1;
            self.pattern_bytes += pattern.len();
            let valid = self.pattern_bytes <= 4096 && self.patterns <= 32 && is_pattern(&pattern);
            return valid.then_some(Question::Matches(pattern));
        }
        if !self.keyword("in") {
            return None;
        }
        if self.mark("{") {
            let mut values = vec![self.value()?];
            while self.mark(",") {
                if self.mark("}") {
                    return Some(Question::In(values));
                }
                values.push(self.value()?);
            }
            return self.mark("}").then_some(Question::In(values));
        }
        if self.mark("[") {
            let mut intervals = vec![self.interval()?];
            while self.mark(",") {
                if self.mark("]") {
                    return Some(Question::Within(intervals));
                }
                intervals.push(self.interval()?);
            }
            return self.mark("]").then_some(Question::Within(intervals));
        }
        None
    }

    fn interval(&mut self) -> Option<(u64, u64)> {
        self.space();
        if self.rest.starts_with(['"', '\'']) {
            return None;
        }
        let word = self.text()?;
        let (begin, end) = word.split_once('-').unwrap_or((&word, &word));
        let whole = |text: &str| {
            text.chars().all(|c| c.is_ascii_digit()).then(|| text.parse::<u64>().ok())?
        };
        let (begin, end) = (whole(begin)?, whole(end)?);
        (begin <= end).then_some((begin, end))
    }

    /// Parses a text that contains no `*` or `?` unless it is in quotation marks.
    fn value(&mut self) -> Option<String> {
        self.space();
        let bare = !self.rest.starts_with(['"', '\'']);
        self.text().filter(|text| !bare || !text.contains(['*', '?']))
    }

    fn text(&mut self) -> Option<String> {
        self.space();
        let first = self.rest.chars().next()?;
        if first == '"' || first == '\'' {
            let mut text = String::new();
            let mut chars = self.rest[1..].chars();
            loop {
                match chars.next()? {
                    '\\' if chars.as_str().starts_with(['"', '\'', '\\']) => {
                        text.push(chars.next()?);
                    }
                    c if c == first => break,
                    c => text.push(c),
                }
            }
            self.rest = chars.as_str();
            return Some(text);
        }
        let word: String = self.rest.chars().take_while(|c| in_word(*c)).collect();
        self.rest = &self.rest[word.len()..];
        let keywords = ["and", "or", "not", "in", "like", "matches"];
        let keyword = keywords.contains(&&*word.to_ascii_lowercase());
        (!word.is_empty() && !keyword).then_some(word)
    }
}

fn in_word(c: char) -> bool {
    !c.is_whitespace() && !c.is_control() && !"()[]{};:,=!<>~&|@#$\"'\\`".contains(c)
}

#[cfg(feature = "regex")]
fn is_pattern(pattern: &str) -> bool {
    // The memory limits must equal those of the crate; otherwise only one of the two would reject some patterns as too
    // large.
    let build = |text: &str| {
        let mut builder = regex::RegexBuilder::new(text);
        builder.size_limit(256 * 1024).build().is_ok()
    };
    build(pattern) && whole(pattern).iter().any(|text| build(text))
}

#[cfg(feature = "regex")]
fn matches_pattern(pattern: &str, text: &str) -> bool {
    let whole = whole(pattern).into_iter().find_map(|text| regex::Regex::new(&text).ok());
    whole.is_some_and(|whole| whole.is_match(text))
}

/// The patterns for a whole text, without and with a line break at the end, which ends a comment in the pattern.
#[cfg(feature = "regex")]
fn whole(pattern: &str) -> [String; 2] {
    [format!("\\A(?:{pattern})\\z"), format!("\\A(?:{pattern}\n)\\z")]
}

#[cfg(not(feature = "regex"))]
fn is_pattern(_pattern: &str) -> bool {
    false
}

#[cfg(not(feature = "regex"))]
fn matches_pattern(_pattern: &str, _text: &str) -> bool {
    false
}

impl Tree {
    fn conditions(&self) -> usize {
        match self {
            Tree::Any(trees) | Tree::All(trees) => trees.iter().map(Tree::conditions).sum(),
            Tree::Not(tree) => tree.conditions(),
            Tree::One(..) => 1,
        }
    }

    fn holds(&self, offer: &Offer<'_>) -> bool {
        match self {
            Tree::Any(trees) => trees.iter().any(|tree| tree.holds(offer)),
            Tree::All(trees) => trees.iter().all(|tree| tree.holds(offer)),
            Tree::Not(tree) => !tree.holds(offer),
            Tree::One(subject, question) => {
                values(subject, offer).iter().any(|value| question.holds(value))
            }
        }
    }
}

/// Whether the agent of `offer` meets the constraint.
pub(crate) fn holds(constraint: &Naive, offer: &Offer<'_>) -> bool {
    match constraint {
        Naive::Expression(tree) => tree.holds(offer),
        Naive::Entries(entries) => entries.iter().all(|(name, values)| {
            let named = |attribute: &&Attribute<'_>| attribute.name == name;
            let mut attributes = offer.attributes.iter().filter(named);
            attributes.any(|attribute| values.is_empty() || entry_holds(values, &attribute.value))
        }),
    }
}

fn entry_holds(values: &[String], value: &AttributeValue<'_>) -> bool {
    match *value {
        AttributeValue::Text(text) => values.iter().any(|value| value == text),
        AttributeValue::Set(items) => values.iter().all(|value| items.contains(&&**value)),
        AttributeValue::Scalar(scalar) => {
            values.iter().any(|value| javas_number(value).is_some_and(|least| least <= scalar))
        }
        AttributeValue::Ranges(ranges) => values.iter().any(|value| {
            let number = value.parse::<i128>().ok();
            let inside = |number| {
                let holds = |begin, end| i128::from(begin) <= number && number <= i128::from(end);
                ranges.iter().any(|range| holds(range.begin, range.end))
            };
            number.is_some_and(inside)
        }),
    }
}

fn values<'a>(subject: &Subject, offer: &Offer<'a>) -> Vec<AttributeValue<'a>> {
    match subject {
        Subject::Attribute(name) => {
            let named = |attribute: &&Attribute<'a>| attribute.name == name;
            offer.attributes.iter().filter(named).map(|attribute| attribute.value).collect()
        }
        Subject::Place(place) => {
            let text = match &**place {
                "hostname" => Some(offer.hostname).filter(|name| !name.is_empty()),
                "region" => offer.region,
                _ => offer.zone,
            };
            text.map(AttributeValue::Text).into_iter().collect()
        }
    }
}

impl Question {
    fn holds(&self, value: &AttributeValue<'_>) -> bool {
        let text_holds = |text: &str| match self {
            Question::Like(glob) => {
                like(&glob.chars().collect::<Vec<_>>(), &text.chars().collect::<Vec<_>>())
            }
            Question::Matches(pattern) => matches_pattern(pattern, text),
            _ => false,
        };
        match (self, value) {
            (Question::Present, _) => true,
            (Question::In(values), AttributeValue::Text(text)) => {
                values.iter().any(|value| value == text)
            }
            (Question::In(values), AttributeValue::Scalar(scalar)) => {
                values.iter().any(|value| plain_number(value) == Some(*scalar))
            }
            (Question::In(values), AttributeValue::Ranges(_)) => {
                values.iter().any(|one| entry_holds(std::slice::from_ref(one), value))
            }
            (Question::In(values), AttributeValue::Set(items)) => {
                items.iter().any(|item| values.iter().any(|value| value == item))
            }
            (Question::Compare(mark, bound), AttributeValue::Scalar(scalar)) => {
                compare(mark, *scalar, *bound)
            }
            (Question::Compare(mark, bound), AttributeValue::Ranges(ranges)) => {
                ranges.iter().filter(|range| range.begin <= range.end).any(|range| {
                    compare(mark, range.begin as f64, *bound)
                        || compare(mark, range.end as f64, *bound)
                })
            }
            (Question::Within(intervals), AttributeValue::Scalar(scalar)) => {
                let inside =
                    |begin: u64, end: u64| begin as f64 <= *scalar && *scalar <= end as f64;
                intervals.iter().any(|(begin, end)| inside(*begin, *end))
            }
            (Question::Within(intervals), AttributeValue::Ranges(ranges)) => {
                ranges.iter().filter(|range| range.begin <= range.end).any(|range| {
                    intervals.iter().any(|(begin, end)| *begin <= range.end && range.begin <= *end)
                })
            }
            (_, AttributeValue::Text(text)) => text_holds(text),
            (_, AttributeValue::Set(items)) => items.iter().any(|item| text_holds(item)),
            _ => false,
        }
    }
}

fn compare(mark: &str, number: f64, bound: f64) -> bool {
    match mark {
        "<" => number < bound,
        "<=" => number <= bound,
        ">" => number > bound,
        _ => number >= bound,
    }
}

/// Matches a glob by dynamic programming: a row holds, for one prefix of the glob, whether it matches each prefix of
/// the text.
fn like(glob: &[char], text: &[char]) -> bool {
    let mut row: Vec<bool> = (0..=text.len()).map(|length| length == 0).collect();
    let mut at = 0;
    while let Some(mut wanted) = glob.get(at) {
        at += 1;
        let literal = *wanted == '\\' && matches!(glob.get(at), Some('*' | '?' | '\\'));
        if literal {
            wanted = &glob[at];
            at += 1;
        }
        let mut next = vec![false; row.len()];
        for length in 0..row.len() {
            let one = |fits: bool| length > 0 && row[length - 1] && fits;
            next[length] = match wanted {
                '*' if !literal => row[length] || length > 0 && next[length - 1],
                '?' if !literal => one(true),
                wanted => one(length > 0 && *wanted == text[length - 1]),
            };
        }
        row = next;
    }
    row[text.len()]
}
