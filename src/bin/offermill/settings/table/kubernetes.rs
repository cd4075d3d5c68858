//! The options of pods, which apply on Kubernetes only.

use std::collections::BTreeMap;

use offermill::Error;
use offermill::cluster::kubernetes::{POD_FILES_BYTES_MAX, Toleration};
use offermill::config::text::{TimeUnit, parse_bool, parse_count, parse_memory};
use offermill::resources::{Mebibytes, MilliCpus};

use crate::settings::draft::SettingsDraft;
use crate::settings::master::ClusterKind;
use crate::settings::sources::Sourced;
use crate::settings::table::row::{OptionRow, non_empty, positive_duration};
use crate::settings::values::kubernetes::TaskLanguage;

/// Images, the size and the metadata of pods, where they are placed, and how they are created.
pub(super) const KUBERNETES_ROWS: &[OptionRow] = &[
    OptionRow::spark_on_kubernetes("spark.kubernetes.container.image", "image")
        .derived("none")
        .read(read_image),
    OptionRow::spark_on_kubernetes("spark.kubernetes.executor.container.image", "image")
        .derived("spark.kubernetes.container.image")
        .read(read_image),
    OptionRow::spark_on_kubernetes(
        "spark.kubernetes.container.image.pullPolicy",
        "Always, IfNotPresent or Never",
    )
    .default("IfNotPresent")
    .read(|draft, given| {
        match given.text.trim() {
            policy @ ("Always" | "IfNotPresent" | "Never") => {
                draft.kubernetes.pull_policy = Some(policy.to_owned());
            }
            _ => draft.reject(given, "Always, IfNotPresent or Never"),
        }
        Ok(())
    }),
    OptionRow::spark_on_kubernetes("spark.kubernetes.container.image.pullSecrets", "SECRET[,...]")
        .derived("none")
        .read(|draft, given| {
            draft.kubernetes.pull_secrets = list(given);
            Ok(())
        }),
    OptionRow::spark_on_kubernetes(
        "spark.kubernetes.executor.podNamePrefix",
        "beginning of the names of Spark's pods",
    )
    .library_name("prefix of pods' names")
    .derived("the run's name and its start")
    .read(|draft, given| {
        draft.kubernetes.pod_prefix = non_empty(given);
        Ok(())
    }),
    OptionRow::offermill(
        "offermill.kubernetes.files",
        "FILE[,...]: files of this machine that executors find in their containers",
    )
    .flag("--files")
    .library_name("name of a file")
    .derived("none")
    .needs(ClusterKind::Kubernetes)
    .read(|draft, given| {
        draft.kubernetes.files =
            Some((given.clone(), list(given))).filter(|(_, it)| !it.is_empty());
        Ok(())
    }),
    OptionRow::offermill(
        "offermill.kubernetes.filesPath",
        "folder of the container with the files",
    )
    .library_name("folder of files")
    .derived("/opt/offermill/files, for Spark's executors /opt/spark/conf")
    .only(ClusterKind::Kubernetes)
    .read(|draft, given| {
        draft.kubernetes.files_folder = non_empty(given);
        Ok(())
    }),
    OptionRow::spark_on_kubernetes("spark.kubernetes.executor.disableConfigMap", "true or false")
        .default("false")
        .read(|draft, given| given.read_into(&mut draft.kubernetes.has_no_config_map, parse_bool)),
    OptionRow::spark_on_kubernetes(
        "spark.kubernetes.configMap.maxSize",
        "bytes that the files may have in all",
    )
    .default("1048576")
    .read(|draft, given| {
        given.read_into(&mut draft.kubernetes.config_map_bytes_max, |name, text| {
            parse_count(name, text, 1..=POD_FILES_BYTES_MAX as u64).map(|count| count as usize)
        })
    }),
    OptionRow::spark_on_kubernetes("spark.memory.offHeap.enabled", "true or false")
        .default("false")
        .read(|draft, given| given.read_into(&mut draft.kubernetes.has_off_heap, parse_bool)),
    OptionRow::spark_on_kubernetes(
        "spark.memory.offHeap.size",
        "memory (bytes), beyond the overhead",
    )
    .default("0")
    .read(|draft, given| given.read_into(&mut draft.kubernetes.off_heap, parse_byte_count)),
    OptionRow::spark_on_kubernetes(
        "spark.executor.pyspark.memory",
        "memory (MiB) of Python, beyond the overhead",
    )
    .default("0")
    .read(|draft, given| given.read_into(&mut draft.kubernetes.python_memory, parse_memory)),
    OptionRow::spark_on_kubernetes("spark.kubernetes.resource.type", "java, python or r")
        .default("java")
        .read(|draft, given| {
            match given.text.trim() {
                "java" => draft.kubernetes.language = TaskLanguage::Java,
                "python" => draft.kubernetes.language = TaskLanguage::Python,
                "r" => draft.kubernetes.language = TaskLanguage::R,
                _ => draft.reject(given, "java, python or r"),
            }
            Ok(())
        }),
    OptionRow::spark_on_kubernetes("spark.kubernetes.executor.label.", "text")
        .derived("none")
        .read(|draft, given| {
            insert(&mut draft.kubernetes.labels, "spark.kubernetes.executor.label.", given);
            Ok(())
        }),
    OptionRow::spark_on_kubernetes("spark.kubernetes.executor.annotation.", "text")
        .derived("none")
        .read(|draft, given| {
            let annotations = &mut draft.kubernetes.annotations;
            insert(annotations, "spark.kubernetes.executor.annotation.", given);
            Ok(())
        }),
    OptionRow::spark_on_kubernetes("spark.kubernetes.node.selector.", "value of the node's label")
        .derived("none")
        .read(|draft, given| {
            let selector = &mut draft.kubernetes.node_selector;
            insert(selector, "spark.kubernetes.node.selector.", given);
            Ok(())
        }),
    OptionRow::spark_on_kubernetes(
        "spark.kubernetes.executor.node.selector.",
        "value of the node's label",
    )
    .derived("none")
    .read(|draft, given| {
        let selector = &mut draft.kubernetes.node_selector;
        insert(selector, "spark.kubernetes.executor.node.selector.", given);
        Ok(())
    }),
    OptionRow::offermill(
        "offermill.kubernetes.tolerations",
        "KEY[=VALUE][:EFFECT][,...]: the taints that pods tolerate",
    )
    .derived("none")
    .only(ClusterKind::Kubernetes)
    .read(|draft, given| {
        read_tolerations(draft, given);
        Ok(())
    }),
    OptionRow::spark_on_kubernetes(
        "spark.kubernetes.authenticate.executor.serviceAccountName",
        "name",
    )
    .derived("the namespace's default")
    .read(|draft, given| {
        draft.kubernetes.service_account = non_empty(given);
        Ok(())
    }),
    OptionRow::spark_on_kubernetes("spark.kubernetes.scheduler.name", "name")
        .derived("the cluster's default")
        .read(read_scheduler),
    OptionRow::spark_on_kubernetes("spark.kubernetes.executor.scheduler.name", "name")
        .derived("spark.kubernetes.scheduler.name")
        .read(read_scheduler),
    OptionRow::offermill("offermill.kubernetes.priorityClass", "name")
        .derived("the cluster's default")
        .only(ClusterKind::Kubernetes)
        .read(|draft, given| {
            draft.kubernetes.priority_class = non_empty(given);
            Ok(())
        }),
    OptionRow::spark_on_kubernetes(
        "spark.kubernetes.executor.request.cores",
        "cores, as 0.5 or 500m",
    )
    .derived("the executor's cores")
    .read(|draft, given| {
        draft.kubernetes.cpu_request = read_cpus(draft, given);
        Ok(())
    }),
    OptionRow::spark_on_kubernetes(
        "spark.kubernetes.executor.limit.cores",
        "cores, as 0.5 or 500m",
    )
    .derived("none")
    .read(|draft, given| {
        draft.kubernetes.cpu_limit = read_cpus(draft, given);
        Ok(())
    }),
    OptionRow::spark_on_kubernetes("spark.executor.memoryOverhead", "memory (MiB)")
        .derived("spark.mesos.executor.memoryOverhead")
        .read(|draft, given| match draft.given("spark.mesos.executor.memoryOverhead") {
            Some(_) => Ok(()),
            None => given
                .read_into(&mut draft.overhead, |name, text| parse_memory(name, text).map(Some)),
        }),
    OptionRow::spark_on_kubernetes("spark.kubernetes.memoryOverheadFactor", "number above 0")
        .derived("spark.executor.memoryOverheadFactor")
        .read(|draft, given| {
            match given.text.trim().parse::<f64>() {
                Ok(factor) if factor > 0.0 && factor.is_finite() => {
                    draft.overhead_factor.get_or_insert(factor);
                }
                _ => draft.reject(given, "a number above 0, such as 0.1"),
            }
            Ok(())
        }),
    OptionRow::spark_on_kubernetes(
        "spark.kubernetes.executor.secrets.",
        "folder of the container in which the secret of this name is mounted",
    )
    .derived("none")
    .read(|draft, given| {
        let mounts = &mut draft.kubernetes.secret_mounts;
        insert(mounts, "spark.kubernetes.executor.secrets.", given);
        Ok(())
    }),
    OptionRow::spark_on_kubernetes(
        "spark.kubernetes.executor.secretKeyRef.",
        "SECRET:KEY for the variable of this name",
    )
    .derived("none")
    .read(|draft, given| {
        read_secret_variable(draft, given);
        Ok(())
    }),
    OptionRow::spark_on_kubernetes(
        "spark.kubernetes.executor.terminationGracePeriodSeconds",
        "duration (s): of ends that others request",
    )
    .derived("the server's default, 30s")
    .read(|draft, given| {
        draft.kubernetes.termination_grace =
            Some(positive_duration(draft, given, TimeUnit::Seconds)?);
        Ok(())
    }),
    OptionRow::spark_on_kubernetes(
        "spark.kubernetes.allocation.batch.size",
        "number: creations in flight",
    )
    .library_name("creations in flight")
    .default("16")
    .read(|draft, given| {
        given.read_into(&mut draft.kubernetes.creations_max, |name, text| {
            parse_count(name, text, 1..=1000).map(|count| count as usize)
        })
    }),
    OptionRow::spark_on_kubernetes(
        "spark.kubernetes.allocation.maxPendingPods",
        "number: pods that don't run yet",
    )
    .library_name("pending pods")
    .derived("no maximum")
    .read(|draft, given| {
        given.read_into(&mut draft.kubernetes.pending_max, |name, text| {
            parse_count(name, text, 1..=u32::MAX.into()).map(|count| usize::try_from(count).ok())
        })
    }),
    OptionRow::spark_on_kubernetes(
        "spark.kubernetes.allocation.executor.timeout",
        "duration (ms): how long an image may be missing",
    )
    .library_name("start timeout")
    .default("600s")
    .read(|draft, given| {
        draft.kubernetes.start_timeout = positive_duration(draft, given, TimeUnit::Milliseconds)?;
        Ok(())
    }),
    OptionRow::spark_on_kubernetes(
        "spark.kubernetes.executor.deleteOnTermination",
        "true or false: whether pods that have ended are deleted",
    )
    .default("true")
    .read(|draft, given| {
        draft.kubernetes.keeps_ended = !parse_bool(&given.name, &given.text)?;
        Ok(())
    }),
    OptionRow::spark_on_kubernetes(
        "spark.kubernetes.executor.decommissionLabel",
        "label of pods whose executors are about to be ended",
    )
    .library_name("label of pods that end")
    .derived("none")
    .read(|draft, given| {
        draft.kubernetes.end_label = non_empty(given);
        Ok(())
    }),
    OptionRow::spark_on_kubernetes("spark.kubernetes.executor.decommissionLabelValue", "its value")
        .derived("empty")
        .read(|draft, given| {
            given.text.trim().clone_into(&mut draft.kubernetes.end_label_value);
            Ok(())
        }),
    OptionRow::spark_on_kubernetes(
        "spark.kubernetes.executor.podTemplateFile",
        "file with a pod in YAML or JSON, which says what pods have beside all this",
    )
    .derived("none")
    .read(|draft, given| {
        let file = non_empty(given).map(|path| (given.clone(), path.into()));
        draft.kubernetes.template_file = file;
        Ok(())
    }),
    OptionRow::spark_on_kubernetes(
        "spark.kubernetes.executor.podTemplateContainerName",
        "name of the executor's container in it",
    )
    .derived("the first one")
    .read(|draft, given| {
        draft.kubernetes.template_container = non_empty(given);
        Ok(())
    }),
    OptionRow::spark_on_kubernetes(
        "spark.kubernetes.executor.volumes.",
        "TYPE.NAME.mount.path and so on: hostPath, emptyDir, nfs, persistentVolumeClaim",
    )
    .derived("none")
    .read(|draft, given| {
        read_volume_key(draft, given);
        Ok(())
    }),
];

