//! What a case shows of its limit: from what workers said of their threads and their machines to
//! the evidence that is judged and recorded.

use tapstone_measure::attribution::{Attribution, LevelEvidence, LimitCause};
use tapstone_measure::contention::Contention;
use tapstone_measure::units::Nanos;
use tapstone_record as record;
use tapstone_record::Fraction;

use super::case_figures::CaseFigures;
use super::host_figures::used_cores;
use crate::protocol::Done;

impl CaseFigures<'_> {
    /// All that is known of what kept the workers of this case.
    pub(super) fn evidence(&self) -> LevelEvidence {
        let total = self.ran.gathered.combined().total();
        let mean = |sum: Nanos| Nanos(sum.0 / total.completed.max(1));
        LevelEvidence {
            workers: self.workers(),
            cores: self.machine_cores(),
            used_cores: used_cores(self.done()),
            own_cores: if self.controller.hosts().is_some() { 0.0 } else { self.ran.own_cores },
            latency: (total.completed > 0).then(|| mean(total.busy)),
            contention: self.contention(),
        }
    }

    /// The processors of all machines that took part, or of their quota.
    fn machine_cores(&self) -> f64 {
        match self.controller.hosts() {
            Some(hosts) => {
                let took_part = |host: &usize| !self.places_of(*host).is_empty();
                let cores = hosts.cores();
                (0..cores.len()).filter(took_part).map(|host| f64::from(cores[host])).sum()
            }
            None => std::thread::available_parallelism().map_or(1.0, |cores| cores.get() as f64),
        }
    }

    /// The processes of one machine share its counters; machines are added up.
    fn contention(&self) -> Contention {
        let of_machine = |places: &[usize]| {
            let mut machine = Contention::default();
            let done = |place: &usize| self.ran.gathered.done[*place].as_ref();
            for Done { contention, .. } in places.iter().filter_map(done) {
                machine.absorb_process(contention);
            }
            machine
        };
        let Some(hosts) = self.controller.hosts() else {
            return of_machine(&(0..self.ran.took_part.len()).collect::<Vec<_>>());
        };
        let mut all = Contention::default();
        for host in 0..hosts.names().len() {
            all.absorb_machine(&of_machine(&self.places_of(host)));
        }
        all
    }
}

/// The passes over one level, taken together.
pub(super) fn mean_evidence(passes: &[LevelEvidence]) -> LevelEvidence {
    let Some((first, others)) = passes.split_first() else { return LevelEvidence::default() };
    let mut contention = first.contention;
    for pass in others {
        contention.absorb_period(&pass.contention);
    }
    let mean = |figure: fn(&LevelEvidence) -> f64| {
        passes.iter().map(figure).sum::<f64>() / passes.len() as f64
    };
    let latency = || {
        let sum: Option<Nanos> = passes.iter().map(|pass| pass.latency).sum();
        sum.map(|sum| Nanos(sum.0 / passes.len() as u64))
    };
    LevelEvidence {
        used_cores: mean(|pass| pass.used_cores),
        own_cores: mean(|pass| pass.own_cores),
        latency: latency(),
        contention,
        ..*first
    }
}

/// As a record holds it.
pub(super) fn limit_record(
    attribution: Attribution,
    evidence: &LevelEvidence,
) -> record::LimitEvidence {
    let Contention { threads, waits, machine, connections } = evidence.contention;
    let total = waits.total();
    let share = |part: u64| Fraction(part as f64 / total.max(1) as f64);
    record::LimitEvidence {
        limited_by: limited_by(attribution.cause),
        why: attribution.why,
        running_share: threads.map(|threads| Fraction(threads.running_share())),
        run_queue_share: threads.map(|threads| Fraction(threads.runnable_share())),
        voluntary_switches: threads.map(|threads| threads.voluntary_switches),
        involuntary_switches: threads.map(|threads| threads.involuntary_switches),
        other_cores: evidence.other_cores(),
        pressure_share: machine.and_then(|machine| machine.pressure_share()).map(Fraction),
        waits: (total > 0).then(|| record::WaitShares {
            samples: total,
            running: share(waits.running),
            lock: share(waits.lock),
            sleep: share(waits.sleep),
            input: share(waits.input),
        }),
        round_trip_ns: connections.round_trip,
    }
}

pub(super) const fn limited_by(cause: LimitCause) -> record::LimitedBy {
    use record::LimitedBy;
    match cause {
        LimitCause::Device => LimitedBy::Device,
        LimitCause::Client => LimitedBy::Client,
        LimitCause::OtherPrograms => LimitedBy::OtherPrograms,
        LimitCause::ProcessLock => LimitedBy::ProcessLock,
        LimitCause::ProcessConnection => LimitedBy::ProcessConnection,
        LimitCause::ProcessLockOrConnection => LimitedBy::ProcessLockOrConnection,
        LimitCause::Network => LimitedBy::Network,
        LimitCause::SearchCap => LimitedBy::SearchCap,
        LimitCause::Interruption => LimitedBy::Interruption,
        LimitCause::Unknown => LimitedBy::Unknown,
    }
}
