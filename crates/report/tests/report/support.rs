//! Records as the verbs would write them. All figures are made up.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use jiff::Timestamp;
use tapstone_measure::units::{Nanos, PerSecond};
use tapstone_record::*;

pub(crate) const FOUR: Concurrency = Concurrency { threads: 4, processes: 1, hosts: 1 };

/// A record of a token, still without results.
pub(crate) fn record() -> Record {
    let environment = Environment {
        cpu: Some("Example CPU @ 2.10GHz".into()),
        cores: Some(8),
        kernel: Some("Linux 6.12.48".into()),
        load: SystemLoad::default(),
        clock: Some(ClockPrecision { step_ns: Nanos(1), cost_ns: 21.5 }),
        os: None,
        memory_bytes: None,
        cgroup_quota_cores: None,
        governor: None,
        virtualisation: None,
    };
    let tool = Tool { name: "tapstone".into(), version: "0.1.0".into() };
    let started_at: Timestamp = "2026-01-15T09:30:00Z".parse().unwrap();
    let mut record = Record::new(tool, started_at, environment, Target::new(TargetKind::Token));
    record.command = vec!["tapstone".into(), "token".into(), "--pin".into(), "471147".into()];
    record.target.module =
        Some(Module { path: "/usr/lib/example/libexample.so".into(), sha256: "00".repeat(32) });
    record.target.library = Some(Library {
        description: "Example PKCS#11".into(),
        version: "2.4".into(),
        manufacturer: "Example Ltd".into(),
        cryptoki_version: "2.40".into(),
    });
    record.target.tokens = vec![token("hsm-a", "0000")];
    record
}

pub(crate) fn token(label: &str, serial: &str) -> Token {
    Token {
        slot: Slot { id: 0, description: "Example slot".into() },
        label: label.into(),
        manufacturer: "Example Ltd".into(),
        model: "Model 1".into(),
        serial: serial.into(),
        firmware_version: "3.1".into(),
        hardware_version: "1.0".into(),
        flags: vec!["CKF_LOGIN_REQUIRED".into()],
    }
}

pub(crate) fn around(estimate: f64, part: f64) -> Estimate {
    Estimate { estimate, low: estimate * (1.0 - part), high: estimate * (1.0 + part) }
}

/// A case of a closed loop of four threads, of this rate and this median, with a skewed spread.
pub(crate) fn row(operation: &str, bytes: u64, rate: f64, median: f64) -> CaseResult {
    let mut row = CaseResult::new(operation, Status::OK, FOUR, Load::CLOSED);
    let end_ns = Nanos::from_secs(10);
    row.message_bytes = Some(bytes);
    row.window = Some(Window { start_ns: Nanos(0), end_ns, seconds: Seconds(10.0) });
    row.completed = (rate * 10.0) as u64;
    let Estimate { estimate, low, high } = around(rate, 0.008);
    let unit = RateUnit::OperationsPerSecond;
    let over = RateBasis::Window;
    row.throughput = Some(Throughput { estimate, low, high, unit, over });
    let quantile = |times: f64| Some(around(median * times, 0.004));
    row.latency_ns = Some(Latency {
        mean: quantile(1.03),
        p50: quantile(1.0),
        p90: quantile(1.116),
        p95: quantile(1.159),
        p99: Some(Estimate { estimate: median * 1.258, low: median * 1.24, high: median * 1.34 }),
        p99_9: (row.completed > 20_000).then(|| around(median * 1.41, 0.05)),
        min: Nanos((median * 0.708) as u64),
        max: Nanos((median * 4.4) as u64),
    });
    row.histogram = Some(histogram(median, row.completed));
    let by = Verifier::Software;
    let eligible = row.completed;
    let checked = row.completed.min(20_000);
    row.verification = Some(Verification::new(eligible, checked, 0, by));
    row.limited_by = LimitedBy::Device;
    row.limit = Some(limit(LimitedBy::Device, "more threads bring ×1.00 [0.98, 1.01]"));
    row.client_cpu = Some(cpu(0.02));
    row.stopped_by = Some(StoppedBy::Time);
    row.interval = Some(Interval {
        n: 32,
        method: "batch means, Student's t".into(),
        level: Fraction(0.95),
        reliable: true,
        autocorrelation: Some(0.08),
        variation: Some(Variation::Window),
    });
    row
}

fn cpu(utilisation: f64) -> ClientCpu {
    ClientCpu {
        user_seconds: Seconds(30.0 * utilisation),
        system_seconds: Seconds(10.0 * utilisation),
        utilisation: Fraction(utilisation),
    }
}

