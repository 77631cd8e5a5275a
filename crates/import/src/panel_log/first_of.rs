//! How often something was seen, and where first.

/// How many there were, and the first of them.
#[derive(Default)]
pub(super) struct FirstOf {
    pub(super) count: u64,
    pub(super) first: Option<(u64, String)>,
}

impl FirstOf {
    pub(super) fn add(&mut self, line: u64, text: &str) {
        self.count += 1;
        self.first.get_or_insert_with(|| (line, text.chars().take(40).collect()));
    }
}
