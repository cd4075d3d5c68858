//! The constraints and the agents that they are asked about.

use offermill::Attribute;

pub(crate) const ENTRIES: &str = "zone:east,west;rack:";
pub(crate) const EXPRESSION: &str =
    "expr:: zone in {east, west} and rack and not (tier < 2 or disk like hdd*)";

/// Agents that differ in each attribute, all meeting both constraints, so that every condition is asked.
pub(crate) fn agents() -> Vec<Vec<Attribute<'static>>> {
    let of_number = |number: usize| {
        vec![
            Attribute::text("arch", "amd64"),
            Attribute::text("disk", ["ssd", "nvme"][number / 2 % 2]),
            Attribute::scalar("tier", 3.0 + (number % 3) as f64),
            Attribute::text("rack", format!("r{number}").leak()),
            Attribute::text("zone", ["east", "west"][number % 2]),
        ]
    };
    (0..64).map(of_number).collect()
}
