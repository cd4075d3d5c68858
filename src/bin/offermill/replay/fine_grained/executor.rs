//! The long-lived executor of Spark's fine-grained mode: its command, environment, files and container.

use std::collections::BTreeMap;

use crate::replay::tasks::container;
use crate::scenario::TaskLine;
use crate::scenario::answer::UriLine;
use crate::settings::checks::spark::java_options;
use crate::settings::draft::SettingsDraft;

/// Spark's class that runs tasks.
const CLASS: &str = "org.apache.spark.executor.MesosExecutorBackend";

/// Returns an executor without id, agent and resources. `None` without Spark's home on the agents, which Spark needs
/// even if there is an archive.
pub(super) fn executor(draft: &SettingsDraft) -> Option<TaskLine> {
    let home = draft.spark.home.as_deref()?;
    let mut setup = draft.container.setup().unwrap_or_default();
    let archive = draft.spark.archive.iter().cloned();
    let uris = archive.chain(setup.uris.drain(..).map(|uri| uri.value));
    // Spark doesn't read whether files are cached.
    let uris = uris.map(|value| UriLine { value, cache: false }).collect();
    Some(TaskLine {
        command: Some(command(draft, home)),
        uris,
        env: Some(environment(draft)),
        container: Some(container(&setup)),
        ..TaskLine::default()
    })
}

/// The command, without quotation marks around the home, as Spark has it.
fn command(draft: &SettingsDraft, home: &str) -> String {
    let path = draft.spark.library_path.as_deref();
    let library = path.map(|path| format!("LD_LIBRARY_PATH=\"{path}:$LD_LIBRARY_PATH\""));
    let library = library.unwrap_or_default();
    match &draft.spark.archive {
        None => format!("{library} {} {CLASS}", normalized(&format!("{home}/bin/spark-class"))),
        Some(archive) => {
            let name = archive.split('/').rfind(|part| !part.is_empty()).unwrap_or_default();
            let name = name.split('.').next().unwrap_or_default();
            format!("cd {name}*; {library} ./bin/spark-class {CLASS}")
        }
    }
}

/// A path as Java writes it: without empty parts.
fn normalized(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let root = if path.starts_with('/') { "/" } else { "" };
    format!("{root}{}", parts.join("/"))
}

/// Replaces the placeholders in an executor's options of Java by the ids of application and executor.
pub(super) fn with_ids(executor: &mut TaskLine, options: &str, app_id: &str, id: &str) {
    let environment = executor.env.as_mut();
    let own = environment.and_then(|all| all.get_mut(JAVA_OPTIONS)).filter(|own| *own == options);
    if let Some(own) = own {
        *own = own.replace("{{APP_ID}}", app_id).replace("{{EXECUTOR_ID}}", id);
    }
}

fn environment(draft: &SettingsDraft) -> BTreeMap<String, String> {
    let mut all = BTreeMap::from([
        (JAVA_OPTIONS.to_owned(), java_options(&draft.spark)),
        ("SPARK_EXECUTOR_MEMORY".to_owned(), format!("{}m", draft.memory.get())),
    ]);
    all.extend(draft.spark.class_path.iter().map(|it| (CLASS_PATH.to_owned(), it.clone())));
    // Spark adds these behind its own.
    all.extend(draft.variables.clone());
    all.extend(draft.spark.user.iter().map(|user| ("SPARK_USER".to_owned(), user.clone())));
    all
}

const JAVA_OPTIONS: &str = "SPARK_EXECUTOR_OPTS";
const CLASS_PATH: &str = "SPARK_EXECUTOR_CLASSPATH";
