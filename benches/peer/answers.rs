//! What Spark's backend took, as `TimeSpark.scala` wrote it, and the rows of the table.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::play::Played;
use crate::scene::Scene;

pub(crate) const HEAD: [&str; 6] = [
    "scene",
    "agents",
    "batch",
    "Spark's backend, ns an offer",
    "Offermill, ns an offer",
    "times as fast",
];

/// The answers by the scene's name.
pub(crate) struct Answers(BTreeMap<String, Value>);

impl Answers {
    pub(crate) fn read(path: &Path) -> Result<Answers, String> {
        let error = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let text = fs::read_to_string(path).map_err(|it| error(&it))?;
        let mut answers = BTreeMap::new();
        for line in text.lines() {
            let answer: Value = serde_json::from_str(line).map_err(|it| error(&it))?;
            let name = answer["name"].as_str().ok_or_else(|| error(&"an answer without a name"))?;
            answers.insert(name.to_owned(), answer);
        }
        Ok(Answers(answers))
    }

    /// Both beside each other, if they have launched as many executors.
    pub(crate) fn row(&self, scene: &Scene, ours: &Played) -> Result<Vec<String>, String> {
        let name = scene.name();
        let answer = self.0.get(&name).ok_or_else(|| format!("Spark hasn't answered '{name}'"))?;
        let number = |key: &str| answer[key].as_f64().filter(|it| it.is_finite() && *it > 0.0);
        let launched = answer["launched"].as_u64();
        if launched != Some(ours.launched as u64) {
            return Err(format!(
                "'{name}': Offermill launched {} executors a lap, and Spark {launched:?}",
                ours.launched
            ));
        }
        let missing = || format!("Spark's answer to '{name}' lacks a time");
        let mut row = vec![
            scene.kind.name().to_owned(),
            grouped(scene.agents as f64),
            grouped(scene.batch as f64),
        ];
        row.extend(beside(number("offer").ok_or_else(missing)?, ours.offer));
        if let Some(end) = ours.end {
            let ends = beside(number("end").ok_or_else(missing)?, end);
            for (cell, end) in row[3..].iter_mut().zip(ends) {
                cell.push_str(&format!("; its end {end}"));
            }
        }
        Ok(row)
    }
}

fn beside(spark: f64, ours: f64) -> [String; 3] {
    [grouped(spark), grouped(ours), grouped(spark / ours)]
}

/// A whole number, its thousands apart.
fn grouped(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}
