//! Dynamic allocation: computes the executor limit from the load of tasks, and selects idle executors to end.
//!
//! This module is only a policy: it has no thread, clock or I/O. The host reports the numbers of waiting and running
//! tasks ([`Load`]) and the state of each executor to an [`Allocator`]; each [`step`](Allocator::step) returns the
//! executor limit to set and the executors to end. The policy is that of Spark 3.5 (`spark.dynamicAllocation.*`):
//!
//! * The load needs `ceil(tasks × ratio ÷ slots)` executors, where tasks are those that wait and those that run.
//! * The limit starts at `initial` and stays there until a load arrives or an executor has been idle for too long, so
//!   that a first job finds its executors there.
//! * If less is needed than the limit, the limit falls to the need at once, but not below `min`. A lower limit ends no
//!   executor by itself.
//! * When tasks have waited for `backlog_timeout`, the limit grows by 1, then after each `sustained_timeout` by 2, 4,
//!   8, up to the need and at most `max`. Growth starts again at 1 if a step can't be made in full, if the limit falls,
//!   or if no task waits.
//! * An executor without tasks for `idle_timeout` is ended if at least as many as the limit remain without it. The
//!   timeout is `cached_idle_timeout` if it holds cached blocks and `shuffle_timeout` if it holds shuffle data. It
//!   isn't ended while a job needs its shuffle data.
//!
//! One rule differs from Spark's: an executor that the load needs isn't ended even if the limit has not yet grown to
//! the need; Spark would end it and soon start another. An executor counts from [`Allocator::added`] on; in Spark, that
//! is when it has registered with the driver.
//!
//! ```
//! use std::time::Duration;
//! use offermill::allocation::{AllocationRule, Allocator, Load};
//! use offermill::{Config, IdScheme, Kernel, Timestamp};
//!
//! // An executor runs four tasks at a time.
//! let rule = AllocationRule::builder().min(1).max(40).slots(4).idle_timeout(Duration::from_secs(60)).build()?;
//! let kernel = Kernel::new(Config::builder().build()?, IdScheme::unique("etl", 1)?);
//! let mut allocator = Allocator::new(rule, Timestamp::ORIGIN);
//! kernel.set_executor_limit(Some(allocator.limit()))?;
//!
//! // Call this every 100 ms or so, besides `added`, `busy`, `idle` and `removed` when executors and tasks come and go:
//! let mut steps = 0;
//! let mut step = |millis: u64, load: &Load| -> Result<(), offermill::Error> {
//!     let advice = allocator.step(Timestamp::from_millis(millis), load);
//!     // Set the limit first, so that no executor that ends is replaced.
//!     if let Some(limit) = advice.limit {
//!         kernel.set_executor_limit(Some(limit))?;
//!         steps += 1;
//!     }
//!     for target in kernel.kill_executors(advice.kill) {
//!         // Here a framework sends KILL to the cluster, and repeats it until the executor's end is reported.
//!         println!("{} on {}", kernel.executor_name(target.id), target.agent_id);
//!     }
//!     Ok(())
//! };
//! let load = Load { pending: 36, running: 4, ..Load::default() };
//! for millis in (0..=4_000).step_by(100) {
//!     step(millis, &load)?;
//! }
//! step(4_100, &Load::default())?;
//! assert_eq!(steps, 5, "1 and 2, 4, 8, 10, then 1 again");
//! assert_eq!(kernel.executor_limit(), Some(1));
//! # Ok::<(), offermill::Error>(())
//! ```
//!
//! An [`Engine`] sends and repeats the kills itself: call [`Engine::kill`].
//!
//! [`Engine`]: super::engine::Engine
//! [`Engine::kill`]: super::engine::Engine::kill

mod allocator;
mod load;
mod rule;
#[cfg(test)]
mod tests;
mod tracked;

pub use allocator::{AllocationAdvice, Allocator};
pub use load::Load;
pub use rule::{AllocationRule, AllocationRuleBuilder};
pub use tracked::ShuffleData;
