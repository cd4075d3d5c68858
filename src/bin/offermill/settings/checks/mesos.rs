//! Checks of the settings of a Mesos cluster.

use crate::settings::draft::SettingsDraft;

/// Reports a secret without a principal.
pub(crate) fn check(draft: &mut SettingsDraft) {
    let is_read = ["spark.mesos.principal", "spark.mesos.principal.file"];
    if is_read.into_iter().all(|key| draft.is_read(key))
        && let Err(problem) = draft.mesos.credential()
    {
        draft.problems.push(problem);
    }
}
