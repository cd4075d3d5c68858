//! Runs executors as processes of this machine, with a launcher of its own: a complete framework.
//!
//! Run it with `cargo run --example on_this_machine --features local`.

use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use offermill::cluster::local::{LocalCluster, LocalConfig};
use offermill::config::ExecutorCores;
use offermill::engine::{Engine, EngineOptions, Notice, Observer};
use offermill::launch::{Command, LaunchContext, Launcher};
use offermill::resources::{Mebibytes, MilliCpus};
use offermill::{Change, Config, Fate, IdScheme, Kernel, Timestamp};

/// Starts workers: the program is the same for all, its arguments differ. `CommandTemplate` is the launcher for
/// commands in which placeholders suffice.
struct Workers;

impl Launcher for Workers {
    fn command(&self, context: &LaunchContext<'_>) -> Command {
        let script = "echo \"worker $1 on $2, $THREADS threads\"; sleep 0.1";
        let argv = ["sh", "-c", script, "worker", context.executor, context.hostname];
        let threads = ("THREADS".to_owned(), context.cores.to_string());
        Command::new(argv.map(str::to_owned).to_vec()).with_environment([threads])
    }
}

/// Prints what becomes of executors, and tells the main thread which have finished.
struct Printer(Sender<String>);

impl Observer for Printer {
    fn notice(&mut self, _at: Timestamp, notice: Notice) {
        match notice {
            Notice::Placed(it) => println!("{} placed on {}", it.executor, it.hostname),
            Notice::Updated { executor, change: Change::Ended(Fate::Finished), .. } => {
                println!("{executor} finished");
                let _ended = self.0.send(executor);
            }
            Notice::CallFailed { why } | Notice::Refused { why } => eprintln!("{why}"),
            _ => {}
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    const EXECUTORS: u32 = 4;
    let config = Config::builder()
        .executor_cores(ExecutorCores::Fixed(MilliCpus::from_cores(1)))
        .executor_memory(Mebibytes::new(64))
        .memory_overhead(Some(Mebibytes::ZERO))
        .executor_limit(Some(EXECUTORS))
        .build()?;
    // Two agents of two cores and 1024 MiB, with sandboxes in a folder of this user for temporary files.
    let cluster = LocalCluster::new(LocalConfig::new("local-cluster[2,2,1024]".parse()?))?;
    let kernel = Kernel::new(config, IdScheme::unique("example", 1)?);
    // Executors that have finished are not replaced.
    let options = EngineOptions::default().with_finished_count_down(true);
    let (sender, finished) = channel();
    let observer = Box::new(Printer(sender));
    let engine = Engine::start(kernel, Arc::new(cluster), Arc::new(Workers), options, observer)?;
    for _ in 0..EXECUTORS {
        finished.recv()?;
    }
    println!("drained: {}", engine.shutdown(Duration::from_secs(10)).drained);
    Ok(())
}