/// A logistic spread around the median on a logarithmic scale, and one outlier.
fn histogram(median: f64, completed: u64) -> EncodedHistogram {
    let mut histogram = Histogram::new_with_bounds(1, 1 << 42, 3).unwrap();
    for permille in 1..1000 {
        let odds = f64::from(permille) / f64::from(1000 - permille);
        let value = (median * odds.powf(0.05)) as u64;
        histogram.record_n(value, completed / 1000).unwrap();
    }
    histogram.record((median * 4.4) as u64).unwrap();
    EncodedHistogram::encode(&histogram).unwrap()
}

/// What `tapstone token` leaves behind: cases of every kind.
pub(crate) fn suite() -> Record {
    let mut record = record();
    let mut generate = row("rsa2048.generate", 0, 2.31, 1.71e9);
    generate.latency_ns = generate.latency_ns.map(|of| Latency { p99: None, ..of });
    generate.throughput =
        generate.throughput.map(|of| Throughput { low: 1.62, over: RateBasis::FirstToLast, ..of });
    generate.verification = None;
    let mut partial = row("rsa4096.sign", 32, 318.2, 12.55e6);
    partial.status = Status::at(Outcome::Partial, "C_Sign", "CKR_DEVICE_ERROR");
    partial.failed = BTreeMap::from([
        ("CKR_DEVICE_ERROR".to_owned(), 17),
        ("CKR_FUNCTION_FAILED".to_owned(), 3),
    ]);
    let mut client = row("aes256-gcm.encrypt", 1024, 181_204.0, 21_900.0);
    client.limited_by = LimitedBy::Client;
    client.limit = Some(limit(LimitedBy::Client, "the measuring processes used all processors"));
    client.interval = client.interval.map(|of| Interval { reliable: false, ..of });
    let mut wrong = row("aes128-cbc.encrypt", 1024, 39_353.0, 101_200.0);
    wrong.verification = wrong.verification.map(|of| Verification { wrong: 3, ..of });
    let mut by_token = row("hmac-sha256.sign", 1024, 9_870.0, 402_000.0);
    by_token.verification = by_token.verification.map(|of| Verification {
        by: Verifier::Token,
        checked: of.eligible,
        ..of
    });
    let missing = Status::at(Outcome::Unsupported, "C_SignInit", "CKR_MECHANISM_INVALID");
    let failed = Status::at(Outcome::Failed, "C_GenerateKeyPair", "CKR_DEVICE_MEMORY");
    record.results = vec![
        row("rsa2048.sign", 32, 1_602.4, 2.49e6),
        row("rsa2048.decrypt.oaep", 32, 1_588.0, 2.51e6),
        generate,
        partial,
        row("ecdsa-p256.sign", 32, 4_110.0, 971_000.0),
        CaseResult::new("ed25519.sign", missing, FOUR, Load::CLOSED),
        CaseResult::new("ml-dsa-65.sign", failed, FOUR, Load::CLOSED),
        client,
        wrong,
        by_token,
    ];
    record.results[0]
        .warnings
        .push("slow start: the first 4 calls took 3.1 times the median".into());
    record.warnings.push("other processes used 0.4 cores during the run".into());
    record
}

/// A single case with all that a closed loop records.
pub(crate) fn single() -> Record {
    let mut record = record();
    record.target.tokens.push(token("hsm-b", "0001"));
    let mut row = row("rsa2048.sign", 32, 1_602.4, 2.49e6);
    row.mechanism = Some(Mechanism {
        name: "CKM_RSA_PKCS".into(),
        parameters: Some("SHA-256 DigestInfo".into()),
        hardware: Some(true),
    });
    row.key = Some(Key {
        token: Some(true),
        sensitive: Some(true),
        extractable: Some(false),
        count: 1,
        label: Some("signing".into()),
    });
    row.warm_up = Some(WarmUp {
        operations: 480,
        seconds: Seconds(0.301),
        first_ns: vec![Nanos(7_700_000); 4],
        ratio_to_median: Some(3.1),
    });
    row.series = (0..100).map(slice).collect();
    row.phases = vec![
        Phase::new("C_SignInit".into(), 4_113.2, Fraction(0.002)),
        Phase::new("C_Sign".into(), 2.56e6, Fraction(0.998)),
    ];
    let share = |name: &str, completed, share| Share {
        mean_ns: None,
        longest_ns: None,
        client_utilisation: None,
        kind: ShareKind::Token,
        name: name.into(),
        completed,
        rate: PerSecond(completed as f64 / 10.0),
        share: Fraction(share),
    };
    row.shares = vec![share("hsm-a", 8_076, 0.504), share("hsm-b", 7_948, 0.496)];
    row.outages = vec![Outage {
        start_ns: Nanos::from_millis(6_100),
        length_ns: Nanos::from_millis(180),
        code: "CKR_DEVICE_REMOVED".into(),
    }];
    row.failed = BTreeMap::from([("CKR_DEVICE_REMOVED".to_owned(), 4)]);
    row.status = Status::at(Outcome::Partial, "C_Sign", "CKR_DEVICE_REMOVED");
    row.busy_share = Some(Fraction(0.9984));
    row.client_cpu = Some(cpu(0.0208));
    row.warnings.push(
        "calls in the last fifth took 1.043 times (95 % interval 1.021 to 1.066) as long as in the \
         first: look for throttling by heat"
            .into(),
    );
    record.results = vec![row];
    record
}

