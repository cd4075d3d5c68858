//! [`Explanation`]: why nothing more is placed, in numbers and as text.

use std::fmt::{self, Display};
use std::time::Duration;

use super::cluster_lack::{ClusterLack, ClusterLacks};
use super::queues::QueueUse;
use crate::config::text::format_duration;
use crate::constraint::{quoted, visible};
use crate::kernel::reason::{Reason, ReasonKind};
use crate::kernel::state::admission::AdmissionState;
use crate::kernel::state::near_miss::{NearMiss, is_over};
use crate::kernel::state::policy::Policy;
use crate::kernel::{Core, Kernel};
use crate::time::Timestamp;

/// Why the kernel waits, from [`Kernel::explain`](crate::Kernel::explain). Its `Display` has several lines, without a
/// line break at the end.
///
/// # Consistency
/// Its parts are read one after the other, while handlers go on: each is true at some moment of the call.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Explanation {
    /// When the explanation was requested.
    pub at: Timestamp,
    /// How many more executors the caps have room for, as in [`Kernel::wanted`](crate::Kernel::wanted).
    pub wanted: u32,
    /// Whether a limit or cap bounds that number; otherwise as many executors are wanted as fit.
    pub is_bounded: bool,
    /// The cap that leaves no room for any executor, if there is one.
    pub cap: Option<Reason>,
    /// Whether the kernel is closed.
    pub is_closed: bool,
    /// Whether a subscription is active.
    pub is_connected: bool,
    /// Whether suppress was the last call to the cluster.
    pub is_suppressed: bool,
    /// The number of offers answered since the kernel was created.
    pub offers: u64,
    /// When offers came last.
    pub last_offers: Option<Timestamp>,
    /// The number of agents that the kernel remembers, as in [`Kernel::agents_known`](crate::Kernel::agents_known).
    pub agents: usize,
    /// The excluded agents among them.
    pub excluded: ExcludedAgents,
    /// The reasons for which offers were declined, the most frequent first.
    pub declined: Vec<Declined>,
    /// What executors need and no agent has, as far as the picture of [`capacity_at`](Explanation::capacity_at) shows.
    /// Empty if nothing is wanted, if an agent would do once it is free, or if the picture is switched
    /// [off](crate::ConfigBuilder::capacity_refresh).
    pub lacks: Vec<ClusterLack>,
    /// The [time](crate::ClusterCapacity::time) of the picture of the [capacity](crate::Kernel::capacity) that was
    /// compared with what executors need. None if none was, since no decline calls for it.
    pub capacity_at: Option<Timestamp>,
    /// The queues, as in [`Kernel::queues`](crate::Kernel::queues).
    #[cfg_attr(feature = "serde", serde(default))]
    pub queues: Vec<QueueUse>,
}

/// Agents on which no executors are placed because too many failed there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct ExcludedAgents {
    /// The number of agents.
    pub agents: usize,
    /// When the first exclusion ends; [`Timestamp::MAX`] is never.
    pub first_ends: Option<Timestamp>,
}

/// The offers that were declined for reasons of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Declined {
    /// The kind of reason.
    pub kind: ReasonKind,
    /// The number of offers, since the kernel was created.
    pub offers: u64,
    /// The nearest miss under the settings in force, among the offers of about the last 10 s in which offers of the
    /// kind were declined. `None` if there is none; if the nearest doesn't hold any more, because the exclusion is over
    /// or the limit changed; or, rarely, if handlers wrote it during each of 16 attempts to read it.
    pub nearest: Option<Miss>,
}

/// The declined offer that came nearest to being used, among those of one kind: the one that had the most of what was
/// lacking, or whose agent is available first. If nothing can be compared, the last one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Miss {
    /// The id of the agent that was offered. Ids longer than 64 bytes are truncated and end in `…`. `None` if the
    /// reason doesn't concern the agent.
    pub agent_id: Option<Box<str>>,
    /// The agent's host name, truncated likewise, if the offer had one.
    pub hostname: Option<Box<str>>,
    /// Why the offer was declined.
    pub reason: Reason,
    /// The condition that the agent doesn't meet, if that is the reason; or why the queue has no room, with its name.
    pub condition: Option<String>,
    /// When the offer was declined.
    pub at: Timestamp,
    /// When the explanation was requested.
    asked_at: Timestamp,
}

