//! The secrets of this program: which variables hold them, and who can read its memory.

use std::env;
use std::ffi::{OsStr, OsString};

use offermill::launch::{SECRET_VARIABLES, Secret};
use rustix::process::{Resource, Rlimit, setrlimit};

use crate::settings::checks::spark::has_driver;
use crate::settings::checks::startup;
use crate::settings::draft::SettingsDraft;
use crate::settings::master::ClusterKind;

/// Shorter secrets are only compared with whole values: they occur in others by chance.
const CONTAINED_BYTES_MIN: usize = 8;
/// Executors get these variables whatever is in them. A program may not start without them.
const ALWAYS_INHERITED: [&str; 6] = ["HOME", "JAVA_HOME", "LANG", "PATH", "SPARK_HOME", "USER"];

/// The secrets among the settings. Files are not read whose names are given in place of a secret.
fn given_secrets(draft: &SettingsDraft) -> Vec<&Secret> {
    let given = draft.specs().iter().flat_map(|spec| draft.given_for(spec));
    let secrets = given.filter_map(|given| given.secret.as_ref());
    secrets.filter(|secret| !secret.is_empty()).collect()
}

/// The variables of this program with one of its secrets in them, by name, except [`SECRET_VARIABLES`].
pub(crate) fn variables_with_secrets(draft: &SettingsDraft) -> Vec<OsString> {
    let secrets = given_secrets(draft);
    let has_secret = |value: &OsStr| {
        let value = value.to_string_lossy();
        secrets.iter().map(|secret| secret.expose()).any(|secret| {
            value == secret || (secret.len() >= CONTAINED_BYTES_MIN && value.contains(secret))
        })
    };
    // What Spark's executors get from the run's own settings isn't worth a remark.
    let passed: Vec<&str> = match has_driver(draft) {
        true => startup::secrets(draft).map(|(name, _)| name).collect(),
        false => Vec::new(),
    };
    let is_left = |name: &OsStr| {
        let known = ALWAYS_INHERITED.iter().chain(&SECRET_VARIABLES).chain(&passed);
        !known.into_iter().any(|known| name == OsStr::new(known))
    };
    let variables = env::vars_os().filter(|(name, value)| is_left(name) && has_secret(value));
    let mut names: Vec<OsString> = variables.map(|(name, _)| name).collect();
    names.sort();
    names
}

/// Keeps the memory and the environment of this process from other processes of its user, and out of core dumps, from
/// now on. Where that isn't possible, nothing happens.
pub(crate) fn hide_memory() {
    // Ends with the next program that the process or a child executes, so executors aren't affected.
    #[cfg(target_os = "linux")]
    let _dumpable =
        rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
}

/// If the process has a secret, hides its memory and allows no core dumps. Where that fails, the run goes on.
pub(crate) fn protect_memory(draft: &SettingsDraft) {
    let is_set = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
    let has_secret = SECRET_VARIABLES.iter().any(is_set)
        || draft.mesos.secret.is_some()
        || draft.mesos.client_key_file.is_some()
        // A kubeconfig has credentials.
        || draft.is_on(ClusterKind::Kubernetes)
        || draft.http.token.is_some()
        || draft.http.key_file.is_some()
        || !given_secrets(draft).is_empty();
    if !has_secret {
        return;
    }
    hide_memory();
    // Local executors would inherit this limit.
    if draft.master.is_some() && !draft.is_on(ClusterKind::Local) {
        let none = Rlimit { current: Some(0), maximum: Some(0) };
        let _unlimited = setrlimit(Resource::Core, none);
    }
}
