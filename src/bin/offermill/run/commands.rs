//! Execution of control commands.

use std::collections::{BTreeMap, BTreeSet};

use offermill::ExecutorId;
use offermill::limits::EXECUTORS_MAX;
use offermill::resources::MilliCpus;
use serde_json::{Value, json};

use super::Session;
use crate::control::command::{Activity, ControlCommand, HELP, RegisteredCores};
use crate::control::request::{AnswerLabel, ControlRequest};
use crate::model::end_reason::EndReason;
use crate::model::event::RunEvent;
use crate::model::executor::ExecutorRecord;
use crate::model::executor_kind::KindCounts;
use crate::model::reply::{CommandAnswer, CommandOutcome, ControlReply};
use crate::output::kinds::counted_kinds;
use crate::output::sentence::{find_error_sentence, limit_change, limit_text, list};
use crate::text::format::count;

/// The reply to a command, or why it was refused.
type CommandResult = Result<String, String>;
/// The same, with the detail for programs.
type Detailed = Result<(String, Value), String>;

pub(super) const STOPPING: &str = "the run is stopping";
const NO_ALLOCATION: &str = "it has no effect without dynamic allocation; expected \
     spark.dynamicAllocation.enabled=true";
const NO_TRACKING: &str = "shuffle data has an effect only with \
     spark.dynamicAllocation.shuffleTracking.enabled, and without spark.shuffle.service.enabled, \
     which keeps it when executors end";

impl Session {
    /// Executes the command of a request and replies.
    pub(super) fn handle_request(&mut self, request: ControlRequest) {
        let CommandOutcome { reply, detail } = match &request.command {
            Ok(command) => self.execute(command),
            Err(why) => ControlReply::Refused(why.clone()).into(),
        };
        if let Some(AnswerLabel { number, id }) = request.label.clone() {
            let answer = CommandAnswer { number, id, reply: reply.clone(), detail };
            self.publish(self.clock.now(), RunEvent::Answered(answer));
        }
        request.reply(reply);
    }

    fn execute(&mut self, command: &ControlCommand) -> CommandOutcome {
        let done = match command {
            ControlCommand::Status { is_json: false } => {
                return ControlReply::Block(self.status_text()).into();
            }
            ControlCommand::Status { is_json: true } => {
                return ControlReply::Object(self.status_object()).into();
            }
            ControlCommand::Queues { is_json } => return self.list_queues(*is_json),
            ControlCommand::Help => return ControlReply::Block(HELP.to_owned()).into(),
            ControlCommand::Quit => Ok("goodbye".to_owned()),
            ControlCommand::Stop => {
                let has_begun = self.end_reason.is_some();
                self.stop(EndReason::Command);
                Ok(if has_begun { "stopping already" } else { "stopping" }.to_owned())
            }
            ControlCommand::Registered(cores) => Ok(self.record_registered(*cores)),
            _ if self.end_reason.is_some() => Err(STOPPING.to_owned()),
            ControlCommand::Limit { limit, hosts } => {
                return outcome(self.command_limit(*limit, hosts.as_deref()));
            }
            ControlCommand::Kill(names) => return self.command_kill(names),
            ControlCommand::ChangeQueues(text) => return self.change_queues(text),
            ControlCommand::Load(load) => match &mut self.allocation {
                Some(allocation) => {
                    allocation.load = Some(*load);
                    Ok(format!("{} pending, {} running", load.pending, load.running))
                }
                None => Err(NO_ALLOCATION.to_owned()),
            },
            ControlCommand::Executor { name, activity } => self.command_executor(name, *activity),
            ControlCommand::Locality(hosts) => return outcome(self.command_locality(hosts)),
        };
        outcome(done.map(|text| (text, Value::Null)))
    }

