//! The worker protocol: what a worker and its master tell each other.
//!
//! **No stability promise.** This module is public only for this project's command line, tests and fuzz targets.
//!
//! A worker opens one connection and sends `POST /api/v1/worker` with `Content-Type: application/json`, and where the
//! master wants credentials, `Authorization`. The bodies of the request and of its response are open as long as the
//! connection is. Each is a stream of [records](crate::mesos_v1::record_io): the worker's are [`WorkerCall`]s, the
//! master's are [`WorkerEvent`]s, in JSON. The master's response begins once the worker's first record is answered.
//!
//! | direction | messages |
//! |---|---|
//! | worker → master | `SUBSCRIBE` (first, and once), `UPDATE`, `HEARTBEAT`, `LEAVING`, `LEAVE` |
//! | master → worker | `SUBSCRIBED` or `REFUSED` (first, and once), `LAUNCH`, `KILL`, `ACK`, `SHUTDOWN_FRAMEWORK`, `DRAIN`, `HEARTBEAT` |
//!
//! # Rules
//! * **Heartbeats.** Each side sends one every [`HEARTBEAT_SECONDS`], or as often as `SUBSCRIBED` says. A side that has
//!   received nothing for the time of four of them ([`SILENCE_SECONDS`]) closes the connection.
//! * **Terms.** Each leadership of a master has a higher term than all before it. A worker remembers the highest term
//!   that it was ever told, on disk, and tells it in `SUBSCRIBE`. It closes a connection whose `SUBSCRIBED` or command
//!   bears a lower one, or one that is higher by more than [`TERM_STEP_MAX`], and obeys nothing that came on it.
//! * **One connection.** Before a worker sends `SUBSCRIBE` on a new connection, it stops reading the one before. What
//!   it lists are all executors that it holds then, with those whose end isn't acknowledged yet.
//! * **No doubles.** The master counts a `LAUNCH` that is absent from the next `SUBSCRIBE` as dropped. So a worker that
//!   lists an executor has it, and one that doesn't list it never starts it. Launches have ascending sequence numbers
//!   on each connection, beginning at 1; a worker ignores one whose executor it has already.
//! * **Tags.** Each `LAUNCH` has a tag, which the worker tells with the executor in `SUBSCRIBE`. A master that didn't
//!   launch an executor itself, because it started after that, takes it over only from the worker that it was launched
//!   on, which the tag proves; without the right tag the worker is told to end it. (So end those of a worker that tells
//!   no tags, and those that were launched before the journal had a key for them.)
//! * **Hosts of tasks.** A worker that has hosts says so in `SUBSCRIBE`; no other is sent a `LAUNCH` of one, or of a
//!   task in one. Host and tasks are executors, with updates of their own. A task is launched after its host; one whose
//!   host the worker doesn't hold, or that is about to end, is `DROPPED`, and so is one that its host has never got
//!   when it ends. The updates of a task name its host. If a task ends with its host, and not by a failure of its own,
//!   it is `FAILED` with `is_lost`, once its processes are gone, and after its host's end.
//! * **Exhausted machines.** An executor that isn't started because its worker's machine has no process, open file,
//!   memory or disk space for it is `FAILED` with `is_exhausted`, which the framework is told by a label.
//! * **Bounds.** A worker holds at most [`EXECUTORS_MAX`] executors, and answers a launch beyond that with `DROPPED`,
//!   once.
//! * **Updates** of an executor are sent in their order, at once, and again with the next `SUBSCRIBE`, until they are
//!   acknowledged with their `uuid`; and again on the same connection if none came for [`RESEND_SECONDS`]. Different
//!   updates have different `uuid`s, also when a worker starts anew.
//! * **Identity.** A worker without an id gets one, and keeps it on disk. `session` is random and chosen when the
//!   worker's process starts: the master takes a new connection of the same id and session in the place of the one
//!   before, and refuses another session with this id, or with this address under another id, until the worker before
//!   is gone or has fallen silent.
//! * **Leaving.** A worker that takes no launches any more, because it is drained or asked to end, says so with
//!   `LEAVING`, and in each later `SUBSCRIBE`: the master, and one that takes its place, offer nothing of it. `LEAVE`
//!   is sent when no executor runs any more and all ends are acknowledged, or when the worker gives up waiting for
//!   that. The master forgets the worker, and reports what it thinks runs there as gone.

mod amounts;
mod call;
mod checks;
mod event;
mod frame;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

use std::ops::RangeInclusive;

pub use amounts::WorkerResources;
pub use call::{
    ExecutorUpdate, HeldExecutor, ReportedState, WorkerAttribute, WorkerCall, WorkerSubscribe,
};
pub use checks::Unfit;
pub use event::{ExecutorCommand, ExecutorKey, ExecutorLaunch, LaunchHosting, WorkerEvent};
pub use frame::{UnreadableMessage, decode_call, decode_event, frame_call, frame_event};

/// The path of the worker protocol.
pub const WORKER_PATH: &str = "/api/v1/worker";
/// The interval of heartbeats, in seconds.
pub const HEARTBEAT_SECONDS: u64 = 15;
/// The shortest and the longest interval that a master may name, in milliseconds.
pub const HEARTBEAT_MILLISECONDS: RangeInclusive<u64> = 250..=900_000;
/// The silence after which a connection counts as dead, in seconds.
pub const SILENCE_SECONDS: u64 = 60;
/// The time after which a worker sends an update that wasn't acknowledged again, in seconds.
pub const RESEND_SECONDS: u64 = 10;
/// The most by which a term is higher than the one that a worker was told before. A master that claims more isn't one.
pub const TERM_STEP_MAX: u64 = 1_000_000;
/// The most bytes of one message.
pub const MESSAGE_BYTES_MAX: usize = 8 << 20;
/// The most executors of one worker, running or with an end that isn't acknowledged. A registration that lists them all
/// fits in a message, because their names have at most 255 bytes.
pub const EXECUTORS_MAX: usize = 1024;
