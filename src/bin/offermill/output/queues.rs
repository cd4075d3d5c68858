//! Queues in the output: their listing, and what is said of their change.

use std::fmt::Write;

use offermill::resources::Mebibytes;
use serde_json::{Value, json};

use crate::model::queue::{BoundChange, QueueContent, QueueInfo};
use crate::text::format::{core_number, count, grouped};
use crate::text::styled::padded;

/// The least width of names, in columns.
const NAME_COLUMNS: usize = 11;

/// A line for each queue, as in `etl  3 of at most 6 cores, 1 guaranteed; 48 MiB; 3 tasks running, 7 waiting`.
pub(crate) fn queues_text(queues: &[QueueInfo]) -> String {
    let mut text = String::new();
    for QueueInfo { taken, content } in queues {
        let newline = if text.is_empty() { "" } else { "\n" };
        let name = padded(&taken.name, NAME_COLUMNS);
        let content = content_text(*content);
        let _infallible = write!(text, "{newline}{name} {taken}; {content}");
    }
    text
}

fn content_text(content: QueueContent) -> String {
    match content {
        QueueContent::Tasks { running, waiting, hosts } => {
            let (running, waiting) = (count(running, "task"), grouped(waiting));
            let hosts =
                if hosts > 0 { format!("; {}", count(hosts, "host")) } else { String::new() };
            format!("{running} running, {waiting} waiting{hosts}")
        }
        QueueContent::Executors(executors) => count(executors.into(), "executor"),
    }
}

/// The keys of each queue.
pub(crate) fn queue_objects(queues: &[QueueInfo]) -> Vec<Value> {
    let object = |QueueInfo { taken, content }: &QueueInfo| {
        let mut object = json!({
            "name": &*taken.name, "cores": core_number(taken.cores), "memory_mib": taken.memory.get(),
            "max_cores": taken.max_cores.map(core_number),
            "max_memory_mib": taken.max_memory.map(Mebibytes::get),
            "guaranteed_cores": core_number(taken.guaranteed_cores),
            "guaranteed_memory_mib": taken.guaranteed_memory.get(),
        });
        match content {
            QueueContent::Tasks { running, waiting, hosts } => {
                object["running"] = json!(running);
                object["waiting"] = json!(waiting);
                object["hosts"] = json!(hosts);
            }
            QueueContent::Executors(executors) => object["executors"] = json!(executors),
        }
        object
    };
    queues.iter().map(object).collect()
}

/// As in `queue etl: max-cores 3 -> 6, max-mem none -> 512m; queue adhoc: guaranteed-cores none -> 2`.
pub(crate) fn changes_sentence(changes: &[BoundChange]) -> String {
    let mut text = String::new();
    let mut before: Option<&str> = None;
    for BoundChange { queue, bound, from, to } in changes {
        let head = match before.replace(queue) {
            Some(same) if same == queue => ", ".to_owned(),
            Some(_) => format!("; queue {queue}: "),
            None => format!("queue {queue}: "),
        };
        let _infallible = write!(text, "{head}{bound} {from} -> {to}");
    }
    text
}

/// The keys of a change.
pub(crate) fn change_object(change: &BoundChange) -> Value {
    let BoundChange { queue, bound, from, to } = change;
    json!({ "queue": queue, "bound": bound, "from": from, "to": to })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: changes are told by queue. Method: two of one queue, one of another.
    #[test]
    fn changes_are_told_by_queue() {
        let change = |queue: &str, bound, from: &str, to: &str| BoundChange {
            queue: queue.to_owned(),
            bound,
            from: from.to_owned(),
            to: to.to_owned(),
        };
        let changes = [
            change("etl", "max-cores", "3", "6"),
            change("etl", "max-mem", "none", "512m"),
            change("adhoc", "guaranteed-cores", "none", "2"),
        ];
        let expected = "queue etl: max-cores 3 -> 6, max-mem none -> 512m; queue adhoc: guaranteed-cores none -> 2";
        assert_eq!(changes_sentence(&changes), expected);
    }
}
