//! Arithmetic on published figures: `100 * (1 - after.user_s / before.user_s)`.
//!
//! A path with `*` gives several values. An operator between several values and one takes each
//! with that one; between as many on both sides, it takes them in pairs.

use thiserror::Error;

use crate::document::{Document, PathError};

/// Why an expression gives no number.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ExpressionError {
    /// It cannot be read.
    #[error("{expression:?} cannot be read from {rest:?} on")]
    Syntax {
        /// The expression as it is written.
        expression: String,
        /// Where the mistake begins.
        rest: String,
    },
    /// A path leads to no figure.
    #[error(transparent)]
    Path(#[from] PathError),
    /// Both sides of an operator have several values, and not as many.
    #[error("{left} values cannot be paired with {right}")]
    Pairing {
        /// How many there are on the left.
        left: usize,
        /// How many there are on the right.
        right: usize,
    },
    /// One value was asked for.
    #[error("{expression:?} has {count} values, not one")]
    NotOne {
        /// The expression as it is written.
        expression: String,
        /// How many it has.
        count: usize,
    },
}

/// The only value of an expression.
pub(crate) fn number(document: &Document, expression: &str) -> Result<f64, ExpressionError> {
    match numbers(document, expression)?[..] {
        [value] => Ok(value),
        ref values => {
            Err(ExpressionError::NotOne { expression: expression.to_owned(), count: values.len() })
        }
    }
}

/// All values of an expression.
pub(crate) fn numbers(document: &Document, expression: &str) -> Result<Vec<f64>, ExpressionError> {
    let mut parser = Parser { document, expression, rest: expression };
    let values = parser.sum()?;
    if parser.rest.trim().is_empty() { Ok(values) } else { Err(parser.syntax_error()) }
}

struct Parser<'a> {
    document: &'a Document,
    expression: &'a str,
    rest: &'a str,
}

impl<'a> Parser<'a> {
    fn syntax_error(&self) -> ExpressionError {
        ExpressionError::Syntax {
            expression: self.expression.to_owned(),
            rest: self.rest.to_owned(),
        }
    }

    /// Takes one of these signs, when it is next.
    fn take(&mut self, signs: &[char]) -> Option<char> {
        let rest = self.rest.trim_start();
        let sign = rest.chars().next().filter(|next| signs.contains(next))?;
        self.rest = &rest[sign.len_utf8()..];
        Some(sign)
    }

    /// `product + product - product`
    fn sum(&mut self) -> Result<Vec<f64>, ExpressionError> {
        let mut values = self.product()?;
        while let Some(sign) = self.take(&['+', '-']) {
            let right = self.product()?;
            values = match sign {
                '+' => paired(&values, &right, |one, other| one + other)?,
                _ => paired(&values, &right, |one, other| one - other)?,
            };
        }
        Ok(values)
    }

    /// `factor * factor / factor`
    fn product(&mut self) -> Result<Vec<f64>, ExpressionError> {
        let mut values = self.factor()?;
        while let Some(sign) = self.take(&['*', '/']) {
            let right = self.factor()?;
            values = match sign {
                '*' => paired(&values, &right, |one, other| one * other)?,
                _ => paired(&values, &right, |one, other| one / other)?,
            };
        }
        Ok(values)
    }

    /// A number, a path, `function(…)` or `(…)`.
    fn factor(&mut self) -> Result<Vec<f64>, ExpressionError> {
        if self.take(&['(']).is_some() {
            let values = self.sum()?;
            return self.close(values);
        }
        let word = self.word()?;
        if word.starts_with(|first: char| first.is_ascii_digit()) {
            return word.parse().map(|number| vec![number]).map_err(|_| self.syntax_error());
        }
        let of_all: fn(f64, f64) -> f64 = match word {
            "sum" => |one, other| one + other,
            "min" => f64::min,
            "max" => f64::max,
            path => return Ok(self.document.numbers(path)?),
        };
        let values = self.arguments()?;
        Ok(values.into_iter().reduce(of_all).into_iter().collect())
    }

    /// The values of all expressions between the parentheses behind a function's name.
    fn arguments(&mut self) -> Result<Vec<f64>, ExpressionError> {
        self.take(&['(']).ok_or_else(|| self.syntax_error())?;
        let mut values = self.sum()?;
        while self.take(&[',']).is_some() {
            values.extend(self.sum()?);
        }
        self.close(values)
    }

