//! Tests of Spark's settings: defaults, contradictions, and `--print-config`.

use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::support::{Ended, Folder, offermill};

/// Variables that tests must not inherit.
const VARIABLES: &[&str] = &[
    "SPARK_HOME",
    "SPARK_USER",
    "SPARK_EXECUTOR_URI",
    "SPARK_MESOS_PRINCIPAL",
    "SPARK_MESOS_PRINCIPAL_FILE",
    "SPARK_MESOS_SECRET",
    "SPARK_MESOS_SECRET_FILE",
    "_SPARK_AUTH_SECRET",
];

/// Runs `offermill run` with these flags and variables.
pub(crate) fn run(folder: &Folder, flags: &[&str], variables: &[(&str, &str)]) -> Ended {
    let mut command = offermill(&folder.0, &[&["run"], flags].concat());
    for name in VARIABLES {
        command.env_remove(name);
    }
    command.envs(variables.iter().copied());
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ended { code: output.status.code(), output: text(output.stdout), errors: text(output.stderr) }
}

/// The setting as printed by `--print-config --json`.
fn shown<'a>(objects: &'a [Value], key: &str) -> &'a Value {
    let mut found = objects.iter().filter(|object| object["key"] == key);
    let object = found.next().unwrap_or_else(|| panic!("{key} isn't shown"));
    assert!(found.next().is_none(), "{key} twice");
    object
}

/// The defaults of Spark 3.5.
const DEFAULTS: &[(&str, &str)] = &[
    ("spark.executor.memory", "1g"),
    ("spark.mesos.executor.memoryOverhead", "384m"),
    ("spark.executor.memoryOverheadFactor", "0.1"),
    ("spark.task.cpus", "1"),
    ("spark.mesos.coarse", "true"),
    ("spark.mesos.extra.cores", "0"),
    ("spark.mesos.gpus.max", "0"),
    ("spark.mesos.rejectOfferDuration", "120s"),
    ("spark.mesos.rejectOfferDurationForUnmetConstraints", "120s"),
    ("spark.mesos.rejectOfferDurationForReachedMaxCores", "120s"),
    ("spark.mesos.coarse.shutdownTimeout", "10s"),
    ("spark.mesos.driver.failoverTimeout", "0.0"),
    ("spark.mesos.fetcherCache.enable", "false"),
    ("spark.mesos.containerizer", "docker"),
    ("spark.mesos.executor.docker.forcePullImage", "false"),
    ("spark.blockManager.port", "0"),
    ("spark.scheduler.minRegisteredResourcesRatio", "0.0"),
    ("spark.scheduler.maxRegisteredResourcesWaitingTime", "30s"),
    ("spark.locality.wait", "3s"),
    ("spark.dynamicAllocation.enabled", "false"),
    ("spark.dynamicAllocation.minExecutors", "0"),
    ("spark.dynamicAllocation.initialExecutors", "0"),
    ("spark.dynamicAllocation.maxExecutors", "2147483647"),
    ("spark.dynamicAllocation.executorAllocationRatio", "1.0"),
    ("spark.dynamicAllocation.schedulerBacklogTimeout", "1s"),
    ("spark.dynamicAllocation.sustainedSchedulerBacklogTimeout", "1s"),
    ("spark.dynamicAllocation.executorIdleTimeout", "60s"),
    ("spark.dynamicAllocation.cachedExecutorIdleTimeout", "never"),
    ("spark.dynamicAllocation.shuffleTracking.enabled", "true"),
    ("spark.dynamicAllocation.shuffleTracking.timeout", "never"),
    ("spark.shuffle.service.enabled", "false"),
    ("spark.shuffle.service.port", "7337"),
    ("spark.shuffle.registration.timeout", "5000ms"),
    ("spark.executor.heartbeatInterval", "10s"),
    ("spark.network.timeout", "120s"),
    ("spark.storage.blockManagerHeartbeatTimeoutMs", "120s"),
    ("spark.excludeOnFailure.timeout", "1h"),
    ("spark.excludeOnFailure.application.maxFailedExecutorsPerNode", "2"),
    ("spark.executor.maxNumFailures", "3"),
    ("spark.executor.failuresValidityInterval", "forever"),
    ("spark.mesos.secret", "unset"),
];

