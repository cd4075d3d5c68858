//! Spark's executors as pods, beside those that Spark's own backend for Kubernetes makes.
//!
//! What differs, on purpose:
//!
//! | | Spark | here |
//! |---|---|---|
//! | label `spark-version` | the driver's | none: what runs is the driver's and the image's |
//! | option `-Dspark.driver.port` | given | none: `SPARK_DRIVER_URL` has it |
//! | Spark's settings among Java's options | last | first, so that a quotation mark that isn't closed ends none of them |
//! | `$(NAME)` in a value | is expanded by Kubernetes | arrives as it is |
//! | the folder of the configuration | a config map with the driver's settings | the image's, unless `--files` are given; executors ask the driver for settings |
//! | `hostname` | the end of the pod's name | none: the name is at most 63 bytes long, and is the host's, too |
//! | the container's name | `spark-kubernetes-executor` | `executor` |
//! | the owner | the driver's pod | the run's lease |
//! | overhead beside Java, 0.4 | set for executors by the driver's step | here as well |
//! | a claim `OnDemand` | an object beside the pod, which the driver creates, owns and uses again | an ephemeral volume of the pod: the cluster creates and deletes it with the pod |
//! | `OMP_NUM_THREADS` | set by the driver | as the driver would |

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::{env, fs};

use serde_json::{Map, Value, json};

use crate::api_server::ApiServer;
use crate::support::{Folder, Run};

/// Settings of which each executor has some: in every third one, those with a number that chance chooses.
const SETTINGS: &[(&str, &[&str])] = &[
    ("spark.executor.cores", &["1", "2", "3"]),
    ("spark.executor.memory", &["512m", "1g", "6g", "1500m"]),
    ("spark.executor.memoryOverhead", &["0", "500m", "1g"]),
    ("spark.kubernetes.memoryOverheadFactor", &["0.1", "0.25", "0.4"]),
    ("spark.kubernetes.resource.type", &["java", "python", "r"]),
    ("spark.memory.offHeap.enabled", &["true"]),
    ("spark.memory.offHeap.size", &["1g", "1610612736", "3000001k"]),
    ("spark.executor.pyspark.memory", &["100m", "1g", "64"]),
    ("spark.kubernetes.executor.request.cores", &["0.5", "500m", "2"]),
    ("spark.kubernetes.executor.limit.cores", &["1", "1500m", "4"]),
    ("spark.kubernetes.container.image.pullPolicy", &["Always", "IfNotPresent", "Never"]),
    ("spark.kubernetes.container.image.pullSecrets", &["a", "a,b"]),
    ("spark.kubernetes.executor.label.team", &["a", "b-c_d.e"]),
    ("spark.kubernetes.executor.annotation.log", &["x y", "{{APP_ID}}/{{EXECUTOR_ID}}"]),
    ("spark.kubernetes.node.selector.disk", &["ssd"]),
    ("spark.kubernetes.executor.node.selector.zone", &["a"]),
    ("spark.kubernetes.executor.disableConfigMap", &["true"]),
    ("spark.blockManager.port", &["0", "7100", "65535"]),
    ("spark.executor.extraClassPath", &["/x/*", "/a b:/c"]),
    (
        "spark.executor.extraJavaOptions",
        &[
            "-Xss4m -verbose:gc",
            "-Da='b c' -Dd=\"e\\\"f\" -Dg=h\\i",
            " -Dx={{APP_ID}}-{{EXECUTOR_ID}}  '' ",
            "-Dopen='a b",
        ],
    ),
    ("spark.executor.defaultJavaOptions", &["-XX:+UseG1GC"]),
    ("spark.executorEnv.A", &["b", "$(HOME) $$ {{HOSTNAM}}", "ü \"'\\"]),
    ("spark.executorEnv.B_2", &[" x "]),
    ("spark.rpc.askTimeout", &["7s"]),
    ("spark.network.timeout", &["77s"]),
    ("spark.port.maxRetries", &["3"]),
    ("spark.app.name", &["Spark Pi!", "-a--b-", "x"]),
];

