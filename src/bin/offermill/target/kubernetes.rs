//! Preparation of a Kubernetes cluster, whose nodes only its scheduler knows.

use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use offermill::cluster::kubernetes::{
    ApiServer, KubernetesCluster, KubernetesConfig, PodTemplate, RunOwner,
};
use offermill::private_files::{FileAccess, open_input};
use offermill::{Config, Error};

use crate::model::target::{FrameworkRemains, OnExit, RunTarget, SandboxPlace};
use crate::settings::api_address::ApiAddress;
use crate::settings::draft::SettingsDraft;
use crate::settings::file_access::report_file_access;
use crate::settings::sources::Sourced;
use crate::settings::values::kubernetes::KubernetesSettings;
use crate::target::PreparedTarget;

mod files;
mod spark;
mod volumes;

/// The largest file with certificates, in bytes.
const CERTIFICATE_BYTES_MAX: u64 = 4 << 20;
/// The most bytes that are read of a template: more than one may have.
const TEMPLATE_BYTES_MAX: u64 = 2 << 20;
/// The longest that the cluster's stop may take: the manager gives up after 4 s.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// Checks the files of credentials, and the settings of pods.
pub(super) fn prepare(
    draft: &mut SettingsDraft,
    text: String,
    address: &ApiAddress,
    name: &str,
    config: &Config,
) -> Option<PreparedTarget> {
    let made = connection(draft, &text, address, name)?;
    let mut made = with_pods(draft, made);
    let problems_before = draft.problems.len();
    made.template = read_template(draft);
    if draft.kubernetes.runs_spark {
        spark::set(draft, &mut made);
    }
    made.volumes = volumes::volumes(draft);
    made.files = files::read(draft);
    if draft.problems.len() > problems_before {
        return None;
    }
    let cluster = made.for_kernel(config).and_then(KubernetesCluster::new);
    let cluster = cluster.map_err(|error| report(draft, &error)).ok()?;
    let cluster = Arc::new(cluster);
    let target = RunTarget {
        master: text,
        agents: None,
        fitting: None,
        sandboxes: SandboxPlace::InPods,
        local_names: None,
        no_offers_hint: None,
        on_exit: OnExit::Left,
        remains: FrameworkRemains::Kubernetes(Arc::clone(&cluster)),
        teardown_url: None,
        stop_timeout: STOP_TIMEOUT,
    };
    Some((target, cluster))
}

/// Reports an error of the library. It knows the constraint by another name.
fn report(draft: &mut SettingsDraft, error: &Error) {
    match error.invalid_setting() {
        Some(setting) if setting.name == "constraint" => {
            let name = draft.name_of("spark.mesos.constraints");
            let value = draft.constraint.to_string();
            draft.problems.push(format!("{name} is {value:?}, but must be {}", setting.allowed));
        }
        _ => draft.report_error(error),
    }
}

/// The settings of the connection and of the run's lease.
pub(crate) fn connection(
    draft: &mut SettingsDraft,
    text: &str,
    address: &ApiAddress,
    name: &str,
) -> Option<KubernetesConfig> {
    let api_server = api_server(draft, text, address)?;
    let settings = &draft.kubernetes;
    let mut made = KubernetesConfig::new(name).with_api_server(api_server);
    made.namespace.clone_from(&settings.namespace);
    made.request_timeout = settings.request_timeout;
    made.connect_timeout = settings.connect_timeout;
    made.lease_duration = settings.lease_duration;
    made.checks_access = true;
    made.owner = owner(settings);
    Some(made)
}

/// What owns the lease of a run: the pod of this program, if it runs in one.
fn owner(settings: &KubernetesSettings) -> RunOwner {
    let in_cluster = std::env::var_os("KUBERNETES_SERVICE_HOST").is_some();
    let hostname = std::env::var("HOSTNAME").ok().filter(|name| in_cluster && !name.is_empty());
    match (settings.own_pod.clone(), hostname) {
        (Some(given), _) => RunOwner::Pod(given),
        (None, Some(hostname)) => RunOwner::PodIfThere(hostname),
        (None, None) => RunOwner::Nobody,
    }
}

fn with_pods(draft: &SettingsDraft, mut made: KubernetesConfig) -> KubernetesConfig {
    let settings = &draft.kubernetes;
    made.image = settings.image.as_ref().map(|(_, image)| image.clone());
    made.pull_policy.clone_from(&settings.pull_policy);
    made.pull_secrets.clone_from(&settings.pull_secrets);
    made.labels.clone_from(&settings.labels);
    made.annotations.clone_from(&settings.annotations);
    made.node_selector.clone_from(&settings.node_selector);
    made.tolerations.clone_from(&settings.tolerations);
    made.service_account.clone_from(&settings.service_account);
    made.scheduler.clone_from(&settings.scheduler);
    made.priority_class.clone_from(&settings.priority_class);
    made.cpu_request = settings.cpu_request;
    made.cpu_limit = settings.cpu_limit;
    made.secret_mounts.clone_from(&settings.secret_mounts);
    made.termination_grace = settings.termination_grace;
    made.creations_max = settings.creations_max;
    made.pending_max = settings.pending_max.unwrap_or(usize::MAX);
    made.start_timeout = settings.start_timeout;
    made.keeps_ended = settings.keeps_ended;
    let end_label = settings.end_label.clone();
    made.end_label = end_label.map(|label| (label, settings.end_label_value.clone()));
    made
}

