//! Tests of the commands for Spark's executors: compared with recorded commands of Spark, and run through real shells.

use proptest::prelude::*;

use super::*;
use crate::resources::{Mebibytes, MilliCpus};

const URL: &str = "spark://CoarseGrainedScheduler@driver.example:7078";

fn context<'a>(executor: &'a str, hostname: &'a str, cores: u64) -> LaunchContext<'a> {
    let (cores, memory) = (MilliCpus::from_cores(cores), Mebibytes::new(600));
    LaunchContext::new(executor, "a2", hostname, cores, memory).with_app("fw-1")
}

fn at_home(home: &str) -> SparkExecutor {
    SparkExecutor::new(URL, Software::Home(home.to_owned())).unwrap()
}

fn archive(uri: &str) -> Result<SparkExecutor, Error> {
    SparkExecutor::new(URL, Software::Archive { uri: uri.to_owned(), cache: true })
}

fn value_of<'a>(command: &'a Command, name: &str) -> Option<&'a str> {
    let mut found = command.environment.iter().filter(|(known, _)| known == name);
    let value = found.next().map(|(_, value)| value.as_str());
    assert!(found.next().is_none(), "{name} twice");
    value
}

/// Goal: commands equal Spark's own. Method: recorded ones, with a home, with a space in it, and with an archive.
#[test]
fn commands_are_those_of_spark() {
    let command = at_home("/opt/spark/").command(&context("5", "host2.example", 2));
    assert_eq!(command.form, CommandForm::Argv);
    assert_eq!(
        command.shown_line().unwrap(),
        "/opt/spark/./bin/spark-class org.apache.spark.executor.CoarseGrainedExecutorBackend \
         --driver-url spark://CoarseGrainedScheduler@driver.example:7078 --executor-id 5 --cores 2 \
         --app-id fw-1 --hostname host2.example"
    );
    let mut environment = command.environment.clone();
    environment.sort();
    let pair = |name: &'static str, value: &str| (name.into(), value.to_owned());
    let wanted = [
        pair("OMP_NUM_THREADS", "1"),
        pair("SPARK_EXECUTOR_MEMORY", "600m"),
        pair("SPARK_EXECUTOR_OPTS", ""),
    ];
    assert_eq!(environment, wanted);
    assert_eq!(command.setup, None);

    let spaced = at_home("/opt/with space/spark").command(&context("0", "h", 18));
    assert!(spaced.shown_line().unwrap().starts_with("'/opt/with space/spark/./bin/spark-class' "));
    for (home, program) in [
        ("/", "/./bin/spark-class"),
        ("//a//b//", "/a/b/./bin/spark-class"),
        ("a", "a/./bin/spark-class"),
    ] {
        assert_eq!(at_home(home).command(&context("0", "h", 1)).argv[0], program);
    }

    let mut setup = Setup::default();
    setup.uris.push(Uri::new("/b"));
    let fetched = archive("hdfs://nn.example/dist/spark-3.5.9-bin.tgz").unwrap().setup(setup);
    let command = fetched.hostname(Hostname::Own).command(&context("2", "host2.example", 4));
    assert_eq!(command.form, CommandForm::Shell);
    assert_eq!(
        command.shown_line().unwrap(),
        "cd spark-3*; ./bin/spark-class org.apache.spark.executor.CoarseGrainedExecutorBackend \
         --driver-url spark://CoarseGrainedScheduler@driver.example:7078 --executor-id 2 --cores 4 --app-id fw-1"
    );
    assert!(command.shell_line().unwrap().starts_with("cd spark-3*; exec ./bin/spark-class "));
    let setup = command.setup.unwrap();
    let uris: Vec<(&str, bool)> = setup.uris.iter().map(|uri| (&*uri.value, uri.cache)).collect();
    assert_eq!(uris, [("hdfs://nn.example/dist/spark-3.5.9-bin.tgz", true), ("/b", false)]);
}

/// Goal: each setting has the same effect as in Spark, and configured variables override Spark's. Method: all settings
/// at once.
#[test]
fn settings_reach_the_executor() {
    let executor = at_home("/s")
        .app_id("app-9")
        .java_options("-Dx={{APP_ID}} -Dy={{EXECUTOR_ID}}.{{CORES}}")
        .class_path("/c:/d")
        .library_path("/native lib")
        .task_cores(3)
        .user("etl")
        .variable("A", "{{APP_ID}}")
        .variable("SPARK_USER", "nobody")
        .variable("SPARK_EXECUTOR_MEMORY", "1m")
        .hostname(Hostname::Fixed("127.0.0.1".into()));
    let command = executor.command(&context("7", "agent-0", 0));
    for (name, value) in [
        ("SPARK_EXECUTOR_OPTS", "-Dx=app-9 -Dy=7.{{CORES}}"),
        ("SPARK_EXECUTOR_CLASSPATH", "/c:/d"),
        ("OMP_NUM_THREADS", "3"),
        ("SPARK_USER", "etl"),
        ("A", "{{APP_ID}}"),
        ("SPARK_EXECUTOR_MEMORY", "1m"),
    ] {
        assert_eq!(value_of(&command, name), Some(value));
    }
    let line = command.shown_line().unwrap();
    let begins = "LD_LIBRARY_PATH='/native lib':\"$LD_LIBRARY_PATH\" /s/./bin/spark-class ";
    assert!(line.starts_with(begins), "{line}");
    assert!(line.ends_with("--cores 1 --app-id app-9 --hostname 127.0.0.1"), "{line}");
}

