//! The names that requests may be for.

use std::net::{IpAddr, Ipv6Addr};

use hyper::header::{HOST, HeaderMap, HeaderName};
use hyper::http::request::Parts;

/// What is wrong with the name that a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostProblem {
    /// It names a server in its first line, as requests to proxies do.
    ForProxy,
    /// `Host` is missing or given twice.
    NotOne,
    /// `Host` is a name that could be anybody's.
    Unknown,
}

/// Returns the `Host` of a request if it is an IP address, `localhost`, or one of these names, which are in lower case.
/// Another name may be one that its owner lets point to this machine, so that the owner's pages could read this server
/// in a browser (DNS rebinding). An address is no such name.
///
/// # Errors
/// If it is none of these.
pub fn check_host<'h>(head: &'h Parts, names: &[String]) -> Result<&'h str, HostProblem> {
    if head.uri.authority().is_some() {
        return Err(HostProblem::ForProxy);
    }
    let host = single_header(&head.headers, HOST).ok_or(HostProblem::NotOne)?;
    if is_known(host, names) { Ok(host) } else { Err(HostProblem::Unknown) }
}

/// A header's value if it is given exactly once.
#[must_use]
pub fn single_header(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    if values.next().is_some() { None } else { value.to_str().ok() }
}

fn is_known(host: &str, names: &[String]) -> bool {
    if let Some((address, port)) = host.strip_prefix('[').and_then(|it| it.split_once(']')) {
        let is_port = port.is_empty() || port.strip_prefix(':').is_some_and(is_port);
        return is_port && address.parse::<Ipv6Addr>().is_ok();
    }
    let name = match host.split_once(':') {
        None => host,
        Some((name, port)) if is_port(port) => name,
        Some(_) => return false,
    };
    let name = name.to_ascii_lowercase();
    name == "localhost" || name.parse::<IpAddr>().is_ok() || names.contains(&name)
}

fn is_port(text: &str) -> bool {
    text.parse::<u16>().is_ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use hyper::Request;

    use super::*;

    fn check(uri: &str, hosts: &[&str]) -> Result<String, HostProblem> {
        let mut request = Request::builder().uri(uri);
        for host in hosts {
            request = request.header("host", *host);
        }
        let (head, ()) = request.body(()).unwrap().into_parts();
        check_host(&head, &["etl.example".to_owned()]).map(str::to_owned)
    }

    /// Goal: a site whose name was made to point to this machine is told from this server. Method: each form of `Host`,
    /// among them names that begin or end like one that is allowed; none, two, and a proxy's request.
    #[test]
    fn only_known_names_are_allowed() {
        for host in [
            "127.0.0.1:4040",
            "localhost",
            "LOCALHOST:4040",
            "[::1]:4040",
            "10.1.2.3",
            "etl.example:80",
            "Etl.Example",
        ] {
            assert_eq!(check("/", &[host]).as_deref(), Ok(host));
        }
        for host in [
            "evil.example",
            "localhost.evil.example",
            "evil.example:localhost",
            "127.0.0.1.evil.example:4040",
            "[::1].evil.example",
            "[evil]",
            "",
        ] {
            assert_eq!(check("/", &[host]), Err(HostProblem::Unknown), "{host:?}");
        }
        assert_eq!(check("/", &[]), Err(HostProblem::NotOne));
        assert_eq!(check("/", &["localhost", "evil.example"]), Err(HostProblem::NotOne));
        assert_eq!(check("http://localhost/", &["localhost"]), Err(HostProblem::ForProxy));
    }
}
