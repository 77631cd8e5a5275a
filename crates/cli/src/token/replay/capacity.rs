//! How many such devices carry a load: predicted from the replays of a search.

use tapstone_measure::latency_bound::LatencyBound;
use tapstone_record::{DeviceCapacity, Fraction, PredictedScale, RateWithin};
use tapstone_replay::{
    CapacityQuestion, DeviceFit, MOST_UTILISATION, MeasuredReplay, PredictedCapacity,
    ReplayOptions, ReplayProcess, ReplayedThread, ScaleLimit, SteadyLoad, fit_device,
};
use tapstone_report::device_capacity::{capacity_heading, capacity_rows, capacity_sentences};

use super::Went;
use crate::workload::aligned;

/// Numbers of devices of which it is said what they carry, beside those of the search.
const DEVICES: [u32; 3] = [1, 2, 4];
/// Where a replay itself takes a larger share of this machine's processors, they may be what limits
/// it, and not the device.
const MOST_OWN_SHARE: f64 = 0.5;

/// What is kept of the replays of a search.
#[derive(Default)]
pub(super) struct KeptReplays {
    replays: Vec<(Vec<ReplayProcess>, Vec<Vec<ReplayedThread>>)>,
    heaviest: Option<Fraction>,
}

impl KeptReplays {
    /// Keeps one whose calls began when they were meant to; its results have been judged.
    pub(super) fn keep(&mut self, went: &Went) {
        let times = |thread: &ReplayedThread| ReplayedThread {
            times: thread.times.clone(),
            results: Vec::new(),
        };
        let threads = went.outcome.threads.iter();
        let threads = threads.map(|threads| threads.iter().map(times).collect()).collect();
        self.replays.push((went.plan.processes.clone(), threads));
        let heavier = |share: &Fraction| self.heaviest.is_none_or(|heaviest| share.0 > heaviest.0);
        self.heaviest = went.own_share.filter(heavier).or(self.heaviest);
    }

    /// What is predicted, or why nothing is.
    pub(super) fn capacity(
        &self,
        load: &SteadyLoad<'_>,
        options: &ReplayOptions,
        bound: LatencyBound,
        limit: ScaleLimit,
    ) -> Result<DeviceCapacity, String> {
        match self.heaviest {
            None => {
                return Err(
                    "what a replay takes of this machine's processors is not known".to_owned()
                );
            }
            Some(share) if share.0 > MOST_OWN_SHARE => {
                return Err(format!(
                    "one of the replays took {:.0} % of this machine's own processors, so that they \
                     may be the limit, and not the token",
                    share.0 * 100.0
                ));
            }
            Some(_) => {}
        }
        let measured = |(processes, threads)| MeasuredReplay { processes, threads };
        let replays =
            self.replays.iter().map(|(processes, threads)| (&processes[..], &threads[..]));
        let replays: Vec<MeasuredReplay<'_>> = replays.map(measured).collect();
        let share = bound.share_beyond();
        let fit = fit_device(load, share, &replays).map_err(|error| error.to_string())?;
        let question = CapacityQuestion { load, options, bound };
        let mut numbers: Vec<u32> = DEVICES.into_iter().chain([options.devices]).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let predicted: Vec<PredictedCapacity> =
            numbers.into_iter().map(|devices| question.predict(&fit, devices)).collect();
        let here = predicted.iter().find(|it| it.devices == options.devices);
        if let Some((scale, beyond)) = here.map(|it| it.fewest).zip(beyond(limit))
            && scale >= beyond
        {
            return Err(format!(
                "the queue that explains these replays would carry the load {scale}x, and {beyond}x \
                 was measured to lie beyond the bound"
            ));
        }
        Ok(record(&fit, predicted, options.devices, limit))
    }
}

/// The lowest scale that was measured to lie beyond the bound.
const fn beyond(limit: ScaleLimit) -> Option<u32> {
    match limit {
        ScaleLimit::Between { beyond, .. } | ScaleLimit::Below(beyond) => Some(beyond),
        ScaleLimit::NotOnce => Some(1),
        ScaleLimit::AtLeast(_) | ScaleLimit::Unknown => None,
    }
}

fn record(
    fit: &DeviceFit,
    predicted: Vec<PredictedCapacity>,
    devices: u32,
    limit: ScaleLimit,
) -> DeviceCapacity {
    let servers = || fit.models.iter().map(tapstone_replay::DeviceModel::servers);
    DeviceCapacity {
        measured_devices: devices,
        measured_scale: match limit {
            ScaleLimit::Between { within, .. } | ScaleLimit::AtLeast(within) => Some(within),
            ScaleLimit::NotOnce | ScaleLimit::Below(_) | ScaleLimit::Unknown => None,
        },
        servers: servers().min().unwrap_or_default(),
        servers_at_most: servers().max().unwrap_or_default(),
        error: Fraction(fit.error),
        most_utilisation: Fraction(MOST_UTILISATION),
        predicted: predicted.into_iter().map(scale).collect(),
    }
}

fn scale(predicted: PredictedCapacity) -> PredictedScale {
    let PredictedCapacity { devices, fewest, most, is_capped, load } = predicted;
    PredictedScale {
        devices,
        scale: fewest,
        scale_at_most: most,
        is_capped,
        rate: load.map(|load| load.rate),
        utilisation: load.map(|load| Fraction(load.utilisation)),
        latency_ns: load.map(|load| load.latency.into()),
    }
}

/// What is known, as a table and sentences.
pub(super) fn capacity_text(within: &RateWithin, known: &DeviceCapacity) -> String {
    let heading = capacity_heading(within).map(str::to_owned);
    let rows = std::iter::once(heading).chain(capacity_rows(known)).collect::<Vec<_>>();
    let sentences = capacity_sentences(within, known);
    let sentences = sentences.iter().map(|sentence| format!("  {sentence}\n"));
    format!("how many devices\n{}{}", aligned(&rows), sentences.collect::<String>())
}
