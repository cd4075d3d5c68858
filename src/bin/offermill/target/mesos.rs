//! A Mesos cluster: its agents come and go, and nothing on them can be looked at.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use offermill::Config;
use offermill::cluster::mesos::{Masters, MesosCluster, MesosConfig};
use offermill::constraint::Repeats;

use super::{OnExit, Prepared, Remains, Sandboxes, Target};
use crate::settings::draft::Draft;
use crate::settings::sources::Sourced;

/// The master is asked for no others, so that a constraint that no agent meets looks like silence.
const SILENCE: &str =
    "the master makes them only of agents that meet the constraint and have room for an executor";

/// Checks what this machine can know: who the framework is, and its files.
pub(super) fn prepare(
    draft: &mut Draft,
    text: String,
    masters: Masters,
    name: &str,
    config: &Config,
) -> Option<Prepared> {
    check_files(draft);
    let is_sealed = masters.tls();
    let made = mesos_config(draft, masters, name, config)?;
    let has_secret = made.credential.as_ref().is_some_and(|it| it.secret.is_some());
    if has_secret && !is_sealed && !made.secret_over_plain_http {
        let name = draft.mesos.secret_name().unwrap_or("the secret").to_owned();
        draft.problems.push(format!(
            "{name} would go over the network unencrypted to {text}; take https://, or give \
             --allow-plain-secret"
        ));
        return None;
    }
    if !draft.container.secret_values.is_empty() && !is_sealed && !made.secret_over_plain_http {
        let name = draft.name_of("spark.mesos.executor.secret.values");
        draft.problems.push(format!(
            "{name} would go over the network unencrypted to {text}; take https://, or give \
             --allow-plain-secret"
        ));
        return None;
    }
    let leavings = OnExit::Kept(made.failover_timeout);
    // For the TEARDOWN and, if the disk under the framework id file hangs, for that.
    let stop_within = made.call_timeout * 2 + Duration::from_secs(10);
    let cluster = MesosCluster::new(made).map_err(|error| draft.complain(&error)).ok()?;
    if let (Some((given, _)), OnExit::Kept(Duration::ZERO)) =
        (&draft.mesos.framework_id_file, leavings)
        && draft.problems.is_empty()
    {
        draft.remarks.push(format!(
            "{} is of little use without --failover-timeout: the master ends the executors at once \
             when it misses this framework",
            given.name
        ));
    }
    let (agents, fitting, silence) = (None, None, Some(SILENCE));
    let sandboxes = Sandboxes::OnAgents;
    let cluster = Arc::new(cluster);
    let remains = Remains(Some(Arc::clone(&cluster)));
    let site = Target {
        master: text,
        agents,
        fitting,
        sandboxes,
        silence,
        leavings,
        remains,
        stop_within,
    };
    Some((site, cluster))
}

fn mesos_config(
    draft: &mut Draft,
    masters: Masters,
    name: &str,
    config: &Config,
) -> Option<MesosConfig> {
    let settings = &draft.mesos;
    let credential = match settings.credential() {
        Ok(credential) => credential,
        Err(complaint) => {
            draft.problems.push(complaint);
            return None;
        }
    };
    let mut made = MesosConfig::new(masters, name).for_kernel(config);
    made.credential = credential;
    made.roles.clone_from(&settings.roles);
    if let Some(user) = &settings.user {
        made.user.clone_from(user);
    }
    made.secret_over_plain_http = settings.plain_secret;
    made.failover_timeout = settings.failover_timeout;
    made.checkpoint = settings.checkpoint;
    made.webui_url.clone_from(&settings.webui_url);
    made.framework_id_file = path_of(&settings.framework_id_file);
    made.encoding = settings.encoding;
    made.ca_file = path_of(&settings.ca_file);
    made.repeats = if settings.repeats { Repeats::Allowed } else { Repeats::RuledOut };
    made.call_timeout = settings.call_timeout;
    made.subscribe_timeout = settings.subscribe_timeout;
    Some(made)
}

fn path_of(file: &Option<(Sourced, PathBuf)>) -> Option<PathBuf> {
    file.as_ref().map(|(_, path)| path.clone())
}

/// Complains about files that can't be read, and about folders that aren't there.
fn check_files(draft: &mut Draft) {
    if let Some((given, path)) = draft.mesos.ca_file.clone()
        && let Err(error) = File::open(path)
    {
        draft.refuse(&given, &format!("a file with certificates ({error})"));
    }
    if let Some((given, path)) = draft.mesos.framework_id_file.clone()
        && let Err(why) = check_place(&path)
    {
        draft.refuse(&given, &format!("a file, there or not, in a folder that is there ({why})"));
    }
}

fn check_place(path: &Path) -> Result<(), String> {
    if path.is_dir() {
        return Err("this is a folder".to_owned());
    }
    if path.exists() && !path.is_file() {
        return Err("this is no regular file".to_owned());
    }
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    match fs::metadata(folder) {
        Ok(metadata) if metadata.is_dir() => Ok(()),
        Ok(_) => Err(format!("{} is no folder", folder.display())),
        Err(error) => Err(format!("{}: {error}", folder.display())),
    }
}
