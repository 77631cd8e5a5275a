//! What the measuring loop costs: `tapstone token`'s own workers against a bare loop with two clock
//! readings, over the same module, in interleaved rounds of one run.
//!
//! The module answers at once, so everything that is left is the loop. `cargo bench` runs all
//! rounds; without `--bench` a few show that it works.

#[allow(dead_code, reason = "each bench uses a part")]
#[path = "support/bare.rs"]
mod bare;
mod support;

use tapstone_measure::units::Nanos;
use tapstone_token::controller::TokenController;

use bare::Bare;
use support::OPERATION;

const ROUND: Nanos = Nanos::from_millis(300);

fn main() {
    let rounds = support::rounds(21, 2);
    let module = support::module();
    let mut controller = support::open(&module, &[]);
    let bare = Bare::load(&module);
    let mut costs: Vec<(&str, usize, Vec<f64>)> = Vec::new();
    for round in 0..rounds {
        let mut order: Vec<(&str, usize)> =
            vec![("bare", 1), ("controller", 1), ("bare", 2), ("controller", 2)];
        if round % 2 == 1 {
            order.reverse();
        }
        for (who, threads) in order {
            let cost = match who {
                "bare" => bare.run(threads, ROUND),
                _ => measured(&mut controller, threads),
            };
            match costs.iter_mut().find(|(name, count, _)| (*name, *count) == (who, threads)) {
                Some((.., all)) => all.push(cost),
                None => costs.push((who, threads, vec![cost])),
            }
        }
    }
    controller.close();
    report(costs, rounds);
}

fn report(mut costs: Vec<(&str, usize, Vec<f64>)>, rounds: usize) {
    let mut median = |who: &str, threads: usize| {
        let found = costs.iter_mut().find(|(name, count, _)| (*name, *count) == (who, threads));
        let (.., all) = found.expect("every pair was measured");
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    let bare = median("bare", 1);
    let controller = median("controller", 1);
    let bare_two = median("bare", 2);
    let lab_two = median("controller", 2);
    println!("{OPERATION} on a module that answers at once, ns per operation and thread,");
    println!("medians of {rounds} interleaved rounds of {ROUND}\n");
    println!("                              1 thread    2 threads   change");
    println!("  bare loop, two readings    {bare:9.1}    {bare_two:9.1}   {:6.3}", bare_two / bare);
    println!(
        "  tapstone's loop            {controller:9.1}    {lab_two:9.1}   {:6.3}",
        lab_two / controller
    );
    println!(
        "  ratio                      {:9.3}    {:9.3}",
        controller / bare,
        lab_two / bare_two
    );
    println!(
        "  change over the bare loop's own change: {:.3}",
        lab_two / controller / (bare_two / bare)
    );
}

/// ns per operation and thread, from the rate: everything that the loop does is in it.
fn measured(controller: &mut TokenController, threads: usize) -> f64 {
    let summary = support::measure(controller, threads as u32, ROUND);
    1e9 * threads as f64 / summary.rate.estimate
}
