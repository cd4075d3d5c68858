//! Mesos' v1 scheduler API: a call a request, and a stream of events for each subscription.

use std::rc::Rc;
use std::time::Duration;

use http_body_util::{BodyExt, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper::{Request, StatusCode};
use prost::Message as _;
use tokio::time::{sleep, timeout};

use super::answers::{MasterResponse, problem, stream, whole};
use super::message_count::{MESSAGES_MAX, has_too_many};
use super::pace::calls_of;
use super::random::random_id;
use super::shared::{FrameworkStream, SharedMaster};
use crate::cluster::standalone::master::{ConnectionNumber, description_problem};
use crate::http_server::{ClientConnection, ConnectionRank};
use crate::mesos_v1::codec::{Codec, Encoding};
use crate::mesos_v1::messages::Call;
use crate::mesos_v1::messages::call::Type;

/// The header that associates calls with a subscription.
const STREAM_ID: HeaderName = HeaderName::from_static("mesos-stream-id");
/// The most bytes of a call of a framework that is subscribed.
const CALL_BYTES_MAX: usize = 4 << 20;
/// The most bytes of a call without a stream id, which can only be a subscription.
const SUBSCRIBE_BYTES_MAX: usize = 1 << 20;
/// The longest time in which a call must have arrived.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);

const ONE_STREAM_ID: &str =
    "a call other than SUBSCRIBE must have one Mesos-Stream-Id, the stream ID";

const CROWD: &str = "too many calls of this principal wait";

/// Answers a call.
pub(super) async fn respond(
    shared: Rc<SharedMaster>,
    request: Request<Incoming>,
    client: &ClientConnection,
) -> MasterResponse {
    let (head, body) = request.into_parts();
    let Some(encoding) = media(&head.headers, CONTENT_TYPE) else {
        let sentence = "Content-Type must be application/json or application/x-protobuf";
        return problem(StatusCode::UNSUPPORTED_MEDIA_TYPE, sentence);
    };
    let principal = shared.access.principal(&head.headers);
    let number = match stream_of(&shared, &head.headers, principal.as_deref()) {
        Ok(number) => number,
        Err((status, sentence)) => return problem(status, sentence),
    };
    if number.is_some() {
        client.raise(ConnectionRank::OfStream);
    }
    if !keeps_pace(&shared, principal.as_deref(), 1).await {
        return problem(StatusCode::TOO_MANY_REQUESTS, CROWD);
    }
    let bytes_max = if number.is_some() { CALL_BYTES_MAX } else { SUBSCRIBE_BYTES_MAX };
    let body = match timeout(CALL_TIMEOUT, Limited::new(body, bytes_max).collect()).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(_)) => {
            return problem(StatusCode::PAYLOAD_TOO_LARGE, "a call is too long, or was cut");
        }
        Err(_) => return problem(StatusCode::REQUEST_TIMEOUT, "a call took too long to arrive"),
    };
    if has_too_many(&body, encoding) {
        let sentence = format!("a call has at most {MESSAGES_MAX} messages, at all depths");
        return problem(StatusCode::BAD_REQUEST, &sentence);
    }
    let call = match decode(&body, encoding) {
        Ok(call) => call,
        Err(why) => {
            let why = crate::foreign_text::cut(why, 200);
            return problem(StatusCode::BAD_REQUEST, &format!("Failed to read the call: {why}"));
        }
    };
    if call.r#type() == Type::Subscribe {
        let answered = media(&head.headers, ACCEPT).unwrap_or(encoding);
        return subscribe(&shared, call, principal, answered);
    }
    let Some(number) = number else { return problem(StatusCode::BAD_REQUEST, ONE_STREAM_ID) };
    let calls = calls_of(items(&call, || shared.executors_of(number)));
    if calls > 0 && !keeps_pace(&shared, principal.as_deref(), calls).await {
        return problem(StatusCode::TOO_MANY_REQUESTS, CROWD);
    }
    match shared.framework_calls(number, call) {
        Ok(()) => whole(StatusCode::ACCEPTED, "text/plain; charset=utf-8", String::new()),
        Err(why) => problem(StatusCode::BAD_REQUEST, &why.to_string()),
    }
}

/// Waits until what counts as a number of calls may be done. Returns whether it may: it isn't if too many wait already.
async fn keeps_pace(shared: &SharedMaster, principal: Option<&str>, calls: u32) -> bool {
    match shared.pace_calls(principal, calls) {
        Some(wait) if wait.is_zero() => true,
        Some(wait) => {
            sleep(wait).await;
            true
        }
        None => false,
    }
}

