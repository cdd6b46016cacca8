//! What is tidied afterwards: nothing through links, and no record twice.

use super::*;

fn git_in(folder: &Path, arguments: &str) {
    let status = Program::new("git").args(arguments.split(' ')).current_dir(folder).status().unwrap();
    assert!(status.success(), "git {arguments}");
}

/// A clone of a repository that brings a link in place of a worktree, with a record of the given stage.
fn with_link(stage: &str) -> (TempDir, Repository) {
    let (evil, outer) = (Repository::new(), tempfile::tempdir().unwrap());
    fs::create_dir_all(evil.worktrees()).unwrap();
    std::os::unix::fs::symlink("../../../feature", evil.worktrees().join("a-1-b")).unwrap();
    let base = evil.git("rev-parse HEAD");
    let record = format!(
        r#"{{"name":"a-1-b","stage":"{stage}","host":"host-1-0","base":"{base}","runId":"a","seq":1,"label":"b"}}"#
    );
    fs::write(evil.worktrees().join("a-1-b.json"), record).unwrap();
    evil.git("add --force .fanfold");
    evil.git("commit --quiet --message second");
    let path = outer.path().canonicalize().unwrap();
    git_in(&path, &format!("clone --quiet {} mine", evil.path().display()));
    (outer, Repository { path: path.join("mine"), folder: None })
}

#[tokio::test]
async fn a_link_to_another_worktree_is_not_followed() {
    for stage in ["making", "ready", "removing"] {
        let (outer, mine) = with_link(stage);
        mine.git("worktree add --quiet -b feature ../feature");
        let precious = outer.path().join("feature/uncommitted");
        fs::write(&precious, "precious").unwrap();
        let cleaned = mine.clean().await;
        let [Outcome::Failed(why)] = &*cleaned else { panic!("{stage}: {cleaned:?}") };
        assert!(why.contains("a-1-b: it is a link or a file; remove it"), "{why}");
        assert_eq!(fs::read_to_string(precious).unwrap(), "precious");
        assert_eq!(mine.git("worktree list").lines().count(), 2);
        assert_eq!(mine.git("diff --name-only HEAD"), "");
        // With the link gone, so is the record.
        fs::remove_file(mine.worktrees().join("a-1-b")).unwrap();
        assert_eq!(mine.clean().await, [Outcome::Removed]);
        assert_eq!(mine.clean().await, []);
    }
}

/// A repository with a worktree that holds a commit.
async fn with_commit() -> (Repository, Worktree) {
    let repository = Repository::new();
    let script = "echo work > file; git commit -qam work";
    let (_, left) = run(&repository.agents(script).await, isolated(1, "x")).await;
    (repository, left.unwrap())
}

#[tokio::test]
async fn a_worktree_that_was_thrown_away_by_hand_is_forgotten() {
    let (repository, left) = with_commit().await;
    repository.git(&format!("worktree remove --force {}", left.path));
    repository.git(&format!("branch --quiet -D {}", left.branch));
    assert_eq!(repository.clean().await, [Outcome::Removed]);
    assert_eq!(repository.clean().await, []);
    assert_eq!(repository.leftovers(), [""; 0]);
}

#[tokio::test]
async fn what_is_left_of_a_worktree_whose_folder_is_gone_is_kept_as_long_as_it_has_commits() {
    for prune in [false, true] {
        let (repository, left) = with_commit().await;
        fs::remove_dir_all(&left.path).unwrap();
        if prune {
            repository.git("worktree prune --expire=now");
        }
        let cleaned = repository.clean().await;
        let [Outcome::Kept(kept)] = &*cleaned else { panic!("{cleaned:?}") };
        assert_eq!((&kept.commits, kept.problem.as_deref()), (&left.commits, Some("its folder is gone")));
        repository.git("worktree prune --expire=now");
        repository.git(&format!("branch --quiet -D {}", left.branch));
        assert_eq!(repository.clean().await, [Outcome::Removed]);
        assert_eq!(repository.leftovers(), [""; 0]);
    }
}

