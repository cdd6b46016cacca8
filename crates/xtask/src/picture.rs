//! Pictures of the terminal for the README.

use std::io::{self, Read as _, Write as _};
use std::num::NonZeroU16;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anstyle_svg::Term;
use anyhow::Result;

pub(crate) const EXAMPLE: &str = r#"Example:
  script -qfec "stty cols 90 rows 24; fanfold run examples/review.js --args @args.json" /dev/null |
      cargo xtask picture 90 24 1.5 > docs/run.svg"#;

/// Standard input as a terminal would show it, drawn to standard output.
pub(crate) fn run(columns: NonZeroU16, rows: NonZeroU16, seconds: Option<f64>) -> Result<()> {
    let end = seconds.map(Duration::try_from_secs_f64).transpose()?.map(|wait| Instant::now() + wait);
    let (sender, written) = mpsc::channel();
    std::thread::spawn(move || {
        let mut buffer = [0; 1 << 16];
        while let Ok(count @ 1..) = io::stdin().read(&mut buffer) {
            if sender.send(buffer[..count].to_vec()).is_err() {
                break;
            }
        }
    });
    let mut terminal = vt100::Parser::new(rows, columns, 0);
    let next = || match end {
        Some(end) => written.recv_timeout(end.saturating_duration_since(Instant::now())).ok(),
        None => written.recv().ok(),
    };
    while let Some(bytes) = next() {
        terminal.process(&bytes);
    }
    let screen = terminal.screen().contents_formatted_basic();
    let svg = Term::new().render_svg(screen.trim_end());
    io::stdout().write_all(svg.as_bytes())?;
    Ok(())
}
