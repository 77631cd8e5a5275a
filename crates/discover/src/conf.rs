//! A configuration file of p11-kit: `name: value` lines, as pkcs11.conf(5), "FILE FORMAT", has it.
//!
//! A line that is wrong becomes a note and the rest of the file counts. p11-kit is stricter and
//! then loads no module at all, which is no way to find out what a machine has.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fmt, fs, io};

/// Something about a configuration file that its owner should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The path of the configuration file.
    pub file: PathBuf,
    /// The line, from 1, when it is about one.
    pub line: Option<usize>,
    /// What there is to know.
    pub text: String,
}

impl Note {
    pub(super) fn about(file: &Path, text: impl Into<String>) -> Self {
        Self { file: file.to_owned(), line: None, text: text.into() }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.file.display())?;
        if let Some(line) = self.line {
            write!(f, "{line}:")?;
        }
        write!(f, " {}", self.text)
    }
}

/// The value of a setting, with the place it was read from.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    name: String,
    pub(super) value: String,
    pub(super) file: PathBuf,
    line: usize,
}

impl Setting {
    pub(super) fn note(&self, text: impl Into<String>) -> Note {
        Note { file: self.file.clone(), line: Some(self.line), text: text.into() }
    }

    /// As one of the booleans of pkcs11.conf(5).
    pub(super) fn boolean(&self, notes: &mut Vec<Note>) -> Option<bool> {
        match self.value.as_str() {
            "yes" => Some(true),
            "no" => Some(false),
            other => {
                notes.push(self.note(format!("{other:?} is neither `yes` nor `no`: ignored")));
                None
            }
        }
    }

    /// As a list, whose items are separated by commas and spaces: is `item` in it?
    pub(super) fn lists(&self, item: &str) -> bool {
        self.value.split([',', ' ', '\t']).any(|listed| listed == item)
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}: {}` ({}:{})", self.name, self.value, self.file.display(), self.line)
    }
}

/// The settings of a file, or of several about the same thing.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// The file, or the one that comes first.
    pub(super) file: PathBuf,
    settings: BTreeMap<String, Setting>,
}

impl Settings {
    /// What `file` says: nothing if it does not exist.
    pub(super) fn read(file: &Path, notes: &mut Vec<Note>) -> Self {
        let text = fs::read_to_string(file).unwrap_or_else(|error| {
            if error.kind() != io::ErrorKind::NotFound {
                notes.push(Note::about(file, error.to_string()));
            }
            String::new()
        });
        Self::parse(file, &text, notes)
    }

    fn parse(file: &Path, text: &str, notes: &mut Vec<Note>) -> Self {
        let mut settings = BTreeMap::new();
        for (line, content) in (1..).zip(text.lines()) {
            match parse_line(content) {
                Ok(None) => {}
                Ok(Some((name, value))) => {
                    let name = name.to_owned();
                    let value = value.to_owned();
                    let setting = Setting { name, value, file: file.to_owned(), line };
                    settings.insert(setting.name.clone(), setting);
                }
                Err(problem) => {
                    let text = format!("{problem}: the line is ignored");
                    notes.push(Note { file: file.to_owned(), line: Some(line), text });
                }
            }
        }
        Self { file: file.to_owned(), settings }
    }

    pub(super) fn get(&self, name: &str) -> Option<&Setting> {
        self.settings.get(name)
    }

    /// Takes from `lesser` what is not set here.
    pub(super) fn fill_from(&mut self, lesser: Self) {
        for (name, setting) in lesser.settings {
            self.settings.entry(name).or_insert(setting);
        }
    }
}

/// The name and the value in a line, if it is not blank or a comment.
fn parse_line(line: &str) -> Result<Option<(&str, &str)>, &'static str> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    if line.starts_with('[') {
        return Err("there are no sections in this format");
    }
    let (name, value) = line.split_once(':').ok_or("no colon between a name and a value")?;
    let name = name.trim();
    let is_part = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if name.is_empty() || !name.chars().all(is_part) {
        return Err("a name has letters, digits, `.`, `-` and `_` only");
    }
    Ok(Some((name, value.trim())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> (Settings, Vec<String>) {
        let mut notes = Vec::new();
        let settings = Settings::parse(Path::new("/a.module"), text, &mut notes);
        (settings, notes.iter().map(Note::to_string).collect())
    }

    #[test]
    fn reads_the_example_of_the_manual() {
        let (settings, notes) = parse(
            "\nmodule: module.so\n# Here is a comment\n\n managed: true \r\n\
             setting.2: A long: value with # text.\nx-custom : text\nempty:",
        );
        let value = |name| settings.get(name).map(|setting| setting.value.as_str());
        assert_eq!(value("module"), Some("module.so"));
        assert_eq!(value("managed"), Some("true"));
        assert_eq!(value("setting.2"), Some("A long: value with # text."));
        assert_eq!(value("x-custom"), Some("text"));
        assert_eq!(value("empty"), Some(""));
        assert_eq!(value("absent"), None);
        assert_eq!(notes, [""; 0]);
    }

    #[test]
    fn names_the_line_that_is_wrong_and_goes_on() {
        let (settings, notes) = parse("[p11-kit]\nmodule /a.so\na b: c\n: d\npriority: 1\n");
        assert_eq!(
            notes,
            [
                "/a.module:1: there are no sections in this format: the line is ignored",
                "/a.module:2: no colon between a name and a value: the line is ignored",
                "/a.module:3: a name has letters, digits, `.`, `-` and `_` only: the line is ignored",
                "/a.module:4: a name has letters, digits, `.`, `-` and `_` only: the line is ignored",
            ]
        );
        assert_eq!(settings.get("priority").map(|setting| setting.line), Some(5));
    }

    #[test]
    fn a_list_is_separated_by_commas_and_spaces() {
        let (settings, _) = parse("enable-in: ssh, tapstone-x seahorse");
        let list = settings.get("enable-in").expect("was set");
        assert!(list.lists("ssh") && list.lists("seahorse"));
        assert!(!list.lists("tapstone") && !list.lists("sea"));
    }
}