/// Where the API server is, and as whom requests are made.
fn api_server(draft: &mut SettingsDraft, text: &str, address: &ApiAddress) -> Option<ApiServer> {
    let problems_before = draft.problems.len();
    let authorities = read_authorities(draft);
    check_secret_files(draft);
    let settings = &draft.kubernetes;
    let context = settings.context.clone();
    let Some(url) = address.url() else {
        if let Some(name) = settings.secret_name() {
            let problem = format!(
                "{name} is for the API server of --master k8s://https://HOST:PORT; \
                                   the kubeconfig has credentials of its own"
            );
            draft.problems.push(problem);
            return None;
        }
        let server = context.map_or(ApiServer::Inferred, ApiServer::Context);
        return (draft.problems.len() == problems_before).then_some(server);
    };
    if let Some(name) = settings.secret_name().filter(|_| address.is_plain()) {
        let problem =
            format!("{name} would be sent unencrypted to {text}; use k8s://https://HOST:PORT");
        draft.problems.push(problem);
        return None;
    }
    if let (Some((given, _)), true) = (&settings.authority_file, address.is_plain()) {
        let problem =
            format!("{} is for servers with https://, and --master is {text:?}", given.name);
        draft.problems.push(problem);
        return None;
    }
    if address.is_open_to_all() {
        draft.remarks.push(format!(
            "what is sent to {text} can be read and changed on the network; use k8s://https://HOST:PORT"
        ));
    }
    if !settings.has_login() {
        return Some(ApiServer::Known { url, context });
    }
    let key_pair = settings.key_pair().ok()?;
    let token = settings.token.as_ref().map(|(_, token)| token.clone());
    let token_file = settings.token_file.as_ref().map(|(_, path)| path.clone());
    let server = ApiServer::Url { url, token, token_file, key_pair, authorities };
    (draft.problems.len() == problems_before).then_some(server)
}

/// Reads the template of pods. A file that can't be read, that another user may have written, or that is no template is
/// reported.
fn read_template(draft: &mut SettingsDraft) -> Option<PodTemplate> {
    let (given, path) = draft.kubernetes.template_file.clone()?;
    let read = open_input(&path).and_then(|file| {
        FileAccess::of(&file)?.check_author()?;
        let mut text = String::new();
        file.take(TEMPLATE_BYTES_MAX).read_to_string(&mut text)?;
        Ok(text)
    });
    let text = match read {
        Ok(text) => text,
        Err(error) => {
            draft.reject(&given, &format!("a file with a template of pods ({error})"));
            return None;
        }
    };
    let template = PodTemplate::read(&text, draft.kubernetes.template_container.as_deref());
    match &template {
        Ok(_) => {}
        Err(error) => match error.invalid_setting() {
            Some(setting) => draft.reject(&given, &format!("a file with {}", setting.allowed)),
            None => draft.report_error(error),
        },
    }
    template.ok()
}

/// Reads the certificates of authorities. A file that can't be read, or that another user may have written, is
/// reported.
fn read_authorities(draft: &mut SettingsDraft) -> Option<Vec<u8>> {
    let (given, path) = draft.kubernetes.authority_file.clone()?;
    let read = open_input(&path).and_then(|file| {
        FileAccess::of(&file)?.check_author()?;
        let mut bytes = Vec::new();
        file.take(CERTIFICATE_BYTES_MAX).read_to_end(&mut bytes)?;
        Ok(bytes)
    });
    match read {
        Ok(bytes) if contains(&bytes, b"-----BEGIN CERTIFICATE-----") => Some(bytes),
        Ok(_) => {
            draft.reject(&given, "a file of certificates in PEM (it contains none)");
            None
        }
        Err(error) => {
            draft.reject(&given, &format!("a file with certificates ({error})"));
            None
        }
    }
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// Reports files of credentials that can't be read, and those that others may write, and remarks on secrets that others
/// may read. Opens none of them: the library does.
fn check_secret_files(draft: &mut SettingsDraft) {
    let settings = &draft.kubernetes;
    if let Some((given, path)) = settings.certificate_file.clone()
        && let Err(error) = FileAccess::of_path(&path).and_then(FileAccess::check_author)
    {
        draft.reject(&given, &format!("a file with a certificate ({error})"));
    }
    let settings = &draft.kubernetes;
    let files: [(Option<(Sourced, PathBuf)>, &str); 2] = [
        (settings.token_file.clone(), "a file with a token"),
        (settings.key_file.clone(), "a file with a private key"),
    ];
    for (file, what) in files {
        let Some((given, path)) = file else { continue };
        match FileAccess::of_path(&path) {
            Ok(file_access) => {
                let SettingsDraft { remarks, problems, .. } = draft;
                report_file_access(file_access, &given.text, remarks, problems);
            }
            Err(error) => draft.reject(&given, &format!("{what} ({error})")),
        }
    }
}
