//! What the answer to the creation of a pod means.
//!
//! | answer | the pod | what to do |
//! |---|---|---|
//! | 200, 201, 202 | exists | keep it |
//! | 409 `AlreadyExists` | of this name exists | look at it: ours, or another's |
//! | 403 "exceeded quota", which others' ends free | doesn't exist | drop the executor, create no more for a while |
//! | 403 "exceeded quota", more than the quota has | never will | drop it, say so |
//! | 429 | doesn't exist | create it again after the time that the server names |
//! | 500 "No API token found": the namespace isn't ready | doesn't exist | create it again soon |
//! | other 4xx: a permission, an invalid field, no namespace | doesn't exist | drop it, create no more for a while, say so |
//! | 408, other 5xx, none | may exist, or may come into being yet | look for it, then create it again under the same name |
//!
//! A pod whose creation has an unknown outcome is never created under another name, and not before the server was asked
//! for it: one executor, one pod.

use std::time::Duration;

use super::objects::ApiFailure;
use super::quantity::exceeds;

/// The outcome of the creation of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CreateOutcome {
    /// It was created.
    Created,
    /// A pod of this name exists, or may exist: the pod must be read.
    Look,
    /// Nothing was created; the same request may succeed after this time.
    Again(Duration),
    /// Nothing was created, because others use what there is.
    NoRoom(String),
    /// Nothing was created, and nothing will be until somebody changes something.
    Rejected(String),
}

/// The pause before a creation is repeated, if the server names none.
const PAUSE: Duration = Duration::from_millis(500);

/// The longest pause that a server may ask for.
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// Classifies an answer by its HTTP status, its body and its `Retry-After` header in seconds.
pub(super) fn classify(
    status: u16,
    failure: &ApiFailure,
    retry_after: Option<u64>,
) -> CreateOutcome {
    let message = || match failure.message.as_str() {
        "" => format!("HTTP status {status}"),
        message => message.to_owned(),
    };
    match status {
        200..=299 => CreateOutcome::Created,
        409 => CreateOutcome::Look,
        403 if failure.message.contains("exceeded quota") => {
            if never_fits(&failure.message) {
                CreateOutcome::Rejected(message())
            } else {
                CreateOutcome::NoRoom(message())
            }
        }
        429 => {
            let seconds = retry_after.or(failure.details.retry_after_seconds);
            let pause = seconds.map_or(PAUSE, Duration::from_secs);
            CreateOutcome::Again(pause.clamp(PAUSE, PAUSE_MAX))
        }
        500 if failure.message.contains("No API token found") => CreateOutcome::Again(PAUSE),
        408 | 500..=599 => CreateOutcome::Look,
        _ => CreateOutcome::Rejected(message()),
    }
}

/// Whether one pod asks for more than a quota has in all, according to a message such as `exceeded quota: q, requested:
/// pods=1,requests.cpu=4, used: pods=0,requests.cpu=0, limited: pods=9,requests.cpu=2`.
fn never_fits(message: &str) -> bool {
    let part = |name: &str| {
        let (_, from) = message.split_once(name)?;
        Some(from.split(", ").next().unwrap_or(from))
    };
    let (Some(requested), Some(limited)) = (part("requested: "), part("limited: ")) else {
        return false;
    };
    let limit_of = |resource: &str| {
        let mut limits = limited.split(',').filter_map(|it| it.split_once('='));
        limits.find(|(name, _)| *name == resource).map(|(_, limit)| limit)
    };
    requested.split(',').filter_map(|it| it.split_once('=')).any(|(resource, quantity)| {
        limit_of(resource).is_some_and(|limit| exceeds(quantity, limit))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(message: &str) -> ApiFailure {
        ApiFailure { message: message.to_owned(), ..ApiFailure::default() }
    }

    /// Goal: each answer leads to the one thing that neither loses nor doubles an executor. Method: the answers of a
    /// real server, and those of proxies before it.
    #[test]
    fn each_answer_has_its_outcome() {
        let none = ApiFailure::default();
        for status in [200, 201, 202] {
            assert_eq!(classify(status, &none, None), CreateOutcome::Created);
        }
        let being_deleted = failure("object is being deleted: pods \"etl-1-0-0\" already exists");
        assert_eq!(classify(409, &being_deleted, None), CreateOutcome::Look);
        for unknown in [408, 500, 502, 503, 504] {
            assert_eq!(classify(unknown, &failure("etcd: timed out"), None), CreateOutcome::Look);
        }
        let token = failure("No API token found for service account \"default\", retry after");
        assert_eq!(classify(500, &token, None), CreateOutcome::Again(PAUSE));
        let rejected = [
            (400, "admission webhook \"policy\" denied the request"),
            (401, "Unauthorized"),
            (403, "pods is forbidden: User \"u\" cannot create resource \"pods\""),
            (403, "failed quota: q: must specify limits.cpu"),
            (404, "namespaces \"etl\" not found"),
            (422, "Pod \"x\" is invalid: spec.containers: Required value"),
        ];
        for (status, message) in rejected {
            let outcome = CreateOutcome::Rejected(message.to_owned());
            assert_eq!(classify(status, &failure(message), None), outcome);
        }
        let silent = CreateOutcome::Rejected("HTTP status 418".to_owned());
        assert_eq!(classify(418, &none, None), silent);
    }

    /// Goal: the pause is the server's, within bounds. Method: by header, by body, too long, and none.
    #[test]
    fn the_server_names_the_pause() {
        let details = super::super::objects::ApiFailureDetails { retry_after_seconds: Some(3) };
        let told = ApiFailure { details, ..ApiFailure::default() };
        let after = |failure: &ApiFailure, header| classify(429, failure, header);
        assert_eq!(after(&told, Some(2)), CreateOutcome::Again(Duration::from_secs(2)));
        assert_eq!(after(&told, None), CreateOutcome::Again(Duration::from_secs(3)));
        assert_eq!(after(&ApiFailure::default(), Some(u64::MAX)), CreateOutcome::Again(PAUSE_MAX));
        assert_eq!(after(&ApiFailure::default(), None), CreateOutcome::Again(PAUSE));
    }

    /// Goal: "wait" and "never" are told apart. Method: requests below, at and above the quota, in units that differ,
    /// and messages that can't be read, which may succeed later.
    #[test]
    fn a_request_above_the_quota_is_rejected() {
        let outcome = |requested: &str, limited: &str| {
            let message = format!(
                "pods \"x\" is forbidden: exceeded quota: q, requested: {requested}, used: \
                 pods=2, limited: {limited}"
            );
            let outcome = classify(403, &failure(&message), None);
            let is_never = outcome == CreateOutcome::Rejected(message.clone());
            assert!(is_never || outcome == CreateOutcome::NoRoom(message));
            is_never
        };
        assert!(!outcome("pods=1", "pods=2"));
        assert!(!outcome("pods=1,requests.cpu=2", "pods=9,requests.cpu=2000m"));
        assert!(outcome("pods=1,requests.cpu=2001m", "pods=9,requests.cpu=2"));
        assert!(outcome("requests.memory=3Gi,pods=1", "pods=9,requests.memory=2048Mi"));
        assert!(!outcome("requests.memory=2048Mi", "requests.memory=2Gi"));
        assert!(!outcome("nonsense", "pods=9"));
        assert!(!outcome("pods=x", "pods=9"));
        assert!(matches!(
            classify(403, &failure("exceeded quota: q"), None),
            CreateOutcome::NoRoom(_)
        ));
    }
}
