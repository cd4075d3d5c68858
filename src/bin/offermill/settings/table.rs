//! The table of settings: each with its key, its unit, its flag, its default and how it is read, in
//! one place. Those of Mesos' own are in `mesos_key_table.rs`.
//!
//! To add a setting, add a row, and a field to [`Draft`](crate::settings::draft::Draft) that the row's reader
//! writes to. Readers are run in the order of the rows.

use std::time::Duration;

use offermill::cluster::local::AgentAttributes;
use offermill::config::text::{TimeUnit, parse_bool, parse_cores, parse_count, parse_memory};
use offermill::config::{ExecutorCores, ExecutorGpus, Placement};
use offermill::launch::Form;
use offermill::resources::Gpus;
use offermill::{Constraint, Error, limits};

use crate::settings::draft::Draft;
use crate::settings::master::Kind;
use crate::settings::option::Key;
use crate::settings::sources::Sourced;

/// The settings of every cluster, and of the embedded one.
pub(crate) const KEYS: &[Key] = &[
    Key::spark("spark.master", "master")
        .flag("--master")
        .inside("master")
        .default("local[*]")
        .read(|draft, given| {
            match given.text.parse() {
                Ok(master) => draft.master = Some((given.text.trim().to_owned(), master)),
                Err(allowed) => draft.refuse(given, &allowed),
            }
            Ok(())
        }),
    Key::offermill("offermill.agent.attributes", "attributes")
        .flag("--agent-attributes")
        .inside("agent attributes")
        .only(Kind::Local)
        .otherwise("none")
        .read(|draft, given| {
            given.read_into(&mut draft.attributes, |_, text| AgentAttributes::parse(text))
        }),
    Key::offermill("offermill.workDir", "folder")
        .flag("--work-dir")
        .inside("work folder")
        .only(Kind::Local)
        .default(".")
        .read(|draft, given| {
            draft.work_dir = (&given.text).into();
            Ok(())
        }),
    Key::spark("spark.app.name", "name")
        .flag("--name")
        .inside("id prefix")
        .otherwise("the command's")
        .read(|draft, given| {
            draft.name = Some(given.text.clone());
            Ok(())
        }),
    Key::spark("spark.executor.instances", "number")
        .flag("--num-executors")
        .inside("executor limit")
        .otherwise("as many as fit")
        .read(|draft, given| {
            given.read_into(&mut draft.executors, |name, text| {
                parse_count(name, text, 0..=limits::EXECUTORS_MAX.into())
                    .map(|count| Some(count as u32))
            })?;
            Ok(())
        }),
    Key::spark("spark.cores.max", "cores")
        .flag("--total-executor-cores")
        .inside("total executor cores")
        .otherwise("no cap")
        .read(|draft, given| {
            given.read_into(&mut draft.core_cap, |name, text| parse_cores(name, text).map(Some))
        }),
    Key::spark("spark.executor.cores", "cores")
        .flag("--executor-cores")
        .inside("executor cores")
        .otherwise("all offered")
        .read(|draft, given| {
            given.read_into(&mut draft.executor_cores, |name, text| {
                parse_cores(name, text).map(ExecutorCores::Fixed)
            })
        }),
    Key::spark("spark.executor.memory", "memory (MiB)")
        .flag("--executor-memory")
        .inside("executor memory")
        .default("1g")
        .read(|draft, given| given.read_into(&mut draft.memory, parse_memory)),
    Key::spark_on_mesos("spark.mesos.executor.memoryOverhead", "memory (MiB)")
        .flag("--memory-overhead")
        .inside("memory overhead")
        .otherwise("10 %, at least 384m")
        .read(|draft, given| {
            given.read_into(&mut draft.overhead, |name, text| parse_memory(name, text).map(Some))
        }),
    Key::spark("spark.executor.memoryOverheadFactor", "number above 0").otherwise("0.1").read(
        |draft, given| {
            match given.text.trim().parse::<f64>() {
                Ok(factor) if factor > 0.0 && factor.is_finite() => {
                    draft.overhead_factor = Some(factor);
                }
                _ => draft.refuse(given, "a number above 0, such as 0.1"),
            }
            Ok(())
        },
    ),
    Key::spark_on_mesos("spark.mesos.extra.cores", "number").default("0").read(|draft, given| {
        given.read_into(&mut draft.extra_cores, |name, text| {
            parse_count(name, text, 0..=1_000_000).map(|count| count as u32)
        })
    }),
    Key::spark_on_mesos("spark.mesos.gpus.max", "number").default("0").read(|draft, given| {
        given.read_into(&mut draft.gpu_cap, |name, text| {
            parse_count(name, text, 0..=u32::MAX.into()).map(|count| Gpus::new(count as u32))
        })
    }),
    Key::spark_on_mesos("spark.mesos.executor.gpus", "number, 0 being what there is")
        .inside("executor GPUs")
        .default("0")
        .read(|draft, given| {
            given.read_into(&mut draft.executor_gpus, |name, text| {
                parse_count(name, text, 0..=u32::MAX.into()).map(|count| match count {
                    0 => ExecutorGpus::WhatThereIs,
                    count => ExecutorGpus::Exactly(Gpus::new(count as u32)),
                })
            })
        }),
    Key::spark("spark.blockManager.port", "port").inside("executor port").default("0").read(
        |draft, given| {
            given.read_into(&mut draft.port, |name, text| {
                match parse_count(name, text, 0..=65_535) {
                    Ok(0) => Ok(None),
                    Ok(port @ 1_024..) => Ok(Some(port as u16)),
                    _ => parse_count(name, text, 1_024..=65_535).map(|_| None),
                }
            })
        },
    ),
    Key::spark("spark.executorEnv.", "text").otherwise("none").read(|draft, given| {
        draft.variable(given);
        Ok(())
    }),
    Key::offermill("offermill.command.form", "argv or shell: how clusters get the command")
        .default("argv")
        .read(|draft, given| {
            match given.text.trim() {
                "argv" => draft.form = Form::Argv,
                "shell" => draft.form = Form::Shell,
                _ => draft.refuse(given, "argv or shell"),
            }
            Ok(())
        }),
    Key::spark_on_mesos("spark.mesos.constraints", "constraint")
        .flag("--constraints")
        .default("")
        .read(|draft, given| {
            given.read_into(&mut draft.constraint, |_, text| Constraint::parse(text))
        }),
    Key::offermill("offermill.placement", "word").flag("--placement").default("round-robin").read(
        |draft, given| match given.text.trim() {
            "round-robin" => {
                draft.placement = Placement::RoundRobin;
                Ok(())
            }
            "consolidate" => {
                draft.placement = Placement::Consolidate;
                Ok(())
            }
            _ => {
                draft.refuse(given, "round-robin or consolidate");
                Ok(())
            }
        },
    ),
    Key::offermill("offermill.maintenanceLead", "duration (s)")
        .default("10min")
        .only(Kind::Mesos)
        .read(|draft, given| {
            draft.maintenance_lead = given.duration(TimeUnit::Seconds)?;
            Ok(())
        }),
    Key::offermill("offermill.resources.revocable", "true or false")
        .default("false")
        .read(|draft, given| given.read_into(&mut draft.revocable, parse_bool)),
    Key::spark_on_mesos("spark.mesos.rejectOfferDuration", "duration (s)")
        .inside("refusal while stopping")
        .default("120s")
        .read(|draft, given| {
            let duration = refusal(draft, given)?;
            let refuse = &mut draft.refusals;
            (refuse.unmet_constraint, refuse.reached_cap, refuse.stopping) =
                (duration, duration, duration);
            Ok(())
        }),
    Key::spark_on_mesos("spark.mesos.rejectOfferDurationForUnmetConstraints", "duration (s)")
        .inside("refusal for an unmet constraint")
        .otherwise("rejectOfferDuration")
        .read(|draft, given| {
            draft.refusals.unmet_constraint = refusal(draft, given)?;
            Ok(())
        }),
    Key::spark_on_mesos("spark.mesos.rejectOfferDurationForReachedMaxCores", "duration (s)")
        .inside("refusal for a reached cap")
        .otherwise("rejectOfferDuration")
        .read(|draft, given| {
            draft.refusals.reached_cap = refusal(draft, given)?;
            Ok(())
        }),
    Key::spark("spark.excludeOnFailure.enabled", "true or false")
        .formerly(&["spark.blacklist.enabled"])
        .default("true")
        .read(|draft, given| given.read_into(&mut draft.excludes, parse_bool)),
    Key::spark("spark.excludeOnFailure.application.maxFailedExecutorsPerNode", "number or never")
        .formerly(&["spark.blacklist.application.maxFailedExecutorsPerNode"])
        .flag("--exclude-after")
        .inside("failures before exclusion")
        .default("2")
        .read(|draft, given| match given.text.trim() {
            "never" => {
                draft.excludes = false;
                Ok(())
            }
            _ => given.read_into(&mut draft.exclusion.failures, |name, text| {
                parse_count(name, text, 1..=255).map(|count| count as u8)
            }),
        }),
    Key::spark("spark.excludeOnFailure.timeout", "duration (ms) or forever")
        .formerly(&["spark.blacklist.timeout"])
        .flag("--exclude-for")
        .default("1h")
        .read(|draft, given| {
            draft.exclusion.expiry = match given.text.trim() {
                "forever" => None,
                _ => Some(given.duration(TimeUnit::Milliseconds)?),
            };
            if draft.exclusion.expiry.is_some_and(|expiry| expiry.is_zero()) {
                draft.refuse(given, "more than 0, or forever");
            }
            Ok(())
        }),
    Key::offermill("offermill.exclusion.window", "duration (s)")
        .flag("--exclude-window")
        .default("1h")
        .read(|draft, given| {
            draft.exclusion.window = given.duration(TimeUnit::Seconds)?;
            Ok(())
        }),
    Key::spark("spark.executor.maxNumFailures", "number")
        .formerly(&["spark.yarn.max.executor.failures"])
        .flag("--max-executor-failures")
        .otherwise("twice the executors, at least 3")
        .read(|draft, given| {
            given.read_into(&mut draft.failures_max, |name, text| {
                parse_count(name, text, 1..=u64::MAX).map(Some)
            })
        }),
    Key::spark("spark.executor.failuresValidityInterval", "duration (ms)")
        .formerly(&["spark.yarn.executor.failuresValidityInterval"])
        .otherwise("for ever")
        .read(|draft, given| {
            let window = given.duration(TimeUnit::Milliseconds)?;
            if window.is_zero() {
                draft.refuse(given, "more than 0");
            }
            draft.failures_window = Some(window);
            Ok(())
        }),
    Key::spark_on_mesos("spark.mesos.coarse.shutdownTimeout", "duration (ms)")
        .flag("--shutdown-timeout")
        .default("10s")
        .read(|draft, given| {
            draft.shutdown_timeout = given.duration(TimeUnit::Milliseconds)?;
            Ok(())
        }),
];

/// Reads for how long offers are refused; complains about more than Mesos knows.
fn refusal(draft: &mut Draft, given: &Sourced) -> Result<Duration, Error> {
    let duration = given.duration(TimeUnit::Seconds)?;
    if duration > limits::REFUSE_MAX {
        draft.refuse(given, "at most 365d");
    }
    Ok(duration)
}
