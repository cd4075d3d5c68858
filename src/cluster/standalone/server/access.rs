//! Who may do what: one table of requests and rights, and one check before anything of a request is read.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::header::{AUTHORIZATION, HeaderMap, ORIGIN};
use hyper::http::request::Parts;
use hyper::{Method, StatusCode};
use tokio_rustls::rustls::SupportedCipherSuite;
use tokio_rustls::rustls::crypto::ring::cipher_suite::TLS13_AES_256_GCM_SHA384;

use crate::cluster::standalone::protocol::WORKER_PATH;
use crate::http_server::{ClientConnection, HostProblem, PeerUser, check_host, single_header};
use crate::launch::Secret;
use crate::private_files::{FileAccess, open_input};

/// The path of Mesos' scheduler API.
pub(super) const SCHEDULER_PATH: &str = "/api/v1/scheduler";
/// The path at which Mesos' operators end a framework.
pub(super) const TEARDOWN_PATH: &str = "/master/teardown";
/// The path of all that the master knows.
pub(super) const STATE_PATH: &str = "/state";
/// The path of the figures for Prometheus.
pub(super) const METRICS_PATH: &str = "/metrics";
/// The path of the executors that haven't ended.
pub(super) const EXECUTORS_PATH: &str = "/executors";
/// The path of the figures of the last hour.
pub(super) const HISTORY_PATH: &str = "/history";
/// The path that says that the master answers.
pub(super) const HEALTH_PATH: &str = "/health";
/// The web page.
pub(super) const PAGE_PATH: &str = "/";
/// The page's style.
pub(super) const STYLE_PATH: &str = "/page.css";
/// The code that the page shares with that of a run.
pub(super) const SHARED_CODE_PATH: &str = "/page.js";
/// The page's own code.
pub(super) const CODE_PATH: &str = "/master.js";

/// What a request needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestRight {
    Frameworks,
    Workers,
    Either,
    Nothing,
}

/// All requests that are answered.
const TABLE: [(&Method, &str, RequestRight); 12] = [
    (&Method::POST, SCHEDULER_PATH, RequestRight::Frameworks),
    (&Method::POST, TEARDOWN_PATH, RequestRight::Frameworks),
    (&Method::POST, WORKER_PATH, RequestRight::Workers),
    (&Method::GET, STATE_PATH, RequestRight::Either),
    (&Method::GET, EXECUTORS_PATH, RequestRight::Either),
    (&Method::GET, HISTORY_PATH, RequestRight::Either),
    (&Method::GET, METRICS_PATH, RequestRight::Either),
    (&Method::GET, HEALTH_PATH, RequestRight::Nothing),
    (&Method::GET, PAGE_PATH, RequestRight::Nothing),
    (&Method::GET, STYLE_PATH, RequestRight::Nothing),
    (&Method::GET, SHARED_CODE_PATH, RequestRight::Nothing),
    (&Method::GET, CODE_PATH, RequestRight::Nothing),
];

/// Why a worker without a certificate isn't answered.
const NO_CERTIFICATE: &str = "workers must show a certificate";

/// Why another user's program isn't answered.
const OTHER_USER: &str =
    "this master asks for no credentials, so it answers programs of its own user alone, and root's";

/// The longest file of credentials, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Who is answered. Without any principal, all programs of the server's user and of root may register frameworks;
/// without any token and without the need of a certificate, they may register workers. Where the system doesn't tell
/// whose a connection is, all programs may.
#[derive(Clone, Debug, Default)]
pub struct MasterAccess {
    /// `Basic` and the principal with its secret in base 64, as frameworks send it.
    frameworks: Option<Vec<Secret>>,
    /// The tokens of workers, as they send them after `Bearer`.
    workers: Option<Vec<WorkerToken>>,
    /// Whether workers must show a certificate.
    worker_certificates: bool,
    /// The names that requests may have in `Host` besides `localhost` and addresses, in lower case.
    hosts: Vec<String>,
    /// Whether clients come over TLS: they have verified the name that they use, so it isn't checked.
    pub(super) is_tls: bool,
    /// Whether programs of other users may do what needs a right for which there are no credentials.
    pub(super) answers_all_users: bool,
}

