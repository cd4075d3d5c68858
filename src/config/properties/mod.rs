//! Parser for properties files in the syntax of `spark-defaults.conf`, which is that of Java's properties files.

use std::collections::HashMap;
use std::iter::Peekable;
use std::str::Chars;

use crate::error::Error;

/// The maximum size of a properties file, in bytes.
pub const PROPERTIES_BYTES_MAX: usize = 1024 * 1024;

/// A key of a properties file, its value, and the line in which it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Property {
    /// The key; may be empty.
    pub key: String,
    /// The value.
    pub value: String,
    /// The number of the line, from 1.
    pub line: usize,
}

/// Parses a properties file into its keys and values, in the order of each key's first line.
///
/// A line is `key value`, `key=value` or `key: value`. Lines that are blank or begin with `#` or `!` are skipped. A
/// backslash at the end of a line continues it on the next line, whose indentation is dropped. Within a line, `\t`,
/// `\n`, `\r`, `\f` and `\uXXXX` are escapes for a character; a backslash before any other character stands for that
/// character. White space around values is dropped, except line breaks that were written as escapes. If a key occurs
/// twice, the last value is used.
///
/// A byte order mark at the start is skipped, unlike in Java.
///
/// # Errors
/// Fails if `\u` isn't followed by four hexadecimal digits, if such an escape isn't a character (half of a surrogate
/// pair), or if the text is larger than [`PROPERTIES_BYTES_MAX`]. Errors contain the line number but never the line,
/// which may contain a secret.
pub fn parse_properties(text: &str) -> Result<Vec<Property>, Error> {
    if text.len() > PROPERTIES_BYTES_MAX {
        let allowed = format!("at most {PROPERTIES_BYTES_MAX} bytes long");
        let found = format!("{} bytes long", text.len());
        return Err(Error::setting("the properties file", found, allowed));
    }
    let mut reader = PropertiesReader {
        chars: text.strip_prefix('\u{feff}').unwrap_or(text).chars().peekable(),
        line: 1,
    };
    let mut properties: Vec<Property> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    while let Some((key, value, line)) = reader.property()? {
        let value = trim(&value).to_owned();
        match places.get(&key).and_then(|place| properties.get_mut(*place)) {
            Some(property) => (property.value, property.line) = (value, line),
            None => {
                places.insert(key.clone(), properties.len());
                properties.push(Property { key, value, line });
            }
        }
    }
    Ok(properties)
}

/// Drops white space and control characters around a value, but not line breaks, which can only have been written as
/// escapes and are therefore intended.
fn trim(value: &str) -> &str {
    value.trim_matches(|c| c <= ' ' && c != '\r' && c != '\n')
}

/// A character of a key or value. An escaped character doesn't end a key.
struct PropertyChar {
    char: char,
    escaped: bool,
}

/// Reads characters, joins continued lines and decodes escapes.
struct PropertiesReader<'a> {
    chars: Peekable<Chars<'a>>,
    line: usize,
}

