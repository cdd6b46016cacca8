//! What counts as changes, however an agent hides it or leaves it behind.

use super::*;

/// Runs a script in a worktree, and returns what it leaves. Nothing takes that away afterwards.
async fn left_by(script: &str) -> (Repository, Worktree) {
    let repository = Repository::new();
    let (answer, left) = run(&repository.agents(script).await, isolated(1, "x")).await;
    assert!(answer.is_ok(), "{script}: {answer:?}");
    let left = left.unwrap_or_else(|| panic!("nothing was kept of: {script}"));
    let cleaned = repository.clean().await;
    assert!(matches!(&*cleaned, [Outcome::Kept(kept)] if **kept == left), "{script}: {cleaned:?}");
    assert!(Path::new(&left.path).exists(), "{script}");
    (repository, left)
}

/// Files that are others are kept and named if `git status` hides them.
async fn is_kept_and_named(script: &str) {
    let (_repository, left) = left_by(script).await;
    assert!(left.uncommitted, "{script}");
    let hidden = "changes that `git status` does not show, in file";
    assert_eq!(left.problem.as_deref(), Some(hidden), "{script}");
}

/// Commits are kept and named if no branch has them.
async fn is_kept_as_a_commit_on_no_branch(script: &str) {
    let (repository, left) = left_by(script).await;
    let commit = left.commits.last().expect("a commit").clone();
    let problem = left.problem.as_deref().unwrap_or_default();
    assert!(problem.starts_with("commits on no branch: ") && problem.contains(&commit[..12]), "{problem}");
    assert_eq!(repository.git(&format!("show {commit}:file")), "work", "{script}");
}

#[tokio::test]
async fn edits_of_a_file_that_is_assumed_unchanged_are_kept_and_named() {
    is_kept_and_named("git update-index --assume-unchanged file; echo work >> file").await;
}

#[tokio::test]
async fn edits_of_a_file_that_is_skipped_are_kept_and_named() {
    is_kept_and_named("git update-index --skip-worktree file; echo work >> file").await;
}

#[tokio::test]
async fn a_deleted_file_that_is_assumed_unchanged_is_kept_and_named() {
    is_kept_and_named("git update-index --assume-unchanged file; rm file").await;
}

/// Neither settings nor attributes nor lists of ignored files nor times hide a change from the look at a worktree.
#[tokio::test]
async fn changes_that_the_agents_git_does_not_see_are_changes() {
    let new = "echo work > new;";
    for script in [
        &*format!("{new} echo new > $(git rev-parse --git-path info/exclude)"),
        &*format!("{new} echo new > ../list; git config core.excludesFile ../list"),
        &*format!("{new} git config status.showUntrackedFiles no"),
        "git config core.fileMode false; chmod +x file",
        "git config core.checkStat minimal; git config core.trustctime false; touch -r file ../t; echo two > file; \
         touch -r ../t file",
        "git config core.sparseCheckout true; echo work > file; list=$(git rev-parse --git-path info/sparse-checkout); mkdir -p $(dirname $list); echo /sub > $list",
        "echo 'file filter=f' > $(git rev-parse --git-path info/attributes); git config filter.f.clean 'echo one'; \
         echo work > file",
        "git update-index --fsmonitor; git update-index --fsmonitor-valid file; echo work > file",
        "git update-index --split-index; git update-index --assume-unchanged file; echo work > file",
        "git rm --quiet --cached file",
        "echo work > file; git add file; echo one > file",
        "mkdir inner; cd inner; git init --quiet; echo work > file",
        "ln -sf sub/file file",
    ] {
        let (_repository, left) = left_by(script).await;
        assert!(left.uncommitted, "{script}: {left:?}");
    }
}

#[tokio::test]
async fn a_commit_on_a_detached_head_that_was_left_again_is_kept_and_named() {
    is_kept_as_a_commit_on_no_branch(
        "branch=$(git branch --show-current); git checkout -q --detach; echo work > file; git commit -qam work; \
         git checkout -q $branch",
    )
    .await;
}

#[tokio::test]
async fn commits_that_were_left_in_other_ways_are_kept_and_named() {
    let commit = "echo work > file; git commit -qam work;";
    for script in [
        &*format!("{commit} git reset -q --hard HEAD~1"),
        &*format!("{commit} git update-ref refs/heads/$FANFOLD_BRANCH HEAD~1; git reset -q --hard"),
        &*format!("git switch -qc own; {commit} git switch -q -; git branch -qD own"),
        &*format!("git config core.logAllRefUpdates false; {commit} git reset -q --hard HEAD~1"),
        &*format!("git switch -q --orphan own; {commit} git add -f file; git commit -qm work; git switch -q $FANFOLD_BRANCH; \
                   git branch -qD own")
            .replace("git commit -qam work;", ""),
    ] {
        is_kept_as_a_commit_on_no_branch(script).await;
    }
}

#[tokio::test]
async fn a_commit_on_another_branch_is_kept_and_the_branch_named() {
    let script = "git switch -qc own; echo work > file; git commit -qam work; git switch -q -";
    let repository = Repository::new();
    let (_, left) = run(&repository.agents(script).await, isolated(1, "x")).await;
    let left = left.unwrap();
    assert_eq!((left.commits.len(), left.problem.as_deref()), (1, Some("commits on own")));
    // It is not lost with the worktree.
    assert_eq!(repository.clean().await, [Outcome::Removed]);
    assert_eq!(repository.branches(), "main\nown");
}

#[tokio::test]
async fn what_cannot_be_told_is_kept() {
    for (script, problem) in [
        ("rm .git", "its .git does not lead to the repository"),
        ("rm .git; git init -q; echo x", "its .git does not lead to the repository"),
        ("git reflog expire --expire=now --all", "the history of its head was shortened"),
        ("git symbolic-ref HEAD refs/heads/unborn", "no commit is checked out in it"),
        ("git worktree lock .", "it is locked"),
        ("echo work > file; git stash -q", "stashed changes in stash@{0}"),
        ("git bisect start -q >&2", "a bisection is under way"),
        ("rm -r $(git rev-parse --git-dir)", "git does not know it any more"),
    ] {
        let (_repository, left) = left_by(script).await;
        let told = left.problem.unwrap_or_default();
        assert!(told.contains(problem), "{script}: {told}");
    }
}

/// So a shortened history and replaced commits do not hide what a worktree holds.
#[tokio::test]
async fn a_commit_that_replaces_the_base_is_not_the_base() {
    let script = "echo work > file; git commit -qam work; git replace $(git rev-parse main) HEAD";
    let (_repository, left) = left_by(script).await;
    assert_eq!(left.commits.len(), 1);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_worktree_in_which_a_process_still_works_is_kept() {
    let repository = Repository::new();
    let script = "setsid sh -c 'echo $$ > ../pid; exec sleep 600' > /dev/null 2>&1 < /dev/null & \
                  until test -s ../pid; do sleep 0.05; done";
    let (_, left) = run(&repository.agents(script).await, isolated(1, "x")).await;
    let pid = fs::read_to_string(repository.worktrees().join("pid")).unwrap();
    assert!(Program::new("kill").arg(pid.trim()).status().unwrap().success());
    let left = left.expect("it was kept");
    assert!(left.problem.as_deref().unwrap_or_default().contains("a process"), "{left:?}");
    assert!(Path::new(&left.path).exists());
}
