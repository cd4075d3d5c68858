//! Checks of the settings of a Mesos cluster.

use offermill::cluster::mesos::default_user;

use crate::settings::draft::SettingsDraft;
use crate::settings::master::ClusterKind;

/// Reports a secret without a principal, and a CA file or a user that is missing.
pub(crate) fn check(draft: &mut SettingsDraft) {
    let is_read = ["spark.mesos.principal", "spark.mesos.principal.file"];
    if is_read.into_iter().all(|key| draft.is_read(key))
        && let Err(problem) = draft.mesos.credential()
    {
        draft.problems.push(problem);
    }
    if draft.mesos.ca_file_only
        && draft.mesos.ca_file.is_none()
        && draft.is_read("offermill.mesos.caFile")
        && let Some(given) = draft.given("offermill.mesos.caFileOnly").cloned()
    {
        draft.reject(&given, "false, or there must be a CA file too: offermill.mesos.caFile");
    }
    if draft.is_on(ClusterKind::Mesos) && draft.mesos.user.is_none() {
        match default_user() {
            Ok(user) => draft.mesos.user = Some(user),
            Err(error) => draft.report_error(&error),
        }
    }
}
