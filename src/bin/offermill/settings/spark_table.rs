//! The table of the settings of Spark's own executors. How it works is said in `key_table.rs`.

use offermill::config::text::{parse_bool, parse_count};

use crate::settings::master::Kind;
use crate::settings::option::Key;
use crate::settings::spark::{not_empty, read_java_options};

/// Where the driver and Spark are, and what executors are told.
pub(crate) const SPARK_KEYS: &[Key] = &[
    Key::offermill("offermill.spark.driver", "spark://CoarseGrainedScheduler@HOST:PORT")
        .flag("--spark-driver")
        .inside("driver URL")
        .otherwise("of spark.driver.host and .port")
        .read(|draft, given| {
            draft.spark.driver_url = not_empty(given);
            Ok(())
        }),
    Key::spark("spark.driver.host", "host name").otherwise("none").read(|draft, given| {
        draft.spark.driver_host = not_empty(given);
        Ok(())
    }),
    Key::spark("spark.driver.port", "port").otherwise("none").read(|draft, given| {
        given.read_into(&mut draft.spark.driver_port, |name, text| {
            parse_count(name, text, 1..=65_535).map(|port| Some(port as u16))
        })
    }),
    Key::spark("spark.app.id", "id").flag("--spark-app-id").otherwise("the framework's").read(
        |draft, given| {
            draft.spark.app_id = not_empty(given);
            Ok(())
        },
    ),
    Key::offermill("offermill.spark.hostname", "name or address that executors listen at")
        .flag("--spark-hostname")
        .otherwise("the agent's, or 127.0.0.1 on local agents")
        .read(|draft, given| {
            draft.spark.hostname = not_empty(given);
            Ok(())
        }),
    Key::spark_on_mesos("spark.mesos.executor.home", "Spark's folder on the agents")
        .variable("SPARK_HOME")
        .inside("Spark's home")
        .otherwise("none")
        .read(|draft, given| {
            draft.spark.home = not_empty(given);
            Ok(())
        }),
    Key::spark("spark.executor.uri", "URI of an archive with Spark")
        .variable("SPARK_EXECUTOR_URI")
        .inside("Spark's archive")
        .otherwise("none")
        .only(Kind::Mesos)
        .read(|draft, given| {
            draft.spark.archive = not_empty(given);
            Ok(())
        }),
    Key::spark("spark.executor.extraClassPath", "class path").otherwise("none").read(
        |draft, given| {
            draft.spark.class_path = not_empty(given);
            Ok(())
        },
    ),
    Key::spark("spark.executor.extraLibraryPath", "path, before the agent's LD_LIBRARY_PATH")
        .otherwise("none")
        .read(|draft, given| {
            draft.spark.library_path = not_empty(given);
            Ok(())
        }),
    Key::spark("spark.executor.defaultJavaOptions", "options of Java, before the next")
        .otherwise("none")
        .read(|draft, given| {
            draft.spark.default_java_options = read_java_options(draft, given);
            Ok(())
        }),
    Key::spark(
        "spark.executor.extraJavaOptions",
        "options of Java, with {{APP_ID}}, {{EXECUTOR_ID}}",
    )
    .otherwise("none")
    .read(|draft, given| {
        draft.spark.java_options = read_java_options(draft, given);
        Ok(())
    }),
    Key::offermill(
        "offermill.spark.moduleOptions",
        "true or false: the options that Java 17 needs",
    )
    .default("true")
    .read(|draft, given| given.read_into(&mut draft.spark.opens_modules, parse_bool)),
    Key::spark("spark.task.cpus", "number").default("1").read(|draft, given| {
        given.read_into(&mut draft.spark.task_cores, |name, text| {
            parse_count(name, text, 1..=1_000_000).map(|count| count as u32)
        })
    }),
    Key::offermill("offermill.spark.user", "name")
        .variable("SPARK_USER")
        .otherwise("who runs this")
        .read(|draft, given| {
            draft.spark.user = not_empty(given);
            Ok(())
        }),
    Key::spark("spark.authenticate", "true or false")
        .default("false")
        .read(|draft, given| given.read_into(&mut draft.spark.authenticate, parse_bool)),
    Key::spark_on_mesos("spark.mesos.coarse", "true").default("true").read(|draft, given| {
        let mut is_coarse = true;
        given.read_into(&mut is_coarse, parse_bool)?;
        if !is_coarse {
            draft.refuse(given, "true: there is no fine-grained mode");
        }
        Ok(())
    }),
];
