//! Passes on what a model says as it comes, without the key: some servers repeat what they were sent.

use super::ApiKey;
use crate::policy::Transcript;

/// The words of one answer on their way to the transcript.
pub(super) struct Said<'a> {
    transcript: &'a Transcript,
    key: Option<&'a ApiKey>,
    /// How much of the answer was taken, in bytes.
    taken: usize,
    /// What may be the beginning of the key, which is passed on once it is seen not to be.
    held: String,
}

impl<'a> Said<'a> {
    pub(super) fn new(transcript: &'a Transcript, key: Option<&'a ApiKey>) -> Self {
        Self { transcript, key, taken: 0, held: String::new() }
    }

    /// Notes a sign of life.
    pub(super) fn heard(&self) {
        self.transcript.heard();
    }

    /// Takes the answer so far, which goes on where it was.
    pub(super) fn follow(&mut self, answer: &str) {
        let new = answer.get(self.taken..).unwrap_or_default();
        self.taken = answer.len();
        if new.is_empty() {
            return;
        }
        let Some(key) = self.key else { return self.transcript.text(new) };
        self.held.push_str(new);
        let (shown, held) = key.hide_so_far(&self.held);
        self.transcript.text(&shown);
        self.held = held;
    }

    /// The answer is over.
    pub(super) fn end(self) {
        if let Some(key) = self.key {
            self.transcript.text(&key.hide_in(&self.held));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_hidden_however_it_comes() {
        let key = ApiKey::new("sk-sk-secret").unwrap();
        let answer = "It is sk-sk-sk-secret, and sk-sk-other. sk-sk-s";
        for size in 1..answer.len() {
            let transcript = Transcript::default();
            let mut said = Said::new(&transcript, Some(&key));
            for end in (size..answer.len()).step_by(size) {
                said.follow(&answer[..end]);
            }
            said.follow(answer);
            said.end();
            let told = transcript.told();
            assert_eq!(told, "; it had said: It is sk-[key], and sk-sk-other. sk-sk-s", "{size}");
        }
    }
}
