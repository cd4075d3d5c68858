//! Until when the run's lease is surely held: what creates or deletes pods asks before each request, and waits if it
//! isn't held now. A run whose lease has expired may have lost it, and its pods with it, to another run.

use std::future::pending;
use std::time::Instant;

use tokio::sync::watch;

/// The manager's side, which extends the time.
#[derive(Debug)]
pub(super) struct LeaseTerm(watch::Sender<Instant>);

/// The requests' side.
#[derive(Clone, Debug)]
pub(super) struct LeaseValidity(watch::Receiver<Instant>);

impl LeaseTerm {
    pub(super) fn new(until: Instant) -> LeaseTerm {
        LeaseTerm(watch::Sender::new(until))
    }

    /// Until when the lease is held.
    pub(super) fn until(&self) -> Instant {
        *self.0.borrow()
    }

    /// The lease was renewed.
    pub(super) fn extend(&self, until: Instant) {
        let _before = self.0.send_replace(until);
    }

    pub(super) fn validity(&self) -> LeaseValidity {
        LeaseValidity(self.0.subscribe())
    }
}

impl LeaseValidity {
    /// Waits until the lease is held. Returns until when it is, for as far as is known.
    pub(super) async fn held(&mut self) -> Instant {
        loop {
            let until = *self.0.borrow_and_update();
            if Instant::now() < until {
                return until;
            }
            if self.0.changed().await.is_err() {
                // The manager has ended, and with it what waits here.
                pending::<()>().await;
            }
        }
    }

    /// Carries out a request while the lease is held, and for no longer.
    ///
    /// # Errors
    /// As the request, and if the lease's time is up before the answer.
    pub(super) async fn during<T>(
        &mut self,
        request: impl Future<Output = Result<T, String>>,
    ) -> Result<T, String> {
        let until = self.held().await;
        let limited = tokio::time::timeout_at(until.into(), request).await;
        limited.unwrap_or_else(|_| Err("no answer while the lease was held".to_owned()))
    }
}