/// The settings that all have.
const COMMON: &[(&str, &str)] = &[
    ("spark.driver.host", "driver.example"),
    ("spark.driver.port", "7078"),
    ("spark.kubernetes.container.image", "spark:3.5.9"),
    ("spark.kubernetes.executor.podNamePrefix", "pi-1f"),
];

/// Random settings: a few bits of chance for each.
fn settings(chance: &mut u64) -> BTreeMap<&'static str, &'static str> {
    let mut next = |bound: usize| {
        *chance ^= *chance << 13;
        *chance ^= *chance >> 7;
        *chance ^= *chance << 17;
        (*chance >> 20) as usize % bound
    };
    let mut chosen: BTreeMap<&str, &str> = COMMON.iter().copied().collect();
    chosen.insert("spark.executor.cores", "1");
    chosen.insert("spark.app.name", "app");
    for (key, values) in SETTINGS {
        if next(3) == 0 {
            chosen.insert(key, values[next(values.len())]);
        }
    }
    if chosen.contains_key("spark.memory.offHeap.enabled") {
        chosen.entry("spark.memory.offHeap.size").or_insert("2g");
    }
    chosen
}

/// The settings as the driver's step hands them to executors.
fn of_driver(settings: &BTreeMap<&str, &str>) -> Value {
    let mut conf: Map<String, Value> =
        settings.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect();
    let is_beside_java =
        matches!(settings.get("spark.kubernetes.resource.type"), Some(&"python" | &"r"));
    if is_beside_java && !conf.contains_key("spark.kubernetes.memoryOverheadFactor") {
        conf.insert("spark.kubernetes.memoryOverheadFactor".to_owned(), "0.4".into());
    }
    Value::Object(conf)
}

/// The first pod that a run with these settings creates.
fn created(settings: &BTreeMap<&str, &str>) -> Value {
    let (server, folder) = (ApiServer::start(), Folder::new());
    let master = format!("k8s://{}", server.url);
    let conf: Vec<String> = settings.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let own =
        ["spark.app.id=app-1", "offermill.spark.user=ann", "offermill.spark.moduleOptions=false"];
    let mut arguments = vec!["run", "--json", "--master", &master, "--num-executors", "1"];
    arguments.extend(["--namespace", "jobs"]);
    for setting in conf.iter().map(String::as_str).chain(own) {
        arguments.extend(["-c", setting]);
    }
    let mut run = Run::start(&folder, &arguments);
    run.event_named("running");
    let manifest = server.state().created[0].clone();
    run.signal("INT");
    assert_eq!(run.end().code, Some(0));
    manifest
}

/// A variable's value, or the field that it has the value of.
fn value_of(variable: &Value) -> String {
    let field = &variable["valueFrom"]["fieldRef"]["fieldPath"];
    let text = if field.is_string() { field } else { &variable["value"] };
    text.as_str().unwrap_or_default().to_owned()
}

/// The environment of a container, without options of Java; and these: first those that aren't Spark's settings, in
/// their order, then the others, sorted.
fn environment(container: &Value) -> (BTreeMap<String, String>, Vec<String>, BTreeSet<String>) {
    let (mut variables, mut options) = (BTreeMap::new(), BTreeMap::new());
    for variable in container["env"].as_array().unwrap() {
        let name = variable["name"].as_str().unwrap().to_owned();
        let value = value_of(variable);
        let number = name.strip_prefix("SPARK_JAVA_OPT_").map(|it| it.parse::<usize>().unwrap());
        let double = match number {
            Some(number) => options.insert(number, value),
            None => variables.insert(name, value),
        };
        assert_eq!(double, None);
    }
    let (settings, own): (Vec<String>, Vec<String>) =
        options.into_values().partition(|it| it.starts_with("-Dspark."));
    (variables, own, settings.into_iter().collect())
}

fn millis(quantity: &Value) -> Option<u64> {
    let text = quantity.as_str()?;
    Some(match text.strip_suffix('m') {
        Some(millis) => millis.parse().unwrap(),
        None => (text.parse::<f64>().unwrap() * 1000.0) as u64,
    })
}

