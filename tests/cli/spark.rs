//! Settings as Spark has them: what they are without being given, which contradict each other, how they are shown, and
//! executors of Spark.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::Value;

use crate::support::{Ended, Folder, finish, offermill};

/// What no test should find in its environment.
const VARIABLES: &[&str] = &[
    "SPARK_HOME",
    "SPARK_USER",
    "SPARK_EXECUTOR_URI",
    "SPARK_MESOS_PRINCIPAL",
    "SPARK_MESOS_PRINCIPAL_FILE",
    "SPARK_MESOS_SECRET",
    "SPARK_MESOS_SECRET_FILE",
];

/// Runs `run` with these flags and variables.
fn run(folder: &Folder, flags: &[&str], variables: &[(&str, &str)]) -> Ended {
    let mut command = offermill(&folder.0, &[&["run"], flags].concat());
    for name in VARIABLES {
        command.env_remove(name);
    }
    command.envs(variables.iter().copied());
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ended { code: output.status.code(), output: text(output.stdout), errors: text(output.stderr) }
}

/// The setting as `--print-config --json` shows it.
fn shown<'a>(objects: &'a [Value], key: &str) -> &'a Value {
    let mut found = objects.iter().filter(|object| object["key"] == key);
    let object = found.next().unwrap_or_else(|| panic!("{key} isn't shown"));
    assert!(found.next().is_none(), "{key} twice");
    object
}

/// What Spark 3.5 has where nothing is given.
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
    ("spark.executor.failuresValidityInterval", "for ever"),
    ("spark.mesos.secret", "unset"),
];

/// Goal: without settings all is as it is on Spark; other settings follow from what is given. Method: the defaults, then
/// a few settings that others follow from.
#[test]
fn defaults_are_those_of_spark() {
    let folder = Folder::new();
    let flags = ["--master", "mesos://h", "--print-config", "--json"];
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
    assert_eq!((ended.code, &*ended.errors), (Some(0), ""));
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

/// Goal: each setting is shown with where it comes from, no secret is, and nothing is started or left behind. Method:
/// settings in every place, one by an older name, with secrets among them; as a table and as objects.
#[test]
fn settings_are_shown_with_their_origins() {
    let folder = Folder::new();
    let file = "# Defaults of this cluster\n\
                spark.master                     mesos://m1,m2:5051\n\
                spark.executor.memory            4g\n\
                spark.cores.max=40\n\
                spark.executor.cores: 4\n\
                spark.eventLog.enabled           true\n\
                spark.kubernetes.namespace       etl\n\
                spark.mesos.principal            etl\n\
                spark.mesos.secret               cAnAry1\n\
                spark.blacklist.timeout          2h\n\
                spark.executorEnv.API_TOKEN      cAnAry2\n\
                spark.executorEnv.LANG           C\n\
                spark.executor.extraJavaOptions  -XX:+UseG1GC -Dkey.password=cAnAry3\n";
    let path = folder.write("spark-defaults.conf", file);
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
        ("spark.executorEnv.LANG", &[&["C"][..], &of_file].concat()),
        ("offermill.placement", &["round-robin", "default"]),
    ] {
        let line = lines.iter().find(|line| line[0] == key).unwrap();
        assert_eq!(&line[1..], rest, "{key}");
    }
    // Columns begin below each other.
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
    assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 1);

    let ended = run(&folder, &["--print-config"], &[]);
    assert_eq!((ended.code, &*ended.errors), (Some(0), ""));
    assert!(!folder.0.join("sandboxes").exists());
    let wrong = ["--print-config", "--executor-memory", "x", "--placement", "y"];
    let ended = run(&folder, &wrong, &[]);
    assert_eq!((ended.code, &*ended.output), (Some(2), ""));
    assert_eq!(ended.errors.lines().count(), 2, "{}", ended.errors);
}

