//! Spark's executors as pods, with a fake API server.

use serde_json::{Value, json};

use crate::api_server::ApiServer;
use crate::support::{Folder, Run, finish};

const DRIVER: &str = "spark://CoarseGrainedScheduler@driver.example:7078";

/// The arguments of a run of Spark's executors.
fn arguments<'a>(master: &'a str, flags: &[&'a str]) -> Vec<&'a str> {
    let size = ["--executor-memory", "1g", "--namespace", "jobs", "--spark-driver", DRIVER];
    let conf = ["-c", "offermill.kubernetes.leaseDuration=3s"];
    let timeout = ["-c", "spark.kubernetes.driver.requestTimeout=2s"];
    let image = ["--container-image", "spark:3.5.9"];
    [&["run", "--json", "--master", master][..], &size, &conf, &timeout, &image, flags].concat()
}

fn variable<'a>(container: &'a Value, name: &str) -> &'a Value {
    let environment = container["env"].as_array().unwrap();
    environment.iter().find(|it| it["name"] == name).unwrap_or(&Value::Null)
}

/// Goal: Spark's executors are pods as Spark's own backend makes them, numbered for the driver. Method: a run with two
/// of them and a setting of each kind; the manifests, and the end.
#[test]
fn executors_of_spark_are_pods() {
    let (server, folder) = (ApiServer::start(), Folder::new());
    let master = format!("k8s://{}", server.url);
    let settings = [
        "spark.executor.cores=2",
        "spark.app.id=app-1",
        "spark.executor.extraJavaOptions=-Xss4m '-Da=b c' -De={{EXECUTOR_ID}}",
        "spark.executor.extraClassPath=/x/*",
        "spark.executorEnv.A=$(B)",
        "spark.blockManager.port=7100",
        "spark.kubernetes.resource.type=python",
        "spark.kubernetes.executor.podNamePrefix=pi-1f",
        "spark.kubernetes.executor.annotation.log={{APP_ID}}/{{EXECUTOR_ID}}",
        "offermill.spark.moduleOptions=false",
        "offermill.spark.user=ann",
    ];
    let flags: Vec<&str> = settings.iter().flat_map(|it| ["-c", it]).collect();
    let more = ["--num-executors", "2", "--until-finished", "--name", "Spark Pi"];
    let mut run = Run::start(&folder, &arguments(&master, &[&more, &flags[..]].concat()));
    for executor in ["0", "1"] {
        assert_eq!(run.event_named("running")["executor"], executor);
    }
    let names: Vec<String> = server.state().pods.keys().cloned().collect();
    assert_eq!(names, ["pi-1f-exec-0", "pi-1f-exec-1"]);
    names.iter().for_each(|name| server.exit(name, 0));
    let ended = run.end();
    assert_eq!(ended.code, Some(0), "{}{}", ended.output, ended.errors);
    let manifest = server.state().created[1].clone();
    let container = &manifest["spec"]["containers"][0];
    let labels = &manifest["metadata"]["labels"];
    for (label, value) in [
        ("spark-app-selector", "app-1"),
        ("spark-app-name", "spark-pi"),
        ("spark-role", "executor"),
        ("spark-exec-id", "1"),
        ("spark-exec-resourceprofile-id", "0"),
    ] {
        assert_eq!(labels[label], value, "{label}");
    }
    assert_eq!(manifest["metadata"]["annotations"]["log"], "app-1/1");
    assert_eq!((&container["args"], &container["command"]), (&json!(["executor"]), &Value::Null));
    assert_eq!(container["ports"], json!([{ "name": "blockmanager", "containerPort": 7100 }]));
    assert_eq!(container["resources"]["limits"]["memory"], "1433Mi", "0.4 beside Java");
    for (name, value) in [
        ("SPARK_USER", "ann"),
        ("SPARK_DRIVER_URL", DRIVER),
        ("SPARK_EXECUTOR_CORES", "2"),
        ("SPARK_EXECUTOR_MEMORY", "1024m"),
        ("SPARK_APPLICATION_ID", "app-1"),
        ("SPARK_CONF_DIR", "/opt/spark/conf"),
        ("SPARK_EXECUTOR_ID", "1"),
        ("SPARK_RESOURCE_PROFILE_ID", "0"),
        ("SPARK_CLASSPATH", "/x/*"),
        ("SPARK_JAVA_OPT_0", "-Dspark.blockManager.port=7100"),
        ("SPARK_JAVA_OPT_1", "-Xss4m"),
        ("SPARK_JAVA_OPT_2", "-Da=b c"),
        ("SPARK_JAVA_OPT_3", "-De=1"),
        ("A", "$$(B)"),
    ] {
        assert_eq!(variable(container, name)["value"], value, "{name}");
    }
    let field = |name: &str| &variable(container, name)["valueFrom"]["fieldRef"]["fieldPath"];
    assert_eq!(field("SPARK_EXECUTOR_POD_IP"), "status.podIP");
    assert_eq!(field("SPARK_EXECUTOR_POD_NAME"), "metadata.name");
    assert!(server.state().pods.is_empty() && server.state().leases.is_empty());
}

