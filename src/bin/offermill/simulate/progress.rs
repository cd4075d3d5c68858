//! Progress of a simulation on standard error: a bar on a terminal, otherwise a line every few seconds.

use std::time::{Duration, Instant};

use console::Term;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output::remark;

/// The interval between updates of the bar.
const BAR_EVERY: Duration = Duration::from_millis(100);
/// The interval between lines.
const LINE_EVERY: Duration = Duration::from_secs(5);
/// The position of a full bar.
const ALL: u64 = 1000;
/// The minimum number of columns for the long bar.
const WIDE: u16 = 100;

/// A progress bar, or lines of progress.
pub(super) struct ProgressDisplay {
    /// The bar, on a terminal.
    bar: Option<ProgressBar>,
    next: Instant,
}

impl ProgressDisplay {
    /// Creates a bar if standard error is a terminal that can show one and `plain` is false.
    pub(super) fn new(plain: bool) -> ProgressDisplay {
        let terminal = Term::stderr();
        let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let bar = (terminal.is_term() && !is_dumb && !plain).then(|| bar(&terminal));
        let first = if bar.is_some() { BAR_EVERY } else { LINE_EVERY };
        ProgressDisplay { bar, next: Instant::now() + first }
    }

    /// Shows a part (0 to 1) with a text, if the interval has passed.
    pub(super) fn show(&mut self, part: f64, text: impl FnOnce() -> String) {
        let now = Instant::now();
        if now < self.next {
            return;
        }
        let part = part.clamp(0.0, 1.0);
        match &self.bar {
            Some(bar) => {
                self.next = now + BAR_EVERY;
                bar.set_position((part * ALL as f64) as u64);
                bar.set_message(text());
            }
            None => {
                self.next = now + LINE_EVERY;
                remark(&format!("{:>3} %  {}", (part * 100.0) as u32, text()));
            }
        }
    }

    /// Hides the bar while `print` prints lines.
    pub(super) fn suspend<R>(&self, print: impl FnOnce() -> R) -> R {
        match &self.bar {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }

    /// Removes the bar from the terminal.
    pub(super) fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Drop for ProgressDisplay {
    fn drop(&mut self) {
        self.clear();
    }
}

fn bar(terminal: &Term) -> ProgressBar {
    let (_, columns) = terminal.size();
    let width = if columns < WIDE { 12 } else { 30 };
    let template = format!("{{bar:{width}.cyan/black.bright}} {{percent:>3}} %  {{wide_msg}}");
    let bar = ProgressBar::with_draw_target(Some(ALL), ProgressDrawTarget::stderr());
    // If the template were invalid, indicatif's default would be used.
    if let Ok(style) = ProgressStyle::with_template(&template) {
        bar.set_style(style.progress_chars("━╸━"));
    }
    bar
}
