//! [`LocalMaster`]: the size of the embedded cluster, parsed from `local`, `local[*]`, `local[N]` or
//! `local-cluster[AGENTS,CORES,MEM_MB]`.

use std::ops::RangeInclusive;
use std::str::FromStr;

use crate::cluster::process::machine;
use crate::error::Error;
use crate::resources::{Mebibytes, MilliCpus};

const AGENTS: RangeInclusive<u64> = 1..=10_000;
const CORES: RangeInclusive<u64> = 1..=65_536;
const MEMORY_MIB: RangeInclusive<u64> = 1..=1 << 30;

const ALLOWED: &str = "local, local[*], local[CORES] or local-cluster[AGENTS,CORES,MEM_MB], with \
                       1 to 10000 agents, 1 to 65536 cores and 1 to 1073741824 MiB each";

/// The number of agents, and the cores and memory of each, parsed from a master string.
///
/// * `local` and `local[*]`: one agent, with the cores that this process may use and the machine's memory less 1 GiB
///   (512 MiB at least);
/// * `local[8]`: the same with 8 cores, whatever the machine has;
/// * `local-cluster[3,2,1024]`: three agents of 2 cores and 1024 MiB each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalMaster {
    agents: usize,
    cores: u64,
    memory: Mebibytes,
    hosts: HostNames,
}

/// How agents' host names are formed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HostNames {
    /// The machine's host name, for a single agent.
    Machine,
    /// `agent-` and the agent's number: each agent stands for a machine of its own.
    Numbered,
}

impl LocalMaster {
    /// The number of agents.
    #[must_use]
    pub fn agents(&self) -> usize {
        self.agents
    }

    /// The cores of each agent.
    #[must_use]
    pub fn cores(&self) -> MilliCpus {
        MilliCpus::from_cores(self.cores)
    }

    /// The memory of each agent.
    #[must_use]
    pub fn memory(&self) -> Mebibytes {
        self.memory
    }

    /// The host name in the offers of the agent with this number.
    #[must_use]
    pub fn hostname(&self, agent: usize) -> String {
        match self.hosts {
            HostNames::Machine => machine::hostname(),
            HostNames::Numbered => format!("agent-{agent}"),
        }
    }

    fn single(cores: u64) -> LocalMaster {
        let memory = machine::offerable_memory();
        LocalMaster { agents: 1, cores, memory, hosts: HostNames::Machine }
    }
}

impl FromStr for LocalMaster {
    type Err = Error;

    /// Parses a master string.
    ///
    /// # Errors
    /// If it has none of the forms above, or a number is out of bounds.
    fn from_str(text: &str) -> Result<LocalMaster, Error> {
        parse(text.trim()).ok_or_else(|| Error::setting("master", text, ALLOWED))
    }
}

fn parse(text: &str) -> Option<LocalMaster> {
    if text == "local" {
        return Some(LocalMaster::single(u64::from(machine::cores())));
    }
    if let Some(cores) = bracketed(text, "local") {
        let cores = match cores.trim() {
            "*" => u64::from(machine::cores()),
            number => within(number, &CORES)?,
        };
        return Some(LocalMaster::single(cores));
    }
    let mut numbers = bracketed(text, "local-cluster")?.split(',');
    let agents = usize::try_from(within(numbers.next()?, &AGENTS)?).ok()?;
    let cores = within(numbers.next()?, &CORES)?;
    let memory = Mebibytes::new(within(numbers.next()?, &MEMORY_MIB)?);
    let hosts = HostNames::Numbered;
    numbers.next().is_none().then_some(LocalMaster { agents, cores, memory, hosts })
}

/// The text between the brackets of `name[...]`.
fn bracketed<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.strip_prefix(name)?.strip_prefix('[')?.strip_suffix(']')
}

/// Parses a decimal number without a sign. Spaces around it are allowed.
fn within(text: &str, bounds: &RangeInclusive<u64>) -> Option<u64> {
    let digits = text.trim();
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok().filter(|number| bounds.contains(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the documented forms are accepted. Method: each form, with and without spaces.
    #[test]
    fn documented_forms_are_accepted() {
        let machine: LocalMaster = "local[*]".parse().unwrap();
        assert_eq!(machine, "local".parse().unwrap());
        assert_eq!(machine.agents(), 1);
        assert_eq!(machine.cores(), MilliCpus::from_cores(u64::from(machine::cores())));
        assert!(machine.memory().get() >= 512);
        assert_eq!(machine.hostname(0), machine::hostname());

        let eight: LocalMaster = "local[8]".parse().unwrap();
        assert_eq!((eight.agents(), eight.cores()), (1, MilliCpus::from_cores(8)));

        for text in ["local-cluster[3,2,1024]", "local-cluster[ 3 , 2,1024 ]"] {
            let cluster: LocalMaster = text.parse().unwrap();
            assert_eq!(cluster.agents(), 3);
            assert_eq!(cluster.cores(), MilliCpus::from_cores(2));
            assert_eq!(cluster.memory(), Mebibytes::new(1024));
            assert_eq!(cluster.hostname(2), "agent-2");
        }
    }

    /// Goal: other texts are rejected with an error that contains the value and the allowed forms. Method: malformed
    /// strings, and numbers beyond each bound.
    #[test]
    fn anything_else_is_refused() {
        for text in [
            "",
            "Local",
            "local[",
            "local[]",
            "local[0]",
            "local[-1]",
            "local[+1]",
            "local[1.5]",
            "local[*,4]",
            "local[65537]",
            "local[99999999999999999999]",
            "local-cluster",
            "local-cluster[1,2]",
            "local-cluster[1,2,3,4]",
            "local-cluster[0,1,1]",
            "local-cluster[10001,1,1]",
            "local-cluster[1,0,1]",
            "local-cluster[1,1,0]",
            "local-cluster[1,1,1073741825]",
            "local-cluster[a,b,c]",
            "mesos://host:5050",
        ] {
            let error = text.parse::<LocalMaster>().unwrap_err();
            assert!(error.is_setting());
            let sentence = error.to_string();
            assert!(sentence.starts_with(&format!("master is {text:?}, but must be local")));
        }
    }
}
