//! What is documented of queues, by example.

use offermill::config::{Queue, QueueId};
use offermill::resources::{ExecutorResources, Mebibytes, MilliCpus};
use offermill::{
    Config, ConfigBuilder, Decisions, IdScheme, Kernel, Picks, Reason, Recovered, StatusUpdate,
    Task, TaskState,
};

use crate::world::{OfferData, Setup, at, lend};

fn cores(cores: u64) -> MilliCpus {
    MilliCpus::from_cores(cores)
}

fn kernel(builder: ConfigBuilder) -> Kernel {
    Kernel::new(builder.build().unwrap(), IdScheme::unique("q", 2).unwrap())
}

fn builder() -> ConfigBuilder {
    Setup::default().config().to_builder()
}

/// Commits tasks of these queues, cores and memory. Returns the names of those placed, and why others are not.
fn place(kernel: &Kernel, tasks: &[(QueueId, u64, u64)]) -> (Vec<String>, Vec<(u64, Reason)>) {
    let (mut picks, mut decisions) = (Picks::new(), Decisions::new());
    for ((queue, cores, memory), tag) in tasks.iter().zip(0..) {
        let (cores, memory) = (MilliCpus::from_cores(*cores), Mebibytes::new(*memory));
        picks.push(0, Task::new(tag, cores, memory).in_queue(*queue));
    }
    let mut handler = kernel.handler();
    lend(&[OfferData::new("S0", 64.0, 65536.0)], |offers| {
        handler.propose(offers, at(5)).commit(&picks, at(5), &mut decisions);
    });
    let placed = decisions.accepts().flat_map(|accepted| accepted.executors);
    let names = placed.map(|executor| kernel.executor_name(executor.id).to_string()).collect();
    (names, decisions.unplaced().iter().map(|it| (it.tag, it.reason)).collect())
}

fn finish(kernel: &Kernel, name: &str) {
    kernel.status_update(&StatusUpdate::new(name, TaskState::Finished), at(6));
}

/// Goal: a queue that is full is left out, others aren't concerned, and people read its name. Method: three tasks of a
/// queue with room for two, and one of another queue behind them; the reason, by number and by name; an end makes
/// room.
#[test]
fn a_full_queue_holds_up_no_other() {
    let kernel = kernel(builder().queue(Queue::new("etl").max_cores(Some(cores(4)))));
    let etl = kernel.config().queues().id("etl").unwrap();
    let tasks = [(etl, 2, 10), (etl, 2, 10), (etl, 1, 10), (QueueId::DEFAULT, 8, 10)];
    let (placed, unplaced) = place(&kernel, &tasks);
    assert_eq!(placed.len(), 3);
    let (most, held, asked) = (cores(4), cores(4), cores(1));
    assert_eq!(unplaced, [(2, Reason::QueueCores { queue: etl, most, held, asked })]);
    let text = "queue 1 has reached its maximum of 4 cores: 4 held, 1 asked";
    assert_eq!(unplaced[0].1.to_string(), text);
    let named = unplaced[0].1.named(kernel.config().queues()).to_string();
    assert_eq!(named, text.replace("queue 1", "queue etl"));
    finish(&kernel, &placed[0]);
    assert_eq!(place(&kernel, &[(etl, 2, 10)]).0.len(), 1);
    kernel.check().unwrap();
}

/// Goal: a lowered maximum ends nothing and lets nothing in until less is held; a raised one does at once. Method: a
/// full queue; the maximum is halved, one of its two tasks ends, and the maximum is raised.
#[test]
fn maxima_change_while_tasks_run() {
    let etl = |most| Queue::new("etl").max_memory(Some(Mebibytes::new(most)));
    let kernel = kernel(builder().queue(etl(200)));
    let queue = QueueId::new(1);
    let (placed, _) = place(&kernel, &[(queue, 1, 100), (queue, 1, 100)]);
    kernel.reconfigure(kernel.config().to_builder().queue(etl(100)).build().unwrap());
    assert_eq!(kernel.totals().executors, 2);
    assert!(matches!(place(&kernel, &[(queue, 1, 1)]).1[0].1, Reason::QueueMemory { .. }));
    finish(&kernel, &placed[0]);
    assert_eq!(place(&kernel, &[(queue, 1, 1)]).0.len(), 0, "it holds all that it may");
    kernel.reconfigure(kernel.config().to_builder().queue(etl(150)).build().unwrap());
    assert_eq!(place(&kernel, &[(queue, 1, 50)]).0.len(), 1);
    kernel.check().unwrap();
}

