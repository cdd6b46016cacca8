//! tmp
use fanfold_types::*;
#[derive(Clone, Debug)]
pub struct Script { pub meta: Meta, pub body: String }
impl Script {
    pub fn read(text: &str, meta: Option<Meta>) -> Result<Self, WorkflowError> {
        let meta = meta.ok_or_else(|| ErrorCode::MetaInvalid.error("no meta"))?;
        meta.validate()?;
        Ok(Self { meta, body: text.to_owned() })
    }
    pub fn thrown(&self, text: &str) -> WorkflowError { WorkflowError::thrown(text) }
    pub fn syntax_error(&self, m: &str, line: u32) -> WorkflowError { ErrorCode::ScriptParse.error(m).at(line, 1) }
}
