//! Tests of what Spark's executors get before they can ask their driver: settings, secrets, and links to their logs.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::spark::run;
use crate::support::Folder;

const URL: &str = "spark://CoarseGrainedScheduler@127.0.0.1:7078";

/// A folder like Spark's with a script that prints its variables, and one like Java's. Returns the flags for them.
fn fake_spark(folder: &Folder) -> Vec<String> {
    let script = |path: &str, text: &str| {
        let path = folder.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    };
    script("spark/bin/spark-class", "#!/bin/sh\nenv | grep SPARK | sort\n");
    script("java/bin/java", "#!/bin/sh\n");
    let java = format!("JAVA_HOME={}", folder.0.join("java").display());
    let home = ["-c", "spark.mesos.executor.home=spark", "--spark-driver", URL, "--env", &java];
    let size = ["--executor-cores", "1", "--executor-memory", "16m", "--memory-overhead", "0"];
    let run = ["--master", "local-cluster[1,1,64]", "--num-executors", "1", "--until-finished"];
    [&home[..], &size, &run, &["-c", "offermill.spark.moduleOptions=false"]]
        .concat()
        .iter()
        .map(|&flag| flag.to_owned())
        .collect()
}

/// Settings as a Spark driver has them.
const FILE: &str = "spark.authenticate true\n\
    spark.authenticate.secret cAnAry1\n\
    spark.rpc.message.maxSize 64\n\
    spark.network.crypto.enabled true\n\
    spark.ssl.rpc.enabled true\n\
    spark.ssl.rpc.keyStore /k s/\"x\"\n\
    spark.ssl.keyStorePassword cAnAry2\n\
    spark.ssl.rpc.trustStorePassword cAnAry3\n\
    spark.ssl.ui.keyPassword cAnAry4\n\
    spark.port.maxRetries 3\n\
    spark.driver.port 7078\n\
    spark.eventLog.enabled true\n\
    spark.executor.extraJavaOptions -Dx=1\n";

fn lines_with<'a>(text: &'a str, begin: &str) -> Vec<&'a str> {
    text.lines().filter(|line| line.starts_with(begin)).collect()
}

/// Goal: executors get the settings that they need to start as options of Java, quoted, and secrets as variables, and
/// no secret appears in an event, a message or a journal. Method: a properties file with some of each; a stand-in for
/// Spark that prints its variables.
#[test]
fn executors_get_what_they_need_to_start() {
    let folder = Folder::new();
    let flags = fake_spark(&folder);
    let path = folder.write("settings", FILE);
    fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
    let mut flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    flags.extend(["--properties-file", "settings", "--json", "--journal", "J"]);
    let ended = run(&folder, &flags, &[]);
    assert_eq!(ended.code, Some(0), "{}{}", ended.output, ended.errors);
    let told = "offermill: ignored, as they mean nothing here: spark.ssl.ui.keyPassword, spark.eventLog.enabled\n";
    assert_eq!(ended.errors, told);
    let output = &folder.outputs()[0];
    let options = "SPARK_EXECUTOR_OPTS=-Dspark.authenticate=true -Dspark.network.crypto.enabled=true \
                   -Dspark.port.maxRetries=3 -Dspark.rpc.message.maxSize=64 -Dspark.ssl.rpc.enabled=true \
                   \"-Dspark.ssl.rpc.keyStore=/k s/\\\"x\\\"\" -Dx=1";
    assert_eq!(lines_with(output, "SPARK_EXECUTOR_OPTS="), [options]);
    let secrets = [
        "_SPARK_AUTH_SECRET=cAnAry1",
        "_SPARK_SSL_RPC_KEY_STORE_PASSWORD=cAnAry2",
        "_SPARK_SSL_RPC_TRUST_STORE_PASSWORD=cAnAry3",
    ];
    assert_eq!(lines_with(output, "_SPARK"), secrets);
    let journals = ["J", "J.answers"].map(|name| fs::read_to_string(folder.0.join(name)).unwrap());
    for text in [&ended.output, &ended.errors, &journals[0], &journals[1]] {
        assert!(!text.contains("cAnAry"), "{text}");
    }
    // Without the journal, whose files exist.
    let shown = [&flags[..flags.len() - 3], &["--print-config"]].concat();
    let ended = run(&folder, &shown, &[]);
    assert_eq!(ended.code, Some(0), "{}", ended.errors);
    assert!(!ended.output.contains("cAnAry"), "{}", ended.output);
    assert_eq!(
        lines_with(&ended.output, "spark.rpc.message.maxSize ").len(),
        1,
        "{}",
        ended.output
    );
}