/// Goal: the defaults are Spark's, and derived settings follow from those that are set. Method: print the defaults,
/// then a few settings that others are derived from.
#[test]
fn defaults_are_those_of_spark() {
    let folder = Folder::new();
    let user = "offermill.mesos.user=nobody";
    let flags = ["--master", "mesos://h", "-c", user, "--print-config", "--json"];
    let ended = run(&folder, &flags, &[]);
    assert_eq!((ended.code, &*ended.errors), (Some(0), ""));
    let objects = ended.events();
    for (key, value) in DEFAULTS {
        let object = shown(&objects, key);
        assert_eq!(
            (&object["value"], &object["origin"]),
            (&(*value).into(), &"default".into()),
            "{key}"
        );
    }
    let given = [
        "spark.executor.memory=10g",
        "spark.executor.memoryOverheadFactor=0.25",
        "spark.executor.instances=4",
        "spark.dynamicAllocation.enabled=true",
        "spark.dynamicAllocation.minExecutors=2",
        "spark.dynamicAllocation.maxExecutors=30",
        "spark.dynamicAllocation.schedulerBacklogTimeout=1500ms",
        "spark.network.timeout=5min",
        "spark.mesos.rejectOfferDuration=7",
        "spark.driver.host=h",
        "spark.driver.port=7078",
        "spark.mesos.executor.home=/opt/spark",
    ];
    let conf: Vec<&str> = given.iter().flat_map(|setting| ["--conf", setting]).collect();
    let ended = run(&folder, &[&flags[..], &conf].concat(), &[]);
    assert_eq!(ended.code, Some(0), "{}", ended.errors);
    assert!(ended.errors.contains("begins with 4 executors"), "{}", ended.errors);
    let objects = ended.events();
    for (key, value) in [
        ("spark.mesos.executor.memoryOverhead", "2560m"),
        ("spark.dynamicAllocation.initialExecutors", "4"),
        ("spark.dynamicAllocation.sustainedSchedulerBacklogTimeout", "1500ms"),
        ("spark.storage.blockManagerHeartbeatTimeoutMs", "300s"),
        ("spark.mesos.rejectOfferDurationForReachedMaxCores", "7s"),
        ("spark.executor.maxNumFailures", "60"),
        ("offermill.spark.driver", "spark://CoarseGrainedScheduler@h:7078"),
    ] {
        assert_eq!(shown(&objects, key)["value"], value, "{key}");
    }
}

/// A properties file such as Spark's users have, with secrets.
const FILE: &str = "# Defaults of this cluster\n\
    spark.master         mesos://m1,m2:5051\n\
    spark.executor.memory            4g\n\
    spark.cores.max=40\n\
    spark.executor.cores: 4\n\
    spark.eventLog.enabled           true\n\
    spark.kubernetes.namespace       etl\n\
    spark.mesos.principal            etl\n\
    offermill.mesos.user             nobody\n\
    spark.mesos.secret               cAnAry1\n\
    spark.blacklist.timeout          2h\n\
    spark.executorEnv.API_TOKEN      cAnAry2\n\
    spark.executorEnv.LANG           C\n\
    spark.executor.extraJavaOptions  -XX:+UseG1GC -Dkey.password=cAnAry3\n";

