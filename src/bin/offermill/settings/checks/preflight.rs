//! Checks of this machine before the start: whether the command, Spark and Java exist, whether an executor fits on a
//! local agent, and whether sandboxes can be created.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, absolute};

use offermill::attributes::{self, Items};
use offermill::cluster::local::LocalMaster;
use offermill::config::ExecutorCores;
use offermill::private_files::PrivateFolder;
use offermill::resources::{Mebibytes, MilliCpus};
use offermill::{Config, Offer};
use rustix::fs::{Access, AtFlags, CWD, accessat};
use rustix::io::Errno;

use crate::settings::draft::SettingsDraft;
use crate::settings::master::ClusterKind;
use crate::text::format::printable;

/// The executors' command. On local agents its program is replaced by the absolute path at which it was found:
/// executors start in their sandboxes, and no other program is executed than the one that was checked. A missing
/// program is reported. A program with placeholders is not checked, nor is one for other clusters.
pub(crate) fn find_command(command: &[String], draft: &mut SettingsDraft) -> Option<Vec<String>> {
    if !draft.is_on(ClusterKind::Local) && draft.master.is_some() {
        return Some(command.to_vec());
    }
    let (program, arguments) = command.split_first()?;
    if program.contains("{{") {
        return Some(command.to_vec());
    }
    let found = if program.contains('/') {
        absolute(program)
            .map_err(|error| error.to_string())
            .and_then(|path| check_executable(&path).map(|()| path))
    } else {
        let path = draft.variables.get("PATH").map(Into::into).or_else(|| env::var_os("PATH"));
        let path = path.unwrap_or_default();
        let mut places = env::split_paths(&path).map(|folder| folder.join(program));
        let found = places.find(|place| check_executable(place).is_ok());
        let whose = match draft.variables.contains_key("PATH") {
            true => "the PATH that is given to executors",
            false => "PATH",
        };
        found
            .ok_or_else(|| format!("no such file in {whose}"))
            .and_then(|place| absolute(place).map_err(|error| error.to_string()))
    };
    let found = found.and_then(|path| {
        let text = path.into_os_string().into_string();
        text.map_err(|path| format!("{} is not text in UTF-8", path.display()))
    });
    match found {
        Ok(program) => {
            let mut command = vec![program];
            command.extend_from_slice(arguments);
            Some(command)
        }
        Err(why) => {
            let allowed = format!("a program that can be executed ({why})");
            draft.problems.push(format!("the command is {program:?}, but must be {allowed}"));
            None
        }
    }
}

/// Reports a missing Spark or Java. Makes Spark's home absolute, because executors start in their sandboxes.
pub(crate) fn find_spark(draft: &mut SettingsDraft) {
    const HOME: &str = "spark.mesos.executor.home";
    let Some(home) = draft.spark.home.clone() else { return };
    let found = absolute(&home).map_err(|error| error.to_string());
    let found = found.and_then(|home| {
        let script = home.join("bin/spark-class");
        check_executable(&script).map_err(|why| format!("bin/spark-class: {why}")).map(|()| home)
    });
    match found {
        Ok(home) => draft.spark.home = Some(home.to_string_lossy().into_owned()),
        Err(why) => {
            let name = draft.name_of(HOME);
            let allowed = format!("the folder of Spark on this machine ({why})");
            draft.problems.push(format!("{name} is {home:?}, but must be {allowed}"));
        }
    }
    if !has_java(draft) {
        let place = match draft.has_clean_environment {
            false => "JAVA_HOME or PATH",
            true => "JAVA_HOME or PATH, of which --clean-env passes on only those of --env",
        };
        draft.problems.push(format!("Spark's executors need Java: there is none in {place}"));
    }
}

/// Where a shell looks for programs if it has no `PATH`.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Whether Spark's script can find Java with the variables that executors get.
fn has_java(draft: &SettingsDraft) -> bool {
    let inherited = |name: &str| match draft.has_clean_environment {
        true => None,
        false => env::var_os(name),
    };
    let variable =
        |name: &str| draft.variables.get(name).map(Into::into).or_else(|| inherited(name));
    match variable("JAVA_HOME").filter(|home| !home.is_empty()) {
        Some(home) => check_executable(&Path::new(&home).join("bin/java")).is_ok(),
        None => {
            let path = variable("PATH").unwrap_or_else(|| DEFAULT_PATH.into());
            env::split_paths(&path).any(|folder| check_executable(&folder.join("java")).is_ok())
        }
    }
}

/// Fails if there is no file that this user may execute.
fn check_executable(path: &Path) -> Result<(), String> {
    let metadata = fs::metadata(path).map_err(|error| error.to_string())?;
    if metadata.is_dir() {
        return Err("this is a folder".to_owned());
    }
    match accessat(CWD, path, Access::EXEC_OK, AtFlags::EACCESS) {
        Ok(()) => Ok(()),
        Err(Errno::ACCESS) => Err("it has no permission to be executed".to_owned()),
        Err(error) => Err(io::Error::from(error).to_string()),
    }
}

