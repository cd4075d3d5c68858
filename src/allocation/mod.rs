//! Dynamic allocation: how many executors a load of tasks needs, which of those that are idle may go, and when.
//!
//! A policy and nothing else: no thread, no clock, no I/O. Whoever knows the tasks tells an [`Allocator`] how many wait
//! and run ([`Load`]) and what its executors do; each [`step`](Allocator::step) returns the executor limit to set and
//! the executors to end. It is the policy of Spark 3.5 (`spark.dynamicAllocation.*`), step for step:
//!
//! * The load needs `ceil(tasks × ratio ÷ slots)` executors, where tasks are those that wait and those that run.
//! * The limit begins at `initial` and stays there until a load comes or an executor has been idle for too long: a
//!   first job finds its executors there.
//! * Is less needed than the limit, it falls to that at once, but not below `min`. A fallen limit ends nobody.
//! * Have tasks waited for `backlog_timeout`, the limit grows by 1, then after each `sustained_timeout` by 2, 4, 8, up
//!   to what is needed and at most `max`. Growth begins at 1 again when it could not be had in full, when the limit
//!   falls, and when nothing waits.
//! * An executor without tasks for `idle_timeout` is to end if as many as the limit are left without it; one that holds
//!   cached blocks after `cached_idle_timeout`; one that holds shuffle data after `shuffle_timeout`, and not at all as
//!   long as a job needs the data.
//!
//! One difference is ours: an executor that the load needs isn't ended even while the limit has not grown yet to what
//! is needed; Spark would end it, and start another soon after. An executor counts from [`Allocator::added`] on: in
//! Spark that is when it has registered with the driver.
//!
//! ```
//! use std::time::Duration;
//! use offermill::allocation::{Allocator, Load, Rule};
//! use offermill::{Config, IdScheme, Kernel, Timestamp};
//!
//! // Four tasks at a time run on an executor.
//! let rule = Rule::builder().min(1).max(40).slots(4).idle_timeout(Duration::from_secs(60)).build()?;
//! let kernel = Kernel::new(Config::builder().build()?, IdScheme::unique("etl", 1)?);
//! let mut allocator = Allocator::new(rule, Timestamp::ORIGIN);
//! kernel.set_executor_limit(Some(allocator.limit()))?;
//!
//! // Each 100 ms or so, and besides `added`, `busy`, `idle` and `removed` as executors' tasks come and go:
//! let mut steps = 0;
//! let mut step = |millis: u64, load: &Load| -> Result<(), offermill::Error> {
//!     let advice = allocator.step(Timestamp::from_millis(millis), load);
//!     // First the limit, so that no executor that ends is replaced.
//!     if let Some(limit) = advice.limit {
//!         kernel.set_executor_limit(Some(limit))?;
//!         steps += 1;
//!     }
//!     for target in kernel.kill_executors(advice.kill) {
//!         // Here a framework sends a KILL to the cluster, and again until the end is reported.
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
//! An [`Engine`] sends the kills itself, and again: tell it with [`Engine::kill`].
//!
//! [`Engine`]: super::engine::Engine
//! [`Engine::kill`]: super::engine::Engine::kill

mod allocator;
mod load;
mod rule;
#[cfg(test)]
mod tests;
mod tracked;

pub use allocator::{Advice, Allocator};
pub use load::Load;
pub use rule::{Rule, RuleBuilder};
pub use tracked::ShuffleData;
