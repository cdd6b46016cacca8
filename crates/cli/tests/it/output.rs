//! What is written on standard output, and what becomes of it where it cannot be.

use crate::fanfold::{run, stderr, stdout};

#[cfg(target_os = "linux")]
#[test]
fn an_output_that_is_full_is_an_error() {
    use std::fs;
    use std::process::Stdio;

    use crate::fanfold::fanfold;

    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("s.js"), "return await agent('x')").unwrap();
    for args in [
        &["check", "s.js"][..],
        &["plan", "s.js"],
        &["plan", "s.js", "--json"],
        &["run", "s.js"],
        &["list"],
        &["list", "--json"],
    ] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut command = fanfold();
        let output =
            command.current_dir(folder.path()).args(args).stdout(full).stderr(Stdio::piped()).output();
        let output = output.unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", stderr(&output));
        assert!(stderr(&output).contains("No space left on device"), "{args:?}: {}", stderr(&output));
    }
}

#[test]
fn a_value_has_nothing_that_a_terminal_obeys() {
    let script = r#"return ["\u009d2;a title\u009c\u009b2J", "\u202egnp.exe", "\u001b[2J\u007f", { "\u2066k": 1 }, "é"]"#;
    let output = run(&["run", "-"], script);
    let shown = stdout(&output);
    for escaped in [r"\u009d2;a title\u009c\u009b2J", r"\u202egnp.exe", r"\u001b[2J\u007f", r"\u2066k", "é"]
    {
        assert!(shown.contains(escaped), "{shown}{}", stderr(&output));
    }
    assert!(!shown.chars().any(|c| c.is_control() && c != '\n'), "{shown:?}");
    let value: serde_json::Value = serde_json::from_str(shown).unwrap();
    assert_eq!(value[0], "\u{9d}2;a title\u{9c}\u{9b}2J");
}
