//! The display as the rest of the command holds it.

use std::io::{self, IsTerminal as _};
use std::sync::LazyLock;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anstream::{AutoStream, ColorChoice};
use fanfold::{Event, Limits, Meta, Observer, RunResult};

use super::frame::Size;
use super::live::Live;
use super::painter::{Easel, News, paint};
use super::palette::Palette;
use super::plain::Plain;
use super::view::View;

/// Between two pictures of the live display.
const FRAME: Duration = Duration::from_millis(100);
/// How long a display that is dropped has to tidy up; a terminal may take nothing at all.
const PATIENCE: Duration = Duration::from_secs(1);

const ONE_AT_A_TIME: &str = "agents run one at a time on so few processors; \
                             --limits '{\"maxConcurrentAgents\": 4}' runs more at once";

/// How to show a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// A tree drawn in place.
    Live,
    /// A line for each thing that happens.
    Plain,
}

impl Mode {
    /// What suits standard error: live on a terminal that can move its cursor, else plain.
    pub(crate) fn detect() -> Self {
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        if io::stderr().is_terminal() && !dumb { Self::Live } else { Self::Plain }
    }
}

/// Shows one run on standard error, from a thread of its own.
///
/// Nothing here waits for the terminal but [`finish`](Self::finish) and [`stop`](Self::stop), and for a second at
/// most a drop. Colours are those that `NO_COLOR`, `CLICOLOR`, `CLICOLOR_FORCE` and [`ColorChoice::write_global`] ask for.
#[derive(Debug)]
pub(crate) struct Display {
    news: Sender<News>,
    /// Ends with the thread.
    gone: Receiver<()>,
}

impl Display {
    /// Starts the display that suits standard error. Nothing is seen before the first news; nothing at all if the
    /// system has no thread left for it.
    pub(crate) fn start(limits: &Limits) -> Self {
        Self::with(Mode::detect(), limits)
    }

    /// Starts this display, whatever standard error is.
    pub(crate) fn with(mode: Mode, limits: &Limits) -> Self {
        let palette = Palette::new(AutoStream::choice(&io::stderr()) != ColorChoice::Never);
        let (view, pause): (Box<dyn View>, _) = match mode {
            Mode::Live => (Box::new(Live::new(palette)), FRAME),
            Mode::Plain => (Box::new(Plain::new(palette)), Duration::ZERO),
        };
        let (news, told) = mpsc::channel();
        let (going, gone) = mpsc::channel();
        // Nobody chose it, so nobody expects it.
        let one_at_a_time = limits.max_concurrent_agents == 0 && limits.concurrent_agents() == 1;
        let hint = one_at_a_time.then_some(ONE_AT_A_TIME);
        let painter = move || {
            paint(&told, view, Easel { out: io::stderr(), size, now, pause, hint });
            drop::<Sender<()>>(going);
        };
        // A run does not fail because nobody can watch it.
        let _ = thread::Builder::new().name("display".into()).spawn(painter);
        Self { news, gone }
    }

    /// What tells this display of a run; it is for one run only.
    pub(crate) fn observer(&self) -> impl Observer + use<> {
        Reporter(self.news.clone())
    }

    /// Shows a line that is the command's own, such as how to force an end. The live display shows the last one
    /// only, and only while the run goes on.
    pub(crate) fn notice(&self, text: &str) {
        self.tell(News::Notice(text.into()));
    }

    /// Shows how the run ended and leaves the cursor at the start of a fresh line. Returns when everything is
    /// written. The error of a run that failed is shown by its code alone.
    pub(crate) fn finish(self, result: &RunResult) {
        self.tell(News::End(Some(Box::new(result.clone()))));
        self.wait();
    }

    /// Ends the display without a result. Returns when everything is written.
    pub(crate) fn stop(self) {
        self.tell(News::End(None));
        self.wait();
    }

    fn tell(&self, news: News) {
        // After the end nobody listens, and nobody needs to.
        let _ = self.news.send(news);
    }

    fn wait(&self) {
        // It never says anything, it only goes.
        let _ = self.gone.recv();
    }
}

impl Drop for Display {
    /// Ends a display that was neither finished nor stopped, for a person who wants out: waits for the terminal,
    /// but not long.
    fn drop(&mut self) {
        self.tell(News::End(None));
        let _ = self.gone.recv_timeout(PATIENCE);
    }
}

/// Hands a run's events to the display.
struct Reporter(Sender<News>);

impl Observer for Reporter {
    fn event(&self, _meta: &Meta, event: &Event) {
        let _ = self.0.send(News::Event(event.clone()));
    }
}

fn size() -> Size {
    let (columns, rows) = match terminal_size::terminal_size_of(io::stderr()) {
        Some((terminal_size::Width(columns), terminal_size::Height(rows))) if columns > 0 && rows > 0 => {
            (columns, rows)
        }
        _ => (80, 24),
    };
    Size { columns: columns.into(), rows: rows.into() }
}

/// Milliseconds since 1970 by a clock that never goes back, as the times of events are.
fn now() -> u64 {
    static BEGAN: LazyLock<(Duration, Instant)> = LazyLock::new(|| {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        (since, Instant::now())
    });
    let (began, instant) = &*BEGAN;
    u64::try_from(began.saturating_add(instant.elapsed()).as_millis()).unwrap_or(u64::MAX)
}
