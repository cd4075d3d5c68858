//! The rules of the protocol, one at a time.

use std::time::Duration;

use super::{SESSION, UPDATES, at, key, launch, worker};
use crate::cluster::standalone::protocol::{
    EXECUTORS_MAX, ExecutorKey, LaunchHosting, MESSAGE_BYTES_MAX, ReportedState, TERM_STEP_MAX,
    WorkerCall, WorkerEvent, frame_call,
};
use crate::cluster::standalone::worker::state::{LEAVE_WAIT, WorkerFacts, WorkerState};
use crate::cluster::standalone::worker::step::{ExitReason, WorkerAction, WorkerInput};

fn event(state: &mut WorkerState, event: WorkerEvent, seconds: u64) -> Vec<WorkerAction> {
    state.handle(WorkerInput::Event(event), at(seconds))
}

fn register(state: &mut WorkerState, term: u64, seconds: u64) -> Vec<WorkerAction> {
    let _call = state.subscribe(at(seconds));
    event(state, WorkerEvent::Subscribed { id: "w-1".to_owned(), term, heartbeat: None }, seconds)
}

/// The states of the updates among the messages that are sent.
fn sent(actions: &[WorkerAction]) -> Vec<ReportedState> {
    let states = actions.iter().filter_map(|action| match action {
        WorkerAction::Send(WorkerCall::Update(update)) => Some(update.state),
        _ => None,
    });
    states.collect()
}

fn starts(actions: &[WorkerAction]) -> usize {
    actions.iter().filter(|action| matches!(action, WorkerAction::Start(_))).count()
}

fn disconnects(actions: &[WorkerAction]) -> bool {
    actions.iter().any(|action| matches!(action, WorkerAction::Disconnect { .. }))
}

/// What the next registration lists: the states of the executors, and those of the updates.
fn listed(state: &mut WorkerState, seconds: u64) -> (Vec<ReportedState>, Vec<ReportedState>) {
    let WorkerCall::Subscribe(call) = state.subscribe(at(seconds)) else {
        panic!("another message")
    };
    let held = call.executors.iter().map(|held| held.state).collect();
    (held, call.unacknowledged.iter().map(|update| update.state).collect())
}

/// Goal: a lower term is refused wherever it comes, and a higher one is remembered before anything of it is obeyed.
/// Method: registrations and each command with terms below, at and above.
#[test]
fn lower_terms_are_refused() {
    let mut state = worker(8);
    let actions = register(&mut state, 5, 0);
    assert!(matches!(&actions[0], WorkerAction::Persist { id, term: 5 } if id == "w-1"));
    event(&mut state, launch(key("f", "a"), 1, 5), 0);
    let one = key("f", "a");
    let grace = 0;
    for old in [
        launch(key("f", "b"), 2, 4),
        WorkerEvent::Kill { key: one.clone(), term: 4, grace },
        WorkerEvent::ShutdownFramework { framework: "f".to_owned(), term: 4 },
        WorkerEvent::Drain { term: 4, grace },
        WorkerEvent::Subscribed { id: "w-1".to_owned(), term: 5, heartbeat: None },
    ] {
        register(&mut state, 5, 1);
        let actions = event(&mut state, old.clone(), 1);
        let is_refused = matches!(&actions[..], [WorkerAction::Disconnect { .. }]);
        assert!(is_refused && !state.is_subscribed(), "{old:?}: {actions:?}");
        // Nothing that comes over the same connection is obeyed any more.
        assert_eq!(event(&mut state, launch(key("f", "c"), 3, 5), 1), []);
    }
    assert!(disconnects(&register(&mut state, 4, 2)));
    assert_eq!(listed(&mut state, 3).0, [ReportedState::Starting]);
    register(&mut state, 5, 3);
    let actions = event(&mut state, launch(key("f", "d"), 1, 6), 3);
    assert!(matches!(actions[0], WorkerAction::Persist { term: 6, .. }), "{actions:?}");
    assert_eq!(starts(&actions), 1);
    assert!(disconnects(&register(&mut state, 5, 4)));
}

