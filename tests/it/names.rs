//! Names that a script lacks: what `fanfold check` says before a run, and what the run says.

use fanfold::{Limits, Meta, Script, StartRequest};
use fanfold_tests::conformance::cases;

use crate::support;

/// What is said of names that nothing has.
fn undefined(text: &str) -> Vec<String> {
    let meta = (!Script::has_header(text)).then(|| Meta::new("test", "a test"));
    // A text that is no script lacks nothing.
    let Ok(script) = Script::read(text, meta) else { return Vec::new() };
    let warnings = script.warnings(None).into_iter().map(|warning| warning.message);
    warnings.filter(|message| message.contains("is not defined")).collect()
}

#[tokio::test]
async fn the_sandbox_has_the_globals_that_scripts_are_said_to_have() {
    let (engine, _) = support::engine(Limits::default());
    for header in ["", "export const meta = {name: 'test', description: 'a test'}\n"] {
        let text = format!("{header}return Object.getOwnPropertyNames(globalThis).sort()");
        let meta = header.is_empty().then(|| Meta::new("test", "a test"));
        let mut said = Script::read(&text, meta.clone()).expect("it has metadata").globals();
        said.sort_unstable();
        let mut request = StartRequest::new(&*text);
        if let Some(meta) = meta {
            request = request.meta(meta);
        }
        let (result, _) = support::run(&engine, request).await.expect("the script starts");
        let has: Vec<String> = serde_json::from_str(result.value.get()).expect("names");
        assert_eq!(said, has);
    }
}

#[tokio::test]
async fn a_misspelled_name_is_told_with_the_one_that_was_meant() {
    let (engine, _) = support::engine(Limits::default());
    for (text, meant) in [
        ("return await paralel([() => agent('x')])", "parallel"),
        ("function review(x) { return agent(x) }\nreturn await reviw('x')", "review"),
    ] {
        let told = format!("(did you mean {meant}?)");
        assert!(undefined(text)[0].contains(&told), "{:?}", undefined(text));
        let (result, _) = support::run(&engine, support::request(text)).await.expect("the script starts");
        let error = result.error.as_ref().expect("it fails");
        assert!(error.message.contains(&told), "{}", error.message);
    }
    let (result, _) = support::run(&engine, support::request("return await agent('x', {labl: 'y'})"))
        .await
        .expect("it starts");
    let error = result.error.as_ref().expect("it fails");
    assert!(error.message.contains(r#"; did you mean "label"?"#), "{}", error.message);
}

#[test]
fn scripts_that_work_lack_no_name() {
    let mut scripts: Vec<(String, String)> = Vec::new();
    for file in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/corpus")).expect("the corpus") {
        let path = file.expect("a file").path();
        if path.extension().is_some_and(|extension| extension == "js") {
            scripts.push((path.display().to_string(), std::fs::read_to_string(&path).expect("text")));
        }
    }
    for case in cases() {
        scripts.push((case.name, case.script));
    }
    assert!(scripts.len() > 190);
    let lacking: Vec<(String, Vec<String>)> = scripts
        .iter()
        .map(|(name, text)| (name.clone(), undefined(text)))
        .filter(|(_, names)| !names.is_empty())
        .collect();
    assert_eq!(lacking, []);
}

#[test]
fn of_many_unknown_names_the_first_are_told() {
    // With few names of its own, which are compared with the unknown ones, and with many.
    for own in [190, 20_000] {
        let own: String =
            (0..own).map(|n| format!("const the_name_of_something_that_is_here{n} = 1\n")).collect();
        let unknown: String =
            (0..20_000).map(|n| format!("the_name_of_something_that_is_gone{n}(1)\n")).collect();
        let told = undefined(&format!("{own}{unknown}"));
        assert_eq!(told.len(), 20);
        assert!(told[19].starts_with("the_name_of_something_that_is_gone19 is not defined"), "{}", told[19]);
    }
}
