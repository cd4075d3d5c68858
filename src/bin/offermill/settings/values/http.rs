//! The settings of the page about a run.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use offermill::launch::Secret;

use crate::settings::sources::Sourced;

/// The settings of the page as they were read.
#[derive(Debug, Default)]
pub(crate) struct HttpSettings {
    pub(crate) address: Option<(Sourced, SocketAddr)>,
    pub(crate) token: Option<Secret>,
    /// Whether the token may go over the network unencrypted.
    pub(crate) plain_token: bool,
    /// The names other than `localhost` that requests may have in `Host`, in lower case.
    pub(crate) hosts: Vec<String>,
    pub(crate) certificate_file: Option<(Sourced, PathBuf)>,
    pub(crate) key_file: Option<(Sourced, PathBuf)>,
}

/// Where and for whom the page is served.
#[derive(Clone, Debug)]
pub(crate) struct HttpPlan {
    /// The setting of the address as it was given: its name and its text.
    pub(crate) given: (String, String),
    pub(crate) address: SocketAddr,
    /// What clients must know; `None` on loopback if everybody may see the page.
    pub(crate) token: Option<Secret>,
    /// The names that requests may have in `Host`, besides `localhost` and addresses.
    pub(crate) hosts: Vec<String>,
    /// The files of the server's certificate and of its key, in PEM, if it speaks TLS.
    pub(crate) certificate: Option<(PathBuf, PathBuf)>,
}

/// Reads an address to listen at: an IP address and a port, `localhost` and a port, or a port of 127.0.0.1.
pub(crate) fn parse_address(text: &str) -> Option<SocketAddr> {
    let loopback = |port: u16| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
    let port = text.strip_prefix("localhost:").unwrap_or(text);
    if port.bytes().all(|byte| byte.is_ascii_digit()) {
        return port.parse().ok().map(loopback);
    }
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the page is on loopback unless another address is given. Method: addresses in each form, and texts that
    /// are none.
    #[test]
    fn addresses_are_read() {
        for (text, address) in [
            ("4040", Some("127.0.0.1:4040")),
            ("localhost:4040", Some("127.0.0.1:4040")),
            ("0.0.0.0:0", Some("0.0.0.0:0")),
            ("[::1]:4040", Some("[::1]:4040")),
            ("", None),
            (":4040", None),
            ("+80", None),
            ("65536", None),
            ("10.0.0.1", None),
            ("example.org:80", None),
        ] {
            let address = address.map(|address| address.parse().unwrap());
            assert_eq!(parse_address(text), address, "{text:?}");
        }
    }
}
