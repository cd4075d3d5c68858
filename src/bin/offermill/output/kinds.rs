//! Executors in sentences: as tasks and hosts if that is what they are.

use crate::model::executor_kind::KindCounts;
use crate::text::format::count;

/// As in `3 executors`, `1 task` or `3 tasks and 2 hosts`.
pub(crate) fn counted_kinds(counts: KindCounts) -> String {
    named(counts, count)
}

/// The same without numbers, as in `executors` or `tasks and hosts`.
pub(crate) fn kinds(counts: KindCounts) -> String {
    named(counts, |_, noun| format!("{noun}s"))
}

/// Names the kinds of which there are some; executors if there are none.
fn named(counts: KindCounts, name: impl Fn(u64, &str) -> String) -> String {
    let KindCounts { executors, tasks, hosts } = counts;
    let all = [(executors, "executor"), (tasks, "task"), (hosts, "host")];
    let there = all.iter().filter(|(number, _)| *number > 0);
    let texts: Vec<String> = there.map(|(number, noun)| name(*number, noun)).collect();
    if texts.is_empty() { name(0, "executor") } else { texts.join(" and ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: each is called what it is. Method: counts of each kind, and of none.
    #[test]
    fn executors_are_called_what_they_are() {
        let none = KindCounts::default();
        for (counts, numbered, plain) in [
            (none, "0 executors", "executors"),
            (KindCounts { executors: 1, ..none }, "1 executor", "executors"),
            (KindCounts { tasks: 1, ..none }, "1 task", "tasks"),
            (KindCounts { tasks: 3, hosts: 1, ..none }, "3 tasks and 1 host", "tasks and hosts"),
            (KindCounts { hosts: 2, ..none }, "2 hosts", "hosts"),
        ] {
            assert_eq!((&*counted_kinds(counts), &*kinds(counts)), (numbered, plain));
        }
    }
}
