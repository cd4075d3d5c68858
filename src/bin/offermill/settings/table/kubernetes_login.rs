//! The options about where an API server of Kubernetes is, and as whom requests are made.

use std::path::PathBuf;

use offermill::config::text::TimeUnit;

use crate::settings::master::ClusterKind;
use crate::settings::sources::Sourced;
use crate::settings::table::row::{OptionRow, non_empty, positive_duration};

/// The namespace, the context, credentials and the connection.
pub(super) const LOGIN_ROWS: &[OptionRow] = &[
    OptionRow::spark_on_kubernetes("spark.kubernetes.namespace", "name")
        .flag("--namespace")
        .library_name("namespace")
        .derived("that of the kubeconfig's context or of the own pod, else default")
        .read(|draft, given| {
            draft.kubernetes.namespace = non_empty(given);
            Ok(())
        }),
    OptionRow::spark_on_kubernetes(
        "spark.kubernetes.context",
        "name of a context of the kubeconfig",
    )
    .derived("the one with the address of --master, else the current one")
    .read(|draft, given| {
        draft.kubernetes.context = non_empty(given);
        Ok(())
    }),
    OptionRow::spark_on_kubernetes("spark.kubernetes.authenticate.caCertFile", "file")
        .derived("the kubeconfig's, else the system's certificates")
        .read(|draft, given| {
            draft.kubernetes.authority_file = path(given);
            Ok(())
        }),
    OptionRow::spark_on_kubernetes(
        "spark.kubernetes.authenticate.oauthToken",
        "text, for properties files",
    )
    .secret()
    .derived("the kubeconfig's")
    .read(|draft, given| {
        let token = given.secret.clone().filter(|token| !token.is_empty());
        draft.kubernetes.token = token.map(|token| (given.clone(), token));
        Ok(())
    }),
    OptionRow::spark_on_kubernetes(
        "spark.kubernetes.authenticate.oauthTokenFile",
        "file, which is read again from time to time",
    )
    .derived("the kubeconfig's")
    .read(|draft, given| {
        draft.kubernetes.token_file = path(given);
        Ok(())
    }),
    OptionRow::spark_on_kubernetes("spark.kubernetes.authenticate.clientCertFile", "file")
        .derived("the kubeconfig's")
        .read(|draft, given| {
            draft.kubernetes.certificate_file = path(given);
            Ok(())
        }),
    OptionRow::spark_on_kubernetes("spark.kubernetes.authenticate.clientKeyFile", "file")
        .derived("the kubeconfig's")
        .read(|draft, given| {
            draft.kubernetes.key_file = path(given);
            Ok(())
        }),
    OptionRow::spark_on_kubernetes(
        "spark.kubernetes.driver.pod.name",
        "the pod in which this program runs: all is deleted with it",
    )
    .derived("in a cluster the pod with the name of the host, if there is one")
    .read(|draft, given| {
        draft.kubernetes.own_pod = non_empty(given);
        Ok(())
    }),
    OptionRow::spark_on_kubernetes("spark.kubernetes.driver.requestTimeout", "duration (ms)")
        .library_name("request timeout")
        .default("10s")
        .read(|draft, given| {
            draft.kubernetes.request_timeout =
                positive_duration(draft, given, TimeUnit::Milliseconds)?;
            Ok(())
        }),
    OptionRow::offermill(
        "offermill.kubernetes.connectTimeout",
        "duration (s): of the first connection, and the wait for the lease",
    )
    .library_name("connect timeout")
    .default("60s")
    .only(ClusterKind::Kubernetes)
    .read(|draft, given| {
        draft.kubernetes.connect_timeout = positive_duration(draft, given, TimeUnit::Seconds)?;
        Ok(())
    }),
    OptionRow::offermill(
        "offermill.kubernetes.leaseDuration",
        "duration (s): after how long a run that was killed counts as gone",
    )
    .library_name("lease duration")
    .default("15s")
    .only(ClusterKind::Kubernetes)
    .read(|draft, given| {
        draft.kubernetes.lease_duration = positive_duration(draft, given, TimeUnit::Seconds)?;
        Ok(())
    }),
];

/// A path; `None` for an empty text.
fn path(given: &Sourced) -> Option<(Sourced, PathBuf)> {
    (!given.text.is_empty()).then(|| (given.clone(), PathBuf::from(&given.text)))
}
