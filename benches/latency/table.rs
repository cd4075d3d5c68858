//! Times, and the table that they make.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::BATCH;
use crate::support::figures;

const SECOND: u64 = 1_000_000_000;

/// How often a call took how long, in nanoseconds, to three digits.
pub(crate) struct Times(Histogram<u64>);

impl Default for Times {
    fn default() -> Times {
        Times(Histogram::new_with_bounds(1, 100 * SECOND, 3).expect("bounds in order"))
    }
}

impl Times {
    /// Times a call.
    pub(crate) fn time(&mut self, call: impl FnOnce()) {
        let start = Instant::now();
        call();
        self.0.saturating_record(start.elapsed().as_nanos() as u64);
    }
}

/// What is timed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    Declined,
    Accepted,
    Update,
}

impl Call {
    pub(crate) const ALL: [Call; 3] = [Call::Declined, Call::Accepted, Call::Update];

    fn name(self) -> String {
        match self {
            Call::Declined => format!("{BATCH} offers, declined"),
            Call::Accepted => format!("{BATCH} offers, accepted"),
            Call::Update => "a terminal update".to_owned(),
        }
    }
}

/// Whether another thread is at work.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Company {
    Alone,
    Busy,
}

struct Row {
    call: Call,
    who: &'static str,
    company: Company,
    times: Times,
}

#[derive(Default)]
pub(crate) struct Table(Vec<Row>);

impl Table {
    pub(crate) fn add(&mut self, call: Call, who: &'static str, company: Company, times: Times) {
        self.0.push(Row { call, who, company, times });
    }

    /// The median of the first scheduler that was timed.
    pub(crate) fn usual(&self, call: Call) -> Duration {
        let row = self.0.iter().find(|row| row.call == call).expect("a row of this call");
        Duration::from_nanos(row.times.0.value_at_quantile(0.5))
    }

    pub(crate) fn to_markdown(&self) -> String {
        let head = [
            "µs",
            "scheduler",
            "another thread",
            "p50",
            "p99",
            "p99.9",
            "p99.99",
            "max",
            "samples",
        ];
        let mut rows = vec![head.map(str::to_owned).to_vec()];
        for call in Call::ALL {
            for company in [Company::Alone, Company::Busy] {
                let those = self.0.iter().filter(|row| row.call == call && row.company == company);
                rows.extend(those.map(Row::cells));
            }
        }
        figures::table(&rows)
    }
}

impl Row {
    fn cells(&self) -> Vec<String> {
        let times = &self.times.0;
        let company = match self.company {
            Company::Alone => "—",
            Company::Busy => "works, too",
        };
        let mut cells = vec![self.call.name(), self.who.to_owned(), company.to_owned()];
        let quantiles = [0.5, 0.99, 0.999, 0.9999].map(|at| times.value_at_quantile(at));
        cells.extend(quantiles.into_iter().chain([times.max()]).map(micros));
        cells.push(times.len().to_string());
        cells
    }
}

/// Three digits or more.
fn micros(nanos: u64) -> String {
    let micros = nanos as f64 / 1e3;
    let decimals = if micros < 10.0 { 2 } else { usize::from(micros < 100.0) };
    format!("{micros:.decimals$}")
}
