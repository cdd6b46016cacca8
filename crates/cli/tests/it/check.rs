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
fn a_header_that_computes_is_refused_without_running_it() {
    let output =
        run(&["check", "-"], "export const meta = {name: (() => { while (true) {} })(), description: 'd'}");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("META_INVALID"), "{}", stderr(&output));
}