/// Compares a pod with Spark's.
fn compare(manifest: &Value, spark: &Value, about: &str) {
    let container = &manifest["spec"]["containers"][0];
    let (wanted, pod) = (&spark["container"], &spark["pod"]);
    for part in ["args", "image", "imagePullPolicy"] {
        assert_eq!(container[part], wanted[part], "{part}, {about}");
    }
    let ports = |container: &Value| container["ports"].as_array().cloned().unwrap_or_default();
    assert_eq!(ports(container), ports(wanted), "ports, {about}");
    assert_eq!(manifest["metadata"]["name"], pod["metadata"]["name"], "{about}");
    for part in ["labels", "annotations"] {
        for (key, value) in pod["metadata"][part].as_object().into_iter().flatten() {
            if key != "spark-version" {
                assert_eq!(&manifest["metadata"][part][key], value, "{part}, {about}");
            }
        }
    }
    for part in ["nodeSelector", "imagePullSecrets", "restartPolicy"] {
        assert_eq!(manifest["spec"][part], pod["spec"][part], "{part}, {about}");
    }
    for kind in ["requests", "limits"] {
        let [mine, spark] = [container, wanted].map(|it| &it["resources"][kind]);
        assert_eq!(mine["memory"], spark["memory"], "memory, {kind}, {about}");
        assert_eq!(millis(&mine["cpu"]), millis(&spark["cpu"]), "cores, {kind}, {about}");
    }
    let (mut mine, own, mut startup) = environment(container);
    let (spark, spark_own, mut spark_startup) = environment(wanted);
    mine.retain(|name, _| !name.starts_with("OFFERMILL_") && name != "OMP_NUM_THREADS");
    let plain = |text: &String| text.replace("$$", "$");
    let mine: BTreeMap<String, String> =
        mine.iter().map(|(name, value)| (name.clone(), plain(value))).collect();
    assert_eq!(mine, spark, "{about}");
    assert_eq!(own.iter().map(plain).collect::<Vec<_>>(), spark_own, "options, {about}");
    for options in [&mut startup, &mut spark_startup] {
        options.retain(|option| !option.starts_with("-Dspark.driver.port="));
    }
    assert_eq!(startup, spark_startup, "{about}");
}

/// Goal: pods of executors are those of Spark's own backend, but for what is said above. Method: random settings
/// (`OFFERMILL_PODS` sets of them, 20 by default; seeded by `OFFERMILL_SEED`), for each of which Spark's own class
/// makes a pod, and a run creates one on a fake API server.
#[test]
#[ignore = "needs Java and Spark: .ci/spark"]
fn pods_are_those_of_spark_itself() {
    let number = |variable: &str| env::var(variable).ok().map(|text| text.parse::<u64>().unwrap());
    let seed = number("OFFERMILL_SEED").unwrap_or(0x9e37_79b9_7f4a_7c15).max(1);
    println!("OFFERMILL_SEED={seed}");
    let mut chance = seed;
    let count = number("OFFERMILL_PODS").unwrap_or(20);
    let mut all: Vec<BTreeMap<&str, &str>> = (0..count).map(|_| settings(&mut chance)).collect();
    // Chance seldom chooses together what Spark adds up only together.
    for (settings, language) in all.iter_mut().zip(["java", "python", "r"]) {
        settings.insert("spark.kubernetes.resource.type", language);
        settings.insert("spark.executor.pyspark.memory", "100m");
    }
    let home = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let [questions, answers] = ["pods-asked", "pods-answered"].map(|name| home.join(name));
    let line = |settings: &BTreeMap<&str, &str>| {
        format!("{}\n", json!({ "conf": of_driver(settings), "id": "0", "app": "app-1" }))
    };
    fs::write(&questions, all.iter().map(line).collect::<String>()).unwrap();
    let support = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/spark");
    let asked = Command::new(support.join("ask-pod"))
        .arg("--dir")
        .arg(home.join("spark-build"))
        .args([&questions, &answers])
        .env("SPARK_USER", "ann")
        .status()
        .unwrap();
    assert!(asked.success(), "Spark could not be asked");
    let answers = fs::read_to_string(&answers).unwrap();
    assert_eq!(answers.lines().count(), all.len());
    for (settings, answer) in all.iter().zip(answers.lines()) {
        let spark: Value = serde_json::from_str(answer).unwrap();
        compare(&created(settings), &spark, &format!("{settings:?}"));
    }
    println!("pods: {count} are those of Spark");
}
