//! [`PlaceholderText`]: a text with placeholders, split once, so that filling it in for an executor is one copy.

/// A text in which `{{NAME}}` stands for an executor's value, for some names. Other text in double braces is text.
#[derive(Clone, Debug)]
pub(super) struct PlaceholderText {
    /// Texts and placeholders by turns, and the last text. So a placeholder that looks like one because of an inserted
    /// value is never filled in.
    parts: Vec<(String, Placeholder)>,
    rest: String,
}

/// A placeholder: the position of its name among the names of [`PlaceholderText::new`], and the name.
#[derive(Clone, Copy, Debug)]
struct Placeholder {
    position: usize,
    name: &'static str,
}

impl PlaceholderText {
    /// Splits a text at the placeholders of these names, which have no braces.
    pub(super) fn new(text: &str, names: &[&'static str]) -> PlaceholderText {
        let mut parts = Vec::new();
        let mut before = String::new();
        let mut rest = text;
        while let Some((text, braces)) = rest.find("{{").and_then(|at| rest.split_at_checked(at)) {
            before.push_str(text);
            let found = braces[2..].split_once("}}").and_then(|(name, tail)| {
                let position = names.iter().position(|known| *known == name)?;
                Some((Placeholder { position, name: names.get(position)? }, tail))
            });
            match found {
                Some((placeholder, tail)) => {
                    parts.push((std::mem::take(&mut before), placeholder));
                    rest = tail;
                }
                // The second brace may begin a placeholder.
                None => {
                    before.push('{');
                    rest = &braces[1..];
                }
            }
        }
        before.push_str(rest);
        PlaceholderText { parts, rest: before }
    }

    /// The positions of its placeholders' names, in the order of the text.
    pub(super) fn positions(&self) -> impl Iterator<Item = usize> {
        self.parts.iter().map(|(_, placeholder)| placeholder.position)
    }

    /// The text with the values of its placeholders, by the positions of their names. A placeholder without a value
    /// stays as it is.
    pub(super) fn fill(&self, values: &[Option<&str>]) -> String {
        let value = |placeholder: &Placeholder| values.get(placeholder.position).copied().flatten();
        let lengths = self.parts.iter().map(|(before, placeholder)| {
            before.len() + value(placeholder).map_or(placeholder.name.len() + 4, str::len)
        });
        let mut filled = String::with_capacity(lengths.sum::<usize>() + self.rest.len());
        for (before, placeholder) in &self.parts {
            filled.push_str(before);
            match value(placeholder) {
                Some(value) => filled.push_str(value),
                None => ["{{", placeholder.name, "}}"].iter().for_each(|it| filled.push_str(it)),
            }
        }
        filled.push_str(&self.rest);
        filled
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What is meant, written as one pass over the text: from the left, each known name in double braces that has a
    /// value is replaced, and what was inserted isn't looked at again.
    fn replaced(text: &str, known: &[(&'static str, &str)]) -> String {
        let mut filled = String::new();
        let mut rest = text;
        'next: while !rest.is_empty() {
            for (name, value) in known {
                if let Some(tail) = rest.strip_prefix(&*format!("{{{{{name}}}}}")) {
                    filled.push_str(value);
                    rest = tail;
                    continue 'next;
                }
            }
            let mut chars = rest.chars();
            filled.extend(chars.next());
            rest = chars.as_str();
        }
        filled
    }

    proptest! {
        /// Goal: splitting a text first changes nothing. Method: texts of braces, names and others, beside a
        /// replacement from left to right; values look like placeholders, and one may be unknown.
        #[test]
        fn a_split_text_is_filled_in_as_from_left_to_right(
            pieces in prop::collection::vec(
                prop::sample::select(vec!["{", "}", "{{", "}}", "A", "{{A}}", "{{PORT}}", "{{B}}", "é", " x"]), 0..12),
            port in any::<bool>(),
        ) {
            let text = pieces.concat();
            let names = ["A", "PORT"];
            let values = [Some("{{PORT}}"), port.then_some("{{A")];
            let known: Vec<_> =
                names.into_iter().zip(values).filter_map(|(name, value)| Some((name, value?))).collect();
            prop_assert_eq!(PlaceholderText::new(&text, &names).fill(&values), replaced(&text, &known));
        }
    }
}
