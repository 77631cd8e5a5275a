//! How often a verdict on a claim is wrong, against devices whose rate is known.
//!
//! `TAPSTONE_CLAIMS=200` makes the run as long as that; it is in docs/evidence.md.

use tapstone_record::Verdict;

use crate::support::Tapstone;

/// What is claimed, as a share of the device's rate.
const SHARES: [f64; 3] = [0.97, 1.0, 1.03];

/// A queue that four threads keep full, so that its own service time is all that its rate follows
/// from.
struct Device {
    settings: &'static [(&'static str, &'static str)],
    /// Operations per second in the long run.
    rate: f64,
}

const DEVICES: [Device; 2] = [
    Device { settings: &[("SERVICE", "2ms")], rate: 500.0 },
    // The mean of 1/(s (1 + a sin x)) over a period is 1/(s sqrt(1 - a^2)).
    Device { settings: &[("SERVICE", "2ms"), ("SWING", "0.05/170ms")], rate: 500.6261 },
];

/// How many claims of each share came to which verdict.
#[derive(Debug, Default)]
struct Tally {
    met: [usize; 3],
    missed: [usize; 3],
    undecided: [usize; 3],
    void: [usize; 3],
}

impl Tally {
    fn count(&mut self, verdict: Verdict) -> &mut [usize; 3] {
        match verdict {
            Verdict::Met => &mut self.met,
            Verdict::Missed => &mut self.missed,
            Verdict::Undecided => &mut self.undecided,
            Verdict::Void => &mut self.void,
        }
    }
}

fn add_run(device: &Device, tally: &mut Tally) {
    let folder = tempfile::tempdir().unwrap();
    let engine = folder.path().join("engine");
    let mut settings = device.settings.to_vec();
    settings.extend([("WAIT", "sleep"), ("ENGINE_FILE", engine.to_str().unwrap())]);
    let mut run = Tapstone::on(&settings).args("--no-verify --threads 4 --seconds 0.4");
    run = run.args("--precision 0.5%");
    for share in SHARES {
        run = run.arg("--claim").arg(format!("rsa1024.sign >= {:.4}/s", device.rate * share));
    }
    for (place, claim) in run.run().record().claims.iter().enumerate() {
        tally.count(claim.verdict)[place] += 1;
    }
}

#[test]
fn claims_beside_the_known_rate_are_not_judged_wrongly() {
    let runs = std::env::var("TAPSTONE_CLAIMS").map_or(4, |count| count.parse().unwrap());
    let mut tally = Tally::default();
    for run in 0..runs {
        add_run(&DEVICES[run % DEVICES.len()], &mut tally);
    }
    println!("of {runs} claims each at {SHARES:?} of the rate: {tally:?}");
    assert_eq!(tally.missed[0], 0, "a device was said to be slower than it is");
    assert_eq!(tally.met[2], 0, "a device was said to be faster than it is");
    // A claim of exactly its rate is true: an interval of 95 % lies below it in 2.5 % of runs.
    let judged = runs - tally.void[1];
    assert!(judged < 100 || tally.missed[1] * 20 <= judged, "{tally:?}");
}
