//! What changes over time, thinned until it fits a plot.

use offermill::cluster::simulated::Sample;

/// So many parts of the time axis keep their extremes.
const PARTS: usize = 150;
/// So many stretches have an average each.
const STRETCHES: usize = 240;

/// A quantity over time.
pub(super) struct Track {
    pub(super) name: &'static str,
    /// How it is drawn.
    pub(super) class: &'static str,
    /// It changes at a moment, and not from one to the next.
    pub(super) is_stepped: bool,
    /// What is under it is filled.
    pub(super) is_filled: bool,
    pub(super) values: Vec<f64>,
}

impl Track {
    pub(super) fn line(name: &'static str, class: &'static str, values: Vec<f64>) -> Track {
        Track { name, class, is_stepped: false, is_filled: false, values }
    }

    pub(super) fn stepped(self) -> Track {
        Track { is_stepped: true, ..self }
    }

    pub(super) fn filled(self) -> Track {
        Track { is_filled: true, ..self }
    }
}

/// One value of each sample.
pub(super) fn values(samples: &[Sample], value: impl Fn(&Sample) -> f64) -> Vec<f64> {
    samples.iter().map(value).collect()
}

/// Leaves of each part of the time the moments at which a track is least or greatest there, so that
/// no spike is lost.
pub(super) fn thin(times: &mut Vec<u64>, tracks: &mut [Track]) {
    let all = times.len();
    if all <= 2 * PARTS {
        return;
    }
    let mut kept = vec![0, all - 1];
    for part in 0..PARTS {
        let range = part * all / PARTS..(part + 1) * all / PARTS;
        for track in tracks.iter() {
            let order = |a: &usize, b: &usize| track.values[*a].total_cmp(&track.values[*b]);
            kept.extend(range.clone().min_by(order));
            kept.extend(range.clone().max_by(order));
        }
    }
    kept.sort_unstable();
    kept.dedup();
    *times = kept.iter().map(|place| times[*place]).collect();
    for track in tracks {
        track.values = kept.iter().map(|place| track.values[*place]).collect();
    }
}

/// How many a second, on average over stretches of time: the ends of stretches, and the rates.
pub(super) fn rates(samples: &[Sample], count: impl Fn(&Sample) -> u64) -> (Vec<u64>, Vec<f64>) {
    let every = samples.len().div_ceil(STRETCHES).max(1);
    let last = samples.last();
    let chosen: Vec<&Sample> = samples.iter().step_by(every).chain(last).collect();
    let mut rates = (Vec::new(), Vec::new());
    for pair in chosen.windows(2) {
        let [earlier, later] = pair else { continue };
        let seconds = later.at.since(earlier.at).as_secs_f64();
        if seconds > 0.0 {
            rates.0.push(later.at.as_millis());
            rates.1.push(count(later).saturating_sub(count(earlier)) as f64 / seconds);
        }
    }
    rates
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: long runs are thinned and keep their extremes. Method: one spike in a hundred thousand
    /// moments.
    #[test]
    fn a_spike_survives() {
        let mut times: Vec<u64> = (0..100_000).collect();
        let mut values = vec![5.0; 100_000];
        values[77_777] = 9.0;
        let mut tracks = [Track::line("a", "a", values)];
        thin(&mut times, &mut tracks);
        assert!(times.len() < 1000 && times.len() == tracks[0].values.len());
        let spike = tracks[0].values.iter().position(|value| *value == 9.0).unwrap();
        assert_eq!(times[spike], 77_777);
    }
}
