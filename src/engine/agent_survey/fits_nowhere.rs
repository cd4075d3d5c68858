//! [`FitsNowhere`]: why a task fits on no agent, in its parts.

use std::fmt;

use crate::kernel::ResourceSums;

/// Why a task fits on no agent, from [`AgentSurvey::fits_nowhere`](super::AgentSurvey::fits_nowhere): what lacks room,
/// and the agent that is nearest to having it.
///
/// `Display` says it as a sentence, such as `it fits on no agent: it takes 8 cores and 512 MiB; the nearest agent,
/// host-1, has 4 cores and 8192 MiB, and lacks 4 cores`, `its host fits on no agent: …`, or `it and its host are two
/// executors, and agents take one each, …`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FitsNowhere {
    /// What fits nowhere.
    pub what: TooLarge,
    /// What that takes.
    pub size: ResourceSums,
    /// The host name of the agent that lacks the least: by the sum of what is missing of each kind, in parts of what is
    /// asked for. Of equal ones the first by name.
    pub nearest: String,
    /// What that agent has: for a task beside its host, if tasks run in hosts.
    pub has: ResourceSums,
    /// What that agent lacks.
    pub lacks: ResourceSums,
}

/// What is larger than every agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TooLarge {
    /// The task, beside its host if tasks run in hosts.
    Task,
    /// The host that it would run in: no agent has room for one.
    Host,
    /// The task with its host: these are two executors, and agents take one each. They may have what both take.
    TaskWithHost,
}

impl FitsNowhere {
    /// The agent of these that is the nearest, by host name and what it has, is the reason. `None` if there is none.
    pub(super) fn nearest<'a>(
        what: TooLarge,
        size: ResourceSums,
        agents: impl Iterator<Item = (&'a str, ResourceSums)>,
    ) -> Option<FitsNowhere> {
        let part = |asked: u64, has: u64| match asked {
            0 => 0.0,
            asked => asked.saturating_sub(has) as f64 / asked as f64,
        };
        let lack = |has: ResourceSums| {
            part(size.cores.millis(), has.cores.millis())
                + part(size.memory.get(), has.memory.get())
                + part(size.gpus.get().into(), has.gpus.get().into())
        };
        let (_, nearest, has) = agents
            .map(|(name, has)| (lack(has), name, has))
            .min_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(b.1)))?;
        let lacks = size.saturating_sub(has);
        Some(FitsNowhere { what, size, nearest: nearest.to_owned(), has, lacks })
    }
}

impl fmt::Display for TooLarge {
    /// Prints what it is to the task: `it`, `its host` or `it with its host`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TooLarge::Task => "it",
            TooLarge::Host => "its host",
            TooLarge::TaskWithHost => "it with its host",
        })
    }
}

impl fmt::Display for FitsNowhere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FitsNowhere { what, size, nearest, has, lacks } = self;
        if *what == TooLarge::TaskWithHost {
            let why = "it and its host are two executors, and agents take one each";
            return write!(f, "{why}, as the nearest, {nearest}, does");
        }
        write!(f, "{what} fits on no agent: it takes {size}; ")?;
        write!(f, "the nearest agent, {nearest}, has {has}, and lacks {lacks}")
    }
}
