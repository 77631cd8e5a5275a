//! A file of published figures, whose values are addressed by their path: `sca6000.claim.cards`.

use thiserror::Error;
use toml::{Table, Value};

/// The figures of one file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Document(Value);

/// A published length of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PublishedTime {
    /// The time in milliseconds, whatever unit the source uses.
    pub milliseconds: f64,
}

/// Why a path leads to no figure.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PathError {
    /// A word of the path is no key, and no number of a list's element, there.
    #[error("there is no {word:?} on the path {path:?}")]
    Missing {
        /// The word that is not there.
        word: String,
        /// The whole path, as it was asked for.
        path: String,
    },
    /// The value is a text, a list or a table.
    #[error("{path:?} is not a figure")]
    NotANumber {
        /// The path whose value is no number.
        path: String,
    },
    /// No word of the path has a unit of time at its end.
    #[error("{path:?} is not a time")]
    NotATime {
        /// The path in which no word has a unit of time.
        path: String,
    },
}

impl Document {
    pub(crate) fn new(figures: Table) -> Self {
        Self(Value::Table(figures))
    }

    #[cfg(test)]
    pub(crate) fn from_toml(text: &str) -> Self {
        Self(Value::Table(toml::from_str(text).unwrap()))
    }

    /// The values at a path. `*` in it stands for every value of a table or list.
    pub(crate) fn values(&self, path: &str) -> Result<Vec<&Value>, PathError> {
        let mut values = vec![&self.0];
        for word in path.split('.') {
            let mut next = Vec::new();
            for value in values {
                match (word, value) {
                    ("*", Value::Table(table)) => next.extend(table.values()),
                    ("*", Value::Array(list)) => next.extend(list),
                    _ => next.push(child(value, word).ok_or_else(|| PathError::Missing {
                        word: word.to_owned(),
                        path: path.to_owned(),
                    })?),
                }
            }
            values = next;
        }
        Ok(values)
    }

    /// Each element of the list at a path, as a document of its own.
    pub(crate) fn elements(&self, path: &str) -> Result<Vec<Self>, PathError> {
        let elements = self.values(&format!("{path}.*"))?;
        Ok(elements.into_iter().cloned().map(Self).collect())
    }

    /// The numbers at a path.
    pub(crate) fn numbers(&self, path: &str) -> Result<Vec<f64>, PathError> {
        let number = |value: &Value| {
            number_in(value).ok_or_else(|| PathError::NotANumber { path: path.to_owned() })
        };
        self.values(path)?.into_iter().map(number).collect()
    }

    /// The text at a path, where one stands that is no time.
    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        match self.values(path).ok()?[..] {
            [value] if number_in(value).is_none() => value.as_str(),
            _ => None,
        }
    }

    /// The time at a path.
    pub(crate) fn time(&self, path: &str) -> Result<PublishedTime, PathError> {
        let [value] = self.numbers(path)?[..] else {
            return Err(PathError::NotANumber { path: path.to_owned() });
        };
        let unit = path.split('.').find_map(milliseconds_of_unit);
        let unit = unit.ok_or_else(|| PathError::NotATime { path: path.to_owned() })?;
        Ok(PublishedTime { milliseconds: value * unit })
    }
}

fn child<'a>(value: &'a Value, word: &str) -> Option<&'a Value> {
    match value {
        Value::Array(list) => list.get(word.parse::<usize>().ok()?),
        value => value.get(word),
    }
}

/// A number; in seconds where it is a text such as `2:00.31`, minutes and seconds as the shell's
/// `time` prints them.
fn number_in(value: &Value) -> Option<f64> {
    match value {
        Value::Integer(whole) => Some(*whole as f64),
        Value::Float(number) => Some(*number),
        Value::String(text) => {
            let (minutes, seconds) = text.split_once(':')?;
            Some(60.0 * f64::from(minutes.parse::<u32>().ok()?) + seconds.parse::<f64>().ok()?)
        }
        _ => None,
    }
}

/// How many milliseconds the unit has that a name ends with.
fn milliseconds_of_unit(name: &str) -> Option<f64> {
    [("_ms", 1.0), ("_seconds", 1e3), ("_us", 1e-3)]
        .into_iter()
        .find_map(|(suffix, unit)| name.ends_with(suffix).then_some(unit))
}
