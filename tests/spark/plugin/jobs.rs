//! Jobs on executors that come and go.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use super::application::{Application, SECRET, command_line};
use super::recorder::Recorder;
use super::{SPARK_3, SPARK_4, SPARK_4_0};
use crate::real::jobs::mesos;
use crate::support::{Folder, send_signal};

const LOCAL: &str = "local-cluster[2,2,2048]";

/// Starts jobs with two executors, kills one of them during the jobs, and waits until another has come in its place.
/// Returns the application and its id.
pub(super) fn jobs_and_a_kill(
    spark: &str,
    cluster: &str,
    agent: &str,
    more: &[&str],
) -> (Application, String) {
    let recorder = Recorder::new();
    let secret = format!("spark.authenticate.secret={SECRET}");
    let settings = [
        &[
            recorder.setting.as_str(),
            "spark.executor.instances=2",
            "spark.authenticate=true",
            secret.as_str(),
            "spark.executor.extraJavaOptions=-Dquoted=\"a b\"",
            "spark.executor.memoryOverhead=400m",
            "spark.memory.offHeap.enabled=true",
            "spark.memory.offHeap.size=64m",
        ],
        more,
    ];
    // The file's name is relative to the application's folder.
    let mut application =
        Application::start(spark, cluster, &settings.concat(), &["jobs", "enough"]);
    let framework = application.line("APP_ID ");
    assert!(!framework.starts_with("spark-application") && !framework.is_empty(), "{framework}");
    application.line("EXECUTORS 2");
    assert_eq!(application.line("ROUND 0 "), "ok");
    application.assert_discreet(&framework);
    recorder.assert_discreet(512 + 400 + 64);
    let victim = Application::executor(&framework, "0");
    assert!(command_line(victim).contains(&"-Dquoted=a b".to_owned()), "{victim}");
    send_signal("KILL", victim);
    let reason = application.line("Lost executor 0 on ");
    assert!(reason.contains("signal 9"), "{reason}");
    assert!(reason.contains(&format!(" on {agent}")), "{reason}");
    Application::executor(&framework, "2");
    application.line("ROUND ");
    (application, framework)
}

/// Lets jobs end. All of their results must be right, and no process may be left.
#[track_caller]
pub(super) fn end_jobs(mut application: Application) {
    fs::write(application.folder.0.join("enough"), "").unwrap();
    assert_eq!(application.line("RESULT "), "ok");
    assert_eq!(application.end(), Some(0));
    application.assert_deserted(Duration::from_secs(5));
    // `.ci/spark` counts these lines.
    println!("jobs: {} rounds", application.count("ROUND "));
}

/// Goal: an application's jobs are right while an executor is killed; Spark's reason names the signal and the agent;
/// secrets are in no argument, no file, no event and no log; options with quotes arrive, and so do the settings of
/// encryption, without which executors couldn't talk to their driver; overhead and memory off the heap are part of what
/// they take; nothing is left. Method: Python workers, a shuffle and SQL
/// with `spark.authenticate` and encrypted connections, and SIGKILL after the first round.
#[test]
#[ignore = "needs Spark"]
fn an_application_of_spark_3_survives_a_kill() {
    let settings = ["spark.network.crypto.enabled=true", "spark.network.crypto.saslFallback=false"];
    let (application, _) = jobs_and_a_kill(SPARK_3, LOCAL, "agent-", &settings);
    end_jobs(application);
}

