//! The few marks and styles of the display. A style only repeats what a mark or a word says already.

use anstyle::{AnsiColor, Style};
use fanfold::AgentState;

/// A workflow, an agent or a phase as a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    Planned,
    Running,
    Completed,
    Failed,
    Cancelled,
}

impl From<AgentState> for Mark {
    fn from(state: AgentState) -> Self {
        match state {
            AgentState::Running => Self::Running,
            AgentState::Completed => Self::Completed,
            AgentState::Failed | AgentState::Refused => Self::Failed,
            AgentState::Cancelled | AgentState::Interrupted => Self::Cancelled,
            // It waits, or a later version knows more.
            _ => Self::Planned,
        }
    }
}

/// Styles by what they mean; all of them empty where there shall be no colour.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Palette {
    pub(crate) strong: Style,
    pub(crate) faint: Style,
    pub(crate) busy: Style,
    pub(crate) good: Style,
    pub(crate) bad: Style,
    pub(crate) odd: Style,
}

impl Palette {
    /// The colours of the terminal's own theme, or none.
    pub(crate) fn new(colour: bool) -> Self {
        if !colour {
            return Self::default();
        }
        Self {
            strong: Style::new().bold(),
            faint: Style::new().dimmed(),
            busy: AnsiColor::Cyan.on_default(),
            good: AnsiColor::Green.on_default(),
            bad: AnsiColor::Red.on_default(),
            odd: AnsiColor::Yellow.on_default(),
        }
    }

    /// The mark's character, one column wide, and its style. A running one turns with the time, in milliseconds.
    pub(crate) fn mark(&self, mark: Mark, now: u64) -> (Style, char) {
        const SPINNER: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
        match mark {
            Mark::Planned => (self.faint, '○'),
            Mark::Running => (self.busy, SPINNER[(now / 100 % 10) as usize]),
            Mark::Completed => (self.good, '✓'),
            Mark::Failed => (self.bad, '✗'),
            Mark::Cancelled => (self.odd, '⊘'),
        }
    }
}
