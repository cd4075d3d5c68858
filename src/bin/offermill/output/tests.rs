//! Output for people, with foreign text that would control a terminal.

use std::collections::HashSet;
use std::time::Duration;

use offermill::config::ExecutorCores;
use offermill::engine::{Clock, Notice, PlacedExecutor};
use offermill::resources::{ExecutorResources, Mebibytes, MilliCpus};
use offermill::{
    Change, Config, Decisions, Fate, IdScheme, Kernel, Offer, OfferCounts, Resource, TaskState,
    Timestamp, UpdateReason,
};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::exit::ExitStatus;
use crate::model::cluster_use::ClusterUse;
use crate::model::end_reason::EndReason;
use crate::model::event::{RunEvent, TimedEvent};
use crate::model::reply::{CommandAnswer, ControlReply};
use crate::model::state::RunState;
use crate::model::target::{OnExit, SandboxPlace};
use crate::model::unended::UnendedFate;
use crate::model::waiting::{Stall, StartDelays};
use crate::output::lines;
use crate::output::sentence::end_sentence;
use crate::output::summary::{self, Summary};

/// Text with many control, invisible and wide characters.
fn foreign() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "(\\PC|\\pC|[\\x00-\\xa0]){0,30}",
        1 => Just("\u{1b}]0;PWNED\u{7}\u{1b}[2J\r\n\u{9b}31m\u{202e}名前".to_owned()),
    ]
}

/// A kernel that has placed an executor on an agent with this id and host name, and has declined another offer of it.
fn kernel(agent_id: &str, host: &str) -> (Kernel, PlacedExecutor) {
    let config = Config::builder()
        .executor_cores(ExecutorCores::Fixed(MilliCpus::from_cores(1)))
        .executor_memory(Mebibytes::new(512))
        .executor_limit(Some(2));
    let kernel = Kernel::new(config.build().unwrap(), IdScheme::unique("etl", 1).unwrap());
    kernel.registered();
    let mut handler = kernel.handler();
    let mut decisions = Decisions::new();
    let sizes = [(1.0, 2000.0), (0.5, 2000.0)];
    let mut placed = None;
    for (cores, memory) in sizes {
        let resources = [Resource::scalar("cpus", cores), Resource::scalar("mem", memory)];
        let offers = [Offer::new("O", agent_id, host, &resources, &[])];
        handler.resource_offers(&offers, Timestamp::ORIGIN, &mut decisions);
        placed = placed.or(decisions.accepts().flat_map(|it| it.executors).map(|it| it.id).next());
    }
    let placed = PlacedExecutor {
        id: placed.unwrap(),
        executor: host.to_owned(),
        agent_id: agent_id.to_owned(),
        hostname: host.to_owned(),
        resources: ExecutorResources {
            cores: MilliCpus::from_cores(1),
            memory: Mebibytes::new(512),
            ..ExecutorResources::default()
        },
        tag: None,
    };
    (kernel, placed)
}

fn notices(texts: &[String], placed: PlacedExecutor) -> Vec<Notice> {
    let [a, b, ..] = texts else { panic!("two texts at least") };
    let executor = placed.executor.clone();
    let agent_id = placed.agent_id.clone();
    let updated = |state, change, message: &String| Notice::Updated {
        executor: executor.clone(),
        tag: None,
        state,
        change,
        message: message.clone(),
        reported_at: None,
        reason: UpdateReason::Other,
        process: None,
    };
    let why = || a.clone();
    vec![
        Notice::Registered { framework_id: a.clone(), again: false },
        Notice::Placed(placed.clone()),
        updated(TaskState::Running, Change::Running, a),
        updated(TaskState::Unreachable, Change::Unreachable, b),
        updated(TaskState::Running, Change::Returned, a),
        updated(TaskState::Killing, Change::Nothing, b),
        updated(TaskState::Failed, Change::Ended(Fate::Failed), a),
        Notice::AgentExcluded { agent_id: agent_id.clone(), until: Timestamp::MAX },
        Notice::AgentLost { agent_id },
        Notice::AgentLost { agent_id: b.clone() },
        Notice::Adopted(placed),
        updated(TaskState::Lost, Change::Ended(Fate::Lost), b),
        Notice::Disconnected,
        Notice::CallFailed { why: why() },
        Notice::JournalEnded { why: why() },
        Notice::Refused { why: why() },
        Notice::HandlerPanicked { why: why() },
        Notice::Broken { why: why() },
    ]
}

fn assert_lines(text: &str, lines: usize) -> Result<(), TestCaseError> {
    let is_odd = |c: char| c.is_control() && c != '\n' || matches!(c, '\u{202a}'..='\u{202e}');
    prop_assert!(!text.contains(is_odd), "{text:?}");
    prop_assert_eq!(text.matches('\n').count(), lines, "{:?}", text);
    Ok(())
}

proptest! {
    /// Goal: whatever the cluster says, no output for people has a control character but the ends of its own lines, and
    /// each event has one line. Method: random text as each id, host name, message and reason; the line of each event,
    /// and the summary.
    #[test]
    fn foreign_text_controls_no_terminal(texts in vec(foreign(), 4), width in 20_usize..160) {
        let (kernel, placed) = kernel(&format!("S{}", texts[2]), &format!("h{}", texts[3]));
        let mut run_state = RunState::new(Clock::start(), OnExit::Killed, 1, None);
        let mut events: Vec<RunEvent> = Vec::new();
        for notice in notices(&texts, placed) {
            events.extend(run_state.apply(Timestamp::ORIGIN, notice));
        }
        let explanation = kernel.explain(Timestamp::from_millis(10));
        let declined = explanation.declined.clone();
        prop_assert!(declined.iter().any(|it| it.nearest.is_some()));
        let unconnected = [None, Some(texts[0].clone())];
        let stalls = unconnected.map(|unconnected| Stall {
            explanation: explanation.clone(),
            no_offers_hint: None,
            unconnected,
            delays: StartDelays {
                unstarted: vec![(texts[1].clone(), 1), (texts[2].clone(), 2)],
                denied: None,
            },
        });
        events.extend(stalls.clone().map(RunEvent::Stalled));
        events.push(RunEvent::KillAsked { executors: texts.clone(), why: texts[0].clone() });
        let reply = ControlReply::Refused(texts[0].clone());
        let (id, detail) = (Some(texts[1].clone()), serde_json::Value::Null);
        events.push(RunEvent::Answered(CommandAnswer { number: 1, id, reply, detail }));
        prop_assert!(events.len() >= 19, "{} events", events.len());
        for event in events {
            let line = lines::line(&TimedEvent { at: Timestamp::ORIGIN, event });
            assert_lines(line.as_str(), 1)?;
        }
        let summary = |stall| Summary {
            name: "etl",
            ending: end_sentence(&EndReason::Refused(texts[0].clone())),
            exit: ExitStatus::Cluster,
            ran: Duration::from_secs(1),
            run_state: &run_state,
            unended: HashSet::new(),
            unended_fate: UnendedFate::Left,
            counts: OfferCounts::default(),
            stall: Some(stall),
            declined: declined.clone(),
            cluster_use: ClusterUse::default(),
            sandboxes: &SandboxPlace::OnAgents,
            tasks: None,
            shuffle: serde_json::Value::Null,
        };
        for stall in &stalls {
            let text = summary::render(&summary(stall), width);
            let lines = text.as_str().lines().count();
            assert_lines(text.as_str(), lines)?;
            prop_assert!(!text.as_str().lines().any(|line| line.trim_start().starts_with("PWNED")));
        }
    }
}
