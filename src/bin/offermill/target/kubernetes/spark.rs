//! What Spark's executors have as pods, beside the settings of all pods, as Spark's own backend makes them.

use offermill::cluster::kubernetes::{KubernetesConfig, dashed};

use crate::settings::draft::SettingsDraft;

/// The port of an executor's block manager, if none is set.
const BLOCK_MANAGER_PORT: u16 = 7079;

/// The longest value of a label, in bytes.
const LABEL_BYTES_MAX: usize = 63;

/// The variables with what only the pod knows, and the fields that have it.
const FIELDS: [(&str, &str); 2] =
    [("SPARK_EXECUTOR_POD_IP", "status.podIP"), ("SPARK_EXECUTOR_POD_NAME", "metadata.name")];

/// Sets the names, labels, variables and ports of Spark's pods. Ids are numbers, which each run uses again.
pub(super) fn set(draft: &SettingsDraft, made: &mut KubernetesConfig) {
    let settings = &draft.kubernetes;
    let prefix = settings.pod_prefix.clone().unwrap_or_else(|| settings.own_prefix.clone());
    let app = draft.spark.app_id.as_deref().unwrap_or(&made.name).to_owned();
    let fill = |value: &mut String| *value = value.replace("{{APP_ID}}", &app);
    made.labels.values_mut().chain(made.annotations.values_mut()).for_each(fill);
    let name = draft.name.as_deref().unwrap_or(&made.name);
    let labels = [
        ("spark-app-selector", app.clone()),
        ("spark-app-name", app_name(name)),
        ("spark-role", "executor".to_owned()),
        ("spark-exec-id", "{{EXECUTOR_ID}}".to_owned()),
        ("spark-exec-resourceprofile-id", "0".to_owned()),
    ];
    made.labels.extend(labels.map(|(key, value)| (key.to_owned(), value)));
    made.field_variables = FIELDS.map(|(name, path)| (name.to_owned(), path.to_owned())).into();
    let is_random = draft.text_of("spark.blockManager.port").is_some_and(|it| it.trim() == "0");
    if !is_random {
        let port = draft.port.unwrap_or(BLOCK_MANAGER_PORT);
        made.ports.insert("blockmanager".to_owned(), port);
    }
    made.pod_prefix = Some(prefix);
    made.adopts = false;
}

/// The name of an application as a label: lower-case letters, digits and single `-` between them.
fn app_name(name: &str) -> String {
    let mut label = dashed(name);
    label.truncate(LABEL_BYTES_MAX);
    label.truncate(label.trim_end_matches('-').len());
    label
}