/// Goal: a launch is done once. Method: the same sequence number again, a lower one, the same executor under another
/// number, and again over the next connection.
#[test]
fn a_launch_is_done_once() {
    let mut state = worker(8);
    register(&mut state, 1, 0);
    assert_eq!(starts(&event(&mut state, launch(key("f", "a"), 2, 1), 0)), 1);
    for again in [
        launch(key("f", "a"), 2, 1),
        launch(key("f", "b"), 2, 1),
        launch(key("f", "b"), 1, 1),
        launch(key("f", "a"), 3, 1),
    ] {
        assert_eq!(event(&mut state, again, 0), []);
    }
    state.handle(WorkerInput::Disconnected, at(1));
    register(&mut state, 1, 1);
    assert_eq!(starts(&event(&mut state, launch(key("f", "a"), 1, 1), 1)), 0);
}

/// Goal: updates are kept until they are acknowledged, sent again when that takes too long, and listed in each
/// registration. Method: an executor's life with acknowledgements lost, late and in another order.
#[test]
fn updates_are_kept_until_they_are_acknowledged() {
    let mut state = worker(8);
    register(&mut state, 1, 0);
    let one = key("f", "a");
    let first = event(&mut state, launch(one.clone(), 1, 1), 0);
    assert_eq!(sent(&first), [ReportedState::Starting]);
    let running = || WorkerInput::Running {
        key: one.clone(),
        pid: Some(7),
        message: String::new(),
        folder: None,
    };
    assert_eq!(sent(&state.handle(running(), at(1))), [ReportedState::Running]);
    assert_eq!(sent(&state.handle(WorkerInput::Tick, at(9))), []);
    assert_eq!(state.next_tick(), Some(Duration::from_secs(10)));
    assert_eq!(sent(&state.handle(WorkerInput::Tick, at(10))), [ReportedState::Starting]);
    state.handle(WorkerInput::Disconnected, at(11));
    let message = || "x".to_owned();
    let end =
        |state| WorkerInput::Ended { key: one.clone(), state, message: message(), is_lost: false };
    assert_eq!(sent(&state.handle(end(ReportedState::Failed), at(12))), []);
    // An end is final.
    assert_eq!(state.handle(end(ReportedState::Finished), at(12)), []);
    let all = [ReportedState::Starting, ReportedState::Running, ReportedState::Failed];
    assert_eq!(listed(&mut state, 13), (vec![ReportedState::Failed], all.to_vec()));
    let id = || "w-1".to_owned();
    // What was listed isn't sent at once again.
    let subscribed = WorkerEvent::Subscribed { id: id(), term: 1, heartbeat: None };
    assert_eq!(sent(&event(&mut state, subscribed, 13)), []);
    let uuid = |number: u64| format!("{UPDATES:016x}{number:016x}");
    for (number, left) in [(3, 2), (1, 1), (9, 1)] {
        event(&mut state, WorkerEvent::Ack { key: one.clone(), uuid: uuid(number) }, 14);
        let (held, updates) = listed(&mut state, 14);
        assert_eq!((held.len(), updates.len()), (1, left));
        event(&mut state, WorkerEvent::Subscribed { id: id(), term: 1, heartbeat: None }, 14);
    }
    event(&mut state, WorkerEvent::Ack { key: one.clone(), uuid: uuid(2) }, 15);
    assert_eq!(listed(&mut state, 15), (Vec::new(), Vec::new()));
}

