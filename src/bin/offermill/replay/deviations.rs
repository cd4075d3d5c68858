//! The defects of Spark's backend that `--compat spark-3.5` doesn't reproduce, for `--help`. Each has a test in
//! `tests/cli/deviations.rs`.

/// What Spark does, and what Offermill does instead.
const DEVIATIONS: &[(&str, &str)] = &[
    (
        "A constraint compares a word with a number: Spark throws and answers no offer of the batch",
        "the word matches nothing; another value of the condition may",
    ),
    (
        "A constraint's number is in hexadecimal floating point, such as 0x1p3: Spark reads it",
        "it is a word, which matches no number",
    ),
    (
        "An update names an agent that Spark never used: Spark throws and keeps counting what ended",
        "the task is found by its id alone",
    ),
    (
        "A task's end names another agent: Spark counts the executor for ever",
        "the task is found by its id alone",
    ),
    (
        "A task ends twice, or a task that never existed ends: Spark counts a failure and revives",
        "nothing changes",
    ),
    ("A task runs that was never launched, or that has ended: Spark does nothing", "it is killed"),
    (
        "Spark's home isn't set, labels can't be read, or secrets and their places differ in number: Spark throws at \
         each offer and counts executors that never start",
        "offers are declined with a remark, and nothing is counted",
    ),
    (
        "A home, an archive, an image, a network or a class path is set but empty: Spark passes the empty value on",
        "it counts as not set",
    ),
    (
        "Two offers of a batch have the same id, which no master sends: Spark launches the tasks of both twice",
        "each is answered once",
    ),
    ("A negative number of executors is requested: Spark throws", "nothing changes"),
    (
        "An executor fits exactly into resources of several roles: Spark adds doubles and may miss by 10^-16",
        "it fits: amounts are in thousandths, as in Mesos",
    ),
    ("The cluster reports an error: Spark throws and goes on", "all later offers are declined"),
    (
        "A setting has a form or a value that isn't allowed, such as -1 extra cores, +2 cores or a URI with a space: \
         Spark throws later, or works with it",
        "the start fails with the reason",
    ),
];

/// Returns the list for `--help`.
pub(super) fn help() -> String {
    let rows = DEVIATIONS.iter().map(|(spark, ours)| format!("  - {spark};\n    here {ours}.\n"));
    rows.collect()
}
