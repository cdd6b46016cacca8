//! Any text as a script whose metadata is read, and whose errors are told. Up to a NUL it is the script, behind it
//! what QuickJS says of it.

#![no_main]

use fanfold::{ErrorCode, Meta, Script};
use fanfold_fuzz::{assert_place, lines};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let (text, message) = text.split_once('\0').unwrap_or((&text, "unexpected token: '}'"));
    let has_header = Script::has_header(text);
    match Script::read(text, None) {
        Ok(script) => {
            assert!(has_header);
            assert_eq!(script.meta.validate(), Ok(()));
            check(text, &script, message);
            // Metadata beside it: the same is fine, another is refused.
            let again = Script::read(text, Some(script.meta.clone())).expect("the same metadata beside it");
            assert_eq!(again.body, script.body);
            assert!(Script::read(text, Some(Meta::new(format!("{}.", script.meta.name), "d"))).is_err());
        }
        Err(error) => refused(text, &error),
    }
    match Script::read(text, Some(Meta::new("n", "d"))) {
        Ok(script) => check(text, &script, message),
        Err(error) => refused(text, &error),
    }
});

fn refused(text: &str, error: &fanfold::WorkflowError) {
    assert!(matches!(error.code, Some(ErrorCode::MetaInvalid | ErrorCode::ScriptParse)), "{error}");
    assert_place(text, error);
}

fn check(text: &str, script: &Script, message: &str) {
    assert_eq!(script.body.len(), text.len());
    for (is, was) in script.body.bytes().zip(text.bytes()) {
        assert!(is == was || is == b' ' || is == b';' || (is, was) == (b'\n', b'\r'), "{was} became {is}");
    }
    let (before, after) = (lines(text), lines(&script.body));
    assert_eq!(before.len(), after.len());
    let places = before.iter().zip(&after).all(|(before, after)| before.len() == after.len());
    assert!(places, "a line has another length");
    assert!(script.hook_calls().iter().all(|(_, calls)| *calls <= text.len()));

    assert_place(text, &script.thrown(message));
    let last = before.len() as u32;
    for line in [0, 1, last / 2, last, last + 1, u32::MAX] {
        let error = script.syntax_error(message, line);
        assert_eq!(error.code, Some(ErrorCode::ScriptParse));
        assert_place(text, &error);
        for column in [0, 1, message.len() as u32, u32::MAX] {
            assert!(script.column(line, column) >= 1);
        }
    }
}
