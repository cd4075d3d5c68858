//! The table of all options, and the reading of settings with it.
//!
//! To add an option, add a row to the file of its topic, and a field to
//! [`SettingsDraft`](crate::settings::draft::SettingsDraft) or to the values of the topic for the row's reader to set.
//! Readers run in the order of the rows.

mod allocation;
mod containers;
mod general;
mod http;
mod kubernetes;
mod kubernetes_login;
mod mesos;
mod row;
mod spark;
mod spark_secrets;

use std::collections::BTreeMap;

use crate::settings::draft::SettingsDraft;
use crate::settings::flags::RunArguments;
use crate::settings::option::{Applicability, DefaultValue, OptionSpecs};
use crate::settings::sources::{SettingSource, Sourced, Sources};
use crate::settings::table::row::OptionRow;

fn rows() -> impl Iterator<Item = &'static OptionRow> {
    let tables = [
        general::GENERAL_ROWS,
        allocation::ALLOCATION_ROWS,
        spark::SPARK_ROWS,
        spark_secrets::SPARK_SECRET_ROWS,
        mesos::MESOS_ROWS,
        containers::CONTAINER_ROWS,
        kubernetes::KUBERNETES_ROWS,
        kubernetes_login::LOGIN_ROWS,
        http::HTTP_ROWS,
    ];
    tables.into_iter().flatten()
}

/// The descriptions of all options.
pub(crate) fn specs() -> OptionSpecs {
    OptionSpecs::new(rows().map(|row| &row.spec))
}

/// Reads the settings of a run from flags, `--conf`, the properties file and the environment.
pub(crate) fn read_arguments(arguments: &RunArguments) -> SettingsDraft {
    let specs = specs();
    let sources = Sources::of_arguments(arguments, &specs);
    read(sources, specs)
}

/// Reads the settings of a scenario.
pub(crate) fn read_scenario(conf: &BTreeMap<String, String>) -> SettingsDraft {
    let specs = specs();
    let sources = Sources::of_scenario(conf, &specs);
    read(sources, specs)
}

/// Reads the given values, and the defaults of all other options.
fn read(sources: Sources, specs: OptionSpecs) -> SettingsDraft {
    let mut draft = SettingsDraft::new(sources, specs);
    let mut inapplicable: Vec<(Applicability, String)> = Vec::new();
    for OptionRow { spec, read } in rows() {
        let mut given: Vec<Sourced> = draft.given_for(spec).cloned().collect();
        if draft.is_inapplicable(spec) {
            // Environment variables may be set for other programs.
            given.retain(|given| given.source > SettingSource::Environment);
            inapplicable.extend(given.into_iter().map(|given| (spec.applicability, given.name)));
            continue;
        }
        if let (true, DefaultValue::Text(text)) = (given.is_empty(), &spec.default) {
            given.push(Sourced::default_of(spec.key, text));
        }
        let before = draft.problems.len();
        for given in &given {
            if let Err(error) = read(&mut draft, given) {
                draft.report_unreadable(spec, given, &error);
            }
        }
        if draft.problems.len() > before {
            draft.mark_unread(spec.key);
        }
    }
    draft.allocation.set_initial(draft.executors);
    draft.report_inapplicable(&inapplicable);
    check_overridden(&mut draft);
    draft
}

/// Adds a remark about each value of `--conf` that can't be read, although another value overrides it.
fn check_overridden(draft: &mut SettingsDraft) {
    for given in std::mem::take(&mut draft.overridden) {
        let row = rows().find(|row| row.spec.matches(&given.key) && !row.spec.is_secret);
        let Some(OptionRow { spec, read }) = row else { continue };
        let mut alone = SettingsDraft::default();
        alone.redaction.clone_from(&draft.redaction);
        if let Err(error) = read(&mut alone, &given) {
            alone.report_unreadable(spec, &given, &error);
        }
        let remarks = alone.problems.into_iter();
        draft
            .remarks
            .extend(remarks.map(|problem| format!("{problem}; another value overrides it")));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Goal: every default can be read, and no key stands for two options. Method: read all defaults into a draft.
    #[test]
    fn defaults_are_readable_and_keys_unique() {
        let mut draft = SettingsDraft::default();
        for OptionRow { spec, read } in rows() {
            if let DefaultValue::Text(text) = spec.default {
                read(&mut draft, &Sourced::default_of(spec.key, text)).unwrap();
            }
            for key in spec.aliases.iter().chain([&spec.key]) {
                let same =
                    |other: &&OptionRow| other.spec.key == *key || other.spec.aliases.contains(key);
                assert_eq!(rows().filter(same).count(), 1, "{key}");
            }
        }
        assert!(draft.problems.is_empty());
        assert_eq!(draft.shutdown_timeout, Duration::from_secs(10));
        assert_eq!(draft.memory.get(), 1024);
    }

    /// Goal: the flag of each option exists. Method: ask clap for it.
    #[test]
    fn flags_exist() {
        let run = <RunArguments as clap::Args>::augment_args(clap::Command::new("run"));
        for flag in specs().iter().filter_map(|spec| spec.flag) {
            let long = flag.strip_prefix("--").unwrap();
            assert!(run.get_arguments().any(|known| known.get_long() == Some(long)), "{flag}");
        }
    }
}
