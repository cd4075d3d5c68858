//! [`WireCursor`]: reads the protobuf wire format from borrowed bytes.
//!
//! It accepts and rejects the same input as prost: varints of up to ten bytes that hold 64 bits, known fields of the
//! wrong wire type, groups that aren't closed or nest too deep.

use std::fmt;

/// The reason why bytes are not a valid offer or record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MalformedOffer {
    /// The bytes end in the middle of a value.
    Truncated,
    /// A varint has more than 64 bits.
    TooLong,
    /// A field's key is invalid, or a known field has the wrong wire type.
    Field,
    /// A group's start and end don't match, or the nesting is too deep.
    Group,
    /// A text is not UTF-8.
    Text,
    /// The offer's id is missing or empty.
    NoId,
    /// The agent's id is missing or empty.
    NoAgent,
    /// An offer has more than [`ENTRIES_MAX`](super::ENTRIES_MAX) entries, or a record has more than
    /// [`OFFERS_MAX`](super::OFFERS_MAX) offers.
    TooMany,
    /// An id, a name or an attribute is longer than [`limits`](crate::limits) allow.
    LongText,
}

impl fmt::Display for MalformedOffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            MalformedOffer::Truncated => "it ends too early",
            MalformedOffer::TooLong => "a number has more than 64 bits",
            MalformedOffer::Field => "a field has a wrong type",
            MalformedOffer::Group => "a group has no end or no beginning",
            MalformedOffer::Text => "a text is not UTF-8",
            MalformedOffer::NoId => "it has no id",
            MalformedOffer::NoAgent => "it names no agent",
            MalformedOffer::TooMany => "it has too many entries, or too many offers",
            MalformedOffer::LongText => "an id, a name or an attribute is too long",
        })
    }
}

impl std::error::Error for MalformedOffer {}

pub(super) type Result<T> = std::result::Result<T, MalformedOffer>;

/// The maximum nesting depth of messages and groups, including the outermost message.
const DEPTH_MAX: u8 = 100;

/// The key of a field with a varint.
pub(super) const fn varint(field: u32) -> u32 {
    field << 3
}

/// The key of a field with eight bytes.
pub(super) const fn fixed64(field: u32) -> u32 {
    field << 3 | 1
}

/// The key of a length-delimited field: a message or a text.
pub(super) const fn sized(field: u32) -> u32 {
    field << 3 | 2
}

/// The set of these fields, for [`WireCursor::skip`]. Field numbers must be below 32.
pub(super) const fn known(keys: &[u32]) -> u32 {
    let (mut set, mut at) = (0, 0);
    while at < keys.len() {
        set |= 1 << (keys[at] >> 3);
        at += 1;
    }
    set
}

/// The unread bytes of a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct WireCursor<'a> {
    rest: &'a [u8],
    /// How many more messages and groups may be nested.
    depth: u8,
}

impl<'a> WireCursor<'a> {
    /// Creates a cursor for a message that is nested in `above` others.
    pub(super) fn new(message: &'a [u8], above: u8) -> WireCursor<'a> {
        WireCursor { rest: message, depth: DEPTH_MAX - above.min(DEPTH_MAX) }
    }

    /// Returns the number of unread bytes.
    pub(super) fn left(&self) -> usize {
        self.rest.len()
    }

    /// Reads the key of the next field. Returns `None` at the end.
    #[inline(always)]
    pub(super) fn key(&mut self) -> Result<Option<u32>> {
        match self.rest {
            [] => Ok(None),
            [byte, rest @ ..] if *byte < 0x80 => {
                self.rest = rest;
                Ok(Some(u32::from(*byte)))
            }
            long => {
                let (key, rest) = long_varint(long)?;
                self.rest = rest;
                u32::try_from(key).map(Some).map_err(|_| MalformedOffer::Field)
            }
        }
    }

    #[inline(always)]
    pub(super) fn varint(&mut self) -> Result<u64> {
        let (number, rest) = match self.rest {
            [byte, rest @ ..] if *byte < 0x80 => (u64::from(*byte), rest),
            // The lengths of most offers.
            [low, high, rest @ ..] if *high < 0x80 => {
                (u64::from(low & 0x7f) | u64::from(*high) << 7, rest)
            }
            // Most ports.
            [low, middle, high, rest @ ..] if *low & middle >= 0x80 && *high < 0x80 => {
                let [low, middle] = [low, middle].map(|byte| u64::from(byte & 0x7f));
                (low | middle << 7 | u64::from(*high) << 14, rest)
            }
            long => long_varint(long)?,
        };
        self.rest = rest;
        Ok(number)
    }

    /// Reads an enum's number: the low 32 bits of a varint.
    #[inline(always)]
    pub(super) fn number(&mut self) -> Result<i32> {
        Ok(self.varint()? as i32)
    }

    #[inline(always)]
    pub(super) fn double(&mut self) -> Result<f64> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or(MalformedOffer::Truncated)?;
        self.rest = rest;
        Ok(f64::from_le_bytes(*bytes))
    }