/// Goal: a framework that was shut down runs nothing, and others go on. Method: its executors are asked to end with
/// their own grace; a launch that comes late is reported as dropped; under the next term it is taken again.
#[test]
fn a_framework_is_shut_down() {
    let mut state = worker(8);
    register(&mut state, 1, 0);
    for (sequence, (framework, executor)) in [("f", "a"), ("g", "a")].into_iter().enumerate() {
        event(&mut state, launch(key(framework, executor), sequence as u64 + 1, 1), 0);
    }
    let shutdown = WorkerEvent::ShutdownFramework { framework: "f".to_owned(), term: 1 };
    let actions = event(&mut state, shutdown, 1);
    let grace = Duration::from_secs(1);
    assert!(actions.contains(&WorkerAction::End { key: key("f", "a"), grace }), "{actions:?}");
    assert_eq!(sent(&actions), [ReportedState::Killing]);
    let actions = event(&mut state, launch(key("f", "b"), 3, 1), 1);
    assert_eq!((starts(&actions), sent(&actions)), (0, vec![ReportedState::Dropped]));
    assert_eq!(starts(&event(&mut state, launch(key("f", "c"), 4, 2), 1)), 1);
}

/// Goal: a launch that the worker can't do is reported with the reason, and the others are done. Method: more cores
/// than there are, another user, and the worker's own user.
#[test]
fn launches_that_cannot_be_done_are_reported() {
    let mut state = worker(2);
    register(&mut state, 1, 0);
    for (sequence, (user, cores, expected)) in [
        (None, 3, ReportedState::Dropped),
        (Some("root"), 1, ReportedState::Failed),
        (Some("me"), 1, ReportedState::Starting),
        (None, 1, ReportedState::Starting),
        (None, 1, ReportedState::Dropped),
    ]
    .into_iter()
    .enumerate()
    {
        let sequence = sequence as u64 + 1;
        let WorkerEvent::Launch(mut it) = launch(key("f", &sequence.to_string()), sequence, 1)
        else {
            panic!("another message")
        };
        it.command.user = user.map(str::to_owned);
        it.resources = super::resources(cores);
        let actions = event(&mut state, WorkerEvent::Launch(it), 0);
        assert_eq!(sent(&actions), [expected], "{sequence}");
    }
}

/// Goal: a worker that is told to takes launches for any user. Method: another user.
#[test]
fn any_user_may_be_taken() {
    let facts = WorkerFacts { takes_any_user: true, ..super::facts(2) };
    let mut state = WorkerState::new(facts, None, 0);
    register(&mut state, 1, 0);
    let WorkerEvent::Launch(mut it) = launch(key("f", "a"), 1, 1) else {
        panic!("another message")
    };
    it.command.user = Some("root".to_owned());
    let actions = event(&mut state, WorkerEvent::Launch(it), 0);
    assert_eq!(sent(&actions), [ReportedState::Starting]);
}

/// Goal: a worker that is drained ends its executors, tells the master, and leaves once all is acknowledged, or after a
/// while. Method: a drain; acknowledgements that come, and that don't.
#[test]
fn a_drained_worker_leaves() {
    for is_acknowledged in [true, false] {
        let mut state = worker(2);
        register(&mut state, 1, 0);
        let one = key("f", "a");
        event(&mut state, launch(one.clone(), 1, 1), 0);
        let actions = event(&mut state, WorkerEvent::Drain { term: 1, grace: 3000 }, 1);
        let grace = Duration::from_secs(3);
        assert!(actions.contains(&WorkerAction::End { key: one.clone(), grace }));
        let late = event(&mut state, launch(key("f", "b"), 2, 1), 1);
        assert_eq!(sent(&late), [ReportedState::Dropped]);
        let ended = WorkerInput::Ended {
            key: one.clone(),
            state: ReportedState::Killed,
            message: String::new(),
            is_lost: false,
        };
        let actions = state.handle(ended, at(2));
        assert_eq!(sent(&actions), [ReportedState::Killed]);
        let leaves = [WorkerAction::Send(WorkerCall::Leave), WorkerAction::Exit(ExitReason::Left)];
        if is_acknowledged {
            let mut last = Vec::new();
            for number in 1..=4_u64 {
                let uuid = format!("{UPDATES:016x}{number:016x}");
                for name in ["a", "b"] {
                    let ack = WorkerEvent::Ack { key: key("f", name), uuid: uuid.clone() };
                    last.extend(event(&mut state, ack, 3));
                }
            }
            assert_eq!(last, leaves);
        } else {
            let by = at(2).since_start + LEAVE_WAIT;
            assert_eq!(state.next_tick(), Some(by));
            let actions = state.handle(WorkerInput::Tick, at(by.as_secs()));
            assert_eq!(actions, leaves);
        }
    }
}

