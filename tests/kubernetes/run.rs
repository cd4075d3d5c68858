//! A whole framework: kernel, engine and manager.

use std::sync::Arc;
use std::time::Duration;

use offermill::cluster::kubernetes::{KubernetesCluster, KubernetesConfig};
use offermill::engine::{Engine, EngineOptions, Unobserved};
use offermill::launch::CommandTemplate;
use offermill::{Config, IdScheme, Kernel, Phase};

use crate::eventually::eventually;

/// A running framework.
pub(crate) struct Run {
    pub(crate) engine: Engine,
    pub(crate) cluster: Arc<KubernetesCluster>,
}

impl Run {
    /// Starts a framework with these settings; `number` is part of the ids of its executors. Executors that finish
    /// aren't replaced if `counts_down`.
    pub(crate) fn start(
        kubernetes: KubernetesConfig,
        settings: Config,
        number: u64,
        counts_down: bool,
    ) -> Run {
        let ids = IdScheme::unique(&kubernetes.name, number).unwrap();
        let kubernetes = kubernetes.for_kernel(&settings).unwrap();
        let cluster = Arc::new(KubernetesCluster::new(kubernetes).unwrap());
        let argv = ["worker", "--on={{HOSTNAME}}"].map(str::to_owned).to_vec();
        let worker = Arc::new(CommandTemplate::new(argv));
        let mut options = EngineOptions::default();
        options.finished_count_down = counts_down;
        let manager = Arc::clone(&cluster) as Arc<_>;
        let kernel = Kernel::new(settings, ids);
        let engine = Engine::start(kernel, manager, worker, options, Box::new(Unobserved)).unwrap();
        Run { engine, cluster }
    }

    /// The ids of the executors in this phase, each with its agent.
    pub(crate) fn executors(&self, phase: Phase) -> Vec<(String, String)> {
        let kernel = self.engine.kernel();
        let snapshot = kernel.snapshot(self.engine.clock().now());
        let those = snapshot.executors.iter().filter(|it| it.phase == phase);
        those.map(|it| (kernel.executor_name(it.id).to_string(), it.agent_id.to_string())).collect()
    }

    /// Waits until `count` executors run. Returns the ids, each with its agent.
    #[track_caller]
    pub(crate) fn wait_running(&self, count: usize, within: Duration) -> Vec<(String, String)> {
        eventually(within, &format!("{count} executors run"), || {
            let running = self.executors(Phase::Running);
            if running.len() == count { Ok(running) } else { Err(format!("{running:?}")) }
        })
    }
}
