//! A suite as its author writes it: TOML, read strictly, because a field that is misspelt would
//! otherwise be a command that is not sent.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use serde::Deserialize;
use tapstone_files::{FileLimit, read_text};
use thiserror::Error;
use toml::Spanned;

/// The suites that come with Tapstone, by name.
pub const SHIPPED: &[(&str, &str)] = &[
    ("piv", include_str!("../../../../suites/card-piv.toml")),
    ("piv-contact", include_str!("../../../../suites/card-piv-contact.toml")),
    ("openpgp", include_str!("../../../../suites/card-openpgp.toml")),
    ("generic", include_str!("../../../../suites/card-generic.toml")),
    ("bench", include_str!("../../../../suites/card-bench.toml")),
];

/// A suite as its TOML file has it, nothing checked yet.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SuiteFile {
    /// What it measures, in a sentence.
    pub title: String,
    /// The application that is selected first, by its AID in hexadecimal.
    pub application: Option<Spanned<String>>,
    /// More rounds than this wear out memory that looks like RAM and may not be.
    pub most_rounds: Option<Spanned<u32>>,
    /// The card takes a PIN of so many bytes, padded with FF; without it, as it is.
    pub pin_bytes: Option<u8>,
    /// Constants that steps and inputs name, in hexadecimal.
    #[serde(default)]
    pub values: BTreeMap<String, Spanned<String>>,
    /// What some tests need done first, once.
    #[serde(default)]
    pub prepare: Vec<Group>,
    /// The tests, in the order in which they are shown.
    pub test: Vec<Test>,
}

/// Commands sent once, before any test that needs them.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// The name that tests need it by.
    pub name: Spanned<String>,
    /// What it changes on the card: then it is done only with `--allow-writes`.
    pub writes: Option<String>,
    /// The commands of the group, in the order in which they are sent.
    pub steps: Vec<StepText>,
    /// Commands that undo it, at the end, whatever happened.
    #[serde(default)]
    pub clean_up: Vec<StepText>,
}

/// One operation and what is varied about it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Test {
    /// The operation's name in the record.
    pub name: Spanned<String>,
    /// What it is, in a sentence.
    pub title: String,
    /// Groups of `prepare` that it needs.
    #[serde(default)]
    pub needs: Vec<Spanned<String>>,
    /// What it changes on the card: then it is done only with `--allow-writes`.
    pub writes: Option<String>,
    /// Each operation with this many writes to the same memory cells; a run ends before 1,000.
    pub write_cycles: Option<u32>,
    /// A card that cannot do it has no case.
    #[serde(default)]
    pub optional: bool,
    /// Unpower the card before each operation; connecting is then its first step.
    #[serde(default)]
    pub cold: bool,
    /// What is sent with it.
    pub input: Option<Spanned<InputText>>,
    /// What is varied, every value with every other.
    #[serde(default)]
    pub vary: Vary,
    /// Commands before each operation, not timed.
    #[serde(default)]
    pub before: Vec<StepText>,
    /// The commands that make one operation; what is timed.
    pub measure: Vec<StepText>,
    /// Commands after each operation, not timed.
    #[serde(default)]
    pub after: Vec<StepText>,
    /// What the answer must be.
    pub answer: Option<Spanned<AnswerText>>,
}

/// What is varied, so that the fit can tell the parts of the time from one another.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Vary {
    /// Lengths of the input, in bytes.
    #[serde(default)]
    pub bytes: Vec<u32>,
    /// Set-ups on the card in one operation: `{set_ups:2}` in a step.
    #[serde(default)]
    pub set_ups: Vec<u16>,
    /// Operations on the card in one operation: `{operations:2}` in a step.
    #[serde(default)]
    pub operations: Vec<u16>,
}

/// A command as it is written: header, data, and what is expected.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepText {
    /// Its name in results and errors: `READ`.
    pub name: String,
    /// CLA, INS, P1 and P2.
    pub apdu: Spanned<String>,
    /// The command data field, in hexadecimal with placeholders.
    pub data: Option<Spanned<String>>,
    /// Le: how many bytes of response data are expected at most, 1 to 256 (65,536 if extended).
    pub le: Option<Spanned<u32>>,
    /// Send with extended length fields (ISO/IEC 7816-4, 5.2).
    #[serde(default)]
    pub extended: bool,
    /// Send the data in commands of this many bytes, numbered by `{chunk:1}`.
    pub chunk: Option<Spanned<u16>>,
    /// Send the data by command chaining, 255 bytes a command.
    #[serde(default)]
    pub chain: bool,
    /// Send again for the next `{chunk:1}` until a response is shorter than this.
    pub read: Option<Spanned<u16>>,
    /// Status words that are well; `["9000"]` without it.
    pub expect: Option<Spanned<Vec<String>>>,
    /// Keep the response data under this name.
    pub save: Option<String>,
    /// The response data is what `answer` judges.
    #[serde(default)]
    pub output: bool,
    /// What it does to the card, where no standard says so: `read`, or what it writes.
    pub effect: Option<Spanned<String>>,
}

