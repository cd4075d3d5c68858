//! Preparation of a Mesos cluster, whose agents come and go and whose machines can't be checked.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use offermill::Config;
use offermill::cluster::mesos::{Masters, MesosCluster, MesosConfig};
use offermill::config::ExecutorCores;
use offermill::constraint::DuplicateAttributes;
use offermill::private_files::FileAccess;

use crate::model::target::{FrameworkRemains, OnExit, RunTarget, SandboxPlace};
use crate::settings::checks::spark::has_driver;
use crate::settings::checks::startup;
use crate::settings::draft::SettingsDraft;
use crate::settings::file_access::report_file_access;
use crate::settings::master::is_standalone;
use crate::settings::sources::Sourced;
use crate::settings::values::mesos::MesosSettings;
use crate::target::PreparedTarget;

/// Checks the credential and the files of the framework.
pub(super) fn prepare(
    draft: &mut SettingsDraft,
    text: String,
    masters: Masters,
    name: &str,
    config: &Config,
) -> Option<PreparedTarget> {
    let has_tls_files = check_files(draft);
    let is_standalone = is_standalone(&text);
    let names_tls_files =
        draft.mesos.ca_file.is_some() || draft.mesos.client_certificate_file.is_some();
    // offermill:// says nothing about TLS, which these files are for.
    let masters = if is_standalone && names_tls_files { masters.with_tls() } else { masters };
    let is_encrypted = masters.tls();
    let scheme = if is_encrypted { "https" } else { "http" };
    let first = masters.all().first();
    let teardown_url = first.map(|first| format!("{scheme}://{first}/master/teardown"));
    let mut made = mesos_config(draft, masters, name, config)?;
    if !has_tls_files {
        // They are reported already.
        (made.ca_file, made.ca_file_only, made.client_certificate) = (None, false, None);
    }
    if !is_encrypted
        && !made.secret_over_plain_http
        && let Some(name) = secret_to_send(draft, &made)
    {
        draft.problems.push(unencrypted(&name, &text, is_standalone));
        return None;
    }
    let on_exit = OnExit::Kept(made.failover_timeout);
    let stop_timeout = made.stop_timeout();
    let hint = no_offers_hint(config, made.constraint.is_none());
    let cluster = MesosCluster::new(made).map_err(|error| draft.report_error(&error)).ok()?;
    // Other errors, such as that this machine trusts no authority, end the run when it starts.
    if let Err(error) = cluster.check_certificates()
        && error.is_setting()
    {
        draft.report_error(&error);
        return None;
    }
    if draft.problems.is_empty()
        && !draft.is_dry_run
        && let Err(error) = cluster.open_framework_id_file()
    {
        draft.problems.push(error.to_string());
        return None;
    }
    if let (Some((given, _)), OnExit::Kept(Duration::ZERO)) =
        (&draft.mesos.framework_id_file, on_exit)
        && draft.problems.is_empty()
    {
        draft.remarks.push(format!(
            "{} has little effect without --failover-timeout: a master that misses this framework ends \
             its executors at once",
            given.name
        ));
    }
    let cluster = Arc::new(cluster);
    let target = RunTarget {
        master: text,
        agents: None,
        fitting: None,
        sandboxes: if is_standalone { SandboxPlace::OnWorkers } else { SandboxPlace::OnAgents },
        local_names: None,
        no_offers_hint: Some(hint),
        on_exit,
        remains: FrameworkRemains::Mesos(Arc::clone(&cluster)),
        teardown_url,
        stop_timeout,
    };
    Some((target, cluster))
}

/// Why no offers come: the subscription filters them.
fn no_offers_hint(config: &Config, is_unconstrained: bool) -> String {
    let size = match config.executor_cores() {
        ExecutorCores::Fixed(each) => {
            format!("{each:#} and {}", config.memory_taken())
        }
        ExecutorCores::WholeOffer => config.memory_taken().to_string(),
    };
    let constraint = match is_unconstrained {
        true => "",
        false => " and meet the constraint",
    };
    format!("the master makes them only of agents that have {size} free{constraint}")
}

