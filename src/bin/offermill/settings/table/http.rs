//! The options of the page about a run.

use std::path::{Path, PathBuf};

use offermill::config::text::parse_bool;

use crate::settings::table::row::OptionRow;
use crate::settings::token_file::{read_token, token_problem};
use crate::settings::values::http::parse_address;

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
            match read_token(Path::new(&given.text)) {
                Ok(token) => {
                    draft.redaction.add_secret(token.expose());
                    draft.http.token = Some(token);
                }
                Err(why) => {
                    draft.problems.push(token_problem(&given.name, &given.text, &why));
                }
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
