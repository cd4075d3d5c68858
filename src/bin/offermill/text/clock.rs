//! Formats times of the engine's clock as wall-clock times, in UTC.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use offermill::Timestamp;
use offermill::engine::Clock;

/// The length of a day, in seconds.
const DAY: u64 = 86_400;

/// Converts a time of the engine's clock to wall-clock time; `None` for [`Timestamp::MAX`].
pub(crate) fn time_of(clock: Clock, at: Timestamp) -> Option<SystemTime> {
    if at == Timestamp::MAX {
        return None;
    }
    let now = clock.now();
    let wall = SystemTime::now();
    if at >= now { wall.checked_add(at.since(now)) } else { wall.checked_sub(now.since(at)) }
}

/// Formats a time as in `2026-02-28T13:05:12.345Z`.
pub(crate) fn rfc3339(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (year, month, day) = date(since);
    let (hour, minute, second) = time_of_day(since);
    let millis = since.subsec_millis();
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

/// Formats a time as in `13:05:12 UTC`, with the date if it isn't today.
pub(crate) fn short_time(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let today = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs() / DAY;
    let (hour, minute, second) = time_of_day(since);
    let clock = format!("{hour:02}:{minute:02}:{second:02} UTC");
    if since.as_secs() / DAY == today {
        return clock;
    }
    let (year, month, day) = date(since);
    format!("{year:04}-{month:02}-{day:02} {clock}")
}

fn time_of_day(since: Duration) -> (u64, u64, u64) {
    let seconds = since.as_secs() % DAY;
    (seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// Returns year, month and day of a time since 1970, with the algorithm of Howard Hinnant's `civil_from_days`: its
/// years begin in March, so that a leap day is the last day of a year.
fn date(since: Duration) -> (u64, u64, u64) {
    // 719 468 days lie between 1 March of the year 0 and 1 January 1970.
    let days = since.as_secs() / DAY + 719_468;
    let era = days / 146_097;
    let day_of_era = days % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: dates are correct. Method: format leap days and the ends of years and centuries.
    #[test]
    fn dates_are_correct() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400, "2000-02-29T00:00:00.000Z"),
            (1_709_164_800, "2024-02-29T00:00:00.000Z"),
            (1_735_689_599, "2024-12-31T23:59:59.000Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(rfc3339(UNIX_EPOCH + Duration::from_secs(seconds)), text);
        }
    }
}