/// Goal: what is guaranteed to a queue is left to it, as long as it has demand; others get the rest of the cap. Method:
/// a cap of eight with a guarantee of three; the other queue asks for all, before and after the demand ends.
#[test]
fn guarantees_are_kept_free() {
    let web = Queue::new("web").guaranteed_cores(cores(3));
    let kernel = kernel(builder().core_cap(Some(cores(8))).queue(web));
    let (other, web) = (QueueId::DEFAULT, QueueId::new(1));
    let (placed, unplaced) = place(&kernel, &[(other, 5, 1), (other, 1, 1), (web, 1, 1)]);
    assert_eq!((placed.len(), unplaced[0].1), (2, Reason::QueueGuarantees { queue: other }));
    assert_eq!(kernel.queues()[1].to_string(), "1 core, 3 guaranteed; 1 MiB");
    kernel.set_queue_demand(web, false);
    assert_eq!(place(&kernel, &[(other, 2, 1)]).0.len(), 1);
    kernel.set_queue_demand(web, true);
    // All is taken. What ends is kept for it.
    finish(&kernel, &placed[0]);
    assert_eq!(place(&kernel, &[(other, 4, 1)]).0.len(), 0);
    assert_eq!(place(&kernel, &[(web, 2, 1), (other, 3, 1)]).0.len(), 2);
    kernel.check().unwrap();
}

/// Goal: executors of the configured shape are booked in their queue, in memory as well; the explanation says what it
/// holds and why offers are declined. Method: room for two by memory; then the text.
#[test]
fn executors_have_a_queue() {
    let etl = Queue::new("etl").max_memory(Some(Mebibytes::new(250)));
    let kernel = kernel(builder().queue(etl).executor_queue(QueueId::new(1)));
    let (mut handler, mut decisions) = (kernel.handler(), Decisions::new());
    let mut offer = |executors: usize| {
        lend(&[OfferData::new("S0", 8.0, 8192.0)], |offers| {
            handler.resource_offers(offers, at(5), &mut decisions);
        });
        assert_eq!(decisions.executors(), executors);
    };
    offer(2);
    offer(0);
    let text = kernel.explain(at(5)).to_string();
    let line = "queue etl                        2 cores; 200 MiB of at most 250 MiB";
    assert!(text.contains(line), "{text}");
    let why = "queue etl has reached its maximum of 250 MiB: 200 MiB held, 100 MiB asked";
    assert!(text.contains(why), "{text}");
    assert_eq!(kernel.snapshot(at(5)).executors[0].queue, Some(QueueId::new(1)));
}

/// Goal: executors of a former run are booked in the queue that they are said to be in, as far as it has room. Method:
/// two that fit singly, and one that names no queue.
#[test]
fn adopted_executors_are_booked() {
    let kernel = kernel(builder().queue(Queue::new("etl").max_cores(Some(cores(3)))));
    let resources =
        ExecutorResources { cores: cores(2), memory: Mebibytes::new(7), ..ExecutorResources::NONE };
    let former = |name| Recovered::new(name, "S0", "host", resources);
    let etl = QueueId::new(1);
    let all = [former("q-1-0.0").in_queue(etl), former("q-1-1.1").in_queue(etl), former("q-1-2.2")];
    let adopted = kernel.adopt(&all, at(5)).unwrap();
    assert_eq!(adopted.iter().map(Option::is_some).collect::<Vec<_>>(), [true, false, true]);
    let held = kernel.queues().iter().map(|queue| queue.cores).collect::<Vec<_>>();
    assert_eq!(held, [cores(2), cores(2)]);
    finish(&kernel, "q-1-0.0");
    kernel.check().unwrap();
    assert_eq!(kernel.queues()[1].cores, MilliCpus::ZERO);
}

/// Goal: settings that can't be are refused with what is allowed. Method: one of each.
#[test]
fn impossible_queues_are_refused() {
    let mib = Mebibytes::new;
    let most = Queue::new("a").max_cores(Some(cores(1)));
    let many =
        (0..64).fold(Config::builder(), |builder, n| builder.queue(Queue::new(&n.to_string())));
    let cases = [
        (Config::builder().queue(Queue::new("a b")), "queue name"),
        (Config::builder().queue(Queue::new("")), "queue name"),
        (
            Config::builder().queue(most.guaranteed_cores(cores(2))),
            "guarantee of cores of the queue a",
        ),
        (
            Config::builder().queue(Queue::new("a").max_memory(Some(mib(1 << 33)))),
            "maximum of memory",
        ),
        (
            Config::builder().queue(Queue::new("a").guaranteed_memory(mib(1 << 31))),
            "guarantee of memory",
        ),
        (
            Config::builder().queue(Queue::new("a").max_cores(Some(cores(9_000_000)))),
            "maximum of cores",
        ),
        (
            Config::builder()
                .core_cap(Some(cores(3)))
                .queue(Queue::new("a").guaranteed_cores(cores(4))),
            "guaranteed cores of all queues",
        ),
        (
            Config::builder()
                .queued_memory(Some(mib(3)))
                .queue(Queue::new("a").guaranteed_memory(mib(4))),
            "guaranteed memory of all queues",
        ),
        (Config::builder().executor_queue(QueueId::new(1)), "executors' queue"),
        (many, "number of queues"),
    ];
    for (builder, name) in cases {
        let error = builder.build().unwrap_err().to_string();
        assert!(error.contains(name), "{error}");
    }
}
