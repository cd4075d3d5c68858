//! Execution of control commands.

use std::collections::BTreeSet;

use offermill::ExecutorId;
use offermill::resources::MilliCpus;

use super::Session;
use crate::control::command::{Activity, ControlCommand, HELP, RegisteredCores};
use crate::control::request::ControlRequest;
use crate::model::end_reason::EndReason;
use crate::model::event::RunEvent;
use crate::model::executor::ExecutorRecord;
use crate::model::reply::ControlReply;
use crate::output::sentence::{find_error_sentence, limit_change, limit_text};
use crate::text::format::count;

/// The reply to a command, or why it was refused.
type CommandResult = Result<String, String>;

const STOPPING: &str = "the run is stopping";
const NO_ALLOCATION: &str = "it has no effect without dynamic allocation; expected \
     spark.dynamicAllocation.enabled=true";
const NO_TRACKING: &str = "shuffle data has an effect only with \
     spark.dynamicAllocation.shuffleTracking.enabled, and without spark.shuffle.service.enabled, \
     which keeps it when executors end";

impl Session {
    /// Executes the command of a request and replies.
    pub(super) fn handle_request(&mut self, request: ControlRequest) {
        let reply = match &request.command {
            Ok(command) => self.execute(command),
            Err(why) => ControlReply::Refused(why.clone()),
        };
        if request.is_shown {
            self.publish(self.clock.now(), RunEvent::Answered(reply.clone()));
        }
        request.reply(reply);
    }

    fn execute(&mut self, command: &ControlCommand) -> ControlReply {
        let done = match command {
            ControlCommand::Status { is_json: false } => {
                return ControlReply::Block(self.status_text());
            }
            ControlCommand::Status { is_json: true } => {
                return ControlReply::Object(self.status_object());
            }
            ControlCommand::Help => return ControlReply::Block(HELP.to_owned()),
            ControlCommand::Quit => Ok("goodbye".to_owned()),
            ControlCommand::Stop => {
                let has_begun = self.end_reason.is_some();
                self.stop(EndReason::Command);
                Ok(if has_begun { "stopping already" } else { "stopping" }.to_owned())
            }
            ControlCommand::Registered(cores) => Ok(self.record_registered(*cores)),
            _ if self.end_reason.is_some() => Err(STOPPING.to_owned()),
            ControlCommand::Limit(limit) => self.command_limit(*limit),
            ControlCommand::Kill(names) => self.command_kill(names),
            ControlCommand::Load(load) => match &mut self.allocation {
                Some(allocation) => {
                    allocation.load = Some(*load);
                    Ok(format!("{} pending, {} running", load.pending, load.running))
                }
                None => Err(NO_ALLOCATION.to_owned()),
            },
            ControlCommand::Executor { name, activity } => self.command_executor(name, *activity),
            ControlCommand::Locality(hosts) => self.command_locality(hosts),
        };
        done.map_or_else(ControlReply::Refused, ControlReply::Done)
    }

    fn command_limit(&mut self, limit: Option<u32>) -> CommandResult {
        if self.allocation.is_some() {
            return Err("the limit follows the load (spark.dynamicAllocation.enabled); expected \
                        \"load\" to change it"
                .to_owned());
        }
        if self.settings.until_finished.is_some() {
            return Err("the limit counts down as executors finish (--until-finished)".to_owned());
        }
        let before = self.kernel.executor_limit();
        if before == limit {
            return Ok(format!("limit {} as before", limit_text(limit)));
        }
        self.set_limit(limit, "by command")?;
        Ok(limit_change(before, limit))
    }

    /// Sets the executor limit and publishes the change.
    pub(super) fn set_limit(&mut self, limit: Option<u32>, why: &str) -> Result<(), String> {
        let Some(engine) = &self.engine else { return Err(STOPPING.to_owned()) };
        let before = self.kernel.executor_limit();
        let hosts: Vec<&str> = self.hosts.iter().map(String::as_str).collect();
        let set = match hosts.is_empty() {
            true => engine.set_executor_limit(limit),
            // As with each request of Spark, the wait for the wanted hosts starts again.
            false => engine.request_executors(limit, &hosts),
        };
        set.map_err(|error| error.to_string())?;
        let event = RunEvent::LimitSet { from: before, to: limit, why: why.to_owned() };
        self.publish(self.clock.now(), event);
        Ok(())
    }

    fn command_kill(&mut self, names: &[String]) -> CommandResult {
        let found = |name: &String| match self.run_state.find(name) {
            Ok(record) => Ok(record.name.clone()),
            Err(error) => Err(find_error_sentence(&error)),
        };
        // An executor that is named twice is asked once.
        let names: BTreeSet<String> = names.iter().map(found).collect::<Result<_, _>>()?;
        let ids = names.iter().filter_map(|name| self.kernel.executor_id(name));
        let (asked, why) = match self.run_state.is_connected {
            true => ("asked to end", "by command"),
            false => (
                "will be asked to end when the framework is registered again",
                "by command, when the framework is registered again",
            ),
        };
        self.kill(ids.collect(), why.to_owned());
        let executors = count(names.len() as u64, "executor");
        let limit = limit_text(self.kernel.executor_limit());
        Ok(format!("{executors} {asked}, the limit stays {limit}"))
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
        format!("{registered} cores registered; {}", self.sufficiency().sentence())
    }

    fn command_locality(&mut self, hosts: &[(String, u32)]) -> CommandResult {
        let Some(engine) = &self.engine else { return Err(STOPPING.to_owned()) };
        if self.allocation.is_none() {
            return Err(NO_ALLOCATION.to_owned());
        }
        let wanted = hosts.iter().filter(|(_, tasks)| *tasks > 0).map(|(host, _)| host.as_str());
        let wanted: Vec<&str> = wanted.collect();
        let requested = engine.request_executors(self.kernel.executor_limit(), &wanted);
        requested.map_err(|error| error.to_string())?;
        self.hosts = wanted.iter().map(|&host| host.to_owned()).collect();
        Ok(match wanted.len() as u64 {
            0 => "executors start wherever they fit".to_owned(),
            hosts => format!("executors start on {} if possible", count(hosts, "host")),
        })
    }
}
