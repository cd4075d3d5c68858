//! The address of an API server of Kubernetes, as `--master` names it.

use std::net::IpAddr;
use std::str::FromStr;

use http::Uri;

/// What an address may be.
pub(crate) const ALLOWED: &str = "k8s://https://HOST[:PORT], k8s://http://HOST[:PORT] or k8s://HOST[:PORT] with an API \
                                  server of Kubernetes, or k8s:// alone for that of the kubeconfig";

/// The address of an API server; `None` is that of the kubeconfig's context, or of the cluster that this program is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ApiAddress(Option<Uri>);

impl ApiAddress {
    /// The URL, unless it is left to the kubeconfig.
    pub(crate) fn url(&self) -> Option<String> {
        self.0.as_ref().map(|url| url.to_string().trim_end_matches('/').to_owned())
    }

    /// Whether what is sent can be read on the network: there is no TLS, and the server isn't on this machine.
    pub(crate) fn is_open_to_all(&self) -> bool {
        let Some(url) = self.0.as_ref().filter(|url| url.scheme_str() == Some("http")) else {
            return false;
        };
        let host = url.host().unwrap_or_default().trim_matches(['[', ']']);
        let is_loopback = host.parse().is_ok_and(|address: IpAddr| address.is_loopback());
        !is_loopback && host != "localhost"
    }

    /// Whether requests are encrypted, as far as the address says.
    pub(crate) fn is_plain(&self) -> bool {
        self.0.as_ref().is_some_and(|url| url.scheme_str() == Some("http"))
    }
}

impl FromStr for ApiAddress {
    /// What an address may be.
    type Err = String;

    fn from_str(text: &str) -> Result<ApiAddress, String> {
        let refused = || ALLOWED.to_owned();
        let text = text.trim().strip_prefix("k8s://").ok_or_else(refused)?;
        if text.is_empty() {
            return Ok(ApiAddress(None));
        }
        // As in Spark, an address without a scheme is one with TLS.
        let url = if text.contains("://") { text.to_owned() } else { format!("https://{text}") };
        let uri: Uri = url.parse().map_err(|_| refused())?;
        let authority = uri.authority().map(|it| it.as_str()).unwrap_or_default();
        // A port that is no number is none to the parser.
        let after_host = authority.rsplit_once(']').map_or(authority, |(_, rest)| rest);
        let has_port = after_host.contains(':');
        let is_allowed = matches!(uri.scheme_str(), Some("https" | "http"))
            && uri.host().is_some_and(|host| !host.is_empty())
            && !authority.contains('@')
            && has_port == uri.port_u16().is_some_and(|port| port > 0)
            && uri.query().is_none()
            && !url.contains('#');
        is_allowed.then_some(ApiAddress(Some(uri))).ok_or_else(refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: addresses are read as Spark reads them, and what is no address of an API server is refused. Method: forms
    /// of each kind.
    #[test]
    fn addresses_are_read() {
        let url = |text: &str| text.parse().map(|it: ApiAddress| it.url());
        for (text, read) in [
            ("k8s://https://10.0.0.1:6443", Some("https://10.0.0.1:6443")),
            ("k8s://h.example", Some("https://h.example")),
            ("k8s://h:6443/", Some("https://h:6443")),
            ("k8s://https://h/k8s/clusters/c-1", Some("https://h/k8s/clusters/c-1")),
            ("k8s://http://[::1]:8001", Some("http://[::1]:8001")),
            (" k8s:// ", None),
        ] {
            assert_eq!(url(text), Ok(read.map(str::to_owned)), "{text}");
        }
        for text in [
            "k8s:",
            "k8s:/h",
            "k8s://ftp://h",
            "k8s://https://",
            "k8s://u:p@h",
            "k8s://h:x",
            "k8s://h:0",
            "k8s://h:",
            "k8s://h?x=y",
            "k8s://h#x",
            "k8s://a b",
            "k8s://h:99999",
        ] {
            assert_eq!(url(text), Err(ALLOWED.to_owned()), "{text}");
        }
    }

    /// Goal: only what goes over a network unencrypted is open to all. Method: hosts of both kinds.
    #[test]
    fn loopback_is_no_network() {
        for (text, is_open) in [
            ("k8s://http://127.0.0.1:8001", false),
            ("k8s://http://[::1]:8001", false),
            ("k8s://http://localhost:8001", false),
            ("k8s://https://h", false),
            ("k8s://", false),
            ("k8s://http://h", true),
            ("k8s://http://localhost.evil", true),
            ("k8s://http://10.0.0.1", true),
        ] {
            assert_eq!(text.parse::<ApiAddress>().unwrap().is_open_to_all(), is_open, "{text}");
        }
    }
}
