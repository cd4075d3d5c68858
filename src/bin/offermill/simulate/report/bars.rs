//! Bar charts: histograms of latencies and of executors per agent, and declined offers by reason.

use std::time::Duration;

use offermill::ReasonKind;
use offermill::cluster::simulated::Latencies;

use super::canvas::Canvas;
use super::html::escape;
use super::scale::{Tick, compact, log_ticks, number_ticks};
use crate::simulate::numbers::{percent, span};
use crate::text::format::{count, grouped};

/// The maximum number of bars; beyond it neighbours are merged.
const BARS_MAX: u32 = 64;
/// The position of latencies below a millisecond on the logarithmic axis, in milliseconds.
const UNDER_A_MILLISECOND: f64 = 0.5;
/// The factor by which the middle of a power of two lies above its beginning: 1 + 3/8.
const HALF: f64 = 1.375;

/// A histogram of latencies on a logarithmic axis, with lines at p50 and p99.
pub(super) fn latencies(label: &str, latencies: &Latencies) -> String {
    let buckets: Vec<(f64, f64, u64)> = latencies
        .buckets()
        .map(|(end, count)| (end.as_millis() as f64, count))
        .map(|(end, count)| (start_of(end), end, count))
        .collect();
    let buckets = halves(&buckets);
    let (Some((first, _, _)), Some((_, last, _))) = (buckets.first(), buckets.last()) else {
        return empty("No executor was measured.");
    };
    // The axis begins at a power of ten and spans at least two.
    let from = match first {
        0.0 => UNDER_A_MILLISECOND,
        first => 10f64.powf(first.log10().floor()),
    };
    let to = last.max(from * 100.0);
    let part = |millis: f64| (millis.max(from) / from).log10() / (to / from).log10();
    let most = buckets.iter().map(|(_, _, count)| *count).max().unwrap_or(0);
    let mut canvas = Canvas::new(label, "executors", &number_ticks(most as f64), "");
    for (start, end, latencies) in &buckets {
        let executors = count(*latencies, "executor");
        let title = format!("{} to {}: {executors}", span(millis(*start)), span(millis(*end)));
        canvas.bar(part(*start), part(*end), *latencies as f64, &title);
    }
    for (row, quantile, name) in [(1, 0.5, "p50"), (0, 0.99, "p99")] {
        let at = latencies.quantile(quantile);
        let text = format!("{name} {}", span(at));
        canvas.rule(name, part(at.as_secs_f64() * 1000.0), &text, row);
    }
    let ticks: Vec<Tick> =
        log_ticks(from, to).into_iter().map(|(at, label)| (part(at), label)).collect();
    canvas.x_ticks(&ticks);
    canvas.finish()
}

/// Merges the buckets of each power of two into two of about equal width on the axis. The original eighths differ in
/// width, which would look meaningful.
fn halves(buckets: &[(f64, f64, u64)]) -> Vec<(f64, f64, u64)> {
    let mut halves: Vec<(f64, f64, u64)> = Vec::new();
    for (start, end, count) in buckets {
        let power = 2f64.powf(start.max(1.0).log2().floor());
        let middle = (power * HALF).ceil().min(2.0 * power);
        let (from, to) = match *start {
            start if start < 1.0 => (0.0, 1.0),
            start if start < middle => (power, middle.max(*end)),
            _ => (middle, 2.0 * power),
        };
        match halves.last_mut() {
            Some((last, _, sum)) if *last == from => *sum += count,
            _ => halves.push((from, to, *count)),
        }
    }
    halves
}

fn millis(millis: f64) -> Duration {
    Duration::from_millis(millis as u64)
}

/// The start of the bucket that ends at `end`. Buckets are an eighth of a power of two wide, but at least a
/// millisecond.
fn start_of(end: f64) -> f64 {
    let power = (end - 1.0).max(1.0).log2().floor();
    end - 2f64.powf(power - 3.0).max(1.0)
}

/// A histogram of executors per agent.
pub(super) fn spread(label: &str, spread: &[(u32, u32)]) -> String {
    let (Some((least, _)), Some((greatest, _))) = (spread.first(), spread.last()) else {
        return empty("No executor ran.");
    };
    let first = least.saturating_sub(1);
    let range = greatest.saturating_add(1) - first + 1;
    let each = range.div_ceil(BARS_MAX);
    let mut sums = vec![0u64; range.div_ceil(each) as usize];
    for (executors, agents) in spread {
        sums[((executors - first) / each) as usize] += u64::from(*agents);
    }
    let most = sums.iter().max().copied().unwrap_or(0);
    let mut canvas = Canvas::new(label, "agents", &number_ticks(most as f64), "");
    let bars = sums.len() as f64;
    let mut ticks: Vec<Tick> = Vec::new();
    let every = sums.len().div_ceil(10);
    for (place, agents) in sums.iter().enumerate() {
        let from = first + place as u32 * each;
        let begin = place as f64 / bars;
        let end = (place as f64 + 1.0) / bars;
        let executors = match each {
            1 => count(from.into(), "executor"),
            _ => format!("{from} to {} executors", from + each - 1),
        };
        if *agents > 0 {
            let title = format!("{} with {executors}", count(*agents, "agent"));
            canvas.bar(begin, end, *agents as f64, &title);
        }
        if place.is_multiple_of(every) {
            ticks.push(((begin + end) / 2.0, compact(from.into())));
        }
    }
    canvas.x_ticks(&ticks);
    canvas.finish()
}

/// Declined offers by reason, as a table with bars in its rows, since the labels are long.
pub(super) fn declines(declines: &[(ReasonKind, u64)]) -> String {
    let mut reasons = declines.to_vec();
    reasons.retain(|(_, offers)| *offers > 0);
    reasons.sort_by_key(|(_, offers)| std::cmp::Reverse(*offers));
    let all: u64 = reasons.iter().map(|(_, offers)| offers).sum();
    let Some((_, most)) = reasons.first() else { return empty("No offer was declined.") };
    let mut html = String::from(
        "<table class=\"bars\"><thead><tr><th>reason</th><th></th><th>offers</th><th>share</th>\
         </tr></thead><tbody>\n",
    );
    for (kind, offers) in &reasons {
        let width = 100.0 * *offers as f64 / *most as f64;
        html.push_str(&format!(
            "<tr><th scope=\"row\">{}</th><td class=\"track\"><span class=\"fill\" \
             style=\"width:{width:.1}%\"></span></td><td>{}</td><td>{}</td></tr>\n",
            escape(kind.as_str()),
            grouped(*offers),
            escape(&percent(*offers, all))
        ));
    }
    html.push_str("</tbody></table>\n");
    html
}

fn empty(sentence: &str) -> String {
    format!("<p class=\"nothing\">{sentence}</p>\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: each bar begins where the previous one ends. Method: check the starts of the first buckets.
    #[test]
    fn buckets_join() {
        let mut begin = 0.0;
        for end in [1.0, 2.0, 7.0, 8.0, 9.0, 16.0, 18.0, 20.0, 32.0, 36.0] {
            if [7.0, 16.0, 32.0].contains(&end) {
                begin = start_of(end); // buckets in between are empty
            }
            assert_eq!(start_of(end), begin, "{end}");
            begin = end;
        }
    }
}
