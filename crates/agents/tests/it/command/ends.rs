//! Cancelling, timeouts, retries: whatever happens, nothing is left running.

use std::fs;
use std::path::Path;
use std::time::Duration;

use fanfold::{AgentRequest, Answer, CancellationToken, Child, ChildError, Subagents as _};
use fanfold_agents::Command;
use tempfile::TempDir;
use tokio::task::JoinHandle;

use super::{failed, run, sh};

/// Descendants that ignore SIGTERM, hold the pipes open and never end, each noted in a file of its own.
const STUBBORN: &str = "(trap '' TERM HUP INT; while :; do sleep 60; done) & echo $! > stubborn; ";

/// A child in a folder of its own, which runs.
struct Running {
    folder: TempDir,
    pid: i32,
    cancel: CancellationToken,
    result: JoinHandle<Result<Answer, ChildError>>,
}

impl Running {
    /// Starts a child and waits until it has made the file `ready`.
    async fn start(agents: Command, script: &str) -> Self {
        Self::request(agents, script, AgentRequest::new("x")).await
    }

    async fn request(agents: Command, script: &str, request: AgentRequest) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let cancel = CancellationToken::new();
        let agents = agents.directory(folder.path()).env("SCRIPT", script);
        let Child { id, result, .. } = agents.start(request, cancel.clone()).await.unwrap();
        let pid = id.strip_prefix("sh-").unwrap().parse().unwrap();
        let result = tokio::spawn(result);
        eventually("it is ready", || folder.path().join("ready").exists()).await;
        Self { folder, pid, cancel, result }
    }

    fn stubborn(&self) -> i32 {
        pid_in(&self.folder.path().join("stubborn"))
    }
}

/// Runs what is in `SCRIPT`.
fn agents() -> Command {
    sh(r#"eval "$SCRIPT""#)
}

fn pid_in(path: &Path) -> i32 {
    fs::read_to_string(path).unwrap().trim().parse().unwrap()
}

/// Waits for something that must come to be.
async fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..3000 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("not within 30 s: {what}");
}

/// Whether a process is gone; one that has ended but whose parent has not noticed counts as gone.
fn is_gone(pid: i32) -> bool {
    if cfg!(target_os = "linux") {
        // After the name in parentheses comes the state.
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        return stat.rsplit(')').next().is_none_or(|rest| rest.is_empty() || rest.starts_with(" Z"));
    }
    is_reaped(pid)
}

/// Whether there is no trace of a process.
fn is_reaped(pid: i32) -> bool {
    rustix::process::test_kill_process(rustix::process::Pid::from_raw(pid).unwrap()).is_err()
}

#[tokio::test]
async fn cancelling_ends_a_child_and_all_that_it_started() {
    let child = Running::start(agents(), &format!("{STUBBORN} touch ready; wait")).await;
    let stubborn = child.stubborn();
    assert!(!is_gone(stubborn) && !is_gone(child.pid));
    child.cancel.cancel();
    assert_eq!(child.result.await.unwrap(), Err(ChildError::Cancelled));
    assert!(is_reaped(child.pid));
    eventually("its descendant is gone", || is_gone(stubborn)).await;
}

#[tokio::test]
async fn a_child_that_is_told_to_end_can_clean_up() {
    let script =
        "trap 'echo bye; echo bye >&2; echo bye > bye; exit' TERM; touch ready; while :; do sleep 0.05; done";
    let child = Running::start(agents().stop_grace(Duration::from_secs(60)), script).await;
    child.cancel.cancel();
    assert_eq!(child.result.await.unwrap(), Err(ChildError::Cancelled));
    assert!(child.folder.path().join("bye").exists());
}

#[tokio::test]
async fn a_child_that_does_not_end_when_told_is_killed() {
    let script = "trap '' TERM; touch ready; while :; do sleep 60; done";
    let child = Running::start(agents().stop_grace(Duration::from_millis(10)), script).await;
    child.cancel.cancel();
    assert_eq!(child.result.await.unwrap(), Err(ChildError::Cancelled));
    assert!(is_reaped(child.pid));
}

#[tokio::test]
async fn a_child_that_closes_its_streams_is_still_in_hand() {
    let child = Running::start(agents(), "exec <&- >&- 2>&-; touch ready; sleep 60").await;
    child.cancel.cancel();
    assert_eq!(child.result.await.unwrap(), Err(ChildError::Cancelled));
    let mut request = AgentRequest::new("x");
    request.options.timeout_ms = Some(50);
    assert_eq!(run(&sh("exec >&- 2>&-; sleep 60"), request).await, failed("timeout: no answer within 50 ms"));
}

