//! A whole framework: kernel, engine and manager.

use std::sync::Arc;
use std::time::Duration;

use offermill::cluster::kubernetes::KubernetesCluster;
use offermill::engine::{Engine, EngineOptions, Unobserved};
use offermill::launch::CommandTemplate;
use offermill::{IdScheme, Kernel, Timestamp};

use crate::eventually::eventually;
use crate::fake::ApiServer;
use crate::framework::{PATIENCE, config, settings};

/// Goal: the engine keeps as many pods as executors are wanted, binds them to their nodes, replaces what fails, and
/// ends all. Method: three executors, of which one fails; the limit is never exceeded.
#[test]
fn an_engine_keeps_its_executors() {
    let server = ApiServer::start();
    let settings = settings(3);
    let kubernetes = config(&server.url).for_kernel(&settings).unwrap();
    let cluster = Arc::new(KubernetesCluster::new(kubernetes).unwrap());
    let argv = ["worker", "--on={{HOSTNAME}}"].map(str::to_owned).to_vec();
    let kernel = Kernel::new(settings, IdScheme::unique("etl", 1).unwrap());
    let worker = Arc::new(CommandTemplate::new(argv));
    let options = EngineOptions::default();
    let engine = Engine::start(
        kernel,
        Arc::clone(&cluster) as Arc<_>,
        worker,
        options,
        Box::new(Unobserved),
    )
    .unwrap();
    let wait_created = |count: usize| {
        eventually(PATIENCE, &format!("{count} pods were created"), || {
            let state = server.state();
            assert!(state.alive() <= 3, "the limit");
            let created = state.created.len();
            if created == count { Ok(()) } else { Err(format!("{created}")) }
        });
    };
    wait_created(3);
    let container = server.state().created[0]["spec"]["containers"][0].clone();
    assert_eq!(container["command"][1], "--on=$(OFFERMILL_HOSTNAME)");
    assert_eq!(container["resources"]["requests"]["memory"], "1408Mi");
    let name = server.state().pods.keys().next().unwrap().clone();
    eventually(PATIENCE, "it runs on n1", || {
        let agents = engine.kernel().snapshot(Timestamp::ORIGIN).agents;
        if format!("{agents:?}").contains("n1") { Ok(()) } else { Err(format!("{agents:?}")) }
    });
    server.exit(&name, 3);
    wait_created(4);
    eventually(PATIENCE, "what has failed is deleted", || {
        let pods: Vec<String> = server.state().pods.keys().cloned().collect();
        if pods.len() == 3 && !pods.contains(&name) { Ok(()) } else { Err(format!("{pods:?}")) }
    });
    let shutdown = engine.shutdown(Duration::from_secs(20));
    assert!(shutdown.drained, "{shutdown:?}");
    assert!(server.state().pods.is_empty() && server.state().leases.is_empty());
}

/// Goal: a new subscription begins with permits, whatever the former one ended with. Method: an engine at its limit
/// suppresses permits; the pods are listed anew, twice; then an executor ends each time and must be replaced.
#[test]
fn a_list_ends_a_suppression() {
    let server = ApiServer::start();
    let settings = settings(2);
    let kubernetes = config(&server.url).for_kernel(&settings).unwrap();
    let cluster = Arc::new(KubernetesCluster::new(kubernetes).unwrap());
    let kernel = Kernel::new(settings, IdScheme::unique("etl", 1).unwrap());
    let worker = Arc::new(CommandTemplate::new(vec!["worker".to_owned()]));
    let options = EngineOptions::default();
    let engine = Engine::start(kernel, cluster, worker, options, Box::new(Unobserved)).unwrap();
    for round in 0..3 {
        eventually(PATIENCE, &format!("replacements, round {round}"), || {
            let state = server.state();
            assert!(state.alive() <= 2, "the limit");
            if state.alive() == 2 { Ok(()) } else { Err(format!("{}", state.alive())) }
        });
        let lists = server.count("LIST");
        server.compact();
        server.end_watches();
        eventually(PATIENCE, "another list", || {
            if server.count("LIST") > lists { Ok(()) } else { Err(String::new()) }
        });
        let names: Vec<String> = server.state().pods.keys().cloned().collect();
        names.iter().for_each(|name| server.exit(name, 0));
    }
    assert!(engine.shutdown(Duration::from_secs(20)).drained);
}
