//! HTTP/1.1 connections to masters over TCP or TLS: kept alive, with one request at a time.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http_body_util::BodyExt;
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderName, HeaderValue};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use zeroize::Zeroizing;

use super::masters::Master;
use super::request_body::RequestBody;
use crate::cluster::error_chain::with_causes;
use crate::config::text::format_duration;
use crate::launch::Secret;

/// The maximum number of bytes of an error response that are read. Fewer are displayed.
const ANSWER_BYTES_MAX: usize = 4096;
const ANSWER_CHARS_SHOWN: usize = 240;

/// The credentials of all calls.
pub(crate) struct Authorization {
    header: HeaderValue,
    /// Texts that must never be displayed, in the forms in which a server could send them back.
    secrets: Vec<Secret>,
}

impl Authorization {
    /// A principal and its secret (RFC 7617). `None` if they can't be sent.
    pub(crate) fn basic(principal: &str, secret: &Secret) -> Option<Authorization> {
        let plain = Zeroizing::new(format!("{principal}:{}", secret.expose()));
        let pair = Secret::new(STANDARD.encode(&*plain));
        Authorization::new("Basic", &pair, &[&pair, secret])
    }

    /// A token (RFC 6750). `None` if it can't be sent.
    #[cfg(feature = "local")]
    pub(crate) fn bearer(token: &Secret) -> Option<Authorization> {
        Authorization::new("Bearer", token, &[token])
    }

    fn new(scheme: &str, value: &Secret, secrets: &[&Secret]) -> Option<Authorization> {
        let text = Zeroizing::new(format!("{scheme} {}", value.expose()));
        let mut header = HeaderValue::try_from(&*text).ok()?;
        header.set_sensitive(true);
        let secrets = secrets.iter().flat_map(|secret| displayed_forms(secret)).collect();
        Some(Authorization { header, secrets })
    }
}

/// The HTTP client for masters: encoding, credentials and timeouts.
pub(crate) struct Http {
    path: Cow<'static, str>,
    tls: Option<TlsConnector>,
    media: HeaderValue,
    authorization: Option<Authorization>,
    call_timeout: Duration,
}

impl Http {
    /// Creates a client that posts to `path`, in TLS if there is a connector.
    pub(crate) fn new(
        path: impl Into<Cow<'static, str>>,
        media: &'static str,
        authorization: Option<Authorization>,
        tls: Option<TlsConnector>,
        call_timeout: Duration,
    ) -> Http {
        let path = path.into();
        Http { path, tls, media: HeaderValue::from_static(media), authorization, call_timeout }
    }

    /// Whether calls contain a secret.
    pub(crate) fn has_credential(&self) -> bool {
        self.authorization.is_some()
    }

    /// Connects to a master.
    pub(crate) async fn connect(&self, master: &Master) -> Result<Connection, String> {
        let connecting = async {
            let stream = TcpStream::connect((master.host.as_str(), master.port)).await;
            let stream = stream.map_err(|error| plain(&error))?;
            let _slower = stream.set_nodelay(true);
            match &self.tls {
                None => shake_hands(stream).await,
                Some(tls) => {
                    let name = ServerName::try_from(master.host.clone())
                        .map_err(|_| "its name can't be in a certificate".to_owned())?;
                    let stream = tls.connect(name, stream).await;
                    shake_hands(stream.map_err(|error| tls_problem(&error.to_string()))?).await
                }
            }
        };
        let connected = timeout(self.call_timeout, connecting).await;
        let (sender, driver) = connected.map_err(|_| self.too_slow("no connection"))??;
        let host = HeaderValue::try_from(master.to_string())
            .map_err(|_| "its name can't be sent".to_owned())?;
        Ok(Connection { sender, host, _driver: Driver(driver) })
    }

    /// Sends a call with a header of its own, and waits for the head of the response.
    pub(crate) async fn post(
        &self,
        connection: &mut Connection,
        header: Option<(&HeaderName, &HeaderValue)>,
        body: impl Into<RequestBody>,
    ) -> Result<Response<Incoming>, Unanswered> {
        let unsent = |why: String| Unanswered { why, is_unsent: true };
        let mut request = Request::post(&*self.path)
            .header(HOST, &connection.host)
            .header(CONTENT_TYPE, &self.media)
            .header(ACCEPT, &self.media);
        if let Some((name, value)) = header {
            request = request.header(name, value);
        }
        if let Some(Authorization { header, .. }) = &self.authorization {
            request = request.header(AUTHORIZATION, header);
        }
        let request = request.body(body.into());
        let request = request.map_err(|error| unsent(error.to_string()))?;
        let answering = async {
            connection.sender.ready().await.map_err(|error| unsent(plain(&error)))?;
            connection.sender.try_send_request(request).await.map_err(|mut error| Unanswered {
                is_unsent: error.take_message().is_some(),
                why: http_problem(plain(error.error())),
            })
        };
        match timeout(self.call_timeout, answering).await {
            Ok(answered) => answered,
            Err(_) => Err(Unanswered { why: self.too_slow("no answer"), is_unsent: false }),
        }
    }

