//! Numbers of one character, in the scripts of targets: `0` to `9`, `a` to `z`, `A` to `Z` are 0 to 61.

/// The number of a character; `None` if it stands for none.
pub(crate) fn base62(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'z' => Some(byte - b'a' + 10),
        b'A'..=b'Z' => Some(byte - b'A' + 36),
        _ => None,
    }
}