/// Goal: each setting is printed with its source, no secret is printed, and nothing is started or left behind. Method:
/// settings in every source, one by an older name, with secrets among them; as a table and as JSON.
#[test]
fn settings_are_shown_with_their_origins() {
    let folder = Folder::new();
    let path = folder.write("spark-defaults.conf", FILE);
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
    let flags = ["--properties-file", "spark-defaults.conf", "--executor-memory", "3g"];
    let more = ["--allow-plain-secret", "-c", "spark.task.cpus=2", "--print-config"];
    let flags = [&flags[..], &more].concat();
    let variables = [("SPARK_HOME", "/opt/spark"), ("SPARK_MESOS_PRINCIPAL", "other")];
    let ended = run(&folder, &flags, &variables);
    assert_eq!(ended.code, Some(0), "{}", ended.errors);
    assert_eq!(
        ended.errors,
        "offermill: spark.blacklist.timeout is an older name of spark.excludeOnFailure.timeout\n\
         offermill: ignored, as they are for Kubernetes: spark.kubernetes.namespace\n\
         offermill: ignored, as they mean nothing here: spark.eventLog.enabled\n"
    );
    assert!(!ended.output.contains("cAnAry"), "{}", ended.output);
    let lines: Vec<Vec<&str>> =
        ended.output.lines().map(|line| line.split_whitespace().collect()).collect();
    let of_file = ["properties", "file", "spark-defaults.conf"];
    for (key, rest) in [
        ("spark.master", &[&["mesos://m1,m2:5051"][..], &of_file].concat()[..]),
        ("spark.executor.memory", &["3g", "flag", "--executor-memory"]),
        ("spark.executor.cores", &[&["4"][..], &of_file].concat()),
        ("spark.task.cpus", &["2", "--conf"]),
        ("spark.mesos.executor.home", &["/opt/spark", "environment", "(SPARK_HOME)"]),
        ("spark.mesos.principal", &[&["etl"][..], &of_file].concat()),
        ("spark.mesos.secret", &[&["set"][..], &of_file].concat()),
        ("spark.executorEnv.API_TOKEN", &[&["set"][..], &of_file].concat()),
        ("spark.executorEnv.LANG", &[&["set"][..], &of_file].concat()),
        ("offermill.placement", &["round-robin", "default"]),
    ] {
        let line = lines.iter().find(|line| line[0] == key).unwrap();
        assert_eq!(&line[1..], rest, "{key}");
    }
    // Columns are aligned.
    let begin = |line: &str| line.len() - line.split_once("  ").unwrap().1.trim_start().len();
    let mut begins: Vec<usize> = ended.output.lines().map(begin).collect();
    begins.dedup();
    assert_eq!(begins.len(), 1, "{}", ended.output);

    let ended = run(&folder, &[&flags[..], &["--json"]].concat(), &variables);
    assert!(!ended.output.contains("cAnAry"), "{}", ended.output);
    let objects = ended.events();
    let timeout = shown(&objects, "spark.excludeOnFailure.timeout");
    assert_eq!((&timeout["value"], &timeout["origin"]), (&"2h".into(), &"file".into()));
    assert_eq!(timeout["alias"], "spark.blacklist.timeout");
    assert_eq!(timeout["place"], "spark-defaults.conf");
    assert_eq!(shown(&objects, "offermill.workDir")["counts"], false);

    let ended = run(&folder, &[&flags[..], &["--json", "--show-values"]].concat(), &variables);
    assert!(!ended.output.contains("cAnAry"), "{}", ended.output);
    let objects = ended.events();
    assert_eq!(shown(&objects, "spark.executorEnv.LANG")["value"], "C");
    assert_eq!(shown(&objects, "spark.executorEnv.API_TOKEN")["value"], "set");

    let ended = run(&folder, &["--print-config", "--journal", "j", "--control", "c"], &[]);
    assert_eq!((ended.code, &*ended.errors), (Some(0), ""));
    assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 1);
    let wrong = ["--print-config", "--executor-memory", "x", "--placement", "y"];
    let ended = run(&folder, &wrong, &[]);
    assert_eq!((ended.code, &*ended.output), (Some(2), ""));
    assert_eq!(ended.errors.lines().count(), 2, "{}", ended.errors);
}

