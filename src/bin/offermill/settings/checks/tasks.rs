//! Checks of the tasks of a run (`--tasks`): reads their file, and derives settings from them.

use std::sync::Arc;
use std::time::Duration;

use offermill::ResourceSums;
use offermill::config::text::{TimeUnit, parse_count, parse_duration};
use offermill::config::{ExecutorCores, ExecutorGpus};
use offermill::engine::HostTerms;
use offermill::launch::{Setup, uris};
use offermill::limits::{EXECUTORS_MAX, TOTAL_CORES_MAX};
use offermill::resources::{Gpus, Mebibytes, MilliCpus};

use crate::settings::RunSettings;
use crate::settings::draft::SettingsDraft;
use crate::settings::flags::RunArguments;
use crate::settings::master::{ClusterKind, ClusterMaster, is_standalone};
use crate::settings::sources::SettingSource;
use crate::settings::task_flags::{
    HOST_CORES, HOST_IDLE_TIMEOUT, HOST_MEMORY, TASK_CORES, TASK_MEMORY, TASK_RETRIES, task_flags,
};
use crate::settings::values::executors::ExecutorProgram;
use crate::tasks::order::TaskList;
use crate::tasks::parse::{RETRIES_MAX, cores_of, memory_of};
use crate::tasks::queue::{TaskQueue, TaskTerms};
use crate::tasks::queue_check::QueueTotals;
use crate::tasks::read::read_tasks;
use crate::tasks::resume::ResumedTasks;
use crate::tasks::run_queues::parse_bound_of_memory;
use crate::tasks::task::{TaskDefaults, TaskSpec};
use crate::text::format::count;

/// The key of the number of failures that exclude an agent.
const EXCLUDE_AFTER: &str = "spark.excludeOnFailure.application.maxFailedExecutorsPerNode";
/// The key of the queues.
pub(crate) const QUEUES: &str = "offermill.queues";
/// The most GPUs of all tasks.
const GPU_CAP: &str = "spark.mesos.gpus.max";
/// The least time between two revives. At a cap that tasks fill, offers are suppressed: that is how long the room of a
/// task that has ended stays empty.
const REVIVE_INTERVAL: Duration = Duration::from_millis(200);
/// The same on local agents.
const REVIVE_LOCAL: Duration = Duration::from_millis(10);
/// How long offers without a task are refused.
const REFUSE: Duration = Duration::from_secs(1);
/// The same on local agents, whose offers cost little: tasks that become ready start soon.
const REFUSE_LOCAL: Duration = Duration::from_millis(50);
/// The least time between two offers of a local agent: short tasks end all the time.
const OFFER_INTERVAL: Duration = Duration::from_millis(10);
/// The most ids that a remark names.
const IDS_SHOWN_MAX: usize = 10;
/// The number of lines that are named at most if tasks fit on no agent.
const TOO_LARGE_SHOWN_MAX: usize = 5;

/// The tasks as the program of executors. Reports what is wrong with them, and settings that don't go with them.
pub(crate) fn task_program(
    name: &str,
    arguments: &RunArguments,
    draft: &mut SettingsDraft,
) -> Option<ExecutorProgram> {
    read_total_memory(arguments, draft);
    refuse_conflicts(draft);
    // Until their sizes are known, no cap is too low.
    draft.executor_cores = ExecutorCores::Fixed(MilliCpus::from_millis(1));
    let defaults = defaults(arguments).map_err(|why| draft.problems.push(why)).ok()?;
    let results = match (&arguments.results, name) {
        (Some(results), _) => results.clone(),
        (None, "-") => {
            let sentence =
                "--tasks - needs --results FILE, to which what becomes of tasks is written";
            draft.problems.push(sentence.to_owned());
            return None;
        }
        (None, name) => format!("{name}.results"),
    };
    let timeout = placement_timeout(arguments).map_err(|why| draft.problems.push(why)).ok()?;
    let mut list = read_tasks(name, &defaults).map_err(|why| draft.problems.push(why)).ok()?;
    let hosts = host_terms(arguments, draft).map_err(|why| draft.problems.push(why)).ok()?;
    // If queues are wrong, which tasks name them is of no interest.
    if draft.queues.are_given() || draft.given(QUEUES).is_none() {
        let host = hosts.as_ref().map(|hosts| hosts.task(0));
        let gpus = draft.given(GPU_CAP).map(|_| draft.gpu_cap);
        let all = QueueTotals { cores: draft.core_cap, memory: draft.queued_memory, gpus, host };
        list.find_queues(&draft.queues, all).map_err(|why| draft.problems.push(why)).ok()?;
    }
    report_too_large(draft, &list, hosts.as_ref());
    derive(draft, &list);
    let terms = TaskTerms {
        form: draft.form,
        setup: draft.container.setup().map(Arc::new),
        variables: draft.variables.clone().into_iter().collect(),
        placement: draft.placement,
        queues: draft.queues.clone(),
        tasks_max: draft.executors.unwrap_or(EXECUTORS_MAX),
        most: ResourceSums {
            cores: draft.core_cap.unwrap_or(TOTAL_CORES_MAX),
            memory: Mebibytes::new(u64::MAX),
            gpus: draft.gpu_cap,
        },
        placement_timeout: timeout,
        hosts,
    };
    Some(ExecutorProgram::Tasks(Arc::new(TaskQueue::new(list, terms, results))))
}

