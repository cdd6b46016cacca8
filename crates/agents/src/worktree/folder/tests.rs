use super::*;

fn entered(root: &Path) -> (Folder, Host) {
    let folder = Folder::make(root).unwrap();
    let host = folder.enter(&guard(&folder)).unwrap();
    (folder, host)
}

fn guard(folder: &Folder) -> File {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(folder.guard()).unwrap()
}

fn hosts(folder: &Folder) -> Hosts {
    folder.hosts(guard(folder)).unwrap()
}

fn register(folder: &Folder, host: &Host, branches: &[&str]) -> Record {
    let branches = branches.iter().map(|name| format!("refs/heads/{name}")).collect();
    let (branches, request) = (Branches::new(branches), AgentRequest::new("p"));
    folder.register(host, "abc123", &Baseline::default(), &branches, &request).unwrap()
}

#[test]
fn a_branch_is_one_that_git_has_room_for_where_case_counts_and_where_not() {
    for (branches, expected) in [
        (&[][..], "fanfold/run-1-p"),
        (&["fanfold/run-1-q", "fanfold/run-1-pp"], "fanfold/run-1-p"),
        (&["fanfold/run-1-p"], "fanfold/run-1-p-2"),
        (&["fanfold/RUN-1-P", "fanfold/run-1-p-2"], "fanfold/run-1-p-3"),
        (&["fanfold/run-1-p/x"], "fanfold/run-1-p-2"),
        (&["fanfold"], "fanfold-run-1-p"),
        (&["Fanfold"], "fanfold-run-1-p"),
        (&["fanfold", "fanfold-run-1-p"], "fanfold-run-1-p-2"),
        (&["fanfold-run-1-p"], "fanfold/run-1-p"),
    ] {
        let root = tempfile::tempdir().unwrap();
        let (folder, host) = entered(root.path());
        let record = register(&folder, &host, branches);
        assert_eq!(record.branch(), expected, "{branches:?}");
        assert_eq!(folder.worktree(&record).parent(), Some(folder.path()));
    }
}

#[test]
fn what_is_left_of_a_worktree_keeps_its_name_taken() {
    for left in ["run-1-p", "run-1-p.json", "run-1-p.index", "run-1-p.gone"] {
        let root = tempfile::tempdir().unwrap();
        let (folder, host) = entered(root.path());
        fs::write(folder.path.join(left), "").unwrap();
        assert_eq!(register(&folder, &host, &[]).name, "run-1-p-2", "{left}");
    }
}

#[test]
fn nothing_is_written_or_deleted_through_links() {
    let root = tempfile::tempdir().unwrap();
    let victim = root.path().join("victim");
    fs::create_dir(&victim).unwrap();
    fs::write(victim.join("file"), "theirs").unwrap();
    let (folder, host) = entered(root.path());
    let record = register(&folder, &host, &[]);
    for name in ["run-1-p", "run-1-p.gone"] {
        std::os::unix::fs::symlink(&victim, folder.path.join(name)).unwrap();
        assert!(folder.delete(&record).unwrap_err().to_string().contains("remove it"), "{name}");
        fs::remove_file(folder.path.join(name)).unwrap();
    }
    // A link within the worktree is removed, where it leads is not.
    let worktree = folder.worktree(&record);
    fs::create_dir(&worktree).unwrap();
    std::os::unix::fs::symlink(&victim, worktree.join("link")).unwrap();
    folder.make_within(&record, Path::new("link/new")).unwrap_err();
    folder.make_within(&record, Path::new("a/new")).unwrap();
    assert!(worktree.join("a/new").is_dir());
    folder.delete(&record).unwrap();
    assert_eq!(folder.site(&record).unwrap(), Site::Gone);
    let left: Vec<_> = fs::read_dir(&victim).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["file"]);
}

#[test]
fn a_record_that_points_elsewhere_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let (records, host) = entered(folder.path());
    register(&records, &host, &[]);
    let path = records.path.join("run-1-p.json");
    let good = fs::read_to_string(&path).unwrap();
    for bad in [
        good.replace("run-1-p", "../x"),
        good.replace("abc123", "--all"),
        good.replace("host-", "../host-"),
        "{".into(),
    ] {
        fs::write(&path, bad).unwrap();
        assert!(records.records().unwrap()[0].is_err());
    }
}

#[test]
fn a_process_is_at_work_until_its_lock_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let (records, host) = entered(folder.path());
    let record = register(&records, &host, &[]);
    assert!(hosts(&records).is_alive(&record));
    // As when it was killed: the file stays, the lock does not.
    let lock = records.path.join(&host.lock);
    drop(host);
    fs::write(&lock, "").unwrap();
    assert!(!hosts(&records).is_alive(&record));
    assert!(!lock.exists());
}

#[test]
fn only_files_that_are_named_as_ours_are_swept() {
    let folder = tempfile::tempdir().unwrap();
    let (records, _) = entered(folder.path());
    let theirs = [
        "Cargo.lock",
        "host.lock",
        "host-1.lock",
        "host-1-x.lock",
        "xhost-1-0.lock",
        "x.tmp",
        "host-1-0.tmp",
        "host-1-0.a.b.tmp",
        "host-1.a.tmp",
        "a.host-1-0.tmp",
    ];
    let ours = ["host-1-0.lock", "host-1-0.run-1-p.tmp"];
    for name in theirs.iter().chain(&ours) {
        fs::write(records.path.join(name), "").unwrap();
    }
    let hosts = hosts(&records);
    records.sweep(&hosts).unwrap();
    drop(hosts);
    assert!(theirs.iter().all(|name| records.path.join(name).exists()));
    assert!(!ours.iter().any(|name| records.path.join(name).exists()));
}
