//! Keys: read from the environment, sent in one header, shown nowhere.

use std::fmt;
use std::sync::Arc;

use reqwest::header::HeaderValue;

/// An API key. It is shown by nothing: not by `Debug`, not in errors.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(Arc<str>);

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The variable is not set, or empty.
    #[error("the environment variable {0} is not set; it must hold the API key")]
    Missing(String),
    /// The key cannot be sent.
    #[error("the API key has a character that cannot be sent, such as a line end in its middle")]
    Unusable,
}

/// The fewest characters at the end of a text that are taken for the beginning of the key; a key of so many is hidden
/// in answers if one of them is a digit.
const MIN_PART: usize = 8;

/// The fewest characters of a key without a digit that is hidden in answers. Local servers want words for keys, such as
/// `ollama` or `not-needed`, which an answer may speak of.
const MIN_WORD: usize = 12;

impl ApiKey {
    /// A key. White space around it is left out.
    ///
    /// # Errors
    /// [`KeyError::Unusable`] for one that cannot be sent in a header.
    pub fn new(key: impl AsRef<str>) -> Result<Self, KeyError> {
        let key = key.as_ref().trim();
        if key.is_empty() || HeaderValue::from_str(key).is_err() || !key.is_ascii() {
            return Err(KeyError::Unusable);
        }
        Ok(Self(key.into()))
    }

    /// The key in an environment variable of this process.
    ///
    /// # Errors
    /// [`KeyError::Missing`]; [`KeyError::Unusable`].
    pub fn from_env(variable: &str) -> Result<Self, KeyError> {
        match std::env::var(variable) {
            Ok(key) if !key.trim().is_empty() => Self::new(key),
            Err(std::env::VarError::NotUnicode(_)) => Err(KeyError::Unusable),
            _ => Err(KeyError::Missing(variable.into())),
        }
    }

    /// The key in a header, after a prefix; marked, so that no log of the HTTP client shows it.
    pub(super) fn header(&self, prefix: &str) -> Option<HeaderValue> {
        let mut value = HeaderValue::from_str(&format!("{prefix}{}", self.0)).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    /// The same text, without the key: some servers repeat what they were sent. A text that was read only so far may
    /// end within the key.
    pub(super) fn hide_in(&self, text: &str) -> String {
        let mut hidden = text.replace(&*self.0, "[key]");
        let begun = (MIN_PART..self.0.len()).rev().find(|length| hidden.ends_with(&self.0[..*length]));
        if let Some(length) = begun {
            hidden.truncate(hidden.len() - length);
            hidden.push_str("[key]");
        }
        hidden
    }

    /// The beginning of a text that goes on, without the key, and its end that is or may become a part of it.
    pub(super) fn hide_so_far(&self, text: &str) -> (String, String) {
        let mut shown = text.replace(&*self.0, "[key]");
        let begun = (1..self.0.len()).rev().find(|length| shown.ends_with(&self.0[..*length]));
        let held = shown.split_off(shown.len() - begun.unwrap_or_default());
        (shown, held)
    }
}

impl ApiKey {
    /// Whether answers must not show it: it cannot be a word.
    pub(super) fn is_hidden_in_answers(&self) -> bool {
        let digit = self.0.bytes().any(|byte| byte.is_ascii_digit());
        self.0.len() >= if digit { MIN_PART } else { MIN_WORD }
    }

    /// The same answer, without the key; unless the key may be a word.
    pub(super) fn hide_in_answer(&self, text: String) -> String {
        if self.is_hidden_in_answers() && text.contains(&*self.0) {
            text.replace(&*self.0, "[key]")
        } else {
            text
        }
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey([key])")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_shown_nowhere() {
        let key = ApiKey::new(" sk-secret\n").unwrap();
        assert_eq!(format!("{key:?}"), "ApiKey([key])");
        assert_eq!(key.hide_in("Incorrect key sk-secret."), "Incorrect key [key].");
        assert_eq!(key.hide_in("Incorrect key sk-secre"), "Incorrect key [key]");
        assert_eq!(key.hide_in("It is a task"), "It is a task");
        let header = key.header("Bearer ").unwrap();
        assert_eq!(header, "Bearer sk-secret");
        assert!(!format!("{header:?}").contains("secret"));
    }

    #[test]
    fn a_key_is_hidden_in_answers_unless_it_may_be_a_word() {
        for (key, hidden) in [
            ("sk-test-0123456789", true),
            ("sk-secret-key", true),
            ("a1b2c3d4", true),
            ("ollama", false),
            ("EMPTY", false),
            ("lm-studio", false),
            ("not-needed", false),
            ("sk-1234", false),
        ] {
            let said = |name: &str| format!("Set it to {name}, or {name}.");
            let shown = ApiKey::new(key).unwrap().hide_in_answer(said(key));
            assert_eq!(shown, said(if hidden { "[key]" } else { key }));
        }
        // The beginning of many keys; an answer is whole.
        let key = ApiKey::new("sk-proj-0123456789").unwrap();
        assert_eq!(key.hide_in_answer("Keys begin with sk-proj-".into()), "Keys begin with sk-proj-");
    }

    #[test]
    fn what_cannot_be_sent_is_no_key_and_is_not_repeated() {
        for key in ["", " ", "sk-\nsecret", "sk-\u{e9}secret"] {
            let error = ApiKey::new(key).unwrap_err();
            assert!(!error.to_string().contains("secret"), "{error}");
        }
        let error = ApiKey::from_env("FANFOLD_NO_SUCH_KEY").unwrap_err();
        assert!(error.to_string().contains("FANFOLD_NO_SUCH_KEY"), "{error}");
    }
}
