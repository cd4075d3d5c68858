//! Keys of Spark that are ignored, each with the reason that a remark gives.

use std::collections::BTreeMap;

/// A reason, and the keys that are ignored for it. A key that ends in a dot stands for all that begin with it.
type ReasonWithKeys = (&'static str, &'static [&'static str]);

/// The keys that apply to Spark's executors only.
pub(super) const SPARK_ONLY: &[&str] = &[
    "spark.driver.host",
    "spark.driver.port",
    "spark.app.id",
    "offermill.spark.hostname",
    "spark.mesos.executor.home",
    "spark.executor.uri",
    "spark.executor.extraClassPath",
    "spark.executor.extraLibraryPath",
    "spark.executor.defaultJavaOptions",
    "spark.executor.extraJavaOptions",
    "offermill.spark.moduleOptions",
    "spark.task.cpus",
    "offermill.spark.user",
    "spark.authenticate.secret",
    "spark.kubernetes.executor.podNamePrefix",
    "spark.kubernetes.resource.type",
];

/// On all clusters.
const UNUSED: &[ReasonWithKeys] = &[
    (
        "they are for drivers that Spark's dispatcher starts",
        &[
            "spark.mesos.dispatcher.",
            "spark.mesos.driver.constraints",
            "spark.mesos.driver.labels",
            "spark.mesos.driver.memoryOverhead",
            "spark.mesos.driver.secret.",
            "spark.mesos.driverEnv.",
            "spark.mesos.maxDrivers",
            "spark.mesos.retainedDrivers",
            "spark.mesos.cluster.retry.wait.max",
            "spark.mesos.proxy.baseURL",
            "spark.mesos.appJar.local.resolution.mode",
        ],
    ),
    ("there is no fine-grained mode", &["spark.mesos.mesosExecutor.cores"]),
    (
        "they are for standalone clusters",
        &["spark.deploy.", "spark.worker.", "spark.dead.worker.persistence"],
    ),
    ("they are for Kubernetes", &["spark.kubernetes."]),
    ("they are for YARN", &["spark.yarn."]),
    ("they are the shuffle service's own", &["spark.shuffle.cleaner.interval"]),
    (
        "executors of excluded agents run on until they end",
        &[
            "spark.excludeOnFailure.killExcludedExecutors",
            "spark.excludeOnFailure.killExcludedExecutors.decommission",
            "spark.blacklist.killBlacklistedExecutors",
        ],
    ),
    ("executors are ended without being decommissioned before", &["spark.decommission.enabled"]),
    ("on Mesos spark.mesos.executor.memoryOverhead counts", &["spark.executor.memoryOverhead"]),
    ("--framework-id-file stores the framework's id", &["spark.mesos.driver.frameworkId"]),
];

/// On Kubernetes, before [`UNUSED`].
const UNUSED_ON_KUBERNETES: &[ReasonWithKeys] = &[
    (
        "they are for drivers that Spark starts in the cluster",
        &[
            "spark.kubernetes.allocation.driver.readinessTimeout",
            "spark.kubernetes.appKillPodDeletionGracePeriod",
            "spark.kubernetes.authenticate.driver.",
            "spark.kubernetes.authenticate.submission.",
            "spark.kubernetes.driver.",
            "spark.kubernetes.driverEnv.",
            "spark.kubernetes.file.upload.path",
            "spark.kubernetes.jars.avoidDownloadSchemes",
            "spark.kubernetes.kerberos.",
            "spark.kubernetes.report.interval",
            "spark.kubernetes.submission.",
            "spark.kubernetes.submitInDriver",
        ],
    ),
    (
        "pods are watched, and created as soon as they are wanted",
        &[
            "spark.kubernetes.allocation.batch.delay",
            "spark.kubernetes.executor.apiPollingInterval",
            "spark.kubernetes.executor.enableApiPolling",
            "spark.kubernetes.executor.enableApiWatcher",
            "spark.kubernetes.executor.enablePollingWithResourceVersion",
            "spark.kubernetes.executor.eventProcessingInterval",
            "spark.kubernetes.executor.missingPodDetectDelta",
        ],
    ),
    (
        "executors are ended without being decommissioned before",
        &["spark.kubernetes.decommission.script"],
    ),
    (
        "executors are asked to end within --shutdown-timeout",
        &["spark.kubernetes.dynamicAllocation.deleteGracePeriod"],
    ),
    ("they aren't supported", &["spark.kubernetes."]),
];

/// Whether a key is ignored.
pub(super) fn is_unused(key: &str) -> bool {
    why_unused(key, false).is_some()
}

/// Sorts keys by the reasons for which they are ignored.
pub(super) fn by_reason(
    keys: &[String],
    is_on_kubernetes: bool,
) -> BTreeMap<&'static str, Vec<&str>> {
    let mut sorted: BTreeMap<&'static str, Vec<&str>> = BTreeMap::new();
    for key in keys {
        if let Some(why) = why_unused(key, is_on_kubernetes) {
            sorted.entry(why).or_default().push(key);
        }
    }
    sorted
}

/// Whether a key of these lists stands for this one. One that ends in a dot stands for all that begin with it.
pub(super) fn stands_for(known: &str, key: &str) -> bool {
    match known.ends_with('.') {
        true => key.len() > known.len() && key.starts_with(known),
        false => key == known,
    }
}

fn why_unused(key: &str, is_on_kubernetes: bool) -> Option<&'static str> {
    let more = if is_on_kubernetes { UNUSED_ON_KUBERNETES } else { &[] };
    let mut all = more.iter().chain(UNUSED);
    all.find(|(_, keys)| keys.iter().any(|known| stands_for(known, key))).map(|(why, _)| *why)
}
