//! What was found of results.

use tapstone_record as record;

/// How the results of one lane were judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Judged {
    pub(super) checked: u64,
    pub(super) wrong: u64,
    /// Who judged; the token, as soon as it had a part in it.
    pub(super) by: Option<record::Verifier>,
    /// With hosts: what this controller found itself.
    pub(super) own: OwnSample,
}

impl Judged {
    /// What was found here is found, whatever an agent says: the same results may be among those
    /// that it has judged, so that nothing is counted twice.
    pub(super) fn take_own_sample(&mut self) {
        self.checked = self.checked.max(self.own.checked);
        self.wrong = self.wrong.max(self.own.wrong);
        self.by = self.by.or((self.own.checked > 0).then_some(record::Verifier::Agent));
    }

    /// All lanes of a mix together.
    pub(super) fn sum(lanes: &[Self]) -> Self {
        let add = |sum: Self, lane: &Self| Self {
            checked: sum.checked + lane.checked,
            wrong: sum.wrong + lane.wrong,
            by: sum.by.max(lane.by),
            own: sum.own.plus(lane.own),
        };
        lanes.iter().fold(Self::default(), add)
    }
}

/// What came of a lane's sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct OwnSample {
    /// Results that hosts have committed themselves to.
    pub(super) kept: u64,
    pub(super) drawn: u64,
    pub(super) checked: u64,
    pub(super) wrong: u64,
    /// Drawn, and not shown as what they were when they were committed to.
    pub(super) unproven: u64,
}

impl OwnSample {
    pub(super) const fn plus(self, other: Self) -> Self {
        Self {
            kept: self.kept.saturating_add(other.kept),
            drawn: self.drawn.saturating_add(other.drawn),
            checked: self.checked.saturating_add(other.checked),
            wrong: self.wrong.saturating_add(other.wrong),
            unproven: self.unproven.saturating_add(other.unproven),
        }
    }
}
