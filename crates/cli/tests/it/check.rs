//! `fanfold check`.

use crate::fanfold::{run, stderr, stdout};

#[test]
fn a_good_script_is_described() {
    let script =
        "export const meta = {name: 'demo', description: 'shows', phases: [{title: 'Look'}]}\nreturn 1";
    let output = run(&["check", "-"], script);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    for part in ["demo", "shows", "Look"] {
        assert!(stdout(&output).contains(part), "{}", stdout(&output));
    }
}

#[test]
fn a_bad_script_is_shown_with_a_mark_under_the_place() {
    let script = "export const meta = {name: 'demo', description: 'd'}\nconst n: number = 1\n";
    let output = run(&["check", "-"], script);
    assert_eq!(output.status.code(), Some(2));
    let shown = stderr(&output);
    assert!(
        shown.contains("TypeScript") && shown.contains("const n: number = 1") && shown.contains('^'),
        "{shown}"
    );
}

#[test]
fn warnings_fail_a_strict_check() {
    for (script, strict) in [("return agnet('x')", 1), ("return agent('x')", 0), ("return (", 2)] {
        let output = run(&["check", "--strict", "-"], script);
        assert_eq!(output.status.code(), Some(strict), "{script}: {}", stderr(&output));
    }
    let output = run(&["check", "-"], "return agnet('x')");
    assert_eq!(output.status.code(), Some(0));
    assert!(stderr(&output).contains("did you mean agent?"), "{}", stderr(&output));
}

#[test]
fn a_header_that_computes_is_refused_without_running_it() {
    let output =
        run(&["check", "-"], "export const meta = {name: (() => { while (true) {} })(), description: 'd'}");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("META_INVALID"), "{}", stderr(&output));
}

#[test]
fn what_would_be_refused_is_a_warning_with_its_place() {
    let script = "const x = await agent('x', {labl: 'y'})\nreturn fetch('http://x')";
    let output = run(&["check", "-"], script);
    assert_eq!(output.status.code(), Some(0));
    let said = stderr(&output);
    assert!(said.contains("warning: UNSUPPORTED_OPTION: agent() has no option \"labl\""), "{said}");
    assert!(said.contains("--> <stdin>:1:29") && said.contains("--> <stdin>:2:8"), "{said}");
}