/// Settings that don't go together, and what is said of them.
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
        "spark.mesos.secret (--conf) is given without a principal, which says whose secret it is; \
         give --principal (spark.mesos.principal) too",
    ),
    (
        &["spark.mesos.executor.secret.names=a", "spark.mesos.executor.secret.values=x"],
        "spark.mesos.executor.secret.names (--conf) is \"a\", and \
         spark.mesos.executor.secret.values (--conf) is set: secrets are given by one of them",
    ),
    (
        &["spark.mesos.executor.secret.values=x,y", "spark.mesos.executor.secret.envkeys=A"],
        "spark.mesos.executor.secret.envkeys (--conf) is \"A\", and \
         spark.mesos.executor.secret.values (--conf) is set: the first are 1, and the secrets 2",
    ),
    (
        &["spark.mesos.executor.secret.filenames=a"],
        "spark.mesos.executor.secret.filenames (--conf) is \"a\", and \
         spark.mesos.executor.secret.names is none: the first are 1, and the secrets 0",
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
        "spark.mesos.executor.secret.values (--conf) would go over the network unencrypted",
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
        "offermill.spark.driver (--conf) is for executors of Spark, and a command after \"--\" for others",
    ),
];

/// Goal: settings that contradict each other are refused in one sentence with both, and all contradictions at once.
/// Method: each by itself on Mesos, then many together.
#[test]
fn contradictions_are_told_with_both_names() {
    let folder = Folder::new();
    let refused = |settings: &[&str]| {
        let conf = settings.iter().flat_map(|setting| ["--conf", setting]);
        let flags: Vec<&str> =
            ["--master", "mesos://127.0.0.1:1"].into_iter().chain(conf).collect();
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

/// Makes a folder like Spark's, with a script that tells what it was started with, and one like Java's.
fn fake_spark(folder: &Folder) {
    let script = |path: &str, text: &str| {
        let path = folder.0.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    };
    let told = "#!/bin/sh\nprintf '%s\\n' \"$@\" \"$SPARK_EXECUTOR_OPTS\" \"$SPARK_EXECUTOR_MEMORY\" \
                \"$SPARK_EXECUTOR_CLASSPATH\" \"$OMP_NUM_THREADS\" \"$SPARK_USER\" \"$LD_LIBRARY_PATH\" \"$A\"\n";
    script("my spark/bin/spark-class", told);
    script("java/bin/java", "#!/bin/sh\n");
}

const URL: &str = "spark://CoarseGrainedScheduler@127.0.0.1:7078";

/// Goal: executors of Spark are started as Spark did it, and what is set comes through whatever it says. Method: a
/// stand-in for Spark's script, which prints what it is given.
#[test]
fn executors_of_spark_are_started() {
    let folder = Folder::new();
    fake_spark(&folder);
    let java = format!("JAVA_HOME={}", folder.0.join("java").display());
    let hostile = "$(touch x); '\"";
    let (path, app) =
        (format!("spark.executor.extraClassPath={hostile}"), format!("spark.app.id={hostile}"));
    let flags = [
        &["--master", "local-cluster[1,4,2048]", "--num-executors", "1", "--until-finished"][..],
        &["--executor-cores", "2", "--executor-memory", "512m", "--json"],
        &["--env", &java, "--env", "A=b c", "-c", &path, "-c", &app],
        &["-c", "spark.executor.extraJavaOptions=-Dx={{EXECUTOR_ID}}", "-c", "spark.task.cpus=2"],
        &["-c", "spark.mesos.extra.cores=1", "-c", "offermill.spark.moduleOptions=false"],
    ]
    .concat();
    let spark = ["-c", "spark.mesos.executor.home=my spark", "--spark-driver", URL];
    let variables = [("SPARK_USER", "etl"), ("LD_LIBRARY_PATH", "/old")];
    let home = folder.0.join("my spark");
    let told = |hostname: &str, library: &str| {
        let options =
            ["org.apache.spark.executor.CoarseGrainedExecutorBackend", "--driver-url", URL];
        let more =
            ["--executor-id", "0", "--cores", "3", "--app-id", hostile, "--hostname", hostname];
        let environment = ["-Dx=0", "512m", hostile, "2", "etl", library, "b c"];
        let lines = [&options[..], &more, &environment].concat();
        lines.iter().flat_map(|line| [*line, "\n"]).collect::<String>()
    };
    let ended = run(&folder, &[&flags[..], &spark].concat(), &variables);
    assert_eq!(ended.code, Some(0), "{}{}", ended.output, ended.errors);
    let started = &ended.events()[0];
    assert_eq!(started["name"], "spark");
    assert_eq!(started["command"][0], format!("{}/./bin/spark-class", home.display()));
    assert_eq!(folder.outputs(), [told("127.0.0.1", "/old")]);
    assert!(!folder.0.join("x").exists());
    std::fs::remove_dir_all(folder.0.join("sandboxes")).unwrap();

    // From the driver's host and port, with Spark in the environment's folder; and through a shell.
    let more = [
        "-c",
        "spark.driver.host=127.0.0.1",
        "-c",
        "spark.driver.port=7078",
        "-c",
        "spark.executor.extraLibraryPath=/n $(touch y)",
        "--spark-hostname",
        "h1",
    ];
    let variables = [&variables[..], &[("SPARK_HOME", home.to_str().unwrap())]].concat();
    let ended = run(&folder, &[&flags[..], &more].concat(), &variables);
    assert_eq!(ended.code, Some(0), "{}{}", ended.output, ended.errors);
    assert_eq!(folder.outputs(), [told("h1", "/n $(touch y):/old")]);
    assert!(folder.outputs().len() == 1 && !Path::new("y").exists());
}

/// Goal: what Spark's executors lack is told before anything is started. Method: each lack; and settings of theirs beside
/// a command of another kind.
#[test]
fn executors_of_spark_are_checked_beforehand() {
    let folder = Folder::new();
    fake_spark(&folder);
    let java = format!("JAVA_HOME={}", folder.0.join("java").display());
    let start = ["--env", &java, "--executor-memory", "64m", "--memory-overhead", "0"];
    let home = ["-c", "spark.mesos.executor.home=my spark"];
    let cases: &[(&[&str], &str)] = &[
        (
            &[],
            "there is no command for executors: give one after \"--\", or --spark-driver for Spark's",
        ),
        (
            &["--spark-driver", URL],
            "it isn't said where Spark is: give spark.mesos.executor.home or SPARK_HOME\n",
        ),
        (
            &["--spark-driver", URL, "--master", "mesos://127.0.0.1:1"],
            "or SPARK_HOME, or an archive with Spark: spark.executor.uri",
        ),
        (
            &["--spark-driver", URL, "-c", "spark.mesos.executor.home=java"],
            "spark.mesos.executor.home (--conf) is \"java\", but must be the folder of Spark on this \
             machine (bin/spark-class: No such file",
        ),
        (
            &["--spark-driver", URL, home[0], home[1], "--env", "JAVA_HOME=/nowhere"],
            "Spark's executors need Java: there is none in JAVA_HOME or PATH",
        ),
        (
            &["--spark-driver", "spark://h", home[0], home[1]],
            "--spark-driver is \"spark://h\", but must be spark://CoarseGrainedScheduler@HOST:PORT",
        ),
        (
            &["--spark-driver", URL, home[0], home[1], "--executor-cores", "0.5"],
            "--executor-cores is \"0.5\", but must be a whole number: Spark counts whole cores",
        ),
        (
            &[
                "--spark-driver",
                URL,
                home[0],
                home[1],
                "-c",
                "offermill.command.form=shell",
                "-c",
                "spark.app.id=a\nb",
            ],
            "without NUL and ends of lines, to go through a shell",
        ),
        (
            &[
                "--spark-driver",
                URL,
                home[0],
                home[1],
                "--master",
                "mesos://127.0.0.1:1",
                "--framework-id-file",
                "f",
            ],
            "--framework-id-file is \"f\", and --spark-driver is \"spark://",
        ),
        (
            &["--spark-driver", URL, "--", "true"],
            "--spark-driver is for executors of Spark, and a command",
        ),
    ];
    for (flags, sentence) in cases {
        let ended = run(&folder, &[&start[..], flags].concat(), &[]);
        assert_eq!((ended.code, &*ended.output), (Some(2), ""), "{flags:?}: {}", ended.errors);
        assert!(ended.errors.contains(sentence), "{flags:?}: {}", ended.errors);
    }
    assert!(!folder.0.join("sandboxes").exists());
    let local = ["run", "--num-executors", "1", "--until-finished", "-c", "spark.task.cpus=2"];
    let ended = finish(&folder, &[&local[..], &start[2..], &["--", "true"]].concat());
    assert_eq!(ended.code, Some(0));
    assert_eq!(
        ended.errors,
        "offermill: ignored without --spark-driver: spark.task.cpus (--conf)\n"
    );
}
