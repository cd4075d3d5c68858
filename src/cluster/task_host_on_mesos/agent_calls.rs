//! Calls to the agent: a subscription, and the calls that are sent while it lasts.

use std::sync::Arc;
use std::time::Duration;

use hyper::StatusCode;
use prost::Message as _;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::environment::ExecutorEnvironment;
use crate::cluster::http_client::{Authorization, Connection, Http, RecordStream};
use crate::mesos_v1::messages::executor::{Call, CallType, Message, Subscribe, Update};

/// The media type of protocol buffers.
const MEDIA: &str = "application/x-protobuf";
/// How long the agent may take to answer a call.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// The wait before a call that had no effect is sent again.
const RETRY_WAIT: Duration = Duration::from_millis(200);
/// The longest event, in bytes.
const EVENT_BYTES_MAX: usize = 64 << 20;
/// The number of heartbeat intervals in which an event must have come whole: 2 h, longer than an agent may be silent.
const SILENCE_INTERVALS: u32 = 480;

/// The agent: its address, and what it has told in environment variables.
#[derive(Debug)]
pub(super) struct Agent {
    pub(super) environment: ExecutorEnvironment,
    http: Http,
}

/// Why a subscription has failed.
#[derive(Debug)]
pub(super) enum SubscribeError {
    /// The agent is away or not ready.
    Later(String),
    /// The agent refuses this host.
    Refused(String),
}

impl Agent {
    /// A client for the agent of this environment.
    ///
    /// # Errors
    /// If the agent's token can't be sent.
    pub(super) fn new(environment: ExecutorEnvironment) -> Result<Agent, String> {
        let authorization = match &environment.token {
            Some(token) => {
                let made = Authorization::bearer(token);
                Some(made.ok_or("the agent's token can't be sent in a header")?)
            }
            None => None,
        };
        let path = environment.path.clone();
        Ok(Agent { http: Http::new(path, MEDIA, authorization, None, CALL_TIMEOUT), environment })
    }

    fn call(&self, kind: CallType) -> Call {
        Call {
            executor_id: self.environment.executor_id.as_str().into(),
            framework_id: self.environment.framework_id.as_str().into(),
            r#type: Some(kind.into()),
            ..Call::default()
        }
    }

    /// Subscribes, with what isn't acknowledged. Returns the events.
    pub(super) async fn subscribe(
        &self,
        subscribe: Subscribe,
    ) -> Result<RecordStream, SubscribeError> {
        let call = Call { subscribe: Some(subscribe), ..self.call(CallType::Subscribe) };
        let connection = self.http.connect(&self.environment.agent).await;
        let mut connection = connection.map_err(SubscribeError::Later)?;
        let posted = self.http.post(&mut connection, None, call.encode_to_vec()).await;
        let response = posted.map_err(|error| SubscribeError::Later(error.why))?;
        match response.status() {
            StatusCode::OK => Ok(RecordStream::new(
                "the agent",
                response.into_body(),
                connection,
                EVENT_BYTES_MAX,
                SILENCE_INTERVALS,
            )),
            status => {
                let why = format!("SUBSCRIBE: {}", self.http.explain(response).await);
                match is_final(status) {
                    true => Err(SubscribeError::Refused(why)),
                    false => Err(SubscribeError::Later(why)),
                }
            }
        }
    }

    /// A call with an update.
    pub(super) fn update(&self, update: Update) -> Vec<u8> {
        Call { update: Some(update), ..self.call(CallType::Update) }.encode_to_vec()
    }

    /// A call with data for the framework.
    pub(super) fn message(&self, data: Vec<u8>) -> Vec<u8> {
        Call { message: Some(Message { data }), ..self.call(CallType::Message) }.encode_to_vec()
    }
}

/// Whether an answer says that the same call will never have an effect. An agent that recovers answers 503, and 403 or
/// 404 until it knows its executors again.
fn is_final(status: StatusCode) -> bool {
    let later = [
        StatusCode::FORBIDDEN,
        StatusCode::NOT_FOUND,
        StatusCode::REQUEST_TIMEOUT,
        StatusCode::TOO_MANY_REQUESTS,
    ];
    status.is_client_error() && !later.contains(&status)
}

/// A call that isn't sent yet.
#[derive(Debug)]
struct UnsentCall {
    call: Vec<u8>,
    _token: Arc<()>,
}

/// The calls of one subscription, which are sent in their order, one at a time. Dropping it ends that.
#[derive(Debug)]
pub(super) struct AgentCalls {
    calls: UnboundedSender<UnsentCall>,
    /// Each call that is queued or being sent has another one.
    token: Arc<()>,
    sender: JoinHandle<()>,
    /// Tells once that the agent has refused a call for good, and why.
    pub(super) refused: oneshot::Receiver<String>,
}

impl AgentCalls {
    pub(super) fn start(agent: Arc<Agent>) -> AgentCalls {
        let (calls, queued) = unbounded_channel();
        let (refuse, refused) = oneshot::channel();
        let sender = tokio::spawn(async move {
            if let Err(why) = send_calls(&agent, queued).await {
                let _told = refuse.send(why);
            }
        });
        AgentCalls { calls, token: Arc::default(), sender, refused }
    }

    /// Whether the agent has taken all calls so far.
    pub(super) fn are_sent(&self) -> bool {
        Arc::strong_count(&self.token) == 1
    }

    /// Queues a call.
    pub(super) fn send(&self, call: Vec<u8>) {
        // After a refusal nothing is sent any more.
        let _queued = self.calls.send(UnsentCall { call, _token: Arc::clone(&self.token) });
    }
}

impl Drop for AgentCalls {
    fn drop(&mut self) {
        self.sender.abort();
    }
}

/// Sends calls until there are no more. A call that has no effect is sent again and again: a next one must not overtake
/// it. What the agent misses all the same comes with the next subscription.
async fn send_calls(agent: &Agent, mut calls: UnboundedReceiver<UnsentCall>) -> Result<(), String> {
    let mut kept: Option<Connection> = None;
    while let Some(queued) = calls.recv().await {
        loop {
            let call = queued.call.clone();
            let (is_accepted, connection) = send_call(agent, kept.take(), call).await?;
            kept = connection;
            if is_accepted {
                break;
            }
            sleep(RETRY_WAIT).await;
        }
    }
    Ok(())
}

/// Sends a call over the connection that is kept, or a new one. Returns whether the agent has accepted it, and the
/// connection if it can be used again.
async fn send_call(
    agent: &Agent,
    kept: Option<Connection>,
    call: Vec<u8>,
) -> Result<(bool, Option<Connection>), String> {
    let mut connection = match kept.filter(|kept| !kept.is_closed()) {
        Some(kept) => kept,
        None => match agent.http.connect(&agent.environment.agent).await {
            Ok(connection) => connection,
            Err(_) => return Ok((false, None)),
        },
    };
    let Ok(response) = agent.http.post(&mut connection, None, call).await else {
        return Ok((false, None));
    };
    let status = response.status();
    if is_final(status) {
        return Err(format!("the agent refused a call: {}", agent.http.explain(response).await));
    }
    let is_usable = agent.http.finish(response).await;
    Ok((status.is_success(), is_usable.then_some(connection)))
}
