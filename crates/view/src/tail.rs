//! The lines of a run in a file that may still grow, be cut, or be replaced.

use std::fs::File;
use std::io;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use fanfold_types::{Line, SessionRecord};

use crate::cursor::Cursor;
use crate::files::{FileRun, RawLines, stamp};
use crate::stream::{BATCH, Next};

/// How many bytes of lines are taken from a file at once; more only for one line that is longer.
const BATCH_BYTES: usize = 256 << 10;

/// Between two looks at a file.
const PAUSE: Duration = Duration::from_millis(500);

/// A reader of a run in a file.
#[derive(Debug)]
pub(crate) struct FileLines(Option<Tail>);

impl FileLines {
    /// A reader that has seen the lines up to `seen`.
    pub(crate) fn new(run: FileRun, seen: Cursor) -> Self {
        Self(Some(Tail { run, at: seen, stamp: seen.stamp, open: None, found: seen.lines > 0 }))
    }

    pub(crate) async fn next(&mut self) -> Next {
        let Some(mut tail) = self.0.take() else { return Next::Gone };
        let read = tokio::task::spawn_blocking(move || {
            let next = tail.next().unwrap_or(Next::Gone);
            (tail, next)
        });
        let Ok((tail, next)) = read.await else { return Next::Gone };
        self.0 = Some(tail);
        next
    }

    /// Returns when the file is no longer as it was read.
    pub(crate) async fn changed(&mut self) {
        let Some(Tail { run, stamp: read, .. }) = &self.0 else { return };
        loop {
            tokio::time::sleep(PAUSE).await;
            let run = run.clone();
            let now = tokio::task::spawn_blocking(move || run.open().and_then(|file| stamp(&file)));
            if !matches!(now.await, Ok(Ok(now)) if Some(now) == *read) {
                break;
            }
        }
        if let Some(tail) = &mut self.0 {
            tail.open = None;
        }
    }
}

/// Reads a run from a file. Blocks.
#[derive(Debug)]
struct Tail {
    run: FileRun,
    at: Cursor,
    /// Of the file as it was read.
    stamp: Option<u64>,
    open: Option<Open>,
    /// Whether a line of the run was found.
    found: bool,
}

#[derive(Debug)]
struct Open {
    lines: RawLines,
    /// Whether the run says no more.
    over: bool,
}

impl Tail {
    fn next(&mut self) -> io::Result<Next> {
        let mut open = match mem::take(&mut self.open) {
            Some(open) => open,
            None => {
                let file = self.run.open()?;
                let now = stamp(&file)?;
                if self.stamp.replace(now) == Some(now) && self.at.stamp == Some(now) {
                    return Ok(Next::CaughtUp(self.at));
                }
                match self.resume(file)? {
                    Some(open) => open,
                    None => {
                        self.open = Some(Open { lines: RawLines::new(self.run.open()?), over: false });
                        (self.at, self.found) = (Cursor::START, false);
                        return Ok(Next::Restart);
                    }
                }
            }
        };
        let (mut lines, mut bytes, mut torn) = (Vec::new(), 0, false);
        while lines.len() < BATCH && bytes < BATCH_BYTES {
            let Some(line) = open.lines.next()? else { break };
            let parsed = str::from_utf8(line.bytes).ok().map(|text| (text, Line::parse(text)));
            if !line.is_whole && !matches!(parsed, Some((_, Ok(_)))) {
                torn = true;
                break;
            }
            self.at = self.at.after(line.bytes);
            let Some((text, Ok(parsed))) = parsed else { continue };
            if !self.run.tells(&parsed) {
                continue;
            }
            open.over |= ends(&parsed);
            let text: Arc<str> = match parsed {
                // The value is fetched by those who want it.
                Line::Result(mut result) => {
                    result.value = None;
                    result.text.clear();
                    serde_json::to_string(&result)?.into()
                }
                _ => text.into(),
            };
            bytes += text.len();
            lines.push((self.at, text));
        }
        self.found |= !lines.is_empty();
        let over = open.over;
        if torn && !over {
            // The rest of the line may be written yet: the file is read anew when it has changed.
            self.at.stamp = self.stamp;
        } else {
            self.open = Some(open);
        }
        Ok(if !lines.is_empty() {
            Next::Lines(lines)
        } else if over {
            Next::Over
        } else if self.found {
            self.at.stamp = self.stamp;
            Next::CaughtUp(self.at)
        } else {
            Next::Gone
        })
    }

    /// Goes to where the reader is. `None` if the file does not begin with the lines that it has seen.
    fn resume(&self, file: File) -> io::Result<Option<Open>> {
        let mut open = Open { lines: RawLines::new(file), over: false };
        let mut at = Cursor::START;
        while at.lines < self.at.lines {
            let Some(line) = open.lines.next()? else { break };
            at = at.after(line.bytes);
            let text = str::from_utf8(line.bytes).unwrap_or_default();
            // Only few lines are worth the time that it takes to read them.
            if ["result", "run-end"].iter().any(|word| text.contains(word))
                && let Ok(parsed) = Line::parse(text)
            {
                open.over |= self.run.tells(&parsed) && ends(&parsed);
            }
        }
        Ok(self.at.is_at(at).then_some(open))
    }
}

/// Whether a run says nothing more after this line.
fn ends(line: &Line) -> bool {
    matches!(line, Line::Result(_) | Line::Record(SessionRecord::RunEnd { .. }))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::path::Path;

    use super::*;
    use crate::files::Files;
    use crate::runs::Keys;

    fn tail(folder: &Path) -> Tail {
        let files = Files::new(Arc::<Keys>::default());
        files.add(vec![folder.to_owned()]).expect("the folder is there");
        let run = files.find(1).expect("there is a run");
        FileLines::new(run, Cursor::START).0.expect("nothing was read yet")
    }

    #[test]
    fn a_slow_reader_holds_one_batch_and_not_the_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut file = File::create(folder.path().join("x.jsonl")).expect("a file");
        let start =
            r#"{"type":"workflow/start","id":"r","n":1,"at":1,"meta":{"name":"n","description":"d"}}"#;
        writeln!(file, "{start}").expect("room");
        // Short lines, of which there are many in a batch, and long ones, of which there are few.
        for n in 2..2_000_u32 {
            let message = "m".repeat(if n < 1_000 { 10 } else { 20_000 });
            let line =
                format!(r#"{{"type":"workflow/log","id":"r","n":{n},"at":{n},"message":"{message}"}}"#);
            writeln!(file, "{line}").expect("room");
        }
        let mut tail = tail(folder.path());
        let mut seen = 0;
        loop {
            match tail.next().expect("it can be read") {
                Next::Lines(lines) => {
                    let bytes: usize = lines.iter().map(|(_, line)| line.len()).sum();
                    assert!(lines.len() <= BATCH && bytes < BATCH_BYTES + 30_000, "{} {bytes}", lines.len());
                    seen += lines.len();
                }
                Next::CaughtUp(at) => {
                    assert_eq!((seen, at.lines), (1_999, 1_999));
                    break;
                }
                other => panic!("{other:?}"),
            }
        }
    }
}
