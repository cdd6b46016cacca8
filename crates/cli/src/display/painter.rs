//! The thread that owns the terminal.
//!
//! News wait for it in a channel, so a terminal that takes nothing (Ctrl-S, a pipe that nobody reads) holds up
//! this thread and nothing else; what waits is bounded by what a run may say. A picture is made when there is
//! time for one, of all the news until then.

use std::io::Write;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use fanfold::{Event, RunResult, RunView};

use super::frame::Size;
use super::view::View;

/// What the painter is told.
#[derive(Debug)]
pub(crate) enum News {
    Event(Event),
    Notice(String),
    /// Nothing follows.
    End(Option<Box<RunResult>>),
}

/// Where pictures go, and what is known of the place.
pub(crate) struct Easel<W> {
    pub(crate) out: W,
    pub(crate) size: fn() -> Size,
    /// Milliseconds since 1970.
    pub(crate) now: fn() -> u64,
    /// The least time between two pictures.
    pub(crate) pause: Duration,
    /// What to say once as soon as one agent has to wait for another one, if anything.
    pub(crate) hint: Option<&'static str>,
}

/// Shows news until the last.
pub(crate) fn paint(news: &Receiver<News>, mut view: Box<dyn View>, mut easel: Easel<impl Write>) {
    let mut run = RunView::default();
    let mut next = Instant::now();
    let mut shown = true;
    loop {
        let told = if shown && !view.moves(&run) {
            news.recv().map_err(RecvTimeoutError::from)
        } else {
            news.recv_timeout(next.saturating_duration_since(Instant::now()))
        };
        let now = (easel.now)();
        shown = false;
        match told {
            Ok(News::Event(event)) => {
                run.event(&event);
                view.event(&event, &run);
                let agents = &run.run().agents;
                if agents.queued + agents.running > 1
                    && let Some(hint) = easel.hint.take()
                {
                    view.notice(hint, &run, now);
                }
            }
            Ok(News::Notice(text)) => view.notice(&text, &run, now),
            Ok(News::End(result)) => {
                return easel.put(&view.end(&run, result.as_deref(), (easel.size)(), now));
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return easel.put(&view.end(&run, None, (easel.size)(), now));
            }
        }
        if Instant::now() >= next {
            let picture = view.draw(&run, (easel.size)(), now);
            easel.put(&picture);
            next = Instant::now() + easel.pause;
            shown = true;
        }
    }
}

impl<W: Write> Easel<W> {
    /// In one write, so that nobody sees half a picture.
    fn put(&mut self, picture: &str) {
        if !picture.is_empty() {
            // Whoever watched has gone; the run does not depend on it.
            let _ = self.out.write_all(picture.as_bytes()).and_then(|()| self.out.flush());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::mpsc::{self, Sender};
    use std::thread;

    use fanfold::AgentOutcome::Completed;

    use super::super::live::Live;
    use super::super::palette::Palette;
    use super::super::plain::Plain;
    use super::super::sample::{Run, planned};
    use super::*;

    /// Sends each write on.
    struct Shown(Sender<String>);

    impl Write for Shown {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let text = String::from_utf8(bytes.to_vec()).map_err(io::Error::other)?;
            self.0.send(text).map_err(io::Error::other)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn easel<W>(out: W, pause: Duration) -> Easel<W> {
        Easel { out, size: || Size { columns: 80, rows: 24 }, now: || 1_000, pause, hint: None }
    }

    #[test]
    fn plain_lines_come_as_things_happen() {
        let (news, told) = mpsc::channel();
        let (out, shown) = mpsc::channel();
        let painter = thread::spawn(move || {
            paint(&told, Box::new(Plain::new(Palette::default())), easel(Shown(out), Duration::ZERO));
        });
        let mut run = Run::of(planned("review", &[]));
        run.log("said");
        for event in &run.events {
            news.send(News::Event(event.clone())).unwrap();
            assert_eq!(shown.recv().unwrap().lines().count(), 1);
        }
        drop(news);
        assert!(shown.recv().unwrap().contains("end      stopped"));
        painter.join().unwrap();
    }

    #[test]
    fn that_agents_wait_for_each_other_is_said_once() {
        let (news, told) = mpsc::channel();
        let (out, shown) = mpsc::channel();
        let mut run = Run::of(planned("review", &[]));
        run.calls(1, "a", "").agent(1, "a", "").ends(1, Completed);
        let alone = run.events.len();
        run.calls(2, "b", "").calls(3, "c", "").agent(2, "b", "").calls(4, "d", "");
        run.events.iter().for_each(|event| news.send(News::Event(event.clone())).unwrap());
        drop(news);
        let easel = Easel { hint: Some("one at a time"), ..easel(Shown(out), Duration::ZERO) };
        paint(&told, Box::new(Plain::new(Palette::default())), easel);
        let lines: Vec<String> = shown.iter().collect();
        let hints: Vec<_> = lines.iter().filter(|line| line.contains("one at a time")).collect();
        assert_eq!(hints.len(), 1, "{lines:?}");
        assert!(alone < run.events.len() && !lines[..3].concat().contains("one at a time"), "{lines:?}");
    }

    #[test]
    fn pictures_wait_for_each_other_but_the_last_one_for_none() {
        let (news, told) = mpsc::channel();
        let (out, shown) = mpsc::channel();
        let mut run = Run::of(planned("review", &[]));
        (0..1_000).for_each(|seq| _ = run.log(&format!("said {seq}")));
        let result = run.completed();
        run.events.iter().for_each(|event| news.send(News::Event(event.clone())).unwrap());
        news.send(News::End(Some(Box::new(result)))).unwrap();
        paint(&told, Box::new(Live::new(Palette::default())), easel(Shown(out), Duration::from_secs(3600)));
        let pictures: Vec<String> = shown.iter().collect();
        assert_eq!(pictures.len(), 2);
        assert!(pictures[1].contains("│ said 999") && pictures[1].contains("completed"));
    }

    #[test]
    fn a_reader_that_has_gone_harms_nobody() {
        let (news, told) = mpsc::channel();
        let (out, shown) = mpsc::channel();
        drop(shown);
        let run = Run::of(planned("review", &[]));
        news.send(News::Event(run.events[0].clone())).unwrap();
        news.send(News::End(None)).unwrap();
        paint(&told, Box::new(Plain::new(Palette::default())), easel(Shown(out), Duration::ZERO));
    }
}