/// Goal: numbers of a former run's executors aren't used again while these may run. Method: a run that is killed; the
/// next is refused, and begins after `offermill clean`.
#[test]
fn executors_of_a_former_run_are_not_taken_over() {
    let (server, folder) = (ApiServer::start(), Folder::new());
    let master = format!("k8s://{}", server.url);
    let flags = ["--num-executors", "1", "--name", "pi"];
    let mut run = Run::start(&folder, &arguments(&master, &flags));
    run.event_named("running");
    run.signal("KILL");
    run.end();
    let left: Vec<String> = server.state().pods.keys().cloned().collect();
    assert!(left[0].starts_with("pi-") && left[0].ends_with("-exec-0"), "{left:?}");
    let second = finish(&folder, &arguments(&master, &flags));
    assert_eq!(second.code, Some(4), "{}{}", second.output, second.errors);
    let why = format!("a former run named pi has left {}", left[0]);
    assert!(second.output.contains(&why), "{}", second.output);
    assert!(second.output.contains("offermill clean"), "{}", second.output);
    assert_eq!(server.state().pods.len(), 1);
    let conf = ["-c", "offermill.kubernetes.leaseDuration=3s"];
    let timeout = ["-c", "spark.kubernetes.driver.requestTimeout=2s"];
    let clean = ["clean", "--master", &master, "--namespace", "jobs", "pi"];
    let cleaned = finish(&folder, &[&clean[..], &conf, &timeout].concat());
    assert_eq!(cleaned.code, Some(0), "{}{}", cleaned.output, cleaned.errors);
    let mut third = Run::start(&folder, &arguments(&master, &flags));
    third.event_named("running");
    third.signal("INT");
    assert_eq!(third.end().code, Some(0));
}

/// Goal: what can't be a pod of Spark is said at once. Method: a prefix that is no name, part of a core, settings of
/// Spark's pods for a command.
#[test]
fn bad_settings_of_sparks_pods_are_named() {
    let (server, folder) = (ApiServer::start(), Folder::new());
    let master = format!("k8s://{}", server.url);
    let one = ["--num-executors", "1"];
    for (setting, message) in [
        (
            "spark.kubernetes.executor.podNamePrefix=Pi_1",
            "spark.kubernetes.executor.podNamePrefix (--conf) is \"Pi_1\", but must be 1 to 47 lower-case",
        ),
        (
            "spark.kubernetes.resource.type=perl",
            "spark.kubernetes.resource.type (--conf) is \"perl\", but must be java, python or r",
        ),
        ("spark.executor.cores=1.5", "must be a whole number"),
        ("offermill.spark.driver=spark://h", "must be spark://CoarseGrainedScheduler@HOST:PORT"),
    ] {
        let flags = [&one[..], &["-c", setting]].concat();
        let mut given = arguments(&master, &flags);
        if setting.starts_with("offermill.spark.driver") {
            let at = given.iter().position(|it| *it == "--spark-driver").unwrap();
            given.drain(at..at + 2);
        }
        let ended = finish(&folder, &given);
        assert_eq!(ended.code, Some(2), "{setting}: {}", ended.errors);
        assert!(ended.errors.contains(message), "{setting}: {}", ended.errors);
    }
    assert!(server.state().requests.is_empty());
}