/// A token of workers.
#[derive(Clone, Debug)]
struct WorkerToken {
    token: Secret,
    /// Whose it is. It may be exchanged for another one of this name.
    name: Option<String>,
}

/// Why credentials can't be read, in a sentence that doesn't name the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CredentialsError(String);

impl fmt::Display for CredentialsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for CredentialsError {}

impl MasterAccess {
    /// Lets only the principals of a file register frameworks. A line has a principal, a blank, and its secret. A
    /// principal may have several lines: each of its secrets is right, so that one can be exchanged.
    ///
    /// # Errors
    /// If the file can't be read, others may read it, or a line isn't of this form.
    pub fn with_principals(self, path: &Path) -> Result<MasterAccess, CredentialsError> {
        let line = |line: &str| {
            let (principal, secret) = line.split_once(' ')?;
            let is_usable = !principal.is_empty() && !principal.contains(':') && !secret.is_empty();
            let encoded = STANDARD.encode(format!("{principal}:{secret}"));
            is_usable.then(|| Secret::new(encoded))
        };
        let known = read_lines(path, "a principal without ':', a blank, and its secret", line)?;
        let known = known.into_iter().map(|(_, secret)| secret).collect();
        Ok(MasterAccess { frameworks: Some(known), ..self })
    }

    /// Lets only workers with a token of a file register. A line has a token of at least 16 characters; or a name, a
    /// blank and a token. A worker's id belongs to the name, or to the token. A name may have several tokens.
    ///
    /// # Errors
    /// If the file can't be read, others may read it, a line isn't of this form, or a token has two names, or one and
    /// none.
    pub fn with_worker_tokens(self, path: &Path) -> Result<MasterAccess, CredentialsError> {
        let line = |line: &str| {
            let (name, token) = match line.split_once(' ') {
                Some((name, token)) => (Some(name.to_owned()), token),
                None => (None, line),
            };
            let is_usable = token.len() >= 16 && token.bytes().all(|byte| byte.is_ascii_graphic());
            is_usable.then(|| WorkerToken { token: Secret::new(token), name })
        };
        let known = read_lines(path, "a token of at least 16 characters, or a name and one", line)?;
        check_names(&known)?;
        let known = known.into_iter().map(|(_, token)| token).collect();
        Ok(MasterAccess { workers: Some(known), ..self })
    }

    /// Lets only workers register that show a certificate of an authority which the server trusts.
    #[must_use]
    pub fn with_worker_certificates(self) -> MasterAccess {
        MasterAccess { worker_certificates: true, ..self }
    }

    /// Answers requests for these names as well.
    #[must_use]
    pub fn with_hosts(self, hosts: impl IntoIterator<Item = String>) -> MasterAccess {
        let hosts = hosts.into_iter().map(|host| host.to_ascii_lowercase()).collect();
        MasterAccess { hosts, ..self }
    }

