//! The hosts of a run for its record: what became of each, with its last window and its clock.

use tapstone_hosts::{Watch, clock_of};
use tapstone_record as record;
use tapstone_token::lab::HostPart;

/// Filled row by row.
pub(super) struct HostsOfRun {
    watch: Watch,
    parts: Vec<(Option<record::Window>, Option<record::HostClock>)>,
}

impl HostsOfRun {
    pub(super) fn new(watch: Watch) -> Self {
        let parts = vec![(None, None); watch.hosts().len()];
        Self { watch, parts }
    }

    /// Takes what the hosts had a part in. Of all bounds the worst is kept.
    pub(super) fn take(&mut self, parts: Vec<HostPart>) {
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

    pub(super) fn for_record(self) -> Vec<record::Host> {
        let mut hosts = self.watch.hosts();
        for (host, (window, clock)) in hosts.iter_mut().zip(self.parts) {
            host.window = window;
            host.clock = clock.or(host.clock);
        }
        hosts
    }
}
