//! Parsers for volumes, port mappings, container parameters, URIs and labels, in the formats of Spark's settings.
//!
//! ```text
//! volumes       = volume *( "," volume )       volume    = [ host ":" ] container [ ":" ( "rw" | "ro" ) ]
//! port mappings = mapping *( "," mapping )     mapping   = host ":" container [ ":" ( "tcp" | "udp" ) ]
//! parameters    = parameter *( "," parameter ) parameter = key "=" value
//! uris          = uri *( "," uri )
//! labels        = label *( "," label )         label     = key ":" value
//! ```
//!
//! White space around items is removed, except in labels. In labels, a backslash before a comma or a colon makes it
//! part of the text, and commas and colons at the end count for nothing, as in Spark. An empty text has no items. Spark
//! skips items that it can't parse, except labels; here they are errors. To skip them, parse the list item by item.

use super::{ContainerLabel, PortMapping, Protocol, Uri, Volume};
use crate::error::Error;

/// Parses volumes. They are writable unless they end with `:ro`.
///
/// # Errors
/// If an item is malformed. The error contains the item.
pub fn volumes(text: &str) -> Result<Vec<Volume>, Error> {
    all("volume", text, "[HOST_PATH:]CONTAINER_PATH[:rw|:ro]", volume)
}

/// Parses port mappings. Their protocol is TCP by default.
///
/// # Errors
/// If an item is malformed. The error contains the item.
pub fn port_mappings(text: &str) -> Result<Vec<PortMapping>, Error> {
    all(
        "port mapping",
        text,
        "HOST_PORT:CONTAINER_PORT[:tcp|:udp], with ports from 1 to 65535",
        port_mapping,
    )
}

/// Parses options for `docker run`, which are split at the first `=`.
///
/// # Errors
/// If an item is malformed. The error contains the item.
pub fn parameters(text: &str) -> Result<Vec<(String, String)>, Error> {
    all("container parameter", text, "KEY=VALUE", parameter)
}

/// Parses URIs to fetch.
///
/// # Errors
/// If an item is empty or contains white space.
pub fn uris(text: &str) -> Result<Vec<Uri>, Error> {
    let uri = |item: &str| {
        let odd = |c: char| c.is_whitespace() || c.is_control();
        (!item.is_empty() && !item.contains(odd)).then(|| Uri::new(item))
    };
    all("URI", text, "a URI or a path, without spaces", uri)
}

/// Parses labels as Spark does: a key may be empty, a value may not. Commas at the end of the text and colons at the
/// end of an item are ignored.
///
/// # Errors
/// If an item is malformed. The error contains the item; the whole text if the item is empty.
pub fn labels(text: &str) -> Result<Vec<ContainerLabel>, Error> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let label = |item: &str| {
        let [key, value] = &unescaped(item, ':')[..] else { return None };
        let plain = |part: &str| part.replace("\\,", ",").replace("\\:", ":");
        Some((plain(key), Some(plain(value))))
    };
    let allowed = "KEY:VALUE, with backslashes before other commas and colons";
    let items = unescaped(text, ',');
    items
        .into_iter()
        .map(|item| label(item).ok_or_else(|| refused("label", item, text, allowed)))
        .collect()
}

fn all<T>(
    name: &str,
    text: &str,
    allowed: &str,
    read: impl Fn(&str) -> Option<T>,
) -> Result<Vec<T>, Error> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let items = text.split(',').map(str::trim);
    items.map(|item| read(item).ok_or_else(|| refused(name, item, text, allowed))).collect()
}

/// The error for an item of `text`. An empty item is shown with the whole text.
#[cold]
fn refused(name: &str, item: &str, text: &str, allowed: &str) -> Error {
    let shown = if item.is_empty() { text } else { item };
    let shown: String = shown.chars().take(80).collect();
    Error::setting(name, shown, allowed)
}

fn volume(item: &str) -> Option<Volume> {
    let (paths, read_only) = match item.rsplit_once(':') {
        Some((paths, "rw")) => (paths, false),
        Some((paths, "ro")) => (paths, true),
        _ => (item, false),
    };
    let (host, container) = match paths.split_once(':') {
        Some((host, container)) => (Some(host), container),
        None => (None, paths),
    };
    let whole = host != Some("") && !container.is_empty() && !container.contains(':');
    let (host, container) = (host.map(str::to_owned), container.to_owned());
    whole.then_some(Volume { host, container, read_only })
}

fn port_mapping(item: &str) -> Option<PortMapping> {
    let port = |text: &str| {
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.parse().ok()).flatten().filter(|port| *port > 0)
    };
    let (host, rest) = item.split_once(':')?;
    let (container, protocol) = match rest.split_once(':') {
        None => (rest, Protocol::Tcp),
        Some((container, "tcp")) => (container, Protocol::Tcp),
        Some((container, "udp")) => (container, Protocol::Udp),
        Some(_) => return None,
    };
    Some(PortMapping { host: port(host)?, container: port(container)?, protocol })
}

fn parameter(item: &str) -> Option<(String, String)> {
    let (key, value) = item.split_once('=')?;
    (!key.is_empty()).then(|| (key.to_owned(), value.to_owned()))
}

