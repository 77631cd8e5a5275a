//! `--samples`: every single operation, beside the record that sums them up.

use std::fs::File;
use std::path::Path;

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor;

use crate::support::{Outcome, Tapstone};

struct Sample {
    start_ns: u64,
    duration_ns: u64,
    worker: i32,
    operation: String,
    result: i64,
}

impl Sample {
    fn end_ns(&self) -> u64 {
        self.start_ns + self.duration_ns
    }
}

fn read(path: &Path) -> Vec<Sample> {
    let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    let rows = reader.get_row_iter(None).unwrap().map(|row| {
        let row = row.unwrap();
        Sample {
            start_ns: row.get_long(0).unwrap() as u64,
            duration_ns: row.get_long(1).unwrap() as u64,
            worker: row.get_int(2).unwrap(),
            operation: row.get_string(3).unwrap().clone(),
            result: row.get_long(4).unwrap(),
        }
    });
    rows.collect()
}

fn run_with_samples(variables: &[(&str, &str)], arguments: &str) -> (Outcome, Vec<Sample>) {
    let run = Tapstone::on(variables).args("--no-verify").args(arguments);
    let path = run.path("samples.parquet");
    let outcome = run.arg("--samples").arg(&path).run();
    let samples = read(&path);
    (outcome, samples)
}

#[test]
fn every_operation_of_the_record_is_a_row() {
    let model = [("SERVICE", "300us"), ("WAIT", "sleep"), ("FAIL", "CKR_DATA_INVALID/11")];
    let (outcome, samples) = run_with_samples(&model, "--op rsa1024.sign --threads 3 --seconds 1");
    let outcome = outcome.exits(2).record();
    let row = outcome_row(&samples);
    let measured = &outcome.results[0];
    let failed: u64 = measured.failed.values().sum();
    assert!(failed > 0 && measured.completed > 1000, "{}", measured.completed);
    assert_eq!(outcome.samples.as_ref().unwrap().count, samples.len() as u64);
    assert_eq!(row.failed, failed);
    assert_eq!(row.completed, measured.completed);
    let latency = measured.latency_ns.unwrap();
    assert_eq!((row.shortest, row.longest), (latency.min.0, latency.max.0));
    let window = measured.window.unwrap();
    for sample in &samples {
        assert!((window.start_ns.0..window.end_ns.0).contains(&sample.end_ns()));
        assert_eq!(sample.operation, "rsa1024.sign");
        assert!((0..3).contains(&sample.worker), "{}", sample.worker);
    }
}

/// The same figures from the samples.
struct Sums {
    completed: u64,
    failed: u64,
    shortest: u64,
    longest: u64,
}

fn outcome_row(samples: &[Sample]) -> Sums {
    let durations = || samples.iter().filter(|it| it.result == 0).map(|it| it.duration_ns);
    Sums {
        completed: durations().count() as u64,
        failed: samples.iter().filter(|it| it.result == 0x20).count() as u64,
        shortest: durations().min().unwrap(),
        longest: durations().max().unwrap(),
    }
}

#[test]
fn processes_and_operations_are_told_apart() {
    let model = [("SERVICE", "300us"), ("WAIT", "sleep")];
    let load = "--mix rsa1024.sign=50,sha256.digest=50 --processes 2 --threads 2 --seconds 0.5";
    let (outcome, samples) = run_with_samples(&model, load);
    let record = outcome.exits(0).record();
    for row in &record.results[1..] {
        let count = samples.iter().filter(|sample| sample.operation == row.operation).count();
        assert_eq!(count as u64, row.completed, "{}", row.operation);
    }
    let mut workers: Vec<i32> = samples.iter().map(|sample| sample.worker).collect();
    workers.sort_unstable();
    workers.dedup();
    assert_eq!(workers, [0, 1, 2, 3]);
}

#[test]
fn an_open_loops_samples_count_from_the_intended_start() {
    let model = [("SERVICE", "100us"), ("STALL", "20ms/200")];
    let (outcome, samples) = run_with_samples(&model, "--op rsa1024.sign --rate 500 --seconds 1");
    let row = outcome.exits(0).row();
    assert_eq!(samples.len() as u64, row.completed);
    let mut starts: Vec<u64> = samples.iter().map(|sample| sample.start_ns).collect();
    starts.sort_unstable();
    // 2 ms apart, whatever the device did.
    assert!(starts.windows(2).all(|pair| (pair[1] - pair[0]).abs_diff(2_000_000) <= 1));
}
