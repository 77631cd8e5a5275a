//! What recording costs: the time, the memory and the disk space for 10 million samples and the
//! record that goes with them.
//!
//! `cargo bench -p tapstone-record` prints the figures. Run as a test it does the same with few
//! samples, to see that it works; it never judges a time.

use std::error::Error;
use std::time::{Duration, Instant};
use std::{env, fs, hint};

use hdrhistogram::Histogram;
use tapstone_files::Access;
use tapstone_measure::bucket::HIGHEST;
use tapstone_measure::units::Nanos;
use tapstone_record::samples::{Sample, SampleWriter};
use tapstone_record::{
    CaseResult, Concurrency, EncodedHistogram, Environment, Load, Record, SeriesPoint, Status,
    Target, TargetKind, Tool,
};
use tapstone_text::thousands;

const WORKERS: u32 = 32;
/// How many samples a worker hands over at a time.
const BATCH: usize = 8192;

fn main() -> Result<(), Box<dyn Error>> {
    let full = env::args().any(|argument| argument == "--bench");
    let samples = if full { 10_000_000 } else { 10_000 };
    let folder = tempfile::tempdir()?;
    let before = peak_mib()?;

    let path = folder.path().join("samples.parquet");
    let (histogram, took, longest) = write_samples(&path, samples)?;
    print("samples", samples, took, &path)?;
    println!("longest push of {BATCH}: {:.0} ms", longest.as_secs_f64() * 1e3);

    let path = folder.path().join("record.json");
    let start = Instant::now();
    record(&histogram)?.write(&path, Access::Everybody)?;
    print("record", 1, start.elapsed(), &path)?;

    println!("peak memory {} MiB, {before} MiB of it before", peak_mib()?);
    Ok(())
}

/// Returns the time inside the writer, and its longest stretch: making the samples is not counted.
fn write_samples(
    path: &std::path::Path,
    count: usize,
) -> Result<(Histogram<u64>, Duration, Duration), Box<dyn Error>> {
    let mut histogram = Histogram::new_with_bounds(1, HIGHEST.0, 3)?;
    let mut random = Random(1);
    let mut took = Duration::ZERO;
    let mut longest = Duration::ZERO;
    let mut clocks = [Nanos::ZERO; WORKERS as usize];
    let mut batch = Vec::with_capacity(BATCH);
    let mut writer = SampleWriter::create(path, &["rsa2048.sign", "ecdsa-p256.sign"])?;
    for number in 0..count.div_ceil(BATCH) {
        let worker = number % clocks.len();
        batch.clear();
        for _ in 0..BATCH.min(count - number * BATCH) {
            batch.push(sample(&mut random, worker, &mut clocks[worker]));
        }
        for sample in &batch {
            histogram.record(sample.duration.0)?;
        }
        let start = Instant::now();
        writer.push(&batch)?;
        took += start.elapsed();
        longest = longest.max(start.elapsed());
    }
    let start = Instant::now();
    let written = writer.finish()?;
    took += start.elapsed();
    assert_eq!(written, count as u64);
    Ok((histogram, took, longest))
}

/// Around 760 µs, with a long tail and a failure in a thousand: as an HSM might answer.
fn sample(random: &mut Random, worker: usize, clock: &mut Nanos) -> Sample {
    let noise = random.next();
    let tail = if noise.is_multiple_of(100) { noise % 5_000_000 } else { 0 };
    let sample = Sample {
        start: *clock,
        duration: Nanos(700_000 + noise % 120_000 + tail),
        worker: worker as u32,
        operation: (worker % 2) as u32,
        result: if noise.is_multiple_of(1000) { 0x30 } else { 0 },
    };
    *clock += sample.duration + Nanos(80 + noise % 16);
    sample
}

/// A record with one row and the longest series that there is.
fn record(histogram: &Histogram<u64>) -> Result<Record, Box<dyn Error>> {
    let mut row = CaseResult::new("rsa2048.sign", Status::OK, Concurrency::ONE, Load::CLOSED);
    row.completed = histogram.len();
    row.histogram = Some(EncodedHistogram::encode(histogram)?);
    row.series = (0..1024)
        .map(|slice| SeriesPoint {
            start_ns: Nanos::from_millis(slice),
            end_ns: Some(Nanos::from_millis(slice + 1)),
            completed: histogram.len() / 1024,
            failed: 0,
            p50_ns: Some(Nanos(histogram.value_at_quantile(0.5))),
            p99_ns: Some(Nanos(histogram.value_at_quantile(0.99))),
        })
        .collect();
    let tool = Tool { name: "tapstone".into(), version: env!("CARGO_PKG_VERSION").into() };
    let environment: Environment = serde_json::from_str(
        r#"{"cpu": "-", "cores": 1, "kernel": "-", "load": {}, "clock": {"step_ns": 1, "cost_ns": 20}}"#,
    )?;
    let started_at = "2026-01-01T00:00:00Z".parse()?;
    let mut record = Record::new(tool, started_at, environment, Target::new(TargetKind::Token));
    record.results.push(row);
    Ok(hint::black_box(record))
}

fn print(
    what: &str,
    count: usize,
    took: Duration,
    path: &std::path::Path,
) -> Result<(), Box<dyn Error>> {
    let bytes = fs::metadata(path)?.len();
    let count = thousands(count as u64);
    let bytes = thousands(bytes);
    println!("{what}: {count} in {:.3} s, {bytes} bytes", took.as_secs_f64());
    Ok(())
}

/// The most memory that this process has ever had resident (VmHWM).
fn peak_mib() -> Result<u64, Box<dyn Error>> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).ok_or("no VmHWM")?;
    let kib: u64 = line.split_whitespace().nth(1).ok_or("no number")?.parse()?;
    Ok(kib / 1024)
}

/// Xorshift64* (Marsaglia, Vigna): the same samples on every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 8
    }
}