    /// The kinds of credentials that aren't asked for.
    pub(super) fn missing(&self) -> Vec<&'static str> {
        let workers = self.workers.is_none() && !self.worker_certificates;
        let kinds = [(self.frameworks.is_none(), "principals"), (workers, "worker tokens")];
        kinds.into_iter().filter(|(is_missing, _)| *is_missing).map(|(_, kind)| kind).collect()
    }

    /// Whether it matters which user's program a connection belongs to.
    pub(super) fn looks_up_users(&self) -> bool {
        !self.answers_all_users && !self.missing().is_empty()
    }

    /// Whether a client may do what needs a right, if there are no credentials for that right.
    fn trusts(&self, client: &ClientConnection) -> bool {
        self.answers_all_users || client.user.get() != PeerUser::Other
    }

    /// The principal of a request that was checked; `None` if none is needed.
    pub(super) fn principal(&self, headers: &HeaderMap) -> Option<String> {
        self.frameworks.as_ref()?;
        let (_, pair) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
        let pair = String::from_utf8(STANDARD.decode(pair.trim()).ok()?).ok()?;
        pair.split_once(':').map(|(principal, _)| principal.to_owned())
    }

    /// Whose credentials a worker has that was checked: the name of its token, or a digest of it. `None` if it needs
    /// no token.
    pub(super) fn worker_owner(&self, headers: &HeaderMap, cluster: &str) -> Option<String> {
        let given = credentials(headers, "Bearer")?;
        // All are compared, in a time that depends on lengths alone.
        let same = self
            .workers
            .as_ref()?
            .iter()
            .fold(None, |found, it| if it.token.is_same(given) { Some(it) } else { found })?;
        let digest = || digest(&format!("{cluster} {given}"));
        Some(same.name.as_ref().map_or_else(digest, |name| format!("name {name}")))
    }

    /// Checks a request before anything else is done with it.
    ///
    /// # Errors
    /// With status and sentence, if it isn't to be answered otherwise.
    pub(super) fn check(
        &self,
        head: &Parts,
        client: &ClientConnection,
    ) -> Result<(), (StatusCode, &'static str)> {
        self.check_host(head)?;
        let Parts { method, headers, .. } = head;
        let path = head.uri.path();
        // Pages of other sites, which a browser on this machine shows, are nobody's frameworks.
        if headers.contains_key(ORIGIN) {
            return Err((StatusCode::FORBIDDEN, "web pages aren't answered"));
        }
        let right = TABLE.iter().find(|(of, at, _)| *of == method && *at == path);
        let Some((_, _, right)) = right else {
            let is_path = TABLE.iter().any(|(_, at, _)| *at == path);
            return Err(match is_path {
                true => (StatusCode::METHOD_NOT_ALLOWED, "this path has another method"),
                false => (StatusCode::NOT_FOUND, "there is nothing at this path"),
            });
        };
        let has_certificate = !self.worker_certificates || client.has_certificate.get();
        let is_framework = match &self.frameworks {
            None => true,
            Some(known) => is_one_of(headers, "Basic", known.iter()),
        };
        let is_worker = match &self.workers {
            None => true,
            Some(known) => is_one_of(headers, "Bearer", known.iter().map(|it| &it.token)),
        };
        let is_worker = is_worker && has_certificate;
        let is_allowed = match right {
            RequestRight::Frameworks => is_framework,
            RequestRight::Workers => is_worker,
            RequestRight::Either => is_framework || is_worker,
            RequestRight::Nothing => true,
        };
        let is_open = match right {
            RequestRight::Frameworks => self.frameworks.is_none(),
            RequestRight::Workers => self.workers.is_none() && !self.worker_certificates,
            // What there is may be known on this machine.
            RequestRight::Either | RequestRight::Nothing => false,
        };
        match is_allowed {
            true if is_open && !self.trusts(client) => Err((StatusCode::FORBIDDEN, OTHER_USER)),
            true => Ok(()),
            false if *right == RequestRight::Workers && !has_certificate => {
                Err((StatusCode::FORBIDDEN, NO_CERTIFICATE))
            }
            false => Err((StatusCode::UNAUTHORIZED, "credentials are needed, or these are wrong")),
        }
    }

    /// Checks the name that a request is for. A client over TLS has verified it.
    fn check_host(&self, head: &Parts) -> Result<(), (StatusCode, &'static str)> {
        match check_host(head, &self.hosts) {
            Ok(_) => Ok(()),
            Err(HostProblem::Unknown) if self.is_tls => Ok(()),
            Err(HostProblem::Unknown) => Err((
                StatusCode::MISDIRECTED_REQUEST,
                "this Host isn't answered: use the address, localhost, or a name of --hosts",
            )),
            Err(HostProblem::NotOne) => Err((StatusCode::BAD_REQUEST, "one Host is needed")),
            Err(HostProblem::ForProxy) => Err((StatusCode::BAD_REQUEST, "this is no proxy")),
        }
    }
}

