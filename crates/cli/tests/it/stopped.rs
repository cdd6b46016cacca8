//! A process that was stopped for a while (SIGSTOP, Ctrl-Z, a machine that slept).

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::fanfold::fanfold;

/// A coding agent that says a number five times a second, 40 times.
const AGENT: &str = r#"
message() { printf '{"jsonrpc":"2.0",%s}\n' "$1"; }
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\("[^"]*"\|[0-9]*\).*/\1/p')
  case "$line" in
    *'"method":"initialize"'*) message "\"id\":$id,\"result\":{\"protocolVersion\":1}" ;;
    *'"method":"session/new"'*) message "\"id\":$id,\"result\":{\"sessionId\":\"s\"}" ;;
    *'"method":"session/prompt"'*)
      n=0
      while [ $n -lt 40 ]; do
        message "\"method\":\"session/update\",\"params\":{\"sessionId\":\"s\",\"update\":{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\"$n \"}}}"
        n=$((n + 1)); sleep 0.2
      done
      message "\"id\":$id,\"result\":{\"stopReason\":\"end_turn\"}" ;;
  esac
done
"#;

#[test]
fn what_waits_after_a_stop_is_read_before_a_silence_counts() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("stopped");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("agent.sh"), AGENT).unwrap();
    let script = "export const meta = {name: 'stopped', description: 'd'}\nreturn await agent('count', {stallMs: 2500})";
    fs::write(folder.join("script.js"), script).unwrap();
    let mut command = fanfold();
    command.current_dir(&folder).args(["run", "script.js", "--json", "--agents", "acp"]);
    command.args(["--agent-command", "sh agent.sh"]).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut process = command.spawn().expect("fanfold starts");
    let mut output = BufReader::new(process.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("workflow/agent-progress") {
        line.clear();
        assert!(output.read_line(&mut line).unwrap() > 0, "it ended early");
    }
    let signal = |name: &str| {
        let sent = Command::new("kill").args([name, &process.id().to_string()]).status();
        assert!(sent.unwrap().success());
    };
    signal("-STOP");
    // Longer than the longest silence.
    std::thread::sleep(Duration::from_secs(4));
    signal("-CONT");
    let mut rest = String::new();
    output.read_to_string(&mut rest).unwrap();
    assert!(process.wait().unwrap().success());
    let said: String = (0..40).map(|n| format!("{n} ")).collect();
    assert!(rest.contains(&format!("\"value\":\"{said}\"")), "{rest}");
}
