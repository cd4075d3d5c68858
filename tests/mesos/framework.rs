//! A framework in this process: a kernel, an engine and the cluster manager for Mesos, with access to the kernel's
//! state.

use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use offermill::cluster::mesos::{MesosCluster, MesosConfig};
use offermill::config::{ExecutorCores, RefuseDurations, UnreachableRule};
use offermill::engine::cluster_manager::ClusterManager;
use offermill::engine::{Engine, EngineOptions, Notice, Observer};
use offermill::launch::CommandTemplate;
use offermill::resources::{Mebibytes, MilliCpus};
use offermill::{Config, ConfigBuilder, Error, IdScheme, Kernel, Snapshot, Timestamp};

/// A running framework.
#[derive(Debug)]
pub(crate) struct Framework {
    /// The engine.
    pub(crate) engine: Engine,
    /// The cluster manager.
    pub(crate) cluster: Arc<MesosCluster>,
    /// The kernel.
    pub(crate) kernel: Kernel,
    /// The notices of the engine.
    pub(crate) notices: Notices,
}

impl Framework {
    /// Starts a framework that wants `config.executor_limit` executors, each of which runs `script` in a shell.
    pub(crate) fn start(
        mesos: MesosConfig,
        config: Config,
        script: &str,
    ) -> Result<Framework, Error> {
        let argv = ["sh", "-c", script].map(str::to_owned).to_vec();
        Framework::launching(mesos, config, CommandTemplate::new(argv))
    }

    /// The same, with this command.
    pub(crate) fn launching(
        mesos: MesosConfig,
        config: Config,
        command: CommandTemplate,
    ) -> Result<Framework, Error> {
        let epoch = std::time::UNIX_EPOCH.elapsed().unwrap().as_millis();
        let ids = IdScheme::unique("test", u64::try_from(epoch).unwrap())?;
        let cluster = Arc::new(MesosCluster::new(mesos.for_kernel(&config))?);
        let kernel = Kernel::new(config, ids);
        let notices = Notices::default();
        let engine = Engine::start(
            kernel.clone(),
            Arc::clone(&cluster) as Arc<dyn ClusterManager>,
            Arc::new(command),
            EngineOptions::default(),
            Box::new(notices.clone()),
        )?;
        Ok(Framework { engine, cluster, kernel, notices })
    }

    /// A snapshot of the kernel.
    pub(crate) fn snapshot(&self) -> Snapshot {
        self.kernel.snapshot(self.engine.clock().now())
    }

    /// The cluster's id for the framework. Waits until there is one.
    #[track_caller]
    pub(crate) fn id(&self) -> String {
        self.notices.wait("registration", |notice| match notice {
            Notice::Registered { framework_id, .. } => Some(framework_id.clone()),
            _ => None,
        })
    }
}

/// Settings for many small executors, whose faults are noticed soon.
pub(crate) fn small_executors(limit: u32) -> ConfigBuilder {
    let soon = Duration::from_secs(1);
    let refuse = RefuseDurations { other: soon, reached_cap: soon, ..RefuseDurations::default() };
    let unreachable = UnreachableRule {
        release_after: Some(Duration::from_secs(2)),
        forget_after: Duration::from_secs(600),
    };
    Config::builder()
        .executor_cores(ExecutorCores::Fixed(MilliCpus::from_cores(1)))
        .executor_memory(Mebibytes::new(32))
        .memory_overhead(Some(Mebibytes::new(0)))
        .executor_limit(Some(limit))
        .exclusion(None)
        .unreachable(unreachable)
        .refuse_durations(refuse)
        .revive_interval(soon)
        .launch_timeout(Duration::from_secs(10))
}

/// The notices of an engine, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Notices(Arc<Heard>);

#[derive(Debug, Default)]
struct Heard {
    all: Mutex<Vec<(Timestamp, Notice)>>,
    more: Condvar,
}

impl Observer for Notices {
    fn notice(&mut self, at: Timestamp, notice: Notice) {
        self.0.all.lock().unwrap().push((at, notice));
        self.0.more.notify_all();
    }
}

impl Notices {
    /// Waits up to a minute for the first notice for which `find` returns a value.
    #[track_caller]
    pub(crate) fn wait<T>(&self, what: &str, find: impl Fn(&Notice) -> Option<T>) -> T {
        let within = Duration::from_secs(60);
        self.wait_for(within, &find).unwrap_or_else(|| panic!("no {what} in {:#?}", self.all()))
    }

    /// The same, with a timeout. Returns `None` if it passes.
    pub(crate) fn wait_for<T>(
        &self,
        within: Duration,
        find: impl Fn(&Notice) -> Option<T>,
    ) -> Option<T> {
        let give_up = Instant::now() + within;
        let mut all = self.0.all.lock().unwrap();
        let mut looked_at = 0;
        loop {
            if let Some(found) = all[looked_at..].iter().find_map(|(_, notice)| find(notice)) {
                return Some(found);
            }
            looked_at = all.len();
            let left = give_up.checked_duration_since(Instant::now())?;
            all = self.0.more.wait_timeout(all, left).unwrap().0;
        }
    }

    /// All notices so far.
    pub(crate) fn all(&self) -> Vec<(Timestamp, Notice)> {
        self.0.all.lock().unwrap().clone()
    }

    /// The number of notices so far for which `is_it` holds.
    pub(crate) fn count(&self, is_it: impl Fn(&Notice) -> bool) -> usize {
        self.0.all.lock().unwrap().iter().filter(|(_, notice)| is_it(notice)).count()
    }
}
