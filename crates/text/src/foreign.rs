//! Text that comes from outside, and the one way to show it.

use std::borrow::Cow;
use std::fmt;

/// How many characters of foreign text are shown: as many as the longest path has bytes
/// (PATH_MAX). The rest of a longer one becomes `…`.
pub const LONGEST_FOREIGN: usize = 4_096;

/// Text that comes from outside: a label, a reader's name, a path, a line of a log, what another
/// machine says.
///
/// Its [`Display`](fmt::Display) and [`Debug`](fmt::Debug) show each character that acts, rather
/// than being seen, as U+FFFD, and at most [`LONGEST_FOREIGN`] characters. What acts is a control
/// character; a mark, an override or an isolate of direction; a character without width; a
/// separator of lines or paragraphs; a variation selector or a tag.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Foreign<'a> {
    text: Cow<'a, str>,
    lines: Lines,
}

/// What becomes of line breaks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Lines {
    /// They act, as other control characters do.
    One,
    /// They are shown as line breaks.
    Several,
}

impl<'a> Foreign<'a> {
    /// Text of one line: a line break in it is shown as U+FFFD.
    pub fn new(text: impl Into<Cow<'a, str>>) -> Self {
        Self { text: text.into(), lines: Lines::One }
    }

    /// Text of several lines, such as an error with its hint: line breaks stay.
    pub fn with_lines(text: impl Into<Cow<'a, str>>) -> Self {
        Self { text: text.into(), lines: Lines::Several }
    }

    /// Text of one line in bytes. What is no UTF-8 is shown as U+FFFD.
    #[must_use]
    pub fn from_bytes(bytes: &'a [u8]) -> Self {
        Self::new(String::from_utf8_lossy(bytes))
    }

    fn harmless(&self) -> String {
        let mut characters = self.text.chars();
        let beginning = characters.by_ref().take(LONGEST_FOREIGN);
        let mut harmless: String = beginning.map(|c| self.shown(c)).collect();
        if characters.next().is_some() {
            harmless.push('…');
        }
        harmless
    }

    fn shown(&self, c: char) -> char {
        match c {
            '\n' if self.lines == Lines::Several => c,
            c if acts(c) => char::REPLACEMENT_CHARACTER,
            c => c,
        }
    }
}

impl fmt::Display for Foreign<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.harmless())
    }
}

impl fmt::Debug for Foreign<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.harmless())
    }
}

/// Whether a character moves the cursor, changes the direction of the text, or hides.
fn acts(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}'
            // Zero-width characters and marks of direction; separators of lines and paragraphs.
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            // Joiners, isolates, and invisible operators.
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            // Variation selectors and tags.
            | '\u{fe00}'..='\u{fe0f}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nothing_that_acts_is_shown() {
        let acting = "\u{0}\u{7}\u{8}\t\r\n\u{1b}\u{7f}\u{85}\u{9b}\
            \u{61c}\u{200b}\u{200e}\u{200f}\u{2028}\u{2029}\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}\
            \u{2060}\u{2066}\u{2067}\u{2068}\u{2069}\u{feff}\u{fe0f}\u{e0001}";
        for c in acting.chars() {
            let text = format!("A{c}B");
            assert_eq!(Foreign::new(&text).to_string(), "A\u{fffd}B", "{c:?}");
        }
        for seen in ["", " ", "Ünïcödé", "鍵", "שלום", "👍", "µ±×–…", "\u{fffd}"]
        {
            assert_eq!(Foreign::new(seen).to_string(), seen);
        }
    }

    #[test]
    fn line_breaks_stay_where_there_are_lines() {
        let text = "no such host\nhint: \u{1b}[1mask\r";
        let lines = "no such host\nhint: \u{fffd}[1mask\u{fffd}";
        assert_eq!(Foreign::with_lines(text).to_string(), lines);
        assert_eq!(Foreign::new(text).to_string(), lines.replace('\n', "\u{fffd}"));
    }

    #[test]
    fn bytes_that_are_no_text_are_shown_as_such() {
        assert_eq!(Foreign::from_bytes(b"a\xFFb\x1B").to_string(), "a\u{fffd}b\u{fffd}");
    }

    #[test]
    fn over_long_text_is_cut() {
        let fits = "é".repeat(LONGEST_FOREIGN);
        assert_eq!(Foreign::new(&fits).to_string(), fits);
        let longer = fits.clone() + "x";
        assert_eq!(Foreign::new(longer).to_string(), fits + "…");
    }

    #[test]
    fn width_and_debug_are_harmless_too() {
        assert_eq!(format!("[{:4}]", Foreign::new("a\u{1b}")), "[a\u{fffd}  ]");
        assert_eq!(format!("{:?}", Foreign::new("a\u{202e}")), "\"a\u{fffd}\"");
    }

    proptest! {
        #[test]
        fn once_harmless_stays_so(text in any::<String>()) {
            let shown = Foreign::new(&text).to_string();
            prop_assert!(!shown.chars().any(acts));
            prop_assert_eq!(Foreign::new(&shown).to_string(), shown);
        }
    }
}
