//! Text made safe to print, and measured in columns. Labels come from devices and are hostile
//! until proven otherwise: an escape sequence in one could rewrite what stands above it.

use tapstone_text::Foreign;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Text in which every character takes up its place and does nothing else.
pub(crate) fn clean(text: &str, unicode: bool) -> String {
    let visible = Foreign::new(text).to_string();
    if unicode { visible } else { ascii(visible.chars()) }
}

/// The signs that this crate uses, for a terminal that knows only ASCII.
fn ascii(text: impl Iterator<Item = char>) -> String {
    let mut plain = String::new();
    for c in text {
        match c {
            _ if c.is_ascii() => plain.push(c),
            'µ' => plain.push('u'),
            '≈' => plain.push('~'),
            '±' => plain.push_str("+-"),
            '×' => plain.push('x'),
            '–' => plain.push('-'),
            '·' => plain.push('|'),
            '…' => plain.push_str(".."),
            // Plots: a cell of braille without dots is a blank.
            '\u{2800}' => plain.push(' '),
            '\u{2801}'..='\u{28ff}' => plain.push('*'),
            '✓' => plain.push_str("ok"),
            '←' => plain.push_str("<-"),
            '├' | '└' => plain.push('+'),
            '▁' => plain.push('_'),
            '▂' | '▃' => plain.push('.'),
            '▄' | '▅' => plain.push('-'),
            '▆' | '▇' => plain.push('='),
            '█' => plain.push('#'),
            '▏' | '▎' | '▍' | '▌' | '▋' | '▊' | '▉' => plain.push('|'),
            'λ' => plain.push_str("lambda"),
            'σ' => plain.push_str("sigma"),
            'κ' => plain.push_str("kappa"),
            _ => plain.push('?'),
        }
    }
    plain
}

/// How many columns text takes up.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// The text if it fits, else its beginning and an ellipsis.
pub(crate) fn truncate(text: &str, columns: usize, ellipsis: &str) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let (kept, _) = split(text, columns.saturating_sub(width(ellipsis)));
    if columns < width(ellipsis) { String::new() } else { format!("{kept}{ellipsis}") }
}

/// Lines of at most so many columns, broken between words, and inside a word that is too long.
pub(crate) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(2);
    let mut lines = vec![String::new()];
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let mut word = word;
        loop {
            let line = lines.last_mut().expect("there is always a line");
            let gap = usize::from(!line.is_empty());
            if width(line) + gap + width(word) <= columns {
                line.push_str(&" ".repeat(gap));
                line.push_str(word);
                break;
            }
            if !line.is_empty() {
                lines.push(String::new());
                continue;
            }
            let (start, rest) = split(word, columns);
            line.push_str(start);
            lines.push(String::new());
            word = rest;
        }
    }
    lines
}

/// The longest beginning that fits, at least one character if there is room for any; and the rest.
fn split(text: &str, columns: usize) -> (&str, &str) {
    let mut end = 0;
    for (start, c) in text.char_indices() {
        let next = start + c.len_utf8();
        if width(&text[..next]) > columns && (end > 0 || c.width().unwrap_or(0) > columns) {
            break;
        }
        end = next;
    }
    text.split_at(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nothing_acts_on_the_terminal() {
        let hostile = "a\x1b[31mb\r\n\u{9b}2J\u{202e}c\u{200b}";
        assert_eq!(
            clean(hostile, true),
            "a\u{fffd}[31mb\u{fffd}\u{fffd}\u{fffd}2J\u{fffd}c\u{fffd}"
        );
        assert_eq!(clean(hostile, false), "a?[31mb???2J?c?");
        assert_eq!(clean("43.1 µs ± 1 % ✓", false), "43.1 us +- 1 % ok");
    }

    #[test]
    fn long_words_are_broken_and_wide_characters_count_twice() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("abcdefgh i", 3), ["abc", "def", "gh", "i"]);
        assert_eq!(truncate("鍵鍵鍵", 5, "…"), "鍵鍵…");
        assert_eq!(truncate("abc", 3, "…"), "abc");
        assert_eq!(truncate("abcdef", 3, ".."), "a..");
    }

    proptest! {
        #[test]
        fn no_line_is_too_wide_and_no_letter_is_lost(text in ".{0,80}", columns in 2usize..30) {
            let text = clean(&text, true);
            let lines = wrap(&text, columns);
            prop_assert!(lines.iter().all(|line| width(line) <= columns), "{lines:?}");
            let letters = |text: &str| text.replace(' ', "");
            prop_assert_eq!(letters(&lines.concat()), letters(&text));
            prop_assert!(width(&truncate(&text, columns, "…")) <= columns);
            prop_assert_eq!(clean(&text, true), text);
        }
    }
}
