//! Names of agents in the order in which people count: client-2 before client-10.

use std::cmp::Ordering;

/// Digits are compared as numbers, everything else as text.
pub(crate) fn natural(a: &str, b: &str) -> Ordering {
    let parts = |name: &str| -> Vec<NamePart> {
        let mut parts: Vec<NamePart> = Vec::new();
        for letter in name.chars() {
            match (parts.last_mut(), letter.to_digit(10)) {
                (Some(NamePart::Number(number)), Some(digit)) => {
                    *number = number.saturating_mul(10).saturating_add(u128::from(digit));
                }
                (_, Some(digit)) => parts.push(NamePart::Number(u128::from(digit))),
                (_, None) => parts.push(NamePart::Letter(letter)),
            }
        }
        parts
    };
    parts(a).cmp(&parts(b)).then_with(|| a.cmp(b))
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum NamePart {
    Number(u128),
    Letter(char),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_names_count() {
        let mut names = ["client-10", "client-2", "b", "client-02", "a9", "a10", "client-2b", ""];
        names.sort_by(|a, b| natural(a, b));
        assert_eq!(
            names,
            ["", "a9", "a10", "b", "client-02", "client-2", "client-2b", "client-10"]
        );
    }
}