/// The capacity of local agents.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LocalCapacity {
    /// The number of agents that can run executors.
    pub(crate) agents: usize,
    /// The number of executors that fit on all of them together, if it fits into the type.
    pub(crate) executors: Option<u32>,
}

/// Reports executors that fit on no agent. Returns the capacity.
pub(crate) fn check_capacity(
    draft: &mut SettingsDraft,
    config: &Config,
    master_text: &str,
    master: &LocalMaster,
) -> Option<LocalCapacity> {
    let cores = master.cores();
    let memory = master.memory();
    let taken = config.memory_taken();
    if taken > memory {
        let sentence = too_little_memory(draft, taken, memory, master_text);
        draft.problems.push(sentence);
    }
    let by_cores = match config.executor_cores() {
        ExecutorCores::Fixed(wanted) if wanted > cores => {
            let sentence = too_few_cores(draft, wanted, cores, master_text);
            draft.problems.push(sentence);
            return None;
        }
        ExecutorCores::Fixed(wanted) => cores.millis() / wanted.millis().max(1),
        ExecutorCores::WholeOffer => 1,
    };
    let unmet = |agent: usize| unmet_condition(draft, &master.hostname(agent), agent);
    let usable = (0..master.agents()).filter(|agent| unmet(*agent).is_none()).count();
    if usable == 0 {
        let first = unmet(0).map(|why| format!("; the first: {why}")).unwrap_or_default();
        let name = draft.name_of("spark.mesos.constraints");
        let value = draft.constraint.to_string();
        let whose = match draft.attributes == Default::default() {
            true => "they have no attributes; see --agent-attributes",
            false => "see --agent-attributes",
        };
        draft.problems.push(format!(
            "{name} is {value:?}, but must be met by some agent of {master_text} ({whose}{first})"
        ));
    }
    let by_memory = memory.get() / taken.get().max(1);
    // All agents are on one machine, so a fixed port is free once.
    let (agents, fitting) = match draft.port {
        Some(_) => (usable.min(1), 1),
        None => (usable, usable as u64 * by_cores.min(by_memory)),
    };
    Some(LocalCapacity { agents, executors: u32::try_from(fitting).ok() })
}

/// The first condition that an agent doesn't meet, and why; `None` if it meets the constraint.
fn unmet_condition(draft: &SettingsDraft, hostname: &str, agent: usize) -> Option<String> {
    let owned = draft.attributes.of_agent(agent).unwrap_or_default();
    let items = Items::of(&owned);
    let attributes = attributes::borrow(&owned, &items);
    let unmet = draft.constraint.check(&Offer::new("", "", hostname, &[], &attributes)).err()?;
    let condition = draft.constraint.condition(unmet.condition).unwrap_or_default();
    Some(format!("`{}`: {}", printable(&condition), unmet.mismatch))
}

fn too_few_cores(
    draft: &SettingsDraft,
    wanted: MilliCpus,
    cores: MilliCpus,
    master: &str,
) -> String {
    let name = draft.name_of("spark.executor.cores");
    format!(
        "{name} is \"{wanted}\", but must be at most {cores}, the cores of an agent of {master}"
    )
}

fn too_little_memory(
    draft: &SettingsDraft,
    taken: Mebibytes,
    memory: Mebibytes,
    master: &str,
) -> String {
    let name = draft.name_of("spark.executor.memory");
    let overhead = taken.get() - draft.memory.get();
    let own = match draft.text_of("spark.executor.memory") {
        Some(text) => format!("{text:?} ({})", draft.memory),
        None => draft.memory.to_string(),
    };
    let most = match draft.overhead() {
        Some(overhead) => memory.get().saturating_sub(overhead.get()),
        // The default overhead: a tenth, rounded down, or 384.
        None => memory.get().saturating_sub(384).min((memory.get() * 10 + 9) / 11),
    };
    let advice = match most {
        0 => "so no executor fits at all".to_owned(),
        most => format!("so it must be at most {most}m (or give --memory-overhead)"),
    };
    let sum = format!("which with {overhead} MiB of overhead makes {taken}");
    format!("{name} is {own}, {sum}, but an agent of {master} has {memory}: {advice}")
}

/// Reports a work folder in which no sandbox can be created: one that isn't writable, that belongs to another user, or
/// that others may write. Creates a folder to find out.
pub(crate) fn check_work_dir(draft: &mut SettingsDraft) {
    let probe = format!(".offermill-{}", std::process::id());
    let tried = PrivateFolder::open(&draft.work_dir)
        .and_then(|folder| folder.subfolder("sandboxes"))
        .and_then(|folder| folder.create_folder(&probe))
        .and_then(|folder| fs::remove_dir(folder.path()));
    if let Err(error) = tried {
        let name = draft.name_of("offermill.workDir");
        let folder = draft.work_dir.display().to_string();
        let allowed = format!("a folder in which sandboxes can be created ({error})");
        draft.problems.push(format!("{name} is {folder:?}, but must be {allowed}"));
    }
}
