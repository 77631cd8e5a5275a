//! Do the intervals hold the truth on a real machine? 200 short runs on the null module, whose
//! service time is fixed and stalls now and then; the truth is the figure of all runs together.
//!
//! Simulated runs show what the statistics are worth (`crates/measure/tests/coverage.rs`); this
//! shows what is left of that on a machine with other things to do. Without `--bench` a few runs
//! show that it works.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tapstone_measure::clock::{Monotonic, Precision};
use tapstone_measure::interval::Estimate;
use tapstone_measure::summary::Summary;
use tapstone_measure::units::Nanos;
use tapstone_token::catalogue::Catalogue;
use tapstone_token::lab::{
    Common, KeyCount, KeysPlan, Lab, LanePlan, LoadPlan, Observer, Options, Progress, RowPlan,
    Stop, TokenChoice, WorkerCommand,
};
use tapstone_token::pin::Pin;
use tapstone_token::protocol::Login;

/// 20 µs each, and 400 µs more at every 100th: 500 stalls in a run.
const MODEL: [&str; 3] =
    ["NULL_MODULE_SERVICE=20us", "NULL_MODULE_WAIT=spin", "NULL_MODULE_STALL=400us/100"];
const RUN: Nanos = Nanos::from_millis(1200);

fn main() {
    let runs = if std::env::args().any(|argument| argument == "--bench") { 200 } else { 3 };
    let mut lab = open(&module());
    let summaries: Vec<Summary> = (0..runs).map(|_| measure(&mut lab)).collect();
    lab.close();
    println!("{runs} runs of {RUN} on the null module ({})\n", MODEL.join(", "));
    show("rate", &summaries, |summary| Some(summary.rate));
    show("mean", &summaries, |summary| summary.mean);
    show("p50", &summaries, |summary| summary.p50);
    let reliable = summaries.iter().filter(|summary| summary.reliable).count();
    println!("  {:5}  {reliable} of {runs} runs call their intervals reliable", "");
}

/// How many intervals hold the mean of all estimates.
fn show(name: &str, summaries: &[Summary], figure: impl Fn(&Summary) -> Option<Estimate>) {
    let figures: Vec<Estimate> = summaries.iter().filter_map(figure).collect();
    let truth = figures.iter().map(|figure| figure.estimate).sum::<f64>() / figures.len() as f64;
    let held = figures.iter().filter(|figure| figure.holds(truth)).count();
    let width =
        figures.iter().map(Estimate::relative_half_width).sum::<f64>() / figures.len() as f64;
    println!(
        "  {name:5}  {held} of {} intervals hold {truth:.1}: {:.1} %, mean half-width {:.3} %",
        figures.len(),
        100.0 * held as f64 / figures.len() as f64,
        100.0 * width
    );
}

/// Built for this target by Cargo, beside it.
fn module() -> PathBuf {
    let own = std::env::current_exe().expect("a running program has a file");
    let mut places = own.ancestors().skip(1).take(2).map(|folder| folder.join("libnull_module.so"));
    places.find(|path| path.exists()).expect("cargo build -p null-module in the same profile")
}

fn open(module: &Path) -> Lab {
    let mut arguments: Vec<String> = MODEL.iter().map(|model| (*model).to_owned()).collect();
    arguments.extend([env!("CARGO_BIN_EXE_tapstone").to_owned(), "worker".to_owned()]);
    let options = Options {
        worker: WorkerCommand { program: "env".into(), arguments, hidden: Vec::new() },
        module: module.to_owned(),
        tokens: vec![TokenChoice::Only],
        login: Login::Pin(Pin::new(b"1234".to_vec())),
        accept_low_count: false,
        timeout: Duration::from_secs(10),
        interrupt: Arc::default(),
        announce: |_| {},
    };
    Lab::open(options).expect("the null module opens")
}

struct Nobody;

impl Observer for Nobody {
    fn stage(&mut self, _: &str, _: &str) {}
    fn progress(&mut self, _: &str, _: &Progress) {}
}

fn measure(lab: &mut Lab) -> Summary {
    let variant = Catalogue::builtin().select("rsa2048.sign").expect("in the catalogue").remove(0);
    let plan = RowPlan {
        lanes: vec![LanePlan { variant, weight: 1 }],
        threads: 1,
        processes: 1,
        load: LoadPlan::Closed,
        stop: Stop::Seconds(RUN),
        keys: KeysPlan::Own { count: KeyCount::Shared, on_token: false },
        common: Common {
            verify: false,
            phases: false,
            samples: false,
            warm_up: Nanos::from_millis(20),
            max_failures: 1,
            reconnect: false,
            extra_objects: 0,
            idle_sessions: 0,
            seed: 1,
            clock_step: Precision::of(&Monotonic).step,
            loop_cost_ns: 0.0,
        },
    };
    let outcome = lab.measure(&plan, &mut Nobody, None);
    assert!(outcome.is_clean(), "{outcome:?}");
    outcome.summary.expect("a clean row has figures")
}
