//! Checks of the settings of a run on Kubernetes, and the defaults that differ there.

use offermill::config::{ExecutorCores, ExecutorGpus};
use offermill::resources::{Gpus, Mebibytes, MilliCpus};

use crate::settings::draft::SettingsDraft;
use crate::settings::master::ClusterKind;
use crate::settings::values::kubernetes::TaskLanguage;

/// The share of the expected cores that must be registered by default, as Spark has it on Kubernetes.
const REGISTERED_RATIO: f64 = 0.8;

/// The part of an executor's memory that is its overhead if its tasks run beside Java, in Python or R.
const OVERHEAD_FACTOR_BESIDE_JAVA: f64 = 0.4;

/// Sets the defaults that differ on Kubernetes, and reports what is missing there.
pub(crate) fn check(draft: &mut SettingsDraft) {
    if !draft.is_on(ClusterKind::Kubernetes) {
        return;
    }
    draft.registered_ratio.get_or_insert(REGISTERED_RATIO);
    if draft.kubernetes.language != TaskLanguage::Java {
        draft.overhead_factor.get_or_insert(OVERHEAD_FACTOR_BESIDE_JAVA);
    }
    if draft.kubernetes.has_off_heap && draft.kubernetes.off_heap == Mebibytes::ZERO {
        let why = "memory outside the heap has to have a size above 0 MiB";
        draft.report_conflict(&["spark.memory.offHeap.enabled", "spark.memory.offHeap.size"], why);
    }
    if draft.given("spark.executor.cores").is_none() {
        draft.executor_cores = ExecutorCores::Fixed(MilliCpus::from_cores(1));
    }
    if draft.kubernetes.image.is_none() && !draft.is_dry_run {
        let sentence = "there is no image for executors' containers: give --container-image \
                        (spark.kubernetes.container.image)";
        draft.problems.push(sentence.to_owned());
    }
    let is_bounded =
        draft.executors.is_some() || draft.core_cap.is_some() || draft.allocation.enabled;
    let bounds = ["spark.executor.instances", "spark.cores.max"];
    if !is_bounded && !draft.is_dry_run && bounds.iter().all(|key| draft.is_read(key)) {
        let sentence = "the number of executors is needed on Kubernetes, where as many pods are created as are \
                        wanted, with room or without: give --num-executors or --total-executor-cores";
        draft.problems.push(sentence.to_owned());
    }
    if draft.gpu_cap > Gpus::ZERO && draft.executor_gpus == ExecutorGpus::WhatThereIs {
        let why = "on Kubernetes a pod must say how many it takes";
        draft.report_conflict(&["spark.mesos.gpus.max", "spark.mesos.executor.gpus"], why);
    }
    if let Err(problem) = draft.kubernetes.key_pair() {
        draft.problems.push(problem);
    }
    if let (Some((token, _)), Some((file, _))) =
        (&draft.kubernetes.token, &draft.kubernetes.token_file)
    {
        let problem = format!("{} and {} are both given; give one of them", token.name, file.name);
        draft.problems.push(problem);
    }
}