/// A commit that no branch has is found as long as git knows the worktree.
#[tokio::test]
async fn a_commit_on_no_branch_outlives_the_folder() {
    let repository = Repository::new();
    let script = "git checkout -q --detach; echo work > file; git commit -qam work";
    let (_, left) = run(&repository.agents(script).await, isolated(1, "x")).await;
    let left = left.unwrap();
    fs::remove_dir_all(&left.path).unwrap();
    let cleaned = repository.clean().await;
    let [Outcome::Kept(kept)] = &*cleaned else { panic!("{cleaned:?}") };
    assert_eq!(kept.commits, left.commits);
}

/// A folder that cannot be deleted is told each time, and git still knows as much of it as it did.
#[tokio::test]
async fn a_folder_that_cannot_be_deleted_is_told() {
    let repository = Repository::new();
    let (_, left) = run(&repository.agents("touch new").await, isolated(1, "x")).await;
    let path = PathBuf::from(left.unwrap().path);
    fs::remove_file(path.join("new")).unwrap();
    // Something in the way of the name that it has while it is deleted.
    fs::write(path.with_extension("gone"), "theirs").unwrap();
    for _ in 0..2 {
        let cleaned = repository.clean().await;
        let [Outcome::Failed(why)] = &*cleaned else { panic!("{cleaned:?}") };
        assert!(why.contains("0f8fad5b-1-x.gone: it is no folder; remove it"), "{why}");
        assert!(path.join("file").exists() && path.with_extension("gone").exists());
    }
    fs::remove_file(path.with_extension("gone")).unwrap();
    assert_eq!(repository.clean().await, [Outcome::Removed]);
    assert_eq!(repository.leftovers(), [""; 0]);
}

#[tokio::test]
async fn what_is_no_record_is_told_with_what_to_do() {
    let repository = Repository::new();
    fs::create_dir_all(repository.worktrees()).unwrap();
    for text in ["{}", "", "{\"name\":"] {
        fs::write(repository.worktrees().join("odd.json"), text).unwrap();
        let cleaned = repository.clean().await;
        let [Outcome::Failed(why)] = &*cleaned else { panic!("{cleaned:?}") };
        assert!(why.ends_with("odd.json: it is not the record of a worktree; remove it"), "{why}");
    }
}

#[tokio::test]
async fn a_branch_that_is_checked_out_is_left() {
    // In the user's own working tree, and in a worktree that the user has moved.
    let (repository, left) = with_commit().await;
    repository.git(&format!("worktree remove --force {}", left.path));
    repository.git(&format!("checkout --quiet {}", left.branch));
    repository.git("tag kept");
    repository.clean().await;
    assert_eq!(repository.git("rev-parse HEAD"), repository.git("rev-parse kept"));
    assert_eq!(repository.clean().await, []);

    let repository = Repository::new();
    let (_, left) = run(&repository.agents("echo work > file").await, isolated(1, "x")).await;
    let left = left.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let moved = folder.path().join("moved");
    repository.git(&format!("worktree move {} {}", left.path, moved.display()));
    repository.clean().await;
    assert_eq!(repository.git(&format!("rev-parse {}", left.branch)), repository.git("rev-parse HEAD"));
    assert_eq!(fs::read_to_string(moved.join("file")).unwrap(), "work\n");
}

#[tokio::test]
async fn a_folder_that_git_does_not_know_is_kept_whatever_its_record_says() {
    let repository = Repository::new();
    let folder = repository.worktrees().join("x-1-a");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("precious"), "precious").unwrap();
    let record =
        r#"{"name":"x-1-a","stage":"making","host":"host-1-0","base":"abc","runId":"r","seq":1,"label":"l"}"#;
    fs::write(repository.worktrees().join("x-1-a.json"), record).unwrap();
    assert!(matches!(&*repository.clean().await, [Outcome::Kept(_)]));
    assert_eq!(fs::read_to_string(folder.join("precious")).unwrap(), "precious");
}