/// How many tasks and offers a call is about. One that reconciles no task in particular is about all of its framework.
fn items(call: &Call, of_framework: impl FnOnce() -> usize) -> usize {
    let operations = call.accept.iter().flat_map(|accept| &accept.operations);
    let launches = operations.filter_map(|operation| operation.launch.as_ref());
    let launched: usize = launches.map(|launch| launch.task_infos.len()).sum();
    let accepted = call.accept.as_ref().map_or(0, |accept| accept.offer_ids.len());
    let declined = call.decline.as_ref().map_or(0, |decline| decline.offer_ids.len());
    let reconciled = match &call.reconcile {
        Some(reconcile) if reconcile.tasks.is_empty() => of_framework(),
        Some(reconcile) => reconcile.tasks.len(),
        None => 0,
    };
    launched + accepted + declined + reconciled
}

/// The connection whose stream a call names; `None` if it names none.
///
/// # Errors
/// If it names more than one, one that isn't open, or one of another principal.
fn stream_of(
    shared: &SharedMaster,
    headers: &HeaderMap,
    principal: Option<&str>,
) -> Result<Option<ConnectionNumber>, (StatusCode, &'static str)> {
    let mut ids = headers.get_all(&STREAM_ID).iter();
    let Some(id) = ids.next() else { return Ok(None) };
    if ids.next().is_some() {
        return Err((StatusCode::BAD_REQUEST, ONE_STREAM_ID));
    }
    let Some((number, owner)) = id.to_str().ok().and_then(|id| shared.connection_of(id)) else {
        let sentence = "no framework is subscribed with this stream ID";
        return Err((StatusCode::BAD_REQUEST, sentence));
    };
    if owner.as_deref() != principal {
        let sentence = "this stream is another principal's";
        return Err((StatusCode::FORBIDDEN, sentence));
    }
    Ok(Some(number))
}

fn subscribe(
    shared: &Rc<SharedMaster>,
    call: Call,
    principal: Option<String>,
    encoding: Encoding,
) -> MasterResponse {
    let Some(mut subscribe) = call.subscribe else {
        return problem(StatusCode::BAD_REQUEST, "the call SUBSCRIBE lacks its part");
    };
    if principal.is_some() {
        subscribe.framework_info.principal.clone_from(&principal);
    }
    if let Some(sentence) = description_problem(&subscribe.framework_info) {
        return problem(StatusCode::BAD_REQUEST, &sentence);
    }
    let named = subscribe.framework_info.id.as_ref().map(|id| id.value.as_str());
    let of_call = call.framework_id.as_ref().map(|id| id.value.as_str());
    if of_call.is_some() && of_call != named {
        let sentence = "'framework_id' differs from 'subscribe.framework_info.id'";
        return problem(StatusCode::BAD_REQUEST, sentence);
    }
    let Ok(id) = random_id() else {
        let sentence = "the system has no random numbers";
        return problem(StatusCode::INTERNAL_SERVER_ERROR, sentence);
    };
    let Ok(header) = HeaderValue::try_from(id.as_str()) else {
        return problem(StatusCode::INTERNAL_SERVER_ERROR, "the stream has no id");
    };
    let (number, body) = shared.open(encoding, Some(FrameworkStream { id, principal }));
    shared.framework_subscribes(number, subscribe);
    let mut response = stream(Codec::new(encoding).content_type(), body);
    response.headers_mut().insert(STREAM_ID, header);
    response
}

fn decode(body: &Bytes, encoding: Encoding) -> Result<Call, String> {
    match encoding {
        Encoding::Protobuf => Call::decode(body.as_ref()).map_err(|why| why.to_string()),
        Encoding::Json => serde_json::from_slice(body).map_err(|why| why.to_string()),
    }
}

/// The encoding that a header names, if it names one of the two.
fn media(headers: &HeaderMap, name: HeaderName) -> Option<Encoding> {
    let text = headers.get(name)?.to_str().ok()?;
    let mut kinds = text.split(',').map(|kind| kind.split(';').next().unwrap_or_default().trim());
    kinds.find_map(|kind| {
        let codecs = [Encoding::Protobuf, Encoding::Json];
        codecs.into_iter().find(|it| kind.eq_ignore_ascii_case(Codec::new(*it).content_type()))
    })
}
