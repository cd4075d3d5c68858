//! What a run does about the agents' shuffle services.

use offermill::spark::shuffle::ShuffleOptions;

use crate::settings::draft::SettingsDraft;
use crate::settings::master::ClusterKind;

/// What a run does about the agents' shuffle services.
#[derive(Clone, Debug)]
pub(crate) struct ShufflePlan {
    pub(crate) options: ShuffleOptions,
    /// Whether the application's id is the framework's.
    pub(crate) is_named_after_framework: bool,
    /// Whether all agents are on this machine, so that their names are no addresses.
    pub(crate) is_local: bool,
}

/// The plan that the settings ask for; `None` if agents have no shuffle service.
pub(crate) fn plan(draft: &SettingsDraft) -> Option<ShufflePlan> {
    let settings = Some(draft.shuffle).filter(|settings| settings.enabled)?;
    let app_id = draft.spark.app_id.clone();
    let is_named_after_framework = app_id.is_none();
    let mut options = ShuffleOptions::new(app_id.unwrap_or_default());
    options.port = settings.port;
    options.heartbeat_interval = settings.heartbeat_interval;
    options.heartbeat_timeout = settings.heartbeat_timeout;
    options.registration_timeout = settings.registration_timeout;
    let (_, master) = draft.master.as_ref()?;
    let is_local = master.kind() == ClusterKind::Local;
    Some(ShufflePlan { options, is_named_after_framework, is_local })
}
