//! The hosts of a run for its record: what became of each, with its last window and its clock; and
//! for the user, who is to hear of each loss once.

use tapstone_hosts::{HostsWatch, clock_of};
use tapstone_record as record;
use tapstone_token::controller::{HostPart, Lost, TokenMeasureError};

/// Filled case by case.
pub(super) struct HostsOfRun {
    watch: HostsWatch,
    parts: Vec<(Option<record::Window>, Option<record::HostClock>)>,
    /// What the user has been told.
    told: Vec<String>,
}

impl HostsOfRun {
    pub(super) fn new(watch: HostsWatch) -> Self {
        let parts = vec![(None, None); watch.hosts().len()];
        Self { watch, parts, told: Vec::new() }
    }

    /// Takes what the hosts had a part in, and what the user was told of. Of all bounds the worst is
    /// kept.
    pub(super) fn take(&mut self, parts: Vec<HostPart>, trouble: &[TokenMeasureError]) {
        self.told.extend(trouble.iter().map(ToString::to_string));
        for part in parts {
            let (window, worst) = &mut self.parts[part.host];
            *window = Some(part.window);
            let clock = part.clock.map(clock_of);
            let is_worse = |clock: &record::HostClock| {
                worst.is_none_or(|worst: record::HostClock| worst.bound_ns <= clock.bound_ns)
            };
            *worst = clock.filter(is_worse).or(*worst);
        }
    }

    /// Hosts that were lost when no case waited for them, in words for the user.
    pub(super) fn lost_untold(&self) -> Vec<TokenMeasureError> {
        let untold = |lost: &Lost| !self.told.iter().any(|told| told.contains(&lost.to_string()));
        let error = |lost| TokenMeasureError::Lost { module: self.watch.target().into(), lost };
        self.watch.lost().into_iter().filter(untold).map(error).collect()
    }

    pub(super) fn for_record(self) -> Vec<record::Host> {
        let mut hosts = self.watch.hosts();
        for (host, (window, clock)) in hosts.iter_mut().zip(self.parts) {
            host.window = window;
            host.clock = clock.or(host.clock);
        }
        hosts
    }
}