/// Reports flags that mean nothing without tasks.
pub(crate) fn refuse_without_tasks(arguments: &RunArguments, draft: &mut SettingsDraft) {
    for flag in task_flags(arguments).iter().filter(|flag| flag.given.is_some()) {
        draft.problems.push(format!("{} is for tasks: it needs --tasks FILE", flag.name));
    }
}

/// Reads the memory of all queues.
fn read_total_memory(arguments: &RunArguments, draft: &mut SettingsDraft) {
    const FLAG: &str = "--total-task-memory";
    let Some(text) = &arguments.total_task_memory else { return };
    match parse_bound_of_memory(FLAG, text) {
        Ok(_) if !draft.queues.are_given() => {
            // If queues are wrong, that is said already.
            if draft.given(QUEUES).is_none() {
                draft.problems.push(format!("{FLAG} is for queues: it needs --queues"));
            }
        }
        Ok(memory) => draft.queued_memory = Some(memory),
        Err(why) => draft.problems.push(why),
    }
}

fn defaults(arguments: &RunArguments) -> Result<TaskDefaults, String> {
    let named = |flag: &str, why: String| format!("{flag}: it {why}");
    let cores = arguments.task_cores.as_deref().unwrap_or(TASK_CORES);
    let memory = arguments.task_memory.as_deref().unwrap_or(TASK_MEMORY);
    let retries = arguments.task_retries.as_deref().unwrap_or(TASK_RETRIES);
    let retries = parse_count("--task-retries", retries, 0..=RETRIES_MAX);
    Ok(TaskDefaults {
        cores: cores_of("cores", cores).map_err(|why| named("--task-cores", why))?,
        memory: memory_of("memory", memory).map_err(|why| named("--task-memory", why))?,
        retries: retries.map_err(|error| error.to_string())? as u32,
    })
}

/// How long a task that fits on no agent waits before it fails.
fn placement_timeout(arguments: &RunArguments) -> Result<Option<Duration>, String> {
    let given = arguments.placement_timeout.as_deref();
    let timeout = given.map(|text| parse_duration("--placement-timeout", text, TimeUnit::Seconds));
    timeout.transpose().map_err(|error| error.to_string())
}

/// What hosts take, if tasks run in hosts.
fn host_terms(
    arguments: &RunArguments,
    draft: &SettingsDraft,
) -> Result<Option<HostTerms>, String> {
    let RunArguments { task_hosts, host_cores, host_memory, host_idle_timeout, .. } = arguments;
    if !task_hosts {
        let flags = task_flags(arguments);
        return match flags.iter().find(|flag| flag.is_of_hosts && flag.given.is_some()) {
            Some(flag) => Err(format!("{} is for hosts: it needs --task-hosts", flag.name)),
            None => Ok(None),
        };
    }
    if draft.is_on(ClusterKind::Kubernetes) {
        let why = "--task-hosts is for local agents, Mesos and a standalone master: Kubernetes has no hosts";
        return Err(why.to_owned());
    }
    if draft.executors == Some(1) {
        let name = draft.name_of("spark.executor.instances");
        return Err(format!("{name} is 1, but a task and its host are two executors"));
    }
    let named = |flag: &str, why: String| format!("{flag}: it {why}");
    let cores = cores_of("cores", host_cores.as_deref().unwrap_or(HOST_CORES));
    let memory = memory_of("memory", host_memory.as_deref().unwrap_or(HOST_MEMORY));
    let idle = host_idle_timeout.as_deref().unwrap_or(HOST_IDLE_TIMEOUT);
    let idle = parse_duration("--host-idle-timeout", idle, TimeUnit::Seconds);
    let (program, setup) = host_program(arguments, draft)?;
    let mut terms = HostTerms::new(vec![program, "task-host".to_owned()]);
    terms.cores = cores.map_err(|why| named("--host-cores", why))?;
    terms.memory = memory.map_err(|why| named("--host-memory", why))?;
    terms.idle_timeout = idle.map_err(|error| error.to_string())?;
    terms.setup = setup;
    match &arguments.host_queue {
        Some(name) if draft.queues.are_given() => {
            let none = |_| format!("--host-queue is none of the queues: {}", draft.queues.names());
            terms.queue = draft.queues.find(name).map_err(none)?;
        }
        Some(_) if draft.given(QUEUES).is_none() => {
            return Err("--host-queue names one of --queues, which aren't given".to_owned());
        }
        // If queues are wrong, that is said already.
        _ => {}
    }
    match draft.queues.no_host_starts(terms.task(0), draft.core_cap, draft.queued_memory) {
        Some(why) => Err(format!("{}: {why}", draft.name_of(QUEUES))),
        None => Ok(Some(terms)),
    }
}

