//! Any text as `args` of a script that returns them.

#![no_main]

use fanfold::ErrorCode::{InvalidArgument, OutputLimit, ResultUnserializable};
use fanfold_agents::Scripted;
use fanfold_fuzz::{block_on, engine, request, run};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|data: &[u8]| {
    let args = String::from_utf8_lossy(data);
    let engine = engine(|| Box::new(Scripted::new()));
    let code = match block_on(run(engine, request("return args").args_json(&*args))) {
        Ok(result) if result.error.is_none() => {
            let value: Value = serde_json::from_str(result.value.get()).expect("a value can be read");
            // What a Rust reader refuses, a script may take: lone surrogates.
            if let Ok(args) = serde_json::from_str::<Value>(&args) {
                assert!(same(&args, &value), "{args} became {value}");
            }
            return;
        }
        Ok(result) => result.error.and_then(|error| error.code),
        Err(error) => {
            assert!(
                error.code != Some(InvalidArgument)
                    || serde_json::from_str::<Value>(&args).is_err()
                    || deep(&args)
            );
            error.code
        }
    };
    assert!(matches!(code, Some(InvalidArgument | OutputLimit | ResultUnserializable)), "{code:?}");
});

/// Brackets enough to be nested too deeply.
fn deep(args: &str) -> bool {
    args.bytes().filter(|byte| matches!(byte, b'[' | b'{')).count() > 100
}

/// Whether two values are the same to JavaScript, whose numbers are all of one kind.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        (a, b) => a == b,
    }
}
