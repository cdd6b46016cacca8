//! References within a schema: `#` and `#/…`.

use serde_json::Value;

/// The part of a schema that a reference `#` or `#/…` leads to, if there is one.
pub(in super::super) fn part<'a>(schema: &'a Value, reference: &str) -> Option<&'a Value> {
    tokens(reference).try_fold(schema, |part, token| child(part, &token))
}

/// The part of an object or an array with this name.
pub(super) fn child<'a>(value: &'a Value, token: &str) -> Option<&'a Value> {
    match value {
        Value::Object(fields) => fields.get(token),
        Value::Array(items) => {
            let is_index = token == "0" || !token.starts_with(['0', '+']);
            items.get(token.parse::<usize>().ok().filter(|_| is_index)?)
        }
        _ => None,
    }
}

/// The names on the way that a reference goes, whose special characters may be written as in JSON pointers and in URLs.
pub(super) fn tokens(reference: &str) -> impl Iterator<Item = String> {
    raw_tokens(reference).map(|token| unescaped(token).replace("~1", "/").replace("~0", "~"))
}

/// The same as they are written.
pub(super) fn raw_tokens(reference: &str) -> impl Iterator<Item = &str> {
    reference.strip_prefix("#/").into_iter().flat_map(|pointer| pointer.split('/'))
}

fn unescaped(token: &str) -> String {
    let mut bytes = Vec::with_capacity(token.len());
    let mut rest = token.as_bytes();
    while let [first, tail @ ..] = rest {
        let escaped = match rest {
            [b'%', high, low, ..] => hex(*high).zip(hex(*low)).map(|(high, low)| high << 4 | low),
            _ => None,
        };
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &rest[3..] } else { tail };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}