/// How an input is made.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputText {
    /// The maker: `random`, `3des-m2` and others.
    pub make: String,
    /// Its length in bytes, where nothing else says it.
    pub bytes: Option<u32>,
    /// The name of a key in `values`.
    pub key: Option<String>,
    /// The name of a program in `values`.
    pub program: Option<String>,
    /// How many bytes of an image are sealed.
    pub seal: Option<u32>,
    /// An algorithm identifier of SP 800-78-5.
    pub algorithm: Option<String>,
}

/// How an answer is judged.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnswerText {
    /// The judge: `sha256`, `plain-text` and others.
    pub is: String,
    /// The name of a key in `values`, or of what a step saved.
    pub key: Option<String>,
    /// A length in bytes.
    pub bytes: Option<u32>,
    /// A digest in hexadecimal.
    pub digest: Option<String>,
}

/// A suite that cannot be used, with the place in its file.
#[derive(Debug, Error)]
#[error("{place}: {what}\nhint: docs/suite-file.md says how a suite is written; `tapstone card --list-suites` shows those that come with Tapstone", place = self.place())]
pub struct SuiteError {
    /// The name of the suite's file.
    pub file: String,
    /// The line, from 1 on; `None`: the error is not about one.
    pub line: Option<usize>,
    /// What is wrong, with the field.
    pub what: String,
}

impl SuiteError {
    fn place(&self) -> String {
        match self.line {
            Some(line) => format!("{}:{line}", self.file),
            None => self.file.clone(),
        }
    }
}

/// A suite's text with its name, for errors that point into it.
#[derive(Clone, Debug)]
pub struct SuiteText {
    /// The file's name, or the suite's.
    pub name: String,
    /// The text of the file, for the place of a mistake.
    pub text: String,
}

impl SuiteText {
    /// A shipped suite by its name, or a file.
    ///
    /// # Errors
    /// When there is no such suite and no such file.
    pub fn find(name: &str) -> Result<Self, SuiteError> {
        if let Some((name, text)) = SHIPPED.iter().find(|(shipped, _)| *shipped == name) {
            return Ok(Self { name: format!("suite {name}"), text: (*text).to_owned() });
        }
        let text = read_text(Path::new(name), FileLimit::TOML).map_err(|error| SuiteError {
            file: name.to_owned(),
            line: None,
            what: format!("neither a suite that comes with Tapstone nor a file: {error}"),
        })?;
        Ok(Self { name: name.to_owned(), text })
    }

    /// Reads the suite.
    ///
    /// # Errors
    /// With the line and the field of what is wrong.
    pub fn parse(&self) -> Result<SuiteFile, SuiteError> {
        let suite: SuiteFile = toml::from_str(&self.text).map_err(|error| {
            let at = error.span().unwrap_or_default();
            self.error(at, error.message().to_owned())
        })?;
        self.check_unique("test", suite.test.iter().map(|test| &test.name))?;
        self.check_unique("prepare", suite.prepare.iter().map(|group| &group.name))?;
        Ok(suite)
    }

    /// Figures are collected, and costs fitted, by name: two of one name would become one.
    fn check_unique<'a>(
        &self,
        table: &str,
        names: impl Iterator<Item = &'a Spanned<String>>,
    ) -> Result<(), SuiteError> {
        let mut seen: Vec<&str> = Vec::new();
        for name in names {
            if seen.contains(&name.get_ref().as_str()) {
                let what = format!("a second [[{table}]] is called \"{}\"", name.get_ref());
                return Err(self.error(name.span(), what));
            }
            seen.push(name.get_ref());
        }
        Ok(())
    }

    /// An error at a place of the text.
    pub(super) fn error(&self, at: Range<usize>, what: impl Into<String>) -> SuiteError {
        let start = at.start.min(self.text.len());
        let line = 1 + self.text.as_bytes()[..start].iter().filter(|byte| **byte == b'\n').count();
        SuiteError { file: self.name.clone(), line: Some(line), what: what.into() }
    }

    /// An error about the suite as a whole.
    pub(super) fn whole(&self, what: impl Into<String>) -> SuiteError {
        SuiteError { file: self.name.clone(), line: None, what: what.into() }
    }
}
