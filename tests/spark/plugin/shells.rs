//! Spark's shells at a terminal.

use std::fs;
use std::time::Duration;

use super::application::Application;
use super::{SPARK_3, SPARK_4};

/// Interrupts a job in a shell, and runs another one on the same executors.
fn interrupt(spark: &str, shell: &str) {
    let settings =
        ["spark.executor.instances=2", "spark.scheduler.minRegisteredResourcesRatio=1.0"];
    let mut shell = Application::shell(spark, shell, "local-cluster[2,2,2048]", &settings);
    let framework = shell.line("APP_ID ");
    shell.line("RUNNING");
    let executors = || ["0", "1"].map(|name| Application::executor(&framework, name));
    let before = executors();
    assert_eq!(shell.line("RESULT "), "ok");
    assert_eq!(executors(), before);
    fs::write(shell.folder.0.join("task-end"), "").unwrap();
    assert_eq!(shell.end(), Some(0));
    shell.assert_deserted(Duration::from_secs(5));
}

/// Goal: Ctrl-C in `pyspark` cancels the job, and ends neither an executor nor the application. Method: a terminal, a
/// job that doesn't end by itself, Ctrl-C, and another job; the executors' processes are the same.
#[test]
#[ignore = "needs Spark"]
fn ctrl_c_in_pyspark_cancels_a_job() {
    interrupt(SPARK_3, "pyspark");
}

/// Goal: the same in `spark-shell`. Method: the same.
#[test]
#[ignore = "needs Spark"]
fn ctrl_c_in_spark_shell_cancels_a_job() {
    interrupt(SPARK_4, "spark-shell");
}
