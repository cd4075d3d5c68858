//! How long single calls take, from the usual one to the slowest; `benches/README.md` says how to read it.
#![expect(clippy::expect_used, reason = "a bench that can't be set up must stop")]

#[path = "../support/mod.rs"]
mod support;

mod background_load;
mod calls;
mod nothing;
mod table;

use std::time::Duration;

use background_load::BackgroundLoad;
use calls::{Accepting, Declining};
use support::figures::{self, Extent};
use support::fleet::Fleet;
use support::locked::Locked;
use support::pictured::Pictured;
use support::scheduler::{Baseline, Ours, Scheduler};
use support::unmatched::unmatched;
use support::{ENOUGH, MET};
use table::{Call, Company, Table};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const AGENTS: usize = 10_000;
const BATCH: usize = 100;

fn main() {
    figures::run("latency", |extent| {
        let each = match extent {
            Extent::Test => Duration::from_millis(2),
            Extent::Full => Duration::from_millis(2_500),
        };
        Bench::new(each).run()
    });
}

struct Bench {
    /// How long each row is measured.
    each: Duration,
    fleet: Fleet,
    /// Those whose offers are declined.
    unmatched: Fleet,
    table: Table,
}

impl Bench {
    fn new(each: Duration) -> Bench {
        let fleet = Fleet::new(AGENTS, BATCH);
        let unmatched = unmatched(&fleet);
        Bench { each, fleet, unmatched, table: Table::default() }
    }

    fn run(mut self) -> String {
        let config = support::config(MET, None);
        let kernel = support::kernel(&config);
        let ours = || Ours::new(&kernel);
        self.alone("offermill", ours());
        self.alone("plain", Baseline::new(&config, MET, ENOUGH));
        let locked = Locked::new(&config, MET, ENOUGH);
        self.alone("mutex", locked.clone());
        self.beside("offermill", ours(), BackgroundLoad::new(ours(), kernel.clone(), &self.fleet));
        let background = BackgroundLoad::new(locked.clone(), locked.clone(), &self.fleet);
        self.beside("mutex", locked, background);
        self.nothing(BackgroundLoad::new(ours(), kernel.clone(), &self.fleet));
        self.table.to_markdown()
    }

    fn alone(&mut self, who: &'static str, scheduler: impl Scheduler) {
        let scheduler = self.declining(who, Company::Alone, scheduler, |measure| measure());
        self.accepting(who, Company::Alone, scheduler, |measure| measure());
    }

    fn beside<D: Scheduler, P: Pictured>(
        &mut self,
        who: &'static str,
        scheduler: impl Scheduler,
        mut background: BackgroundLoad<D, P>,
    ) {
        let scheduler = self.declining(who, Company::Busy, scheduler, |it| background.beside(it));
        self.accepting(who, Company::Busy, scheduler, |it| background.beside(it));
    }

    fn declining<D: Scheduler>(
        &mut self,
        who: &'static str,
        company: Company,
        scheduler: D,
        with: impl FnOnce(&mut dyn FnMut()),
    ) -> D {
        let mut declining = Declining::new(scheduler, &self.unmatched);
        with(&mut || declining.run(self.each));
        let Declining { stream, answers } = declining;
        self.table.add(Call::Declined, who, company, answers);
        stream.scheduler
    }

    fn accepting<D: Scheduler>(
        &mut self,
        who: &'static str,
        company: Company,
        scheduler: D,
        with: impl FnOnce(&mut dyn FnMut()),
    ) {
        let mut accepting = Accepting::new(scheduler, &self.fleet);
        with(&mut || accepting.run(self.each));
        let Accepting { answers, ends, .. } = accepting;
        self.table.add(Call::Accepted, who, company, answers);
        self.table.add(Call::Update, who, company, ends);
    }

    /// What the machine does to loops that need nothing but a core.
    fn nothing<D: Scheduler, P: Pictured>(&mut self, mut background: BackgroundLoad<D, P>) {
        for call in Call::ALL {
            let length = self.table.usual(call);
            let alone = nothing::run(length, self.each);
            self.table.add(call, "nothing", Company::Alone, alone);
            let mut times = None;
            background.beside(&mut || times = Some(nothing::run(length, self.each)));
            self.table.add(call, "nothing", Company::Busy, times.expect("times"));
        }
    }
}
