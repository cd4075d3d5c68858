//! The options that apply to every cluster, and those of local agents.

use std::time::Duration;

use offermill::cluster::local::AgentAttributes;
use offermill::config::text::{TimeUnit, parse_bool, parse_cores, parse_count, parse_memory};
use offermill::config::{ExecutorCores, ExecutorGpus, Placement};
use offermill::launch::CommandForm;
use offermill::resources::Gpus;
use offermill::{Constraint, Error, limits};

use crate::settings::draft::SettingsDraft;
use crate::settings::master::ClusterKind;
use crate::settings::sources::{REDACTION_KEY, Sourced};
use crate::settings::table::row::OptionRow;
use crate::settings::values::constraints::expression_hint;
use crate::tasks::run_queues::RunQueues;

/// The cluster, executors, placement, failures and the end.
pub(super) const GENERAL_ROWS: &[OptionRow] = &[
    OptionRow::spark("spark.master", "master")
        .flag("--master")
        .library_name("master")
        .default("local[*]")
        .read(|draft, given| {
            match given.text.parse() {
                Ok(master) => draft.master = Some((given.text.trim().to_owned(), master)),
                Err(allowed) => draft.reject(given, &allowed),
            }
            Ok(())
        }),
    OptionRow::offermill("offermill.agent.attributes", "attributes")
        .flag("--agent-attributes")
        .library_name("agent attributes")
        .only(ClusterKind::Local)
        .derived("none")
        .read(|draft, given| {
            given.read_into(&mut draft.attributes, |_, text| AgentAttributes::parse(text))
        }),
    OptionRow::offermill("offermill.workDir", "folder")
        .flag("--work-dir")
        .library_name("work folder")
        .only(ClusterKind::Local)
        .default(".")
        .read(|draft, given| {
            draft.work_dir = (&given.text).into();
            Ok(())
        }),
    OptionRow::offermill("offermill.cleanEnvironment", "true or false")
        .flag("--clean-env")
        .only(ClusterKind::Local)
        .default("false")
        .read(|draft, given| given.read_into(&mut draft.has_clean_environment, parse_bool)),
    OptionRow::spark("spark.app.name", "name")
        .flag("--name")
        .library_name("id prefix")
        .derived("the command's")
        .read(|draft, given| {
            draft.name = Some(given.text.clone());
            Ok(())
        }),
    OptionRow::offermill("offermill.queues", "queues").flag("--queues").derived("none").read(
        |draft, given| {
            match RunQueues::parse(&given.text) {
                Ok(queues) => draft.queues = queues,
                Err(why) => draft.problems.push(format!("{}: {why}", given.name)),
            }
            Ok(())
        },
    ),
    OptionRow::offermill("offermill.executorQueue", "name")
        .flag("--executor-queue")
        .derived("default")
        .read(|draft, given| {
            draft.executor_queue_name = Some(given.text.clone());
            Ok(())
        }),
    OptionRow::spark("spark.executor.instances", "number")
        .flag("--num-executors")
        .library_name("executor limit")
        .derived("as many as fit")
        .read(|draft, given| {
            given.read_into(&mut draft.executors, |name, text| {
                parse_count(name, text, 0..=limits::EXECUTORS_MAX.into())
                    .map(|count| Some(count as u32))
            })?;
            Ok(())
        }),
    OptionRow::spark("spark.cores.max", "cores")
        .flag("--total-executor-cores")
        .library_name("total executor cores")
        .derived("no cap")
        .read(|draft, given| {
            given.read_into(&mut draft.core_cap, |name, text| parse_cores(name, text).map(Some))
        }),
    OptionRow::spark("spark.executor.cores", "cores")
        .flag("--executor-cores")
        .library_name("executor cores")
        .derived("all offered; 1 on Kubernetes")
        .read(|draft, given| {
            given.read_into(&mut draft.executor_cores, |name, text| {
                parse_cores(name, text).map(ExecutorCores::Fixed)
            })
        }),
    OptionRow::spark("spark.executor.memory", "memory (MiB)")
        .flag("--executor-memory")
        .library_name("executor memory")
        .default("1g")
        .read(|draft, given| given.read_into(&mut draft.memory, parse_memory)),
    OptionRow::spark_on_mesos("spark.mesos.executor.memoryOverhead", "memory (MiB)")
        .flag("--memory-overhead")
        .library_name("memory overhead")
        .derived("10 %, at least 384m")
        .read(|draft, given| {
            given.read_into(&mut draft.overhead, |name, text| parse_memory(name, text).map(Some))
        }),
    OptionRow::spark("spark.executor.memoryOverheadFactor", "number above 0").derived("0.1").read(
        |draft, given| {
            match given.text.trim().parse::<f64>() {
                Ok(factor) if factor > 0.0 && factor.is_finite() => {
                    draft.overhead_factor = Some(factor);
                }
                _ => draft.reject(given, "a number above 0, such as 0.1"),
            }
            Ok(())
        },
    ),
    OptionRow::spark_on_mesos("spark.mesos.extra.cores", "number").default("0").read(
        |draft, given| {
            given.read_into(&mut draft.extra_cores, |name, text| {
                parse_count(name, text, 0..=1_000_000).map(|count| count as u32)
            })
        },
    ),
    OptionRow::spark_on_mesos("spark.mesos.gpus.max", "number").default("0").read(
        |draft, given| {
            given.read_into(&mut draft.gpu_cap, |name, text| {
                parse_count(name, text, 0..=u32::MAX.into()).map(|count| Gpus::new(count as u32))
            })
        },
    ),
    OptionRow::spark_on_mesos("spark.mesos.executor.gpus", "number, 0 being what there is")
        .library_name("executor GPUs")
        .default("0")
        .read(|draft, given| {
            given.read_into(&mut draft.executor_gpus, |name, text| {
                parse_count(name, text, 0..=u32::MAX.into()).map(|count| match count {
                    0 => ExecutorGpus::WhatThereIs,
                    count => ExecutorGpus::Exactly(Gpus::new(count as u32)),
                })
            })
        }),
    OptionRow::spark("spark.blockManager.port", "port")
        .library_name("executor port")
        .default("0")
        .read(|draft, given| {
            match parse_count(&given.name, &given.text, 0..=65_535) {
                Ok(0) => draft.port = None,
                Ok(port @ 1_024..) => draft.port = Some(port as u16),
                _ => draft.reject(given, "0 or a whole number from 1024 to 65535"),
            }
            Ok(())
        }),
    OptionRow::spark("spark.executorEnv.", "text").derived("none").read(|draft, given| {
        draft.add_variable(given);
        Ok(())
    }),
    OptionRow::spark(REDACTION_KEY, "regular expression: keys and values that messages hide, too")
        .derived("none")
        .read(|draft, given| {
            if !draft.redaction.set_expression(&given.text) {
                draft.reject(given, "a regular expression");
            }
            Ok(())
        }),
    OptionRow::offermill("offermill.command.form", "argv or shell: how clusters get the command")
        .default("argv")
        .read(|draft, given| {
            match given.text.trim() {
                "argv" => draft.form = CommandForm::Argv,
                "shell" => draft.form = CommandForm::Shell,
                _ => draft.reject(given, "argv or shell"),
            }
            Ok(())
        }),
    OptionRow::spark_on_mesos("spark.mesos.constraints", "constraint")
        .flag("--constraints")
        .default("")
        .read(|draft, given| {
            draft.remarks.extend(expression_hint(&given.text).map(str::to_owned));
            given.read_into(&mut draft.constraint, |_, text| Constraint::parse(text))
        }),
    OptionRow::offermill("offermill.placement", "word")
        .flag("--placement")
        .default("round-robin")
        .read(|draft, given| match given.text.trim() {
            "round-robin" => {
                draft.placement = Placement::RoundRobin;
                Ok(())
            }
            "consolidate" => {
                draft.placement = Placement::Consolidate;
                Ok(())
            }
            _ => {
                draft.reject(given, "round-robin or consolidate");
                Ok(())
            }
        }),
    OptionRow::offermill("offermill.maintenanceLead", "duration (s)")
        .default("10min")
        .only(ClusterKind::Mesos)
        .read(|draft, given| {
            draft.maintenance_lead = given.duration(TimeUnit::Seconds)?;
            Ok(())
        }),
    OptionRow::offermill(
        "offermill.unreachableTimeout",
        "duration (s) or never: when an unreachable executor is replaced",
    )
    .default("5min")
    .only_on(&[ClusterKind::Mesos, ClusterKind::Kubernetes])
    .read(|draft, given| {
        if let Some(timeout) = draft.duration_or(given, "never", TimeUnit::Seconds) {
            draft.unreachable_timeout = timeout;
        }
        Ok(())
    }),
    OptionRow::offermill(
        "offermill.registrationTimeout",
        "duration (s) or never: when a run gives up that the cluster hasn't registered",
    )
    .default("never")
    .read(|draft, given| {
        if let Some(timeout) = draft.duration_or(given, "never", TimeUnit::Seconds) {
            if timeout.is_some_and(|timeout| timeout.is_zero()) {
                draft.reject(given, "more than 0, or never");
            }
            draft.registration_timeout = timeout;
        }
        Ok(())
    }),
    OptionRow::offermill("offermill.resources.revocable", "true or false")
        .default("false")
        .read(|draft, given| given.read_into(&mut draft.revocable, parse_bool)),
    OptionRow::spark_on_mesos("spark.mesos.rejectOfferDuration", "duration (s)")
        .library_name("refusal while stopping")
        .default("120s")
        .read(|draft, given| {
            let duration = refusal(draft, given)?;
            let refuse = &mut draft.refusals;
            refuse.unmet_constraint = duration;
            refuse.reached_cap = duration;
            refuse.stopping = duration;
            Ok(())
        }),
    OptionRow::spark_on_mesos("spark.mesos.rejectOfferDurationForUnmetConstraints", "duration (s)")
        .library_name("refusal for an unmet constraint")
        .derived("rejectOfferDuration")
        .read(|draft, given| {
            draft.refusals.unmet_constraint = refusal(draft, given)?;
            Ok(())
        }),
    OptionRow::spark_on_mesos("spark.mesos.rejectOfferDurationForReachedMaxCores", "duration (s)")
        .library_name("refusal for a reached cap")
        .derived("rejectOfferDuration")
        .read(|draft, given| {
            draft.refusals.reached_cap = refusal(draft, given)?;
            Ok(())
        }),
    OptionRow::spark("spark.excludeOnFailure.enabled", "true or false")
        .aliases(&["spark.blacklist.enabled"])
        .default("true")
        .read(|draft, given| given.read_into(&mut draft.excludes, parse_bool)),
    OptionRow::spark(
        "spark.excludeOnFailure.application.maxFailedExecutorsPerNode",
        "number or never",
    )
    .aliases(&["spark.blacklist.application.maxFailedExecutorsPerNode"])
    .flag("--exclude-after")
    .library_name("failures before exclusion")
    .default("2")
    .read(|draft, given| match given.text.trim() {
        "never" => {
            draft.excludes = false;
            Ok(())
        }
        text => {
            let count = parse_count(&given.name, text, 1..=255);
            if let Some(count) = draft.read_or(given, "never", count) {
                draft.exclusion.failures = count as u8;
            }
            Ok(())
        }
    }),
    OptionRow::spark("spark.excludeOnFailure.timeout", "duration (ms) or forever")
        .aliases(&["spark.blacklist.timeout"])
        .flag("--exclude-for")
        .default("1h")
        .read(|draft, given| {
            if let Some(expiry) = draft.duration_or(given, "forever", TimeUnit::Milliseconds) {
                draft.exclusion.expiry = expiry;
            }
            if draft.exclusion.expiry.is_some_and(|expiry| expiry.is_zero()) {
                draft.reject(given, "more than 0, or forever");
            }
            Ok(())
        }),
    OptionRow::offermill("offermill.exclusion.window", "duration (s)")
        .flag("--exclude-window")
        .default("1h")
        .read(|draft, given| {
            draft.exclusion.window = given.duration(TimeUnit::Seconds)?;
            Ok(())
        }),
    OptionRow::spark("spark.executor.maxNumFailures", "number")
        .aliases(&["spark.yarn.max.executor.failures"])
        .flag("--max-executor-failures")
        .derived("twice the executors, at least 3; no limit with --tasks")
        .read(|draft, given| {
            given.read_into(&mut draft.failures_max, |name, text| {
                parse_count(name, text, 1..=u64::MAX).map(Some)
            })
        }),
    OptionRow::spark("spark.executor.failuresValidityInterval", "duration (ms) or forever")
        .aliases(&["spark.yarn.executor.failuresValidityInterval"])
        .derived("forever")
        .read(|draft, given| {
            if let Some(window) = draft.duration_or(given, "forever", TimeUnit::Milliseconds) {
                if window.is_some_and(|window| window.is_zero()) {
                    draft.reject(given, "more than 0, or forever");
                }
                draft.failures_window = window;
            }
            Ok(())
        }),
    OptionRow::spark_on_mesos("spark.mesos.coarse.shutdownTimeout", "duration (ms)")
        .flag("--shutdown-timeout")
        .default("10s")
        .read(|draft, given| {
            draft.shutdown_timeout = given.duration(TimeUnit::Milliseconds)?;
            Ok(())
        }),
];

/// Reads for how long offers are refused, at most the longest time that Mesos accepts.
fn refusal(draft: &mut SettingsDraft, given: &Sourced) -> Result<Duration, Error> {
    let duration = given.duration(TimeUnit::Seconds)?;
    if duration > limits::REFUSE_MAX {
        draft.reject(given, "at most 365d");
    }
    Ok(duration)
}