    fn command_limit(&mut self, limit: Option<u32>, hosts: Option<&[(String, u32)]>) -> Detailed {
        if self.allocation.is_some() {
            return Err("the limit follows the load (spark.dynamicAllocation.enabled); expected \
                        \"load\" to change it"
                .to_owned());
        }
        if self.tasks.is_some() {
            return Err("the limit follows the tasks (--tasks)".to_owned());
        }
        if self.settings.until_finished.is_some() {
            return Err("the limit counts down as executors finish (--until-finished)".to_owned());
        }
        let before = self.kernel.executor_limit();
        // A driver's number for "no limit" is one that no run reaches.
        let asked = limit;
        let limit = asked.map(|limit| limit.min(EXECUTORS_MAX));
        let mut text = match before == limit {
            true => format!("limit {} as before", limit_text(limit)),
            false => limit_change(before, limit),
        };
        if asked != limit {
            text.push_str(", the highest possible");
        }
        match hosts.map(|hosts| self.wanted_hosts(hosts)) {
            Some(hosts) => {
                // The same every second must not start the wait for hosts again every time.
                if before != limit || hosts != self.hosts {
                    self.request_executors(limit, hosts)?;
                }
                text.push_str(&format!("; {}", self.hosts_text()));
                self.publish_limit(before, limit, "by command");
            }
            None if before == limit => {}
            None => self.set_limit(limit, "by command")?,
        }
        Ok((text, json!({ "from": before, "to": limit, "hosts": self.hosts })))
    }

    /// Sets the executor limit and publishes the change.
    pub(super) fn set_limit(&mut self, limit: Option<u32>, why: &str) -> Result<(), String> {
        let Some(engine) = &self.engine else { return Err(STOPPING.to_owned()) };
        let before = self.kernel.executor_limit();
        match self.hosts.is_empty() {
            true => engine.set_executor_limit(limit).map_err(|error| error.to_string())?,
            // As with each request of Spark, the wait for the wanted hosts starts again.
            false => self.request_executors(limit, self.hosts.clone())?,
        }
        self.publish_limit(before, limit, why);
        Ok(())
    }

    fn publish_limit(&mut self, from: Option<u32>, to: Option<u32>, why: &str) {
        if from != to {
            let event = RunEvent::LimitSet { from, to, why: why.to_owned() };
            self.publish(self.clock.now(), event);
        }
    }

    /// Sets the limit and the wanted hosts in one step.
    fn request_executors(&mut self, limit: Option<u32>, hosts: Vec<String>) -> Result<(), String> {
        let Some(engine) = &self.engine else { return Err(STOPPING.to_owned()) };
        let wanted: Vec<&str> = hosts.iter().map(String::as_str).collect();
        engine.request_executors(limit, &wanted).map_err(|error| error.to_string())?;
        self.hosts = hosts;
        Ok(())
    }

    /// Asks those executors to end that are alive, and names the rest.
    fn command_kill(&mut self, names: &[String]) -> CommandOutcome {
        // An executor that is named twice is asked once.
        let mut asked = BTreeSet::new();
        let mut rest = BTreeMap::new();
        let tasks = self.find_tasks(names);
        let mut kinds = Vec::new();
        for name in names {
            match self.find_named(name, tasks.as_ref()) {
                Ok(record) if asked.insert(record.name.clone()) => {
                    kinds.push(self.run_state.kind_of(record));
                    self.tasks.iter().for_each(|tasks| tasks.queue().kill_asked(record));
                }
                Ok(_) => {}
                Err(why) => {
                    rest.insert(name.clone(), why);
                }
            }
        }
        let kinds = KindCounts::of(kinds.into_iter());
        let whys: Vec<Value> =
            rest.iter().map(|(name, why)| json!({ "executor": name, "why": why })).collect();
        let detail = json!({ "asked": asked, "rest": whys });
        if asked.is_empty() {
            let whys: Vec<String> = rest.into_values().collect();
            return CommandOutcome { reply: ControlReply::Refused(list(&whys)), detail };
        }
        let ids = asked.iter().filter_map(|name| self.kernel.executor_id(name));
        let (how, why) = match self.run_state.is_connected {
            true => ("asked to end", "by command"),
            false => (
                "will be asked to end when the framework is registered again",
                "by command, when the framework is registered again",
            ),
        };
        self.kill(ids.collect(), why.to_owned());
        let mut text = format!("{} {how}", counted_kinds(kinds));
        match self.tasks {
            None => {
                let limit = limit_text(self.kernel.executor_limit());
                text.push_str(&format!(", the limit stays {limit}"));
            }
            Some(_) if kinds.tasks > 0 => {
                text.push_str(", which counts as a failure");
            }
            Some(_) => {}
        }
        if !rest.is_empty() {
            let names: Vec<String> = rest.into_keys().collect();
            text.push_str(&format!("; not asked: {}", list(&names)));
        }
        CommandOutcome::done(text, detail)
    }

