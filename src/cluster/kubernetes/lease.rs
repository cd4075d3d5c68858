//! The run's lease: an object of the cluster that only one program holds at a time, by which runs of one name exclude
//! each other. It is also the owner of the run's pods.
//!
//! The holder renews it three times within its duration. A lease that isn't renewed for its duration is free; whether
//! it is renewed is judged by this machine's clock, from when its renewal was seen to change, so that clocks needn't
//! agree. A holder that can't renew it in time creates no pods until it holds it again, and ends if another holds it.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::api::Api;
use super::names::{MANAGER, MANAGER_LABEL, RUN_LABEL};
use crate::backoff::Backoff;

/// The run's lease, as this program holds it.
#[derive(Clone, Debug)]
pub(super) struct Lease {
    name: String,
    holder: String,
    duration: Duration,
    /// The lease's uid, once it is held.
    pub(super) uid: String,
    version: String,
    transitions: i64,
    /// The reference to what owns it, if anything does.
    owner: Option<Value>,
}

/// Why a lease isn't held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LeaseError {
    /// Another program holds it.
    Held(String),
    /// The server refuses it.
    Forbidden(String),
    /// The server couldn't be asked.
    Failed(String),
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Observed {
    metadata: super::objects::Metadata,
    spec: ObservedSpec,
}

#[derive(Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ObservedSpec {
    holder_identity: Option<String>,
    lease_duration_seconds: Option<u64>,
    renew_time: Option<String>,
    lease_transitions: Option<i64>,
}

impl ObservedSpec {
    fn holder(&self) -> &str {
        self.holder_identity.as_deref().unwrap_or_default()
    }

    /// How long it is held after a renewal.
    fn duration(&self) -> Duration {
        Duration::from_secs(self.lease_duration_seconds.unwrap_or(15))
    }
}

impl Lease {
    /// A lease that isn't held yet. Its duration is rounded down to whole seconds, in which it is told to others.
    pub(super) fn new(name: &str, holder: &str, duration: Duration) -> Lease {
        let duration = Duration::from_secs(duration.as_secs().max(1));
        let (uid, version) = (String::new(), String::new());
        let (name, holder) = (name.to_owned(), holder.to_owned());
        Lease { name, holder, duration, uid, version, transitions: 0, owner: None }
    }

    /// Sets what owns it once it is held: it is deleted with that.
    pub(super) fn with_owner(self, owner: Option<Value>) -> Lease {
        Lease { owner, ..self }
    }

    /// How long it is held after its last renewal began.
    pub(super) fn duration(&self) -> Duration {
        self.duration
    }

    /// How often it is renewed.
    pub(super) fn interval(&self) -> Duration {
        self.duration / 3
    }

    /// Waits until the lease is free and then takes it, within `patience`. Returns since when it is held.
    pub(super) async fn acquire(
        &mut self,
        api: &Api,
        patience: Duration,
    ) -> Result<Instant, LeaseError> {
        let began = Instant::now();
        let mut seen: Option<(ObservedSpec, Instant)> = None;
        let mut backoff = Backoff::default();
        loop {
            let error = match self.try_acquire(api, &mut seen, false).await {
                Ok(since) => return Ok(since),
                // Rights may be granted a moment later, and tokens renewed.
                Err(error) => error,
            };
            if began.elapsed() >= patience {
                return Err(error);
            }
            sleep(backoff.next().min(Duration::from_secs(1))).await;
        }
    }

    /// Takes the lease, even if another program holds it. Returns since when it is held.
    pub(super) async fn seize(&mut self, api: &Api) -> Result<Instant, LeaseError> {
        self.try_acquire(api, &mut None, true).await
    }

    /// The holder of a lease, and how long it is held after a renewal.
    ///
    /// # Errors
    /// If the answer is no lease.
    pub(super) fn read_holder(
        answer: &super::api::ApiAnswer,
    ) -> Result<(String, Duration), String> {
        let Observed { spec, .. } = answer.read()?;
        Ok((spec.holder().to_owned(), spec.duration()))
    }

    async fn try_acquire(
        &mut self,
        api: &Api,
        seen: &mut Option<(ObservedSpec, Instant)>,
        is_forced: bool,
    ) -> Result<Instant, LeaseError> {
        let answer = api.lease(&self.name).await.map_err(LeaseError::Failed)?;
        if answer.status == 404 {
            let began = Instant::now();
            let created = api.create_lease(&self.to_json(&self.holder)).await;
            self.take(&created.map_err(LeaseError::Failed)?)?;
            return Ok(began);
        }
        let observed: Observed = read(&answer)?;
        let spec = &observed.spec;
        if observed.metadata.labels.get(MANAGER_LABEL).is_none_or(|label| label != MANAGER) {
            return Err(LeaseError::Forbidden(format!(
                "{} is the lease of another program: it has no label {MANAGER_LABEL}={MANAGER}",
                self.name
            )));
        }
        let is_free = is_forced || spec.holder().is_empty() || spec.holder() == self.holder;
        if !is_free {
            let since = match seen {
                Some((before, since)) if before == spec => *since,
                _ => {
                    let now = Instant::now();
                    *seen = Some((spec.clone(), now));
                    now
                }
            };
            if since.elapsed() < spec.duration() {
                return Err(LeaseError::Held(spec.holder().to_owned()));
            }
        }
        self.version.clone_from(&observed.metadata.resource_version);
        self.transitions = spec.lease_transitions.unwrap_or_default().saturating_add(1);
        self.put(api, &self.holder.clone()).await
    }

