//! Mistakes in TOML that a user wrote, with file, line and field.
//!
//! A [`Source`] is the text of a file. It turns a place in the text, or an error of the TOML reader,
//! into a [`Mistake`] that prints where it is and what to do.
//!
//! ```
//! use tapstone_source::Source;
//!
//! let text = "[[case]]\nsizes = [16,\n0]\n";
//! let source = Source { file: "my.toml", text };
//! let zero = text.find("0]").unwrap();
//! let mistake = source.error(zero..zero + 1, "a message has at least 1 byte\nhint: 1");
//! assert_eq!(
//!     mistake.to_string(),
//!     "my.toml, line 3, `sizes`: a message has at least 1 byte\nhint: 1"
//! );
//! ```
#![forbid(unsafe_code)]

use std::ops::Range;

use thiserror::Error;

/// What makes a file unusable.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{file}, line {line}, `{field}`: {problem}")]
pub struct Mistake {
    /// The file, as it was given.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The field that the line sets, or continues to set; the line itself where there is none.
    pub field: String,
    /// What is wrong, with a hint.
    pub problem: String,
}

/// A file's text, for turning places in it into lines and fields.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// The file, as it was given.
    pub file: &'a str,
    /// What is in it.
    pub text: &'a str,
}

impl Source<'_> {
    /// What the TOML reader found, with this hint unless it has one of its own.
    #[must_use]
    pub fn syntax(&self, error: &toml::de::Error, hint: &str) -> Mistake {
        let message = error.message().trim_end();
        let problem = match message.contains("hint: ") {
            true => message.to_owned(),
            false => format!("{message}\nhint: {hint}"),
        };
        self.error(error.span().unwrap_or(0..0), problem)
    }

    /// A mistake at this place, in bytes.
    #[must_use]
    pub fn error(&self, span: Range<usize>, problem: impl Into<String>) -> Mistake {
        // The reader points behind the text where it expected more.
        let before = self.text.get(..span.start).unwrap_or(self.text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Mistake {
            file: self.file.to_owned(),
            line: before.matches('\n').count() + 1,
            field: self.field(line_start).to_owned(),
            problem: problem.into(),
        }
    }

    fn field(&self, line_start: usize) -> &str {
        let (above, rest) = self.text.split_at(line_start);
        let line = rest.lines().next().unwrap_or_default().trim();
        if line.starts_with('[') {
            return line;
        }
        // A list that runs over several lines belongs to the field above it.
        let in_list = line.ends_with([',', ']']);
        let above = above.lines().rev().take_while(|_| in_list);
        let setting = [line].into_iter().chain(above).find_map(|line| line.split_once('='));
        setting.map_or(line, |(field, _)| field.trim())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "title = 'x'\n[[case]]\nsizes = [\n16,\n0,\n]\nnonsense\n";

    fn place(at: usize) -> (usize, String) {
        let mistake = Source { file: "my.toml", text: TEXT }.error(at..at, "no");
        (mistake.line, mistake.field)
    }

    #[test]
    fn a_place_is_a_line_and_a_field() {
        let at = |text| TEXT.find(text).unwrap();
        assert_eq!(place(at("'x'")), (1, "title".into()));
        assert_eq!(place(at("[[case")), (2, "[[case]]".into()));
        assert_eq!(place(at("0,")), (5, "sizes".into()), "a list over several lines");
        assert_eq!(place(at("sense")), (7, "nonsense".into()), "sets nothing");
        assert_eq!(place(TEXT.len() + 7).0, 8, "behind the end");
    }
}
