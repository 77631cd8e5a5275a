//! Do the intervals hold the truth on a real machine? 200 short runs on the null module, whose
//! service time is fixed and stalls now and then; the truth is the figure of all runs together.
//!
//! Simulated runs show what the statistics are worth (`crates/measure/tests/coverage.rs`); this
//! shows what is left of that on a machine with other things to do. Without `--bench` a few runs
//! show that it works.

mod support;

use tapstone_measure::interval::Estimate;
use tapstone_measure::summary::Summary;
use tapstone_measure::units::Nanos;

/// 20 µs each, and 400 µs more at every 100th: 500 stalls in a run.
const MODEL: [&str; 3] =
    ["NULL_MODULE_SERVICE=20us", "NULL_MODULE_WAIT=spin", "NULL_MODULE_STALL=400us/100"];
const RUN: Nanos = Nanos::from_millis(1200);

fn main() {
    let runs = support::rounds(200, 3);
    let mut controller = support::open(&support::module(), &MODEL);
    let summaries: Vec<Summary> =
        (0..runs).map(|_| support::measure(&mut controller, 1, RUN)).collect();
    controller.close();
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