/// What is wrong with the credentials of a request that was refused, in a few words for the operator; `None` if it was
/// refused for something else. The credentials aren't shown.
pub(super) fn credentials_problem(
    headers: &HeaderMap,
    (status, sentence): (StatusCode, &str),
) -> Option<&'static str> {
    match sentence {
        NO_CERTIFICATE => {
            return Some("a worker has no certificate of an authority of --worker-ca-file");
        }
        OTHER_USER => {
            return Some(
                "it is of another user, who needs credentials (--principals-file, --worker-tokens-file)",
            );
        }
        _ => {}
    }
    (status == StatusCode::UNAUTHORIZED).then(|| match headers.get(AUTHORIZATION) {
        None => "it has no credentials",
        Some(_) if credentials(headers, "Bearer").is_some() => "its token is wrong here",
        Some(_) if credentials(headers, "Basic").is_some() => {
            "its principal or secret is wrong here"
        }
        Some(_) => "its credentials are of another kind",
    })
}

/// The one `Authorization` of a request without its scheme, if it is of this scheme.
fn credentials<'h>(headers: &'h HeaderMap, scheme: &str) -> Option<&'h str> {
    let (of, text) = single_header(headers, AUTHORIZATION)?.split_once(' ')?;
    of.eq_ignore_ascii_case(scheme).then(|| text.trim())
}

/// Whether the one `Authorization` of a request is one of those that are known. All are compared, in a time that
/// depends on lengths alone.
fn is_one_of<'s>(
    headers: &HeaderMap,
    scheme: &str,
    known: impl Iterator<Item = &'s Secret>,
) -> bool {
    credentials(headers, scheme)
        .is_some_and(|given| known.fold(false, |is_any, secret| is_any | secret.is_same(given)))
}

/// The first 256 bits of the SHA-384 of a text, in hexadecimal digits. The implementation is that of TLS.
fn digest(text: &str) -> String {
    let SupportedCipherSuite::Tls13(suite) = TLS13_AES_256_GCM_SHA384 else {
        return String::new();
    };
    let hash = suite.common.hash_provider.hash(text.as_bytes());
    let digits = hash.as_ref().iter().take(32).map(|byte| format!("{byte:02x}"));
    format!("sha384 {}", digits.collect::<String>())
}

/// Refuses a token with two names, or with one and none: whose it is would depend on the order of the lines.
fn check_names(tokens: &[(usize, WorkerToken)]) -> Result<(), CredentialsError> {
    let mut known = HashMap::new();
    for (line, WorkerToken { token, name }) in tokens {
        let (first, first_name) = *known.entry(token.expose()).or_insert((line, name));
        if first_name != name {
            return Err(CredentialsError(format!(
                "lines {first} and {line} have the same token, but not the same name"
            )));
        }
    }
    Ok(())
}

