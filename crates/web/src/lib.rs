//! The types crate for JavaScript: the fold of a run, the checker of session records, JSON for people.
//!
//! Everything crosses the border as JSON text, which both sides read fast. The TypeScript types are made from
//! the Rust types; `cargo xtask web` builds the npm package.

use fanfold_types as types;
use js_sys::JSON;
use serde::Serialize;
use serde::de::DeserializeOwned;
use wasm_bindgen::prelude::*;

/// A run as people look at it, folded from its events, session records and result.
///
/// Events may come in any order and more than once; the view is the same. A view is of one run, that of the
/// first thing it is told.
#[wasm_bindgen]
#[derive(Debug, Default)]
pub struct RunView(types::RunView);

#[wasm_bindgen]
impl RunView {
    /// A view that was told nothing yet.
    #[wasm_bindgen(constructor)]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes in a line of `fanfold run --json` or of a session log, as text. `false` if it was of no use: of another
    /// run, told before, or something else's.
    ///
    /// @throws if the line is not a JSON object, or says it is one of ours and is not
    pub fn line(&mut self, line: &str) -> Result<bool, JsError> {
        Ok(self.0.line(&types::Line::parse(line)?))
    }

    /// Takes in an event. `false` if it is of another run or was told before.
    pub fn event(
        &mut self,
        #[wasm_bindgen(unchecked_param_type = "Event")] event: &JsValue,
    ) -> Result<bool, JsError> {
        Ok(self.0.event(&from_js(event)?))
    }

    /// Takes in a session record.
    pub fn record(
        &mut self,
        #[wasm_bindgen(unchecked_param_type = "SessionRecord")] record: &JsValue,
    ) -> Result<bool, JsError> {
        Ok(self.0.record(&from_js(record)?))
    }

    /// Says that nothing more will be told: a run without an end was interrupted then.
    pub fn close(&mut self) {
        self.0.close();
    }

    /// What is new since the `revision` that was last seen; everything since 0.
    #[wasm_bindgen(unchecked_return_type = "ViewChanges")]
    pub fn since(&self, revision: f64) -> Result<JsValue, JsError> {
        // Revisions are counts of events: far below where a float is no longer exact.
        to_js(&self.0.since(revision as u64))
    }

    /// The same of a run that cannot be seen: what has not ended counts as interrupted. More can be taken in afterwards.
    #[wasm_bindgen(js_name = lastKnownSince, unchecked_return_type = "ViewChanges")]
    pub fn last_known_since(&self, revision: f64) -> Result<JsValue, JsError> {
        to_js(&self.0.last_known_since(revision as u64))
    }

    /// Takes in events that still wait for others: what was told so far is in order and whole, as a file is.
    #[wasm_bindgen(js_name = skipMissing)]
    pub fn skip_missing(&mut self) {
        self.0.skip_missing();
    }
}

/// Checks the records of a session one by one, as they are loaded or appended.
#[wasm_bindgen]
#[derive(Debug, Default)]
pub struct RecordChecker(types::RecordChecker);

#[wasm_bindgen]
impl RecordChecker {
    /// A checker of a session without records.
    #[wasm_bindgen(constructor)]
    pub fn new() -> Self {
        Self::default()
    }

    /// Checks the next record; one that is refused changes nothing.
    ///
    /// @throws if it does not belong there, with the reason
    pub fn check(
        &mut self,
        #[wasm_bindgen(unchecked_param_type = "SessionRecord")] record: &JsValue,
    ) -> Result<(), JsError> {
        Ok(self.0.check(&from_js(record)?)?)
    }
}

/// JSON text indented by two spaces, its numbers as they were written.
#[wasm_bindgen]
pub fn pretty(json: &str) -> String {
    types::text::pretty(json)
}

/// After how many milliseconds without a word an agent is told to be quiet.
#[wasm_bindgen(js_name = quietAfterMs)]
pub fn quiet_after_ms() -> f64 {
    types::AgentView::QUIET_AFTER_MS as f64
}

fn from_js<T: DeserializeOwned>(value: &JsValue) -> Result<T, JsError> {
    let text = JSON::stringify(value).ok().and_then(|text| text.as_string());
    Ok(serde_json::from_str(&text.ok_or_else(|| JsError::new("not a JSON value"))?)?)
}

fn to_js(value: &impl Serialize) -> Result<JsValue, JsError> {
    let text = serde_json::to_string(value)?;
    JSON::parse(&text).map_err(|_| JsError::new("JSON that is none"))
}
