//! What is wrong with a scenario, by file, line and field.

use std::ops::Range;

use thiserror::Error;

/// A scenario that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{file}, line {line}, `{field}`: {problem}")]
pub struct ScenarioError {
    /// The file, as it was given.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The field on that line; the text of the line where there is none.
    pub field: String,
    /// What is wrong, with a hint.
    pub problem: String,
}

/// The text of a scenario, for turning places in it into lines and fields.
pub(super) struct Source<'a> {
    pub(super) file: &'a str,
    pub(super) text: &'a str,
}

impl Source<'_> {
    /// What the TOML reader found.
    pub(super) fn syntax(&self, error: &toml::de::Error) -> ScenarioError {
        let message = error.message().trim_end();
        let hint = if message.contains("hint: ") {
            ""
        } else {
            "\nhint: `tapstone door budget --show hid-rsa2048` prints a scenario to compare with"
        };
        self.error(error.span().unwrap_or(0..0), format!("{message}{hint}"))
    }

    pub(super) fn error(&self, span: Range<usize>, problem: impl Into<String>) -> ScenarioError {
        let start = span.start.min(self.text.len());
        let before = &self.text[..start];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = self.text[line_start..].lines().next().unwrap_or_default().trim();
        let field = match line.split_once('=') {
            _ if line.starts_with('[') => line,
            Some((field, _)) => field.trim(),
            None => line,
        };
        ScenarioError {
            file: self.file.to_owned(),
            line: before.matches('\n').count() + 1,
            field: field.to_owned(),
            problem: problem.into(),
        }
    }
}
