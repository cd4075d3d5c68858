//! Frameworks come, come back, and go.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::time::Duration;

use prost::Message as _;

use super::registered::RegisteredFramework;
use super::statuses::event;
use super::{
    ConnectionNumber, MasterAction, MasterNotice, Peer, RefusedCall, RegistryEntry,
    StandaloneMaster,
};
use crate::cluster::standalone::protocol::WorkerEvent;
use crate::mesos_v1::messages::call::{Subscribe, UpdateFramework};
use crate::mesos_v1::messages::event::{Error, Subscribed, Type};
use crate::mesos_v1::messages::{Event, FrameworkInfo};

/// The most frameworks that are away and may come back. Each is in the journal, with up to 64 KiB.
pub(super) const FRAMEWORKS_AWAY_MAX: usize = 1024;

/// The most bytes of a framework's description, in protobuf. The journal keeps it.
const FRAMEWORK_BYTES_MAX: usize = 64 << 10;

/// Why a framework can't be described like this, in a sentence.
pub(crate) fn description_problem(info: &FrameworkInfo) -> Option<String> {
    let kib = FRAMEWORK_BYTES_MAX >> 10;
    (info.encoded_len() > FRAMEWORK_BYTES_MAX)
        .then(|| format!("'framework_info' is longer than {kib} KiB in protobuf"))
}

impl StandaloneMaster {
    /// A framework subscribes on a new connection, for the first time or again.
    pub fn framework_subscribes(
        &mut self,
        connection: ConnectionNumber,
        subscribe: Subscribe,
        now: Duration,
    ) {
        let asked = subscribe.framework_info.id.as_ref().map(|id| id.value.clone());
        let asked = asked.filter(|id| !id.is_empty());
        let again = asked.is_some();
        let number = match asked {
            None => self.new_framework(subscribe.framework_info),
            Some(id) => match self.framework_number(&id) {
                Some(number) if self.has_principal(number, &subscribe.framework_info) => {
                    self.renew_framework(number, subscribe.framework_info);
                    number
                }
                found => {
                    let why = match found {
                        Some(_) => "Framework has another principal",
                        None => "Framework has been removed",
                    };
                    let principal = subscribe.framework_info.principal.clone();
                    self.notices.push(MasterNotice::FrameworkRefused { id, principal, why });
                    return self.end_stream(connection, why);
                }
            },
        };
        self.connections.insert(connection, Peer::Framework(number));
        let mut subscribed = Subscribed {
            heartbeat_interval_seconds: Some(self.settings.heartbeat().as_secs_f64()),
            ..Subscribed::default()
        };
        if let Some(framework) = self.frameworks.get_mut(&number) {
            framework.connection = Some(connection);
            framework.gone_at = None;
            framework.declined.clear();
            framework.suppressed = !subscribe.suppressed_roles.is_empty()
                && subscribe.suppressed_roles.iter().any(|role| role == framework.role());
            subscribed.framework_id = framework.id.as_str().into();
            let (id, info) = (framework.id.clone(), &framework.info);
            let (name, principal) = (info.name.clone(), info.principal.clone());
            self.notices.push(MasterNotice::FrameworkRegistered { id, name, principal, again });
        }
        let subscribed = Some(subscribed);
        self.tell_framework(number, Event { subscribed, ..event(Type::Subscribed) });
        let missed = self.frameworks.get_mut(&number).map(|framework| framework.missed.take());
        for (worker, update) in missed.unwrap_or_default() {
            let _freed_before = self.take_update(&worker, update);
        }
        self.finish_recovery_if_complete(now);
        self.allocate(now);
    }

    fn new_framework(&mut self, mut info: FrameworkInfo) -> u64 {
        let (id, number) = self.new_id('F');
        info.id = Some(id.as_str().into());
        let recorded = RegistryEntry::Framework { id: id.clone(), info: Box::new(info.clone()) };
        self.actions.push(MasterAction::Record(recorded));
        self.frameworks.insert(number, RegisteredFramework::new(id, info));
        number
    }

    /// A framework is back. The connection before, if there is one, is closed, and its offers are taken back.
    fn renew_framework(&mut self, number: u64, info: FrameworkInfo) {
        let Some(framework) = self.frameworks.get_mut(&number) else { return };
        let before = framework.connection.take();
        if framework.info != info {
            framework.info = info.clone();
            let id = framework.id.clone();
            let recorded = RegistryEntry::Framework { id, info: Box::new(info) };
            self.actions.push(MasterAction::Record(recorded));
        }
        self.rescind(|offer| offer.framework == number);
        if let Some(before) = before {
            self.end_stream(before, "Framework failed over");
        }
    }

    /// A framework changes its description, without a new connection.
    ///
    /// # Errors
    /// If it is too long, or changes what can't be changed. Nothing is changed then.
    pub(super) fn update_framework(
        &mut self,
        number: u64,
        update: UpdateFramework,
    ) -> Result<(), RefusedCall> {
        let UpdateFramework { framework_info: mut info, suppressed_roles, .. } = update;
        let Some(framework) = self.frameworks.get_mut(&number) else { return Ok(()) };
        info.principal = info.principal.or_else(|| framework.info.principal.clone());
        let before = &framework.info;
        let must_stay = |is_same: bool, what: &str| {
            let sentence = || RefusedCall(format!("the framework's {what} can't be changed"));
            if is_same { Ok(()) } else { Err(sentence()) }
        };
        must_stay(info.id == before.id, "id")?;
        must_stay(info.principal == before.principal, "principal")?;
        must_stay(info.user == before.user, "user")?;
        must_stay(info.checkpoint() == before.checkpoint(), "checkpoint")?;
        if let Some(why) = description_problem(&info) {
            return Err(RefusedCall(why));
        }
        let role = framework.role().to_owned();
        if *before != info {
            framework.info = info.clone();
            let entry = RegistryEntry::Framework { id: framework.id.clone(), info: Box::new(info) };
            self.actions.push(MasterAction::Record(entry));
        }
        framework.suppressed = suppressed_roles.iter().any(|role| role == framework.role());
        if framework.role() != role {
            self.rescind(|offer| offer.framework == number);
        }
        Ok(())
    }

