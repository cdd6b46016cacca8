//! Running the command.

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

/// The command, with a cache of its own and no settings of the user's.
pub(crate) fn fanfold() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fanfold"));
    command
        .env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"))
        .env_remove("NO_COLOR")
        .env_remove("CLICOLOR_FORCE");
    command.current_dir(env!("CARGO_TARGET_TMPDIR"));
    command
}

/// Runs `fanfold` with these arguments and this standard input.
pub(crate) fn run(args: &[&str], stdin: &str) -> Output {
    let mut command = fanfold();
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("fanfold starts");
    let mut input = child.stdin.take().expect("its input is piped");
    // A command line that is refused does not read its input.
    let _ = input.write_all(stdin.as_bytes());
    drop(input);
    child.wait_with_output().expect("fanfold ends")
}

pub(crate) fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).expect("UTF-8")
}

pub(crate) fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).expect("UTF-8")
}