/// Splits `text` at each `mark` that has no backslash before it. As with Java's `split`, which Spark uses, empty parts
/// at the end are dropped.
fn unescaped(text: &str, mark: char) -> Vec<&str> {
    let (mut parts, mut begin) = (Vec::new(), 0);
    for (at, _) in text.match_indices(mark) {
        let before = text.get(..at).unwrap_or_default();
        if !before.ends_with('\\') {
            parts.push(text.get(begin..at).unwrap_or_default());
            begin = at + mark.len_utf8();
        }
    }
    parts.push(text.get(begin..).unwrap_or_default());
    while parts.pop_if(|part| part.is_empty()).is_some() {}
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn volume(host: Option<&str>, container: &str, read_only: bool) -> Volume {
        Volume { host: host.map(str::to_owned), container: container.to_owned(), read_only }
    }

    /// Goal: the formats of Spark's settings are parsed. Method: each format.
    #[test]
    fn known_forms_are_read() {
        let wanted = [
            volume(None, "/a", false),
            volume(None, "/b", true),
            volume(Some("/h"), "/c", false),
            volume(Some("/h"), "d", true),
            volume(Some("/h"), "/e", false),
            volume(None, "ro", false),
        ];
        assert_eq!(volumes("/a, /b:ro,/h:/c ,/h:d:ro,/h:/e:rw,ro").unwrap(), wanted);

        let mapping = |host, container, protocol| PortMapping { host, container, protocol };
        let (tcp, udp) = (Protocol::Tcp, Protocol::Udp);
        let wanted = [mapping(80, 8080, tcp), mapping(53, 53, udp), mapping(1, 65535, tcp)];
        assert_eq!(port_mappings("80:8080,53:53:udp,1:65535:tcp").unwrap(), wanted);

        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let wanted = [pair("env", "A=b"), pair("net", ""), pair("x", "y")];
        assert_eq!(parameters("env=A=b,net=, x=y").unwrap(), wanted);

        let label = |key: &str, value: &str| (key.to_owned(), Some(value.to_owned()));
        let wanted = [label("a", "b c"), label("k,1", "v:2"), label(" x", "y")];
        assert_eq!(labels("a:b c,k\\,1:v\\:2, x:y").unwrap(), wanted);
        // As Spark 3.5.9 reads them.
        for (text, read) in [
            ("a:b,", &[("a", "b")][..]),
            ("a:b,,,", &[("a", "b")]),
            ("a:b:", &[("a", "b")]),
            ("a:b::,:c", &[("a", "b"), ("", "c")]),
            ("a:b\\,", &[("a", "b,")]),
            ("\\:a:b\\", &[(":a", "b\\")]),
            (" a:b , c:d ", &[(" a", "b "), (" c", "d ")]),
            (",", &[]),
            (",,", &[]),
        ] {
            let read: Vec<_> = read.iter().map(|(key, value)| label(key, value)).collect();
            assert_eq!(labels(text).unwrap(), read, "{text}");
        }

        let wanted = [Uri::new("http://h/a.tgz"), Uri::new("/b")];
        assert_eq!(uris("http://h/a.tgz, /b").unwrap(), wanted);
        for text in ["", " "] {
            assert!(volumes(text).unwrap().is_empty() && uris(text).unwrap().is_empty());
        }
        assert!(labels("").unwrap().is_empty());
    }

    /// Goal: a malformed item is an error that contains it. Method: near misses, each after a valid item.
    #[test]
    fn malformed_items_are_refused() {
        let error = port_mappings("80:8080,x").unwrap_err().to_string();
        let allowed = "HOST_PORT:CONTAINER_PORT[:tcp|:udp], with ports from 1 to 65535";
        assert_eq!(error, format!("port mapping is \"x\", but must be {allowed}"));
        for text in
            ["/a,", "/a,:/b", "/a,/h:", "/a,:ro", "/a,/h:/c:rx", "/a,/h:/c:ro:rw", "/a,/a:/b:/c"]
        {
            assert!(volumes(text).is_err(), "{text}");
        }
        for text in
            ["80", "80:", ":80", "0:1", "1:65536", "1:+2", "1:2:TCP", "1:2:tcp:", "1:2,", "a:b"]
        {
            assert!(port_mappings(text).is_err(), "{text}");
        }
        for text in ["a", "=b", "a=b,"] {
            assert!(parameters(text).is_err(), "{text}");
        }
        for text in
            ["a", "a:", "a:b:c", "a::b", "a:b,,c:d", ",a:b", "a:b, ", "a,b:c", "a\\:b", ":", " "]
        {
            assert!(labels(text).is_err(), "{text}");
        }
        let error = labels("a:b,,c:d").unwrap_err().to_string();
        assert!(error.starts_with("label is \"a:b,,c:d\", but must be KEY:VALUE"), "{error}");
        for text in ["/a,", "/a b", "/a\u{1}"] {
            assert!(uris(text).is_err(), "{text}");
        }
    }

    proptest! {
        /// Goal: no text makes a parser panic, and labels survive a round trip. Method: arbitrary texts of separators;
        /// labels of any characters but backslashes, written with backslashes.
        #[test]
        fn any_text_is_read_or_refused(
            text in "[ab0-9:,=\\\\ é/]{0,20}",
            label in ("[^\\\\]{1,8}", "[^\\\\]{1,8}"),
        ) {
            let _ = (volumes(&text), port_mappings(&text), parameters(&text), uris(&text), labels(&text));
            let escaped = |text: &str| text.replace(',', "\\,").replace(':', "\\:");
            let written = format!("{}:{}", escaped(&label.0), escaped(&label.1));
            let wanted = (label.0.clone(), Some(label.1.clone()));
            prop_assert_eq!(labels(&format!("a:b,{written}")).unwrap().pop(), Some(wanted));
        }
    }
}
