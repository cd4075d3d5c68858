//! The options of Spark's executors.

use offermill::config::text::{parse_bool, parse_count};

use crate::settings::draft::SettingsDraft;
use crate::settings::master::ClusterKind;
use crate::settings::sources::Sourced;
use crate::settings::table::row::{OptionRow, non_empty};

/// The driver, Spark's place, and the settings of executors.
pub(super) const SPARK_ROWS: &[OptionRow] = &[
    OptionRow::offermill("offermill.spark.driver", "spark://CoarseGrainedScheduler@HOST:PORT")
        .flag("--spark-driver")
        .library_name("driver URL")
        .derived("of spark.driver.host and .port")
        .read(|draft, given| {
            draft.spark.driver_url = non_empty(given);
            Ok(())
        }),
    OptionRow::spark("spark.driver.host", "host name").derived("none").read(|draft, given| {
        draft.spark.driver_host = non_empty(given);
        Ok(())
    }),
    OptionRow::spark("spark.driver.port", "port").derived("none").read(|draft, given| {
        given.read_into(&mut draft.spark.driver_port, |name, text| {
            parse_count(name, text, 1..=65_535).map(|port| Some(port as u16))
        })
    }),
    OptionRow::spark("spark.app.id", "id").flag("--spark-app-id").derived("the framework's").read(
        |draft, given| {
            draft.spark.app_id = non_empty(given);
            Ok(())
        },
    ),
    OptionRow::offermill("offermill.spark.hostname", "name or address that executors listen at")
        .flag("--spark-hostname")
        .derived("the agent's, or 127.0.0.1 on local agents")
        .read(|draft, given| {
            draft.spark.hostname = non_empty(given);
            Ok(())
        }),
    OptionRow::spark_on_mesos("spark.mesos.executor.home", "Spark's folder on the agents")
        .variable("SPARK_HOME")
        .library_name("Spark's home")
        .derived("none")
        .read(|draft, given| {
            draft.spark.home = non_empty(given);
            Ok(())
        }),
    OptionRow::spark("spark.executor.uri", "URI of an archive with Spark")
        .variable("SPARK_EXECUTOR_URI")
        .library_name("Spark's archive")
        .derived("none")
        .only(ClusterKind::Mesos)
        .read(|draft, given| {
            draft.spark.archive = non_empty(given);
            Ok(())
        }),
    OptionRow::spark("spark.executor.extraClassPath", "class path").derived("none").read(
        |draft, given| {
            draft.spark.class_path = non_empty(given);
            Ok(())
        },
    ),
    OptionRow::spark("spark.executor.extraLibraryPath", "path, before the agent's LD_LIBRARY_PATH")
        .derived("none")
        .read(|draft, given| {
            draft.spark.library_path = non_empty(given);
            Ok(())
        }),
    OptionRow::spark("spark.executor.defaultJavaOptions", "options of Java, before the next")
        .derived("none")
        .read(|draft, given| {
            draft.spark.default_java_options = read_java_options(draft, given);
            Ok(())
        }),
    OptionRow::spark(
        "spark.executor.extraJavaOptions",
        "options of Java, with {{APP_ID}}, {{EXECUTOR_ID}}",
    )
    .derived("none")
    .read(|draft, given| {
        draft.spark.java_options = read_java_options(draft, given);
        Ok(())
    }),
    OptionRow::offermill(
        "offermill.spark.moduleOptions",
        "true or false: the options that Java 17 needs",
    )
    .default("true")
    .read(|draft, given| given.read_into(&mut draft.spark.opens_modules, parse_bool)),
    OptionRow::spark("spark.task.cpus", "number").default("1").read(|draft, given| {
        given.read_into(&mut draft.spark.task_cores, |name, text| {
            parse_count(name, text, 1..=1_000_000).map(|count| count as u32)
        })
    }),
    OptionRow::offermill("offermill.spark.user", "name")
        .variable("SPARK_USER")
        .derived("the user that runs this")
        .read(|draft, given| {
            draft.spark.user = non_empty(given);
            Ok(())
        }),
    OptionRow::spark("spark.authenticate", "true or false")
        .default("false")
        .read(|draft, given| given.read_into(&mut draft.spark.authenticate, parse_bool)),
    OptionRow::spark_on_mesos("spark.mesos.coarse", "true").default("true").read(|draft, given| {
        let mut is_coarse = true;
        given.read_into(&mut is_coarse, parse_bool)?;
        if !is_coarse {
            draft.reject(given, "true: there is no fine-grained mode, except in `offermill replay --compat spark-3.5`");
        }
        Ok(())
    }),
];

/// Reads options of Java. Options that have settings of their own are rejected.
fn read_java_options(draft: &mut SettingsDraft, given: &Sourced) -> Option<String> {
    for (part, instead) in [
        ("-Dspark", "settings of Spark go into --conf"),
        ("-Xmx", "memory goes into spark.executor.memory"),
    ] {
        if given.text.contains(part) {
            draft.reject(given, &format!("without {part}: {instead}"));
        }
    }
    non_empty(given)
}
