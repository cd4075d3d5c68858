//! [`MetricsText`]: figures in the text form of Prometheus (version 0.0.4).

use std::fmt::{Display, Write as _};

/// Metrics as they are written, a family after the other.
#[derive(Debug, Default)]
pub struct MetricsText(String);

// Writing to a string doesn't fail.
impl MetricsText {
    /// A family with one value that may fall.
    pub fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.family(name, "gauge", help);
        self.sample(name, &[], value);
    }

    /// A family with one value that only rises.
    pub fn counter(&mut self, name: &str, help: &str, value: impl Display) {
        self.family(name, "counter", help);
        self.sample(name, &[], value);
    }

    /// Begins a family, whose samples follow.
    pub fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _infallible = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    /// A value with labels. Their texts should be printable.
    pub fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        let labels: Vec<String> =
            labels.iter().map(|(label, value)| format!("{label}=\"{}\"", escaped(value))).collect();
        let labels = match labels.is_empty() {
            true => String::new(),
            false => format!("{{{}}}", labels.join(",")),
        };
        let _infallible = writeln!(self.0, "{name}{labels} {value}");
    }

    /// All that was written.
    #[must_use]
    pub fn into_string(self) -> String {
        self.0
    }
}

/// A label's value, with escapes for what would end it.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
