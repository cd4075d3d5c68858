//! Hosts for tasks against books that are kept by hand: who adds a host, who may join it and who may end it, over many
//! hosts of the same agents, with statements about former ones.

use offermill::{Hosts, IdleHost, Joined, TaskHost, TaskHostStage};
use proptest::prelude::*;

const AGENTS: [&str; 2] = ["S1", "S2"];

/// Something that a framework does. Numbers choose among what there is.
#[derive(Clone, Debug)]
enum Action {
    /// A task of another batch joins, or begins, the host of an agent.
    Join(usize),
    /// A further task of the batch that has a handle of a host.
    JoinAgain(usize),
    Up(usize),
    Leave(usize),
    End(usize),
    Look(usize),
    EndIdle(usize),
    Lost(usize),
}

fn action() -> impl Strategy<Value = Action> {
    let any = 0..64usize;
    prop_oneof![
        4 => (0..AGENTS.len()).prop_map(Action::Join),
        3 => any.clone().prop_map(Action::JoinAgain),
        3 => any.clone().prop_map(Action::Up),
        5 => any.clone().prop_map(Action::Leave),
        1 => any.clone().prop_map(Action::End),
        4 => any.clone().prop_map(Action::Look),
        2 => any.clone().prop_map(Action::EndIdle),
        1 => any.prop_map(Action::Lost),
    ]
}

/// A host by the books.
#[derive(Clone, Copy, Debug, PartialEq)]
struct BookedHost {
    stage: TaskHostStage,
    tasks: u32,
    joins: u32,
}

impl BookedHost {
    fn is_open(&self) -> bool {
        matches!(self.stage, TaskHostStage::Starting | TaskHostStage::Up)
    }

    fn add_task(&mut self) {
        self.tasks += 1;
        self.joins += 1;
    }
}

/// The books: all hosts that there were, and which of them is an agent's now.
#[derive(Default)]
struct Books {
    hosts: Vec<(TaskHost, BookedHost)>,
    present: [Option<usize>; AGENTS.len()],
    /// Looks at hosts without tasks: the look, the host, and what it was.
    looks: Vec<(IdleHost, usize, BookedHost)>,
}

impl Books {
    /// The number of a host, and whether it is its agent's present one.
    fn pick(&self, number: usize) -> Option<(usize, bool)> {
        let at = number.checked_rem(self.hosts.len())?;
        Some((at, self.present.contains(&Some(at))))
    }

    fn act(&mut self, hosts: &Hosts, action: &Action) {
        match *action {
            Action::Join(agent) => self.join(hosts, agent),
            Action::JoinAgain(number) => {
                let Some((at, is_present)) = self.pick(number) else { return };
                let (host, booked) = &mut self.hosts[at];
                let may = is_present && booked.is_open();
                assert_eq!(host.join(), may);
                if may {
                    booked.add_task();
                }
            }
            Action::Up(number) => {
                let Some((at, is_present)) = self.pick(number) else { return };
                let (host, booked) = &mut self.hosts[at];
                let is_new = is_present && booked.stage == TaskHostStage::Starting;
                assert_eq!(host.up(), is_new);
                if is_new {
                    booked.stage = TaskHostStage::Up;
                }
            }
            Action::Leave(number) => {
                let Some((at, is_present)) = self.pick(number) else { return };
                let (host, booked) = &mut self.hosts[at];
                let left = if is_present { booked.tasks.checked_sub(1) } else { None };
                assert_eq!(host.leave(), left);
                booked.tasks = left.unwrap_or(booked.tasks);
            }
            Action::End(number) => {
                let Some((at, is_present)) = self.pick(number) else { return };
                let (host, booked) = &mut self.hosts[at];
                let decides = is_present && booked.is_open();
                assert_eq!(host.end(), decides);
                if decides {
                    booked.stage = TaskHostStage::Ending;
                }
            }
            Action::Look(number) => {
                let Some((at, is_present)) = self.pick(number) else { return };
                let (host, booked) = &self.hosts[at];
                let look = host.idle();
                let is_idle = is_present && booked.is_open() && booked.tasks == 0;
                assert_eq!(look.is_some(), is_idle);
                self.looks.extend(look.map(|look| (look, at, *booked)));
            }
            Action::EndIdle(number) => self.end_idle(number),
            Action::Lost(number) => {
                let Some((at, is_present)) = self.pick(number) else { return };
                let (host, booked) = &self.hosts[at];
                assert_eq!(host.lost(), is_present.then_some(booked.tasks));
                self.present.iter_mut().filter(|it| **it == Some(at)).for_each(|it| *it = None);
            }
        }
    }

    fn join(&mut self, hosts: &Hosts, agent: usize) {
        match (hosts.join(AGENTS[agent]), self.present[agent]) {
            (Joined::First(host), None) => {
                let stage = TaskHostStage::Starting;
                self.hosts.push((host, BookedHost { stage, tasks: 1, joins: 1 }));
                self.present[agent] = Some(self.hosts.len() - 1);
            }
            (Joined::Member(_), Some(at)) if self.hosts[at].1.stage == TaskHostStage::Up => {
                self.hosts[at].1.add_task();
            }
            (Joined::Elsewhere, Some(at)) if self.hosts[at].1.stage != TaskHostStage::Up => {}
            (joined, present) => panic!("{joined:?}, with host {present:?} on {}", AGENTS[agent]),
        }
    }

    /// A look ends the host only if nothing has happened since; two looks are the same only then.
    fn end_idle(&mut self, number: usize) {
        let Some(chosen) = number.checked_rem(self.looks.len()) else { return };
        let (look, at, seen) = self.looks.swap_remove(chosen);
        let is_present = self.present.contains(&Some(at));
        let (host, booked) = &mut self.hosts[at];
        let is_same = is_present && *booked == seen;
        if let Some(later) = host.idle() {
            assert_eq!(look.is_same(&later), is_same);
        }
        assert_eq!(look.end(), is_same);
        if is_same {
            booked.stage = TaskHostStage::Ending;
        }
    }

    fn check(&self, hosts: &Hosts) {
        for (agent, present) in AGENTS.iter().zip(self.present) {
            let stage = present.map_or(TaskHostStage::None, |at| self.hosts[at].1.stage);
            assert_eq!(hosts.stage(agent), stage);
        }
        for ((host, booked), at) in self.hosts.iter().zip(0..) {
            let is_present = self.present.contains(&Some(at));
            let expected =
                if is_present { (booked.stage, booked.tasks) } else { (TaskHostStage::None, 0) };
            assert_eq!((host.stage(), host.tasks()), expected);
        }
    }
}

proptest! {
    /// Goal: an agent has at most one host; it is joined only while it takes tasks, ended on a look only if nothing has
    /// happened since, and what is said of a former host changes nothing. Method: random histories on two agents, in
    /// which handles of all former hosts are used, beside the books.
    #[test]
    fn hosts_are_as_the_books_say(actions in prop::collection::vec(action(), 1..200)) {
        let (hosts, mut books) = (Hosts::new(), Books::default());
        for action in &actions {
            books.act(&hosts, action);
            books.check(&hosts);
        }
    }
}
