//! Derives the constants of the JCOP profiles from the published figures.
//!
//! Each workload of the study is walked through the benchmark applet, which says how many
//! commands, bytes and units of work it is. Ten times, none of them negative, are then found for
//! each card so that the sum of the squares of the relative errors of its eleven figures is
//! least. Prints the tables of each profile, and how far each figure is off.
//!
//! Where the figures cannot tell two times apart, the one of the command is taken, not that of
//! the work in it: LOAD's digests are in `vm.load.byte`, and RUN's output in `vm.instruction`.
#![allow(missing_docs, reason = "an example exports nothing")]

use std::collections::BTreeMap;

use tapstone_vcard::{BenchApplet, VirtualCard};

#[path = "../tests/published/workloads.rs"]
mod workloads;

use workloads::{Keys, Walk, walk, workloads};

const REFERENCE: &str = include_str!("../../../reference/jcop-cards.toml");

/// The times that are looked for, as the profile writes them.
const TIMES: [&str; 10] = [
    "command",
    "byte_to_card",
    "byte_from_card",
    "bench WRITE",
    "decrypt.byte",
    "3des.init",
    "3des.block",
    "rsa2048.private",
    "vm.load.byte",
    "vm.instruction",
];

#[derive(serde::Deserialize)]
struct Reference {
    card: Vec<Published>,
}

#[derive(serde::Deserialize)]
struct Published {
    name: String,
    seconds: BTreeMap<String, f64>,
}

fn main() {
    let reference: Reference = toml::from_str(REFERENCE).expect("the reference file is TOML");
    let keys = Keys::new();
    let mut card = VirtualCard::new().with("bench", Box::new(BenchApplet::default()));
    keys.load(&mut card);
    let counts: Vec<_> = workloads(&keys)
        .iter()
        .map(|workload| (workload.name, counts(&walk(&mut card, &workload.commands))))
        .collect();
    for published in reference.card {
        println!("# {}", published.name);
        let rows = counts.iter().map(|(name, counts)| {
            let seconds = published.seconds[*name];
            counts.map(|count| count / seconds)
        });
        let times = fit(&rows.collect::<Vec<_>>()).map(|seconds| rounded(seconds * 1e6));
        print(&times);
        for (name, counts) in &counts {
            let seconds: f64 = counts.iter().zip(times).map(|(n, us)| n * us / 1e6).sum();
            let error = (seconds / published.seconds[*name] - 1.0) * 100.0;
            println!("# {name:26} {:8.2} ms  {error:+5.2} %", seconds * 1e3);
        }
        println!();
    }
}

/// How many of each of `TIMES`.
fn counts(walk: &Walk) -> [f64; 10] {
    TIMES.map(|time| match time {
        "command" => f64::from(walk.commands),
        "byte_to_card" => walk.bytes_to_card as f64,
        "byte_from_card" => walk.bytes_from_card as f64,
        "bench WRITE" => f64::from(walk.writes),
        work => f64::from(walk.work.get(work).copied().unwrap_or_default()),
    })
}

/// Non-negative least squares of `rows × times = 1` by coordinate descent: each time in turn is
/// set to its best value for the others as they are, or to zero. The sum of squares is convex, so
/// this ends at its least value.
fn fit(rows: &[[f64; 10]]) -> [f64; 10] {
    let mut times = [0.0; 10];
    let mut left = vec![1.0; rows.len()];
    for _ in 0..3_000_000 {
        for column in 0..times.len() {
            let norm: f64 = rows.iter().map(|row| row[column].powi(2)).sum();
            let slope: f64 = rows.iter().zip(&left).map(|(row, left)| row[column] * left).sum();
            let better = (times[column] + slope / norm).max(0.0);
            for (row, left) in rows.iter().zip(&mut left) {
                *left -= row[column] * (better - times[column]);
            }
            times[column] = better;
        }
    }
    times
}

/// To four digits: the figures have five at most.
fn rounded(us: f64) -> f64 {
    format!("{us:.3e}").parse().unwrap_or(us)
}

fn print(times: &[f64; 10]) {
    let value = |name: &str| times[TIMES.iter().position(|&time| time == name).unwrap_or(0)];
    let line = |name: &str, us: f64| {
        if us > 0.0 {
            println!("{name} = {{ us = {us}, from = \"derived\" }}");
        }
    };
    println!("[time]");
    for name in &TIMES[..3] {
        line(name, value(name));
    }
    if value("bench WRITE") > 0.0 {
        println!("\n[command]");
        line("\"bench WRITE\"", value("command") + value("bench WRITE"));
    }
    println!("\n[work]");
    for name in &TIMES[4..] {
        line(&format!("\"{name}\""), value(name));
    }
}
