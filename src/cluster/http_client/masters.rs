//! [`Masters`]: the addresses of a cluster's masters, parsed from a URL.

use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

use crate::error::Error;

/// The default port of a master.
const MASTER_PORT: u16 = 5050;
/// The maximum number of masters.
const MASTERS_MAX: usize = 64;
/// The maximum length of a host name, in bytes.
const HOST_BYTES_MAX: usize = 253;

/// The masters of a cluster, at least one, in the order in which they are tried.
///
/// The text form is `mesos://host[:port][,host[:port]…]`, or the same with `http://` or `offermill://` (both equivalent
/// to `mesos://`), or with `https://`. The default port is 5050. IPv6 addresses are in brackets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Masters {
    tls: bool,
    all: Vec<Master>,
}

/// The address of a master.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Master {
    /// The host name or address, without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl Masters {
    /// Whether connections use TLS.
    #[must_use]
    pub fn tls(&self) -> bool {
        self.tls
    }

    /// The same masters, with connections that use TLS.
    #[must_use]
    pub fn with_tls(self) -> Masters {
        Masters { tls: true, ..self }
    }

    /// All masters, in the order in which they are tried.
    #[must_use]
    pub fn all(&self) -> &[Master] {
        &self.all
    }
}

impl FromStr for Masters {
    type Err = Error;

    /// Parses a list of masters.
    ///
    /// # Errors
    /// If the text has another form, names no master, or names more than 64.
    fn from_str(text: &str) -> Result<Masters, Error> {
        let allowed = "mesos://, offermill://, http:// or https://, then HOST[:PORT] with a port from 1 to 65535, or \
                       several with commas between";
        read(text.trim()).ok_or_else(|| Error::setting("master", text, allowed))
    }
}

fn read(text: &str) -> Option<Masters> {
    let (scheme, rest) = text.split_once("://")?;
    let tls = match scheme {
        // A standalone master speaks the same API.
        "mesos" | "http" | "offermill" => false,
        "https" => true,
        _ => return None,
    };
    let names = rest.strip_suffix('/').unwrap_or(rest).split(',').take(MASTERS_MAX + 1);
    let all: Vec<Master> = names.map(|name| Master::read(name.trim())).collect::<Option<_>>()?;
    (all.len() <= MASTERS_MAX).then_some(Masters { tls, all })
}

impl Master {
    /// Parses `HOST[:PORT]`. `None` if it is invalid.
    pub(crate) fn read(text: &str) -> Option<Master> {
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

impl Master {
    /// Parses the master in a redirection: `//host:port/path`, or with a scheme before it. `None` if it is invalid or
    /// has another scheme.
    pub(crate) fn redirected(location: &str, tls: bool) -> Option<Master> {
        let scheme = if tls { "https:" } else { "http:" };
        let rest = location.strip_prefix(scheme).unwrap_or(location).strip_prefix("//")?;
        Master::read(rest.split(['/', '?', '#']).next()?)
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

    /// Goal: the documented forms are parsed, and displayed in one form. Method: each form, with its displayed form.
    #[test]
    fn known_forms_are_read() {
        for (text, written) in [
            ("mesos://host", "mesos://host:5050"),
            ("mesos://host:5051", "mesos://host:5051"),
            ("offermill://host", "mesos://host:5050"),
            ("http://10.0.0.1:80/", "mesos://10.0.0.1:80"),
            (" mesos://a, b:1,c ", "mesos://a:5050,b:1,c:5050"),
            ("https://[::1]:5050,[fe80::2]", "https://[::1]:5050,[fe80::2]:5050"),
        ] {
            let masters: Masters = text.parse().unwrap();
            assert_eq!(masters.to_string(), written);
            assert_eq!(written.parse::<Masters>().unwrap(), masters);
        }
    }

    /// Goal: other texts are rejected with an error that contains the allowed forms. Method: near misses.
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

    /// Goal: redirections are parsed as masters write them, and other schemes are rejected. Method: examples.
    #[test]
    fn redirections_name_masters() {
        let master = |host: &str, port| Some(Master { host: host.to_owned(), port });
        assert_eq!(Master::redirected("//10.0.0.2:5050/api/v1", false), master("10.0.0.2", 5050));
        assert_eq!(Master::redirected("http://b/api", false), master("b", 5050));
        assert_eq!(Master::redirected("https://b:1?x", true), master("b", 1));
        for odd in ["https://b:1", "b:1", "/api", "", "//", "//u@b:1/", "ftp://b"] {
            assert_eq!(Master::redirected(odd, false), None, "{odd}");
        }
        assert_eq!(Master::redirected("http://b:1", true), None);
    }
}
