//! Who may do what: one table of requests and rights, and one check before anything of a request is read.

use std::fmt;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::header::{AUTHORIZATION, HeaderMap, ORIGIN};
use hyper::{Method, StatusCode};

use crate::cluster::standalone::protocol::WORKER_PATH;
use crate::launch::Secret;
use crate::private_files::{FileAccess, open_input};

/// The path of Mesos' scheduler API.
pub(super) const SCHEDULER_PATH: &str = "/api/v1/scheduler";
/// The path of the counts.
pub(super) const STATE_PATH: &str = "/state";
/// The path that says that the master answers.
pub(super) const HEALTH_PATH: &str = "/health";

/// What a request needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestRight {
    Frameworks,
    Workers,
    Either,
    Nothing,
}

/// All requests that are answered.
const TABLE: [(&Method, &str, RequestRight); 4] = [
    (&Method::POST, SCHEDULER_PATH, RequestRight::Frameworks),
    (&Method::POST, WORKER_PATH, RequestRight::Workers),
    (&Method::GET, STATE_PATH, RequestRight::Either),
    (&Method::GET, HEALTH_PATH, RequestRight::Nothing),
];

/// The longest file of credentials, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Who is known. Without any principal, all may register frameworks; without any token, all may register workers.
#[derive(Clone, Debug, Default)]
pub struct MasterCredentials {
    /// `Basic` and the principal with its secret in base 64, as frameworks send it.
    frameworks: Option<Vec<Secret>>,
    /// `Bearer` and the token, as workers send it.
    workers: Option<Vec<Secret>>,
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

impl MasterCredentials {
    /// Lets only the principals of a file register frameworks. A line has a principal, a blank, and its secret.
    ///
    /// # Errors
    /// If the file can't be read, others may read it, or a line isn't of this form.
    pub fn with_principals(self, path: &Path) -> Result<MasterCredentials, CredentialsError> {
        let line = |line: &str| {
            let (principal, secret) = line.split_once(' ')?;
            let is_usable = !principal.is_empty() && !principal.contains(':') && !secret.is_empty();
            let encoded = STANDARD.encode(format!("{principal}:{secret}"));
            is_usable.then(|| Secret::new(encoded))
        };
        let known = read_lines(path, "a principal without ':', a blank, and its secret", line)?;
        Ok(MasterCredentials { frameworks: Some(known), ..self })
    }

    /// Lets only workers with a token of a file register. A line has a token of at least 16 characters.
    ///
    /// # Errors
    /// If the file can't be read, others may read it, or a line isn't of this form.
    pub fn with_worker_tokens(self, path: &Path) -> Result<MasterCredentials, CredentialsError> {
        let line = |line: &str| {
            let is_usable = line.len() >= 16 && line.bytes().all(|byte| byte.is_ascii_graphic());
            is_usable.then(|| Secret::new(line))
        };
        let known = read_lines(path, "a token of at least 16 characters", line)?;
        Ok(MasterCredentials { workers: Some(known), ..self })
    }

    /// The principal of a request that was checked; `None` if none is needed.
    pub(super) fn principal(&self, headers: &HeaderMap) -> Option<String> {
        self.frameworks.as_ref()?;
        let (_, pair) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
        let pair = String::from_utf8(STANDARD.decode(pair.trim()).ok()?).ok()?;
        pair.split_once(':').map(|(principal, _)| principal.to_owned())
    }

    /// Checks a request before anything else is done with it.
    ///
    /// # Errors
    /// With status and sentence, if it isn't to be answered otherwise.
    pub(super) fn check(
        &self,
        method: &Method,
        path: &str,
        headers: &HeaderMap,
    ) -> Result<(), (StatusCode, &'static str)> {
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
        let has = |scheme: &str, known: &Option<Vec<Secret>>| {
            known.as_ref().is_none_or(|known| is_known(headers, scheme, known))
        };
        let is_allowed = match right {
            RequestRight::Frameworks => has("Basic", &self.frameworks),
            RequestRight::Workers => has("Bearer", &self.workers),
            RequestRight::Either => has("Basic", &self.frameworks) || has("Bearer", &self.workers),
            RequestRight::Nothing => true,
        };
        match is_allowed {
            true => Ok(()),
            false => Err((StatusCode::UNAUTHORIZED, "credentials are needed, or these are wrong")),
        }
    }
}

/// Whether the one `Authorization` of a request is one of those that are known. All are compared, in a time that
/// depends on lengths alone.
fn is_known(headers: &HeaderMap, scheme: &str, known: &[Secret]) -> bool {
    let mut given = headers.get_all(AUTHORIZATION).iter();
    let (Some(first), None) = (given.next(), given.next()) else { return false };
    let Some((of, text)) = first.to_str().ok().and_then(|text| text.split_once(' ')) else {
        return false;
    };
    let text = text.trim();
    let is_any = known.iter().fold(false, |is_any, secret| is_any | secret.is_same(text));
    of.eq_ignore_ascii_case(scheme) && is_any
}

fn read_lines(
    path: &Path,
    allowed: &str,
    read: impl Fn(&str) -> Option<Secret>,
) -> Result<Vec<Secret>, CredentialsError> {
    use std::io::Read as _;
    let failed = |error: std::io::Error| CredentialsError(error.to_string());
    let file = open_input(path).map_err(failed)?;
    match FileAccess::of(&file).map_err(failed)? {
        FileAccess::Private => {}
        _ => return Err(CredentialsError("other users may read or write it".to_owned())),
    }
    let mut text = String::new();
    file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text).map_err(failed)?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(CredentialsError("it is longer than 1 MiB".to_owned()));
    }
    let lines = text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty());
    let known: Result<Vec<Secret>, CredentialsError> = lines
        .map(|(line, number)| {
            let refused = || CredentialsError(format!("line {number} must have {allowed}"));
            read(line.trim()).ok_or_else(refused)
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
    use super::*;

    fn credentials() -> MasterCredentials {
        MasterCredentials {
            frameworks: Some(vec![Secret::new("cDpz"), Secret::new("cTpz")]),
            workers: Some(vec![Secret::new("0123456789abcdef")]),
        }
    }

    fn status(method: &Method, path: &str, headers: &[(&'static str, &str)]) -> u16 {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        let checked = credentials().check(method, path, &map);
        checked.err().map_or(200, |(status, _)| status.as_u16())
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
            MasterCredentials::default().with_worker_tokens(file.path())
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
        for path in
            [SCHEDULER_PATH, WORKER_PATH, STATE_PATH, HEALTH_PATH, "/", "/api/v1", "/state/"]
        {
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