/// Takes a key of a volume apart: its type, its name, and the rest.
fn read_volume_key(draft: &mut SettingsDraft, given: &Sourced) {
    let key = given.key.strip_prefix("spark.kubernetes.executor.volumes.").unwrap_or_default();
    match key.splitn(3, '.').collect::<Vec<&str>>()[..] {
        [kind, name, rest] if !name.is_empty() && !rest.is_empty() => {
            let volume = (kind.to_owned(), name.to_owned());
            let keys = draft.kubernetes.volume_keys.entry(volume).or_default();
            keys.insert(rest.to_owned(), given.clone());
        }
        _ => {
            let name = &given.name;
            draft.problems.push(format!(
                "{name} must be followed by TYPE.NAME.KEY, as in hostPath.data.mount.path"
            ));
        }
    }
}

/// Reads an image.
fn read_image(draft: &mut SettingsDraft, given: &Sourced) -> Result<(), Error> {
    draft.kubernetes.set_image(given);
    Ok(())
}

/// Reads the name of a scheduler. That of executors is read last.
fn read_scheduler(draft: &mut SettingsDraft, given: &Sourced) -> Result<(), Error> {
    if let Some(name) = non_empty(given) {
        draft.kubernetes.scheduler = Some(name);
    }
    Ok(())
}

