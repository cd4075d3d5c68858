//! What another scheduler does differently, as data: each field is read at one place.

/// How offers are looked at and used where schedulers differ. The default is [`Conduct::OFFERMILL`].
///
/// ```
/// use offermill::{Config, config::Conduct};
///
/// let config = Config::builder().conduct(Conduct::SPARK_3_5).build()?;
/// # Ok::<(), offermill::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Conduct {
    /// Offers of one agent and role in a batch are used together, and answered by one accept. Else each is used by
    /// itself.
    pub merge_offers: bool,
    /// An agent on which an executor failed comes last for a while, so that a replacement starts elsewhere. Else it has
    /// its turn like any other, unless it is excluded.
    pub replace_elsewhere: bool,
    /// Executors are cut from reserved resources first. Else from all of a kind in the order of the offer.
    pub reserved_first: bool,
    /// Resources reserved for any role may be used, whichever role they are offered to.
    pub any_role: bool,
    /// The constraint is looked at even if the core cap is reached. At that cap every unused offer that meets the
    /// constraint is refused for the cap, whatever else it lacks, even in the batch that reaches it; and the cap is
    /// told rather than the executor limit if a batch reaches both. Else what an offer lacks by itself is told first,
    /// and a batch that comes at the cap isn't looked at. A batch that comes at the executor limit is declined as a
    /// whole in either case.
    pub constraint_before_cap: bool,
    /// The core cap may be below the cores of one executor: then nothing is ever placed. Else that is an error.
    pub idle_allowed: bool,
}

impl Conduct {
    /// The kernel's own.
    pub const OFFERMILL: Conduct = Conduct {
        merge_offers: true,
        replace_elsewhere: true,
        reserved_first: true,
        any_role: false,
        constraint_before_cap: false,
        idle_allowed: false,
    };

    /// That of the coarse-grained Mesos backend of Spark 3.5.
    ///
    /// It keeps the kernel's guarantees, under threads too. How long offers are refused for stays
    /// [the settings'](crate::config::RefuseDurations).
    pub const SPARK_3_5: Conduct = Conduct {
        merge_offers: false,
        replace_elsewhere: false,
        reserved_first: false,
        any_role: true,
        constraint_before_cap: true,
        idle_allowed: true,
    };
}

impl Default for Conduct {
    fn default() -> Conduct {
        Conduct::OFFERMILL
    }
}
