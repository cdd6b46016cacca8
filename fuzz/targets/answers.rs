//! Agents that answer anything, to calls with and without schemas; and the finder of JSON in an answer's text.

#![no_main]

use arbitrary::Arbitrary;
use fanfold::{ErrorCode, Schema, Support};
use fanfold_agents::find_value;
use fanfold_fuzz::deeds::{Deed, End, Json, Planned, plan};
use fanfold_fuzz::{assert_no_fault, block_on, engine, request, run};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};

/// Asks for each of `args`, one after the other: `null` for text, a schema for a value.
const SCRIPT: &str = "
const answers = []
for (const schema of args) {
  try {
    answers.push({ answer: await agent('p', schema === null ? {} : { schema }) })
  } catch (error) {
    if (error.name !== 'WorkflowError') throw error
    answers.push({ code: error.code })
  }
}
return answers";

#[derive(Arbitrary, Debug)]
struct Input {
    asked: Vec<(Asked, Deed)>,
}

#[derive(Arbitrary, Debug)]
enum Asked {
    Text,
    Object,
    Strict,
    Any(Json),
}

impl Asked {
    fn schema(&self) -> Value {
        match self {
            Self::Text => Value::Null,
            Self::Object => json!({"type": "object"}),
            Self::Strict => json!({
                "type": "object", "required": ["n"], "additionalProperties": false,
                "properties": {"n": {"type": "integer"}, "a": {"$ref": "#"}},
            }),
            Self::Any(Json(schema)) => {
                let mut schema = schema.clone();
                if let Some(fields) = schema.as_object_mut() {
                    fields.insert("type".into(), "object".into());
                }
                schema
            }
        }
    }
}

fuzz_target!(|input: Input| {
    let asked: Vec<_> = input.asked.into_iter().take(20).collect();
    let schemas: Vec<Value> = asked.iter().map(|(asked, _)| asked.schema()).collect();
    for ((_, deed), schema) in asked.iter().zip(&schemas) {
        if let (End::Text(text) | End::Both(text, _), Ok(schema)) = (&deed.end, Schema::new(schema)) {
            match find_value(text, &schema) {
                Ok(value) => assert!(schema.violations(&value).is_empty()),
                Err(wrong) => assert!(!wrong.is_empty()),
            }
        }
    }
    plan(asked.into_iter().map(|(_, deed)| deed));
    let engine = engine(|| Box::new(Planned(Support::ALL)));
    let Ok(result) = block_on(run(engine, request(SCRIPT).args(schemas.clone().into()))) else { return };
    assert_no_fault(&result);
    if let Some(error) = &result.error {
        let code = error.code.expect("the script throws nothing of its own");
        assert!(matches!(code, ErrorCode::OutputLimit | ErrorCode::Cancelled), "{error}");
        return;
    }
    let answers: Vec<Value> = serde_json::from_str(result.value.get()).expect("a value can be read");
    assert_eq!(answers.len(), schemas.len());
    for (answer, schema) in answers.iter().zip(&schemas) {
        match (answer.get("answer"), answer.get("code")) {
            (Some(Value::Null), None) => {}
            (Some(Value::String(_)), None) => assert!(schema.is_null()),
            (Some(value), None) => {
                let schema = Schema::new(schema).expect("a schema that an answer was given for");
                assert_eq!(schema.violations(value), [""; 0]);
            }
            (None, Some(Value::String(code))) => {
                let code = ErrorCode::from_wire(code).expect("a known code");
                assert_ne!(code, ErrorCode::Internal);
            }
            other => panic!("{other:?}"),
        }
    }
});