    /// Whether a description has the principal with which the framework registered.
    fn has_principal(&self, number: u64, info: &FrameworkInfo) -> bool {
        self.frameworks.get(&number).is_some_and(|it| it.info.principal == info.principal)
    }

    /// Tells the other end of a stream why it ends.
    fn end_stream(&mut self, connection: ConnectionNumber, why: &str) {
        let error = Some(Error { message: why.to_owned() });
        let event = Box::new(Event { error, ..event(Type::Error) });
        self.actions.push(MasterAction::TellFramework { to: connection, event });
        self.hang_up(connection);
    }

    /// A framework's connection has ended: its clock runs.
    pub(super) fn framework_disconnected(&mut self, number: u64, now: Duration) {
        let Some(framework) = self.frameworks.get_mut(&number) else { return };
        framework.connection = None;
        let failover_timeout = framework.failover_timeout();
        framework.gone_at = Some(now.saturating_add(failover_timeout));
        self.notices.push(MasterNotice::FrameworkDisconnected {
            id: framework.id.clone(),
            name: framework.info.name.clone(),
            principal: framework.info.principal.clone(),
            failover_timeout,
        });
        self.rescind(|offer| offer.framework == number);
        self.remove_gone_frameworks(now);
        self.bound_frameworks_away();
    }

    /// Tears frameworks down if too many are away: first those of the principal that has the most of them, of these
    /// first those without executors, and of these first those whose time ends first.
    pub(super) fn bound_frameworks_away(&mut self) {
        loop {
            let away = || self.frameworks.iter().filter(|(_, it)| it.gone_at.is_some());
            if away().count() <= FRAMEWORKS_AWAY_MAX {
                return;
            }
            let mut by_principal: HashMap<Option<&str>, usize> = HashMap::new();
            for (_, framework) in away() {
                *by_principal.entry(framework.info.principal.as_deref()).or_default() += 1;
            }
            let busy: HashSet<&str> =
                self.placed.keys().map(|key| key.framework.as_str()).collect();
            let rank = |(number, it): &(&u64, &RegisteredFramework)| {
                let crowd = by_principal.get(&it.info.principal.as_deref()).copied();
                (Reverse(crowd), busy.contains(it.id.as_str()), it.gone_at, **number)
            };
            let Some(first) = away().min_by_key(rank).map(|(number, _)| *number) else { return };
            self.tear_down(first, "too many frameworks are away");
        }
    }

    /// Tears down the frameworks whose time is over.
    pub(super) fn remove_gone_frameworks(&mut self, now: Duration) {
        let is_gone = |it: &RegisteredFramework| it.gone_at.is_some_and(|gone_at| gone_at <= now);
        let gone: Vec<u64> =
            self.frameworks.iter().filter(|(_, it)| is_gone(it)).map(|it| *it.0).collect();
        for number in gone {
            self.tear_down(number, "its failover time-out is over");
        }
    }

    /// Tears a framework down that has this principal, as an operator asks. Returns whether there was one.
    pub fn tear_down_of(&mut self, id: &str, principal: Option<&str>, now: Duration) -> bool {
        let is_of = |it: &RegisteredFramework| {
            principal.is_none() || it.info.principal.as_deref() == principal
        };
        let found = self.framework_number(id);
        let meant = found.filter(|number| self.frameworks.get(number).is_some_and(is_of));
        if let Some(number) = meant {
            self.tear_down(number, "an operator has asked for that");
            self.allocate(now);
        }
        meant.is_some()
    }

    /// Ends a framework: its offers are taken back, and its executors are ended.
    pub(super) fn tear_down(&mut self, number: u64, why: &'static str) {
        self.rescind(|offer| offer.framework == number);
        let Some(framework) = self.frameworks.remove(&number) else { return };
        self.actions
            .push(MasterAction::Record(RegistryEntry::FrameworkGone { id: framework.id.clone() }));
        if let Some(connection) = framework.connection {
            self.hang_up(connection);
        }
        self.shut_down_executors(&framework.id);
        let FrameworkInfo { name, principal, .. } = framework.info;
        let id = framework.id;
        self.notices.push(MasterNotice::FrameworkTornDown { id, name, principal, why });
    }

    /// Ends the executors of a framework that is gone. Ends that wait for its acknowledgement are forgotten.
    pub(super) fn shut_down_executors(&mut self, framework: &str) {
        let term = self.settings.term;
        let ids: Vec<String> = self.workers.keys().cloned().collect();
        for id in ids {
            let Some(worker) = self.workers.get(&id) else { continue };
            let own = worker.tasks.iter().filter(|(key, _)| key.framework == framework);
            let own: Vec<_> = own
                .map(|(key, task)| (key.clone(), task.has_ended, task.end_uuid.clone()))
                .collect();
            if !own.is_empty() {
                let framework = framework.to_owned();
                self.tell_worker(&id, WorkerEvent::ShutdownFramework { framework, term });
            }
            for (key, _, end_uuid) in own.into_iter().filter(|(_, has_ended, _)| *has_ended) {
                match end_uuid {
                    // The framework's own acknowledgement may be on its way, and isn't taken any more.
                    Some(uuid) => self.acknowledge_update(&id, &key, uuid, true),
                    None => self.forget_task(&id, &key),
                }
            }
        }
    }
}