/// Goal: a secret reaches the executor, overrides a variable of its name, and isn't shown. Method: both of one name.
#[test]
fn secrets_reach_the_executor() {
    let executor = at_home("/s")
        .secret_variable("_SPARK_AUTH_SECRET", Secret::new("cAnAry"))
        .variable("_SPARK_AUTH_SECRET", "other");
    assert_eq!(
        value_of(&executor.command(&context("7", "h", 1)), "_SPARK_AUTH_SECRET"),
        Some("cAnAry")
    );
    assert!(!format!("{executor:?}").contains("cAnAry"));
}

/// Goal: settings with which no executor could start are refused. Method: near misses of URLs, homes and archives.
#[test]
fn what_cannot_start_is_refused() {
    for url in [
        "",
        "driver:7078",
        "spark://driver:7078",
        "spark://@driver:7078",
        "spark://C@:7078",
        "spark://C@driver",
        "spark://C@driver:0",
        "spark://C@driver:+1",
        "spark://C@driver:70789",
        "spark://C@dri ver:7078",
        "spark://C@driver:7078/x",
    ] {
        let error = SparkExecutor::new(url, Software::Home("/s".into())).unwrap_err();
        assert!(error.to_string().starts_with("driver URL is "), "{error}");
    }
    assert_eq!(SparkExecutor::driver_url("driver.example", 7078).unwrap(), URL);
    assert!(SparkExecutor::driver_url("a b", 7078).is_err());
    assert!(SparkExecutor::new("spark://C@[::1]:7", Software::Home("/s".into())).is_ok());
    assert!(SparkExecutor::new(URL, Software::Home(" ".into())).is_err());
    for uri in ["", "/", "http://h/.tgz", "http://h/a b.tgz", "a\nb"] {
        assert!(archive(uri).is_err(), "{uri}");
    }
}

/// Goal: a shell never interprets a setting. Method: through each real shell, random settings of all characters that
/// are special to shells, in a folder with the files that an unpacked archive would leave; a program prints what it
/// received.
#[cfg(unix)]
#[test]
fn settings_stay_values_in_a_shell() {
    use std::os::unix::fs::PermissionsExt;
    let root = std::env::temp_dir().join(format!("offermill-spark-{}", std::process::id()));
    let value = || {
        prop_oneof![
            "[-a~$`'\"\\\\;&|<>(){}\\[\\]*?!#=%^: \té]{0,8}",
            prop::sample::select(vec![
                "'; exit 3; '",
                "$(exit 3)",
                "`exit 3`",
                "\" ; exit 3 ; \"",
                "--",
                "*"
            ])
            .prop_map(str::to_owned),
        ]
    };
    let word = "[-a~$`'\"\\\\;&|<>(){}\\[\\]*?!#=%^:é]{1,8}";
    let script = "#!/bin/sh\nprintf '%s\\0' \"$LD_LIBRARY_PATH\" \"$@\"\n";
    let mut runner =
        proptest::test_runner::TestRunner::new(proptest::test_runner::Config::with_cases(40));
    let given = (word, value(), value(), value());
    let result = runner.run(&given, |(folder, library, app, host)| {
        let _ = std::fs::remove_dir_all(&root);
        let bin = root.join(format!("{folder}-bin")).join("bin");
        std::fs::create_dir_all(&bin).unwrap();
        let program = bin.join("spark-class");
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        let command = archive(&format!("http://h/{folder}.tgz"))
            .unwrap()
            .library_path(&*library)
            .app_id(&*app)
            .command(&context("0", &host, 1));
        let line = command.shell_line().unwrap();
        let shells = ["/bin/sh", "/bin/bash"];
        let shells = shells.into_iter().filter(|shell| std::path::Path::new(shell).exists());
        // An empty entry would be the current folder, so there must be none.
        let cases = shells.flat_map(|shell| [(shell, "/old"), (shell, "")]);
        for (shell, old) in cases {
            let mut process = std::process::Command::new(shell);
            process.args(["-c", &line]).current_dir(&root).env("LD_LIBRARY_PATH", old);
            let output = process.output().unwrap();
            prop_assert!(output.status.success(), "{}: {:?}", line, output);
            let got = String::from_utf8(output.stdout).unwrap();
            let path = match old {
                "" => library.clone(),
                old => format!("{library}:{old}"),
            };
            let mut wanted = vec![&*path, BACKEND, "--driver-url", URL, "--executor-id", "0"];
            wanted.extend(["--cores", "1", "--app-id", &app, "--hostname", &host]);
            let wanted: String = wanted.into_iter().flat_map(|text| [text, "\0"]).collect();
            prop_assert_eq!(got, wanted, "{}", line);
        }
        Ok(())
    });
    let _ = std::fs::remove_dir_all(&root);
    result.unwrap();
}