/// Goal: the secret in this program's environment is passed on, only if it is used, without a remark. Method: with
/// authentication and without, on executors that inherit no variables.
#[test]
fn the_secret_in_the_environment_is_passed_on() {
    for (authenticate, secrets) in [
        ("spark.authenticate=true", &["_SPARK_AUTH_SECRET=cAnAry1"][..]),
        ("spark.authenticate=false", &[]),
    ] {
        let folder = Folder::new();
        let flags = fake_spark(&folder);
        let mut flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        flags.extend(["--clean-env", "--env", "PATH", "-c", authenticate]);
        let ended = run(&folder, &flags, &[("_SPARK_AUTH_SECRET", "cAnAry1")]);
        assert_eq!((ended.code, &*ended.errors), (Some(0), ""), "{}", ended.output);
        assert_eq!(lines_with(&folder.outputs()[0], "_SPARK"), secrets);
    }
}

/// Goal: secrets in this program's environment that aren't used are not inherited either, and a remark names them.
/// Method: a secret and a password, without authentication and SSL, on executors that inherit variables.
#[test]
fn unused_secrets_in_the_environment_are_withheld() {
    let folder = Folder::new();
    let flags = fake_spark(&folder);
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let secrets = [("_SPARK_AUTH_SECRET", "cAnAry1"), ("_SPARK_SSL_RPC_KEY_PASSWORD", "cAnAry2")];
    let ended = run(&folder, &flags, &secrets);
    assert_eq!(ended.code, Some(0), "{}{}", ended.output, ended.errors);
    assert_eq!(lines_with(&folder.outputs()[0], "_SPARK"), [""; 0]);
    let remark =
        "executors don't inherit _SPARK_AUTH_SECRET, _SPARK_SSL_RPC_KEY_PASSWORD: a secret is";
    assert!(ended.errors.contains(remark), "{}", ended.errors);
}

/// Goal: Spark's page can link to executors' logs. Method: the link in an executor's variables is a file with its
/// output; attributes name its agent.
#[test]
fn logs_are_linked() {
    let folder = Folder::new();
    let flags = fake_spark(&folder);
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let ended = run(&folder, &flags, &[]);
    assert_eq!(ended.code, Some(0), "{}{}", ended.output, ended.errors);
    let output = &folder.outputs()[0];
    let link = lines_with(output, "SPARK_LOG_URL_STDOUT=")[0];
    let path = link.strip_prefix("SPARK_LOG_URL_STDOUT=file://").unwrap();
    assert_eq!(fs::read_to_string(path).unwrap(), *output);
    assert_eq!(lines_with(output, "SPARK_LOG_URL_STDERR=").len(), 1);
    for line in ["EXECUTOR_ID=0", "HOSTNAME=agent-0", "LOG_FILES=stdout,stderr"] {
        let line = format!("SPARK_EXECUTOR_ATTRIBUTE_{line}");
        assert_eq!(lines_with(output, &line), [line.as_str()]);
    }
}

/// Goal: a secret doesn't go over the network unencrypted, unless that is allowed. Method: a Mesos cluster without TLS.
#[test]
fn secrets_need_tls() {
    let folder = Folder::new();
    let master = ["--master", "mesos://127.0.0.1:1", "-c", "offermill.mesos.user=nobody"];
    let spark = ["--spark-driver", URL, "-c", "spark.mesos.executor.home=/s", "--print-config"];
    let flags = [&master[..], &spark, &["-c", "spark.authenticate=true"]].concat();
    let secret = [("_SPARK_AUTH_SECRET", "cAnAry1")];
    let ended = run(&folder, &flags, &secret);
    assert_eq!(ended.code, Some(2), "{}", ended.output);
    let sentence = "a secret of Spark's executors would be sent unencrypted to mesos://";
    assert!(ended.errors.contains(sentence), "{}", ended.errors);
    let ended = run(&folder, &[&flags[..], &["--allow-plain-secret"]].concat(), &secret);
    assert_eq!(ended.code, Some(0), "{}", ended.errors);
}