/// Goal: a refusal for now is tried again, and one for good ends the worker. Method: both.
#[test]
fn refusals_are_told_apart() {
    let refused = |may_retry| WorkerEvent::Refused { why: "no".to_owned(), may_retry };
    let mut state = worker(1);
    let _call = state.subscribe(at(0));
    assert!(disconnects(&event(&mut state, refused(true), 0)));
    let _call = state.subscribe(at(1));
    let reason = ExitReason::Refused { why: "no".to_owned() };
    assert_eq!(event(&mut state, refused(false), 1), [WorkerAction::Exit(reason)]);
}

/// Goal: a term that no true master can have doesn't lock the worker out. Method: a registration and a command with a
/// term beyond the step, and then the true master.
#[test]
fn a_term_rises_by_steps() {
    let mut state = worker(8);
    register(&mut state, 5, 0);
    for term in [5 + TERM_STEP_MAX + 1, u64::MAX] {
        assert!(disconnects(&event(&mut state, launch(key("f", "a"), 1, term), 0)));
        assert!(disconnects(&register(&mut state, term, 1)));
        assert!(!disconnects(&register(&mut state, 5, 2)), "{term} was remembered");
    }
    assert!(!disconnects(&register(&mut state, 5 + TERM_STEP_MAX, 3)));
}

/// Goal: what frameworks are told doesn't say the session, with which the worker's connection can be taken over.
/// Method: the number of an update.
#[test]
fn updates_do_not_tell_the_session() {
    let mut state = worker(8);
    register(&mut state, 1, 0);
    let actions = event(&mut state, launch(key("f", "a"), 1, 1), 0);
    let uuids: Vec<&str> = actions
        .iter()
        .filter_map(|action| match action {
            WorkerAction::Send(WorkerCall::Update(update)) => Some(update.uuid.as_str()),
            _ => None,
        })
        .collect();
    assert!(uuids.len() == 1 && !uuids[0].contains(&format!("{SESSION:016x}")), "{uuids:?}");
}

/// Goal: a worker that holds as much as it may can still register. Method: launches up to the bound and beyond, with
/// the longest names that can be those of folders, all their updates unacknowledged; one more is dropped without the
/// connection's end, and the registration fits in a message.
#[test]
fn a_full_worker_can_register() {
    let mut state = worker(8);
    register(&mut state, 1, 0);
    let name = |number: usize| format!("{number:0>4}{}", "\"".repeat(251));
    for number in 1..=EXECUTORS_MAX {
        let one = key("c-1-F1", &name(number));
        let actions = event(&mut state, launch(one.clone(), number as u64, 1), 0);
        assert_eq!(starts(&actions), 1);
        let running = WorkerInput::Running {
            key: one.clone(),
            pid: Some(1),
            message: String::new(),
            folder: None,
        };
        state.handle(running, at(0));
        event(&mut state, WorkerEvent::Kill { key: one.clone(), term: 1, grace: 0 }, 0);
        let message = "\u{1}".repeat(4096);
        let failed = ReportedState::Failed;
        let end = WorkerInput::Ended { key: one, state: failed, message, is_lost: false };
        state.handle(end, at(0));
    }
    let last = EXECUTORS_MAX as u64 + 1;
    let actions = event(&mut state, launch(key("c-1-F1", "last"), last, 1), 0);
    assert_eq!((starts(&actions), sent(&actions)), (0, vec![ReportedState::Dropped]));
    assert!(state.is_subscribed());
    let WorkerCall::Subscribe(mut call) = state.subscribe(at(1)) else { panic!("another message") };
    assert_eq!(
        (call.executors.len(), call.unacknowledged.len()),
        (EXECUTORS_MAX, 4 * EXECUTORS_MAX)
    );
    // As the worker does if it must.
    call.unacknowledged.iter_mut().for_each(|update| update.message = None);
    let call = WorkerCall::Subscribe(call);
    assert!(call.check().is_ok() && frame_call(&call).len() < MESSAGE_BYTES_MAX);
}

