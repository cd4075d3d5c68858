//! [`AgentAttributes`]: the attributes of all agents, parsed from a line such as `zone:east|zone:west;rack:r%d`.

use crate::error::Error;
use crate::offer::attributes::{
    ATTRIBUTES_BYTES_MAX, OwnedAttribute, OwnedAttributeValue, is_readable,
};

const ALLOWED: &str = "NAME:VALUE[|VALUE...][;...], where a value is a number, [FROM-TO,...], \
                       {ITEM,...} or text, and %d is the agent's number";

/// The attributes of all agents of a cluster.
///
/// `;` separates attributes. `|` separates values that are assigned to agents in turn; the name may be repeated before
/// each: `zone:east|west` is the same as `zone:east|zone:west`. `%d` is replaced by the agent's number, counted from 0.
/// Values are parsed as in [`crate::attributes`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentAttributes {
    text: String,
    attributes: Vec<Alternating>,
}

/// One attribute, with the values that are assigned to agents in turn.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Alternating {
    name: String,
    values: Vec<String>,
}

impl AgentAttributes {
    /// Parses the line. An empty line means no attributes.
    ///
    /// # Errors
    /// If an attribute has no name or no value, contains control characters, or has an invalid interval.
    pub fn parse(text: &str) -> Result<AgentAttributes, Error> {
        if !is_readable(text) {
            let shown: String = text.chars().take(80).collect();
            let allowed =
                format!("at most {ATTRIBUTES_BYTES_MAX} bytes, without control characters");
            return Err(Error::setting("agent attributes", shown, allowed));
        }
        let attributes = text.split(';').map(str::trim).filter(|one| !one.is_empty());
        let attributes = attributes.map(parse_alternating).collect::<Option<Vec<_>>>();
        let attributes = attributes.ok_or_else(|| parse_error(text))?;
        let parsed = AgentAttributes { text: text.to_owned(), attributes };
        let alternatives = parsed.attributes.iter().map(|one| one.values.len()).max();
        for agent in 0..alternatives.unwrap_or(0) {
            parsed.of_agent(agent)?;
        }
        Ok(parsed)
    }

    /// Returns the attributes of the agent with this number.
    ///
    /// # Errors
    /// If the agent's number makes an interval invalid, as 6 does in `[%d-5]`.
    pub fn of_agent(&self, agent: usize) -> Result<Vec<OwnedAttribute>, Error> {
        let attributes = self.attributes.iter().map(|one| one.of_agent(agent));
        attributes.collect::<Option<Vec<_>>>().ok_or_else(|| parse_error(&self.text))
    }
}

impl Alternating {
    fn of_agent(&self, agent: usize) -> Option<OwnedAttribute> {
        let value = self.values.get(agent % self.values.len().max(1))?;
        let value = OwnedAttributeValue::parse(&value.replace("%d", &agent.to_string()))?;
        Some(OwnedAttribute { name: self.name.clone(), value })
    }
}

fn parse_error(text: &str) -> Error {
    Error::setting("agent attributes", text, ALLOWED)
}

fn parse_alternating(text: &str) -> Option<Alternating> {
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

    /// Goal: agents get values in turn, with the name repeated or not, and `%d` is replaced. Method: three agents of
    /// one line, in both spellings.
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

    /// Goal: invalid lines are rejected with an error that contains the allowed form. Method: each kind of mistake,
    /// including one that only a later agent has.
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
            "s:{a,,b}",
            "z:a;rack",
            "z:good|[1",
        ] {
            let error = AgentAttributes::parse(line).unwrap_err();
            assert!(error.is_setting());
            assert!(error.to_string().starts_with(&format!("agent attributes is {line:?}, but")));
        }
        assert!(AgentAttributes::parse("z:a\nb").is_err());
        assert!(
            AgentAttributes::parse(&format!("z:{}", "x".repeat(ATTRIBUTES_BYTES_MAX))).is_err()
        );
        let late = AgentAttributes::parse("p:[%d-5]").unwrap();
        assert!(late.of_agent(5).is_ok());
        assert!(late.of_agent(6).unwrap_err().is_setting());
    }
}
