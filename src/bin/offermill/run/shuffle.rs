//! The shuffle services of the agents, during a run: which there are is learnt from what happens to executors.

use offermill::spark::shuffle::{News, Registrar, ShuffleOptions, Standing};
use serde_json::{Value, json};

use crate::model::event::RunEvent;
use crate::output::remark;
use crate::run::Message;
use crate::run::inbox::Sender;
use crate::settings::draft::Draft;
use crate::settings::master::Kind;
use crate::text::format::printable;

/// RunEvent a run does about shuffle services.
#[derive(Clone, Debug)]
pub(crate) struct ShufflePlan {
    options: ShuffleOptions,
    /// Whether the framework's id is the application's, too.
    is_named_after_framework: bool,
    /// Whether the agents' names mean nothing, as they are all this machine.
    is_here: bool,
}

impl ShufflePlan {
    /// RunEvent the settings ask for; `None` if agents have no such service.
    pub(crate) fn of(draft: &Draft) -> Option<ShufflePlan> {
        let settings = Some(draft.shuffle).filter(|settings| settings.enabled)?;
        let app_id = draft.spark.app_id.clone();
        let is_named_after_framework = app_id.is_none();
        let mut options = ShuffleOptions::new(app_id.unwrap_or_default());
        options.port = settings.port;
        options.heartbeat_interval = settings.heartbeat_interval;
        options.heartbeat_timeout = settings.heartbeat_timeout;
        options.registration_timeout = settings.registration_timeout;
        let (_, master) = draft.master.as_ref()?;
        let is_here = master.kind() == Kind::Local;
        Some(ShufflePlan { options, is_named_after_framework, is_here })
    }
}

/// The services of a run, if it has any.
#[derive(Debug)]
pub(crate) struct Shuffle {
    plan: Option<ShufflePlan>,
    registrar: Option<Registrar>,
    sender: Sender<Message>,
}

impl Shuffle {
    /// Nothing is registered yet: the application's id may be the framework's, which is to come.
    pub(crate) fn new(plan: Option<ShufflePlan>, sender: Sender<Message>) -> Shuffle {
        Shuffle { plan, registrar: None, sender }
    }

    /// Something happened.
    pub(crate) fn heard(&mut self, what: &RunEvent) {
        let Some(plan) = &mut self.plan else { return };
        match (what, &self.registrar) {
            (RunEvent::Registered { framework_id, .. }, registrar) => {
                let has_new_name =
                    plan.is_named_after_framework && plan.options.app_id != *framework_id;
                if has_new_name {
                    plan.options.app_id.clone_from(framework_id);
                }
                if has_new_name || registrar.is_none() {
                    self.start();
                }
            }
            (RunEvent::Running(record) | RunEvent::Returned(record), Some(registrar)) => {
                let host = if plan.is_here { "127.0.0.1" } else { &record.host };
                registrar.running(&record.agent_id, host);
            }
            (RunEvent::AgentLost { agent_id, .. }, Some(registrar)) => registrar.lost(agent_id),
            _ => {}
        }
    }

    fn start(&mut self) {
        let Some(plan) = &self.plan else { return };
        let (sender, port) = (self.sender.clone(), plan.options.port);
        let tell = move |news| {
            // A session that has ended wants no more.
            let _ended = sender.send(Message::Shuffle { news, port });
        };
        self.registrar = match Registrar::start(plan.options.clone(), tell) {
            Ok(registrar) => Some(registrar),
            Err(error) => {
                remark(&format!("{error}; no shuffle service is registered with"));
                None
            }
        };
    }

    /// Ends the heartbeats.
    pub(crate) fn stop(&mut self) {
        self.registrar = None;
    }

    /// How many services stand how; null without them.
    pub(crate) fn json(&self) -> Value {
        let Some(registrar) = &self.registrar else { return Value::Null };
        let services = registrar.services();
        let count = |standing| services.iter().filter(|it| it.standing == standing).count();
        json!({
            "registered": count(Standing::Registered),
            "failing": count(Standing::Failing),
            "new": count(Standing::New),
        })
    }
}

/// As in `registered with the shuffle service on agent-1:7337`.
pub(crate) fn sentence(news: &News, port: u16) -> String {
    match news {
        News::Registered { host, again } => {
            let again = if *again { " again" } else { "" };
            format!("registered{again} with the shuffle service on {}:{port}", printable(host))
        }
        News::Failing { host, why, is_refusal } => {
            let what = if *is_refusal { "refuses this application" } else { "can't be had" };
            let (host, why) = (printable(host), printable(why));
            format!(
                "the shuffle service on {host}:{port} {what}: {why}; it is tried again until it can"
            )
        }
        _ => String::new(),
    }
}

/// The event's name and its body.
pub(crate) fn event(news: &News, port: u16) -> (&'static str, Value) {
    match news {
        News::Registered { host, again } => {
            ("shuffle_registered", json!({ "host": host, "port": port, "again": again }))
        }
        News::Failing { host, why, is_refusal } => {
            let body = json!({ "host": host, "port": port, "refused": is_refusal, "why": why });
            ("shuffle_failing", body)
        }
        _ => ("shuffle", json!({})),
    }
}