/// Goal: the same for Spark 4, on the same jar, with TLS between driver and executors; the links in Spark's page lead
/// to executors' logs. Method: the same, and a key of its own; the links of Spark's REST interface.
#[test]
#[ignore = "needs Spark"]
fn an_application_of_spark_4_survives_a_kill() {
    let folder = Folder::new();
    let keys = folder.0.join("keys");
    let mut keytool = Command::new("keytool");
    keytool.args(["-genkeypair", "-alias", "rpc", "-keyalg", "RSA", "-dname", "CN=offermill"]);
    keytool.args(["-storepass", SECRET, "-keypass", SECRET, "-keystore"]).arg(&keys);
    assert!(keytool.output().unwrap().status.success());
    let stores = ["keyStore", "trustStore"].map(|key| format!("{key}={}", keys.display()));
    let passwords = ["keyPassword", "keyStorePassword", "trustStorePassword"]
        .map(|key| format!("{key}={SECRET}"));
    let settings = ["enabled=true"].into_iter().map(str::to_owned).chain(stores).chain(passwords);
    let settings: Vec<String> = settings.map(|one| format!("spark.ssl.rpc.{one}")).collect();
    let page = ["spark.ui.enabled=true", "spark.ui.port=0"];
    let settings: Vec<&str> = settings.iter().map(String::as_str).chain(page).collect();
    let (mut application, framework) = jobs_and_a_kill(SPARK_4, LOCAL, "agent-", &settings);
    // Two links for each of two executors, and what they wrote to standard error.
    assert_eq!(application.count("LOGS 4 2"), 1);
    // The replacement has registered, and has the settings that every executor has.
    let newcomer = command_line(Application::executor(&framework, "2"));
    assert!(newcomer.contains(&"-Dspark.ssl.rpc.enabled=true".to_owned()), "{newcomer:?}");
    application.line("ROUND ");
    end_jobs(application);
}

/// Goal: the same on a real Mesos, which Spark 4 alone doesn't know any more; if an agent is lost with its executors,
/// Spark's reason says so, and others come elsewhere. Method: the same; SIGKILL for an agent, and for its executors
/// when it is known to be unreachable.
#[test]
#[ignore = "needs Spark"]
fn an_application_of_spark_4_survives_a_kill_on_mesos() {
    let cluster = mesos();
    let settings = [
        "spark.offermill.mesos.user=root",
        "spark.offermill.mesos.secretOverHttp=true",
        "spark.offermill.unreachableTimeout=5s",
    ];
    let (mut application, framework) =
        jobs_and_a_kill(SPARK_4, &cluster.url(), "127.0.1", &settings);
    let agents = ["127.0.10.1", "127.0.11.1"];
    let is_there = |agent: &&str| application.count(&format!("executor 1 placed on {agent}")) == 1;
    let agent = agents.iter().copied().find(is_there).unwrap();
    let number = if agent == agents[0] { 0 } else { 1 };
    cluster.kill_agent(number);
    application.line(&format!("executor 1 on {agent} may still run, but its agent is unreachable"));
    for executor in ["1", "2"] {
        if application.count(&format!("executor {executor} placed on {agent}")) == 1 {
            send_signal("KILL", Application::executor(&framework, executor));
        }
    }
    let reason = application.line("Lost executor 1 on ");
    assert!(reason.contains("its agent is unreachable"), "{reason}");
    Application::executor(&framework, "3");
    application.line("ROUND ");
    // It ends what is left of its executors.
    cluster.start_agent(number);
    application.line("ROUND ");
    end_jobs(application);
    cluster.assert_deserted();
}

/// Goal: with Kerberos the driver gives executors its delegation tokens, as Spark's backend for Mesos did: without them
/// they could read no HDFS; the tokens are in no argument, no file and no log. Method: a secret among the driver's
/// credentials, without a service of Kerberos; what executors get when they register.
#[test]
#[ignore = "needs Spark"]
fn delegation_tokens_reach_executors() {
    let realm = "-Djava.security.krb5.realm=OFFERMILL -Djava.security.krb5.kdc=127.0.0.1:1";
    let [driver, executors] = ["driver.default", "executor.extra"]
        .map(|beginning| format!("spark.{beginning}JavaOptions={realm}"));
    let settings = [
        "spark.hadoop.hadoop.security.authentication=kerberos",
        "spark.executor.instances=2",
        driver.as_str(),
        executors.as_str(),
    ];
    for spark in [SPARK_3, SPARK_4] {
        let mut application =
            Application::start(spark, LOCAL, &settings, &["tokens", SECRET, "enough"]);
        let framework = application.line("APP_ID ");
        assert_eq!(application.line("GIVEN "), "ok");
        assert_eq!(application.line("RESULT "), "ok");
        application.assert_discreet(&framework);
        fs::write(application.folder.0.join("enough"), "").unwrap();
        assert_eq!(application.end(), Some(0));
        application.assert_deserted(Duration::from_secs(5));
    }
}

