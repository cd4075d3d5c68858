//! A connection to a master: dials, registers, and reads the master's messages until it ends. Both directions are the
//! bodies of one request.

use hyper::StatusCode;
use hyper::body::Bytes;
use hyper::header::LOCATION;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::config::WorkerConfig;
use crate::cluster::http_client::{
    Authorization, Http, Master, RecordStream, RequestBody, SharedHttp, StreamItem, TlsFiles,
    TlsOptions,
};
use crate::cluster::standalone::protocol::{
    EXECUTORS_MAX, HEARTBEAT_SECONDS, MESSAGE_BYTES_MAX, SILENCE_SECONDS, WORKER_PATH, WorkerEvent,
    decode_event,
};
use crate::error::Error;

/// The number of heartbeats that may be missing.
const HEARTBEATS_MISSED_MAX: u32 = (SILENCE_SECONDS / HEARTBEAT_SECONDS) as u32;
/// The maximum number of the master's messages that wait to be handled.
const EVENTS_WAITING_MAX: usize = 64;
/// The maximum number of the worker's messages that wait to be sent: all updates of all executors, twice.
const CALLS_WAITING_MAX: usize = 8 * EXECUTORS_MAX;

/// What a connection reports.
#[derive(Debug)]
pub(super) enum LinkEvent {
    /// There is a connection, over which the worker is to register.
    Connected(oneshot::Sender<(Bytes, mpsc::Receiver<Bytes>)>),
    /// The master has sent a message.
    Event(Box<WorkerEvent>),
    /// The connection has ended, or none could be made.
    Ended(LinkEnd),
}

/// Why a connection has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LinkEnd {
    /// For now.
    Lost(String),
    /// Another master leads.
    Elsewhere(String),
    /// The master doesn't accept the credentials.
    Unauthorized(String),
}

/// A connection that is being made, or is open. Dropping it closes it.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) events: mpsc::Receiver<LinkEvent>,
    /// Takes messages, once the registration was sent.
    calls: Option<mpsc::Sender<Bytes>>,
    task: JoinHandle<()>,
}

impl Link {
    /// Begins to connect to a master.
    pub(super) fn dial(client: SharedHttp, config: &WorkerConfig, master: Master) -> Link {
        let (sender, events) = mpsc::channel(EVENTS_WAITING_MAX);
        let has_certificate = config.masters.tls().then_some(config.client_certificate.is_some());
        let settings = (config.heartbeat.as_secs_f64(), has_certificate);
        let work = async move {
            let end = converse(&client, &master, settings, &sender).await;
            // The worker has given the connection up meanwhile.
            let _given_up = sender.send(LinkEvent::Ended(end)).await;
        };
        Link { events, calls: None, task: tokio::spawn(work) }
    }

    /// Sends the registration, which must be the first message.
    pub(super) fn register(
        &mut self,
        reply: oneshot::Sender<(Bytes, mpsc::Receiver<Bytes>)>,
        frame: Vec<u8>,
    ) {
        let (calls, receiver) = mpsc::channel(CALLS_WAITING_MAX);
        self.calls = Some(calls);
        // If the connection has ended meanwhile, that is reported next.
        let _ended = reply.send((Bytes::from(frame), receiver));
    }

    /// Sends a message. Returns whether the connection takes it.
    pub(super) fn send(&self, frame: Vec<u8>) -> bool {
        self.calls.as_ref().is_some_and(|calls| calls.try_send(Bytes::from(frame)).is_ok())
    }

