//! Every operation by itself, in order: what a mean hides, and above all the slow first calls.

use tapstone_record::CaseResult;

use crate::figures;
use crate::sections::page::Page;
use crate::sections::span::{Span, Tint};

/// Lines of the plot.
const HEIGHT: usize = 8;

/// Columns of the plot, at most; half the terminal when that is less. Beyond that several
/// operations share a column, which shows the longest of them.
const COLUMNS: usize = 100;

/// Dots of a character cell of braille, from the top: the plot has four dots a line and two a
/// column (Unicode 16, block 2800).
const DOTS: [[u32; 2]; 4] = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]];

/// So many values are shown one by one below the plot.
const FIRST: usize = 8;

/// A plot of fewer values says nothing.
const FEWEST: usize = 4;

pub(super) fn has_any(case: &CaseResult) -> bool {
    case.latencies_ns.len() >= FEWEST
}

/// A point for each operation, on a scale from zero to the longest.
pub(super) fn add_values(page: &mut Page, case: &CaseResult) {
    let values: Vec<f64> = case.latencies_ns.iter().map(|value| value.0 as f64).collect();
    let longest = values.iter().copied().fold(0.0, f64::max);
    let columns = COLUMNS.min(page.width().saturating_sub(24)).max(10);
    page.blank();
    for (number, line) in plot(&values, longest, columns).into_iter().enumerate() {
        let label = match number {
            0 => figures::time(longest),
            n if n == HEIGHT / 2 => figures::time(longest / 2.0),
            n if n == HEIGHT - 1 => "0".into(),
            _ => String::new(),
        };
        page.drawing(&label, &line, "", Tint::Accent);
    }
    page.fact("", Span::faint(format!("operation 1 to {}, in order", values.len())));
    let first = case.latencies_ns.iter().take(FIRST).map(ToString::to_string);
    page.fact("first", Span::plain(first.collect::<Vec<_>>().join(", ")));
}

/// The lines of a plot, from the top.
fn plot(values: &[f64], longest: f64, columns: usize) -> Vec<String> {
    let each = values.len().div_ceil(columns * 2).max(1);
    let points: Vec<f64> =
        values.chunks(each).map(|of| of.iter().copied().fold(0.0, f64::max)).collect();
    let cases = HEIGHT * 4;
    let mut cells = vec![vec![0_u32; points.len().div_ceil(2)]; HEIGHT];
    for (x, value) in points.iter().enumerate() {
        let share = if longest > 0.0 { value / longest } else { 0.0 };
        let from_top = cases - 1 - ((share * (cases - 1) as f64).round() as usize).min(cases - 1);
        cells[from_top / 4][x / 2] |= DOTS[from_top % 4][x % 2];
    }
    let glyph = |dots: &u32| char::from_u32(0x2800 + dots).unwrap_or(' ');
    cells.iter().map(|line| line.iter().map(glyph).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_a_dot_at_its_height() {
        let lines = plot(&[10.0, 0.0, 5.0, 0.0], 10.0, 10);
        assert_eq!(lines.len(), HEIGHT);
        assert!(lines.iter().all(|line| line.chars().count() == 2));
        assert_eq!(lines[0], "\u{2801}\u{2800}", "the longest at the top");
        assert_eq!(lines[HEIGHT - 1], "\u{2880}\u{2880}", "nothing at the bottom");
        let dots: u32 = lines
            .iter()
            .flat_map(|line| line.chars())
            .map(|c| (c as u32 - 0x2800).count_ones())
            .sum();
        assert_eq!(dots, 4);
    }

    #[test]
    fn more_values_than_columns_share_a_dot_of_the_longest() {
        let mut values = vec![1.0; 1000];
        values[500] = 100.0;
        let lines = plot(&values, 100.0, 20);
        assert!(lines[0].chars().any(|c| c != '\u{2800}'), "the one slow call is seen");
    }
}
