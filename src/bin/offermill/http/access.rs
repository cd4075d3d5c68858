//! Who is answered: one check of each request, before anything else is done with it.

use std::fs::File;
use std::io::{self, Read};

use hyper::header::{AUTHORIZATION, COOKIE, HeaderValue, ORIGIN};
use hyper::http::request::Parts;
use hyper::{Method, StatusCode};
use offermill::http_server::{HostProblem, check_host, single_header};
use offermill::launch::Secret;

use crate::http::answer::{PageResponse, last_problem, only_reads, to_the_page, token_needed};

/// The longest that a browser keeps the cookie.
const COOKIE_SECONDS: u64 = 7 * 24 * 3600;

/// The answer to a request that isn't to be answered otherwise.
pub(super) type Refused = Box<PageResponse>;

/// Who is answered.
pub(super) struct PageAccess {
    /// The names that requests may have in `Host`, in lower case.
    hosts: Vec<String>,
    /// `None` if no token is needed.
    token: Option<TokenAccess>,
}

/// What tells clients that know the token.
struct TokenAccess {
    token: Secret,
    /// The name of the cookie: browsers send the cookies of all ports of a host to each of them.
    cookie: String,
    /// The value of the cookie, a random number. A browser that has it has brought the token to this run.
    session: Secret,
    is_tls: bool,
}

impl PageAccess {
    /// Access by these names, and with this token if there is one.
    ///
    /// # Errors
    /// If the system has no random numbers.
    pub(super) fn new(
        hosts: Vec<String>,
        token: Option<Secret>,
        port: u16,
        is_tls: bool,
    ) -> io::Result<PageAccess> {
        let token = match token {
            None => None,
            Some(token) => {
                let cookie = format!("offermill-{port}");
                Some(TokenAccess { token, cookie, session: random_text()?, is_tls })
            }
        };
        Ok(PageAccess { hosts, token })
    }

    /// Checks a request.
    ///
    /// # Errors
    /// With the answer if it isn't to be answered otherwise: its address is a name that could be anybody's, it isn't
    /// from the page itself, it could change something, or it lacks the token.
    pub(super) fn check(&self, head: &Parts, has_body: bool) -> Result<(), Refused> {
        if has_body {
            let status = StatusCode::PAYLOAD_TOO_LARGE;
            return Err(last_problem(status, "requests must have no body").into());
        }
        if head.method != Method::GET && head.method != Method::HEAD {
            return Err(only_reads().into());
        }
        let host = self.host(head)?;
        let is_own = |origin: &str| {
            let of = origin.strip_prefix("http://").or(origin.strip_prefix("https://"));
            of.is_some_and(|of| of.eq_ignore_ascii_case(host))
        };
        if !head.headers.get_all(ORIGIN).iter().all(|it| it.to_str().is_ok_and(is_own)) {
            return Err(last_problem(StatusCode::FORBIDDEN, "other sites aren't answered").into());
        }
        match &self.token {
            None => Ok(()),
            Some(token) => token.check(head),
        }
    }

    /// The request's `Host`, if it is a name of this page.
    fn host<'h>(&self, head: &'h Parts) -> Result<&'h str, Refused> {
        check_host(head, &self.hosts).map_err(|problem| {
            let (status, sentence) = match problem {
                HostProblem::ForProxy => (StatusCode::BAD_REQUEST, "this is no proxy"),
                HostProblem::NotOne => (StatusCode::BAD_REQUEST, "one Host is needed"),
                HostProblem::Unknown => (
                    StatusCode::MISDIRECTED_REQUEST,
                    "this Host isn't answered: use the address, localhost, or a name in offermill.http.hosts",
                ),
            };
            Refused::from(last_problem(status, sentence))
        })
    }
}

impl TokenAccess {
    /// Checks whether the client knows the token, or was given the cookie. One that brings the token in the address of
    /// the page gets the cookie.
    fn check(&self, head: &Parts) -> Result<(), Refused> {
        if let Some(given) = head.uri.query().and_then(token_in_query) {
            let cookie = self.token.is_same(&given).then(|| self.new_cookie()).flatten();
            return Err(cookie.map_or_else(token_needed, to_the_page).into());
        }
        let bearer = single_header(&head.headers, AUTHORIZATION).and_then(|it| it.split_once(' '));
        let is_bearer = bearer.is_some_and(|(scheme, given)| {
            scheme.eq_ignore_ascii_case("bearer") && self.token.is_same(given.trim())
        });
        let cookies = head.headers.get_all(COOKIE).iter().filter_map(|it| it.to_str().ok());
        let mut cookies = cookies.flat_map(|it| it.split(';')).filter_map(|it| it.split_once('='));
        let is_session = cookies
            .any(|(name, given)| name.trim() == self.cookie && self.session.is_same(given.trim()));
        if is_bearer || is_session { Ok(()) } else { Err(token_needed().into()) }
    }

    /// `Lax`, so that a link to the page works; nothing is changed by a request, and no other site can read an answer.
    fn new_cookie(&self) -> Option<HeaderValue> {
        let secure = if self.is_tls { "; Secure" } else { "" };
        let (name, session) = (&self.cookie, self.session.expose());
        let text = format!(
            "{name}={session}; Path=/; HttpOnly; SameSite=Lax; Max-Age={COOKIE_SECONDS}{secure}"
        );
        let mut value = HeaderValue::from_str(&text).ok()?;
        value.set_sensitive(true);
        Some(value)
    }
}

/// The token in a query, with what is percent-encoded in it decoded: clients may encode any character.
fn token_in_query(query: &str) -> Option<String> {
    let given = query.split('&').find_map(|pair| pair.strip_prefix("token="))?;
    let mut parts = given.split('%');
    let mut token = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        token.push(u8::from_str_radix(digits, 16).ok().filter(|_| is_hex)?);
        token.extend(rest.bytes());
    }
    String::from_utf8(token).ok()
}

