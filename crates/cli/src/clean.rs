//! `fanfold clean`: tidies up after runs that were killed.

use std::process::ExitCode;

use anyhow::Result;
use fanfold_agents::{Outcome, clean_worktrees};

use crate::{display, places, status};

/// Removes worktrees that hold nothing and says which others there are.
pub(crate) async fn clean() -> Result<ExitCode> {
    let here = std::env::current_dir()?;
    let cleaned = clean_worktrees(&here).await?;
    let (mut removed, mut failed) = (0, false);
    for worktree in &cleaned {
        let path = places::shown(&worktree.path, &here);
        match &worktree.outcome {
            Outcome::Removed => removed += 1,
            Outcome::Kept(kept) => display::kept(kept, &path)?,
            Outcome::InUse => display::say(&format!("in use  {path}"))?,
            Outcome::Failed(reason) => {
                failed = true;
                display::error(&format!("{path}: {reason}"));
            }
            _ => {}
        }
    }
    display::say(&match (removed, cleaned.len()) {
        (_, 0) => "no worktrees of Fanfold's here".to_owned(),
        (1, _) => "1 worktree without changes removed".to_owned(),
        (removed, _) => format!("{removed} worktrees without changes removed"),
    })?;
    Ok(if failed { ExitCode::from(status::FAILED) } else { ExitCode::SUCCESS })
}
