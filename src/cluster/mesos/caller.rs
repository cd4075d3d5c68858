//! Sends single calls to the master over a reused connection, and classifies the outcome.

use hyper::StatusCode;

use super::active_subscription::ActiveSubscription;
use super::subscription::STREAM_ID;
use crate::cluster::http_client::{Connection, Master, SharedHttp, is_other_leader};
use crate::mesos_v1::codec::Codec;
use crate::mesos_v1::messages::Call;

/// The outcome of a call.
pub(super) enum CallOutcome {
    Done,
    /// It was not sent.
    Unsent(String),
    /// It may have had its effect.
    Unknown(String),
    /// The master refused it.
    Refused(StatusCode, String),
}

/// Sends calls one after the other.
pub(super) struct Caller {
    http: SharedHttp,
    codec: Codec,
    connection: Option<(Master, Connection)>,
}

impl Caller {
    /// A caller without a connection.
    pub(super) fn new(http: SharedHttp, codec: Codec) -> Caller {
        Caller { http, codec, connection: None }
    }

    /// Sends a call under a subscription. Takes two call timeouts at most.
    pub(super) async fn attempt(
        &mut self,
        subscription: &ActiveSubscription,
        call: &Call,
    ) -> CallOutcome {
        let body = self.codec.encode(call);
        let usable = |(master, connection): &(Master, Connection)| {
            *master == subscription.master && !connection.is_closed()
        };
        let mut connection = match self.connection.take().filter(usable) {
            Some((_, connection)) => connection,
            None => match self.http.connect(&subscription.master).await {
                Ok(connection) => connection,
                Err(why) => return CallOutcome::Unsent(why),
            },
        };
        let posted = self
            .http
            .post(&mut connection, Some((&STREAM_ID, &subscription.stream_id)), body)
            .await;
        let response = match posted {
            Ok(response) => response,
            Err(unanswered) if unanswered.is_unsent => {
                return CallOutcome::Unsent(unanswered.why);
            }
            Err(unanswered) => return CallOutcome::Unknown(unanswered.why),
        };
        let status = response.status();
        if status.is_success() {
            if self.http.finish(response).await {
                self.connection = Some((subscription.master.clone(), connection));
            }
            return CallOutcome::Done;
        }
        let why = self.http.explain(response).await;
        let may_have_acted = status.is_server_error() && !is_other_leader(status);
        if may_have_acted { CallOutcome::Unknown(why) } else { CallOutcome::Refused(status, why) }
    }
}
