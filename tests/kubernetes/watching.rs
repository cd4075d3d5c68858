//! Watches that end, break, or can't be continued.

use offermill::TaskState;
use offermill::engine::cluster_manager::{Call, ClusterManager, Event};

use crate::eventually::eventually;
use crate::fake::{ApiServer, Watches};
use crate::framework::{Framework, PATIENCE, config};

/// Goal: a watch that ends or breaks is continued where it was, without another list. Method: watches that end as they
/// should, and in the middle of a line, while pods change.
#[test]
fn watches_are_continued() {
    let server = ApiServer::start();
    let framework = Framework::start(config(&server.url), 1);
    framework.launch(6);
    for round in 0..6 {
        server.state().cuts_lines = round % 2 == 1;
        framework.wait_state(&format!("etl-1-{round}.0"), TaskState::Running);
        server.end_watches();
        server.exit(&format!("etl-1-{round}-0"), 0);
        framework.wait_state(&format!("etl-1-{round}.0"), TaskState::Finished);
    }
    assert_eq!((server.count("LIST"), framework.epoch()), (1, 1));
    assert!(server.count("WATCH") > 4);
}

/// Goal: a watch whose version is forgotten is followed by a list, and what happened in between is found. Method:
/// during the gap one pod finishes, one is deleted, and one runs on.
#[test]
fn an_expired_watch_is_followed_by_a_list() {
    let server = ApiServer::start();
    let framework = Framework::start(config(&server.url), 1);
    framework.withhold_acknowledgements();
    framework.launch(3);
    for number in 0..3 {
        framework.wait_state(&format!("etl-1-{number}.0"), TaskState::Running);
    }
    server.silence();
    server.exit("etl-1-0-0", 0);
    server.remove("etl-1-1-0");
    server.compact();
    server.speak();
    framework.wait_epoch(2);
    framework.wait_state("etl-1-0.0", TaskState::Finished);
    framework.wait_state("etl-1-1.0", TaskState::Gone);
    assert_eq!(framework.states("etl-1-2.0").last(), Some(&TaskState::Running));
    let subscriptions: Vec<bool> = framework
        .events()
        .iter()
        .filter_map(|event| match event {
            Event::Registered { again, .. } => Some(*again),
            _ => None,
        })
        .collect();
    assert_eq!(subscriptions, [false, true]);
    framework.launch(1);
    framework.wait_state("etl-1-3.0", TaskState::Running);
}

/// Goal: a list of more than one page is complete. Method: 1200 pods of a former run, adopted, then found to be gone.
#[test]
fn long_lists_have_pages() {
    let server = ApiServer::start();
    {
        let first = Framework::start(
            config(&server.url).with_at_end(offermill::cluster::kubernetes::PodsAtEnd::Leave),
            1,
        );
        first.launch(1);
        first.wait_state("etl-1-0.0", TaskState::Running);
    }
    let pod = server.state().pods["etl-1-0-0"].clone();
    for number in 1..1200 {
        let mut pod = pod.clone();
        let name = format!("etl-1-{number}-0");
        pod["metadata"]["name"] = name.as_str().into();
        pod["metadata"]["uid"] = format!("copy-{number}").into();
        pod["metadata"]["labels"]["offermill/executor"] = format!("etl-1-{number}.0").into();
        server.state().pods.insert(name, pod);
    }
    let second = Framework::start(config(&server.url), 2);
    second.wait_epoch(1);
    let recovered = second.wait_event("adopted", |event| matches!(event, Event::Recovered { .. }));
    let Event::Recovered { executors, .. } = recovered else { unreachable!() };
    assert_eq!(executors.len(), 1200);
    assert_eq!(server.count("LIST"), 1 + 3);
}

/// Goal: a question about executors is answered for each. Method: one that runs, one that is unknown; then all.
#[test]
fn reconciliations_are_answered() {
    use offermill::engine::cluster_manager::ReconcileTask;
    let server = ApiServer::start();
    let framework = Framework::start(config(&server.url), 1);
    framework.launch(1);
    framework.wait_state("etl-1-0.0", TaskState::Running);
    let tasks = [ReconcileTask::new("etl-1-0.0", "n1"), ReconcileTask::new("etl-1-9.0", "n1")];
    framework.cluster.call(Call::Reconcile(&tasks)).unwrap();
    framework.wait_state("etl-1-9.0", TaskState::Gone);
    let running = || {
        let updates = framework.updates("etl-1-0.0");
        updates.iter().filter(|update| update.state == TaskState::Running).count()
    };
    assert_eq!(running(), 2);
    framework.cluster.call(Call::Reconcile(&[])).unwrap();
    eventually(PATIENCE, "an answer", || {
        if running() == 3 { Ok(()) } else { Err(format!("{}", running())) }
    });
}

