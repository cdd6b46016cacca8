//! Worktrees that hold changes, in words.

use std::path::Path;

use anyhow::Result;
use fanfold::Worktree;

use super::messages::say;
use super::palette::Palette;
use super::row::counted;
use super::text;

/// A worktree in one line, such as `fix the parser: .fanfold/worktrees/… on fanfold/…, 2 commits`.
pub(crate) fn described(worktree: &Worktree, path: &str) -> String {
    let [label, path, branch] = [&worktree.label, path, &worktree.branch].map(text::line);
    let mut facts = vec![format!("{label}: {path} on {branch}")];
    if !worktree.commits.is_empty() {
        facts.push(counted(worktree.commits.len(), "commit"));
    }
    if worktree.uncommitted {
        facts.push("uncommitted changes".to_owned());
    }
    facts.extend(worktree.problem.as_deref().map(text::line));
    facts.join(", ")
}

/// Says that a worktree was kept, and how to be rid of it.
pub(crate) fn kept(worktree: &Worktree, path: &str) -> Result<()> {
    let Palette { odd, faint, .. } = Palette::new(true);
    say(&format!("{odd}kept{odd:#}    {}", described(worktree, path)))?;
    let rid = to_be_rid_of(worktree, path, Path::new(&worktree.path).exists());
    say(&format!("        {faint}to throw it away: {rid}{faint:#}"))
}

/// The commands that throw a worktree away. A branch that was not made for it is not thrown away with it.
fn to_be_rid_of(worktree: &Worktree, path: &str, is_there: bool) -> String {
    // The home folder's `~` must not be quoted.
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-~".contains(c);
    let path = match shlex::try_quote(&worktree.path) {
        Ok(quoted) if !path.chars().all(plain) => text::line(&quoted),
        _ => text::line(path),
    };
    let mut commands = if is_there {
        format!("git worktree remove --force {path}")
    } else {
        "git worktree prune".to_owned()
    };
    let branch = text::line(&worktree.branch);
    if ["fanfold/", "fanfold-"].iter().any(|own| branch.starts_with(own)) {
        commands += &format!(" && git branch -D {branch}");
    }
    commands
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worktree_is_told_with_what_it_holds() {
        let mut worktree = Worktree::default();
        (worktree.label, worktree.branch) = ("fix\u{1b}[31m it".into(), "fanfold/a-1".into());
        assert_eq!(described(&worktree, "w/a-1"), "fix␛[31m it: w/a-1 on fanfold/a-1");
        (worktree.commits, worktree.uncommitted) = (vec!["c0ffee".into()], true);
        assert_eq!(
            described(&worktree, "w/a-1"),
            "fix␛[31m it: w/a-1 on fanfold/a-1, 1 commit, uncommitted changes"
        );
    }

    #[test]
    fn no_branch_but_its_own_is_thrown_away_with_a_worktree() {
        let mut worktree = Worktree::default();
        worktree.path = "/home/me/a project/w".into();
        for (branch, path, is_there, expected) in [
            ("fanfold/a-1", "w/a-1", true, "git worktree remove --force w/a-1 && git branch -D fanfold/a-1"),
            ("fanfold-a-1", "~/w", true, "git worktree remove --force ~/w && git branch -D fanfold-a-1"),
            ("fanfold/a-1", "w/a-1", false, "git worktree prune && git branch -D fanfold/a-1"),
            ("feature", "w/a-1", true, "git worktree remove --force w/a-1"),
            ("feature", "a project/w", true, "git worktree remove --force '/home/me/a project/w'"),
        ] {
            worktree.branch = branch.into();
            assert_eq!(to_be_rid_of(&worktree, path, is_there), expected);
        }
    }
}
