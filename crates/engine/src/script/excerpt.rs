//! A line of the text with a mark under a place, for terminals.

use super::source::Source;

/// How much of a long line is shown.
const MAX_WIDTH: usize = 100;
/// How much of it is shown before the place.
const BEFORE: usize = 60;
const TAB: usize = 4;

/// Draws `7 | the text of line 7` and, under it, `^` at the column.
pub(super) fn draw(source: &Source, line: u32, column: u32) -> String {
    let line = line.clamp(1, source.lines());
    let text = source.line(line).unwrap_or_default();
    let at = (column as usize).saturating_sub(1).min(text.chars().count());

    // What the terminal shows of each character, and how many columns that takes.
    let cells = text.chars().scan(0, |used, c| {
        let (c, width) = cell(c, *used);
        *used += width;
        Some((c, width))
    });
    let cells: Vec<(char, usize)> = cells.collect();
    let first = cut_before(&cells, at);
    let (shown, mark_at) = window(&cells, first, at);

    let number = line.to_string();
    let margin = number.len() + " | ".len();
    let mark = " ".repeat(margin + mark_at);
    // Without trailing white space, which nobody sees.
    format!("{}\n{}^", format_args!("{number} | {shown}").to_string().trim_end(), mark)
}

/// The first character to show so that not too much stands before the place.
fn cut_before(cells: &[(char, usize)], at: usize) -> usize {
    if width(cells) <= MAX_WIDTH {
        return 0;
    }
    let mut before = 0;
    let fits = cells[..at].iter().rev().take_while(|(_, width)| {
        before += width;
        before <= BEFORE
    });
    at - fits.count()
}

/// The text from character `first` on, cut at the right, and the column of the place in it.
fn window(cells: &[(char, usize)], first: usize, at: usize) -> (String, usize) {
    let mut shown = String::new();
    let mut used = 0;
    if first > 0 {
        shown.push('…');
        used = 1;
    }
    let mark_at = used + width(&cells[first..at]);
    let whole = used + width(&cells[first..]) <= MAX_WIDTH;
    for &(c, width) in &cells[first..] {
        // Leaves a column for the mark of the cut.
        if !whole && used + width >= MAX_WIDTH {
            shown.push('…');
            break;
        }
        match c {
            '\t' => shown.extend(std::iter::repeat_n(' ', width)),
            c => shown.push(c),
        }
        used += width;
    }
    (shown, mark_at)
}

fn width(cells: &[(char, usize)]) -> usize {
    cells.iter().map(|(_, width)| width).sum()
}

/// What to show of a character, and how many columns it takes when it stands in column `used`.
fn cell(c: char, used: usize) -> (char, usize) {
    match c {
        '\t' => (c, TAB - used % TAB),
        // Control characters, and those that reorder or hide text.
        _ if c.is_control() => (char::REPLACEMENT_CHARACTER, 1),
        '\u{61c}'
        | '\u{200b}'
        | '\u{200e}'
        | '\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{e0000}'..='\u{e007f}' => (char::REPLACEMENT_CHARACTER, 1),
        // What combines with the character before it.
        '\u{300}'..='\u{36f}'
        | '\u{200c}'
        | '\u{200d}'
        | '\u{20d0}'..='\u{20ff}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{1f3fb}'..='\u{1f3ff}' => (c, 0),
        // East Asian scripts, their punctuation and wide forms, and emoji.
        '\u{1100}'..='\u{115f}'
        | '\u{2e80}'..='\u{303e}'
        | '\u{3041}'..='\u{a4cf}'
        | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}'
        | '\u{fe30}'..='\u{fe6f}'
        | '\u{ff00}'..='\u{ff60}'
        | '\u{ffe0}'..='\u{ffe6}'
        | '\u{1f300}'..='\u{1f64f}'
        | '\u{1f680}'..='\u{1f6ff}'
        | '\u{1f900}'..='\u{1f9ff}'
        | '\u{1fa70}'..='\u{1faff}'
        | '\u{20000}'..='\u{3fffd}' => (c, 2),
        _ => (c, 1),
    }
}
