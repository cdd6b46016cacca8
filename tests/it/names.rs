//! Names that a script lacks: what `fanfold check` says before a run, and what the run says.

use fanfold::{Limits, Meta, Script};
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
async fn whatever_the_sandbox_has_is_known() {
    let (engine, _) = support::engine(Limits::default());
    for header in ["", "export const meta = {name: 'test', description: 'a test'}\n"] {
        let text = format!("{header}return Object.getOwnPropertyNames(globalThis)");
        let request = fanfold::StartRequest::new(&*text);
        let request = if header.is_empty() { request.meta(Meta::new("test", "a test")) } else { request };
        let (result, _) = support::run(&engine, request).await.expect("the script starts");
        let names: Vec<String> = serde_json::from_str(result.value.get()).expect("names");
        assert!(names.len() > 60);
        for name in names {
            assert_eq!(undefined(&format!("{header}return {name}.x")), [""; 0], "{name}");
        }
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
    assert!(error.message.contains(r#"no option "labl"; did you mean "label"?"#), "{}", error.message);
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

/// Scripts that are large and wrong in every word take no longer than others.
#[test]
fn texts_of_unknown_names_alone_are_told_of_a_few() {
    let text: String = (0..20_000).map(|n| format!("unknown{n}(1); const own{n} = 1\n")).collect();
    assert!(undefined(&text).len() <= 20);
}
