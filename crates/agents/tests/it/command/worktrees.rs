//! Children with a git worktree of their own, in real repositories.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command as Program;
use std::sync::Arc;

use fanfold::{AgentRequest, CancellationToken, ChildError, Subagents as _, Worktree};
use fanfold_agents::{Cleaned, Command, Outcome, Worktrees, clean_worktrees};
use tempfile::TempDir;

/// A repository with one commit: a file, a folder, and a rule that ignores `target`.
pub(super) struct Repository {
    folder: TempDir,
}

impl Repository {
    fn new() -> Self {
        let repository = Self { folder: tempfile::tempdir().unwrap() };
        repository.git("init --quiet --initial-branch=main");
        repository.git("config user.name Somebody");
        repository.git("config user.email somebody@example.com");
        fs::create_dir(repository.path().join("sub")).unwrap();
        for (file, text) in [("file", "one\n"), ("sub/file", "two\n"), (".gitignore", "target\n")] {
            fs::write(repository.path().join(file), text).unwrap();
        }
        repository.git("add --all");
        repository.git("commit --quiet --message first");
        repository
    }

    fn path(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap()
    }

    fn git(&self, arguments: &str) -> String {
        let output = Program::new("git")
            .args(arguments.split(' '))
            .current_dir(self.path())
            .output()
            .expect("git runs");
        assert!(output.status.success(), "git {arguments}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    }

    fn worktrees(&self) -> PathBuf {
        self.path().join(".fanfold/worktrees")
    }

    /// What is left but for the two files that stay: records, worktrees, locks.
    fn leftovers(&self) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.worktrees()) else { return Vec::new() };
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.filter(|name| name != ".gitignore" && name != "guard").collect();
        names.sort();
        names
    }

    fn branches(&self) -> String {
        self.git("for-each-ref --format=%(refname:short) refs/heads")
    }

    /// A provider whose children are this shell script, each in a worktree.
    async fn agents(&self, script: &str) -> Command {
        let worktrees = Worktrees::open(&self.path(), None).await.unwrap();
        super::sh(script).directory(self.path()).worktrees(worktrees)
    }

    async fn clean(&self) -> Vec<Outcome> {
        let cleaned = clean_worktrees(&self.path()).await.unwrap();
        cleaned.into_iter().map(|Cleaned { outcome, .. }| outcome).collect()
    }
}

fn isolated(seq: u32, label: &str) -> AgentRequest {
    let mut request = AgentRequest::new("prompt");
    (request.seq, request.label, request.run_id) = (seq, label.into(), "0f8fad5bd9cb".into());
    request.options.isolation = Some("worktree".into());
    request
}

/// What a child answers and what it leaves.
async fn run(agents: &Command, request: AgentRequest) -> (Result<String, ChildError>, Option<Worktree>) {
    let child = agents.start(request, CancellationToken::new()).await.unwrap();
    let left = child.left.clone();
    let answer = child.result.await.map(|answer| answer.text);
    (answer, left.get().cloned())
}

#[tokio::test]
async fn a_worktree_without_changes_is_removed_with_its_branch() {
    let repository = Repository::new();
    fs::write(repository.path().join("file"), "not committed\n").unwrap();
    let say = "mkdir target; echo x > target/ignored; git status --porcelain; cat file; pwd; git branch --show-current; \
               echo $FANFOLD_BASE $FANFOLD_WORKTREE $FANFOLD_BRANCH";
    let (answer, left) = run(&repository.agents(say).await, isolated(1, "Look around")).await;
    let path = repository.worktrees().join("0f8fad5b-1-look-around");
    let (path, base) = (path.display(), repository.git("rev-parse HEAD"));
    let branch = "fanfold/0f8fad5b-1-look-around";
    assert_eq!(answer.unwrap(), format!("one\n{path}\n{branch}\n{base} {path} {branch}"));
    assert_eq!((left, repository.branches()), (None, "main".into()));
    assert_eq!(repository.leftovers(), [""; 0]);
    assert_eq!(repository.git("worktree list --porcelain").matches("worktree ").count(), 1);
    assert_eq!(repository.git("status --porcelain"), " M file");
}

