//! What clients tell a run to do while it goes on.

use std::collections::BTreeSet;

use offermill::ExecutorId;
use offermill::resources::MilliCpus;

use super::Session;
use crate::control::{Activity, Answer, Command, HELP, Registered, Request};
use crate::model::end_reason::Ending;
use crate::model::event::{RunEvent, limit_change, limit_text};
use crate::model::executor::ExecutorInfo;
use crate::text::format::count;

/// A command's answer, or why it wasn't done.
type Done = Result<String, String>;

const STOPPING: &str = "the run is stopping";
const NO_ALLOCATION: &str = "there is no dynamic allocation that it could matter to; expected \
     spark.dynamicAllocation.enabled=true";
const NO_TRACKING: &str = "shuffle data matters only with spark.dynamicAllocation.shuffleTracking.enabled, and without \
     spark.shuffle.service.enabled, which keeps it when executors end";

impl Session {
    /// Does what a client wants, and answers.
    pub(super) fn command(&mut self, request: Request) {
        let answer = match &request.what {
            Ok(command) => self.obey(command),
            Err(why) => Answer::Refused(why.clone()),
        };
        if request.is_shown {
            self.tell(self.clock.now(), RunEvent::Answered(answer.clone()));
        }
        request.answer(answer);
    }

    fn obey(&mut self, command: &Command) -> Answer {
        let done = match command {
            Command::Status { is_json: false } => return Answer::Block(self.status_text()),
            Command::Status { is_json: true } => return Answer::Object(self.status_object()),
            Command::Help => return Answer::Block(HELP.to_owned()),
            Command::Quit => Ok("goodbye".to_owned()),
            Command::Stop => {
                let has_begun = self.ending.is_some();
                self.stop(Ending::Commanded);
                Ok(if has_begun { "stopping already" } else { "stopping" }.to_owned())
            }
            Command::Registered(cores) => Ok(self.note_registered(*cores)),
            _ if self.ending.is_some() => Err(STOPPING.to_owned()),
            Command::Limit(limit) => self.command_limit(*limit),
            Command::Kill(names) => self.command_kill(names),
            Command::Load(load) => match &mut self.allocating {
                Some(allocating) => {
                    allocating.load = Some(*load);
                    Ok(format!("{} pending, {} running", load.pending, load.running))
                }
                None => Err(NO_ALLOCATION.to_owned()),
            },
            Command::Executor { name, activity } => self.command_executor(name, *activity),
            Command::Locality(hosts) => self.command_locality(hosts),
        };
        done.map_or_else(Answer::Refused, Answer::Done)
    }

    fn command_limit(&mut self, limit: Option<u32>) -> Done {
        if self.allocating.is_some() {
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

    /// Sets the executor limit and tells of it.
    pub(super) fn set_limit(&mut self, limit: Option<u32>, why: &str) -> Result<(), String> {
        let Some(engine) = &self.engine else { return Err(STOPPING.to_owned()) };
        let before = self.kernel.executor_limit();
        let hosts: Vec<&str> = self.hosts.iter().map(String::as_str).collect();
        let set = match hosts.is_empty() {
            true => engine.set_executor_limit(limit),
            // The wait for wanted hosts begins anew, as with each request of Spark's.
            false => engine.request_executors(limit, &hosts),
        };
        set.map_err(|error| error.to_string())?;
        let what = RunEvent::LimitSet { from: before, to: limit, why: why.to_owned() };
        self.tell(self.clock.now(), what);
        Ok(())
    }

    fn command_kill(&mut self, names: &[String]) -> Done {
        let found = |name: &String| self.roster.find(name).map(|record| record.name.clone());
        // Who is named twice is asked once.
        let names: BTreeSet<String> = names.iter().map(found).collect::<Result<_, _>>()?;
        let ids = names.iter().filter_map(|name| self.kernel.executor_id(name));
        self.kill(ids.collect(), "by command".to_owned());
        let executors = count(names.len() as u64, "executor");
        let limit = limit_text(self.kernel.executor_limit());
        Ok(format!("{executors} asked to end, the limit stays {limit}"))
    }

    /// Asks executors to end and tells of it.
    pub(super) fn kill(&mut self, ids: Vec<ExecutorId>, why: String) {
        ids.iter().for_each(|id| self.note_leaving(*id));
        let executors = ids.iter().map(|id| self.kernel.executor_name(*id).to_string()).collect();
        if let Some(engine) = &self.engine {
            engine.kill(ids);
        }
        self.tell(self.clock.now(), RunEvent::KillAsked { executors, why });
    }

    fn command_executor(&mut self, name: &str, activity: Activity) -> Done {
        let tracks = self.settings.tracks_shuffle || self.allocating.is_none();
        if let (Activity::Shuffle(_), false) = (activity, tracks) {
            return Err(NO_TRACKING.to_owned());
        }
        let record: ExecutorInfo = self.roster.find(name)?.clone();
        let what = match activity {
            Activity::Busy => "is busy",
            Activity::Idle => "is idle",
            Activity::Cached(true) => "holds cached blocks",
            Activity::Cached(false) => "holds no cached blocks",
            Activity::Shuffle(_) => "is noted",
        };
        self.note_activity(&record, activity).ok_or_else(|| NO_ALLOCATION.to_owned())?;
        Ok(format!("{} {what}", record.name))
    }

    fn note_registered(&mut self, cores: Registered) -> String {
        let before = self.registered.unwrap_or(MilliCpus::ZERO).millis();
        let millis = match cores {
            Registered::InAll(cores) => cores.millis(),
            Registered::More(cores) => before.saturating_add(cores.millis()),
            Registered::Fewer(cores) => before.saturating_sub(cores.millis()),
        };
        let registered = MilliCpus::from_millis(millis);
        self.registered = Some(registered);
        format!("{registered} cores registered; {}", self.sufficiency().sentence())
    }

    fn command_locality(&mut self, hosts: &[(String, u32)]) -> Done {
        let Some(engine) = &self.engine else { return Err(STOPPING.to_owned()) };
        if self.allocating.is_none() {
            return Err(NO_ALLOCATION.to_owned());
        }
        let wanted = hosts.iter().filter(|(_, tasks)| *tasks > 0).map(|(host, _)| host.as_str());
        let wanted: Vec<&str> = wanted.collect();
        let requested = engine.request_executors(self.kernel.executor_limit(), &wanted);
        requested.map_err(|error| error.to_string())?;
        self.hosts = wanted.iter().map(|&host| host.to_owned()).collect();
        Ok(match wanted.len() as u64 {
            0 => "executors start wherever they fit".to_owned(),
            hosts => format!("executors had better start on {}", count(hosts, "host")),
        })
    }
}
