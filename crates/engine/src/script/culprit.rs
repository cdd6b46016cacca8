//! Where a name or a property is used that an error is about.
//!
//! QuickJS notes places for calls and `throw` only: an error at anything else has the place of the last call before
//! it, which may be lines away. What such an error is about is in its message, and is found again in the text.

use super::tokens::{Kind, Tokens};

/// What an error of QuickJS is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Culprit<'a> {
    /// A name that nothing has.
    Name(&'a str),
    /// A property of something that can have none.
    Property(&'a str),
}

impl<'a> Culprit<'a> {
    /// Reads an error's message, with its class before it.
    pub(super) fn of(message: &'a str) -> Option<Self> {
        let (class, message) = message.split_once(": ")?;
        match class {
            "ReferenceError" => message.strip_suffix(" is not defined").map(Self::Name),
            "TypeError" => {
                let (_, rest) = ["cannot read property '", "cannot set property '"]
                    .into_iter()
                    .find_map(|start| Some((start, message.strip_prefix(start)?)))?;
                let name = rest.strip_suffix("' of null").or_else(|| rest.strip_suffix("' of undefined"));
                name.map(Self::Property)
            }
            _ => None,
        }
    }

    /// The byte where it is used in a script: the first such place from `after` on, or the only one.
    pub(super) fn find(self, tokens: &Tokens<'_>, after: Option<usize>) -> Option<usize> {
        let uses =
            (0..tokens.list.len()).filter(|at| self.is_used(tokens, *at)).map(|at| tokens.list[at].start);
        let uses: Vec<usize> = uses.collect();
        match (uses.as_slice(), after) {
            ([only], _) => Some(*only),
            (_, Some(after)) => uses.into_iter().find(|at| *at >= after),
            _ => None,
        }
    }

    fn is_used(self, tokens: &Tokens<'_>, at: usize) -> bool {
        let before = at.checked_sub(1).map_or("", |before| tokens.word(before));
        match (self, tokens.list[at].kind) {
            (Self::Name(name), Kind::Word) => {
                tokens.word(at) == name
                    && !matches!(before, "." | "?.")
                    // The name of an object's field.
                    && tokens.word(at + 1) != ":"
            }
            (Self::Property(name), Kind::Word) => tokens.word(at) == name && matches!(before, "." | "?."),
            (Self::Property(name), Kind::Text | Kind::Number) => {
                let text = tokens.word(at).trim_matches(['\'', '"']);
                text == name
                    && before == "["
                    && tokens.word(at + 1) == "]"
                    && is_operand(tokens, at.checked_sub(2))
            }
            _ => false,
        }
    }
}

/// Whether a token can end what `[` takes a property of; else the bracket begins an array.
fn is_operand(tokens: &Tokens<'_>, at: Option<usize>) -> bool {
    let Some(at) = at else { return false };
    match tokens.list[at].kind {
        Kind::Word => !matches!(tokens.word(at), "return" | "await" | "of" | "in" | "yield" | "typeof"),
        Kind::Punct => matches!(tokens.word(at), ")" | "]" | "?."),
        Kind::Text | Kind::Template => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_tell_what_they_are_about() {
        for (message, culprit) in [
            ("ReferenceError: a is not defined", Some(Culprit::Name("a"))),
            ("TypeError: cannot read property 'a' of null", Some(Culprit::Property("a"))),
            ("TypeError: cannot set property 'a b' of undefined", Some(Culprit::Property("a b"))),
            ("TypeError: not a function", None),
            ("Error: a is not defined", None),
            ("x", None),
        ] {
            assert_eq!(Culprit::of(message), culprit, "{message}");
        }
    }

    #[test]
    fn what_an_error_is_about_is_found_behind_the_last_call() {
        let body = "const x = f() // a\nx.a\nb({a: 1, 'k': x['a']}, ['k'], {r: ['k']})\nx?.a + a";
        let at = |text: &str| body.find(text).unwrap();
        for (culprit, after, found) in [
            (Culprit::Property("a"), Some(0), Some(at("x.a") + 2)),
            (Culprit::Property("a"), Some(at("b(")), Some(at("'a'"))),
            (Culprit::Property("a"), Some(at("'k'") + 10), Some(at("?.a") + 2)),
            (Culprit::Property("a"), None, None),
            (Culprit::Property("k"), None, None),
            (Culprit::Name("a"), None, Some(at("+ a") + 2)),
            (Culprit::Name("zzz"), Some(0), None),
        ] {
            assert_eq!(culprit.find(&Tokens::scan(body), after), found, "{culprit:?} {after:?}");
        }
    }
}
