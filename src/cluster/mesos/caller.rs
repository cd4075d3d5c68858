//! One call to the master: sent over a connection that is kept for the next, and how it went.

use hyper::StatusCode;

use super::active_subscription::ActiveSubscription;
use super::http::{Connection, SharedHttp, is_elsewhere};
use super::masters::Master;
use crate::mesos_v1::codec::Codec;
use crate::mesos_v1::messages::Call;

/// How a try went.
pub(super) enum Try {
    Done,
    /// Nothing of it was sent.
    Unsent(String),
    /// It may have had its effect.
    Unknown(String),
    /// The master said no.
    Refused(StatusCode, String),
}

/// Sends calls one after the other.
pub(super) struct Caller {
    http: SharedHttp,
    codec: Codec,
    connection: Option<(Master, Connection)>,
}

impl Caller {
    /// Without a connection yet.
    pub(super) fn new(http: SharedHttp, codec: Codec) -> Caller {
        Caller { http, codec, connection: None }
    }

    /// Sends a call under a subscription. Takes two call timeouts at most.
    pub(super) async fn attempt(&mut self, standing: &ActiveSubscription, call: &Call) -> Try {
        let body = self.codec.encode(call);
        let usable = |(master, connection): &(Master, Connection)| {
            *master == standing.master && !connection.is_closed()
        };
        let mut connection = match self.connection.take().filter(usable) {
            Some((_, connection)) => connection,
            None => match self.http.connect(&standing.master).await {
                Ok(connection) => connection,
                Err(why) => return Try::Unsent(why),
            },
        };
        let posted = self.http.post(&mut connection, Some(&standing.stream_id), body).await;
        let response = match posted {
            Ok(response) => response,
            Err(unanswered) if unanswered.surely_unsent => return Try::Unsent(unanswered.why),
            Err(unanswered) => return Try::Unknown(unanswered.why),
        };
        let status = response.status();
        if status.is_success() {
            if self.http.finish(response).await {
                self.connection = Some((standing.master.clone(), connection));
            }
            return Try::Done;
        }
        let why = self.http.explain(response).await;
        let may_have_acted = status.is_server_error() && !is_elsewhere(status);
        if may_have_acted { Try::Unknown(why) } else { Try::Refused(status, why) }
    }
}

/// Whether a master that answers like this may not know the subscription any more.
pub(super) fn is_lost(status: StatusCode, why: &str) -> bool {
    // In the words of `Master::Http::scheduler`.
    is_elsewhere(status)
        || ["not subscribed", "stream ID", "cannot be found"].iter().any(|it| why.contains(it))
}