/// A slice of 100 ms that slows down towards the end, with a pause in slice 61.
fn slice(number: u64) -> SeriesPoint {
    let pause = number == 61;
    SeriesPoint {
        start_ns: Nanos::from_millis(100 * number),
        end_ns: Some(Nanos::from_millis(100 * (number + 1))),
        completed: if pause { 20 } else { 165 - number / 12 },
        failed: if pause { 4 } else { 0 },
        p50_ns: Some(Nanos(2_450_000 + 1_000 * number)),
        p99_ns: None,
    }
}

/// A load from three machines, of which one is its own limit, one was lost and one was not there.
pub(crate) fn hosts() -> Record {
    let mut record = single();
    let environment = record.environment.clone();
    let host = |name: &str, state, lost: Option<&str>| Host {
        name: name.into(),
        agent: "5e0c8a3b91d2f647".into(),
        version: "0.1.0".into(),
        state,
        reason: lost.map(Into::into),
        environment: Some(environment.clone()),
        clock: Some(HostClock {
            offset_ns: 1_210_034_187_512,
            bound_ns: Nanos(184_020),
            round_trip_ns: Nanos(361_770),
        }),
        window: None,
    };
    record.hosts = vec![
        host("client-1", HostState::Done, None),
        host("client-2", HostState::Lost, Some("nothing was heard of it for 10 s")),
        Host {
            environment: None,
            clock: None,
            ..host("client-3", HostState::Refused, Some("is busy with lab (process 4711)"))
        },
    ];
    let row = &mut record.results[0];
    row.concurrency = Concurrency { threads: 4, processes: 1, hosts: 2 };
    let share = |name: &str, completed, rate, share, used| Share {
        kind: ShareKind::Host,
        name: name.into(),
        completed,
        rate: PerSecond(rate),
        share: Fraction(share),
        mean_ns: None,
        longest_ns: None,
        client_utilisation: Some(Fraction(used)),
    };
    row.shares = vec![
        share("client-1", 8_000, 801.2, 0.5, 0.31),
        share("client-2", 8_000, 801.2, 0.5, 0.953),
    ];
    record
}

/// An open loop that could not keep up, on an emulated token.
pub(crate) fn open_loop() -> Record {
    let mut record = record();
    record.target.emulated =
        Some(Emulated { profile: "slow-usb-token".into(), sha256: "00".repeat(32) });
    let mut row = row("ecdsa-p256.sign", 32, 871.3, 31.2e6);
    row.load = Load::open(PerSecond(1000.0));
    row.offered_rate = Some(PerSecond(1000.0));
    row.achieved_rate = Some(PerSecond(872.1));
    row.scheduling_delay_ns = Some(SchedulingDelay {
        mean: Some(Nanos(3_100)),
        p50: Some(Nanos(2_100)),
        p99: Some(Nanos(21_000)),
        max: Nanos(64_000),
        ..SchedulingDelay::default()
    });
    record.results = vec![row];
    record
}

/// Two operations mixed, and one on its own, in an order that is not that of the table.
pub(crate) fn mix() -> Record {
    let mut record = record();
    let mut alone = row("rsa2048.sign", 32, 1_602.4, 2.49e6);
    alone.window = alone.window.map(|window| Window { start_ns: Nanos(1), ..window });
    let whole = CaseResult {
        message_bytes: None,
        verification: None,
        client_cpu: Some(cpu(0.04)),
        ..row("mix", 0, 3_603.0, 1.1e6)
    };
    let part = |operation: &str, rate, median| CaseResult {
        limited_by: LimitedBy::Unknown,
        client_cpu: None,
        ..row(operation, 32, rate, median)
    };
    let (rsa, ecdsa) =
        (part("rsa2048.sign", 1_201.0, 2.61e6), part("ecdsa-p256.sign", 2_402.0, 980_000.0));
    record.results = vec![rsa, whole, ecdsa, alone];
    record
}