    /// Describes an error response for display: its status and the beginning of its body, without secrets.
    pub(crate) async fn explain(&self, response: Response<Incoming>) -> String {
        let status = response.status();
        let body = timeout(self.call_timeout, read_some(response.into_body())).await;
        let text = self.sanitize(&String::from_utf8_lossy(&body.unwrap_or_default()));
        let reason = status.canonical_reason().unwrap_or_default();
        let status = format!("{} {reason}", status.as_u16());
        if text.is_empty() {
            status.trim().to_owned()
        } else {
            format!("{}: {text}", status.trim())
        }
    }

    /// Reads a response to its end, so that its connection can be reused. Returns `false` if that isn't possible.
    pub(crate) async fn finish(&self, response: Response<Incoming>) -> bool {
        let body = response.into_body();
        let empty = async {
            let mut body = body;
            let mut bytes = 0;
            while let Some(frame) = body.frame().await {
                let Ok(frame) = frame else { return false };
                bytes += frame.data_ref().map_or(0, Bytes::len);
                if bytes > ANSWER_BYTES_MAX {
                    return false;
                }
            }
            true
        };
        timeout(self.call_timeout, empty).await.unwrap_or(false)
    }

    /// Returns a server's text on one line, shortened, without control characters and secrets.
    pub(crate) fn sanitize(&self, text: &str) -> String {
        let text = self.without_secrets(text.to_owned());
        let is_bad = |c: char| c.is_control() || c.is_whitespace();
        let words: Vec<&str> = text.split(is_bad).filter(|word| !word.is_empty()).collect();
        // Once more: white space within a secret may have been other white space.
        let line = self.without_secrets(words.join(" "));
        match line.char_indices().nth(ANSWER_CHARS_SHOWN) {
            Some((end, _)) => format!("{} …", line.get(..end).unwrap_or_default()),
            None => line,
        }
    }

    fn without_secrets(&self, mut text: String) -> String {
        for secret in self.authorization.iter().flat_map(|it| &it.secrets) {
            text = text.replace(secret.expose(), "…");
            cut_partial(&mut text, secret.expose());
        }
        text
    }

    fn too_slow(&self, what: &str) -> String {
        format!("{what} within {}", format_duration(self.call_timeout))
    }
}

/// The forms in which a text may show a secret: as it is, with single blanks for its white space, and each of these as
/// a string of JSON, with and without escaped slashes. Longer ones first, because a form may contain another.
fn displayed_forms(secret: &Secret) -> Vec<Secret> {
    let plain = Zeroizing::new(secret.expose().to_owned());
    let words: Vec<&str> = plain.split(|c: char| c.is_control() || c.is_whitespace()).collect();
    let words = words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    let mut forms = Vec::new();
    for form in [plain, Zeroizing::new(words)] {
        let json = Zeroizing::new(serde_json::to_string(&*form).unwrap_or_default());
        let escaped = json.strip_prefix('"').and_then(|json| json.strip_suffix('"'));
        let escaped = Zeroizing::new(escaped.unwrap_or_default().to_owned());
        let slashes = Zeroizing::new(escaped.replace('/', "\\/"));
        forms.extend([form, escaped, slashes].iter().map(|form| Secret::new(form.as_str())));
    }
    forms.retain(|form| !form.is_empty());
    forms.sort_by_key(|form| std::cmp::Reverse(form.expose().len()));
    forms.dedup();
    forms
}

/// The least number of bytes of a secret that are removed from the end of a text.
const PARTIAL_BYTES_MIN: usize = 4;

/// Removes the beginning of a secret from the end of a text, which may have been cut there, perhaps within a character
/// or with dots as a mark.
fn cut_partial(text: &mut String, secret: &str) {
    let kept = text.trim_end_matches(['.', char::REPLACEMENT_CHARACTER]).len();
    let bytes = text.as_bytes();
    let is_at = |end: usize, length: usize| {
        let beginning = secret.as_bytes().get(..length);
        beginning
            .is_some_and(|beginning| bytes.get(..end).is_some_and(|it| it.ends_with(beginning)))
    };
    let lengths = || (PARTIAL_BYTES_MIN..secret.len()).rev();
    for end in [text.len(), kept] {
        if let Some(length) = lengths().find(|length| is_at(end, *length)) {
            // The secret begins with a whole character.
            text.truncate(end - length);
            text.push('…');
            return;
        }
    }
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http").field("media", &self.media).finish_non_exhaustive()
    }
}

/// A connection over which calls are sent, one after the other.
#[derive(Debug)]
pub(crate) struct Connection {
    sender: SendRequest<RequestBody>,
    host: HeaderValue,
    _driver: Driver,
}

