//! The table in `docs/performance.md`.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};
use peer_protocol::Hello;

use super::peer::Kind;
use super::work::{Measure, Work};

const PAGE: &str = "docs/performance.md";
const BEGIN: &str = "<!-- `cargo xtask bench --peers` writes from here … -->\n";
const END: &str = "<!-- … to here. -->\n";

/// A work on all engines.
pub(super) struct Row {
    name: &'static str,
    is_memory: bool,
    kinds: &'static [Kind],
    cells: Vec<Option<Cell>>,
}

/// A work on one engine.
struct Cell {
    median: f64,
    /// How many times Fanfold's.
    ratio: f64,
}

impl Row {
    /// From samples by engine and round, Fanfold's first.
    pub(super) fn new(work: &Work, kinds: &'static [Kind], samples: Vec<Vec<Vec<f64>>>) -> Self {
        let rounds = |engine: &[Vec<f64>]| engine.iter().cloned().map(median).collect::<Vec<f64>>();
        let ours = rounds(&samples[0]);
        let cells = samples.iter().map(|engine| {
            (!engine.is_empty()).then(|| Cell {
                median: median(engine.concat()),
                ratio: median(rounds(engine).iter().zip(&ours).map(|(theirs, ours)| theirs / ours).collect()),
            })
        });
        let cells = cells.collect();
        Self { name: work.name, is_memory: matches!(work.measure, Measure::Memory { .. }), kinds, cells }
    }

    fn cell(&self, at: usize) -> String {
        let Some(cell) = &self.cells[at] else {
            return if self.is_memory { "not tried".into() } else { "cannot".into() };
        };
        let value = if self.is_memory { bytes(cell.median) } else { time(cell.median) };
        match self.kinds[at] {
            Kind::Fanfold => format!("**{value}**"),
            // Nobody can be faster than the floor.
            Kind::Floor => format!("{value} · {} ×", digits(cell.ratio)),
            _ if cell.ratio < 1.0 => format!("{value} · **{} ×**", digits(cell.ratio)),
            _ => format!("{value} · {} ×", digits(cell.ratio)),
        }
    }
}

/// The medians, and in the columns of the peers how many times Fanfold's they are.
pub(super) fn table(engines: &[Hello], rows: &[Row]) -> String {
    let mut text = String::from("| work |");
    for engine in engines {
        let _ = write!(text, " {} |", engine.name);
    }
    text.push_str("\n|---|");
    text.push_str(&"---|".repeat(engines.len()));
    text.push('\n');
    for row in rows {
        let _ = write!(text, "| {} |", row.name);
        for at in 0..engines.len() {
            let _ = write!(text, " {} |", row.cell(at));
        }
        text.push('\n');
    }
    let _ = write!(text, "\nMachine: {}. Versions: ", machine());
    let versions: Vec<String> =
        engines.iter().map(|engine| format!("{} ({})", engine.name, engine.version)).collect();
    let _ = writeln!(text, "{}; {}.", versions.join(", "), toolchain());
    text
}

/// Puts the table in its place on the page.
pub(super) fn write(root: &Path, table: &str) -> Result<()> {
    let path = root.join(PAGE);
    let page = fs::read_to_string(&path).with_context(|| format!("failed to read {PAGE}"))?;
    let places = page.find(BEGIN).zip(page.find(END));
    let (begin, end) = places.with_context(|| format!("{PAGE} has no place for the table"))?;
    let page = format!("{}{table}{}", &page[..begin + BEGIN.len()], &page[end..]);
    fs::write(&path, page)?;
    crate::say(&format!("wrote the table to {PAGE}"));
    Ok(())
}

fn machine() -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let field = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name));
        line.and_then(|line| line.split_once(':'))
            .map(|(_, value)| value.trim().to_owned())
            .unwrap_or_default()
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let memory = field(&read("/proc/meminfo"), "MemTotal");
    let gib =
        memory.split(' ').next().and_then(|kib| kib.parse::<f64>().ok()).unwrap_or_default() / 1048576.0;
    let kernel = read("/proc/sys/kernel/osrelease");
    let kernel = kernel.split('-').next().unwrap_or_default().trim();
    format!(
        "{}, {cores} processors, {gib:.0} GiB, Linux {kernel}",
        field(&read("/proc/cpuinfo"), "model name")
    )
}

fn toolchain() -> String {
    let rustc = Command::new("rustc").arg("--version").output();
    let rustc = rustc.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let rustc = rustc.split(" (").next().unwrap_or_default().trim().to_owned();
    format!("{rustc}, release with thin LTO")
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    let middle = samples.len() / 2;
    match samples.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => samples[middle],
        _ => (samples[middle - 1] + samples[middle]) / 2.0,
    }
}

fn time(ms: f64) -> String {
    match ms {
        _ if ms >= 1000.0 => format!("{} s", digits(ms / 1000.0)),
        _ if ms >= 1.0 => format!("{} ms", digits(ms)),
        _ => format!("{} µs", digits(ms * 1000.0)),
    }
}

fn bytes(bytes: f64) -> String {
    match bytes / 1024.0 {
        kib if kib >= 1024.0 => format!("{} MiB", digits(kib / 1024.0)),
        kib => format!("{} KiB", digits(kib)),
    }
}

/// Two or three digits that count.
fn digits(value: f64) -> String {
    match value {
        _ if value >= 100.0 => format!("{value:.0}"),
        _ if value >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}
