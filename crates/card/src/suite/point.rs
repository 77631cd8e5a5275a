//! Where a case stands in what its test varies.

use super::file::Vary;

/// Where a case stands in what its test varies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Point {
    /// The length of the input in bytes.
    pub bytes: u32,
    /// Set-ups on the card.
    pub set_ups: u16,
    /// Operations on the card.
    pub operations: u16,
}

impl Point {
    /// `card.aes128.encrypt[bytes=16,set_ups=1,operations=4]`: only what is varied.
    pub(super) fn label(self, name: &str, vary: &Vary) -> String {
        let varied = [
            ("bytes", vary.bytes.len(), self.bytes),
            ("set_ups", vary.set_ups.len(), u32::from(self.set_ups)),
            ("operations", vary.operations.len(), u32::from(self.operations)),
        ];
        let named = varied.iter().filter(|(_, values, _)| *values > 1);
        let parts: Vec<String> = named.map(|(name, _, value)| format!("{name}={value}")).collect();
        format!("{name}[{}]", parts.join(","))
    }
}