impl Kernel {
    /// Explains why nothing more is placed: how many executors are wanted, which cap is reached, whether offers arrive,
    /// for each reason how many offers were declined and how near the nearest of them was, and what no agent of the
    /// cluster has. Its `Display` is for people.
    ///
    /// O(agents and handlers) on the caller's thread; handlers never wait for it. If offers were lately declined for
    /// too few resources or the constraint, it also asks for [`Kernel::capacity`], with its costs and waits. Its parts
    /// are not of one instant: what no agent has is of the time [`Explanation::capacity_at`], which is before `now` by
    /// less than [`capacity_refresh`](crate::ConfigBuilder::capacity_refresh) unless another thread rebuilds the
    /// picture.
    ///
    /// ```
    /// # use offermill::{Config, Decisions, IdScheme, Kernel, Offer, Resource, Timestamp, resources::Mebibytes};
    /// let config = Config::builder().executor_memory(Mebibytes::new(3712)).executor_limit(Some(3)).build()?;
    /// let kernel = Kernel::new(config, IdScheme::plain());
    /// let resources = [Resource::scalar("cpus", 4.0), Resource::scalar("mem", 3584.0)];
    /// let offers = [Offer::new("O1", "S7", "host-7", &resources, &[])];
    /// kernel.handler().resource_offers(&offers, Timestamp::ORIGIN, &mut Decisions::new());
    ///
    /// let explanation = kernel.explain(Timestamp::from_millis(2_000));
    /// assert_eq!(explanation.to_string(), "\
    /// waiting for 3 more executors
    /// offers             1 in all, the last 2 s ago
    /// cluster            no agent has 4096 MiB for executors, the largest has 3584 MiB (agent S7)
    /// too little memory  1 offer, nearest: agent S7: memory 3584 of 4096 MiB, 2 s ago");
    /// # Ok::<(), offermill::Error>(())
    /// ```
    #[must_use]
    pub fn explain(&self, now: Timestamp) -> Explanation {
        self.0.explain(now)
    }
}

impl Core {
    pub(crate) fn explain(&self, now: Timestamp) -> Explanation {
        let admission = self.admission.load();
        let policy = self.policy.load();
        let counts = self.counters.sum();
        let mut excluded = ExcludedAgents::default();
        for until in self.agents.exclusions(now) {
            excluded.agents += 1;
            excluded.first_ends = Some(excluded.first_ends.map_or(until, |first| first.min(until)));
        }
        let declines = counts.declines().filter(|(_, offers)| *offers > 0);
        let mut declined: Vec<Declined> = declines
            .map(|(kind, offers)| {
                let near_miss =
                    self.counters.nearest(kind, |near_miss| still_holds(near_miss, &policy, now));
                let nearest =
                    near_miss.map(|NearMiss { at, reason, agent_id, hostname, .. }| {
                        let condition = match reason {
                            // The settings are those under which it was recorded.
                            Reason::ConstraintUnmet(unmet) => {
                                policy.config.constraint.condition(unmet.condition)
                            }
                            reason => {
                                let queues = &policy.config.queues;
                                reason.queue().map(|_| reason.named(queues).to_string())
                            }
                        };
                        Miss { agent_id, hostname, reason, condition, at, asked_at: now }
                    });
                Declined { kind, offers, nearest }
            })
            .collect();
        declined.sort_by_key(|declined| std::cmp::Reverse(declined.offers));
        let wanted = self.wanted(&policy, admission);
        let ClusterLacks { capacity_at, lacks } = match wanted {
            0 => ClusterLacks::default(),
            _ => {
                let recent = declined.iter().filter(|declined| declined.nearest.is_some());
                let recent: Vec<ReasonKind> = recent.map(|declined| declined.kind).collect();
                self.cluster_lacks(&policy, &counts, &recent, now)
            }
        };
        Explanation {
            at: now,
            wanted,
            is_bounded: policy.is_bounded(),
            cap: self.caps_reached(&policy, admission),
            is_closed: admission.closed(),
            is_connected: self.subscription.connected(),
            is_suppressed: self.demand.suppressed(),
            offers: counts.offers,
            last_offers: self.counters.offered_at(),
            agents: self.agents.len(),
            excluded,
            declined,
            lacks,
            capacity_at,
            queues: self.queue_uses(&policy),
        }
    }

    /// How many executors the caps have room for beyond `admission`.
    pub(crate) fn wanted(&self, policy: &Policy, admission: AdmissionState) -> u32 {
        if admission.closed() {
            return 0;
        }
        policy.headroom(admission).map_or(0, |left| {
            let by_cores = left.cores.millis() / policy.config.cores_at_least().millis();
            let by_gpus = policy.room_by_gpus(self.gpus.taken());
            left.executors.min(u32::try_from(by_cores).unwrap_or(u32::MAX)).min(by_gpus)
        })
    }
}

fn line_of_queue(queue: &QueueUse) -> (String, String) {
    (format!("queue {}", queue.name), queue.to_string())
}

/// Whether a miss still holds under `policy`.
fn still_holds(near_miss: &NearMiss, policy: &Policy, now: Timestamp) -> bool {
    let same_limit = match near_miss.reason {
        Reason::ExecutorLimit { limit } => policy.limit == Some(limit),
        _ => true,
    };
    near_miss.config_version == policy.config_version
        && same_limit
        && !is_over(&near_miss.reason, now)
}

impl Explanation {
    /// Returns what the kernel waits for, in a few words: the first line of the `Display`.
    #[must_use]
    pub fn headline(&self) -> String {
        match (self.cap, self.wanted) {
            _ if self.is_closed => "closed: nothing more is placed".into(),
            _ if !self.is_connected => "waiting for a subscription".into(),
            (Some(cap), _) => format!("nothing more is wanted: {cap}"),
            (None, 0) => "nothing more is wanted".into(),
            _ if !self.is_bounded => "waiting for as many executors as fit".into(),
            (None, 1) => "waiting for 1 more executor".into(),
            (None, wanted) => format!("waiting for {wanted} more executors"),
        }
    }

