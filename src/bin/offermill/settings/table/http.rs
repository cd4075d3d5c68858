//! The options of the page about a run.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use offermill::config::text::parse_bool;
use offermill::launch::Secret;
use offermill::private_files::{FileAccess, open_input};

use crate::settings::draft::SettingsDraft;
use crate::settings::sources::Sourced;
use crate::settings::table::row::OptionRow;
use crate::settings::values::http::parse_address;

/// The shortest and the longest token, in characters.
const TOKEN_CHARACTERS: std::ops::RangeInclusive<usize> = 16..=1024;

/// Where the page is served, and who may see it.
pub(super) const HTTP_ROWS: &[OptionRow] = &[
    OptionRow::offermill(
        "offermill.http.address",
        "IP:PORT, or a port of 127.0.0.1: the page about the run",
    )
    .flag("--http")
    .derived("none")
    .read(|draft, given| {
        match parse_address(given.text.trim()) {
            Some(address) => draft.http.address = Some((given.clone(), address)),
            None => draft.reject(given, "IP:PORT, or a port, such as 127.0.0.1:4040"),
        }
        Ok(())
    }),
    OptionRow::offermill("offermill.http.tokenFile", "file")
        .flag("--http-token-file")
        .derived("none")
        .read(|draft, given| {
            match read_token(given) {
                Ok(token) => {
                    draft.redaction.add_secret(token.expose());
                    draft.http.token = Some(token);
                }
                Err(why) => report_token(draft, given, &why),
            }
            Ok(())
        }),
    OptionRow::offermill(
        "offermill.http.tokenOverHttp",
        "true or false: send the token unencrypted",
    )
    .default("false")
    .read(|draft, given| given.read_into(&mut draft.http.plain_token, parse_bool)),
    OptionRow::offermill("offermill.http.certificateFile", "file (PEM)").derived("none").read(
        |draft, given| {
            draft.http.certificate_file = Some((given.clone(), PathBuf::from(&given.text)));
            Ok(())
        },
    ),
    OptionRow::offermill("offermill.http.keyFile", "file (PEM)").derived("none").read(
        |draft, given| {
            draft.http.key_file = Some((given.clone(), PathBuf::from(&given.text)));
            Ok(())
        },
    ),
    OptionRow::offermill(
        "offermill.http.hosts",
        "name[,name...] that browsers may use for the address",
    )
    .derived("localhost and addresses")
    .read(|draft, given| {
        let names = given.text.split(',').map(|name| name.trim().to_ascii_lowercase());
        draft.http.hosts = names.filter(|name| !name.is_empty()).collect();
        Ok(())
    }),
];

/// The token in a file, without the line break at its end.
fn read_token(given: &Sourced) -> io::Result<Secret> {
    let file = open_input(Path::new(&given.text))?;
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

/// Reports that a token can't be used. The path is shown only if there is such a file: otherwise it may be the token by
/// mistake.
fn report_token(draft: &mut SettingsDraft, given: &Sourced, why: &io::Error) {
    let is = match Path::new(&given.text).exists() {
        true => format!(" is {:?}, but", given.text),
        false => String::new(),
    };
    let name = &given.name;
    draft.problems.push(format!("{name}{is} must be a file with a token ({why})"));
}
