//! Where masters are.

use std::fmt;
use std::str::FromStr;

use crate::error::Error;

/// The port of a master where none is given.
const MASTER_PORT: u16 = 5050;

/// The masters of one cluster, one at least, in the order in which they are tried.
///
/// Written as `mesos://host[:port][,host[:port]…]`, or the same with `http://` (which is what `mesos://` means) or
/// `https://`. IPv6 addresses stand in brackets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Masters {
    tls: bool,
    all: Vec<Master>,
}

/// One master.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Master {
    /// Its host name or address, without brackets.
    pub host: String,
    /// Its port.
    pub port: u16,
}

impl Masters {
    /// Whether they are reached over TLS.
    #[must_use]
    pub fn tls(&self) -> bool {
        self.tls
    }

    /// All of them.
    #[must_use]
    pub fn all(&self) -> &[Master] {
        &self.all
    }
}

impl FromStr for Masters {
    type Err = Error;

    fn from_str(text: &str) -> Result<Masters, Error> {
        let allowed =
            "mesos://, http:// or https://, and HOST[:PORT], or several with commas between";
        read(text.trim()).ok_or_else(|| Error::setting("master", text, allowed))
    }
}

fn read(text: &str) -> Option<Masters> {
    let (scheme, rest) = text.split_once("://")?;
    let tls = match scheme {
        "mesos" | "http" => false,
        "https" => true,
        _ => return None,
    };
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    let all =
        rest.split(',').map(|master| Master::read(master.trim())).collect::<Option<Vec<_>>>()?;
    Some(Masters { tls, all })
}

impl Master {
    /// Reads `host[:port]`.
    pub(super) fn read(text: &str) -> Option<Master> {
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (host, port) = rest.split_once(']')?;
                let is_address = host.parse::<std::net::Ipv6Addr>().is_ok();
                (
                    is_address.then_some(host)?,
                    (!port.is_empty())
                        .then(|| port.strip_prefix(':'))
                        .flatten()
                        .or(port.is_empty().then_some("5050"))?,
                )
            }
            None => text.split_once(':').unwrap_or((text, "5050")),
        };
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':');
        let digits = port.bytes().all(|byte| byte.is_ascii_digit());
        let port: u16 = digits.then(|| port.parse().ok()).flatten().filter(|port| *port > 0)?;
        (!host.is_empty() && host.len() <= 253 && host.chars().all(is_name))
            .then(|| Master { host: host.to_owned(), port })
    }
}

impl fmt::Display for Master {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}