impl PropertiesReader<'_> {
    /// Returns the next key, its value and its line, or `None` at the end of the text.
    fn property(&mut self) -> Result<Option<(String, String, usize)>, Error> {
        if !self.skip_to_property() {
            return Ok(None);
        }
        let line = self.line;
        let (mut key, mut value) = (String::new(), String::new());
        let mut separator = None;
        while let Some(unit) = self.unit()? {
            match unit {
                PropertyChar { char: '=' | ':', escaped: false } => {
                    separator = Some(true);
                    break;
                }
                PropertyChar { char, escaped: false } if is_blank(char) => {
                    separator = Some(false);
                    break;
                }
                PropertyChar { char, .. } => key.push(char),
            }
        }
        // Without a separator, the key extends to the end of the line.
        let Some(mut separated) = separator else { return Ok(Some((key, value, line))) };
        while let Some(unit) = self.unit()? {
            match unit {
                PropertyChar { char, escaped: false } if value.is_empty() && is_blank(char) => {}
                // One `=` or `:` may follow the white space after a key; a second one belongs to the value.
                PropertyChar { char: '=' | ':', escaped: false }
                    if !separated && value.is_empty() =>
                {
                    separated = true;
                }
                PropertyChar { char, .. } => {
                    separated = true;
                    value.push(char);
                }
            }
        }
        Ok(Some((key, value, line)))
    }

    /// Skips blank lines and comments up to the next key. Returns `false` at the end of the text.
    fn skip_to_property(&mut self) -> bool {
        while let Some(char) = self.chars.peek() {
            match char {
                '#' | '!' => while self.chars.next_if(|c| !is_line_end(*c)).is_some() {},
                '\n' | '\r' => self.end_line(),
                c if is_blank(*c) => {
                    self.chars.next();
                }
                _ => return true,
            }
        }
        false
    }

    /// Returns the next character of the line, or `None` at its end, which it consumes.
    fn unit(&mut self) -> Result<Option<PropertyChar>, Error> {
        loop {
            match self.chars.peek() {
                None => return Ok(None),
                Some('\n' | '\r') => {
                    self.end_line();
                    return Ok(None);
                }
                Some('\\') => {
                    self.chars.next();
                    match self.chars.peek() {
                        // A backslash at the end of the text is ignored.
                        None => return Ok(None),
                        Some('\n' | '\r') => {
                            self.end_line();
                            while self.chars.next_if(|c| is_blank(*c)).is_some() {}
                        }
                        Some(_) => {
                            let char = self.escape()?;
                            return Ok(Some(PropertyChar { char, escaped: true }));
                        }
                    }
                }
                Some(_) => {
                    let unit = self.chars.next().map(|char| PropertyChar { char, escaped: false });
                    return Ok(unit);
                }
            }
        }
    }

    /// Decodes the escape after a backslash.
    fn escape(&mut self) -> Result<char, Error> {
        match self.chars.next().unwrap_or('\\') {
            't' => Ok('\t'),
            'n' => Ok('\n'),
            'r' => Ok('\r'),
            'f' => Ok('\u{c}'),
            'u' => self.utf16(),
            other => Ok(other),
        }
    }

    /// Decodes a character that is written as one UTF-16 unit after `\u`, or as two units with another `\u` between
    /// them.
    fn utf16(&mut self) -> Result<char, Error> {
        let first = self.hex4()?;
        if let Some(char) = char::from_u32(u32::from(first)) {
            return Ok(char);
        }
        let second = if self.chars.next() == Some('\\') && self.chars.next() == Some('u') {
            self.hex4()?
        } else {
            0
        };
        match char::decode_utf16([first, second]).next() {
            Some(Ok(char)) => Ok(char),
            _ => Err(self.bad_escape(&format!("u{first:04x}"), "one of a pair of surrogates")),
        }
    }

    fn hex4(&mut self) -> Result<u16, Error> {
        let mut digits = String::new();
        while digits.len() < 4 {
            match self.chars.next_if(char::is_ascii_hexdigit) {
                Some(digit) => digits.push(digit),
                None => break,
            }
        }
        match u16::from_str_radix(&digits, 16) {
            Ok(unit) if digits.len() == 4 => Ok(unit),
            _ => {
                let allowed = "u and four hexadecimal digits; for a backslash write two";
                Err(self.bad_escape(&format!("u{digits}"), allowed))
            }
        }
    }

    #[cold]
    fn bad_escape(&self, found: &str, allowed: &str) -> Error {
        let name =
            format!("the escape after a backslash in line {} of the properties file", self.line);
        Error::setting(name, found, allowed)
    }

    /// Consumes the end of a line, which may be two characters.
    fn end_line(&mut self) {
        if self.chars.next() == Some('\r') {
            self.chars.next_if_eq(&'\n');
        }
        self.line += 1;
    }
}

fn is_blank(char: char) -> bool {
    matches!(char, ' ' | '\t' | '\u{c}')
}

fn is_line_end(char: char) -> bool {
    matches!(char, '\n' | '\r')
}

#[cfg(test)]
mod tests;
