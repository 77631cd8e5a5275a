//! What it costs a run to tell how it goes (`--live`): the rate of two threads on a module that
//! answers at once, in interleaved rounds without a socket, with one on which somebody reads, and
//! with one on which somebody does not.
//!
//! `cargo bench` runs all rounds; without `--bench` a few show that it works.

#[allow(dead_code, reason = "each bench uses a part")]
mod support;

use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixStream;
use std::thread::{self, JoinHandle};

use tapstone_live::{Figures, LiveSocket};
use tapstone_measure::units::Nanos;
use tapstone_token::controller::{CaseProgress, TokenController, TokenObserver};

const ROUND: Nanos = Nanos::from_secs(1);
const SIDES: [&str; 3] = ["without a socket", "somebody reads", "somebody does not"];

/// Tells a socket what `tapstone token --live` does.
struct Told(LiveSocket);

impl TokenObserver for Told {
    fn stage(&mut self, case: &str, stage: &str) {
        self.0.stage(case, stage);
    }

    fn progress(&mut self, case: &str, progress: &CaseProgress) {
        self.0.figures(Figures {
            case: case.to_owned(),
            level: None,
            elapsed_ns: progress.elapsed,
            completed: progress.completed,
            failed: progress.failed,
            rate: progress.rate,
            p50_ns: progress.p50,
            p99_ns: progress.p99,
            missed: 0,
        });
    }
}

fn main() {
    let rounds = support::rounds(15, 1);
    let module = support::module();
    let mut controller = support::open(&module, &[]);
    let mut rates = [const { Vec::new() }; SIDES.len()];
    for round in 0..rounds {
        for turn in 0..SIDES.len() {
            let side = (round + turn) % SIDES.len();
            rates[side].push(rate(&mut controller, SIDES[side]));
        }
    }
    controller.close();
    println!("operations a second of two threads on a module that answers at once,");
    println!(
        "medians of {rounds} interleaved rounds of {ROUND}, and of the ratios in each round\n"
    );
    for (side, all) in SIDES.iter().zip(&rates) {
        let mut ratios: Vec<f64> = all.iter().zip(&rates[0]).map(|(it, bare)| it / bare).collect();
        println!("  {side:18} {:12.0}   {:6.4}", median(&mut all.clone()), median(&mut ratios));
    }
}

fn median(all: &mut [f64]) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

fn rate(controller: &mut TokenController, side: &str) -> f64 {
    if side == SIDES[0] {
        return support::measure(controller, 2, ROUND).rate.estimate;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("live");
    let mut told = Told(LiveSocket::bind(&path).expect("a socket"));
    let looks = UnixStream::connect(&path).expect("the socket is there");
    let reads: Option<JoinHandle<usize>> = (side == SIDES[1]).then(|| {
        let looks = looks.try_clone().expect("a descriptor");
        thread::spawn(move || BufReader::new(looks).lines().map_while(Result::ok).count())
    });
    let summary = support::measure_told(controller, 2, ROUND, &mut told);
    drop(told);
    if let Some(reads) = reads {
        assert!(reads.join().expect("it does not panic") > 0, "it was told something");
    }
    summary.rate.estimate
}