/// Goal: the master of a worker that leaves always knows. Method: a request to leave while the worker is registered,
/// while it registers, and before that; what it sends then, and what its registrations say.
#[test]
fn a_worker_says_that_it_leaves() {
    let leave = || WorkerInput::Leave { grace: Duration::from_secs(60) };
    let says = |actions: &[WorkerAction]| {
        actions.iter().filter(|it| **it == WorkerAction::Send(WorkerCall::Leaving)).count()
    };
    let is_listed = |state: &mut WorkerState| {
        let WorkerCall::Subscribe(call) = state.subscribe(at(9)) else { panic!("another message") };
        call.leaving
    };
    let running = || {
        let mut state = worker(8);
        register(&mut state, 1, 0);
        event(&mut state, launch(key("f", "a"), 1, 1), 0);
        state
    };
    let mut registered = running();
    assert!(!is_listed(&mut registered));
    register(&mut registered, 1, 1);
    let actions = registered.handle(leave(), at(2));
    assert_eq!(actions.first(), Some(&WorkerAction::Send(WorkerCall::Leaving)));
    assert_eq!(says(&registered.handle(leave(), at(3))), 0);
    assert!(is_listed(&mut registered));
    let mut registering = running();
    let _call = registering.subscribe(at(1));
    assert_eq!(says(&registering.handle(leave(), at(2))), 0);
    let subscribed = WorkerEvent::Subscribed { id: "w-1".to_owned(), term: 1, heartbeat: None };
    assert_eq!(says(&event(&mut registering, subscribed, 3)), 1);
    let mut disconnected = running();
    disconnected.handle(WorkerInput::Disconnected, at(1));
    assert_eq!(says(&disconnected.handle(leave(), at(2))), 0);
    assert!(is_listed(&mut disconnected));
}

/// Goal: a task is started in a host that is there and takes tasks, and is dropped otherwise; its report names the
/// host; a registration says that the worker has hosts, and what was lost with one. Method: tasks before the host,
/// in it, of another framework, in a task, and while the host ends.
#[test]
fn tasks_start_in_hosts_that_are_there() {
    let mut state = worker(64);
    let WorkerCall::Subscribe(said) = state.subscribe(at(0)) else { panic!("another message") };
    assert!(said.has_hosts);
    register(&mut state, 1, 0);
    let mut sequence = 0;
    let mut launched = |state: &mut WorkerState, framework: &str, id: &str, hosting| {
        sequence += 1;
        let WorkerEvent::Launch(mut launch) = launch(key(framework, id), sequence, 1) else {
            panic!("another event")
        };
        launch.hosting = hosting;
        let actions = event(state, WorkerEvent::Launch(launch), 0);
        let mut updates = actions.iter().filter_map(|action| match action {
            WorkerAction::Send(WorkerCall::Update(update)) => Some(update.clone()),
            _ => None,
        });
        let update = updates.next_back().unwrap();
        assert_eq!(starts(&actions), usize::from(update.state == ReportedState::Starting));
        (update.state, update.host)
    };
    let in_host = |host: &str| LaunchHosting::In(host.to_owned());
    let host = || Some("h".to_owned());
    let dropped = (ReportedState::Dropped, host());
    let starting = (ReportedState::Starting, host());
    assert_eq!(launched(&mut state, "f", "early", in_host("h")), dropped);
    let alone = (ReportedState::Starting, None);
    assert_eq!(launched(&mut state, "f", "h", LaunchHosting::Host), alone);
    assert_eq!(launched(&mut state, "f", "a", in_host("h")), starting);
    assert_eq!(launched(&mut state, "g", "a", in_host("h")), dropped);
    assert_eq!(launched(&mut state, "f", "b", in_host("a")).0, ReportedState::Dropped);
    let folder = Some("/work/a".to_owned());
    let runs = |id: &str, folder| WorkerInput::Running {
        key: key("f", id),
        pid: Some(7),
        message: String::new(),
        folder,
    };
    state.handle(runs("h", None), at(1));
    state.handle(runs("a", folder.clone()), at(1));
    assert_eq!(launched(&mut state, "f", "c", in_host("h")), starting);
    let kill = WorkerEvent::Kill { key: key("f", "h"), term: 1, grace: 1000 };
    event(&mut state, kill, 2);
    assert_eq!(launched(&mut state, "f", "d", in_host("h")), dropped);
    for (id, is_lost) in [("a", true), ("c", false)] {
        let (key, message) = (key("f", id), "x".to_owned());
        state.handle(
            WorkerInput::Ended { key, state: ReportedState::Failed, message, is_lost },
            at(3),
        );
    }
    let WorkerCall::Subscribe(said) = state.subscribe(at(4)) else { panic!("another message") };
    let lost: Vec<&str> =
        said.executors.iter().filter(|held| held.is_lost).map(|held| &*held.key.executor).collect();
    assert_eq!(lost, ["a"]);
    let told = said.unacknowledged.iter().filter(|update| update.key == key("f", "a"));
    let told: Vec<_> =
        told.map(|it| (it.state, it.is_lost, it.folder.clone(), it.host.clone())).collect();
    let expected = [
        (ReportedState::Starting, false, None),
        (ReportedState::Running, false, folder),
        (ReportedState::Failed, true, None),
    ];
    assert_eq!(told, expected.map(|(state, lost, folder)| (state, lost, folder, host())));
}