    /// Asks executors to end and publishes that.
    pub(super) fn kill(&mut self, ids: Vec<ExecutorId>, why: String) {
        ids.iter().for_each(|id| self.record_leaving(*id));
        let executors = ids.iter().map(|id| self.kernel.executor_name(*id).to_string()).collect();
        if let Some(engine) = &self.engine {
            engine.kill(ids);
        }
        self.publish(self.clock.now(), RunEvent::KillAsked { executors, why });
    }

    fn command_executor(&mut self, name: &str, activity: Activity) -> CommandResult {
        let tracks = self.settings.tracks_shuffle || self.allocation.is_none();
        if let (Activity::Shuffle(_), false) = (activity, tracks) {
            return Err(NO_TRACKING.to_owned());
        }
        let found = self.run_state.find(name).map_err(|error| find_error_sentence(&error));
        let record: ExecutorRecord = found?.clone();
        let what = match activity {
            Activity::Busy => "is busy",
            Activity::Idle => "is idle",
            Activity::Cached(true) => "holds cached blocks",
            Activity::Cached(false) => "holds no cached blocks",
            Activity::Shuffle(_) => "is recorded",
        };
        self.record_activity(&record, activity).ok_or_else(|| NO_ALLOCATION.to_owned())?;
        Ok(format!("{} {what}", record.name))
    }

    fn record_registered(&mut self, cores: RegisteredCores) -> String {
        let before = self.registered.unwrap_or(MilliCpus::ZERO).millis();
        let millis = match cores {
            RegisteredCores::Total(cores) => cores.millis(),
            RegisteredCores::Added(cores) => before.saturating_add(cores.millis()),
            RegisteredCores::Removed(cores) => before.saturating_sub(cores.millis()),
        };
        let registered = MilliCpus::from_millis(millis);
        self.registered = Some(registered);
        format!("{registered:#} registered; {}", self.sufficiency().sentence())
    }

    fn command_locality(&mut self, hosts: &[(String, u32)]) -> Detailed {
        if self.tasks.as_ref().is_some_and(|tasks| tasks.queue().has_hosts()) {
            return Err(
                "while hosts are waited for, an agent takes one executor, and a task and its host \
                        are two (--task-hosts)"
                    .to_owned(),
            );
        }
        let hosts = self.wanted_hosts(hosts);
        if hosts != self.hosts {
            self.request_executors(self.kernel.executor_limit(), hosts)?;
        }
        Ok((self.hosts_text(), json!({ "hosts": self.hosts })))
    }

    /// The hosts on which tasks have their data. A name of this machine stands for all local agents, of which then none
    /// is better than another: no host is wanted.
    fn wanted_hosts(&self, hosts: &[(String, u32)]) -> Vec<String> {
        let wanted = hosts.iter().filter(|(_, tasks)| *tasks > 0).map(|(host, _)| host);
        let wanted: BTreeSet<&String> = wanted.collect();
        let local = self.settings.target.local_names.as_ref();
        let stands_for_all = |host: &&String| local.is_some_and(|names| names.contain(host));
        match wanted.iter().any(stands_for_all) {
            true => Vec::new(),
            false => wanted.into_iter().cloned().collect(),
        }
    }

    fn hosts_text(&self) -> String {
        match self.hosts.len() as u64 {
            0 => "executors start wherever they fit".to_owned(),
            hosts => format!("executors start on {} if possible", count(hosts, "host")),
        }
    }
}

fn outcome(result: Detailed) -> CommandOutcome {
    match result {
        Ok((text, detail)) => CommandOutcome::done(text, detail),
        Err(why) => ControlReply::Refused(why).into(),
    }
}
