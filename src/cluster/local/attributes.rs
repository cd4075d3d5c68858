//! Agents' attributes, from a line such as `zone:east|zone:west;rack:r%d`.

use crate::engine::seam::{OwnedAttribute, OwnedAttributeValue};
use crate::error::Error;
use crate::resources::PortRange;

const TEXT_BYTES_MAX: usize = 64 * 1024;

const ALLOWED: &str = "NAME:VALUE[|VALUE...][;...], where a value is a number, [FROM-TO,...] or \
                       text, and %d is the agent's number";

/// The attributes of all agents of a cluster.
///
/// `;` stands between attributes. `|` stands between values that agents take in turns, and the name
/// may be repeated before each: `zone:east|west` is `zone:east|zone:west`. `%d` is the agent's
/// number, counted from 0. As with the `--attributes` of a Mesos agent, a value that is a number
/// becomes a `SCALAR`, `[1-4,8-9]` becomes `RANGES`, and everything else is `TEXT`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentAttributes {
    text: String,
    attributes: Vec<Alternating>,
}

/// One attribute, with the values that agents take in turns.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Alternating {
    name: String,
    values: Vec<String>,
}

impl AgentAttributes {
    /// Reads the line; an empty one means no attributes.
    ///
    /// # Errors
    /// When an attribute has no name or no value, holds control characters, or an interval can't be
    /// read.
    pub fn parse(text: &str) -> Result<AgentAttributes, Error> {
        if text.len() > TEXT_BYTES_MAX || text.chars().any(char::is_control) {
            let shown: String = text.chars().take(80).collect();
            let allowed = "at most 65536 bytes, without control characters";
            return Err(Error::setting("agent attributes", shown, allowed));
        }
        let attributes = text.split(';').map(str::trim).filter(|one| !one.is_empty());
        let attributes = attributes.map(alternating).collect::<Option<Vec<_>>>();
        let attributes = attributes.ok_or_else(|| refused(text))?;
        let parsed = AgentAttributes { text: text.to_owned(), attributes };
        let alternatives = parsed.attributes.iter().map(|one| one.values.len()).max();
        for agent in 0..alternatives.unwrap_or(0) {
            parsed.of_agent(agent)?;
        }
        Ok(parsed)
    }

    /// The attributes of the agent with this number.
    ///
    /// # Errors
    /// When the agent's number makes an interval of one that can't be read (`[%d-5]` of agent 6).
    pub fn of_agent(&self, agent: usize) -> Result<Vec<OwnedAttribute>, Error> {
        let attributes = self.attributes.iter().map(|one| one.of_agent(agent));
        attributes.collect::<Option<Vec<_>>>().ok_or_else(|| refused(&self.text))
    }
}

impl Alternating {
    fn of_agent(&self, agent: usize) -> Option<OwnedAttribute> {
        let value = self.values.get(agent % self.values.len().max(1))?;
        let value = read_value(&value.replace("%d", &agent.to_string()))?;
        Some(OwnedAttribute { name: self.name.clone(), value })
    }
}

fn refused(text: &str) -> Error {
    Error::setting("agent attributes", text, ALLOWED)
}

fn alternating(text: &str) -> Option<Alternating> {
    let (name, values) = text.split_once(':')?;
    let name = name.trim();
    if name.is_empty() {
        return None;
    }
    let own_value = |alternative: &str| {
        let value = match alternative.split_once(':') {
            Some((repeated, value)) if repeated.trim() == name => value,
            _ => alternative,
        };
        let value = value.trim();
        (!value.is_empty()).then(|| value.to_owned())
    };
    let values = values.split('|').map(own_value).collect::<Option<Vec<_>>>()?;
    Some(Alternating { name: name.to_owned(), values })
}

