//! The ends of drivers, and of Offermill beneath them.

use std::time::{Duration, Instant};

use super::application::Application;
use super::{SPARK_3, SPARK_4};
use crate::support::send_signal;

const LOCAL: &str = "local-cluster[2,2,2048]";

/// Goal: a driver that is killed leaves nothing: no executor, no Offermill, no file. Method: SIGKILL for the driver,
/// with executors and without.
#[test]
#[ignore = "needs Spark"]
fn a_killed_driver_leaves_nothing() {
    for (executors, setting) in
        [("2", "spark.executor.instances=2"), ("0", "spark.dynamicAllocation.enabled=true")]
    {
        let mut application = Application::start(SPARK_4, LOCAL, &[setting], &["idle", executors]);
        application.line("READY");
        let before = Instant::now();
        send_signal("KILL", application.driver());
        application.assert_deserted(Duration::from_secs(5));
        println!("{executors} executors were gone {:.1?} after their driver", before.elapsed());
        assert_eq!(application.files(), Vec::<String>::new());
    }
}

/// Goal: if Offermill is killed, a job fails soon with what is known, the application ends, and executors with it.
/// Method: SIGKILL for Offermill during a job; the failure's text and its time.
#[test]
#[ignore = "needs Spark"]
fn a_killed_offermill_ends_the_application() {
    let mut application =
        Application::start(SPARK_4, LOCAL, &["spark.executor.instances=2"], &["busy"]);
    application.line("READY");
    application.line("Starting task 0.0 in stage ");
    let before = Instant::now();
    send_signal("KILL", application.offermill());
    let why = application.line("FAILED ");
    println!("the job failed {:.1?} after Offermill", before.elapsed());
    let wanted = "Offermill gives no executors any more: it ended by signal 9";
    assert!(why.contains(wanted), "{why}");
    assert!(before.elapsed() < Duration::from_secs(10));
    application.end();
    application.assert_deserted(Duration::from_secs(5));
}

/// Goal: an Offermill that is silent holds up no job, and the end of its application only for a bounded time; nothing
/// is left. Method: SIGSTOP for Offermill during rounds of jobs, and the application's end.
#[test]
#[ignore = "needs Spark"]
fn a_silent_offermill_delays_the_end_alone() {
    let settings = ["spark.executor.instances=2", "spark.mesos.coarse.shutdownTimeout=1s"];
    let mut application = Application::start(SPARK_4, LOCAL, &settings, &["jobs", "enough"]);
    application.line("EXECUTORS 2");
    send_signal("STOP", application.offermill());
    application.line("ROUND ");
    std::fs::write(application.folder.0.join("enough"), "").unwrap();
    assert_eq!(application.line("RESULT "), "ok");
    let before = Instant::now();
    application.line("Offermill didn't end in time and was killed");
    assert_eq!(application.end(), Some(0));
    println!("the application ended {:.1?} after its last job", before.elapsed());
    application.assert_deserted(Duration::from_secs(5));
}

/// Goal: an application ends when `spark.executor.maxNumFailures` of its executors have failed, with that reason, and
/// a job with it. Method: one failure is too many; SIGKILL for an executor during a job.
#[test]
#[ignore = "needs Spark"]
fn too_many_failures_end_the_application() {
    let settings = ["spark.executor.instances=2", "spark.executor.maxNumFailures=1"];
    let mut application = Application::start(SPARK_4, LOCAL, &settings, &["busy"]);
    let framework = application.line("APP_ID ");
    application.line("READY");
    application.line("Starting task 0.0 in stage ");
    send_signal("KILL", Application::executor(&framework, "0"));
    let why = application.line("FAILED ");
    assert!(
        why.contains("Offermill gives no executors any more: it ended with exit code"),
        "{why}"
    );
    assert!(why.contains("failed"), "{why}");
    application.end();
    application.assert_deserted(Duration::from_secs(5));
}

/// The application ends because executors have failed in a row, and leaves nothing.
fn assert_ends_for_failures(application: &mut Application) {
    let why = application.line(" executors have failed in a row, and none of them had worked");
    assert!(why.contains("the last failure: exit code 1 on agent-"), "{why}");
    application.end();
    application.assert_deserted(Duration::from_secs(5));
}

/// Goal: an application whose executors can't start ends when some have failed in a row, and says why the last one
/// failed. Method: an agent of Java that isn't there, on two agents.
#[test]
#[ignore = "needs Spark"]
fn an_application_without_a_working_executor_ends() {
    // Without a number of executors there is no limit of failures that would come before.
    let settings = ["spark.executor.extraJavaOptions=-javaagent:/nowhere.jar"];
    let mut application = Application::start(SPARK_4, LOCAL, &settings, &["idle", "2"]);
    assert_ends_for_failures(&mut application);
}

/// Goal: the same if executors register with their driver, and fail before they can run a task. Method: a shuffle
/// service that isn't there; one attempt to find it.
#[test]
#[ignore = "needs Spark"]
fn an_application_without_a_shuffle_service_ends() {
    let settings =
        ["spark.shuffle.service.enabled=true", "spark.shuffle.registration.maxAttempts=1"];
    let mut application = Application::start(SPARK_4, LOCAL, &settings, &["idle", "9"]);
    application.line("Registered executor ");
    assert_ends_for_failures(&mut application);
}

/// Goal: an executor that hangs before it registers doesn't keep its place for ever. Method: executors whose Java waits
/// for a debugger, and one second for them.
#[test]
#[ignore = "needs Spark"]
fn an_executor_that_never_registers_is_replaced() {
    let settings = [
        "spark.executor.instances=1",
        "spark.offermill.executorRegistrationTimeout=1s",
        // A process that waits like that doesn't end when it is asked to.
        "spark.mesos.coarse.shutdownTimeout=1s",
        "spark.executor.extraJavaOptions=\
         -agentlib:jdwp=transport=dt_socket,server=y,suspend=y,address=127.0.0.1:0",
    ];
    let mut application = Application::start(SPARK_4, "local[1]", &settings, &["idle", "1"]);
    application.line("executor 0 placed on ");
    application.line("executor 0 has been running for 1 s without registering with this driver");
    application.line("executor 1 placed on ");
    send_signal("KILL", application.driver());
    application.assert_deserted(Duration::from_secs(5));
}

/// Goal: on one machine a task that ends its executors costs its job, and not the agents for an hour; an executor that
/// is killed before it registers is replaced. Method: one agent, SIGKILL for the first executor as soon as it is there,
/// a job whose task kills each executor that tries it, and another job.
#[test]
#[ignore = "needs Spark"]
fn a_deadly_task_costs_its_job_alone() {
    let settings = ["spark.task.maxFailures=3"];
    let mut application = Application::start(SPARK_3, "local[1]", &settings, &["deadly"]);
    let framework = application.line("Offermill has registered as ");
    let framework = framework.split(' ').next().unwrap();
    send_signal("KILL", Application::executor(framework, "0"));
    let why = application.line("FAILED ");
    assert!(why.contains("failed 3 times"), "{why}");
    assert!(why.contains("signal 9 (SIGKILL) on "), "{why}");
    assert_eq!(application.line("RESULT "), "ok");
    assert_eq!(application.end(), Some(0));
    assert_eq!(application.count(" is excluded"), 0);
    application.assert_deserted(Duration::from_secs(5));
}