/// Inserts a value under what follows `beginning` in the key.
fn insert(values: &mut BTreeMap<String, String>, beginning: &str, given: &Sourced) {
    let name = given.key.strip_prefix(beginning).unwrap_or(&given.key);
    values.insert(name.to_owned(), given.text.trim().to_owned());
}

/// Reads a list separated by commas.
fn list(given: &Sourced) -> Vec<String> {
    let items = given.text.split(',').map(str::trim).filter(|item| !item.is_empty());
    items.map(str::to_owned).collect()
}

/// Reads a quantity of cores: a number, or thousandths with an `m`.
fn read_cpus(draft: &mut SettingsDraft, given: &Sourced) -> Option<MilliCpus> {
    const MOST: f64 = 1e6;
    let text = given.text.trim();
    let (number, unit) = match text.strip_suffix('m') {
        Some(number) => (number, 1.0),
        None => (text, 1000.0),
    };
    let is_plain = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let millis = number.parse::<f64>().ok().filter(|_| is_plain).map(|number| number * unit);
    match millis {
        // The cast is of a whole number within the type.
        Some(millis) if millis >= 1.0 && millis.fract() == 0.0 && millis <= MOST * 1000.0 => {
            Some(MilliCpus::from_millis(millis as u64))
        }
        _ => {
            draft.reject(given, "a number of cores from 1m to 1000000, such as 0.5 or 500m");
            None
        }
    }
}