    fn close(&mut self, values: Vec<f64>) -> Result<Vec<f64>, ExpressionError> {
        self.take(&[')']).map(|_| values).ok_or_else(|| self.syntax_error())
    }

    /// A number or a path. Its `*` stands behind a dot, where no operator can.
    fn word(&mut self) -> Result<&'a str, ExpressionError> {
        let rest = self.rest.trim_start();
        let mut before = ' ';
        let end = rest.find(|next: char| {
            let belongs = next.is_ascii_alphanumeric()
                || matches!(next, '_' | '.')
                || (next == '*' && before == '.');
            before = next;
            !belongs
        });
        let (word, behind) = rest.split_at(end.unwrap_or(rest.len()));
        if word.is_empty() {
            return Err(self.syntax_error());
        }
        self.rest = behind;
        Ok(word)
    }
}

fn paired(
    left: &[f64],
    right: &[f64],
    operator: fn(f64, f64) -> f64,
) -> Result<Vec<f64>, ExpressionError> {
    match (left, right) {
        (&[one], others) => Ok(others.iter().map(|&other| operator(one, other)).collect()),
        (ones, &[other]) => Ok(ones.iter().map(|&one| operator(one, other)).collect()),
        _ if left.len() == right.len() => {
            Ok(left.iter().zip(right).map(|(&one, &other)| operator(one, other)).collect())
        }
        _ => Err(ExpressionError::Pairing { left: left.len(), right: right.len() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "
        wall = '1:02.5'
        words = 'about halved'
        list = [1, 2, 4]
        table_ms = { b = 20, a = 10 }
        pair = [{ x = 1, y = 4 }, { x = 2, y = 2 }]
    ";

    fn file() -> Document {
        Document::from_toml(FILE)
    }

    #[test]
    fn arithmetic_follows_precedence_and_parentheses() {
        let cases = [
            ("1 + 2 * 3", 7.0),
            ("(1 + 2) * 3", 9.0),
            ("10 - 4 - 3", 3.0),
            ("12 / 2 / 3", 2.0),
            ("2*list.2", 8.0),
            ("sum(list.*)", 7.0),
            ("min(list.*, 0.5) + max(list.*)", 4.5),
            ("table_ms.a / table_ms.b", 0.5),
            ("wall", 62.5),
        ];
        for (expression, value) in cases {
            assert_eq!(number(&file(), expression), Ok(value), "{expression}");
        }
    }

    #[test]
    fn several_values_meet_one_or_as_many() {
        assert_eq!(numbers(&file(), "list.* * 10"), Ok(vec![10.0, 20.0, 40.0]));
        assert_eq!(numbers(&file(), "8 / list.*"), Ok(vec![8.0, 4.0, 2.0]));
        assert_eq!(numbers(&file(), "pair.0.* / pair.1.*"), Ok(vec![0.5, 2.0]));
        assert_eq!(numbers(&file(), "table_ms.*"), Ok(vec![10.0, 20.0]), "in the order of keys");
        let error = ExpressionError::Pairing { left: 3, right: 2 };
        assert_eq!(numbers(&file(), "list.* + table_ms.*"), Err(error));
    }

    #[test]
    fn what_is_no_expression_is_refused_where_it_goes_wrong() {
        let cases = [("1 +", ""), ("2 2", " 2"), ("(1", ""), ("sum 1", " 1"), ("1x", "")];
        for (expression, rest) in cases {
            let expected = ExpressionError::Syntax {
                expression: expression.to_owned(),
                rest: rest.to_owned(),
            };
            assert_eq!(number(&file(), expression), Err(expected), "{expression}");
        }
    }

    #[test]
    fn a_path_that_leads_to_no_figure_is_named() {
        let missing = number(&file(), "1 + list.3").unwrap_err();
        assert_eq!(missing.to_string(), "there is no \"3\" on the path \"list.3\"");
        let text = number(&file(), "words").unwrap_err();
        assert_eq!(text.to_string(), "\"words\" is not a figure");
        let several = number(&file(), "list.*").unwrap_err();
        assert_eq!(several.to_string(), "\"list.*\" has 3 values, not one");
    }

    #[test]
    fn a_time_has_the_unit_of_its_path() {
        assert_eq!(file().time("table_ms.b").unwrap().milliseconds, 20.0);
        assert_eq!(file().time("list.0"), Err(PathError::NotATime { path: "list.0".to_owned() }));
    }
}
