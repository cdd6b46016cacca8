//! Text that others wrote, made fit for a terminal: shown, never obeyed, and measured.
//!
//! Labels, titles, logs and reasons come from scripts and models. A terminal would take the control characters
//! in them for orders, and characters that change the direction of writing could make one thing look like
//! another. Everything the display prints of such text has gone through [`line()`] or [`lines()`].

use std::borrow::Cow;

use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Bytes of one visible character with all its marks. Flags and families need less; what needs more is a heap of
/// marks that would cover the lines above and below.
const MAX_CLUSTER: usize = 64;

/// The text on one line: white space that moves the cursor becomes a blank, other control characters the
/// pictures of themselves (`␛`), and characters that cannot be seen or that turn the direction of writing `�`.
pub(crate) fn line(text: &str) -> String {
    let shown: String = text.replace("\r\n", "\n").chars().map(shown).collect();
    if shown.graphemes(true).all(|cluster| cluster.len() <= MAX_CLUSTER) {
        return shown;
    }
    let bare = |cluster| if str::len(cluster) <= MAX_CLUSTER { cluster } else { first(cluster) };
    shown.graphemes(true).map(bare).collect()
}

/// The same for text that may have several lines, without empty ones at its end. There is always a first one.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = String> {
    text.trim_end().split('\n').map(|text| line(text.trim_end()))
}

/// JSON text with escapes in place of characters that a terminal obeys or that cannot be seen: the same value. Line
/// breaks stay: in JSON they only stand between values.
pub(crate) fn json(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if c == '\n' || shown(c) == c {
            out.push(c);
        } else {
            let units = &mut [0; 2];
            out.extend(c.encode_utf16(units).iter().map(|unit| format!("\\u{unit:04x}")));
        }
    }
    out
}

fn shown(c: char) -> char {
    match c {
        '\t' | '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}' => ' ',
        '\0'..='\x1f' => char::from_u32(0x2400 + u32::from(c)).unwrap_or('\u{fffd}'),
        '\x7f' => '\u{2421}',
        // C1 controls: some terminals take U+009B for an escape and a bracket.
        '\u{80}'..='\u{9f}' => '\u{fffd}',
        // Bidirectional controls and other characters without a shape of their own, about whose width terminals
        // disagree. The joiners (U+200C, U+200D) stay, for scripts and emoji that need them.
        '\u{ad}'
        | '\u{61c}'
        | '\u{180e}'
        | '\u{200b}'
        | '\u{200e}'
        | '\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}' => '\u{fffd}',
        other => other,
    }
}

fn first(cluster: &str) -> &str {
    cluster.char_indices().nth(1).map_or(cluster, |(second, _)| &cluster[..second])
}

/// How many columns a text takes.
///
/// Some terminals draw a joined emoji as one, others as its parts side by side; the wider answer counts, so that
/// a line that fits by this measure fits everywhere.
pub(crate) fn width(text: &str) -> usize {
    text.graphemes(true).map(cluster_width).sum()
}

fn cluster_width(cluster: &str) -> usize {
    let apart = cluster.chars().filter_map(|c| c.width()).sum();
    cluster.width().max(apart)
}

/// The text in at most `columns` columns, with `…` at its end if it was cut.
pub(crate) fn cut(text: &str, columns: usize) -> Cow<'_, str> {
    let (mut used, mut kept) = (0, 0);
    for (at, cluster) in text.grapheme_indices(true) {
        // What fits beside the mark, should there be one.
        if used < columns {
            kept = at;
        }
        used += cluster_width(cluster);
        if used > columns {
            let mark = if columns > 0 { "…" } else { "" };
            return Cow::Owned(format!("{}{mark}", &text[..kept]));
        }
    }
    Cow::Borrowed(text)
}

/// A span of time in at most five columns (six after ten hours): `0.4s`, `2m05s`, `1h02m`.
pub(crate) fn span(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0..60 => format!("{seconds}.{}s", ms % 1000 / 100),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
    }
}