    /// Renews the lease. Returns since when it is held.
    pub(super) async fn renew(&mut self, api: &Api) -> Result<Instant, LeaseError> {
        match self.put(api, &self.holder.clone()).await {
            // Somebody has changed it: perhaps an earlier renewal, whose answer was lost.
            Err(LeaseError::Held(_)) => {
                self.check_holder(api).await?;
                self.put(api, &self.holder.clone()).await
            }
            other => other,
        }
    }

    /// Reads the lease, to learn whether this program still holds it, and in which version.
    pub(super) async fn check_holder(&mut self, api: &Api) -> Result<(), LeaseError> {
        let answer = api.lease(&self.name).await.map_err(LeaseError::Failed)?;
        let observed: Observed = read(&answer)?;
        if observed.metadata.uid != self.uid {
            return Err(LeaseError::Held("another program, which has made it anew".to_owned()));
        }
        if observed.spec.holder() != self.holder {
            return Err(LeaseError::Held(observed.spec.holder().to_owned()));
        }
        self.version = observed.metadata.resource_version;
        Ok(())
    }

    /// Gives the lease back, so that the next run needn't wait.
    pub(super) async fn release(&mut self, api: &Api) -> Result<(), LeaseError> {
        match self.put(api, "").await {
            Err(LeaseError::Held(_)) => {
                self.check_holder(api).await?;
                self.put(api, "").await.map(|_| ())
            }
            other => other.map(|_| ()),
        }
    }

    /// Deletes the lease, and with it what it owns, if this program holds it.
    pub(super) async fn delete(&mut self, api: &Api) -> Result<(), LeaseError> {
        for _attempt in 0..2 {
            let answer = api.delete_lease(&self.name, &self.uid, &self.version).await;
            let answer = answer.map_err(LeaseError::Failed)?;
            match answer.status {
                200..=299 | 404 => return Ok(()),
                409 => self.check_holder(api).await?,
                _ => return Err(LeaseError::Failed(answer.why())),
            }
        }
        Err(LeaseError::Failed("it is being changed".to_owned()))
    }

    /// Replaces the lease. Returns when that began.
    async fn put(&mut self, api: &Api, holder: &str) -> Result<Instant, LeaseError> {
        let began = Instant::now();
        let answer = api.replace_lease(&self.name, &self.to_json(holder)).await;
        self.take(&answer.map_err(LeaseError::Failed)?)?;
        Ok(began)
    }

    fn take(&mut self, answer: &super::api::ApiAnswer) -> Result<(), LeaseError> {
        let observed: Observed = read(answer)?;
        self.uid = observed.metadata.uid;
        self.version = observed.metadata.resource_version;
        Ok(())
    }

    fn to_json(&self, holder: &str) -> Value {
        let now = timestamp(SystemTime::now());
        let labels = json!({ MANAGER_LABEL: MANAGER, RUN_LABEL: self.name });
        let mut metadata = json!({ "name": self.name, "labels": labels });
        if let (false, Some(metadata)) = (self.version.is_empty(), metadata.as_object_mut()) {
            metadata.insert("resourceVersion".to_owned(), self.version.as_str().into());
        }
        if let (Some(owner), Some(metadata)) = (&self.owner, metadata.as_object_mut()) {
            metadata.insert("ownerReferences".to_owned(), json!([owner]));
        }
        let spec = json!({
            "holderIdentity": holder,
            "leaseDurationSeconds": self.duration.as_secs(),
            "renewTime": now,
            "leaseTransitions": self.transitions,
        });
        json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec })
    }
}

fn read(answer: &super::api::ApiAnswer) -> Result<Observed, LeaseError> {
    match answer.status {
        200..=299 => answer.read().map_err(LeaseError::Failed),
        // Another program was faster.
        409 => Err(LeaseError::Held("another program".to_owned())),
        404 => Err(LeaseError::Held("nobody: it was deleted".to_owned())),
        400..=428 | 430..=499 => Err(LeaseError::Forbidden(answer.why())),
        _ => Err(LeaseError::Failed(answer.why())),
    }
}

/// Writes a time as `2026-11-23T21:00:00.000000Z`.
fn timestamp(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (days, second) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    // Years that begin in March, so that a leap day is a year's last; eras of 400 years.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute) = (second / 3600, second / 60 % 60);
    format!(
        "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{:02}.{:06}Z",
        second % 60,
        since.subsec_micros()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the server can read the times. Method: the epoch, leap days, and the last second of a year.
    #[test]
    fn times_are_written_as_the_server_reads_them() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00"),
            (951_782_400, "2000-02-29T00:00:00"),
            (1_709_251_199, "2024-02-29T23:59:59"),
            (1_709_251_200, "2024-03-01T00:00:00"),
            (1_767_225_599, "2025-12-31T23:59:59"),
            (4_107_542_400, "2100-03-01T00:00:00"),
        ] {
            let time = UNIX_EPOCH + Duration::from_micros(seconds * 1_000_000 + 42);
            assert_eq!(timestamp(time), format!("{text}.000042Z"));
        }
    }
}
