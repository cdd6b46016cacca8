//! Whose files git writes: those of the new worktree, whatever a repository's settings say.

use super::*;

/// What an agent answers that says where git takes it to be.
const TOP: &str = "git rev-parse --show-toplevel";

const WORK: &str = "work that is not committed\n";

/// Runs an agent that says where it is, with uncommitted work in a file of its user, and checks both.
async fn an_agent_has_its_own_top_and_the_user_keeps_the_work(repository: &Repository, what: &str) {
    let file = repository.path().join("file");
    fs::write(&file, WORK).unwrap();
    let (answer, left) = run(&repository.agents(TOP).await, isolated(1, "x")).await;
    let place = repository.worktrees().join("0f8fad5b-1-x");
    assert_eq!(answer.unwrap(), place.display().to_string(), "{what}");
    assert_eq!(left, None, "{what}");
    assert_eq!(fs::read_to_string(file).unwrap(), WORK, "{what}");
    assert_eq!(repository.leftovers(), [""; 0], "{what}");
}

#[tokio::test]
async fn a_working_tree_in_the_shared_settings_is_not_written() {
    let repository = Repository::new();
    repository.git("config extensions.worktreeConfig true");
    repository.git(&format!("config core.worktree {}", repository.path().display()));
    an_agent_has_its_own_top_and_the_user_keeps_the_work(&repository, "absolute").await;
}

#[tokio::test]
async fn other_spellings_of_a_working_tree_in_the_settings_are_not_written_either() {
    for settings in [
        &["core.worktree .."][..],
        &["extensions.worktreeConfig true", "core.worktree .."],
        &["extensions.worktreeConfig true", "core.bare false"],
        &["extensions.worktreeConfig yes", "core.bare false", "core.worktree ../."],
    ] {
        let repository = Repository::new();
        for setting in settings {
            repository.git(&format!("config {setting}"));
        }
        an_agent_has_its_own_top_and_the_user_keeps_the_work(&repository, &settings.join(", ")).await;
    }
}

/// A repository, and a submodule of it.
fn with_submodule() -> (Repository, Repository) {
    let (library, outer) = (Repository::new(), Repository::new());
    let add = "-c protocol.file.allow=always submodule --quiet add";
    outer.git(&format!("{add} {} module", library.path().display()));
    outer.git("commit --quiet --message second");
    let submodule = Repository { path: outer.path().join("module"), folder: None };
    (outer, submodule)
}

#[tokio::test]
async fn a_submodule_with_settings_for_each_worktree_keeps_its_files() {
    let (outer, submodule) = with_submodule();
    submodule.git("config extensions.worktreeConfig true");
    an_agent_has_its_own_top_and_the_user_keeps_the_work(&submodule, "submodule").await;
    let git_dir = outer.path().join(".git/modules/module");
    assert!(git_dir.join("HEAD").exists());
    assert!(!git_dir.join("file").exists() && !git_dir.join("sub").exists());
}

#[tokio::test]
async fn a_submodule_as_it_is_keeps_its_files() {
    let (outer, submodule) = with_submodule();
    an_agent_has_its_own_top_and_the_user_keeps_the_work(&submodule, "submodule").await;
    assert!(!outer.path().join(".git/modules/module/file").exists());
}

#[tokio::test]
async fn a_repository_directory_elsewhere_is_one_as_any_other() {
    let (repository, elsewhere) = (Repository::new(), tempfile::tempdir().unwrap());
    repository.git(&format!("init --quiet --separate-git-dir={}/store", elsewhere.path().display()));
    an_agent_has_its_own_top_and_the_user_keeps_the_work(&repository, "separate").await;
}

/// An agent's settings lead git to the user's files while the agent runs: what is looked at, removed and made afterwards
/// are worktrees nevertheless.
#[tokio::test]
async fn what_an_agent_sets_leads_git_to_no_other_files() {
    let repository = Repository::new();
    let file = repository.path().join("file");
    fs::write(&file, WORK).unwrap();
    let user = repository.path().display().to_string();
    let lead = format!("git config extensions.worktreeConfig true; git config core.worktree {user}");
    let agents = repository.agents(&format!("{lead}; echo done")).await;
    assert_eq!(run(&agents, isolated(1, "x")).await, (Ok("done".into()), None));
    let agents = repository.agents(&format!("echo changed > file; {TOP}")).await;
    let (answer, left) = run(&agents, isolated(2, "x")).await;
    let left = left.unwrap();
    assert_eq!((answer.unwrap(), left.uncommitted), (left.path.clone(), true));
    assert_eq!(fs::read_to_string(Path::new(&left.path).join("file")).unwrap(), "changed\n");
    assert_eq!(fs::read_to_string(file).unwrap(), WORK);
}

#[tokio::test]
async fn a_branch_fanfold_leaves_room_beside_it() {
    let repository = Repository::new();
    repository.git("branch fanfold");
    let (answer, left) = run(&repository.agents("echo $FANFOLD_BRANCH").await, isolated(1, "x")).await;
    assert_eq!((answer.unwrap(), left), ("fanfold-0f8fad5b-1-x".into(), None));
    assert_eq!(repository.branches(), "fanfold\nmain");
    let (_, left) = run(&repository.agents("touch new").await, isolated(1, "x")).await;
    assert_eq!(left.unwrap().branch, "fanfold-0f8fad5b-1-x");
    // Once it is gone, what was made beside it is still found.
    repository.git("branch --delete --force fanfold");
    fs::remove_file(repository.worktrees().join("0f8fad5b-1-x/new")).unwrap();
    assert_eq!(repository.clean().await, [Outcome::Removed]);
    assert_eq!(repository.branches(), "main");
}

#[tokio::test]
async fn a_branch_of_the_same_name_is_left_alone() {
    for theirs in ["fanfold/0f8fad5b-1-x", "fanfold/0f8fad5b-1-x/below"] {
        let repository = Repository::new();
        repository.git(&format!("branch {theirs}"));
        let (answer, left) = run(&repository.agents("echo $FANFOLD_BRANCH").await, isolated(1, "x")).await;
        assert_eq!((answer.unwrap(), left), ("fanfold/0f8fad5b-1-x-2".into(), None));
        assert_eq!(repository.branches(), format!("{theirs}\nmain"));
        assert_eq!(repository.leftovers(), [""; 0]);
    }
}

#[tokio::test]
async fn a_part_of_the_files_is_as_good_as_all() {
    let repository = Repository::new();
    repository.git("sparse-checkout set --no-cone /file");
    let (answer, left) = run(&repository.agents("ls; git status --short").await, isolated(1, "x")).await;
    assert_eq!((answer.unwrap(), left), ("file".into(), None));
    // What is written where nothing was checked out is a change.
    let (_, left) = run(&repository.agents("mkdir sub; echo mine > sub/file").await, isolated(2, "x")).await;
    assert!(left.unwrap().uncommitted);
    let (_, left) = run(&repository.agents("rm file").await, isolated(3, "x")).await;
    assert!(left.unwrap().uncommitted);
}
