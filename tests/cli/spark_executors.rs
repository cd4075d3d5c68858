//! Tests of Spark's executors, with a stand-in for Spark.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::spark::run;
use crate::support::{Folder, finish};

/// Creates a folder like Spark's, with a script that prints its arguments and environment, and a folder like Java's.
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

/// Goal: Spark's executors are launched as by Spark, and all settings reach them unchanged, with any characters.
/// Method: a stand-in for Spark's script, which prints what it is given.
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

    // The driver's host and port are set, Spark's home is in the environment; and through a shell.
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

const HOME: [&str; 2] = ["-c", "spark.mesos.executor.home=my spark"];

/// Missing settings of Spark's executors, with their messages.
const LACKS: &[(&[&str], &str)] = &[
    (
        &[],
        "there is no command for executors: give one after \"--\", or --spark-driver for Spark's",
    ),
    (&["--spark-driver", "foo"], "--spark-driver is \"foo\", but must be spark://"),
    (
        &["--spark-driver", URL],
        "the place of Spark is missing: give spark.mesos.executor.home or SPARK_HOME\n",
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
        &["--spark-driver", URL, HOME[0], HOME[1], "--env", "JAVA_HOME=/nowhere"],
        "Spark's executors need Java: there is none in JAVA_HOME or PATH",
    ),
    (
        &["--spark-driver", "spark://h", HOME[0], HOME[1]],
        "--spark-driver is \"spark://h\", but must be spark://CoarseGrainedScheduler@HOST:PORT",
    ),
    (
        &["--spark-driver", URL, HOME[0], HOME[1], "--executor-cores", "0.5"],
        "--executor-cores is \"0.5\", but must be a whole number: Spark counts whole cores",
    ),
    (
        &[
            "--spark-driver",
            URL,
            HOME[0],
            HOME[1],
            "-c",
            "offermill.command.form=shell",
            "-c",
            "spark.app.id=a\nb",
        ],
        "without NUL and line breaks, since a shell runs it",
    ),
    (
        &[
            "--spark-driver",
            URL,
            HOME[0],
            HOME[1],
            "--master",
            "mesos://127.0.0.1:1",
            "--framework-id-file",
            "f",
        ],
        "--framework-id-file is \"f\", and --spark-driver is \"spark://",
    ),
    (&["--spark-driver", URL, "--", "true"], "--spark-driver is for executors of Spark, a command"),
];

/// Goal: missing settings of Spark's executors are reported before the start. Method: each one; and Spark's settings
/// beside a command of another kind.
#[test]
fn executors_of_spark_are_checked_beforehand() {
    let folder = Folder::new();
    fake_spark(&folder);
    let java = format!("JAVA_HOME={}", folder.0.join("java").display());
    let start = ["--env", &java, "--executor-memory", "64m", "--memory-overhead", "0"];
    for (flags, sentence) in LACKS {
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

/// Goal: Java is looked for with the variables that executors get. Method: Java in a `JAVA_HOME` of this program, which
/// executors inherit, don't inherit, or are given.
#[test]
fn java_is_looked_for_where_executors_do() {
    let folder = Folder::new();
    fake_spark(&folder);
    let java = folder.0.join("java").display().to_string();
    let given = format!("JAVA_HOME={java}");
    let start = ["--executor-memory", "64m", "--memory-overhead", "0", "--print-config"];
    let start = [&start[..], &["--spark-driver", URL, HOME[0], HOME[1]]].concat();
    let clean = ["--clean-env", "--env", "PATH=/nowhere"];
    let lacks =
        "there is none in JAVA_HOME or PATH, of which --clean-env passes on only those of --env";
    for (flags, is_found) in
        [(&[][..], true), (&clean, false), (&[&clean[..], &["--env", &given]].concat(), true)]
    {
        let ended = run(&folder, &[&start[..], flags].concat(), &[("JAVA_HOME", &java)]);
        let text = format!("{}{}", ended.output, ended.errors);
        assert_eq!(!text.contains(lacks), is_found, "{flags:?}: {text}");
        assert_eq!(ended.code == Some(0), is_found, "{flags:?}: {text}");
    }
}
