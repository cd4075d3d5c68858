//! Awaits the ends of executors in an asynchronous host: executors are asked to end, and a task waits for that, for at
//! most a second. On tokio, `tokio::time::timeout(second, kernel.drained()).await` does what `block_on_for` does here.
//!
//! Run it with `cargo run --example async_drain`.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use offermill::{
    Config, Decisions, IdScheme, Kernel, Offer, Resource, StatusUpdate, TaskState, Timestamp,
};

fn main() -> Result<(), offermill::Error> {
    let kernel = Kernel::new(Config::builder().build()?, IdScheme::unique("async", 1)?);
    let resources = [Resource::scalar("cpus", 2.0), Resource::scalar("mem", 4096.0)];
    let offers = [Offer::new("O1", "S1", "host-1", &resources, &[])];
    let mut decisions = Decisions::new();
    kernel.handler().resource_offers(&offers, Timestamp::ORIGIN, &mut decisions);
    println!("{} executors", decisions.executors());

    let targets = kernel.close();
    let to_kill = kernel.kill_executors(targets.iter().map(|target| target.id));
    // The cluster, which was told to kill them, reports their ends.
    let cluster = kernel.clone();
    let reports = thread::spawn(move || {
        for target in to_kill {
            let name = cluster.executor_name(target.id).to_string();
            let update = StatusUpdate::new(&name, TaskState::Killed);
            cluster.status_update(&update, Timestamp::from_millis(10));
        }
    });

    let report = match block_on_for(kernel.drained(), Duration::from_secs(1)) {
        Some(report) => report,
        // The timeout has passed: report what is left.
        None => kernel.drain(Duration::ZERO),
    };
    println!("drained: {}", report.drained);
    for drained in report.executors {
        let name = kernel.executor_name(drained.executor.id);
        println!("  {name} on {}: {}", drained.executor.agent_id, drained.fate.as_str());
    }
    drop(reports.join());
    Ok(())
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Unpark>) {
        self.0.unpark();
    }
}

/// Polls a future on this thread until it completes or the time has passed: stands for a host's runtime.
fn block_on_for<F: Future>(future: F, timeout: Duration) -> Option<F::Output> {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let begun = Instant::now();
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return Some(output);
        }
        thread::park_timeout(timeout.checked_sub(begun.elapsed())?);
    }
}
