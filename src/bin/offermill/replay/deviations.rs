//! Where Offermill does in Spark's place what Spark ought to have done. One line each, for `--help`; each has its test
//! in `tests/cli/deviations.rs`.

/// What Spark gets wrong, and what is done instead.
const DEVIATIONS: &[(&str, &str)] = &[
    (
        "A constraint compares a word with a number: Spark throws, and answers no offer of the batch",
        "the offer doesn't meet the constraint",
    ),
    (
        "An update names an agent that Spark never used: Spark throws, and what ended stays counted",
        "the task's id counts, whatever agent is named",
    ),
    (
        "A task's end names another agent: Spark counts the executor for ever",
        "the task's id counts, whatever agent is named",
    ),
    (
        "A task's end is told twice, or of a task that never was: Spark counts a failure and revives",
        "nothing changes",
    ),
    ("A task runs that nobody has started, or that has ended: Spark does nothing", "it is killed"),
    (
        "It isn't said where Spark is, or labels can't be read: Spark throws at each offer, and counts executors that \
         never start",
        "offers are declined, and nothing is counted",
    ),
    (
        "An image, a network or a class path is given, but empty: Spark passes on that it is empty",
        "it is as if not given",
    ),
    (
        "An executor fits exactly into amounts of several roles: Spark adds up doubles, and may miss by 10^-16",
        "it fits: amounts are thousandths, as for Mesos",
    ),
    ("The cluster tells an error: Spark throws, and goes on", "all later offers are declined"),
    (
        "A setting can't work, such as a label without a value: Spark takes it, and throws later",
        "the start fails, and says why",
    ),
];

/// The table for `--help`.
pub(super) fn help() -> String {
    let rows = DEVIATIONS.iter().map(|(spark, ours)| format!("  - {spark};\n    here {ours}.\n"));
    rows.collect()
}