/// The program of hosts on their agents, and the setup of hosts: on Mesos and a standalone master that of tasks, with
/// the program if it is to be fetched.
fn host_program(
    arguments: &RunArguments,
    draft: &SettingsDraft,
) -> Result<(String, Option<Arc<Setup>>), String> {
    let is_on_mesos = draft.is_on(ClusterKind::Mesos);
    let mut setup = draft.container.setup().filter(|_| is_on_mesos);
    let given = arguments.host_program.as_deref();
    if given.is_some() && draft.master.is_some() && !is_on_mesos {
        let why = "--host-program is for Mesos and a standalone master: hosts on local agents run this program";
        return Err(why.to_owned());
    }
    let is_standalone = draft.master.as_ref().is_some_and(|(text, _)| is_standalone(text));
    let program = match given {
        Some(uri) if uri.contains("://") && is_standalone => {
            let why =
                "workers of a standalone master fetch no files; name the program's path there";
            return Err(format!("--host-program: {why}"));
        }
        Some(uri) if uri.contains("://") => {
            let name = uri.rsplit('/').next().filter(|name| !name.is_empty());
            let name = name.ok_or_else(|| format!("--host-program: {uri:?} names no file"))?;
            let mut fetched = uris(uri).map_err(|error| error.to_string())?;
            fetched.iter_mut().for_each(|uri| uri.executable = true);
            setup.get_or_insert_with(Setup::default).uris.extend(fetched);
            format!("./{name}")
        }
        Some("") => return Err("--host-program: it is empty".to_owned()),
        Some(path) => path.to_owned(),
        None => {
            let program = std::env::current_exe();
            let program = program.map_err(|error| format!("this program isn't found: {error}"))?;
            let program = program.into_os_string().into_string();
            program.map_err(|_| "--task-hosts: this program's path is no text".to_owned())?
        }
    };
    Ok((program, setup.map(Arc::new)))
}

/// Reports settings that contradict tasks.
fn refuse_conflicts(draft: &mut SettingsDraft) {
    if let Some(why) = draft.queues.problem(draft.core_cap, draft.queued_memory) {
        let name = draft.name_of(QUEUES);
        draft.problems.push(format!("{name}: {why}"));
    }
    let mut conflicts: Vec<(&str, &str)> = Vec::new();
    if draft.is_on(ClusterKind::Kubernetes) {
        conflicts.push((
            "spark.master",
            "Kubernetes places pods itself; use local agents, Mesos or a standalone master",
        ));
    }
    if std::mem::take(&mut draft.allocation.enabled) {
        conflicts.push(("spark.dynamicAllocation.enabled", "tasks themselves are the load"));
    }
    if draft.mesos.framework_id_file.is_some() {
        let why = "tasks in flight end with their run, and the next one starts them again";
        conflicts.push(("offermill.mesos.frameworkIdFile", why));
    }
    if !draft.mesos.failover_timeout.is_zero() {
        let why = "tasks in flight end with their run, and the next one starts them again";
        conflicts.push(("spark.mesos.driver.failoverTimeout", why));
    }
    let own = [
        ("spark.executor.cores", "--task-cores is for tasks"),
        ("spark.executor.memory", "--task-memory is for tasks"),
        ("spark.mesos.executor.memoryOverhead", "tasks have no overhead"),
        ("offermill.executorQueue", "each task names its queue, and --host-queue is that of hosts"),
    ];
    let is_given = |key: &str| draft.given(key).is_some_and(|it| it.source == SettingSource::Flag);
    conflicts.extend(own.into_iter().filter(|(key, _)| is_given(key)));
    for (key, why) in conflicts {
        let name = draft.name_of(key);
        draft.problems.push(format!("{name} doesn't go with --tasks: {why}"));
    }
}