    /// Ends the body of the request, and waits until the master has closed the connection. What was sent before has
    /// arrived then.
    pub(super) async fn finish(mut self) {
        self.calls = None;
        while let Some(event) = self.events.recv().await {
            if matches!(event, LinkEvent::Ended(_)) {
                return;
            }
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Creates the client.
///
/// # Errors
/// If the files for TLS can't be used, or the token can't be sent.
pub(super) fn client(config: &WorkerConfig) -> Result<Http, Error> {
    let tls_options = config.masters.tls().then_some(TlsOptions {
        ca_file: config.ca_file.as_deref(),
        ca_file_only: config.ca_file_only,
        client_certificate: config.client_certificate.as_ref(),
        ca_setting: "--ca-file",
    });
    let tls = TlsFiles::default().take(tls_options)?;
    let authorization = match &config.token {
        None => None,
        Some(token) => {
            let allowed = "letters, digits and -._~+/=";
            let made = Authorization::bearer(token);
            Some(made.ok_or_else(|| Error::setting("token", "…", allowed))?)
        }
    };
    let media = "application/json";
    Ok(Http::new(WORKER_PATH, media, authorization, tls, config.call_timeout))
}

/// Connects, registers and reads. Returns why that ended. Without TLS it isn't said whether there is a certificate.
async fn converse(
    client: &Http,
    master: &Master,
    (heartbeat, has_certificate): (f64, Option<bool>),
    events: &mpsc::Sender<LinkEvent>,
) -> LinkEnd {
    let mut records = match open(client, master, has_certificate, events).await {
        Ok(records) => records,
        Err(end) => return end,
    };
    records.expect_heartbeats(Some(heartbeat));
    loop {
        let event = match records.next().await {
            Ok(StreamItem::Record(record)) => decode_event(&record).map_err(|it| it.to_string()),
            Ok(StreamItem::Skipped(why)) | Err(why) => Err(why),
        };
        match event {
            Ok(event) => {
                if let WorkerEvent::Subscribed { heartbeat: Some(milliseconds), .. } = &event {
                    records.expect_heartbeats(Some(*milliseconds as f64 / 1000.0));
                }
                let event = sanitize(client, event);
                if events.send(LinkEvent::Event(Box::new(event))).await.is_err() {
                    return LinkEnd::Lost("it was given up".to_owned());
                }
            }
            // What a command was that can't be used isn't known, so that the master must be told what there is.
            Err(why) => return LinkEnd::Lost(client.sanitize(&why)),
        }
    }
}

/// The event with its text, if it has one, as people may be shown it.
fn sanitize(client: &Http, event: WorkerEvent) -> WorkerEvent {
    match event {
        WorkerEvent::Refused { why, may_retry } => {
            WorkerEvent::Refused { why: client.sanitize(&why), may_retry }
        }
        event => event,
    }
}

/// Connects, and sends the registration.
async fn open(
    client: &Http,
    master: &Master,
    has_certificate: Option<bool>,
    events: &mpsc::Sender<LinkEvent>,
) -> Result<RecordStream, LinkEnd> {
    let mut connection = client.connect(master).await.map_err(LinkEnd::Lost)?;
    let given_up = || LinkEnd::Lost("it was given up".to_owned());
    let (reply, registration) = oneshot::channel();
    events.send(LinkEvent::Connected(reply)).await.map_err(|_| given_up())?;
    let (frame, calls) = registration.await.map_err(|_| given_up())?;
    let body = RequestBody::Open { first: Some(frame), rest: calls };
    let response = client.post(&mut connection, None, body).await;
    let response = response.map_err(|unanswered| LinkEnd::Lost(unanswered.why))?;
    let status = response.status();
    if status == StatusCode::OK {
        let body = response.into_body();
        let peer = "the master";
        return Ok(RecordStream::new(
            peer,
            body,
            connection,
            MESSAGE_BYTES_MAX,
            HEARTBEATS_MISSED_MAX,
        ));
    }
    if status.is_redirection() {
        let location = response.headers().get(LOCATION).and_then(|it| it.to_str().ok());
        return Err(LinkEnd::Elsewhere(location.unwrap_or_default().to_owned()));
    }
    let why = client.explain(response).await;
    Err(match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            LinkEnd::Unauthorized(refusal(client, status, has_certificate, &why))
        }
        _ => LinkEnd::Lost(why),
    })
}

/// What the worker's credentials lack: a master that wants a certificate answers 403, and one that wants a token 401.
/// Without TLS, a master that answers programs of its own user alone answers 403.
fn refusal(client: &Http, status: StatusCode, has_certificate: Option<bool>, why: &str) -> String {
    match (status, has_certificate, client.has_credential()) {
        (StatusCode::FORBIDDEN, None, _) => {
            format!("{why}; for workers of other users it needs --worker-tokens-file")
        }
        (StatusCode::FORBIDDEN, Some(false), _) => format!(
            "it wants a certificate of this worker ({why}); give --client-certificate-file and --client-key-file"
        ),
        (StatusCode::FORBIDDEN, Some(true), _) => format!(
            "it doesn't accept this worker's certificate ({why}); --client-certificate-file must be of an authority \
             in its --worker-ca-file"
        ),
        (_, _, true) => format!("it doesn't accept the token ({why})"),
        (_, _, false) => format!("it requires a token ({why}); give --token-file"),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::launch::Secret;

    /// Goal: the text of a refusal shows no secret and no line break. Method: a refusal with the token and controls.
    #[test]
    fn refusals_are_sanitized() {
        let mut config = WorkerConfig::new("http://127.0.0.1:5050".parse().unwrap());
        config.token = Some(Secret::new("hush-hush-hush"));
        let client = client(&config).unwrap();
        let why = "no\nhush-hush-hush\u{1b}[2J".to_owned();
        let WorkerEvent::Refused { why, may_retry: true } =
            sanitize(&client, WorkerEvent::Refused { why, may_retry: true })
        else {
            panic!("another message")
        };
        assert!(!why.contains("hush-hush") && !why.contains(char::is_control), "{why:?}");
    }
}
