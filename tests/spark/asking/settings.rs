//! Random settings of a scenario.

use serde_json::{Map, Value};

use crate::rng::Rng;

/// The main subject of a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Theme {
    Any,
    Cores,
    Constraints,
    Refusals,
    Dynamic,
    Locality,
    Gpus,
    Ports,
    Roles,
    Shuffle,
    Command,
    Failures,
    SameAgent,
    Stop,
}

impl Theme {
    pub(crate) const ALL: [&'static Theme; 14] = [
        &Theme::Any,
        &Theme::Cores,
        &Theme::Constraints,
        &Theme::Refusals,
        &Theme::Dynamic,
        &Theme::Locality,
        &Theme::Gpus,
        &Theme::Ports,
        &Theme::Roles,
        &Theme::Shuffle,
        &Theme::Command,
        &Theme::Failures,
        &Theme::SameAgent,
        &Theme::Stop,
    ];

    pub(crate) fn is_dynamic(self) -> bool {
        matches!(self, Theme::Dynamic | Theme::Locality)
    }
}

/// A setting: its name, its theme, the percentages of scenarios of this theme and of others that contain it, and its
/// values.
struct Row(&'static str, Theme, [usize; 2], &'static [&'static str]);

const MEMORY: &[&str] = &["512m", "1g", "2g", "600m", "1536m"];
const CONSTRAINTS: &[&str] = &[
    "zone:a",
    "zone:a,b",
    "zone:",
    "zone:a;rack:",
    "tier:2",
    "tier:2;zone:b",
    "disk:ssd",
    "disk:ssd,nvme",
    "ports:8080",
    "ports:",
    "tier:4.4",
    "zone:,b",
    "rack:r1,r2;tier:1,3",
    "tier:5d",
    "tier:1e1",
    " zone:a ;rack:r1",
    "zone:c",
    "tier: 2",
    "zone: a",
];
const REFUSALS: &[&str] = &["5s", "1d", "1h", "10", "0", "90s", "2min", "1500ms"];

const ROWS: &[Row] = &[
    Row("spark.executor.memory", Theme::Any, [100, 100], MEMORY),
    Row("spark.executor.cores", Theme::Any, [60, 60], &["1", "2", "2", "3"]),
    Row(
        "spark.cores.max",
        Theme::Cores,
        [100, 20],
        &["0", "1", "2", "3", "5", "7", "8", "9", "10", "16", "23"],
    ),
    Row("spark.mesos.executor.memoryOverhead", Theme::Any, [30, 10], &["0", "128", "500", "384"]),
    Row("spark.executor.memoryOverheadFactor", Theme::Any, [30, 8], &["0.2", "0.05", "0.5"]),
    Row("spark.mesos.constraints", Theme::Constraints, [100, 20], CONSTRAINTS),
    Row("spark.mesos.rejectOfferDuration", Theme::Refusals, [60, 6], REFUSALS),
    Row("spark.mesos.rejectOfferDurationForUnmetConstraints", Theme::Refusals, [60, 6], REFUSALS),
    Row("spark.mesos.rejectOfferDurationForReachedMaxCores", Theme::Refusals, [60, 6], REFUSALS),
    Row("spark.locality.wait", Theme::Locality, [100, 0], &["1h", "10m", "3600s"]),
    Row("spark.shuffle.service.enabled", Theme::Shuffle, [100, 15], &["true"]),
    Row("spark.shuffle.service.port", Theme::Shuffle, [40, 0], &["7400"]),
    Row("spark.mesos.gpus.max", Theme::Gpus, [100, 10], &["0", "1", "2", "3", "5", "100"]),
    Row(
        "spark.blockManager.port",
        Theme::Ports,
        [100, 8],
        &["0", "31000", "31005", "30100", "32000"],
    ),
    Row("spark.mesos.extra.cores", Theme::Command, [30, 10], &["0", "1", "2"]),
    Row("spark.mesos.role", Theme::Roles, [100, 0], &["r1"]),
    Row("spark.scheduler.minRegisteredResourcesRatio", Theme::Cores, [40, 10], &["0.5", "1.0"]),
    Row("spark.mesos.coarse.shutdownTimeout", Theme::Stop, [100, 0], &["400ms", "600ms"]),
    Row("spark.executor.extraClassPath", Theme::Command, [40, 0], &["/a.jar:/b.jar", "/a b.jar"]),
    Row("spark.executor.extraLibraryPath", Theme::Command, [30, 0], &["/usr/lib/native"]),
    Row(
        "spark.executor.extraJavaOptions",
        Theme::Command,
        [50, 0],
        &["-XX:+UseG1GC", "-Da={{APP_ID}} -Db={{EXECUTOR_ID}}", "-Dx=\"y z\""],
    ),
    Row("spark.executorEnv.A", Theme::Command, [40, 0], &["1", "two words", "$HOME", "a'b"]),
    Row("spark.executorEnv.SPARK_X", Theme::Command, [30, 0], &["x", ""]),
    Row(
        "spark.mesos.uris",
        Theme::Command,
        [40, 0],
        &["hdfs://nn/a", "hdfs://nn/a, http://x/b.tgz", "a,b,,c"],
    ),
    Row("spark.mesos.fetcherCache.enable", Theme::Command, [30, 0], &["true", "false"]),
    Row(
        "spark.mesos.task.labels",
        Theme::Command,
        [40, 0],
        &["a:b", "a:b,c:d", "a:b\\:c", "k\\,1:v", " x : y "],
    ),
    Row("spark.mesos.executor.docker.image", Theme::Command, [50, 0], &["spark:3.5", "r:5000/x"]),
    Row("spark.mesos.containerizer", Theme::Command, [50, 0], &["docker", "mesos"]),
    Row("spark.mesos.executor.docker.forcePullImage", Theme::Command, [30, 0], &["true", "false"]),
    Row(
        "spark.mesos.executor.docker.volumes",
        Theme::Command,
        [40, 0],
        &["/a", "/a:/b", "/a:/b:ro", "/a:/b:rw,/c:ro"],
    ),
    Row("spark.mesos.network.name", Theme::Command, [40, 0], &["net", "overlay"]),
    Row("spark.mesos.network.labels", Theme::Command, [20, 0], &["a:b", "k:v,l:w"]),
];

/// Returns the settings of one scenario.
pub(crate) fn settings(theme: Theme, rng: &mut Rng) -> Map<String, Value> {
    let mut settings = Map::new();
    let mut set = |key: &str, value: &str| settings.insert(key.to_owned(), value.into());
    set("spark.app.name", "app");
    set("spark.driver.host", "driver.example");
    set("spark.driver.port", "7078");
    if theme == Theme::Command && rng.percent(40) {
        let archives = ["hdfs://nn/spark-3.5.tgz", "http://x/a/spark.tar.gz?x=1"];
        set("spark.executor.uri", rng.pick(&archives));
    } else {
        let homes = ["/opt/spark", "/opt/spark/", "/opt/with space/spark"];
        set("spark.mesos.executor.home", rng.pick(&homes));
    }
    for Row(key, about, [within, without], values) in ROWS {
        if rng.percent(if *about == theme { *within } else { *without }) {
            set(key, rng.pick(values));
        }
    }
    if theme.is_dynamic() {
        set("spark.dynamicAllocation.enabled", "true");
    }
    settings
}