pub(crate) fn limit(limited_by: LimitedBy, why: &str) -> LimitEvidence {
    LimitEvidence { limited_by, why: why.into(), ..LimitEvidence::default() }
}

/// A knee with the law, and claims of every verdict.
pub(crate) fn knee() -> Record {
    let mut record = record();
    let rates = [(1, 402.1), (2, 801.5), (4, 1_602.4), (8, 1_698.0), (16, 1_711.0), (32, 1_699.0)];
    let at = |threads| Concurrency { threads, ..Concurrency::ONE };
    record.results = rates
        .iter()
        .map(|(threads, rate)| CaseResult {
            concurrency: at(*threads),
            ..row("rsa2048.sign", 32, *rate, f64::from(*threads) * 1e9 / rate)
        })
        .collect();
    let level = |(threads, rate): &(u32, f64)| {
        let Concurrency { threads, processes, hosts } = at(*threads);
        Level { threads, processes, hosts, rate: around(*rate, 0.011).into(), passes: 5 }
    };
    record.knee = Some(Knee {
        operation: "rsa2048.sign".into(),
        levels: rates.iter().map(level).collect(),
        concurrency: Some(at(8)),
        below: Some(at(4)),
        plateau: Some(around(1_711.0, 0.011)),
        law: Some(ScalabilityLaw {
            lambda: 415.0,
            sigma: 0.11,
            kappa: 0.0009,
            peak_concurrency: Some(31.4),
            peak_rate: Some(PerSecond(1_720.0)),
            misfit: Some(Fraction(0.062)),
        }),
        stopped_by: KneeStop::Plateau,
        limit: Some(limit(LimitedBy::Device, "more threads bring ×1.00 [0.98, 1.01]")),
        process_limit: None,
    });
    record.claims = claims();
    record
}

fn claims() -> Vec<Claim> {
    let claim = |text: &str, verdict, measured, arithmetic: &str, judged| Claim {
        text: text.into(),
        operation: "rsa2048.sign".into(),
        verdict,
        measured,
        arithmetic: arithmetic.into(),
        judged,
        rounds: Vec::new(),
    };
    let interval = Judged::Interval;
    vec![
        claim(
            "rsa2048.sign >= 1500/s",
            Verdict::Met,
            Some(around(1_711.0, 0.011)),
            "1,500/s as claimed; met: 1,711/s is 114.1 % of the claimed 1,500/s (95 % interval \
             1,692/s to 1,730/s)",
            interval,
        ),
        claim(
            "rsa2048.sign p99 <= 5ms",
            Verdict::Missed,
            Some(around(6.23, 0.02)),
            "6.23 ms is 124.6 % of the claimed p99 of 5.00 ms.",
            interval,
        ),
        claim(
            "rsa2048.sign >= 1,740,000 exponentiations/s",
            Verdict::Undecided,
            Some(around(1_752_064.0, 0.011)),
            "1,740,000 exponentiations/s / (2048 bits / 2 = 1024 for each operation) = 1,699/s.",
            interval,
        ),
        claim(
            "rsa2048.sign >= 1600/s",
            Verdict::Met,
            Some(around(1_711.0, 0.0)),
            "",
            Judged::Point,
        ),
        claim("rsa3072.sign >= 500/s", Verdict::Undecided, None, "Not measured.", interval),
    ]
}

/// Escape sequences, marks of direction and line breaks wherever a device or a user can put them.
pub(crate) fn hostile() -> Record {
    let evil = "\x1b[2J\x1b[31mFAKE\r\n\u{9b}1A\u{202e}kcart\u{200b}\x07";
    let mut record = single();
    record.target.tokens[0].label = evil.into();
    record.target.tokens[0].model = format!("{evil}{}", "wide 鍵 ".repeat(30));
    record.target.module = Some(Module { path: format!("/lib/{evil}"), sha256: String::new() });
    record.target.emulated = Some(Emulated { profile: evil.into(), sha256: String::new() });
    let row = &mut record.results[0];
    row.operation = evil.into();
    row.status = Status::at(Outcome::Partial, evil, evil);
    row.failed = BTreeMap::from([(evil.to_owned(), 1)]);
    row.shares[0].name = evil.into();
    row.phases[0].call = evil.into();
    row.outages[0].code = evil.into();
    row.warnings = vec![evil.into()];
    record.claims = claims();
    record.claims[0].text = evil.into();
    record.warnings = vec![evil.into()];
    record
}