/// A span of time in whole seconds: `42s`, `2m05s`.
pub(crate) fn seconds(ms: u64) -> String {
    match ms / 1000 {
        seconds @ 0..60 => format!("{seconds}s"),
        _ => span(ms),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn orders_to_the_terminal_become_pictures() {
        let cases = [
            ("plain", "plain"),
            ("a\tb\nc\r\nd\u{2028}e", "a b c d e"),
            ("\u{1b}[31mred\u{1b}[0m\u{7}", "␛[31mred␛[0m␇"),
            ("\u{1b}]8;;http://x\u{1b}\\link", "␛]8;;http://x␛\\link"),
            ("\u{9b}2J", "\u{fffd}2J"),
            ("\0\x08\x7f", "␀␈␡"),
            ("user\u{202e}txt.exe", "user\u{fffd}txt.exe"),
            ("\u{feff}bom\u{200b}zero", "\u{fffd}bom\u{fffd}zero"),
            ("שלום", "שלום"),
            ("👩‍👩‍👧 and 🇩🇪", "👩‍👩‍👧 and 🇩🇪"),
        ];
        for (text, shown) in cases {
            assert_eq!(line(text), shown, "{text:?}");
        }
    }

    #[test]
    fn json_says_the_same_without_what_a_terminal_obeys() {
        let cases = [
            ("\u{9d}2;a title\u{9c}\u{9b}2J", r"\u009d2;a title\u009c\u009b2J"),
            ("\u{202e}gnp.exe", r"\u202egnp.exe"),
            ("\u{7f}\u{85}\u{2028}\u{feff}", r"\u007f\u0085\u2028\ufeff"),
            ("\u{e0041}", r"\udb40\udc41"),
            ("日本語 👩‍👩‍👧 שלום", "日本語 👩‍👩‍👧 שלום"),
        ];
        for (text, shown) in cases {
            let value = serde_json::json!({ text: [text] });
            let shown_json = json(&serde_json::to_string_pretty(&value).unwrap());
            assert!(shown_json.contains(shown), "{shown_json}");
            assert_eq!(serde_json::from_str::<serde_json::Value>(&shown_json).unwrap(), value);
        }
    }

    #[test]
    fn a_heap_of_marks_is_taken_off() {
        let heap = format!("x{}y", "\u{301}".repeat(500));
        assert_eq!(line(&heap), "xy");
        assert_eq!(line("e\u{301}"), "e\u{301}");
    }

    #[test]
    fn several_lines_stay_apart() {
        assert_eq!(lines("a\r\nb\u{1b}\n\nc\n\n").collect::<Vec<_>>(), ["a", "b␛", "", "c"]);
        assert_eq!(lines("\n").collect::<Vec<_>>(), [""]);
    }

    #[test]
    fn a_cut_falls_between_characters_that_are_seen() {
        let cases = [
            ("abc", 3, "abc"),
            ("abcd", 3, "ab…"),
            ("abc", 1, "…"),
            ("abc", 0, ""),
            ("", 0, ""),
            ("日本語", 6, "日本語"),
            ("日本語", 5, "日本…"),
            ("日本語", 4, "日…"),
            ("日本語", 1, "…"),
            ("e\u{301}e\u{301}e\u{301}", 2, "e\u{301}…"),
            // Six columns where the terminal does not join them.
            ("👩‍👩‍👧!", 7, "👩‍👩‍👧!"),
            ("👩‍👩‍👧!", 6, "…"),
        ];
        for (text, columns, shown) in cases {
            assert_eq!(cut(text, columns), shown, "{text:?} in {columns}");
        }
    }

    #[test]
    fn spans_are_read_at_a_glance() {
        let cases = [
            (0, "0.0s"),
            (1_290, "1.2s"),
            (59_999, "59.9s"),
            (60_000, "1m00s"),
            (3_599_999, "59m59s"),
            (3_720_000, "1h02m"),
            (360_000_000, "100h00m"),
        ];
        for (ms, shown) in cases {
            assert_eq!(span(ms), shown);
        }
        for (ms, shown) in
            [(0, "0s"), (8_999, "8s"), (59_999, "59s"), (60_000, "1m00s"), (3_720_000, "1h02m")]
        {
            assert_eq!(seconds(ms), shown);
        }
    }

    proptest! {
        #[test]
        fn a_cut_text_is_never_too_wide(text in any::<String>(), columns in 0usize..40) {
            let text = line(&text);
            let shown = cut(&text, columns);
            prop_assert!(width(&shown) <= columns);
            prop_assert!(*shown == *text || width(&text) > columns);
        }

        #[test]
        fn no_control_character_is_left(text in any::<String>()) {
            prop_assert!(!line(&text).chars().any(char::is_control));
            prop_assert!(!lines(&text).any(|line| line.chars().any(char::is_control)));
        }
    }
}