/// Goal: a server that ends watches at once isn't flooded. Method: watches that end, and versions that are forgotten,
/// for some seconds; the pauses grow. Then what has changed meanwhile is found.
#[test]
fn brief_watches_are_few() {
    for watches in [Watches::Brief, Watches::Expired] {
        let server = ApiServer::start();
        let framework = Framework::start(config(&server.url), 1);
        framework.launch(1);
        framework.wait_state("etl-1-0.0", TaskState::Running);
        server.state().watches = watches;
        let before = (server.count("WATCH"), server.count("LIST"));
        server.end_watches();
        std::thread::sleep(std::time::Duration::from_secs(4));
        let watched = server.count("WATCH") - before.0;
        let listed = server.count("LIST") - before.1;
        assert!((1..=12).contains(&watched) && listed <= 12, "{watched} and {listed}");
        if watches == Watches::Brief {
            assert!(listed >= 1, "three watches have shown nothing");
        }
        server.exit("etl-1-0-0", 0);
        server.speak();
        framework.wait_state("etl-1-0.0", TaskState::Finished);
    }
}

/// Goal: a version that is forgotten isn't watched from again. Method: a watch that is answered 410 in its stream is
/// followed by a list, in the order of the requests.
#[test]
fn a_forgotten_version_is_not_watched_again() {
    let server = ApiServer::start();
    let framework = Framework::start(config(&server.url), 1);
    framework.launch(1);
    framework.wait_state("etl-1-0.0", TaskState::Running);
    let before = server.state().requests.len();
    server.compact();
    server.end_watches();
    framework.wait_epoch(2);
    let state = server.state();
    let reads = state.requests[before..].iter().map(|it| it.split(' ').next().unwrap_or_default());
    let reads: Vec<&str> = reads.filter(|verb| ["LIST", "WATCH"].contains(verb)).collect();
    assert_eq!(reads[..2], ["WATCH", "LIST"], "{reads:?}");
}

/// Goal: a pod isn't taken for missing because a list is older than it. Method: lists that needn't be up to date lack
/// the pod; the pods are listed again.
#[test]
fn a_list_shows_what_is_there() {
    let server = ApiServer::start();
    server.state().cache = Some(Default::default());
    let framework = Framework::start(config(&server.url), 1);
    framework.launch(1);
    framework.wait_state("etl-1-0.0", TaskState::Running);
    server.compact();
    server.end_watches();
    framework.wait_epoch(2);
    framework.launch(1);
    // One whose pod isn't created is replaced.
    framework.wait_running(2);
    assert_eq!(framework.states("etl-1-0.0").last(), Some(&TaskState::Running));
    assert_eq!(server.count("DELETE"), 0);
    assert_eq!(server.state().pods.len(), 2);
}

/// Goal: however long watches go on, nothing is listed again, and what happens is seen. Method: the sixty watches of
/// an hour, each of which ends as a server ends it, with a bookmark; executors end in the first, in the middle, after.
#[test]
fn a_steady_hour_has_one_list() {
    let server = ApiServer::start();
    server.state().sends_bookmarks = true;
    let framework = Framework::start(config(&server.url), 1);
    framework.launch(4);
    for number in 0..4 {
        framework.wait_state(&format!("etl-1-{number}.0"), TaskState::Running);
    }
    for round in 0..60 {
        let watched = server.count("WATCH");
        server.end_watches();
        eventually(PATIENCE, "the next watch", || {
            if server.count("WATCH") > watched { Ok(()) } else { Err(String::new()) }
        });
        if round % 29 == 0 {
            let number = round / 29;
            server.exit(&format!("etl-1-{number}-0"), 0);
            framework.wait_state(&format!("etl-1-{number}.0"), TaskState::Finished);
        }
    }
    server.exit("etl-1-3-0", 0);
    framework.wait_state("etl-1-3.0", TaskState::Finished);
    assert_eq!((server.count("LIST"), framework.epoch()), (1, 1));
}

/// Goal: a token that expires during a run costs no executor: that is said, nothing is created or deleted meanwhile,
/// and with another token the run goes on and learns of what has happened. Method: all requests are answered 401 for
/// longer than the lease is valid, while an executor ends and another one is wanted.
#[test]
fn a_token_expires() {
    let server = ApiServer::start();
    let framework = Framework::start(config(&server.url), 1);
    framework.launch(2);
    framework.wait_state("etl-1-0.0", TaskState::Running);
    framework.wait_state("etl-1-1.0", TaskState::Running);
    server.state().failing = vec![("", 401)];
    server.end_watches();
    let begins = |event: &Event, with: &str| matches!(event, Event::CallFailed { why } if why.starts_with(with));
    framework.wait_event("that the watch fails", |event| begins(event, "watch: "));
    framework.wait_event("that the lease can't be renewed", |event| {
        begins(event, "renewal of the lease: ")
    });
    server.exit("etl-1-0-0", 0);
    framework.launch(1);
    std::thread::sleep(std::time::Duration::from_secs(1));
    assert_eq!((server.count("POST /api/v1/namespaces/jobs/pods"), server.count("DELETE")), (2, 0));
    server.state().failing.clear();
    framework.wait_state("etl-1-0.0", TaskState::Finished);
    framework.wait_state("etl-1-2.0", TaskState::Running);
    assert_eq!(framework.states("etl-1-1.0").last(), Some(&TaskState::Running));
}