/// The name of a secret that is sent to the master, if there is one.
fn secret_to_send(draft: &SettingsDraft, config: &MesosConfig) -> Option<String> {
    if config.credential.as_ref().is_some_and(|it| it.secret.is_some()) {
        return Some(draft.mesos.secret_name().unwrap_or("the secret").to_owned());
    }
    if !draft.container.secret_values.is_empty() {
        return Some(draft.name_of("spark.mesos.executor.secret.values"));
    }
    // Variables are a part of the call that launches executors.
    let is_passed_on = has_driver(draft) && startup::secrets(draft).next().is_some();
    is_passed_on.then(|| "a secret of Spark's executors".to_owned())
}

fn unencrypted(name: &str, master: &str, is_standalone: bool) -> String {
    let with_tls = if is_standalone { "use https://, or give --ca-file" } else { "use https://" };
    format!(
        "{name} would be sent unencrypted to {master}; {with_tls}, or give \
         --allow-plain-secret"
    )
}

fn mesos_config(
    draft: &mut SettingsDraft,
    masters: Masters,
    name: &str,
    config: &Config,
) -> Option<MesosConfig> {
    let settings = &draft.mesos;
    let credential = match settings.credential() {
        Ok(credential) => credential,
        Err(problem) => {
            draft.problems.push(problem);
            return None;
        }
    };
    let client_certificate = match settings.client_certificate() {
        Ok(client_certificate) => client_certificate,
        Err(problem) => {
            draft.problems.push(problem);
            return None;
        }
    };
    let mut made = MesosConfig::new(masters, name).for_kernel(config);
    made.credential = credential;
    made.roles.clone_from(&settings.roles);
    made.user.clone_from(&settings.user);
    made.secret_over_plain_http = settings.plain_secret;
    made.failover_timeout = settings.failover_timeout;
    made.checkpoint = settings.checkpoint;
    made.webui_url.clone_from(&settings.webui_url);
    made.framework_id_file = path_of(&settings.framework_id_file);
    made.encoding = settings.encoding;
    made.ca_file = path_of(&settings.ca_file);
    made.ca_file_only = settings.ca_file_only;
    made.client_certificate = client_certificate;
    made.duplicate_attributes =
        if settings.repeats { DuplicateAttributes::Allowed } else { DuplicateAttributes::RuledOut };
    made.call_timeout = settings.call_timeout;
    made.subscribe_timeout = settings.subscribe_timeout;
    Some(made)
}

fn path_of(file: &Option<(Sourced, PathBuf)>) -> Option<PathBuf> {
    file.as_ref().map(|(_, path)| path.clone())
}

/// Reports files that don't exist or may be another user's, and folders that don't exist. Opens none of the files for
/// TLS: the library opens each once, and checks what it has opened. Returns whether these files may be used.
fn check_files(draft: &mut SettingsDraft) -> bool {
    let problems_before = draft.problems.len();
    let MesosSettings { ca_file, client_certificate_file, .. } = &draft.mesos;
    for (given, path) in [ca_file.clone(), client_certificate_file.clone()].into_iter().flatten() {
        if let Err(error) = FileAccess::of_path(&path).and_then(FileAccess::check_author) {
            draft.reject(&given, &format!("a file with certificates ({error})"));
        }
    }
    if let Some((given, path)) = draft.mesos.client_key_file.clone() {
        match FileAccess::of_path(&path) {
            Ok(file_access) => {
                let SettingsDraft { remarks, problems, .. } = draft;
                report_file_access(file_access, &given.text, remarks, problems);
            }
            Err(error) => draft.reject(&given, &format!("a file with a private key ({error})")),
        }
    }
    let has_tls_files = draft.problems.len() == problems_before;
    if let Some((given, path)) = draft.mesos.framework_id_file.clone()
        && let Err(why) = check_place(&path)
    {
        draft.reject(&given, &format!("a file, existing or not, in an existing folder ({why})"));
    }
    has_tls_files
}

fn check_place(path: &Path) -> Result<(), String> {
    if path.is_dir() {
        return Err("this is a folder".to_owned());
    }
    if path.exists() && !path.is_file() {
        return Err("this is not a regular file".to_owned());
    }
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    match fs::metadata(folder) {
        Ok(metadata) if metadata.is_dir() => Ok(()),
        Ok(_) => Err(format!("{} is not a folder", folder.display())),
        Err(error) => Err(format!("{}: {error}", folder.display())),
    }
}