/// A random number of 256 bits in hexadecimal digits.
fn random_text() -> io::Result<Secret> {
    let mut bytes = [0; 32];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(Secret::new(digits))
}

#[cfg(test)]
mod tests {
    use hyper::Request;

    use super::*;

    const TOKEN: &str = "correct-horse-battery";

    fn access(token: Option<&str>) -> PageAccess {
        let token = token.map(Secret::new);
        PageAccess::new(vec!["etl.example".to_owned()], token, 4040, false).unwrap()
    }

    /// The status with which a request is refused; 200 if it isn't.
    fn status(access: &PageAccess, uri: &str, headers: &[(&str, &str)]) -> u16 {
        let mut request = Request::builder().uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (head, ()) = request.body(()).unwrap().into_parts();
        access.check(&head, false).err().map_or(200, |answer| answer.status().as_u16())
    }

    /// Goal: a site whose name was made to point to this machine reads nothing, nor does any other site. Method: each
    /// form of `Host`, among them names that begin or end like one that is allowed; origins.
    #[test]
    fn only_known_names_are_answered() {
        let access = access(None);
        for (host, expected) in [
            ("127.0.0.1:4040", 200),
            ("localhost", 200),
            ("LOCALHOST:4040", 200),
            ("[::1]:4040", 200),
            ("10.1.2.3", 200),
            ("etl.example:80", 200),
            ("evil.example", 421),
            ("localhost.evil.example", 421),
            ("evil.example:localhost", 421),
            ("127.0.0.1.evil.example:4040", 421),
            ("[::1].evil.example", 421),
            ("[evil]", 421),
            ("", 421),
        ] {
            assert_eq!(status(&access, "/", &[("host", host)]), expected, "{host:?}");
        }
        assert_eq!(status(&access, "/", &[]), 400);
        assert_eq!(status(&access, "/", &[("host", "localhost"), ("host", "evil.example")]), 400);
        assert_eq!(status(&access, "http://localhost/", &[("host", "localhost")]), 400);
        for (origin, expected) in [
            ("http://localhost:4040", 200),
            ("http://localhost:4041", 403),
            ("https://evil.example", 403),
            ("null", 403),
        ] {
            let headers = [("host", "localhost:4040"), ("origin", origin)];
            assert_eq!(status(&access, "/state", &headers), expected, "{origin}");
        }
    }

    /// Goal: nothing is answered without the token, and the cookie is another secret. Method: tokens that are missing,
    /// cut, longer, and in each place; the cookie that the right one brings.
    #[test]
    fn the_token_is_needed() {
        let access = access(Some(TOKEN));
        let bearer = |text: &str| {
            let headers = [("host", "localhost"), ("authorization", text)];
            ["/", "/state", "/metrics", "/health", "/nothing"]
                .map(|path| status(&access, path, &headers))
        };
        for wrong in ["Bearer", "Bearer ", "Basic correct-horse-battery", TOKEN] {
            assert_eq!(bearer(wrong), [401; 5], "{wrong}");
        }
        assert_eq!(bearer(&format!("Bearer {}", &TOKEN[1..])), [401; 5]);
        assert_eq!(bearer(&format!("Bearer {TOKEN}x")), [401; 5]);
        assert_eq!(bearer(&format!("bearer {TOKEN}")), [200; 5]);
        let with = |uri: &str| {
            let request = Request::builder().uri(uri).header("host", "localhost");
            let (head, ()) = request.body(()).unwrap().into_parts();
            access.check(&head, false).unwrap_err()
        };
        for wrong in ["wrong", "%", "%6", "%zz", "%+1", "%ff", ""] {
            assert_eq!(with(&format!("/?token={wrong}")).status(), StatusCode::UNAUTHORIZED);
        }
        let encoded = format!("/?a=b&token=%63{}", &TOKEN[1..].replace('-', "%2D"));
        assert_eq!(with(&encoded).status(), StatusCode::SEE_OTHER, "{encoded}");
        let answer = with(&format!("/?token={TOKEN}"));
        assert_eq!(answer.status(), StatusCode::SEE_OTHER);
        let cookie = answer.headers()["set-cookie"].to_str().unwrap();
        assert!(cookie.contains("; HttpOnly; SameSite=Lax; ") && !cookie.contains(TOKEN));
        let (name, session) = cookie.split(';').next().unwrap().split_once('=').unwrap();
        let cookie = |cookie: &str| {
            let headers = [("host", "localhost"), ("cookie", cookie)];
            status(&access, "/state", &headers)
        };
        assert_eq!((name, session.len()), ("offermill-4040", 64));
        assert_eq!(cookie(&format!("a=b; {name}={session}")), 200);
        for wrong in [
            format!("{name}={TOKEN}"),
            format!("{name}=0{}", &session[..63]),
            format!("other={session}"),
        ] {
            assert_eq!(cookie(&wrong), 401, "{wrong}");
        }
    }

    /// Goal: a request that could change something isn't taken. Method: other methods, and a body.
    #[test]
    fn only_reads_are_answered() {
        let access = access(None);
        for (method, has_body, expected) in
            [("POST", false, 405), ("OPTIONS", false, 405), ("GET", true, 413), ("PUT", true, 413)]
        {
            let request = Request::builder().method(method).header("host", "localhost");
            let (head, ()) = request.body(()).unwrap().into_parts();
            let answer = access.check(&head, has_body).unwrap_err();
            assert_eq!(answer.status().as_u16(), expected, "{method}");
        }
    }
}
