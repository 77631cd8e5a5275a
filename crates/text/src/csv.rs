//! Cells of CSV files that a spreadsheet takes as text.

use std::borrow::Cow;

/// A cell that is no formula: what begins with `=`, `+`, `-`, `@`, a tab or a carriage return gets
/// an apostrophe in front, by which spreadsheets know text. A number stays as it is, a negative one
/// too.
#[must_use]
pub fn csv_cell(text: &str) -> Cow<'_, str> {
    let formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    if formula && !is_number(text) { format!("'{text}").into() } else { text.into() }
}

/// `-12.5e-3`, as programs print numbers. `+1` is none: no program of ours prints it.
fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    digits.starts_with(|first: char| first.is_ascii_digit()) && text.parse::<f64>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_become_text_and_numbers_stay() {
        let formulas =
            ["=1+1", "+1", "@SUM(A1)", "-cmd|' /C calc'!A0", "\t=1", "\r=1", "-", "--1", "-inf"];
        for text in formulas {
            assert_eq!(csv_cell(text), format!("'{text}"));
        }
        for text in ["", "rsa2048.sign", "-1", "-0.5", "-1.5e-7", "1e9", "'=1", " =1"] {
            assert_eq!(csv_cell(text), text);
        }
    }
}
