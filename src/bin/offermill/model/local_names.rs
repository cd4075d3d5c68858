//! The names of this machine, by which a driver knows executors on local agents.

/// The names of this machine.
#[derive(Clone, Debug)]
pub(crate) struct LocalNames {
    /// The name or address at which executors are reached.
    pub(crate) address: String,
    /// The machine's host name.
    pub(crate) machine: String,
}

impl LocalNames {
    /// Whether a host's name stands for this machine, and so for each of its agents.
    pub(crate) fn contain(&self, host: &str) -> bool {
        let is_loopback = host.starts_with("127.") || ["localhost", "::1", "[::1]"].contains(&host);
        let is_own =
            [&self.address, &self.machine].iter().any(|own| host.eq_ignore_ascii_case(own));
        is_loopback || is_own
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the names by which a driver may know local executors are recognized, and names of agents aren't. Method:
    /// names of each kind.
    #[test]
    fn names_of_this_machine_are_recognized() {
        let names = LocalNames { address: "10.0.0.7".to_owned(), machine: "Box".to_owned() };
        for host in ["localhost", "127.0.0.1", "127.0.1.1", "[::1]", "10.0.0.7", "box"] {
            assert!(names.contain(host), "{host}");
        }
        for host in ["agent-0", "10.0.0.70", "box.example", ""] {
            assert!(!names.contain(host), "{host}");
        }
    }
}
