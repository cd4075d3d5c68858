//! Generated scenarios, played against Spark's own backend and then against Offermill.

mod drafts;
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

fn write_drafts(folder: &Path, seed: u64, count: u64) {
    for number in 0..count {
        let name = format!("{number:04}");
        let mut text = drafts::draft(&name, seed.wrapping_add(number)).join("\n");
        text.push('\n');
        fs::write(folder.join(name + ".jsonl"), text).unwrap();
    }
}

/// Goal: in the compatible mode the decisions equal Spark's own. Method: random drafts (`OFFERMILL_SCENARIOS` of them,
/// 300 by default; seeded by `OFFERMILL_SEED`, or by the clock), played against Spark 3.5's own backend, whose answers
/// `offermill replay` must repeat.
#[test]
#[ignore = "needs Java and Spark: .ci/spark"]
fn spark_itself_answers_as_offermill_does() {
    let clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let seed = number("OFFERMILL_SEED").unwrap_or(clock);
    let count = number("OFFERMILL_SCENARIOS").unwrap_or(300);
    println!("OFFERMILL_SEED={seed} OFFERMILL_SCENARIOS={count}");
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("asking");
    let [drafts, scenarios, answers] =
        ["drafts", "scenarios", "answers"].map(|name| fresh(home.join(name)));
    write_drafts(&drafts, seed, count);
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