#[tokio::test]
async fn making_a_worktree_counts_as_the_agents_time() {
    let repository = Repository::new();
    fs::write(repository.path().join(".gitattributes"), "file filter=slow\n").unwrap();
    repository.git("add --all");
    repository.git("commit --quiet --message attributes");
    let status = Program::new("git")
        .args(["config", "filter.slow.smudge", "sleep 5; cat"])
        .current_dir(repository.path())
        .status();
    assert!(status.unwrap().success());
    let agents = repository.agents("echo never").await;
    let mut request = isolated(1, "slow");
    request.options.timeout_ms = Some(500);
    let begin = std::time::Instant::now();
    let child = agents.start(request, CancellationToken::new()).await.unwrap();
    assert_eq!(child.id, "sh-not-started");
    let error = child.result.await.unwrap_err();
    assert!(
        matches!(&error, ChildError::Failed(reason) if reason.kind.as_deref() == Some("timeout")),
        "{error}"
    );
    assert!(begin.elapsed().as_secs() < 5, "{:?}", begin.elapsed());
}

#[tokio::test]
async fn a_worktree_with_changes_is_kept_and_reported_however_its_child_ends() {
    let commit = "git commit --quiet --all --message";
    for (script, ends_well, commits, uncommitted, branch) in [
        ("echo changed > file".to_owned(), true, 0, true, "fanfold/0f8fad5b-7-x"),
        ("echo new > new; exit 3".to_owned(), false, 0, true, "fanfold/0f8fad5b-7-x"),
        ("rm file".to_owned(), true, 0, true, "fanfold/0f8fad5b-7-x"),
        (
            format!("echo 2 > file; {commit} a; echo 3 > file; {commit} b"),
            true,
            2,
            false,
            "fanfold/0f8fad5b-7-x",
        ),
        (format!("git switch -qc own; echo 2 > file; {commit} a"), true, 1, false, "own"),
        (
            format!("git switch -q --detach; echo 2 > file; {commit} a"),
            true,
            1,
            false,
            "fanfold/0f8fad5b-7-x",
        ),
        (format!("echo 2 > file; {commit} a; git switch -qc own main"), true, 1, false, "own"),
        (
            "git config status.showUntrackedFiles no; echo new > new".to_owned(),
            true,
            0,
            true,
            "fanfold/0f8fad5b-7-x",
        ),
    ] {
        let repository = Repository::new();
        let (answer, left) = run(&repository.agents(&script).await, isolated(7, "x")).await;
        assert_eq!(answer.is_ok(), ends_well, "{script}: {answer:?}");
        let left = left.expect(&script);
        assert_eq!((left.seq, &*left.label, &*left.branch), (7, "x", branch), "{script}");
        assert_eq!(
            (left.commits.len(), left.uncommitted, left.problem),
            (commits, uncommitted, None),
            "{script}"
        );
        assert_eq!(left.base, repository.git("rev-parse main"));
        if let Some(last) = left.commits.last().filter(|_| branch != "own") {
            assert_eq!(
                *last,
                Program::new("git")
                    .args(["rev-parse", "HEAD"])
                    .current_dir(&left.path)
                    .output()
                    .map(|out| String::from_utf8(out.stdout).unwrap().trim().to_owned())
                    .unwrap()
            );
        }
        // Nor does it go when its process is gone, unless a branch of the child's own has everything.
        let elsewhere = script.starts_with("git switch -qc own");
        let cleaned = repository.clean().await;
        assert!(
            matches!((&*cleaned, elsewhere), ([Outcome::Kept(_)], false) | ([Outcome::Removed], true)),
            "{script}"
        );
        assert_eq!(Path::new(&left.path).exists(), !elsewhere);
        assert_eq!(repository.branches().contains("own"), branch == "own");
    }
}

#[tokio::test]
async fn a_child_works_where_its_host_does() {
    let repository = Repository::new();
    let directory = repository.path().join("sub");
    let worktrees = Worktrees::open(&directory, None).await.unwrap();
    let agents = super::sh("cat file; basename $PWD").directory(&directory).worktrees(worktrees);
    assert_eq!(run(&agents, isolated(1, "x")).await.0.unwrap(), "two\nsub");
}

