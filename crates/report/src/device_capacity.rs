//! How many devices carry a recorded load, in rows and sentences.

use tapstone_record::{DeviceCapacity, PredictedScale, RateWithin};
use tapstone_text::counted;

use crate::figures;
use crate::words::quantile_name;

/// What stands above [`capacity_rows`].
#[must_use]
pub fn capacity_heading(within: &RateWithin) -> [&'static str; 6] {
    let quantile = quantile_name(within);
    ["devices", "measured", "predicted", "transactions", "utilisation", quantile]
}

/// By the number of devices: how many times they carry the load as measured and as predicted, and
/// what is predicted there.
#[must_use]
pub fn capacity_rows(known: &DeviceCapacity) -> Vec<[String; 6]> {
    let row = |predicted: &PredictedScale| {
        let is_measured = predicted.devices == known.measured_devices;
        let measured = known.measured_scale.filter(|_| is_measured);
        let latency = |latency| figures::with_interval(latency, figures::time);
        [
            predicted.devices.to_string(),
            measured.map_or(figures::NONE.into(), |scale| format!("{scale}x")),
            scales(predicted, |scale| format!("{scale}x")),
            predicted.rate.map_or(figures::NONE.into(), |rate| rate.to_string()),
            predicted.utilisation.map_or(figures::NONE.into(), figures::share),
            predicted.latency_ns.as_ref().map_or(figures::NONE.into(), latency),
        ]
    };
    known.predicted.iter().map(row).collect()
}

/// The scales of all queues that explain the device. They are the least: what lies above them is
/// open near the bound, above the utilisation of predictions, or was not looked at.
fn scales(predicted: &PredictedScale, name: impl Fn(u32) -> String) -> String {
    let PredictedScale { scale, scale_at_most, .. } = *predicted;
    match (scale, scale_at_most) {
        (0, 0) => figures::NONE.to_owned(),
        (scale, most) if scale == most => format!("at least {}", name(scale)),
        (scale, most) => format!("at least {scale} to {}", name(most)),
    }
}

/// What so many devices carry, and how that is known.
#[must_use]
pub fn capacity_sentences(within: &RateWithin, known: &DeviceCapacity) -> Vec<String> {
    let bound = format!("{} <= {}", quantile_name(within), within.bound_ns);
    let devices = |count: u32| counted(count.into(), "such device", "such devices");
    let mut sentences = Vec::new();
    for predicted in known.predicted.iter().filter(|it| it.devices != known.measured_devices) {
        let who = devices(predicted.devices);
        sentences.push(match predicted.scale {
            0 => format!("Whether {who} would carry the load with {bound} is not known."),
            _ => {
                let times = scales(predicted, |scale| counted(scale.into(), "time", "times"));
                format!("{who} would carry the load {times} with {bound} (predicted).")
            }
        });
    }
    let servers = match known.servers_at_most {
        most if most == known.servers => counted(most.into(), "server", "servers"),
        most => format!("{} to {most} servers", known.servers),
    };
    sentences.push(format!(
        "Predicted by a queue of {servers}, which gives the latencies of these replays to within {}. \
         A client keeps to one device; servers are at most {} busy, beyond which nothing is predicted.",
        figures::share(known.error),
        figures::share(known.most_utilisation),
    ));
    sentences
}

#[cfg(test)]
mod tests {
    use tapstone_measure::units::{Nanos, PerSecond};
    use tapstone_record::{
        ArrivalKind, Estimate, Fraction, RateWithinOutcome, RateWithinStop, Seconds,
    };

    use super::*;

    fn predicted(devices: u32, scale: u32, scale_at_most: u32) -> PredictedScale {
        let is_carried = scale > 0;
        let latency = Estimate { estimate: 18e6, low: 17e6, high: 19e6 };
        PredictedScale {
            devices,
            scale,
            scale_at_most,
            is_capped: false,
            rate: is_carried.then_some(PerSecond(300.0)),
            utilisation: is_carried.then_some(Fraction(0.62)),
            latency_ns: is_carried.then_some(latency),
        }
    }

    fn known(predicted: Vec<PredictedScale>) -> DeviceCapacity {
        DeviceCapacity {
            measured_devices: 1,
            measured_scale: Some(3),
            servers: 1,
            servers_at_most: 1,
            error: Fraction(0.031),
            most_utilisation: Fraction(0.9),
            predicted,
        }
    }

    fn within() -> RateWithin {
        RateWithin {
            operation: "transaction".to_owned(),
            quantile: Fraction(0.99),
            bound_ns: Nanos::from_millis(20),
            arrivals: ArrivalKind::Recorded,
            workers: 8,
            outcome: RateWithinOutcome::Rate,
            rate: None,
            at_least: None,
            stopped_by: RateWithinStop::Done,
            unloaded_ns: None,
            expected_seconds: Seconds(1.0),
            levels: Vec::new(),
            capacity: None,
        }
    }

    #[test]
    fn what_was_measured_stands_apart_from_what_was_predicted() {
        let rows = capacity_rows(&known(vec![predicted(1, 3, 3), predicted(2, 6, 7)]));
        let [one, two] = &rows[..] else { panic!("{rows:?}") };
        assert_eq!((&*one[1], &*one[2]), ("3x", "at least 3x"));
        assert_eq!((&*two[1], &*two[2]), (figures::NONE, "at least 6 to 7x"));
        assert_eq!(capacity_heading(&within()).last(), Some(&"p99"));
    }

    #[test]
    fn each_sentence_says_that_it_is_a_prediction_and_by_what() {
        let capped = PredictedScale { is_capped: true, ..predicted(8, 40, 40) };
        let all = vec![predicted(1, 3, 3), predicted(2, 6, 7), predicted(3, 0, 2), capped];
        let sentences = capacity_sentences(&within(), &known(all));
        let [two, three, eight, how] = &sentences[..] else { panic!("{sentences:?}") };
        let times = "2 such devices would carry the load at least 6 to 7 times with p99 <= 20.0 ms";
        assert_eq!(two, &format!("{times} (predicted)."));
        assert_eq!(
            three,
            "Whether 3 such devices would carry the load with p99 <= 20.0 ms is not known."
        );
        assert!(eight.contains("at least 40 times"), "{eight}");
        assert!(how.contains("a queue of 1 server") && how.contains("3.1 %"), "{how}");
        let never = capacity_sentences(&within(), &known(vec![predicted(2, 0, 0)]));
        assert!(never[0].ends_with("is not known."), "{}", never[0]);
    }
}
