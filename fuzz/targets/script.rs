//! Any text as a script, run in the sandbox with scripted agents.

#![no_main]

use fanfold_agents::Scripted;
use fanfold_fuzz::{assert_no_fault, assert_place, block_on, engine, request, run};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let script = String::from_utf8_lossy(data);
    let engine = engine(|| Box::new(Scripted::new()));
    match block_on(run(engine, request(&script).seed(1))) {
        Ok(result) => {
            assert_no_fault(&result);
            if let Some(error) = &result.error {
                assert_place(&script, error);
            }
        }
        Err(error) => assert_place(&script, &error),
    }
});
