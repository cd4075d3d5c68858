//! Reads a token from a file.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use offermill::launch::Secret;
use offermill::private_files::{FileAccess, open_input};

/// The shortest and the longest token, in characters.
const TOKEN_CHARACTERS: std::ops::RangeInclusive<usize> = 16..=1024;

/// The token in a file, without the line break at its end.
///
/// # Errors
/// If the file can't be read, has no token in it, or can be read or written by others.
pub(crate) fn read_token(path: &Path) -> io::Result<Secret> {
    let file = open_input(path)?;
    check_access(&file)?;
    let mut text = String::new();
    file.take(*TOKEN_CHARACTERS.end() as u64 + 3).read_to_string(&mut text)?;
    let token = text.trim_end_matches(['\r', '\n']);
    // Those of a token in a header of that kind (RFC 6750). None of them needs an escape in a URL.
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
    if !TOKEN_CHARACTERS.contains(&token.len()) || !token.bytes().all(is_token) {
        let (least, most) = (TOKEN_CHARACTERS.start(), TOKEN_CHARACTERS.end());
        let what =
            format!("it must have {least} to {most} letters, digits and -._~+/= in one line");
        return Err(io::Error::other(what));
    }
    Ok(Secret::new(token))
}

/// Fails if other users may know the token, or may have written it.
fn check_access(file: &File) -> io::Result<()> {
    let access = FileAccess::of(file)?;
    access.check_author()?;
    match access {
        FileAccess::ReadByGroup | FileAccess::ReadByAll => {
            Err(io::Error::other("it can be read by others; chmod 600 would do"))
        }
        _ => Ok(()),
    }
}

/// The sentence about a token that can't be used. The path is shown only if there is such a file: otherwise it may be
/// the token by mistake.
pub(crate) fn token_problem(name: &str, path: &str, why: &io::Error) -> String {
    let is = match Path::new(path).exists() {
        true => format!(" is {path:?}, but"),
        false => String::new(),
    };
    format!("{name}{is} must be a file with a token ({why})")
}
