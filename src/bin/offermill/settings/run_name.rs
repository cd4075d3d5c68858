//! The name of a run, and with what the ids of its executors begin.

use offermill::cluster::kubernetes::run_name;

use crate::settings::draft::SettingsDraft;
use crate::settings::master::ClusterKind;

/// The maximum number of bytes that the default name of a run on Kubernetes takes from its command: with a start time
/// of 8 digits, names have at most 24.
const DEFAULT_BYTES_MAX: usize = 15;

/// The name of a run, and with what the ids of its executors begin, before the number of the run.
pub(crate) struct RunNames {
    pub(crate) name: String,
    pub(crate) id_prefix: String,
}

/// The names of a run that was started at `epoch`. On Kubernetes a name that was given stands for all runs with it: of
/// these, one is active at a time, and takes over what a former one has left. The default name is a run's own.
pub(crate) fn names(draft: &mut SettingsDraft, default: &str, epoch: u64) -> RunNames {
    let given = draft.name.clone();
    let RunNames { name, id_prefix } = named(draft, given, default, epoch);
    draft.kubernetes.own_prefix = format!("{id_prefix}-{}", base_36(epoch));
    RunNames { name, id_prefix }
}

fn named(draft: &mut SettingsDraft, given: Option<String>, default: &str, epoch: u64) -> RunNames {
    if !draft.is_on(ClusterKind::Kubernetes) {
        let name = given.unwrap_or_else(|| default.to_owned());
        // Ids are words of commands, as in `ctl … kill ID ID`.
        let words: Vec<&str> = name.split_whitespace().collect();
        return RunNames { id_prefix: words.join("-"), name };
    }
    let Some(given) = given else {
        let mut prefix = run_name(default).unwrap_or_else(|| "app".to_owned());
        prefix.truncate(DEFAULT_BYTES_MAX);
        let prefix = prefix.trim_end_matches('-').to_owned();
        return RunNames { name: format!("{prefix}-{}", base_36(epoch)), id_prefix: prefix };
    };
    let Some(name) = run_name(&given) else {
        let name = draft.name_of("spark.app.name");
        let allowed =
            "a name with letters or digits of ASCII, of which the name of the run is made";
        draft.problems.push(format!("{name} is {given:?}, but must be {allowed}"));
        return RunNames { name: given, id_prefix: "app".to_owned() };
    };
    if name != given {
        draft.remarks.push(format!("on Kubernetes the run's name is {name:?}"));
    }
    RunNames { id_prefix: name.clone(), name }
}

/// A number in base 36, as in executors' ids.
fn base_36(number: u64) -> String {
    let mut digits = Vec::new();
    let mut rest = number;
    loop {
        digits.push(u32::try_from(rest % 36).unwrap_or_default());
        rest /= 36;
        if rest == 0 {
            break;
        }
    }
    digits.into_iter().rev().filter_map(|digit| char::from_digit(digit, 36)).collect()
}
