//! Whether a log has things in the order in which they must be: a stage begins before it ends, lies
//! inside the whole that it is a part of, and a card is selected before it is read and challenged.

use std::path::Path;

use super::map::Map;
use super::moment::Instant;
use crate::ImportError;

/// The steps of a dialogue that have a fixed order (SP 800-73-5; `tapstone door measure`).
const STEPS: [&str; 3] = ["select", "read-certificate", "challenge"];

/// Events, or columns, of which one comes first.
pub(super) struct OrderRule {
    pub(super) first: String,
    pub(super) second: String,
    because: String,
    in_order: u64,
    reversed: u64,
    /// The sums of the times between them, in each direction.
    forwards: Instant,
    backwards: Instant,
}

/// How often the name of a transaction comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Badges {
    /// A line is a whole transaction.
    OncePerLine,
    /// The same badge comes again in other lines.
    MayReturn,
}

/// All that a map implies.
pub(super) fn rules(map: &Map) -> Vec<OrderRule> {
    let stages: Vec<(&str, &str, &str)> = map
        .stage
        .iter()
        .filter_map(|it| Some((it.operation.as_str(), it.from.as_deref()?, it.to.as_deref()?)))
        .collect();
    let mut rules = Vec::new();
    for (operation, from, to) in &stages {
        rules.push(OrderRule::new(
            from,
            to,
            format!("stage {operation:?} is from the one to the other"),
        ));
    }
    for (part, part_from, part_to) in &stages {
        let whole = |(name, ..): &&(&str, &str, &str)| {
            part.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'))
        };
        for (name, from, to) in stages.iter().filter(whole) {
            let because = format!("{part:?} is a part of {name:?}");
            rules.push(OrderRule::new(from, part_from, because.clone()));
            rules.push(OrderRule::new(part_to, to, because));
        }
    }
    let step = |name: &str| stages.iter().find(|(operation, ..)| operation.ends_with(name));
    for (at, earlier) in STEPS.iter().enumerate() {
        for later in &STEPS[at + 1..] {
            if let (Some(one), Some(other)) = (step(earlier), step(later)) {
                let because = format!("{earlier} comes before {later} on every card");
                rules.push(OrderRule::new(one.1, other.1, because));
            }
        }
    }
    rules.retain(|rule| rule.first != rule.second);
    rules
}

impl OrderRule {
    fn new(first: &str, second: &str, because: String) -> Self {
        Self {
            first: first.to_owned(),
            second: second.to_owned(),
            because,
            in_order: 0,
            reversed: 0,
            forwards: 0,
            backwards: 0,
        }
    }

    /// The second came so long after the first; negative where it came before it.
    pub(super) fn add(&mut self, between: Instant) {
        if between >= 0 {
            self.in_order += 1;
            self.forwards += between;
        } else {
            self.reversed += 1;
            self.backwards -= between;
        }
    }

    /// The order is impossible where it is the other way round in most transactions. Where the same
    /// badge comes again, the end of one transaction is also before the start of the next: the
    /// shorter time tells which of the two is the transaction.
    pub(super) fn violation(&self, path: &Path, badges: Badges) -> Option<ImportError> {
        let mean = |sum: Instant, count: u64| sum / Instant::from(count.max(1));
        let is_shorter = mean(self.backwards, self.reversed) < mean(self.forwards, self.in_order);
        let is_certain = self.in_order == 0 || badges == Badges::OncePerLine || is_shorter;
        (self.reversed > self.in_order && is_certain).then(|| ImportError::Order {
            path: path.into(),
            first: self.first.clone(),
            second: self.second.clone(),
            against: self.reversed,
            all: self.in_order + self.reversed,
            rule: self.because.clone(),
        })
    }
}
