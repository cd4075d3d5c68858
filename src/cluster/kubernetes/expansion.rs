//! References to variables in arguments and in values of variables.
//!
//! Kubernetes replaces `$(NAME)` in a container's arguments and variables by the value of a variable, and `$$` by `$`.
//! An executor's arguments must arrive as they are, so each `$` in them is doubled. Where the executor's node is to be
//! named, which is chosen only after the pod was created, a reference stands in its place: [`AGENT_ID`] and
//! [`HOSTNAME`] are variables whose values the node fills in.

/// The variable with the id of the executor's agent, its node.
pub(super) const AGENT_ID: &str = "OFFERMILL_AGENT_ID";

/// The variable with the host name of the executor's agent, its node.
pub(super) const HOSTNAME: &str = "OFFERMILL_HOSTNAME";

/// The placeholders that only the node can fill in, and the variables that have their values.
const LATE_PLACEHOLDERS: [(&str, &str); 2] =
    [("{{AGENT_ID}}", AGENT_ID), ("{{HOSTNAME}}", HOSTNAME)];

/// Writes a text so that Kubernetes' expansion gives the text again, with the node's values for `{{AGENT_ID}}` and
/// `{{HOSTNAME}}`.
pub(super) fn escaped(text: &str) -> String {
    let mut written = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(found) = rest.find(['$', '{']) {
        let (before, from) = rest.split_at(found);
        written.push_str(before);
        let late = LATE_PLACEHOLDERS.iter().find_map(|(placeholder, variable)| {
            from.strip_prefix(placeholder).map(|after| (variable, after))
        });
        rest = match late {
            Some((variable, after)) => {
                written.push_str(&format!("$({variable})"));
                after
            }
            None => {
                let is_dollar = from.starts_with('$');
                written.push_str(if is_dollar { "$$" } else { "{" });
                from.get(1..).unwrap_or_default()
            }
        };
    }
    written.push_str(rest);
    written
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What Kubernetes makes of a text: its own algorithm, as documented for a container's `args`. A reference that has
    /// no variable stays as it is.
    pub(in crate::cluster::kubernetes) fn expanded(
        text: &str,
        value: impl Fn(&str) -> Option<String>,
    ) -> String {
        let mut result = String::new();
        let mut rest = text;
        while let Some(found) = rest.find('$') {
            result.push_str(&rest[..found]);
            let after = &rest[found + 1..];
            if let Some(after) = after.strip_prefix('$') {
                result.push('$');
                rest = after;
            } else if let Some((name, after)) =
                after.strip_prefix('(').and_then(|inner| inner.split_once(')'))
            {
                result.push_str(&value(name).unwrap_or_else(|| format!("$({name})")));
                rest = after;
            } else {
                result.push('$');
                rest = after;
            }
        }
        result.push_str(rest);
        result
    }

    fn node(name: &str) -> Option<String> {
        match name {
            AGENT_ID => Some("node-1".to_owned()),
            HOSTNAME => Some("host-1".to_owned()),
            _ => None,
        }
    }

    /// Goal: the node's values are filled in, and only where they are asked for. Method: each placeholder, alone and
    /// within other text, unfinished and with dollar signs around it.
    #[test]
    fn placeholders_become_references() {
        for (text, expected) in [
            ("{{HOSTNAME}}", "host-1"),
            ("--id={{AGENT_ID}}/{{HOSTNAME}}!", "--id=node-1/host-1!"),
            ("$({{HOSTNAME}})", "$(host-1)"),
            ("{{{HOSTNAME}}}", "{host-1}"),
            ("{{HOSTNAME", "{{HOSTNAME"),
            ("{{CORES}}", "{{CORES}}"),
            ("$(OFFERMILL_HOSTNAME)", "$(OFFERMILL_HOSTNAME)"),
            ("", ""),
        ] {
            assert_eq!(expanded(&escaped(text), node), expected, "{text:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10_000))]

        /// Goal: an executor gets its arguments as they were given. Method: random texts that are rich in what the
        /// expansion looks for, with variables of all names defined.
        #[test]
        fn arguments_survive_the_expansion(text in "([$(){}aA_é ]|\\$\\(A\\)|\\$\\$|.){0,30}") {
            let any = |_: &str| Some("wrong".to_owned());
            prop_assert_eq!(expanded(&escaped(&text), any), text);
        }
    }
}
