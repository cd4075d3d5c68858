//! Batches of updates have the same effect as the same updates one by one.

use std::time::Duration;

use offermill::config::UnreachableRule;
use offermill::{
    Decisions, ExecutorId, Handler, IdScheme, Kernel, StatusUpdate, TaskState, UpdateReason,
};
use proptest::prelude::*;

use crate::state_machine::steps::{reasons, states};
use crate::world::{Entry, OfferData, Setup, at, lend, secs};

#[derive(Clone, Debug)]
enum Step {
    /// Offers of agents; each core has room for one executor.
    Offers(Vec<(u8, u8)>),
    /// Updates about executors, by number; numbers without an executor are unknown executors.
    Updates(Vec<(usize, TaskState, UpdateReason)>),
    Kill(usize),
    AgentLost(u8),
    Tick(u64),
    Close,
}

fn step() -> impl Strategy<Value = Step> {
    let offers = prop::collection::vec((0u8..4, 1u8..9), 1..6);
    let update = (any::<usize>(), states(), reasons());
    prop_oneof![
        6 => offers.prop_map(Step::Offers),
        8 => prop::collection::vec(update, 0..150).prop_map(Step::Updates),
        1 => any::<usize>().prop_map(Step::Kill),
        1 => (0u8..4).prop_map(Step::AgentLost),
        4 => (0u64..4_000).prop_map(Step::Tick),
        1 => Just(Step::Close),
    ]
}

/// A kernel, and all executors that it has placed.
struct Side {
    kernel: Kernel,
    handler: Handler,
    decisions: Decisions,
    placed: Vec<ExecutorId>,
    now: u64,
    batched: bool,
}

impl Side {
    fn new(setup: &Setup, ids: &IdScheme, batched: bool) -> Side {
        let kernel = Kernel::new(setup.config(), ids.clone());
        let (handler, decisions) = (kernel.handler(), Decisions::new());
        Side { kernel, handler, decisions, placed: Vec::new(), now: 0, batched }
    }

    /// Plays a step. Returns everything that is visible of the kernel.
    fn play(&mut self, step: &Step) -> String {
        let Side { kernel, handler, decisions, placed, now, batched } = self;
        let seen = match step {
            Step::Offers(offers) => {
                let offer_data = |(agent, cores): &(u8, u8)| {
                    let offer_data =
                        OfferData::new(&format!("S{agent}"), f64::from(*cores), 1000.0);
                    offer_data.with(Entry::scalar("gpus", 2.0))
                };
                let batch: Vec<OfferData> = offers.iter().map(offer_data).collect();
                lend(&batch, |offers| handler.resource_offers(offers, at(*now), decisions));
                let new = decisions.accepts().flat_map(|accept| accept.executors);
                placed.extend(new.map(|executor| executor.id));
                format!("{:?}", placed)
            }
            Step::Updates(rows) => {
                let name = |whom: &usize| match whom % (placed.len() + 1) {
                    0 => "somebody".to_owned(),
                    number => kernel.executor_name(placed[number - 1]).to_string(),
                };
                let names: Vec<String> = rows.iter().map(|(whom, ..)| name(whom)).collect();
                let update =
                    |(name, (_, state, reason)): (_, &(usize, TaskState, UpdateReason))| {
                        StatusUpdate::new(name, *state).because(*reason)
                    };
                let updates: Vec<StatusUpdate<'_>> =
                    names.iter().map(String::as_str).zip(rows).map(update).collect();
                let mut outcomes = Vec::new();
                if *batched {
                    kernel.status_updates(&updates, at(*now), &mut outcomes);
                } else {
                    let one = |update| kernel.status_update(update, at(*now));
                    outcomes.extend(updates.iter().map(one));
                }
                format!("{outcomes:?}")
            }
            Step::Kill(whom) => {
                format!(
                    "{:?}",
                    kernel.kill_executors(placed.get(whom % (placed.len() + 1)).copied())
                )
            }
            Step::AgentLost(agent) => {
                format!("{:?}", kernel.agent_lost(&format!("S{agent}"), at(*now)))
            }
            Step::Tick(millis) => {
                *now += millis;
                format!("{:?}", kernel.tick(at(*now)))
            }
            Step::Close => format!("{:?}", kernel.close()),
        };
        kernel.check().unwrap();
        let snapshot = kernel.snapshot(at(*now));
        format!("{seen} {snapshot:?} {} {}", kernel.wanted(), kernel.unknown_updates())
    }
}

proptest! {
    /// Goal: a batch of updates has the same outcomes, and leaves the kernel in the same state, as the same updates one
    /// by one, even if an executor returns to capacity that another update of the batch freed. Method: random histories
    /// under tight caps, played to two kernels, whose visible state is compared after each step.
    #[test]
    fn a_batch_is_its_updates_one_by_one(
        limit in prop::option::of(1u32..12), gpu_cap in prop_oneof![Just(0u32), 1u32..20], plain in any::<bool>(),
        steps in prop::collection::vec(step(), 1..30),
    ) {
        let unreachable = UnreachableRule { release_after: Some(secs(1)), forget_after: secs(5) };
        let executor_gpus = Some(u32::from(gpu_cap > 0));
        let setup = Setup { limit, gpu_cap, executor_gpus, unreachable, ..Setup::default() };
        let ids = if plain { IdScheme::plain() } else { IdScheme::unique("batch", 1).unwrap() };
        let (mut batched, mut single) = (Side::new(&setup, &ids, true), Side::new(&setup, &ids, false));
        for step in &steps {
            prop_assert_eq!(batched.play(step), single.play(step), "{:?}", step);
        }
        let reports = [&batched, &single].map(|side| side.kernel.drain(Duration::ZERO));
        prop_assert_eq!(format!("{:?}", reports[0]), format!("{:?}", reports[1]));
    }

    /// Goal: an executor that returns after its cores were given to others can use the capacity of executors that ended
    /// earlier in the same batch, and of no others. Method: executors stay unreachable until others are placed under
    /// the cap instead; one batch, in random order, reports that these have failed and that the first ones run.
    #[test]
    fn the_returning_find_the_room_of_those_that_ended_before_them(
        (count, order) in (1u8..6).prop_flat_map(|count| {
            (Just(count), Just((0..2 * usize::from(count)).collect::<Vec<_>>()).prop_shuffle())
        }),
    ) {
        let unreachable = UnreachableRule { release_after: Some(secs(1)), forget_after: secs(900) };
        let setup = Setup { core_cap: Some(1000 * u64::from(count)), unreachable, ..Setup::default() };
        let ids = IdScheme::unique("batch", 1).unwrap();
        let (mut batched, mut single) = (Side::new(&setup, &ids, true), Side::new(&setup, &ids, false));
        let report = |number: usize, state| (number + 1, state, UpdateReason::Other);
        let away = (0..usize::from(count)).map(|first| report(first, TaskState::Unreachable)).collect();
        let batch = order.iter().map(|&number| match number < usize::from(count) {
            true => report(number, TaskState::Running),
            false => report(number, TaskState::Failed),
        });
        let steps = [
            Step::Offers(vec![(0, 8)]), Step::Updates(away), Step::Tick(1_100), Step::Offers(vec![(1, 8)]),
            Step::Updates(batch.collect()),
        ];
        for step in &steps {
            prop_assert_eq!(batched.play(step), single.play(step), "{:?}", step);
        }
        prop_assert_eq!(batched.placed.len(), 2 * usize::from(count), "no executor was replaced");
    }
}
