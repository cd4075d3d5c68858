//! Runs a few executors on a Mesos cluster until all have finished: a complete framework.
//!
//! `cargo run --example on_mesos --features mesos -- mesos://127.0.0.1:5050`
//!
//! Root adds the user that executors run as: `... -- mesos://127.0.0.1:5050 nobody`.

use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use offermill::cluster::mesos::{Masters, MesosCluster, MesosConfig};
use offermill::config::ExecutorCores;
use offermill::engine::{Engine, EngineOptions, Notice, Observer};
use offermill::launch::CommandTemplate;
use offermill::resources::{Mebibytes, MilliCpus};
use offermill::{Change, Config, Fate, IdScheme, Kernel, Timestamp};

/// Forwards notices to the main thread.
struct Watcher(Sender<Notice>);

impl Observer for Watcher {
    fn notice(&mut self, at: Timestamp, notice: Notice) {
        println!("{:>7} ms  {notice:?}", at.as_millis());
        let _ended = self.0.send(notice);
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    const EXECUTORS: u32 = 4;
    let masters: Masters = std::env::args().nth(1).unwrap_or("mesos://127.0.0.1".into()).parse()?;
    let config = Config::builder()
        .executor_cores(ExecutorCores::Fixed(MilliCpus::from_cores(1)))
        .executor_memory(Mebibytes::new(64))
        .memory_overhead(Some(Mebibytes::new(0)))
        .executor_limit(Some(EXECUTORS))
        .build()?;
    let mut mesos = MesosConfig::new(masters, "example").for_kernel(&config);
    mesos.user = std::env::args().nth(2);
    let stop_timeout = mesos.stop_timeout();
    let cluster = MesosCluster::new(mesos)?;
    let run = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_secs();
    let kernel = Kernel::new(config, IdScheme::unique("example", run)?);
    let command = ["sh", "-c", "echo {{EXECUTOR_ID}} on {{HOSTNAME}}; sleep 2"];
    let launcher = Arc::new(CommandTemplate::new(command.map(str::to_owned).to_vec()));
    let mut options = EngineOptions::default();
    options.finished_count_down = true;
    // The engine waits until the framework is torn down.
    options.shutdown_slack = stop_timeout * 4 / 3;
    let (sender, notices) = channel();
    let engine =
        Engine::start(kernel, Arc::new(cluster), launcher, options, Box::new(Watcher(sender)))?;
    let mut finished = 0;
    while finished < EXECUTORS {
        match notices.recv()? {
            Notice::Updated { change: Change::Ended(Fate::Finished), .. } => finished += 1,
            Notice::Refused { why } => return Err(why.into()),
            _ => {}
        }
    }
    println!("{}", engine.shutdown(Duration::from_secs(10)).executors.len());
    Ok(())
}
