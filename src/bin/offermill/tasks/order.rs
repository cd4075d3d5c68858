//! The order of tasks by their `after`: who waits for whom. Refuses ids twice, unknown ids and cycles.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use offermill::ResourceSums;

use crate::tasks::task::TaskSpec;

/// The most tasks of a cycle that are named.
const CYCLE_SHOWN_MAX: usize = 6;

/// The tasks of a file, in its order, and which wait for which.
#[derive(Debug)]
pub(crate) struct TaskList {
    /// The file's name, as it is shown.
    pub(crate) source: String,
    pub(crate) tasks: Vec<TaskSpec>,
    /// The fewest cores that a task takes, and nothing else.
    pub(crate) least: ResourceSums,
    /// For each task, those that wait for it.
    pub(crate) dependents: Vec<Vec<u32>>,
    /// For each task, how many others it waits for.
    pub(crate) waits: Vec<u32>,
}

impl TaskList {
    /// The tag of the first host: tasks have those before it.
    pub(crate) fn first_host(&self) -> u64 {
        self.tasks.len() as u64
    }

    /// Finds out which task waits for which.
    ///
    /// # Errors
    /// With a sentence about the first id that stands twice or that no task has, or about a cycle.
    pub(crate) fn new(source: String, tasks: Vec<TaskSpec>) -> Result<TaskList, String> {
        let mut index: HashMap<&str, u32> = HashMap::with_capacity(tasks.len());
        for (task, number) in tasks.iter().zip(0..) {
            match index.entry(&task.id) {
                Entry::Vacant(entry) => drop(entry.insert(number)),
                Entry::Occupied(entry) => {
                    let (id, line) = (&task.id, task.line);
                    let first = tasks[*entry.get() as usize].line;
                    return Err(format!(
                        "{source}, line {line}: the id {id:?} is that of line {first}"
                    ));
                }
            }
        }
        let mut dependents = vec![Vec::new(); tasks.len()];
        let mut waits = vec![0; tasks.len()];
        for (task, number) in tasks.iter().zip(0u32..) {
            let mut before: Vec<u32> = Vec::with_capacity(task.after.len());
            for id in &task.after {
                let Some(other) = index.get(id.as_str()) else {
                    let line = task.line;
                    return Err(format!(
                        "{source}, line {line}: it is after {id:?}, which is the id of no task"
                    ));
                };
                before.push(*other);
            }
            before.sort_unstable();
            before.dedup();
            waits[number as usize] = before.len() as u32;
            before.into_iter().for_each(|other| dependents[other as usize].push(number));
        }
        drop(index);
        let cores = tasks.iter().map(|task| task.cores).min().unwrap_or_default();
        let least = ResourceSums { cores, ..ResourceSums::NONE };
        let list = TaskList { source, tasks, least, dependents, waits };
        match list.cycle() {
            Some(cycle) => Err(list.cycle_sentence(&cycle)),
            None => Ok(list),
        }
    }

    /// Tasks that wait for each other, if there are such: each for the one before, the first for the last.
    fn cycle(&self) -> Option<Vec<u32>> {
        let mut waits = self.waits.clone();
        let all = 0..self.tasks.len() as u32;
        let mut free: Vec<u32> = all.clone().filter(|task| waits[*task as usize] == 0).collect();
        while let Some(task) = free.pop() {
            for dependent in &self.dependents[task as usize] {
                let left = &mut waits[*dependent as usize];
                *left -= 1;
                if *left == 0 {
                    free.push(*dependent);
                }
            }
        }
        // What is left waits for something that is left. Following that leads into a cycle.
        let mut waits_for: HashMap<u32, u32> = HashMap::new();
        for task in all.filter(|task| waits[*task as usize] > 0) {
            for dependent in &self.dependents[task as usize] {
                waits_for.entry(*dependent).or_insert(task);
            }
        }
        let mut at = *waits_for.iter().filter(|(task, _)| waits[**task as usize] > 0).min()?.0;
        let mut seen: Vec<u32> = Vec::new();
        let mut places: HashMap<u32, usize> = HashMap::new();
        loop {
            if let Some(first) = places.insert(at, seen.len()) {
                return Some(seen.split_off(first));
            }
            seen.push(at);
            at = *waits_for.get(&at)?;
        }
    }

    fn cycle_sentence(&self, cycle: &[u32]) -> String {
        let task = |number: &u32| &self.tasks[*number as usize];
        let line = cycle.iter().map(|number| task(number).line).min().unwrap_or_default();
        let shown = cycle.iter().take(CYCLE_SHOWN_MAX);
        let mut names: Vec<String> = shown.map(|number| format!("{:?}", task(number).id)).collect();
        if cycle.len() > CYCLE_SHOWN_MAX {
            names.push(format!("… ({} tasks)", cycle.len()));
        }
        names.extend(cycle.first().map(|first| format!("{:?}", task(first).id)));
        let source = &self.source;
        format!("{source}, line {line}: tasks wait for each other: {}", names.join(" after "))
    }
}

#[cfg(test)]
mod tests {
    use offermill::resources::{Mebibytes, MilliCpus};

    use super::*;
    use crate::tasks::parse::parse_line;
    use crate::tasks::task::TaskDefaults;

    fn list(tasks: &[(&str, &[&str])]) -> Result<TaskList, String> {
        let (cores, memory) = (MilliCpus::from_cores(1), Mebibytes::new(1));
        let defaults = TaskDefaults { cores, memory, retries: 0 };
        let spec = |((id, after), line): (&(&str, &[&str]), u64)| TaskSpec {
            id: (*id).to_owned(),
            after: after.iter().map(|id| (*id).to_owned()).collect(),
            ..parse_line(b"true", line, &defaults).unwrap().unwrap()
        };
        TaskList::new("f".to_owned(), tasks.iter().zip(1..).map(spec).collect())
    }

    /// Goal: the order is known, whatever the order of lines; an id twice in `after` counts once. Method: a diamond.
    #[test]
    fn a_diamond_has_an_order() {
        let list =
            list(&[("d", &["b", "c", "b"]), ("b", &["a"]), ("c", &["a"]), ("a", &[])]).unwrap();
        assert_eq!(list.waits, [2, 1, 1, 0]);
        assert_eq!(list.dependents, [vec![], vec![0], vec![0], vec![1, 2]]);
    }

    /// Goal: what has no order is refused with the line. Method: ids twice, unknown, cycles of one and of many tasks,
    /// beside tasks that only wait for a cycle.
    #[test]
    fn disorder_is_refused() {
        let why = |tasks: &[(&str, &[&str])]| list(tasks).unwrap_err();
        assert_eq!(why(&[("a", &[]), ("a", &[])]), "f, line 2: the id \"a\" is that of line 1");
        assert_eq!(
            why(&[("a", &["b"])]),
            "f, line 1: it is after \"b\", which is the id of no task"
        );
        let own = "f, line 1: tasks wait for each other: \"a\" after \"a\"";
        assert_eq!(why(&[("a", &["a"])]), own);
        let three = [("x", &["c"][..]), ("a", &["b"]), ("b", &["c"]), ("c", &["a"]), ("y", &[])];
        let why = why(&three);
        assert!(why.starts_with("f, line 2: tasks wait for each other: "), "{why}");
        assert_eq!(why.matches(" after ").count(), 3);
        assert!(!why.contains("\"x\""), "{why}");
    }
}
