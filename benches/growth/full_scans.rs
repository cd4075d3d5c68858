//! What goes through all executors: how long that takes for many.

use std::hint::black_box;
use std::time::Instant;

use offermill::Scope;

use crate::short;
use crate::support::NOW;
use crate::support::figures::{self, Extent};
use crate::work::crowded;

pub(crate) fn table_of(executors: usize) -> String {
    let kernel = crowded(executors);
    let timed = |work: &dyn Fn()| {
        let start = Instant::now();
        work();
        start.elapsed().as_secs_f64() * 1e9 / executors as f64
    };
    let looked = timed(&|| drop(black_box(kernel.snapshot(NOW))));
    let asked = timed(&|| drop(black_box(kernel.reconcile(Scope::All, NOW))));
    let ticked = timed(&|| drop(black_box(kernel.tick(NOW))));
    let closed = timed(&|| drop(black_box(kernel.close())));
    let row = |what: &str, each: f64| vec![what.to_owned(), short(each), short(each / 100.0)];
    let head = [
        format!("through all of {executors} executors on one thread"),
        "ns an executor".to_owned(),
        "s for 10⁷, at this rate".to_owned(),
    ];
    figures::table(&[
        head.to_vec(),
        row("a snapshot", looked),
        row("all to be reconciled", asked),
        row("a tick, with no executor unreachable", ticked),
        row("the close, and the list of live executors", closed),
    ])
}

pub(crate) fn table(extent: Extent) -> String {
    table_of(if extent == Extent::Test { 1_000 } else { 1_000_000 })
}