    /// Reads a length and that number of bytes.
    #[inline(always)]
    pub(super) fn bytes(&mut self) -> Result<&'a [u8]> {
        let length = self.varint()?;
        self.take(length)
    }

    #[inline(always)]
    fn take(&mut self, length: u64) -> Result<&'a [u8]> {
        let length = usize::try_from(length).map_err(|_| MalformedOffer::Truncated)?;
        let (own, rest) = self.rest.split_at_checked(length).ok_or(MalformedOffer::Truncated)?;
        self.rest = rest;
        Ok(own)
    }

    /// Skips `bytes` if they come next.
    #[inline(always)]
    pub(super) fn strip(&mut self, bytes: &[u8]) -> bool {
        let rest = self.rest.strip_prefix(bytes);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    #[inline(always)]
    pub(super) fn text(&mut self) -> Result<&'a str> {
        text(self.bytes()?)
    }

    /// Reads a nested message.
    #[inline(always)]
    pub(super) fn message(&mut self) -> Result<WireCursor<'a>> {
        Ok(WireCursor { rest: self.bytes()?, depth: self.depth - 1 })
    }

    /// If the message consists of one short text in field 1, as most do, returns the text.
    #[inline(always)]
    pub(super) fn only_text(self) -> Option<&'a [u8]> {
        match self.rest {
            [0x0a, length, text @ ..] if *length < 0x80 && usize::from(*length) == text.len() => {
                Some(text)
            }
            _ => None,
        }
    }

    /// If the message begins with a message in field 1 that consists of one short text in its field 1, returns the
    /// text's position and length. The length isn't zero.
    #[inline(always)]
    pub(super) fn first_text(&self) -> Option<(usize, usize)> {
        match self.rest {
            [0x0a, outer, 0x0a, inner, rest @ ..]
                if *outer < 0x80
                    && *inner > 0
                    && inner.checked_add(2) == Some(*outer)
                    && rest.len() >= usize::from(*inner) =>
            {
                Some((4, usize::from(*inner)))
            }
            _ => None,
        }
    }

    /// If the message is a short name in field 1, a one-byte type in field 2, and other fields, returns the three
    /// parts.
    #[inline(always)]
    pub(super) fn name_and_type(self) -> Option<(&'a [u8], u8, WireCursor<'a>)> {
        let [0x0a, length, rest @ ..] = self.rest else { return None };
        let (name, rest) = rest.split_at_checked(usize::from(*length))?;
        match rest {
            [0x10, kind, rest @ ..] if (length | kind) & 0x80 == 0 => {
                Some((name, *kind, WireCursor { rest, ..self }))
            }
            _ => None,
        }
    }

    /// Whether exactly one short field with this key is left.
    #[inline(always)]
    pub(super) fn is_only(&self, key: u8) -> bool {
        match self.rest {
            [first, length, rest @ ..] => {
                *first == key && *length < 0x80 && usize::from(*length) == rest.len()
            }
            _ => false,
        }
    }

    /// Returns a cursor after the next `bytes`, or at the end if there are fewer.
    #[inline(always)]
    pub(super) fn past(self, bytes: usize) -> WireCursor<'a> {
        WireCursor { rest: self.rest.get(bytes..).unwrap_or_default(), ..self }
    }

    /// Returns the bytes between `self` and the later state of the same cursor.
    #[inline(always)]
    pub(super) fn until(self, later: &WireCursor<'a>) -> &'a [u8] {
        let length = self.rest.len() - later.rest.len();
        self.rest.get(..length).unwrap_or_default()
    }

    /// If the message consists of one number in field 1, returns the number.
    #[inline(always)]
    pub(super) fn only_double(self) -> Option<f64> {
        match self.rest {
            [0x09, bytes @ ..] => Some(f64::from_le_bytes(bytes.try_into().ok()?)),
            _ => None,
        }
    }

    /// Skips an unknown field. Fails if the field is `known`, because then its wire type is wrong.
    #[inline(always)]
    pub(super) fn skip(&mut self, key: u32, known: u32) -> Result<()> {
        let field = key >> 3;
        if field == 0 || field < 32 && known >> field & 1 == 1 {
            return Err(MalformedOffer::Field);
        }
        if key & 7 == 2 {
            return self.bytes().map(drop);
        }
        *self = self.past_value(key)?;
        Ok(())
    }

    /// Returns a cursor after a value. (It takes `self` by value: a borrowed cursor can't stay in registers.)
    fn past_value(mut self, key: u32) -> Result<WireCursor<'a>> {
        match key & 7 {
            0 => self.varint().map(drop)?,
            1 => self.take(8).map(drop)?,
            2 => self.bytes().map(drop)?,
            3 => return self.past_group(key >> 3),
            5 => self.take(4).map(drop)?,
            _ => return Err(MalformedOffer::Group),
        }
        Ok(self)
    }

    /// Returns a cursor after the rest of the group of `field`.
    #[cold]
    fn past_group(mut self, field: u32) -> Result<WireCursor<'a>> {
        let mut open = [0; DEPTH_MAX as usize];
        let (mut deep, mut most) = (0, usize::from(self.depth));
        most = most.min(open.len());
        open[0] = field;
        loop {
            let key = self.key()?.ok_or(MalformedOffer::Truncated)?;
            let field = key >> 3;
            match key & 7 {
                4 if field != 0 && open.get(deep) == Some(&field) => {
                    let Some(above) = usize::checked_sub(deep, 1) else { return Ok(self) };
                    deep = above;
                }
                4 => return Err(MalformedOffer::Group),
                _ if field == 0 => return Err(MalformedOffer::Field),
                // A field at this depth: prost checks the depth before it checks the field.
                _ if deep + 1 >= most => return Err(MalformedOffer::Group),
                3 => {
                    deep += 1;
                    *open.get_mut(deep).ok_or(MalformedOffer::Group)? = field;
                }
                _ => self = self.past_value(key)?,
            }
        }
    }

    /// Reads all fields without using them, to validate them.
    pub(super) fn skip_all(mut self) -> Result<()> {
        while let Some(key) = self.key()? {
            self.skip(key, 0)?;
        }
        Ok(())
    }
}

/// Reads a varint, and returns the bytes after it.
#[inline(never)]
fn long_varint(bytes: &[u8]) -> Result<(u64, &[u8])> {
    let mut number = 0;
    for (at, byte) in bytes.iter().enumerate().take(10) {
        if at == 9 && *byte > 1 {
            return Err(MalformedOffer::TooLong);
        }
        number |= u64::from(byte & 0x7f) << (7 * at);
        if *byte < 0x80 {
            return Ok((number, bytes.get(at + 1..).unwrap_or_default()));
        }
    }
    Err(MalformedOffer::Truncated)
}

/// Checks that bytes are UTF-8.
#[inline(always)]
pub(super) fn text(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|_| MalformedOffer::Text)
}
