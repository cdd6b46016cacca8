//! What programs git runs for a worktree, and for how long.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use super::*;

/// What must not take for ever.
const GENEROUS: Duration = Duration::from_secs(120);

/// A repository whose file passes through a filter of this name. The filter was not there when it was committed.
fn filtered(smudge: &str) -> Repository {
    let repository = Repository::new();
    fs::write(repository.path().join(".gitattributes"), "file filter=f\n").unwrap();
    repository.git("add --all");
    repository.git("commit --quiet --message second");
    let status = Program::new("git")
        .args(["config", "filter.f.smudge", smudge])
        .current_dir(repository.path())
        .status();
    assert!(status.unwrap().success());
    repository
}

#[tokio::test]
async fn a_filter_that_an_agent_sets_does_not_run_after_its_end() {
    let repository = Repository::new();
    let ran = repository.path().join("ran");
    let script = format!(
        "echo '* filter=x' > $(git rev-parse --git-path info/attributes); touch -d 2001-01-01 file; \
         git config filter.x.clean 'echo clean >> {ran}; cat'; git config filter.x.smudge 'echo smudge >> {ran}; cat'; \
         git config filter.x.process 'echo process >> {ran}'",
        ran = ran.display()
    );
    let agents = repository.agents(&script).await;
    let (answer, left) = run(&agents, isolated(1, "x")).await;
    assert!(answer.is_ok());
    assert_eq!(left, None, "its times alone are no change");
    // Nor for the next worktree of the same run, nor to tidy up.
    let (_, left) = run(&agents, isolated(2, "x")).await;
    assert_eq!(left, None);
    drop(agents);
    assert_eq!(repository.clean().await, []);
    assert!(!ran.exists(), "{:?}", fs::read_to_string(ran));
}

#[tokio::test]
async fn no_other_program_of_an_agent_runs_after_its_end() {
    let repository = Repository::new();
    let ran = repository.path().join("ran");
    let hook = format!("#!/bin/sh\necho $0 >> {}\n", ran.display());
    fs::write(repository.path().join("target"), hook).unwrap();
    let program = repository.path().join("target").display().to_string();
    let script = format!(
        "chmod +x {program}; hooks=$(git rev-parse --git-path hooks); mkdir -p $hooks; \
         for name in post-checkout reference-transaction post-index-change pre-auto-gc post-rewrite; do \
         ln -s {program} $hooks/$name; done; \
         for name in core.fsmonitor core.pager core.editor core.sshCommand diff.external diff.d.textconv diff.d.command \
         gpg.program credential.helper interactive.diffFilter merge.m.driver alias.status; do \
         git config $name {program}; done; echo '* diff=d merge=m' > $(git rev-parse --git-path info/attributes)"
    );
    let agents = repository.agents(&script).await;
    let (answer, left) = run(&agents, isolated(1, "x")).await;
    assert!(answer.is_ok());
    assert_eq!(left, None);
    // What ran by the agent's own git is not the question.
    let _ = fs::remove_file(&ran);
    let agents =
        super::super::sh("touch new").worktrees(Worktrees::open(repository.path(), None).await.unwrap());
    let (_, left) = run(&agents, isolated(2, "x")).await;
    assert!(left.unwrap().uncommitted);
    drop(agents);
    assert!(matches!(&*repository.clean().await, [Outcome::Kept(_)]));
    assert!(!ran.exists(), "{:?}", fs::read_to_string(ran));
}

#[tokio::test]
async fn a_filter_of_the_repository_fills_worktrees_as_it_was_when_the_run_began() {
    let repository = filtered("sed s/one/smudged/");
    let agents = repository.agents("cat file; git config filter.f.smudge 'sed s/one/evil/'").await;
    for seq in 1..=2 {
        let (answer, left) = run(&agents, isolated(seq, "x")).await;
        assert_eq!((answer.unwrap(), left), ("smudged".into(), None));
    }
}

#[tokio::test]
async fn isolation_can_be_told_to_run_no_filters() {
    let repository = filtered("sed s/one/smudged/");
    let worktrees = Worktrees::open(repository.path(), None).await.unwrap().without_filters();
    let agents = super::super::sh("cat file; git status --short").worktrees(worktrees);
    let (answer, left) = run(&agents, isolated(1, "x")).await;
    assert_eq!((answer.unwrap(), left), ("one".into(), None));
}

/// A repository with a filter that takes long, and the file in which that notes its process.
fn slow(trap: &str) -> (Repository, PathBuf) {
    let note = tempfile::NamedTempFile::new().unwrap().into_temp_path().keep().unwrap();
    fs::remove_file(&note).unwrap();
    let repository = filtered(&format!("{trap} echo $$ > {}; sleep 1000; cat", note.display()));
    (repository, note)
}

/// Waits until the filter has noted its process.
async fn process(note: &Path) -> String {
    let begun = Instant::now();
    loop {
        match fs::read_to_string(note) {
            Ok(id) if id.ends_with('\n') => return id.trim().to_owned(),
            _ => assert!(begun.elapsed() < GENEROUS, "the filter does not start"),
        }
        sleep(Duration::from_millis(10)).await;
    }
}

/// Waits until a process has ended.
async fn ended(id: &str) {
    let begun = Instant::now();
    while Program::new("kill")
        .args(["-0", id])
        .stderr(std::process::Stdio::null())
        .status()
        .unwrap()
        .success()
    {
        assert!(begun.elapsed() < GENEROUS, "the filter goes on");
        sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn an_agent_out_of_time_fails_although_its_worktree_is_not_made_and_its_filter_ends() {
    // One that ends when it is asked to, and one that does not.
    for trap in ["", "trap '' TERM;"] {
        let (repository, note) = slow(trap);
        let agents = repository.agents("cat").await.stop_grace(Duration::from_millis(200));
        let mut request = isolated(1, "x");
        request.options.timeout_ms = Some(1000);
        let (answer, left) = timeout(GENEROUS, run(&agents, request)).await.expect("an end");
        let Err(ChildError::Failed(why)) = answer else { panic!("{answer:?}") };
        assert_eq!(why.kind.as_deref(), Some("timeout"), "{why:?}");
        assert_eq!(left, None);
        ended(&process(&note).await).await;
        drop(agents);
        assert_eq!((repository.leftovers().len(), &*repository.branches()), (0, "main"));
        fs::remove_file(note).unwrap();
    }
}

#[tokio::test]
async fn an_agent_that_is_cancelled_before_its_worktree_is_made_leaves_neither_filter_nor_worktree() {
    let (repository, note) = slow("");
    let agents = repository.agents("cat").await;
    let cancel = CancellationToken::new();
    let start = agents.start(isolated(1, "x"), cancel.clone());
    let interrupt = async {
        let id = process(&note).await;
        cancel.cancel();
        id
    };
    let both = async { tokio::join!(start, interrupt) };
    let (child, id) = timeout(GENEROUS, both).await.expect("an end");
    assert_eq!(child.unwrap().result.await, Err(ChildError::Cancelled));
    ended(&id).await;
    drop(agents);
    assert_eq!((repository.leftovers().len(), &*repository.branches()), (0, "main"));
    fs::remove_file(note).unwrap();
}
