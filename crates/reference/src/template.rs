//! Sentences with figures in them: `{sca6000.records.count:,} in less than 3 minutes`.
//!
//! Between braces stands an expression, or the path of a text. A format may follow it: `:.2` for
//! two decimals, `:,` for a whole number with commas.

use tapstone_text::thousands;

use crate::document::Document;
use crate::expression::{self, ExpressionError};

/// The sentence, with what its expressions give in their places.
pub(crate) fn fill_in(document: &Document, template: &str) -> Result<String, ExpressionError> {
    let mut filled = String::new();
    let mut rest = template;
    while let Some((before, behind)) = rest.split_once('{') {
        let (placeholder, behind) = behind.split_once('}').ok_or_else(|| {
            ExpressionError::Syntax { expression: template.to_owned(), rest: behind.to_owned() }
        })?;
        filled.push_str(before);
        filled.push_str(&placeholder_text(document, placeholder)?);
        rest = behind;
    }
    filled.push_str(rest);
    Ok(filled)
}

fn placeholder_text(document: &Document, placeholder: &str) -> Result<String, ExpressionError> {
    let (expression, format) = placeholder.split_once(':').unwrap_or((placeholder, ""));
    if let Some(text) = document.text(expression) {
        return Ok(text.to_owned());
    }
    let value = expression::number(document, expression)?;
    let decimals = format.strip_prefix('.').and_then(|digits| digits.parse::<usize>().ok());
    match (format, decimals) {
        ("", _) => Ok(value.to_string()),
        (",", _) => Ok(thousands(value.round() as u64)),
        (_, Some(decimals)) => Ok(format!("{value:.decimals$}")),
        _ => Err(ExpressionError::Syntax {
            expression: placeholder.to_owned(),
            rest: format.to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_take_their_places() {
        let document = Document::from_toml("number = 12345.678\nwords = 'about halved'");
        let filled = fill_in(&document, "{words}: {number:,}, {number:.1}; {1 + 1}").unwrap();
        assert_eq!(filled, "about halved: 12,346, 12345.7; 2");
        for wrong in ["{number", "{number:x}", "{}"] {
            assert!(fill_in(&document, wrong).is_err(), "{wrong}");
        }
    }
}
