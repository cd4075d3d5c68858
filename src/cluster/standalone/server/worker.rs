//! The worker protocol: one request, whose body and whose answer are streams.

use std::rc::Rc;
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::{Request, StatusCode};
use tokio::task::spawn_local;
use tokio::time::{sleep, timeout};

use super::answers::{MasterResponse, problem, stream};
use super::pace::CallPace;
use super::shared::SharedMaster;
use crate::cluster::standalone::master::ConnectionNumber;
use crate::cluster::standalone::protocol::{MESSAGE_BYTES_MAX, WorkerCall, decode_call};
use crate::mesos_v1::codec::Encoding;
use crate::mesos_v1::record_io::RecordReader;

/// The longest time in which the first message must have arrived.
const FIRST_TIMEOUT: Duration = Duration::from_secs(30);

/// What a worker sends: its messages, as they come.
struct WorkerCalls {
    body: Incoming,
    reader: RecordReader,
}

/// Answers a worker, once it has said who it is.
pub(super) async fn respond(
    shared: Rc<SharedMaster>,
    request: Request<Incoming>,
) -> MasterResponse {
    let owner = shared.access.worker_owner(request.headers(), &shared.cluster);
    let reader = RecordReader::new(MESSAGE_BYTES_MAX);
    let mut calls = WorkerCalls { body: request.into_body(), reader };
    let first = match timeout(FIRST_TIMEOUT, calls.next()).await {
        Ok(Ok(WorkerCall::Subscribe(said))) => *said,
        Ok(Ok(_)) => return problem(StatusCode::BAD_REQUEST, "the first message isn't SUBSCRIBE"),
        Ok(Err(why)) => return problem(StatusCode::BAD_REQUEST, &why),
        Err(_) => return problem(StatusCode::REQUEST_TIMEOUT, "SUBSCRIBE took too long to arrive"),
    };
    let (number, body) = shared.open(Encoding::Json, None);
    shared.worker_subscribes(number, first, owner);
    let reader = spawn_local(read(Rc::clone(&shared), number, calls)).abort_handle();
    shared.set_reader(number, reader);
    stream("application/json", body)
}

/// Passes a worker's messages on until they end. A message that can't be read ends them.
async fn read(shared: Rc<SharedMaster>, number: ConnectionNumber, mut calls: WorkerCalls) {
    let mut pace = CallPace::default();
    while let Ok(call) = calls.next().await {
        // Nothing further is read meanwhile, so that the worker can't send more.
        if let Some(wait) = pace.take(1, shared.now()).filter(|wait| !wait.is_zero()) {
            sleep(wait).await;
        }
        if shared.worker_calls(number, call).is_err() {
            break;
        }
    }
    shared.closed(number);
}

impl WorkerCalls {
    /// The next message.
    ///
    /// # Errors
    /// If there is none any more, or if it can't be read.
    async fn next(&mut self) -> Result<WorkerCall, String> {
        loop {
            match self.reader.next() {
                Some(Ok(record)) => return decode_call(&record).map_err(|why| why.to_string()),
                Some(Err(why)) => return Err(why.to_string()),
                None => {}
            }
            match self.body.frame().await {
                Some(Ok(frame)) => {
                    if let Some(bytes) = frame.data_ref() {
                        self.reader.push(bytes);
                    }
                }
                Some(Err(why)) => return Err(why.to_string()),
                None => return Err("the stream of messages has ended".to_owned()),
            }
        }
    }
}
