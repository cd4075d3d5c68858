//! Where the kernel places executors, beside where Spark's own standalone master places them.
//!
//! | `--placement` | Spark's `spark.deploy.spreadOut` | cores of an executor | |
//! |---|---|---|---|
//! | round robin | true | a number | the same |
//! | consolidate | false | a number | the same |
//! | consolidate | false | whole offers, Spark's default | the same |
//! | round robin | true | whole offers, Spark's default | Spark deals cores to workers one by one; here an executor takes all that a worker offers, within the cap. As many cores in all |

use std::path::Path;
use std::process::Command;
use std::{env, fs};

use offermill::config::{ExecutorCores, Placement};
use offermill::resources::{Mebibytes, MilliCpus};
use offermill::{Config, Decisions, IdScheme, Kernel, Offer, Resource, Timestamp};
use serde_json::{Value, json};

use crate::rng::Rng;

/// What both are asked.
#[derive(Debug)]
struct Question {
    spread: bool,
    /// `None`: all that a worker has.
    cores: Option<u64>,
    memory: u64,
    most: u64,
    limit: Option<u32>,
    /// Free cores and memory, those with the most cores first.
    workers: Vec<(u32, u64)>,
}

impl Question {
    fn random(rng: &mut Rng, spread: bool, is_fixed: bool) -> Question {
        let mut up_to = |most: usize| rng.between(1, most) as u64;
        let mut workers: Vec<(u32, u64)> =
            (0..up_to(12)).map(|_| (up_to(16) as u32, 512 * up_to(16))).collect();
        workers.sort_by_key(|(cores, _)| std::cmp::Reverse(*cores));
        let cores = is_fixed.then(|| up_to(4));
        Question {
            spread,
            cores,
            memory: 512 * up_to(4),
            // A cap below one executor is refused here; with Spark it waits for ever.
            most: if up_to(3) == 1 { 1000 } else { up_to(40).max(cores.unwrap_or(1)) },
            limit: (up_to(2) == 1).then(|| up_to(12) as u32 - 1),
            workers,
        }
    }

    fn to_json(&self) -> Value {
        json!({
            "spread": self.spread, "cores": self.cores, "memory": self.memory, "most": self.most,
            "limit": self.limit, "workers": self.workers,
        })
    }

    /// The cores that the kernel places on each worker, if all offer at once what is free.
    fn place(&self) -> Vec<u64> {
        let cores = self.cores.map(|cores| ExecutorCores::Fixed(MilliCpus::from_cores(cores)));
        let config = Config::builder()
            .executor_cores(cores.unwrap_or(ExecutorCores::WholeOffer))
            .executor_memory(Mebibytes::new(self.memory))
            .memory_overhead(Some(Mebibytes::new(0)))
            .core_cap(Some(MilliCpus::from_cores(self.most)))
            .executor_limit(self.limit)
            .placement(if self.spread { Placement::RoundRobin } else { Placement::Consolidate });
        let kernel = Kernel::new(config.build().unwrap(), IdScheme::plain());
        let (mut handler, mut decisions) = (kernel.handler(), Decisions::new());
        let names: Vec<String> = (0..self.workers.len()).map(|at| format!("w{at}")).collect();
        let amounts = self.workers.iter().map(|(cores, memory)| {
            let cores = Resource::scalar("cpus", f64::from(*cores));
            [cores, Resource::scalar("mem", *memory as f64)]
        });
        let amounts: Vec<[Resource<'_>; 2]> = amounts.collect();
        let offers: Vec<Offer<'_>> = names
            .iter()
            .zip(&amounts)
            .map(|(name, amounts)| Offer::new(name, name, name, amounts, &[]))
            .collect();
        handler.resource_offers(&offers, Timestamp::ORIGIN, &mut decisions);
        let mut placed = vec![0; offers.len()];
        for accepted in decisions.accepts() {
            let at = accepted.offers[0] as usize;
            let cores = accepted.executors.iter().map(|it| it.resources.cores.millis() / 1000);
            placed[at] += cores.sum::<u64>();
        }
        placed
    }
}

/// Goal: executors go to the workers to which Spark's own master would give them. Method: `OFFERMILL_PLACEMENTS` (300)
/// random questions of each row above (seeded by `OFFERMILL_SEED`), to Spark's own class and to the kernel.
#[test]
#[ignore = "needs Java and Spark: .ci/spark"]
fn executors_go_where_sparks_master_places_them() {
    let number = |variable: &str| env::var(variable).ok().map(|text| text.parse::<u64>().unwrap());
    let seed = number("OFFERMILL_SEED").unwrap_or(0x5eed);
    println!("OFFERMILL_SEED={seed}");
    let mut rng = Rng(seed);
    let count = number("OFFERMILL_PLACEMENTS").unwrap_or(300);
    let kinds = [(true, true), (false, true), (false, false), (true, false)];
    let all: Vec<Question> = (0..count)
        .flat_map(|_| kinds)
        .map(|(spread, is_fixed)| Question::random(&mut rng, spread, is_fixed))
        .collect();
    let home = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let [asked, answered] = ["placements-asked", "placements-answered"].map(|it| home.join(it));
    let line = |question: &Question| format!("{}\n", question.to_json());
    fs::write(&asked, all.iter().map(line).collect::<String>()).unwrap();
    let support = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/spark");
    let status = Command::new(support.join("ask-master"))
        .arg("--dir")
        .arg(home.join("spark-build"))
        .args([&asked, &answered])
        .status();
    assert!(status.unwrap().success(), "Spark could not be asked");
    let answers = fs::read_to_string(&answered).unwrap();
    assert_eq!(answers.lines().count(), all.len());
    let mut dealt = 0;
    for (question, answer) in all.iter().zip(answers.lines()) {
        let spark: Vec<u64> = serde_json::from_str(answer).unwrap();
        let own = question.place();
        if question.spread && question.cores.is_none() {
            dealt += usize::from(own != spark);
            if question.limit.is_none() {
                assert_eq!(own.iter().sum::<u64>(), spark.iter().sum::<u64>(), "{question:?}");
            }
        } else {
            assert_eq!(own, spark, "{question:?}");
        }
    }
    println!("placement: {} are those of Spark's master, of {} the cores in all", 3 * count, count);
    println!("placement: Spark deals {dealt} of these otherwise");
}
