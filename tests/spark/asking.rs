//! Generated scenarios, played against Spark's own backend and then against Offermill.

mod drafts;
mod fine_grained;
mod settings;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};
use std::{env, fs};

fn number(variable: &str) -> Option<u64> {
    env::var(variable).ok().map(|text| text.parse().unwrap())
}

fn fresh(folder: PathBuf) -> PathBuf {
    if folder.exists() {
        fs::remove_dir_all(&folder).unwrap();
    }
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn write_drafts(folder: &Path, seed: u64, count: u64, draft: fn(&str, u64) -> Vec<String>) {
    for number in 0..count {
        let name = format!("{number:04}");
        let mut text = draft(&name, seed.wrapping_add(number)).join("\n");
        text.push('\n');
        fs::write(folder.join(name + ".jsonl"), text).unwrap();
    }
}

/// How many scenarios are played by default.
const SCENARIOS: u64 = 300;

/// Plays random drafts to Spark and to Offermill, in a folder of this name: as many as `count`, or
/// `OFFERMILL_SCENARIOS`; seeded by `OFFERMILL_SEED`, or by the clock.
fn ask(name: &str, count: Option<u64>, draft: fn(&str, u64) -> Vec<String>) {
    let clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let seed = number("OFFERMILL_SEED").unwrap_or(clock);
    let count = count.or_else(|| number("OFFERMILL_SCENARIOS")).unwrap_or(SCENARIOS);
    println!("OFFERMILL_SEED={seed} OFFERMILL_SCENARIOS={count}");
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let [drafts, scenarios, answers] =
        ["drafts", "scenarios", "answers"].map(|name| fresh(home.join(name)));
    write_drafts(&drafts, seed, count, draft);
    let support = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/spark");
    let asked = Command::new(support.join("ask-spark"))
        .arg("--dir")
        .arg(Path::new(env!("CARGO_TARGET_TMPDIR")).join("spark-build"))
        .args([&drafts, &scenarios, &answers])
        .status()
        .unwrap();
    assert!(asked.success(), "Spark could not be asked");
    let replayed = Command::new(env!("CARGO_BIN_EXE_offermill"))
        .args(["replay", "--compat", "spark-3.5", "--expect"])
        .args([&answers, &scenarios])
        .output()
        .unwrap();
    let (out, problems) =
        (String::from_utf8_lossy(&replayed.stdout), String::from_utf8_lossy(&replayed.stderr));
    println!("{out}{problems}");
    assert!(replayed.status.success(), "OFFERMILL_SEED={seed}: see {}", home.display());
}

/// Goal: in the compatible mode the decisions equal Spark's own. Method: random drafts (`OFFERMILL_SCENARIOS` of them,
/// 300 by default), played against Spark 3.5's own backend, whose answers `offermill replay` must repeat.
#[test]
#[ignore = "needs Java and Spark: .ci/spark"]
fn spark_itself_answers_as_offermill_does() {
    ask("asking", None, drafts::draft);
}

/// Goal: so do those of the fine-grained mode, in which Spark places tasks on offers. Method: as above, with Spark's
/// fine-grained backend and its own scheduler of tasks, which doesn't shuffle offers here; `OFFERMILL_TASK_SCENARIOS`
/// of them, if that is set.
#[test]
#[ignore = "needs Java and Spark: .ci/spark"]
fn fine_grained_spark_answers_as_offermill_does() {
    ask("asking-fine-grained", number("OFFERMILL_TASK_SCENARIOS"), fine_grained::draft);
}