/// Its own worktree is removed when it holds no changes, and those that git ignores are none.
#[tokio::test]
async fn the_worktrees_of_a_child_that_runs_children_do_not_lie_in_its_own() {
    let repository = Repository::new();
    let own = repository.worktrees().join("own");
    repository.git(&format!("worktree add --quiet -b own {}", own.display()));
    let worktrees = Worktrees::open(&own, None).await.unwrap();
    let agents = super::sh("echo precious > new").directory(&own).worktrees(worktrees);
    let (_, left) = run(&agents, isolated(1, "inner")).await;
    let path = PathBuf::from(left.unwrap().path);
    assert_eq!(path.parent(), Some(&*repository.worktrees()));
    assert_eq!(fs::read_to_string(path.join("new")).unwrap(), "precious\n");
}

#[tokio::test]
async fn the_base_can_be_stated() {
    let repository = Repository::new();
    fs::write(repository.path().join("file"), "later\n").unwrap();
    repository.git("commit --quiet --all --message second");
    let worktrees = Worktrees::open(&repository.path(), Some("HEAD~1")).await.unwrap();
    assert_eq!(worktrees.base(), repository.git("rev-parse HEAD~1"));
    let agents = super::sh("cat file").worktrees(worktrees);
    assert_eq!(run(&agents, isolated(1, "x")).await.0.unwrap(), "one");
    for revision in ["nowhere", "--all", ""] {
        let error = Worktrees::open(&repository.path(), Some(revision)).await.unwrap_err();
        assert!(error.to_string().contains("there is no commit"), "{error}");
    }
}

#[tokio::test]
async fn a_child_that_cannot_start_leaves_nothing() {
    let repository = Repository::new();
    let worktrees = Worktrees::open(&repository.path(), None).await.unwrap();
    let agents = Command::new(["no-such-program"]).unwrap().worktrees(worktrees);
    let error = agents.start(isolated(1, "x"), CancellationToken::new()).await.unwrap_err();
    assert!(error.to_string().contains("there is no such program in PATH"), "{error}");
    assert_eq!((repository.branches(), repository.leftovers().len()), ("main".into(), 1));
    drop(agents);
    assert_eq!(repository.leftovers(), [""; 0]);
}

#[tokio::test]
async fn a_child_that_is_cancelled_leaves_what_it_changed_and_nothing_else() {
    let repository = Repository::new();
    for (script, keeps) in [("echo x > new; echo; exec sleep 1000", true), ("echo; exec sleep 1000", false)] {
        let agents = repository.agents(script).await;
        let cancel = CancellationToken::new();
        let child = agents.start(isolated(1, script), cancel.clone()).await.unwrap();
        let left = child.left.clone();
        if keeps {
            let new = repository.worktrees().join("0f8fad5b-1-echo-x-new-echo-exec-sle/new");
            while !new.exists() {
                tokio::task::yield_now().await;
            }
        }
        cancel.cancel();
        assert_eq!(child.result.await, Err(ChildError::Cancelled));
        assert_eq!(left.get().is_some_and(|left| left.uncommitted), keeps, "{script}");
    }
}

#[tokio::test]
async fn a_worktree_that_was_refused_says_why() {
    let repository = Repository::new();
    let agents = repository.agents("true").await;
    repository.git("branch fanfold/0f8fad5b-1-x");
    let error = agents.start(isolated(1, "x"), CancellationToken::new()).await.unwrap_err().to_string();
    assert_eq!(
        error,
        "cannot give it a worktree of its own: there is already a branch \"fanfold/0f8fad5b-1-x\"; delete it if it is \
         not needed"
    );
    // The branch is not ours, so it stays, although it is where ours would be.
    assert!(repository.branches().contains("fanfold/0f8fad5b-1-x"));
    drop(agents);
    assert_eq!(repository.leftovers(), [""; 0]);
}

#[tokio::test]
async fn a_folder_that_leads_elsewhere_is_neither_used_nor_cleaned() {
    // A link, where it leads, and the folder that would be taken for that of the worktrees.
    for (link, target, victim) in [
        (".fanfold/worktrees", "..", ""),
        (".fanfold", ".", "worktrees"),
        (".fanfold", "sub", "sub/worktrees"),
    ] {
        let repository = Repository::new();
        let victim = repository.path().join(victim);
        fs::create_dir_all(&victim).unwrap();
        if link != ".fanfold" {
            fs::create_dir(repository.path().join(".fanfold")).unwrap();
        }
        std::os::unix::fs::symlink(target, repository.path().join(link)).unwrap();
        for name in ["Cargo.lock", "x.tmp", "host-1-0.lock", "host-1-0.x.tmp"] {
            fs::write(victim.join(name), "theirs").unwrap();
        }
        let names = || {
            let names = fs::read_dir(&victim).unwrap().map(|entry| entry.unwrap().file_name());
            names.collect::<std::collections::BTreeSet<_>>()
        };
        let before = names();
        let agents = repository.agents("true").await;
        let started = agents.start(isolated(1, "x"), CancellationToken::new()).await.unwrap_err().to_string();
        let cleaned = clean_worktrees(&repository.path()).await.unwrap_err().to_string();
        for error in [started, cleaned] {
            assert!(error.contains(link) && error.contains("it is a symbolic link"), "{error}");
        }
        assert_eq!(names(), before, "{link} -> {target}");
        assert_eq!(fs::read_to_string(repository.path().join(".gitignore")).unwrap(), "target\n");
    }
}

