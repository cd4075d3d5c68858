//! The engine's commands, as the manager's thread carries them out.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::watch;

use super::{KubernetesActor, RequestEnd};
use crate::cluster::kubernetes::command::ActorCommand;
use crate::cluster::kubernetes::creation::{CreationSignal, PodCreation, WaitingNotice, abandon};
use crate::cluster::kubernetes::manifest::{self, PodLaunch};
use crate::cluster::kubernetes::removal::Removal;
use crate::engine::cluster_manager::{Event, ExecutorRequest, Update};
use crate::status::{TaskState, UpdateReason};

impl KubernetesActor {
    pub(super) fn command(&mut self, command: ActorCommand) {
        let now = Instant::now();
        match command {
            ActorCommand::Accept { permits, launches } => self.accept(&permits, launches, now),
            ActorCommand::Decline { permits, refuse } => {
                for name in permits {
                    if let Some(id) = self.permit_id(&name) {
                        self.permits.decline(id, refuse, now);
                    }
                }
            }
            ActorCommand::Revive(epoch) if epoch == self.epoch() => self.permits.revive(),
            ActorCommand::Suppress(epoch) if epoch == self.epoch() => {
                self.permits.suppress();
                let void = self.permits.void();
                self.rescind(void);
            }
            ActorCommand::Request(request) => self.request_executors(request),
            ActorCommand::Avoid(nodes) => {
                self.places.nodes.avoid(nodes);
                self.nodes_changed(now);
            }
            ActorCommand::Kill { executor, .. } if self.is_refused => {
                let end = Update::new(&executor, TaskState::Gone)
                    .with_message("this run doesn't hold its lease: the pod is left to others");
                self.events.send(Event::Update(end));
            }
            ActorCommand::Kill { executor, grace } => {
                // Without a grace period a pod is forgotten though its node may run it on.
                let grace = grace.as_secs() + u64::from(grace.subsec_nanos() > 0);
                let changes = self.pods.kill(&executor, grace.max(1));
                if let Some(signal) = self.creations.get(&executor) {
                    abandon(signal);
                }
                self.apply(changes);
            }
            ActorCommand::Reconcile(executors) if self.is_registered => {
                let executors =
                    if executors.is_empty() { self.pods.executors() } else { executors };
                for executor in executors {
                    self.events.send(Event::Update(self.pods.reconcile(&executor)));
                }
            }
            ActorCommand::Acknowledge { executor, token } => {
                if let Some((pod, is_over)) = self.pods.acknowledged(&executor, &token) {
                    // Other containers of the pod would run on.
                    let stays = self.config.keeps_ended && is_over;
                    let how = if stays { Removal::Acknowledge } else { Removal::Delete(None) };
                    self.remove(executor, pod, how);
                }
            }
            ActorCommand::Place(placement) => {
                self.places.nodes.place(placement);
                self.nodes_changed(now);
            }
            // Those of an earlier subscription, which are made again if they are needed.
            ActorCommand::Revive(_) | ActorCommand::Suppress(_) => {}
            ActorCommand::Reconcile(_) | ActorCommand::Stop => {}
        }
    }

    fn request_executors(&mut self, request: ExecutorRequest) {
        let is_same_size = self.request.is_none_or(|last| {
            (last.profile, last.cores, last.memory)
                == (request.profile, request.cores, request.memory)
        });
        self.request = Some(request);
        let mut void = self.permits.request(request.executors);
        if !is_same_size {
            void.extend(self.permits.void());
        }
        self.rescind(void);
    }

    fn accept(&mut self, permits: &[String], launches: Vec<PodLaunch>, now: Instant) {
        let ids: Vec<Option<u64>> = permits.iter().map(|name| self.permit_id(name)).collect();
        let mut is_valid = !ids.is_empty() && self.may_create(now);
        for id in ids {
            is_valid &= id.is_some_and(|id| self.permits.accept(id, now));
        }
        for launch in launches {
            if is_valid {
                self.launch(launch, now);
            } else {
                self.drop_launch(&launch.executor, "its permit was withdrawn");
            }
        }
    }

    fn launch(&mut self, launch: PodLaunch, now: Instant) {
        let context = self.pod_context();
        let name = self.pods.names().name(&launch.executor);
        let named = name.ok_or_else(|| "its id can't be the name of a pod".to_owned());
        let built = named.and_then(|name| {
            manifest::pod(&context, &name, &launch).map(|manifest| (name, manifest))
        });
        let (name, manifest) = match built {
            Ok(built) => built,
            Err(why) => {
                self.denied(&launch.executor, &why, now);
                self.drop_launch(&launch.executor, &why);
                return;
            }
        };
        if !self.pods.create(&launch.executor, &name, Some(Arc::clone(self.places.nodes.choice())))
        {
            return;
        }
        let executor = launch.executor;
        let signal = watch::Sender::new(CreationSignal::GoOn);
        let since = self.version.borrow().clone();
        let creator = self.creator.clone();
        let validity = self.term.validity();
        let signalled = signal.subscribe();
        let waiting = WaitingNotice::new(executor.clone(), Arc::clone(&self.events));
        let give_up = self.config.start_timeout;
        let mut creation = PodCreation::new(
            self.api.clone(),
            (name, manifest),
            creator,
            validity,
            signalled,
            since,
            waiting,
        );
        self.creations.insert(executor.clone(), signal);
        self.work.spawn(async move {
            let created = creation.run(give_up).await;
            RequestEnd::Created { executor, created }
        });
    }

    fn drop_launch(&self, executor: &str, why: &str) {
        let update = Update::new(executor, TaskState::Dropped)
            .with_reason(UpdateReason::InvalidOffers)
            .with_message(why);
        self.events.send(Event::Update(update));
    }
}