/// What a value is taken for. `None` when it starts as an interval and isn't one, or as a set,
/// which attributes can't be.
fn read_value(text: &str) -> Option<OwnedAttributeValue> {
    if let Some(inside) = text.strip_prefix('[') {
        let intervals = inside.strip_suffix(']')?.split(',').map(read_interval);
        return Some(OwnedAttributeValue::Ranges(intervals.collect::<Option<Vec<_>>>()?));
    }
    if text.starts_with('{') {
        return None;
    }
    // "nan" and "infinity" are words here, as are hexadecimal numbers.
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
    Some(match number {
        Some(number) => OwnedAttributeValue::Scalar(number),
        None => OwnedAttributeValue::Text(text.to_owned()),
    })
}

fn read_interval(text: &str) -> Option<PortRange> {
    let (begin, end) = text.split_once('-')?;
    let (begin, end) = (begin.trim().parse().ok()?, end.trim().parse().ok()?);
    (begin <= end).then_some(PortRange::new(begin, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_agent(text: &str, agent: usize) -> Vec<(String, OwnedAttributeValue)> {
        let attributes = AgentAttributes::parse(text).unwrap().of_agent(agent).unwrap();
        attributes.into_iter().map(|one| (one.name, one.value)).collect()
    }

    fn text(name: &str, value: &str) -> (String, OwnedAttributeValue) {
        (name.to_owned(), OwnedAttributeValue::Text(value.to_owned()))
    }

    /// Goal: values go round the agents, with the name repeated or not, and numbers are filled in.
    /// Method: three agents of one line, in both spellings.
    #[test]
    fn values_alternate_over_agents() {
        for line in ["zone:east|zone:west;rack:r%d", " zone : east | west ; rack:r%d; "] {
            assert_eq!(of_agent(line, 0), [text("zone", "east"), text("rack", "r0")]);
            assert_eq!(of_agent(line, 1), [text("zone", "west"), text("rack", "r1")]);
            assert_eq!(of_agent(line, 2), [text("zone", "east"), text("rack", "r2")]);
        }
        assert_eq!(of_agent("url:http://a|http://b", 1), [text("url", "http://b")]);
        assert!(of_agent("", 0).is_empty());
    }

    /// Goal: values have the kinds that a Mesos agent gives them. Method: one of each kind, and
    /// words that look like numbers.
    #[test]
    fn values_have_their_kinds() {
        let kinds = of_agent("tier:3;load:-0.5;ports:[1-2, %d-10];word:nan;hex:0x1f", 10);
        let ranges = vec![PortRange::new(1, 2), PortRange::new(10, 10)];
        assert_eq!(kinds[0].1, OwnedAttributeValue::Scalar(3.0));
        assert_eq!(kinds[1].1, OwnedAttributeValue::Scalar(-0.5));
        assert_eq!(kinds[2].1, OwnedAttributeValue::Ranges(ranges));
        assert_eq!(kinds[3].1, OwnedAttributeValue::Text("nan".to_owned()));
        assert_eq!(kinds[4].1, OwnedAttributeValue::Text("0x1f".to_owned()));
    }

    /// Goal: what can't be read is refused in a sentence. Method: each kind of mistake, a late one
    /// included.
    #[test]
    fn mistakes_are_refused() {
        for line in [
            "zone",
            "zone:",
            ":east",
            "zone:a||b",
            "zone:a|",
            "p:[1-2",
            "p:[2-1]",
            "p:[x-y]",
            "p:[1]",
            "s:{a,b}",
            "z:a;rack",
            "z:good|[1",
        ] {
            let error = AgentAttributes::parse(line).unwrap_err();
            assert!(error.is_setting());
            assert!(error.to_string().starts_with(&format!("agent attributes is {line:?}, but")));
        }
        assert!(AgentAttributes::parse("z:a\nb").is_err());
        assert!(AgentAttributes::parse(&format!("z:{}", "x".repeat(TEXT_BYTES_MAX))).is_err());
        let late = AgentAttributes::parse("p:[%d-5]").unwrap();
        assert!(late.of_agent(5).is_ok());
        assert!(late.of_agent(6).unwrap_err().is_setting());
    }
}