/// Reads what each line says, with its number.
fn read_lines<T>(
    path: &Path,
    allowed: &str,
    read: impl Fn(&str) -> Option<T>,
) -> Result<Vec<(usize, T)>, CredentialsError> {
    use std::io::Read as _;
    let failed = |error: std::io::Error| CredentialsError(error.to_string());
    let file = open_input(path).map_err(failed)?;
    match FileAccess::of(&file).map_err(failed)? {
        FileAccess::Private => {}
        _ => {
            return Err(CredentialsError(
                "other users may read or write it; chmod 600 would do".to_owned(),
            ));
        }
    }
    let mut text = String::new();
    file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text).map_err(failed)?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(CredentialsError("it is longer than 1 MiB".to_owned()));
    }
    let lines = text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty());
    let known: Result<Vec<(usize, T)>, CredentialsError> = lines
        .map(|(line, number)| {
            let refused = || CredentialsError(format!("line {number} must have {allowed}"));
            read(line.trim()).map(|read| (number, read)).ok_or_else(refused)
        })
        .collect();
    match known {
        Ok(known) if known.is_empty() => {
            Err(CredentialsError(format!("it must have lines, each with {allowed}")))
        }
        known => known,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use hyper::Request;

    use super::*;

    fn access() -> MasterAccess {
        MasterAccess {
            frameworks: Some(vec![Secret::new("cDpz"), Secret::new("cTpz")]),
            workers: Some(vec![WorkerToken { token: Secret::new("0123456789abcdef"), name: None }]),
            ..MasterAccess::default()
        }
    }

    fn status_of(
        access: &MasterAccess,
        method: &Method,
        path: &str,
        headers: &[(&'static str, &str)],
        has_certificate: bool,
    ) -> u16 {
        status_of_user(access, method, path, headers, has_certificate, PeerUser::Own)
    }

    fn status_of_user(
        access: &MasterAccess,
        method: &Method,
        path: &str,
        headers: &[(&'static str, &str)],
        has_certificate: bool,
        user: PeerUser,
    ) -> u16 {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if !headers.iter().any(|(name, _)| *name == "host") {
            request = request.header("host", "localhost:5050");
        }
        let (head, ()) = request.body(()).unwrap().into_parts();
        let client = ClientConnection::default();
        client.has_certificate.set(has_certificate);
        client.user.set(user);
        let checked = access.check(&head, &client);
        checked.err().map_or(200, |(status, _)| status.as_u16())
    }

    fn status(method: &Method, path: &str, headers: &[(&'static str, &str)]) -> u16 {
        status_of(&access(), method, path, headers, false)
    }

    /// Goal: a worker belongs to the name of its token, or to the token, which can't be read from what is kept. Method:
    /// tokens of a file, with names and without; one that is in no line isn't anybody's.
    #[test]
    fn workers_belong_to_their_tokens() {
        use std::os::unix::fs::PermissionsExt as _;
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_permissions(std::fs::Permissions::from_mode(0o600)).unwrap();
        let lines =
            "0123456789abcdef\nfedcba9876543210\nh3 aaaaaaaaaaaaaaaa\nh3 bbbbbbbbbbbbbbbb\n";
        std::fs::write(file.path(), lines).unwrap();
        let access = MasterAccess::default().with_worker_tokens(file.path()).unwrap();
        let owner = |cluster: &str, token: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, format!("Bearer {token}").parse().unwrap());
            access.worker_owner(&headers, cluster)
        };
        let own = owner("c", "0123456789abcdef").unwrap();
        assert!(own.len() == 71 && !own.contains("0123456789abcdef"), "{own}");
        assert_eq!(owner("c", "0123456789abcdef").unwrap(), own);
        assert_ne!(owner("d", "0123456789abcdef").unwrap(), own);
        assert_ne!(owner("c", "fedcba9876543210").unwrap(), own);
        assert_eq!(owner("c", "aaaaaaaaaaaaaaaa").unwrap(), "name h3");
        assert_eq!(owner("c", "bbbbbbbbbbbbbbbb").unwrap(), "name h3");
        assert_eq!(owner("c", "cccccccccccccccc"), None);
        std::fs::write(file.path(), "h3 short\n").unwrap();
        assert!(MasterAccess::default().with_worker_tokens(file.path()).is_err());
    }

    /// Goal: whose a token is doesn't depend on the order of lines, and a name may have several tokens, a principal
    /// several secrets. Method: a token under two names, and with one and none; the sentence names lines, not the
    /// token.
    #[test]
    fn a_token_has_one_name() {
        use std::os::unix::fs::PermissionsExt as _;
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_permissions(std::fs::Permissions::from_mode(0o600)).unwrap();
        for (lines, expected) in [
            ("h1 aaaaaaaaaaaaaaaa\n\nh2 aaaaaaaaaaaaaaaa\n", Some("lines 1 and 3 have")),
            (
                "h1 bbbbbbbbbbbbbbbb\naaaaaaaaaaaaaaaa\nh1 aaaaaaaaaaaaaaaa",
                Some("lines 2 and 3 have"),
            ),
            ("h1 aaaaaaaaaaaaaaaa\nh1 bbbbbbbbbbbbbbbb\nh1 aaaaaaaaaaaaaaaa\n", None),
        ] {
            std::fs::write(file.path(), lines).unwrap();
            let read = MasterAccess::default().with_worker_tokens(file.path());
            let error = read.err().map(|error| error.to_string());
            assert_eq!(error.is_some(), expected.is_some(), "{error:?}");
            if let (Some(error), Some(expected)) = (error, expected) {
                assert!(error.starts_with(expected) && !error.contains("aaaa"), "{error}");
            }
        }
        std::fs::write(file.path(), "etl old\netl new\n").unwrap();
        let access = MasterAccess::default().with_principals(file.path()).unwrap();
        for (pair, expected) in [("etl:old", 200), ("etl:new", 200), ("etl:other", 401)] {
            let header = [("authorization", &*format!("Basic {}", STANDARD.encode(pair)))];
            let status = status_of(&access, &Method::POST, SCHEDULER_PATH, &header, false);
            assert_eq!(status, expected, "{pair}");
        }
    }

    /// Goal: a site whose name was made to point to this machine gets nothing, except over TLS, where its browser has
    /// refused the certificate. Method: a name that isn't this master's, one that is, and none, with and without TLS.
    #[test]
    fn only_own_names_are_answered() {
        let access = MasterAccess::default().with_hosts(["M1.example".to_owned()]);
        let ask = |access: &MasterAccess, host: &str| {
            status_of(access, &Method::GET, STATE_PATH, &[("host", host)], false)
        };
        for (host, expected) in
            [("m1.example:5050", 200), ("127.0.0.1:5050", 200), ("evil.example", 421), ("", 421)]
        {
            assert_eq!(ask(&access, host), expected, "{host:?}");
        }
        let access = MasterAccess { is_tls: true, ..access };
        assert_eq!(ask(&access, "evil.example"), 200);
        let two = [("host", "localhost"), ("host", "localhost")];
        assert_eq!(status_of(&access, &Method::GET, STATE_PATH, &two, false), 400);
    }

    /// Goal: what needs a right for which there are no credentials is done for this user's programs and root's alone,
    /// unless all users are answered, or the system doesn't tell whose a program is; what there is may be known.
    /// Method: all requests that need a right, of each kind of user, with and without each kind of credentials.
    #[test]
    fn other_users_need_credentials() {
        let framework = [("authorization", "Basic cTpz")];
        let ask = |access: &MasterAccess, method: &Method, path: &str, user: PeerUser, headers| {
            status_of_user(access, method, path, headers, false, user)
        };
        let open = MasterAccess::default();
        let insecure = MasterAccess { answers_all_users: true, ..MasterAccess::default() };
        for (method, path, right) in TABLE {
            let is_reading = matches!(right, RequestRight::Either | RequestRight::Nothing);
            let expected = if is_reading { 200 } else { 403 };
            assert_eq!(ask(&open, method, path, PeerUser::Other, &[]), expected, "{path}");
            for user in [PeerUser::Own, PeerUser::Untold] {
                assert_eq!(ask(&open, method, path, user, &[]), 200, "{path}");
            }
            assert_eq!(ask(&insecure, method, path, PeerUser::Other, &[]), 200, "{path}");
        }
        assert!(open.looks_up_users() && !insecure.looks_up_users() && !access().looks_up_users());
        let workers_alone = MasterAccess { frameworks: None, ..access() };
        let frameworks_alone = MasterAccess { workers: None, ..access() };
        let other = PeerUser::Other;
        assert_eq!(ask(&workers_alone, &Method::POST, SCHEDULER_PATH, other, &framework), 403);
        assert_eq!(ask(&frameworks_alone, &Method::POST, SCHEDULER_PATH, other, &framework), 200);
        assert_eq!(ask(&frameworks_alone, &Method::POST, WORKER_PATH, other, &[]), 403);
        assert!(workers_alone.looks_up_users() && frameworks_alone.looks_up_users());
        let certificates = frameworks_alone.with_worker_certificates();
        assert_eq!(ask(&certificates, &Method::POST, WORKER_PATH, other, &[]), 403);
        assert!(!certificates.looks_up_users());
    }

    /// Goal: if workers must show certificates, a token alone is not enough, nor a certificate alone; frameworks need
    /// none. Method: each with and without.
    #[test]
    fn workers_may_need_certificates() {
        let access = access().with_worker_certificates();
        let token = [("authorization", "Bearer 0123456789abcdef")];
        for (headers, has_certificate, expected) in
            [(&token[..], true, 200), (&token, false, 403), (&[], true, 401)]
        {
            let status = status_of(&access, &Method::POST, WORKER_PATH, headers, has_certificate);
            assert_eq!(status, expected);
        }
        let framework = [("authorization", "Basic cTpz")];
        assert_eq!(status_of(&access, &Method::POST, SCHEDULER_PATH, &framework, false), 200);
        let certificates = MasterAccess::default().with_worker_certificates();
        assert_eq!(certificates.missing(), ["principals"]);
    }

    /// Goal: a file that is too long is refused: none of its lines is lost silently. Method: one of just the longest
    /// length, and one with a line more.
    #[test]
    fn a_long_file_is_refused() {
        use std::os::unix::fs::PermissionsExt as _;
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_permissions(std::fs::Permissions::from_mode(0o600)).unwrap();
        let read = |text: &str| {
            std::fs::write(file.path(), text).unwrap();
            MasterAccess::default().with_worker_tokens(file.path())
        };
        let text = "0123456789abcde\n".repeat(1 << 16).replace("e\n", "ef");
        assert_eq!(text.len() as u64, FILE_BYTES_MAX);
        assert!(read(&text).is_ok());
        let error = read(&format!("{text}\nfedcba9876543210\n")).unwrap_err().to_string();
        assert!(error.contains("longer than 1 MiB"), "{error}");
    }

    /// Goal: no request is answered that the table doesn't name, and each that it names needs its credentials. Method:
    /// all methods on all paths, with none, the wrong, the other's, a doubled and the right authorization.
    #[test]
    fn what_the_table_does_not_name_is_refused() {
        let framework = ("authorization", "Basic cTpz");
        let worker = ("authorization", "bearer 0123456789abcdef");
        let served = TABLE.iter().map(|(_, path, _)| *path);
        for path in served.chain(["/", "/api/v1", "/teardown"]) {
            for method in [Method::GET, Method::POST, Method::PUT, Method::OPTIONS, Method::DELETE]
            {
                let right = TABLE.iter().find(|(of, at, _)| **of == method && *at == path);
                let right = right.map(|(_, _, right)| *right);
                let known = TABLE.iter().any(|(_, at, _)| *at == path);
                let unnamed = if known { 405 } else { 404 };
                let expected = |is_allowed: fn(RequestRight) -> bool| match right {
                    None => unnamed,
                    Some(right) if is_allowed(right) => 200,
                    Some(_) => 401,
                };
                let none = expected(|right| right == RequestRight::Nothing);
                assert_eq!(status(&method, path, &[]), none, "{method} {path}");
                for wrong in ["Basic cTpzz", "Basic", "Bearer cTpz", "Basic 0123456789abcdef", ""] {
                    let wrong = [("authorization", wrong)];
                    assert_eq!(status(&method, path, &wrong), none, "{method} {path} {wrong:?}");
                }
                assert_eq!(status(&method, path, &[framework, framework]), none);
                let as_framework = expected(|right| right != RequestRight::Workers);
                assert_eq!(status(&method, path, &[framework]), as_framework, "{method} {path}");
                let as_worker = expected(|right| right != RequestRight::Frameworks);
                assert_eq!(status(&method, path, &[worker]), as_worker, "{method} {path}");
                let page = ("origin", "http://127.0.0.1:5050");
                assert_eq!(status(&method, path, &[page, framework]), 403, "{method} {path}");
            }
        }
    }
}