/// Waves of load with Spark's dynamic allocation.
fn waves(spark: &str, waves: usize) {
    let settings =
        ["spark.dynamicAllocation.enabled=true", "spark.dynamicAllocation.executorIdleTimeout=1s"];
    let mut application =
        Application::start(spark, LOCAL, &settings, &["dynamic", &waves.to_string()]);
    assert_eq!(application.line("BEFORE "), "0");
    for wave in 0..waves {
        application.line(&format!("LOAD {wave}"));
        let began = Instant::now();
        let placed = (0..4).map(|_| {
            application.line(" placed on agent-");
            began.elapsed().as_secs_f64()
        });
        let placed: Vec<f64> = placed.collect();
        let [one, two, four] = [0, 1, 3].map(|executor| placed[executor]);
        println!(
            "one executor placed after {one:.1} s, two after {two:.1} s, four after {four:.1} s"
        );
        let up = application.line(&format!("UP {wave} "));
        let down = application.line(&format!("DOWN {wave} "));
        println!("Spark {spark}: four executors after {up}, none {down} after the load");
    }
    assert_eq!(application.line("RESULT "), "ok");
    assert_eq!(application.end(), Some(0));
    application.assert_deserted(Duration::from_secs(5));
    // Four in each wave: none that ended, as it was idle, was replaced.
    assert_eq!(application.count(" placed on agent-"), 4 * waves);
}

/// Goal: with dynamic allocation executors come with the load from none, as fast as Spark asks for them, go with it to
/// none, and aren't replaced then. Method: a wave of tasks; the number of executors that were placed, and when.
#[test]
#[ignore = "needs Spark"]
fn executors_of_spark_3_follow_the_load() {
    waves(SPARK_3, 1);
}

/// Goal: the same for Spark 4, whose methods differ, and once more. Method: the same, with two waves.
#[test]
#[ignore = "needs Spark"]
fn executors_of_spark_4_follow_the_load() {
    waves(SPARK_4, 2);
}

/// Goal: a driver that Python starts needs no script of Spark: what its program says is enough. Profiles of resources,
/// which are executors of another size, are refused with a sentence; executors that are ended together, of which one
/// has just been killed, are all gone, and none takes their places; a driver that ends without stopping its context
/// leaves nothing. Method: a program that sets the jar and the master, tries profiles, has a right answer, kills one of
/// two executors and has Spark end both, and ends by an exception.
#[test]
#[ignore = "needs Spark"]
fn a_plain_driver_of_spark_3_ends_by_an_exception() {
    plain(SPARK_3, "spark.executor.instances=2", "exception", 1);
}

/// Goal: the same for Spark 4, with dynamic allocation, with which other clusters have profiles, and no program may end
/// executors. Method: the same; it ends with an exit code of its own.
#[test]
#[ignore = "needs Spark"]
fn a_plain_driver_of_spark_4_exits() {
    plain(SPARK_4_0, "spark.dynamicAllocation.enabled=true", "3", 3);
}

fn plain(spark: &str, setting: &str, end: &str, code: i32) {
    let mut application = Application::plain(spark, LOCAL, &[setting], end);
    assert!(application.line("APP_ID ").starts_with("local-"));
    for what in ["ResourceProfiles are only supported on ", "Profiles are only supported "] {
        let why = application.line("REFUSED ");
        assert!(why.contains(what), "{why}");
    }
    assert_eq!(application.line("RESULT "), "ok");
    let mut placed = None;
    if !setting.starts_with("spark.dynamicAllocation.") {
        application.line("GONE");
        let outputs = application.folder.outputs().len();
        // The one that was killed may have been replaced before Spark was asked to end both.
        assert!((2..=3).contains(&outputs), "{outputs} executors were placed");
        placed = Some(outputs);
    }
    assert_eq!(application.end(), Some(code));
    if let Some(placed) = placed {
        assert_eq!(application.folder.outputs().len(), placed, "one took the place of the ended");
    }
    assert_eq!(application.count("TAKEN"), 0);
    // Java notices the end of Python, and stops the context then.
    application.assert_deserted(Duration::from_secs(30));
}
