//! Numbers as people read them.

/// A whole number with a comma between groups of three digits: `1,234,567`.
#[must_use]
pub fn thousands(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// How many of what: `1 process`, `1,200 processes`.
#[must_use]
pub fn counted(count: u64, one: &str, more: &str) -> String {
    format!("{} {}", thousands(count), if count == 1 { one } else { more })
}

/// A number with three significant digits, in plain notation: `0.0123`, `98.7`, `1234`.
#[must_use]
pub fn three_digits(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    // Rounded first: 0.9996 is 1.00, not 1.000.
    let rounded = format!("{value:.2e}").parse().unwrap_or(value);
    let magnitude = f64::abs(rounded).log10().floor() as i32;
    let decimals = (2 - magnitude).clamp(0, 9) as usize;
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_three_digits() {
        let printed = [0, 999, 1_000, 65_536, 7_000_000].map(thousands);
        assert_eq!(printed, ["0", "999", "1,000", "65,536", "7,000,000"]);
    }

    #[test]
    fn nouns_agree_with_their_number() {
        let printed = [0, 1, 2, 1_200].map(|count| counted(count, "process", "processes"));
        assert_eq!(printed, ["0 processes", "1 process", "2 processes", "1,200 processes"]);
    }

    #[test]
    fn three_digits_are_counted_after_rounding() {
        let printed = [0.0, 0.012_345, 0.9996, 98.72, 999.6, 12_345.6, -1.5].map(three_digits);
        assert_eq!(printed, ["0", "0.0123", "1.00", "98.7", "1000", "12346", "-1.50"]);
        assert_eq!(three_digits(f64::NAN), "NaN");
    }
}