impl Connection {
    /// Whether the connection is known to be closed by the server.
    pub(crate) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }
}

/// The task that reads and writes. It ends with the connection.
#[derive(Debug)]
struct Driver(JoinHandle<()>);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The failure of a call that got no response.
#[derive(Debug)]
pub(crate) struct Unanswered {
    pub(crate) why: String,
    /// Nothing of the call was sent. Otherwise the call may have had its effect.
    pub(crate) is_unsent: bool,
}

async fn shake_hands<S>(stream: S) -> Result<(SendRequest<RequestBody>, JoinHandle<()>), String>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (sender, connection) =
        handshake(TokioIo::new(stream)).await.map_err(|error| plain(&error))?;
    let driver = tokio::spawn(async move {
        // The error is also returned to the caller that sent the request.
        let _told = connection.await;
    });
    Ok((sender, driver))
}

async fn read_some(mut body: Incoming) -> Vec<u8> {
    let mut text = Vec::new();
    while let Some(Ok(frame)) = body.frame().await {
        if let Some(data) = frame.data_ref() {
            let room = ANSWER_BYTES_MAX - text.len();
            text.extend_from_slice(data.get(..room.min(data.len())).unwrap_or_default());
        }
        if text.len() >= ANSWER_BYTES_MAX {
            break;
        }
    }
    text
}

/// Why TLS failed, with what would help. A server may be mended, so that it is tried again all the same.
fn tls_problem(why: &str) -> String {
    let is = |texts: &[&str]| texts.iter().any(|text| why.contains(text));
    let meaning = if is(&["corrupt message", "InvalidContentType"]) {
        "it doesn't speak TLS: use http:// (without files for TLS), or give the server a certificate"
    } else if is(&["UnknownIssuer"]) {
        "its certificate is of no authority that is trusted here; --ca-file names the file of one"
    } else if is(&["NotValidForName", "not valid for name"]) {
        "its certificate is for other names than the one it is reached by"
    } else if is(&["Expired", "expired"]) {
        "its certificate has expired"
    } else {
        return format!("TLS: {why}");
    };
    format!("{meaning} (TLS: {why})")
}

/// The same of an exchange without TLS: what isn't HTTP may be TLS.
fn http_problem(why: String) -> String {
    match why.contains("invalid HTTP version") {
        true => format!("it doesn't answer in HTTP; if it speaks TLS, use https:// ({why})"),
        false => why,
    }
}

/// Formats an error and its causes on one line.
pub(crate) fn plain(error: &(dyn std::error::Error + 'static)) -> String {
    if is_cut_off(error) {
        return "the connection was closed".to_owned();
    }
    with_causes(error.to_string(), error)
}

/// Whether the error means that the connection was closed during an exchange.
fn is_cut_off(error: &(dyn std::error::Error + 'static)) -> bool {
    use std::io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    std::iter::successors(Some(error), |error| error.source()).any(|error| {
        let io = error.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
        let hyper = error.downcast_ref::<hyper::Error>();
        io.is_some_and(|kind| matches!(kind, BrokenPipe | ConnectionReset | UnexpectedEof))
            || hyper.is_some_and(|it| it.is_incomplete_message() || it.is_closed())
    })
}

/// Whether the status means that another master leads, or that none leads yet.
pub(crate) fn is_other_leader(status: StatusCode) -> bool {
    status == StatusCode::SERVICE_UNAVAILABLE || status.is_redirection()
}

/// An [`Http`] that is shared by tasks.
pub(crate) type SharedHttp = Arc<Http>;

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the secret isn't shown in whatever form a server sends it back. Method: secrets with blanks, quotation
    /// marks and slashes, as they are, with other white space, as strings of JSON, in base 64, and cut at the end.
    #[test]
    fn no_form_of_the_secret_is_shown() {
        for secret in ["correct horse battery", "hun\"ter2zz", "a/b/c+d1", "tab\there\\now"] {
            let authorization = Authorization::basic("etl", &Secret::new(secret));
            let second = Duration::from_secs(1);
            let http = Http::new("/", "application/json", authorization, None, second);
            let json = serde_json::to_string(secret).unwrap();
            let sent = STANDARD.encode(format!("etl:{secret}"));
            for echo in [
                secret.to_owned(),
                secret.replace(' ', " \t\n "),
                format!("{{\"secret\":{json}}}"),
                json.replace('/', "\\/"),
                format!("{secret:?}"),
                sent.clone(),
                sent.replace('/', "\\/"),
                secret[..secret.len() - 1].to_owned(),
            ] {
                let shown = http.sanitize(&format!("got {echo}"));
                let is_hidden = shown.contains('…') && !shown.contains(&secret[secret.len() - 4..]);
                assert!(is_hidden && !shown.contains(&secret[..4]), "{echo:?}: {shown}");
            }
            assert_eq!(http.sanitize("no such framework"), "no such framework");
        }
    }
}