/// Reads taints that pods tolerate.
fn read_tolerations(draft: &mut SettingsDraft, given: &Sourced) {
    const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
    for item in list(given) {
        let (taint, effect) = match item.rsplit_once(':') {
            Some((taint, effect)) => (taint, Some(effect)),
            None => (item.as_str(), None),
        };
        let (key, value) = match taint.split_once('=') {
            Some((key, value)) => (key, Some(value)),
            None => (taint, None),
        };
        if key.is_empty() || effect.is_some_and(|effect| !EFFECTS.contains(&effect)) {
            let allowed =
                "KEY[=VALUE][:EFFECT], with NoSchedule, PreferNoSchedule or NoExecute as effect";
            return draft.reject(given, allowed);
        }
        let mut toleration = Toleration::new(key);
        toleration.value = value.map(str::to_owned);
        toleration.effect = effect.map(str::to_owned);
        draft.kubernetes.tolerations.push(toleration);
    }
}

/// Reads the secret and the key in it from which a variable gets its value.
fn read_secret_variable(draft: &mut SettingsDraft, given: &Sourced) {
    let name = given.key.strip_prefix("spark.kubernetes.executor.secretKeyRef.");
    match (name, given.text.trim().split_once(':')) {
        (Some(name), Some((secret, key))) if !secret.is_empty() && !key.is_empty() => {
            draft.container.secret_variables.push(name.to_owned());
            draft.container.secret_names.push(format!("{secret}/{key}"));
        }
        _ => draft.reject(given, "the name of a secret, \":\", and a key in it"),
    }
}

/// Reads an amount of memory whose bare number is of bytes; parts of a MiB don't count, as in Spark.
fn parse_byte_count(name: &str, text: &str) -> Result<Mebibytes, Error> {
    let text = text.trim();
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return parse_memory(name, text);
    }
    parse_count(name, text, 0..=u64::MAX).map(|bytes| Mebibytes::new(bytes >> 20))
}
