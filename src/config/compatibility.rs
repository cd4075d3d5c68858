//! Flags for behaviour in which schedulers differ. Each flag is read in one place.

/// How offers are evaluated and used where schedulers differ. The default is [`Compatibility::OFFERMILL`].
///
/// ```
/// use offermill::{Config, config::Compatibility};
///
/// let config = Config::builder().compatibility(Compatibility::SPARK_3_5).build()?;
/// # Ok::<(), offermill::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Compatibility {
    /// Offers of one agent and role in a batch are used together and answered by one accept. Otherwise each offer is
    /// used alone.
    pub merge_offers: bool,
    /// An agent on which an executor failed comes last for a while, so that a replacement starts elsewhere. Otherwise
    /// it is treated like any other agent, unless it is excluded.
    pub replace_elsewhere: bool,
    /// Executors use reserved resources first. Otherwise they use all resources of a kind in the order of the offer.
    pub reserved_first: bool,
    /// Resources reserved for any role may be used, regardless of the offer's role.
    pub any_role: bool,
    /// The constraint is evaluated even if the core cap is reached. At the core cap every unused offer that meets the
    /// constraint is declined because of the cap, whatever else it lacks, even in the batch that reaches the cap. If a
    /// batch reaches both the cap and the executor limit, the reason is the cap. Otherwise an offer's own deficits
    /// are reported first, and a batch that arrives at the cap isn't evaluated. A batch that arrives at the executor
    /// limit is declined as a whole in either case.
    pub constraint_before_cap: bool,
    /// An executor whose description the cluster rejects (`TASK_ERROR`) counts as a failure of its agent, which slows
    /// down launches that can never succeed, but excludes agents that are in order. Otherwise it doesn't count.
    pub rejections_count: bool,
    /// The core cap may be below the cores of one executor; nothing is ever placed then. Otherwise that is an error.
    pub idle_allowed: bool,
}

impl Compatibility {
    /// The default behaviour.
    pub const OFFERMILL: Compatibility = Compatibility {
        merge_offers: true,
        replace_elsewhere: true,
        reserved_first: true,
        any_role: false,
        constraint_before_cap: false,
        rejections_count: false,
        idle_allowed: false,
    };

    /// The behaviour of the coarse-grained Mesos backend of Spark 3.5.
    ///
    /// All guarantees of the kernel hold, with several threads too. Refusal durations still come from
    /// [`RefuseDurations`](crate::config::RefuseDurations).
    pub const SPARK_3_5: Compatibility = Compatibility {
        merge_offers: false,
        replace_elsewhere: false,
        reserved_first: false,
        any_role: true,
        constraint_before_cap: true,
        rejections_count: true,
        idle_allowed: true,
    };

    /// Sets [`merge_offers`](Self::merge_offers).
    #[must_use]
    pub const fn with_merge_offers(self, merge_offers: bool) -> Compatibility {
        Compatibility { merge_offers, ..self }
    }

    /// Sets [`replace_elsewhere`](Self::replace_elsewhere).
    #[must_use]
    pub const fn with_replace_elsewhere(self, replace_elsewhere: bool) -> Compatibility {
        Compatibility { replace_elsewhere, ..self }
    }

    /// Sets [`reserved_first`](Self::reserved_first).
    #[must_use]
    pub const fn with_reserved_first(self, reserved_first: bool) -> Compatibility {
        Compatibility { reserved_first, ..self }
    }

    /// Sets [`any_role`](Self::any_role).
    #[must_use]
    pub const fn with_any_role(self, any_role: bool) -> Compatibility {
        Compatibility { any_role, ..self }
    }

    /// Sets [`constraint_before_cap`](Self::constraint_before_cap).
    #[must_use]
    pub const fn with_constraint_before_cap(self, constraint_before_cap: bool) -> Compatibility {
        Compatibility { constraint_before_cap, ..self }
    }

    /// Sets [`rejections_count`](Self::rejections_count).
    #[must_use]
    pub const fn with_rejections_count(self, rejections_count: bool) -> Compatibility {
        Compatibility { rejections_count, ..self }
    }

    /// Sets [`idle_allowed`](Self::idle_allowed).
    #[must_use]
    pub const fn with_idle_allowed(self, idle_allowed: bool) -> Compatibility {
        Compatibility { idle_allowed, ..self }
    }
}

impl Default for Compatibility {
    fn default() -> Compatibility {
        Compatibility::OFFERMILL
    }
}
