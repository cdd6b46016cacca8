//! What a service holds.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use fanfold::CancellationToken;

use crate::files::FilesError;
use crate::guard::Guard;
use crate::live::Watch;
use crate::router;
use crate::runs::Runs;

/// How a [`View`] is served. The defaults are for one person on one machine.
#[derive(Clone)]
#[non_exhaustive]
pub struct ViewOptions {
    /// Who knows this may look. Default: a new secret. `None`: whoever gets through to the router, for services
    /// that have asked who it is themselves. An empty one lets nobody in.
    pub token: Option<String>,
    /// Host names that the page is asked for by. `localhost` and numeric addresses are always right; any other
    /// name could be somebody else's that was made to point here.
    pub hosts: Vec<String>,
    /// Whether the page may cancel runs that were [watched](View::watch) with [`About::cancel`]. Default: no.
    pub cancel: bool,
    /// How many ended runs of this process are kept. Default: 100.
    pub keep: usize,
}

impl fmt::Debug for ViewOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { token, hosts, cancel, keep } = self;
        f.debug_struct("ViewOptions")
            // Not the token itself: it opens the page.
            .field("token", &token.as_ref().map(|_| "…"))
            .field("hosts", hosts)
            .field("cancel", cancel)
            .field("keep", keep)
            .finish()
    }
}

impl Default for ViewOptions {
    fn default() -> Self {
        let secret = || uuid::Uuid::new_v4().simple().to_string();
        Self { token: Some(secret() + &secret()), hosts: Vec::new(), cancel: false, keep: 100 }
    }
}

/// What a page shows of a run besides what it tells itself. All of it may be missing.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct About {
    /// The script's text.
    pub script: Option<String>,
    /// How many agents may run at once.
    pub max_concurrent_agents: Option<usize>,
    /// Cancels the run when it fires.
    pub cancel: Option<CancellationToken>,
}

impl About {
    /// The script's text.
    #[must_use]
    pub fn script(mut self, script: impl Into<String>) -> Self {
        self.script = Some(script.into());
        self
    }

    /// How many agents may run at once.
    #[must_use]
    pub fn max_concurrent_agents(mut self, limit: usize) -> Self {
        self.max_concurrent_agents = Some(limit);
        self
    }

    /// What cancels the run, if [the page may](ViewOptions::cancel): the token that the run was started with.
    #[must_use]
    pub fn cancel(mut self, token: CancellationToken) -> Self {
        self.cancel = Some(token);
        self
    }
}

/// The runs that a page shows. Cheap to clone; clones are the same view.
#[derive(Clone, Debug)]
pub struct View {
    pub(crate) runs: Arc<Runs>,
    pub(crate) guard: Arc<Guard>,
}

impl View {
    /// A view without runs.
    pub fn new(options: ViewOptions) -> Self {
        let ViewOptions { token, hosts, cancel, keep } = options;
        Self { runs: Arc::new(Runs::new(keep, cancel)), guard: Arc::new(Guard::new(token, hosts)) }
    }

    /// Shows a run: an observer to start it with.
    pub fn watch(&self, about: About) -> Watch {
        self.runs.watch(about)
    }

    /// Shows the runs in these files of lines, or in the files of these folders, as they are when somebody looks.
    /// A `.js` file of the same name is taken for the script.
    ///
    /// Reads them once, and blocks while it does. What is given is how many lines could not be read.
    ///
    /// # Errors
    /// If one does not exist, or is a file without runs.
    pub fn files(&self, paths: impl IntoIterator<Item = PathBuf>) -> Result<usize, FilesError> {
        self.runs.files.add(paths.into_iter().collect())
    }

    /// What the page's address must end with, as `#token=…`.
    pub fn token(&self) -> Option<&str> {
        self.guard.token()
    }

    /// The page and what it asks for, to be mounted anywhere.
    pub fn router(&self) -> Router {
        router::router(self.clone())
    }
}