#[tokio::test]
async fn a_link_in_place_of_the_guard_is_not_followed() {
    let repository = Repository::new();
    fs::create_dir_all(repository.worktrees()).unwrap();
    std::os::unix::fs::symlink("../../made", repository.worktrees().join("guard")).unwrap();
    let error = clean_worktrees(&repository.path()).await.unwrap_err().to_string();
    assert!(error.contains("guard: it is a symbolic link"), "{error}");
    assert!(!repository.path().join("made").exists());
}

#[tokio::test]
async fn without_a_repository_there_is_no_isolation() {
    let agents = super::sh("true");
    assert!(!agents.supports().isolation);
    assert!(agents.why_not("isolation").unwrap().contains("no git repository"));
    let error = agents.start(isolated(1, "x"), CancellationToken::new()).await.unwrap_err();
    assert!(error.to_string().contains("there is no repository"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn forty_at_once_do_not_get_into_each_others_way() {
    let repository = Repository::new();
    let script =
        "test $((FANFOLD_SEQ % 2)) = 0 && { echo $FANFOLD_SEQ > file; git commit -qam x; }; cat file";
    // Two processes would have a provider each.
    let agents = [repository.agents(script).await, repository.agents(script).await];
    let tasks: Vec<_> = (1..=40)
        .map(|seq| {
            let agents = agents[(seq % 3 / 2) as usize].clone();
            tokio::spawn(async move { run(&agents, isolated(seq, "x")).await })
        })
        .collect();
    for (task, seq) in tasks.into_iter().zip(1..) {
        let (answer, left) = task.await.unwrap();
        if seq % 2 == 0 {
            let left = left.expect("a change");
            assert_eq!((answer.unwrap(), left.commits.len(), left.uncommitted), (seq.to_string(), 1, false));
        } else {
            assert_eq!((answer.unwrap_or_default(), left), ("one".into(), None));
        }
    }
    drop(agents);
    assert_eq!(repository.leftovers().len(), 40, "a folder and a record for each of twenty");
    assert_eq!(repository.branches().lines().count(), 21);
    // What is merged holds nothing that is not elsewhere.
    repository.git("merge --quiet --strategy=ours --message merge fanfold/0f8fad5b-2-x fanfold/0f8fad5b-4-x");
    let cleaned = repository.clean().await;
    assert_eq!(cleaned.iter().filter(|outcome| **outcome == Outcome::Removed).count(), 2);
    assert_eq!(cleaned.iter().filter(|outcome| matches!(outcome, Outcome::Kept(_))).count(), 18);
    assert_eq!(repository.branches().lines().count(), 19);
}

#[tokio::test]
async fn what_is_in_use_is_left_alone() {
    let repository = Repository::new();
    let agents = repository.agents("exec sleep 1000").await;
    let cancel = CancellationToken::new();
    let child = agents.start(isolated(1, "x"), cancel.clone()).await.unwrap();
    assert_eq!(repository.clean().await, [Outcome::InUse]);
    // The run is gone, its agent is not: as after kill -9.
    let lock = repository.leftovers().into_iter().find(|name| name.ends_with(".lock")).unwrap();
    fs::remove_file(repository.worktrees().join(lock)).unwrap();
    assert_eq!(repository.clean().await, [Outcome::InUse]);
    cancel.cancel();
    let _ = child.result.await;
    assert_eq!(repository.clean().await, []);
}

/// A repository in which one worktree was left by a process that is gone.
async fn abandoned(script: &str, stage: &str) -> (Repository, PathBuf, PathBuf) {
    let repository = Repository::new();
    let (_, left) = run(&repository.agents(&format!("touch x; {script}")).await, isolated(1, "x")).await;
    let path = PathBuf::from(left.unwrap().path);
    fs::remove_file(path.join("x")).unwrap();
    let record = path.with_extension("json");
    let text = fs::read_to_string(&record).unwrap();
    assert!(text.contains("\"ready\""), "{text}");
    fs::write(&record, text.replace("\"ready\"", &format!("{stage:?}"))).unwrap();
    (repository, path, record)
}

#[tokio::test]
async fn whatever_a_crash_leaves_is_tidied_unless_it_holds_changes() {
    type Deed = fn(&Path);
    let nothing: Deed = |_| {};
    let gone: Deed = |path| fs::remove_dir_all(path).unwrap();
    let half_gone: Deed = |path| fs::remove_file(path.join("file")).unwrap();
    let without_git: Deed = |path| fs::remove_file(path.join(".git")).unwrap();
    let changed: Deed = |path| fs::write(path.join("file"), "changed").unwrap();
    let commit = "git commit -qam x --allow-empty";
    for (number, (script, stage, deed, removed)) in [
        ("", "ready", nothing, true),
        ("", "making", nothing, true),
        ("", "making", gone, true),
        ("", "making", half_gone, true),
        ("", "making", without_git, true),
        ("", "removing", nothing, true),
        ("", "removing", gone, true),
        ("", "removing", half_gone, true),
        ("", "removing", without_git, true),
        ("", "removing", changed, false),
        ("", "ready", gone, true),
        ("", "ready", changed, false),
        ("", "ready", half_gone, false),
        ("", "ready", without_git, false),
        (commit, "ready", nothing, false),
        (commit, "ready", gone, false),
    ]
    .into_iter()
    .enumerate()
    {
        let (repository, path, record) = abandoned(script, stage).await;
        deed(&path);
        let what = format!("{number}: {script} {stage}");
        let cleaned = repository.clean().await;
        if removed {
            assert_eq!(cleaned, [Outcome::Removed], "{what}");
            assert!(!path.exists() && !record.exists(), "{what}");
            assert_eq!(repository.branches(), "main", "{what}");
            assert_eq!(repository.git("worktree list").lines().count(), 1, "{what}");
        } else {
            assert!(matches!(&*cleaned, [Outcome::Kept(_)]), "{what}: {cleaned:?}");
            assert!(record.exists(), "{what}");
            assert_eq!(repository.branches().lines().count(), 2, "{what}");
        }
        assert_eq!(repository.git("status --porcelain"), "", "{what}");
    }
}

#[tokio::test]
async fn what_is_not_ours_is_not_touched() {
    let repository = Repository::new();
    let agents = repository.agents("touch x").await;
    let (answer, left) = run(&agents, isolated(1, "x")).await;
    assert!(answer.is_ok() && left.is_some());
    drop(agents);
    let theirs = repository.worktrees().join("theirs");
    repository.git(&format!("worktree add --quiet -b theirs {}", theirs.display()));
    fs::write(repository.worktrees().join("odd.json"), "{}").unwrap();
    let cleaned = repository.clean().await;
    assert!(matches!(&*cleaned, [Outcome::Kept(_), Outcome::Failed(_)]), "{cleaned:?}");
    assert!(theirs.exists() && repository.worktrees().join("odd.json").exists());
}

#[tokio::test]
async fn the_instructions_of_a_kind_of_agent_reach_the_program() {
    let reviewer = Arc::new(fanfold::AgentType::new("reviewer", "Change nothing."));
    let mut request = AgentRequest::new("Look.");
    request.options.agent_type = Some("reviewer".into());
    request.options.definition = Some(reviewer);
    let ask = |script: &str| {
        let (agents, request) = (super::sh(script), request.clone());
        async move { super::run(&agents, request).await.unwrap().text }
    };
    let told = "You are the agent \"reviewer\". These are your instructions:\n\nChange nothing.\n\nThis is your \
                task:\n\nLook.";
    assert_eq!(ask("cat").await, told);
    assert_eq!(ask("cat; echo \" $FANFOLD_AGENT_INSTRUCTIONS\"").await, "Look. Change nothing.");
    assert_eq!(ask("cat; echo \" $FANFOLD_AGENT_TYPE\"").await, "Look. reviewer");
}
