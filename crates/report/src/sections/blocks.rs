//! Drawings of block characters: a line of columns, and a bar in eighths.

/// Heights of one eighth to eight eighths.
const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Lengths of one eighth to eight eighths.
const LENGTHS: [char; 8] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];

/// A column for each value, from zero to the highest. Only zero is blank.
pub(super) fn sparkline(values: impl IntoIterator<Item = f64>) -> String {
    let values: Vec<f64> = values.into_iter().collect();
    let highest = values.iter().copied().fold(0.0, f64::max);
    let column = |value: &f64| {
        let eighths = (8.0 * value / highest).ceil();
        if eighths >= 1.0 { HEIGHTS[(eighths as usize).min(8) - 1] } else { ' ' }
    };
    values.iter().map(column).collect()
}

/// A bar of this part of the width. Only nothing is blank.
pub(super) fn bar(part: f64, width: usize) -> String {
    let part = if part.is_finite() { part.clamp(0.0, 1.0) } else { 0.0 };
    let eighths = (part * 8.0 * width as f64).round() as usize;
    let eighths = eighths.max(usize::from(part > 0.0));
    let mut bar = "█".repeat(eighths / 8);
    bar.extend((eighths % 8 > 0).then(|| LENGTHS[eighths % 8 - 1]));
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_seen() {
        assert_eq!(sparkline([0.0, 1.0, 500.0, 1000.0]), " ▁▄█");
        assert_eq!(sparkline([0.0, f64::NAN]), "  ");
        assert_eq!(bar(0.5, 5), "██▌");
        assert_eq!(
            (bar(1e-9, 5), bar(0.0, 5), bar(7.0, 2)),
            ("▏".into(), String::new(), "██".into())
        );
    }
}
