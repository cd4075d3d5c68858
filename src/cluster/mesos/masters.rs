//! Where masters are.

use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

use crate::error::Error;

/// The port of a master where none is given.
const MASTER_PORT: u16 = 5050;
/// More are a mistake.
const MASTERS_MAX: usize = 64;
/// No host name is longer.
const HOST_BYTES_MAX: usize = 253;

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

    /// Reads a list of masters.
    ///
    /// # Errors
    /// When it is of another form, names no master, or more than 64.
    fn from_str(text: &str) -> Result<Masters, Error> {
        let allowed =
            "mesos://, http:// or https://, then HOST[:PORT], or several with commas between";
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
    let names = rest.strip_suffix('/').unwrap_or(rest).split(',').take(MASTERS_MAX + 1);
    let all: Vec<Master> = names.map(|name| Master::read(name.trim())).collect::<Option<_>>()?;
    (all.len() <= MASTERS_MAX).then_some(Masters { tls, all })
}

impl Master {
    /// Reads `HOST[:PORT]`.
    pub(super) fn read(text: &str) -> Option<Master> {
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (host, port) = rest.split_once(']')?;
                host.parse::<Ipv6Addr>().ok()?;
                let port = if port.is_empty() { None } else { Some(port.strip_prefix(':')?) };
                (host, port)
            }
            None => match text.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (text, None),
            },
        };
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:".contains(&byte);
        let host_allowed = (1..=HOST_BYTES_MAX).contains(&host.len()) && host.bytes().all(is_name);
        let port = match port {
            Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => port.parse().ok()?,
            Some(_) => return None,
            None => MASTER_PORT,
        };
        (host_allowed && port > 0).then(|| Master { host: host.to_owned(), port })
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

impl fmt::Display for Masters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.tls { "https://" } else { "mesos://" })?;
        for (at, master) in self.all.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            write!(f, "{comma}{master}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the forms that people know are read, and written again. Method: each, with the form that is written.
    #[test]
    fn known_forms_are_read() {
        for (text, written) in [
            ("mesos://host", "mesos://host:5050"),
            ("mesos://host:5051", "mesos://host:5051"),
            ("http://10.0.0.1:80/", "mesos://10.0.0.1:80"),
            (" mesos://a, b:1,c ", "mesos://a:5050,b:1,c:5050"),
            ("https://[::1]:5050,[fe80::2]", "https://[::1]:5050,[fe80::2]:5050"),
        ] {
            let masters: Masters = text.parse().unwrap();
            assert_eq!(masters.to_string(), written);
            assert_eq!(written.parse::<Masters>().unwrap(), masters);
        }
    }

    /// Goal: anything else is refused in a sentence with the value and what is allowed. Method: near misses.
    #[test]
    fn anything_else_is_refused() {
        let many = format!("mesos://{}", vec!["a"; 65].join(","));
        for text in [
            "",
            "mesos:",
            "mesos://",
            "mesos://,",
            "mesos://a,,b",
            "mesos://a:",
            "mesos://a:0",
            "mesos://a:65536",
            "mesos://a:+80",
            "mesos://a:80:90",
            "mesos://::1",
            "mesos://[::1",
            "mesos://[::1]80",
            "mesos://[host]:80",
            "mesos://user@host",
            "mesos://a b",
            "mesos://a/path",
            "mesos://zk://a:2181",
            "zk://a:2181/mesos",
            "ftp://a",
            "local[2]",
            &many,
        ] {
            let error = text.parse::<Masters>().unwrap_err();
            assert!(error.is_setting());
            assert!(error.to_string().contains("but must be mesos://"), "{error}");
        }
    }
}
