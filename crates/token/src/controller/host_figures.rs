//! What a case of several hosts says of each: its share, its window, its clock, and whether it was
//! its own limit.

use std::iter;

use tapstone_measure::attribution::CLIENT_BUSY;
use tapstone_measure::units::Nanos;
use tapstone_record as record;
use tapstone_record::Seconds;

use super::HostPart;
use super::case_figures::CaseFigures;
use crate::protocol::Done;

/// A bound of a clock's offset above this share of the window is worth a warning.
const CLOCK_SHARE: f64 = 0.01;

impl CaseFigures<'_> {
    /// Which of the processes that took part are a host's.
    pub(super) fn places_of(&self, host: usize) -> Vec<usize> {
        let numbers = self.prepared.numbers();
        let Some(of_host) = self.prepared.processes.get(host) else { return Vec::new() };
        let took_part = self.ran.took_part.iter().enumerate();
        let mine = took_part.filter(|(_, part)| of_host.contains(&numbers[**part]));
        mine.map(|(place, _)| place).collect()
    }

    /// What each host had a part in.
    pub(super) fn host_parts(&self) -> Vec<HostPart> {
        let hosts = self.controller.hosts().map_or(0, |hosts| hosts.names().len());
        let part = |host: usize| {
            let places = self.places_of(host);
            let gathered = &self.ran.gathered;
            // Who is done has seen the window to its end.
            let done = places.iter().all(|place| gathered.done[*place].is_some());
            let end = if done { gathered.closed } else { gathered.last_of(&places) };
            let end = end.min(gathered.closed);
            (!places.is_empty()).then(|| HostPart {
                host,
                window: record::Window {
                    start_ns: gathered.opened,
                    end_ns: end,
                    seconds: Seconds((end - gathered.opened).as_secs_f64()),
                },
                clock: self.ran.clocks.get(host).copied(),
            })
        };
        (0..hosts).filter_map(part).collect()
    }

    /// The processor that a host's workers used, as a part of what they could have used.
    pub(super) fn utilisation_of(&self, host: usize) -> Option<f64> {
        let places = self.places_of(host);
        let done = places.iter().filter_map(|place| self.ran.gathered.done[*place].as_ref());
        let used = used_cores(done);
        (used > 0.0).then(|| used / self.usable_cores_of(host))
    }

    /// The processors that the workers could have used, all hosts together.
    pub(super) fn usable_cores(&self) -> f64 {
        match self.controller.hosts() {
            Some(hosts) => (0..hosts.names().len()).map(|host| self.usable_cores_of(host)).sum(),
            None => {
                let workers = f64::from(self.ran.threads) * self.ran.took_part.len() as f64;
                let here = std::thread::available_parallelism().map_or(1, |cores| cores.get());
                workers.min(here as f64)
            }
        }
    }

    fn usable_cores_of(&self, host: usize) -> f64 {
        let workers = f64::from(self.ran.threads) * self.places_of(host).len() as f64;
        let cores = self.controller.hosts().and_then(|hosts| hosts.cores().get(host).copied());
        workers.min(f64::from(cores.unwrap_or(1)))
    }

    /// The hosts that used up their own processor, by name.
    pub(super) fn own_limits(&self) -> Vec<String> {
        let names = self.controller.hosts().map(|hosts| hosts.names()).unwrap_or_default();
        let busy = |host: usize| self.utilisation_of(host).is_some_and(|used| used >= CLIENT_BUSY);
        names
            .into_iter()
            .enumerate()
            .filter(|(host, _)| busy(*host))
            .map(|(_, name)| name)
            .collect()
    }

    /// What a reader of the case should know of its hosts.
    pub(super) fn host_warnings(&self) -> Vec<String> {
        let Some(hosts) = self.controller.hosts() else { return Vec::new() };
        let window = self.ran.gathered.window();
        let mut warnings = Vec::new();
        for name in self.own_limits() {
            warnings.push(format!(
                "{name} used up its own processor: its share is that machine's limit, not the \
                 device's; try more hosts with fewer threads each"
            ));
        }
        let clocks = hosts.names().into_iter().zip(&self.ran.clocks).enumerate();
        for (_, (name, clock)) in clocks.filter(|(host, _)| !self.places_of(*host).is_empty()) {
            let share = clock.bound.0 as f64 / window.0.max(1) as f64;
            if window > Nanos::ZERO && share > CLOCK_SHARE {
                warnings.push(format!(
                    "the clock of {name} is known to {} only, {:.1} % of the window: so much of \
                     its work may lie outside; try a longer window",
                    clock.bound,
                    100.0 * share
                ));
            }
        }
        warnings
    }
}

/// The cores that these processes used on average.
pub(super) fn used_cores<'a>(done: impl IntoIterator<Item = &'a Done>) -> f64 {
    let used = |done: &Done| (done.user + done.system).as_secs_f64() / done.elapsed.as_secs_f64();
    let measured = done.into_iter().filter(|done| done.elapsed > Nanos::ZERO);
    iter::Sum::sum(measured.map(used))
}