/// Goal: that the machine has nothing left for an executor is told with its end, once. Method: an executor that isn't
/// started for that, told twice.
#[test]
fn exhausted_machines_are_told() {
    let mut state = worker(8);
    register(&mut state, 1, 0);
    let one = key("f", "a");
    event(&mut state, launch(one.clone(), 1, 1), 0);
    for expected in [&[ReportedState::Failed][..], &[]] {
        let exhausted = WorkerInput::Exhausted { key: one.clone(), message: "full".to_owned() };
        assert_eq!(sent(&state.handle(exhausted, at(1))), expected);
    }
    let WorkerCall::Subscribe(said) = state.subscribe(at(2)) else { panic!("another message") };
    let told: Vec<_> =
        said.unacknowledged.iter().map(|update| (update.state, update.is_exhausted)).collect();
    assert_eq!(told, [(ReportedState::Starting, false), (ReportedState::Failed, true)]);
}

/// Goal: updates are told in the order in which they came, whatever the executors are called: a host runs before its
/// tasks end with it. Method: a host and a task whose name comes first, without a connection; at the next registration,
/// and again when no acknowledgement comes.
#[test]
fn updates_keep_their_order() {
    let mut state = worker(8);
    register(&mut state, 1, 0);
    let (host, task) = (key("f", "9.9"), key("f", "10.10"));
    event(&mut state, launch(host.clone(), 1, 1), 0);
    event(&mut state, launch(task.clone(), 2, 1), 0);
    let runs = |key: &ExecutorKey| WorkerInput::Running {
        key: key.clone(),
        pid: Some(7),
        message: String::new(),
        folder: None,
    };
    state.handle(runs(&host), at(1));
    for key in [&task, &host] {
        let ended = WorkerInput::Ended {
            key: key.clone(),
            state: ReportedState::Failed,
            message: String::new(),
            is_lost: false,
        };
        state.handle(ended, at(2));
    }
    use ReportedState::{Failed, Running, Starting};
    let expected = [Starting, Starting, Running, Failed, Failed];
    assert_eq!(listed(&mut state, 3).1, expected);
    event(
        &mut state,
        WorkerEvent::Subscribed { id: "w-1".to_owned(), term: 1, heartbeat: None },
        3,
    );
    assert_eq!(sent(&state.handle(WorkerInput::Tick, at(1000))), expected);
}