    /// How many offers came, and when.
    fn of_offers(&self) -> String {
        let suppressed = if self.is_suppressed { ", suppressed" } else { "" };
        match self.last_offers {
            None => format!("none came yet{suppressed}"),
            Some(last) => {
                format!("{} in all, the last {}{suppressed}", self.offers, ago(last, self.at))
            }
        }
    }

    /// What no agent has, one line each, and how old that is from a second on.
    fn of_cluster(&self) -> impl Iterator<Item = String> {
        let age = self.capacity_at.map(|then| self.at.since(then)).unwrap_or_default();
        let as_of = match age.as_secs() {
            0 => String::new(),
            seconds => format!(", as of {} ago", format_duration(Duration::from_secs(seconds))),
        };
        self.lacks.iter().map(move |lack| format!("{lack}{as_of}"))
    }

    fn of_agents(&self) -> Option<String> {
        let ExcludedAgents { agents, first_ends } = self.excluded;
        let first = first_ends.map(|until| time_left(until, self.at))?;
        let the_first = if agents == 1 { "" } else { "the first " };
        Some(format!("{} known, {agents} excluded, {the_first}{first}", self.agents))
    }
}

impl Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = vec![("offers", self.of_offers())];
        lines.extend(self.of_agents().map(|agents| ("agents", agents)));
        lines.extend(self.of_cluster().map(|lack| ("cluster", lack)));
        let queues = self.queues.iter().filter(|queue| queue.is_of_interest());
        let labels: Vec<(String, String)> = queues.map(line_of_queue).collect();
        lines.extend(labels.iter().map(|(label, text)| (label.as_str(), text.clone())));
        lines.extend(self.declined.iter().map(|of| (of.kind.as_str(), of.to_string())));
        let width = lines.iter().map(|(label, _)| label.len()).max().unwrap_or(0);
        f.write_str(&self.headline())?;
        lines.iter().try_for_each(|(label, text)| write!(f, "\n{label:<width$}  {text}"))
    }
}

impl Display for Declined {
    /// For example `41 offers, nearest: agent S7: memory 3584 of 4096 MiB, 2 s ago`, without the kind.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.offers == 1 { "" } else { "s" };
        write!(f, "{} offer{plural}", self.offers)?;
        let Some(miss) = &self.nearest else { return Ok(()) };
        let which = if miss.reason.is_measured() { "nearest" } else { "the last" };
        write!(f, ", {which}: {miss}, {}", ago(miss.at, miss.asked_at))
    }
}

impl Miss {
    /// Returns why the offer was declined, in a few words such as `memory 3584 of 4096 MiB` or `excluded for 11 min
    /// more`.
    #[must_use]
    pub fn why(&self) -> String {
        match self.reason {
            Reason::AgentExcluded { until } => {
                format!("excluded {}", time_left(until, self.asked_at))
            }
            Reason::AgentSuspect { until } => {
                format!("lost a moment ago, not used {}", time_left(until, self.asked_at))
            }
            Reason::Locality { until } => {
                format!("other hosts are wanted {}", time_left(until, self.asked_at))
            }
            Reason::ConstraintUnmet(unmet) => match &self.condition {
                Some(condition) => format!("{}: {}", quoted(condition), unmet.mismatch),
                None => unmet.mismatch.to_string(),
            },
            reason => match (&self.condition, reason.queue()) {
                (Some(named), Some(_)) => named.clone(),
                _ => reason.to_string(),
            },
        }
    }
}

impl Display for Miss {
    /// For example `agent S7: memory 3584 of 4096 MiB` or `agent S3: excluded for 11 min more`. The remaining time is
    /// as of the request.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(agent_id) = &self.agent_id {
            write!(f, "agent {}", visible(agent_id))?;
        }
        let text = self.why();
        match (&self.agent_id, text == self.reason.kind().as_str()) {
            (Some(_), true) => Ok(()),
            (Some(_), false) => write!(f, ": {text}"),
            (None, _) => f.write_str(&text),
        }
    }
}

/// For example `2 s ago`.
fn ago(then: Timestamp, now: Timestamp) -> String {
    match now.since(then).as_secs() {
        0 => "just now".into(),
        seconds => format!("{} ago", format_duration(Duration::from_secs(seconds))),
    }
}

/// For example `for 11 min more`, rounded up.
fn time_left(until: Timestamp, now: Timestamp) -> String {
    if until == Timestamp::MAX {
        return "for ever".into();
    }
    // From two minutes on, whole minutes suffice.
    let millis = until.since(now).as_millis() as u64;
    let step = if millis < 120_000 { 1 } else { 60 };
    let seconds = millis.div_ceil(step * 1000) * step;
    format!("for {} more", format_duration(Duration::from_secs(seconds)))
}