/// Reports tasks that fit on no local agent, which are all alike.
fn report_too_large(draft: &mut SettingsDraft, list: &TaskList, hosts: Option<&HostTerms>) {
    let Some((text, ClusterMaster::Local(master))) = &draft.master else { return };
    let host = hosts.map(HostTerms::sums).unwrap_or(ResourceSums::NONE);
    let have = ResourceSums { cores: master.cores(), memory: master.memory(), gpus: Gpus::ZERO };
    let ResourceSums { cores, memory, .. } = have.saturating_sub(host);
    let beside = if hosts.is_some() { " beside its host" } else { "" };
    let is_too_large =
        |task: &&TaskSpec| task.cores > cores || task.memory > memory || task.gpus > Gpus::ZERO;
    let too_large: Vec<&TaskSpec> = list.tasks.iter().filter(is_too_large).collect();
    let sentence = |task: &&TaskSpec| {
        let size = task.sums();
        let (source, line, id) = (&list.source, task.line, &task.id);
        let have = format!("{cores:#} and {memory}");
        format!(
            "{source}, line {line}: task {id} takes {size}; an agent of {text} has {have}{beside}"
        )
    };
    let mut problems: Vec<String> =
        too_large.iter().take(TOO_LARGE_SHOWN_MAX).map(sentence).collect();
    if too_large.len() > TOO_LARGE_SHOWN_MAX {
        let more = too_large.len() - TOO_LARGE_SHOWN_MAX;
        let verb = if more == 1 { "fits" } else { "fit" };
        let more = count(more as u64, "more task");
        problems.push(format!("{}: {more} {verb} on no agent", list.source));
    }
    draft.problems.extend(problems);
}

/// Derives settings from tasks unless they were given. The configured executor is the smallest task in each respect.
fn derive(draft: &mut SettingsDraft, list: &TaskList) {
    let tasks = || list.tasks.iter();
    let cores = tasks().map(|task| task.cores).min().unwrap_or(MilliCpus::from_cores(1));
    draft.executor_cores = ExecutorCores::Fixed(cores);
    draft.memory = tasks().map(|task| task.memory).min().unwrap_or(Mebibytes::ZERO);
    draft.overhead = Some(Mebibytes::ZERO);
    draft.extra_cores = 0;
    // A port would be needed of each offer, and a shuffle service is for Spark's executors.
    draft.port = None;
    draft.shuffle.enabled = false;
    draft.executor_gpus = ExecutorGpus::WhatThereIs;
    if draft.given(GPU_CAP).is_none() {
        let gpus = tasks().map(|task| task.gpus.get()).fold(0, u32::saturating_add);
        draft.gpu_cap = Gpus::new(gpus);
    }
    // That a task fails is no agent's fault, and others may succeed.
    if draft.given(EXCLUDE_AFTER).is_none() {
        draft.excludes = false;
    }
    draft.failures_max.get_or_insert(u64::MAX);
    let (revive, refuse) = match draft.is_on(ClusterKind::Local) {
        true => (REVIVE_LOCAL, REFUSE_LOCAL),
        false => (REVIVE_INTERVAL, REFUSE),
    };
    draft.revive_interval.get_or_insert(revive);
    draft.refusals.other = refuse;
    draft.offer_interval = Some(OFFER_INTERVAL);
    draft.name.get_or_insert_with(|| "tasks".to_owned());
}

/// Opens the results file. Adds remarks on what a former run has left.
pub(crate) fn open_results(
    arguments: &RunArguments,
    draft: &mut SettingsDraft,
    settings: &RunSettings,
) -> Option<()> {
    let Some(queue) = settings.executors.tasks() else { return Some(()) };
    let resumed =
        queue.open_results(arguments.resume).map_err(|why| draft.problems.push(why)).ok()?;
    let ResumedTasks { succeeded, in_flight, changed, unknown } = resumed;
    let mut remark = |number: usize, what: &str, ids: &[String]| {
        let shown: Vec<&str> = ids.iter().take(IDS_SHOWN_MAX).map(String::as_str).collect();
        let more = if ids.len() > IDS_SHOWN_MAX { ", …" } else { "" };
        let colon = if ids.is_empty() { "" } else { ": " };
        if number > 0 {
            let tasks = count(number as u64, "task");
            draft.remarks.push(format!("{tasks} {what}{colon}{}{more}", shown.join(", ")));
        }
    };
    remark(succeeded as usize, "had succeeded before and won't run again", &[]);
    let what = "may have run partly or whole when the former run broke off, and will run again";
    remark(in_flight.len(), what, &in_flight);
    let what = "had succeeded before, but with another command or env, and will run again";
    remark(changed.len(), what, &changed);
    let are = if unknown == 1 { "is" } else { "are" };
    remark(unknown as usize, &format!("of the results file {are} not in the tasks' file"), &[]);
    Some(())
}