#[tokio::test]
async fn a_child_cancelled_before_it_is_looked_at_ends() {
    let cancel = CancellationToken::new();
    let child = sh("sleep 60").start(AgentRequest::new("x"), cancel.clone()).await.unwrap();
    cancel.cancel();
    assert_eq!(child.result.await, Err(ChildError::Cancelled));
}

#[tokio::test]
async fn a_dropped_result_leaves_nothing() {
    let child = Running::start(agents(), &format!("trap '' TERM; {STUBBORN} touch ready; wait")).await;
    let stubborn = child.stubborn();
    child.result.abort();
    assert!(child.result.await.unwrap_err().is_cancelled());
    eventually("both are gone", || is_gone(stubborn) && is_gone(child.pid)).await;
    eventually("it is no zombie", || is_reaped(child.pid)).await;
}

#[tokio::test]
async fn a_result_never_looked_at_leaves_nothing() {
    let child = sh("sleep 60").start(AgentRequest::new("x"), CancellationToken::new()).await.unwrap();
    let pid = child.id.strip_prefix("sh-").unwrap().parse().unwrap();
    assert!(!is_gone(pid));
    drop(child);
    eventually("it is gone", || is_reaped(pid)).await;
}

#[tokio::test]
async fn a_descendant_that_holds_the_pipes_does_not_hold_up_the_answer() {
    let child = Running::start(agents(), &format!("{STUBBORN} touch ready; echo done")).await;
    let stubborn = child.stubborn();
    assert_eq!(child.result.await.unwrap().unwrap().text, "done");
    eventually("it is gone", || is_gone(stubborn)).await;
}

#[tokio::test]
async fn an_answer_that_descendants_still_write_is_read_to_its_end() {
    let script = "(for n in 1 2 3 4 5; do sleep 0.2; echo $n; done) & echo 0";
    let answer = run(&sh(script), AgentRequest::new("x")).await.unwrap();
    assert_eq!(answer.text, "0\n1\n2\n3\n4\n5");
}

#[tokio::test]
async fn a_child_out_of_time_ends_and_is_not_tried_again() {
    let folder = tempfile::tempdir().unwrap();
    let agents = sh("touch attempt-$FANFOLD_ATTEMPT; sleep 60").directory(folder.path());
    let mut request = AgentRequest::new("x");
    request.options.timeout_ms = Some(50);
    request.options.retries = Some(5);
    assert_eq!(run(&agents, request).await, failed("timeout: no answer within 50 ms"));
    assert!(!folder.path().join("attempt-2").exists());
}

#[tokio::test]
async fn a_timeout_beyond_all_time_is_none() {
    let mut request = AgentRequest::new("x");
    request.options.timeout_ms = Some(u64::MAX);
    assert_eq!(run(&sh("echo done"), request).await.unwrap().text, "done");
}

#[tokio::test]
async fn a_failure_is_tried_again_as_often_as_asked_for() {
    let agents = sh("[ $FANFOLD_ATTEMPT = 3 ] && echo third || { echo $FANFOLD_ATTEMPT >&2; exit 1; }");
    for (retries, expected) in [
        (None, failed("exit: exit status 1; standard error: 1")),
        (Some(0), failed("exit: exit status 1; standard error: 1")),
        (Some(1), failed("exit: exit status 1; standard error: 2")),
        (Some(2), Ok(Answer::text("third"))),
        (Some(9), Ok(Answer::text("third"))),
    ] {
        let mut request = AgentRequest::new("x");
        request.options.retries = retries;
        assert_eq!(run(&agents, request).await, expected, "{retries:?}");
    }
}

#[tokio::test]
async fn a_cancelled_child_is_not_tried_again() {
    let mut request = AgentRequest::new("x");
    request.options.retries = Some(1000);
    let script =
        "echo $FANFOLD_ATTEMPT >> attempts; [ $FANFOLD_ATTEMPT = 2 ] || exit 1; touch ready; sleep 60";
    let child = Running::request(agents(), script, request).await;
    child.cancel.cancel();
    assert_eq!(child.result.await.unwrap(), Err(ChildError::Cancelled));
    assert_eq!(fs::read_to_string(child.folder.path().join("attempts")).unwrap(), "1\n2\n");
}

#[tokio::test]
async fn a_program_that_vanishes_between_attempts_breaks_the_provider() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("agent");
    std::os::unix::fs::symlink("/bin/false", &program).unwrap();
    let agents = Command::new([program.to_str().unwrap()]).unwrap();
    let mut request = AgentRequest::new("x");
    request.options.retries = Some(1);
    let child = agents.start(request, CancellationToken::new()).await.unwrap();
    fs::remove_file(&program).unwrap();
    let why = format!("cannot start {program:?}: there is no file {}", program.display());
    assert_eq!(child.result.await, Err(ChildError::broken(why)));
}
