//! Worktrees that hold changes, in words.

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
    let branch = text::line(&worktree.branch);
    let rid = format!("git worktree remove --force {} && git branch -D {branch}", text::line(path));
    say(&format!("        {faint}to throw it away: {rid}{faint:#}"))
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
}
