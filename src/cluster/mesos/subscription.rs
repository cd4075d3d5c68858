//! The event stream of one subscription: SUBSCRIBE, its answer, and the records that follow.

use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue, LOCATION};
use hyper::{Response, StatusCode};

use super::master_errors::is_from_agent;
use crate::cluster::http_client::{Http, Master, RecordStream};

/// The header that associates calls with a subscription.
pub(super) const STREAM_ID: HeaderName = HeaderName::from_static("mesos-stream-id");

/// The maximum length of a stream id, in bytes. Mesos' own ids have 36 bytes.
const STREAM_ID_BYTES_MAX: usize = 128;

/// Why a subscription failed.
#[derive(Debug)]
pub(super) enum Unsubscribed {
    /// The master doesn't answer, or not now.
    NotNow(String),
    /// Another master leads.
    Elsewhere(String),
    /// The server isn't a Mesos master.
    NotMesos(String),
    /// The master refuses this framework.
    Refused(String),
}

/// The records of one subscription.
pub(super) struct EventStream {
    /// The header that calls must have.
    pub(super) stream_id: HeaderValue,
    pub(super) records: RecordStream,
}

impl EventStream {
    /// Subscribes at `master`.
    pub(super) async fn open(
        http: &Http,
        master: &Master,
        body: Vec<u8>,
        media: &str,
        record_bytes_max: usize,
        heartbeats_max: u32,
    ) -> Result<EventStream, Unsubscribed> {
        let mut connection = http.connect(master).await.map_err(Unsubscribed::NotNow)?;
        let response = http.post(&mut connection, None, body).await;
        let response = response.map_err(|unanswered| Unsubscribed::NotNow(unanswered.why))?;
        if response.status() != StatusCode::OK {
            return Err(refusal(http, response).await);
        }
        let not_mesos = |what: &str| Err(Unsubscribed::NotMesos(what.to_owned()));
        let content = response.headers().get(CONTENT_TYPE).and_then(|it| it.to_str().ok());
        if content.is_none_or(|content| content.split(';').next().map(str::trim) != Some(media)) {
            let content = http.sanitize(content.unwrap_or("nothing"));
            return not_mesos(&format!("it answers with {content}, expected {media}"));
        }
        let Some(stream_id) = response.headers().get(STREAM_ID).cloned() else {
            return not_mesos("its answer has no Mesos-Stream-Id");
        };
        let visible = stream_id.as_bytes().iter().all(u8::is_ascii_graphic);
        if !visible || !(1..=STREAM_ID_BYTES_MAX).contains(&stream_id.len()) {
            return not_mesos("its Mesos-Stream-Id is invalid");
        }
        Ok(EventStream {
            stream_id,
            records: RecordStream::new(
                "the master",
                response.into_body(),
                connection,
                record_bytes_max,
                heartbeats_max,
            ),
        })
    }
}

/// Classifies an answer with another status than 200.
async fn refusal(http: &Http, response: Response<Incoming>) -> Unsubscribed {
    let status = response.status();
    if status.is_redirection() {
        let location = response.headers().get(LOCATION).and_then(|it| it.to_str().ok());
        return Unsubscribed::Elsewhere(location.unwrap_or_default().to_owned());
    }
    let why = http.explain(response).await;
    match status {
        StatusCode::UNAUTHORIZED if http.has_credential() => {
            Unsubscribed::Refused(format!("it doesn't accept the principal and secret ({why})"))
        }
        StatusCode::UNAUTHORIZED => {
            Unsubscribed::Refused(format!("it requires a principal and a secret ({why})"))
        }
        StatusCode::BAD_REQUEST if is_from_agent(&why) => {
            Unsubscribed::NotMesos(format!("it may be an agent ({why})"))
        }
        StatusCode::FORBIDDEN | StatusCode::BAD_REQUEST | StatusCode::CONFLICT => {
            Unsubscribed::Refused(why)
        }
        StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => Unsubscribed::NotNow(why),
        _ if status.is_server_error() => Unsubscribed::NotNow(why),
        _ => Unsubscribed::NotMesos(why),
    }
}
