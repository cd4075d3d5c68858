//! How far a simulation has come: a bar on a terminal, else a line now and then. On standard error.

use std::time::{Duration, Instant};

use console::Term;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output::remark;

/// How often the bar moves.
const BAR_EVERY: Duration = Duration::from_millis(100);
/// How often a line is printed.
const LINE_EVERY: Duration = Duration::from_secs(5);
/// The bar's length stands for everything.
const ALL: u64 = 1000;
/// A terminal with fewer columns gets a shorter bar.
const WIDE: u16 = 100;

/// Shows how far something has come.
pub(super) struct Meter {
    /// Where there is a terminal.
    bar: Option<ProgressBar>,
    next: Instant,
}

impl Meter {
    /// A bar if standard error is a terminal that can show one and `plain` isn't asked for.
    pub(super) fn new(plain: bool) -> Meter {
        let terminal = Term::stderr();
        let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let bar = (terminal.is_term() && !is_dumb && !plain).then(|| bar(&terminal));
        let first = if bar.is_some() { BAR_EVERY } else { LINE_EVERY };
        Meter { bar, next: Instant::now() + first }
    }

    /// Shows a part (0 to 1) and what there is to say about it, if it is time to.
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

    /// Prints something that the bar doesn't overwrite.
    pub(super) fn beside<R>(&self, print: impl FnOnce() -> R) -> R {
        match &self.bar {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }

    /// Leaves no trace of the bar.
    pub(super) fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        self.clear();
    }
}

fn bar(terminal: &Term) -> ProgressBar {
    let (_, columns) = terminal.size();
    let width = if columns < WIDE { 12 } else { 30 };
    let template = format!("{{bar:{width}.cyan/black.bright}} {{percent:>3}} %  {{wide_msg}}");
    let bar = ProgressBar::with_draw_target(Some(ALL), ProgressDrawTarget::stderr());
    // A template that can't be read leaves indicatif's own.
    if let Ok(style) = ProgressStyle::with_template(&template) {
        bar.set_style(style.progress_chars("━╸━"));
    }
    bar
}