/// Settings that contradict each other, with their messages.
const CONTRADICTIONS: &[(&[&str], &str)] = &[
    (
        &["spark.cores.max=1", "spark.executor.cores=2"],
        "spark.cores.max (--conf) is \"1\", but must be at least the 2 cores of one executor \
         (spark.executor.cores (--conf))",
    ),
    (
        &["spark.task.cpus=3", "spark.executor.cores=2"],
        "spark.task.cpus (--conf) is \"3\", and spark.executor.cores (--conf) is \"2\": no task would",
    ),
    (
        &["spark.mesos.executor.gpus=2", "spark.mesos.gpus.max=1"],
        "spark.mesos.executor.gpus (--conf) is \"2\", and spark.mesos.gpus.max (--conf) is \"1\": ",
    ),
    (
        &["spark.executor.heartbeatInterval=2min"],
        "spark.executor.heartbeatInterval (--conf) is \"2min\", and spark.network.timeout is 120s: ",
    ),
    (
        &["spark.storage.blockManagerSlaveTimeoutMs=10000"],
        "spark.executor.heartbeatInterval is 10s, and spark.storage.blockManagerSlaveTimeoutMs \
         (--conf) is \"10000\": ",
    ),
    (
        &[
            "spark.dynamicAllocation.enabled=true",
            "spark.dynamicAllocation.minExecutors=3",
            "spark.dynamicAllocation.maxExecutors=2",
        ],
        "spark.dynamicAllocation.minExecutors (--conf) is \"3\", and \
         spark.dynamicAllocation.maxExecutors (--conf) is \"2\": ",
    ),
    (
        &[
            "spark.dynamicAllocation.enabled=true",
            "spark.dynamicAllocation.initialExecutors=3",
            "spark.dynamicAllocation.maxExecutors=2",
        ],
        "spark.dynamicAllocation.initialExecutors (--conf) is \"3\", and \
         spark.dynamicAllocation.maxExecutors (--conf) is \"2\": ",
    ),
    (
        &[
            "spark.dynamicAllocation.enabled=true",
            "spark.dynamicAllocation.shuffleTracking.enabled=false",
        ],
        "spark.dynamicAllocation.enabled (--conf) is \"true\", and spark.shuffle.service.enabled is \
         false, and spark.dynamicAllocation.shuffleTracking.enabled (--conf) is \"false\": ",
    ),
    (
        &["spark.authenticate=true", "spark.shuffle.service.enabled=true"],
        "spark.authenticate (--conf) is \"true\", and spark.shuffle.service.enabled (--conf) is ",
    ),
    (
        &["spark.mesos.principal=p", "spark.mesos.principal.file=/dev/null"],
        "spark.mesos.principal (--conf) and spark.mesos.principal.file (--conf) are both given",
    ),
    (
        &["spark.mesos.secret=x"],
        "spark.mesos.secret (--conf) is given without a principal; give --principal (spark.mesos.principal) too",
    ),
    (
        &["spark.mesos.executor.secret.names=a", "spark.mesos.executor.secret.values=x"],
        "spark.mesos.executor.secret.names (--conf) is \"a\", and \
         spark.mesos.executor.secret.values (--conf) is set: secrets can be given by one of them only",
    ),
    (
        &["spark.mesos.executor.secret.values=x,y", "spark.mesos.executor.secret.envkeys=A"],
        "spark.mesos.executor.secret.envkeys (--conf) is \"A\", and \
         spark.mesos.executor.secret.values (--conf) is set: 1 place for 2 secrets",
    ),
    (
        &["spark.mesos.executor.secret.filenames=a"],
        "spark.mesos.executor.secret.filenames (--conf) is \"a\", and \
         spark.mesos.executor.secret.names is none: 1 place for 0 secrets",
    ),
    (
        &["spark.mesos.executor.secret.names=a"],
        "spark.mesos.executor.secret.names (--conf) must come with spark.mesos.executor.secret.envkeys",
    ),
    (
        &[
            "spark.mesos.executor.secret.names=a",
            "spark.mesos.executor.secret.envkeys=A",
            "spark.mesos.executor.docker.image=i",
        ],
        "spark.mesos.executor.secret.names (--conf) is \"a\", and spark.mesos.containerizer is docker: ",
    ),
    (
        &["spark.mesos.executor.secret.values=x", "spark.mesos.executor.secret.envkeys=A"],
        "spark.mesos.executor.secret.values (--conf) would be sent unencrypted to",
    ),
    (&["spark.mesos.coarse=false"], "but must be true: there is no fine-grained mode"),
    (&["spark.executor.extraJavaOptions=-Xmx1g"], "without -Xmx: memory goes into"),
    (&["spark.executor.extraJavaOptions=-Dspark.x=1"], "without -Dspark: settings of Spark go"),
    (
        &["spark.dynamicAllocation.executorAllocationRatio=0"],
        "must be a number above 0 and up to 1",
    ),
    (&["spark.executor.memoryOverheadFactor=0"], "but must be a number above 0, such as 0.1"),
    (&["spark.shuffle.service.port=0"], "but must be a whole number from 1 to 65535"),
    (
        &["spark.network.timeout=0"],
        "spark.network.timeout (--conf) is \"0\", but must be more than 0",
    ),
    (
        &["spark.driver.host=h", "spark.driver.port=1", "offermill.spark.driver=x"],
        "offermill.spark.driver (--conf) is for executors of Spark, a command after \"--\" for others",
    ),
];

/// Goal: contradicting settings are rejected in one sentence with both names, and all contradictions are reported
/// together. Method: each by itself on Mesos, then many together.
#[test]
fn contradictions_are_told_with_both_names() {
    let folder = Folder::new();
    let refused = |settings: &[&str]| {
        let conf = settings.iter().flat_map(|setting| ["--conf", setting]);
        let flags: Vec<&str> =
            ["--master", "mesos://127.0.0.1:1", "-c", "offermill.mesos.user=nobody"]
                .into_iter()
                .chain(conf)
                .collect();
        let ended = run(&folder, &[&flags[..], &["--", "true"]].concat(), &[]);
        assert_eq!((ended.code, &*ended.output), (Some(2), ""), "{settings:?}: {}", ended.errors);
        ended.errors
    };
    for (settings, sentence) in CONTRADICTIONS {
        let errors = refused(settings);
        assert!(errors.contains(sentence), "{settings:?}: {errors}");
    }
    let count = 16;
    let all: Vec<&str> =
        CONTRADICTIONS[..8].iter().flat_map(|(settings, _)| settings.iter().copied()).collect();
    let errors = refused(&[&all[..], &["spark.mesos.extra.cores=x"]].concat());
    assert!((8..count).contains(&errors.lines().count()), "{errors}");
    assert!(!errors.contains("such as 2"), "{errors}");
}
