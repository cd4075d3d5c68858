//! The curves of plots over time, thinned to the resolution of a plot.

use offermill::cluster::simulated::Sample;

/// The number of parts of the time axis of which minima and maxima are kept.
const PARTS: usize = 150;
/// The number of intervals over which rates are averaged.
const STRETCHES: usize = 240;

/// A quantity over time.
pub(super) struct Curve {
    pub(super) name: &'static str,
    /// The CSS class.
    pub(super) class: &'static str,
    /// Whether the value changes in steps.
    pub(super) is_stepped: bool,
    /// Whether the area under the curve is filled.
    pub(super) is_filled: bool,
    pub(super) values: Vec<f64>,
}

impl Curve {
    pub(super) fn line(name: &'static str, class: &'static str, values: Vec<f64>) -> Curve {
        Curve { name, class, is_stepped: false, is_filled: false, values }
    }

    pub(super) fn stepped(self) -> Curve {
        Curve { is_stepped: true, ..self }
    }

    pub(super) fn filled(self) -> Curve {
        Curve { is_filled: true, ..self }
    }
}

/// Returns one value per sample.
pub(super) fn values(samples: &[Sample], value: impl Fn(&Sample) -> f64) -> Vec<f64> {
    samples.iter().map(value).collect()
}

/// Keeps, of each part of the time axis, only the moments at which a curve has its minimum or maximum, so that no spike
/// is lost.
pub(super) fn thin(times: &mut Vec<u64>, curves: &mut [Curve]) {
    let all = times.len();
    if all <= 2 * PARTS {
        return;
    }
    let mut kept = vec![0, all - 1];
    for part in 0..PARTS {
        let range = part * all / PARTS..(part + 1) * all / PARTS;
        for curve in curves.iter() {
            let order = |a: &usize, b: &usize| curve.values[*a].total_cmp(&curve.values[*b]);
            kept.extend(range.clone().min_by(order));
            kept.extend(range.clone().max_by(order));
        }
    }
    kept.sort_unstable();
    kept.dedup();
    *times = kept.iter().map(|place| times[*place]).collect();
    for curve in curves {
        curve.values = kept.iter().map(|place| curve.values[*place]).collect();
    }
}

/// Returns rates per second, averaged over intervals, with the end of each interval.
pub(super) fn rates(samples: &[Sample], count: impl Fn(&Sample) -> u64) -> (Vec<u64>, Vec<f64>) {
    let every = samples.len().div_ceil(STRETCHES).max(1);
    let last = samples.last();
    let chosen: Vec<&Sample> = samples.iter().step_by(every).chain(last).collect();
    let mut times = Vec::new();
    let mut rates = Vec::new();
    for pair in chosen.windows(2) {
        let [earlier, later] = pair else { continue };
        let seconds = later.at.since(earlier.at).as_secs_f64();
        if seconds > 0.0 {
            times.push(later.at.as_millis());
            rates.push(count(later).saturating_sub(count(earlier)) as f64 / seconds);
        }
    }
    (times, rates)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: curves of long runs are thinned and keep their extremes. Method: thin a curve of 100 000 points with one
    /// spike.
    #[test]
    fn a_spike_survives() {
        let mut times: Vec<u64> = (0..100_000).collect();
        let mut values = vec![5.0; 100_000];
        values[77_777] = 9.0;
        let mut curves = [Curve::line("a", "a", values)];
        thin(&mut times, &mut curves);
        assert!(times.len() < 1000 && times.len() == curves[0].values.len());
        let spike = curves[0].values.iter().position(|value| *value == 9.0).unwrap();
        assert_eq!(times[spike], 77_777);
    }
}
