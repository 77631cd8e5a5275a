//! A traced program and its trials on a terminal.

use std::collections::BTreeMap;

use tapstone_measure::units::Nanos;
use tapstone_record::*;
use tapstone_report::terminal::{Style, render};
use tapstone_report::verdict;

use crate::support::{around, record, row};

const NARROW: Style = Style { width: 80, colour: false, unicode: true, verbose: false };
const WIDE: Style = Style { width: 120, ..NARROW };

const COMMAND: &[&str] = &[
    "tapstone",
    "trace",
    "--output",
    "trace.json",
    "--",
    "pkcs11-tool",
    "--list-objects",
    "--login",
    "--pin",
    "…",
];

/// `pkcs11-tool --list-objects` on a PIV card, as a trace records it.
pub(crate) fn traced() -> Record {
    let mut record = record();
    record.target = Target::new(TargetKind::Command);
    record.target.program =
        Some(Program { path: "/usr/bin/pkcs11-tool".into(), sha256: "00".repeat(32) });
    record.command = COMMAND.iter().map(|word| (*word).to_owned()).collect();
    record.command_time = Some(CommandTime {
        wall_ns: Nanos(98_300_000),
        user_ns: Nanos(41_000_000),
        system_ns: Nanos(12_500_000),
    });
    record.layers = layers();
    record.calls = calls();
    record.apdus = apdus();
    record.system_calls = system_calls();
    record.dropped = Some(0);
    record.findings = findings();
    record.results = vec![row("command", 0, 10.2, 98.0e6)];
    let rows = record.calls.iter().map(|call| row(&call.operation(), 0, 100.0, 1e6));
    record.results.extend(rows);
    record
}

fn layers() -> Vec<Layer> {
    let layer = |thread, layer: &str, time_ns, wall: f64| Layer {
        process: 4211,
        thread,
        layer: layer.into(),
        time_ns: Nanos(time_ns),
        share: Fraction(time_ns as f64 / wall),
    };
    vec![
        layer(4211, "below-pcsc", 52_400_000, 98e6),
        layer(4211, "pcsc", 31_100_000, 98e6),
        layer(4211, "pkcs11 opensc-pkcs11.so", 9_200_000, 98e6),
        layer(4211, "program", 5_250_000, 98e6),
        layer(4211, "lock", 50_000, 98e6),
        layer(4212, "pcsc", 9_600_000, 12e6),
        layer(4212, "program", 2_400_000, 12e6),
    ]
}

fn calls() -> Vec<Call> {
    let call = |module: &str, layer: &str, function: &str, count, total_ns, own_ns| Call {
        module: module.into(),
        layer: layer.into(),
        function: function.into(),
        count,
        per_operation: None,
        failed: BTreeMap::new(),
        total_ns: Nanos(total_ns),
        timed: None,
        self_ns: Nanos(own_ns),
        p50_ns: None,
        p99_ns: None,
        asked_again: None,
        asked_again_ns: None,
    };
    let opensc = "opensc-pkcs11.so";
    let client = "libpcsclite.so.1";
    let by_client = "libc, called by libpcsclite.so.1";
    let mut calls = vec![
        call(opensc, "pkcs11 opensc-pkcs11.so", "C_Initialize", 1, 12_300_000, 2_100_000),
        call(opensc, "pkcs11 opensc-pkcs11.so", "C_OpenSession", 1, 61_400_000, 3_900_000),
        call(opensc, "pkcs11 opensc-pkcs11.so", "C_Login", 1, 4_100_000, 410_000),
        call(client, "pcsc", "SCardTransmit", 21, 50_200_000, 1_900_000),
        call(client, "pcsc", "SCardGetStatusChange", 13, 22_700_000, 22_100_000),
        call(client, "pcsc", "SCardEndTransaction", 9, 5_900_000, 4_700_000),
        call(by_client, "libc", "poll", 31_204, 21_400_000, 21_400_000),
    ];
    calls[2].failed = BTreeMap::from([("CKR_PIN_INCORRECT".to_owned(), 1)]);
    let others = [
        "C_GetSlotList",
        "C_GetSlotInfo",
        "C_GetTokenInfo",
        "C_FindObjectsInit",
        "C_FindObjects",
        "C_FindObjectsFinal",
        "C_GetAttributeValue",
        "C_CloseSession",
        "C_Finalize",
        "C_GetInfo",
        "C_GetMechanismList",
    ];
    calls.extend(others.iter().enumerate().map(|(at, function)| {
        let time = 900_000 / (at as u64 + 1);
        call(opensc, "pkcs11 opensc-pkcs11.so", function, at as u64 + 1, time, time)
    }));
    calls
}

fn system_calls() -> Vec<SystemCall> {
    let call = |call: &str, object: Option<&str>, origin, count, time_ns| SystemCall {
        call: call.into(),
        object: object.map(Into::into),
        origin,
        stack: vec!["__open64 [libc.so.6]".into(), "main [pkcs11-tool]".into()],
        count,
        failed: BTreeMap::new(),
        time_ns: Nanos(time_ns),
    };
    let origin = |function: &str, module: &str, caller: Option<&str>| {
        let function = function.into();
        let module = module.into();
        Some(Origin { function, module, caller: caller.map(Into::into) })
    };
    let socket = Some("/run/pcscd/pcscd.comm");
    let transmit = origin("SCardTransmit", "libpcsclite.so.1", None);
    let list = origin("C_GetSlotList", "opensc-pkcs11.so", Some("list_slots"));
    let mut all = vec![
        call("recvfrom", socket, transmit.clone(), 82, 61_000_000),
        call("sendto", socket, transmit, 82, 1_300_000),
        // The same from another place below.
        call("openat", Some("/etc/opensc/opensc.conf"), list.clone(), 2, 40_000),
        call("openat", Some("/etc/opensc/opensc.conf"), list, 1, 20_000),
        call("clock_nanosleep", None, None, 1, 1_060_000),
    ];
    all[2].failed = BTreeMap::from([("ENOENT".to_owned(), 2)]);
    all
}

fn apdus() -> Vec<Apdu> {
    let apdu = |name: &str, object: Option<&str>, header: &str, count, repeats, time_ns| Apdu {
        name: name.into(),
        object: object.map(str::to_owned),
        header: header.into(),
        count,
        repeats,
        status: BTreeMap::from([("9000".to_owned(), count)]),
        time_ns: Nanos(time_ns),
        sent_bytes: 11 * count,
        received_bytes: 61 * count,
    };
    let certificate = Some("X.509 Certificate for PIV Authentication (9A)");
    let mut apdus = vec![
        apdu("SELECT", Some("PIV A000000308000010000100"), "00A40400", 3, 2, 4_400_000),
        apdu("GET DATA", Some("Discovery Object"), "00CB3FFF", 7, 6, 9_100_000),
        apdu("GET DATA", certificate, "00CB3FFF", 2, 0, 3_300_000),
        apdu("GET RESPONSE", certificate, "00C00000", 5, 0, 14_100_000),
        apdu("VERIFY", Some("PIV Card Application PIN"), "00200080", 1, 0, 3_700_000),
        apdu("READ BINARY", Some("file 5031"), "00B00000", 1, 0, 1_000_000),
        apdu("READ BINARY", Some("file 5031"), "00B00100", 1, 0, 1_500_000),
        apdu("GET CHALLENGE", None, "00840000", 1, 0, 800_000),
    ];
    apdus[0].status = BTreeMap::from([("6A82".to_owned(), 1), ("9000".to_owned(), 2)]);
    apdus[3].status = BTreeMap::from([("6100".to_owned(), 4), ("9000".to_owned(), 1)]);
    apdus[4].status = BTreeMap::from([("63C2".to_owned(), 1)]);
    apdus
}

fn site(function: &str, source: Option<&str>) -> CallSite {
    CallSite {
        module: "reader".into(),
        function: Some(function.into()),
        source: source.map(str::to_owned),
        offset: 17,
    }
}

fn findings() -> Vec<Finding> {
    vec![
        Finding {
            kind: FindingKind::BusyWait,
            place: "SCardGetStatusChange".into(),
            layer: "pcsc".into(),
            per_operation: 13.0,
            count: 13,
            time_ns: Nanos(21_400_000),
            share: Fraction(0.218),
            evidence: vec![
                "Inside 13 of 13 calls poll was asked 31,204 times with nothing ready, between \
                 31,190 readings of the clock."
                    .into(),
            ],
            saving: Some(Range { low: 19.9e6, high: 21.4e6 }),
            trial: Some("no-busy-wait:SCardGetStatusChange".into()),
            advice: None,
            callers: vec![CallPath {
                calls: 3,
                sites: vec![site("wait_for_card", Some("src/reader.c:88")), site("main", None)],
            }],
        },
        Finding {
            kind: FindingKind::RepeatedCommand,
            place: "GET DATA Discovery Object".into(),
            layer: "below-pcsc".into(),
            per_operation: 1.5,
            count: 6,
            time_ns: Nanos(7_800_000),
            share: Fraction(0.079),
            evidence: vec![
                "Nothing was written in between.".into(),
                "All answers are the same.".into(),
            ],
            saving: None,
            trial: None,
            advice: Some("keep the object as long as the card is there".into()),
            callers: Vec::new(),
        },
    ]
}

fn trials() -> Vec<Trial> {
    let trial = |fix: &str, before: f64, after: f64, verdict| Trial {
        fix: fix.into(),
        before_ns: around(before, 0.015),
        after_ns: around(after, 0.01),
        processor_ns: Some(BeforeAfter { before: around(41e6, 0.01), after: around(20e6, 0.01) }),
        user_ns: Some(BeforeAfter { before: around(29e6, 0.05), after: around(13e6, 0.05) }),
        system_ns: Some(BeforeAfter { before: around(12e6, 0.05), after: around(7e6, 0.05) }),
        speedup: around(before / after, 0.02),
        predicted: Some(Range { low: 60e6, high: 70e6 }),
        rounds: 20,
        seed: Some(1),
        verdict,
        changed: Some(220),
        unobserved_ns: Some(around(before / 1.012, 0.015)),
        behaviour: Behaviour::Same,
        unstable_places: 0,
        differences: vec![],
        notes: vec![],
    };
    let mut unsafe_one = trial("cache-apdu", 98.5e6, 20.1e6, Change::Faster);
    unsafe_one.behaviour = Behaviour::Differs;
    unsafe_one.unstable_places = 12;
    unsafe_one.user_ns = None;
    unsafe_one.system_ns = None;
    unsafe_one.differences =
        (1..9).map(|at| format!("standard output, line {at}: another address")).collect();
    let mut nothing = trial("tcp-nodelay", 98.5e6, 99.0e6, Change::Inconclusive);
    nothing.behaviour = Behaviour::NotComparable;
    nothing.unstable_places = 1;
    nothing.unobserved_ns = None;
    nothing.processor_ns = None;
    nothing.user_ns = None;
    nothing.system_ns = None;
    nothing.predicted = None;
    nothing.changed = Some(0);
    nothing.notes =
        vec!["tcp-nodelay never applied: the program makes no call that it changes".into()];
    vec![trial("no-sleep:SCardEndTransaction", 98.5e6, 30.2e6, Change::Faster), unsafe_one, nothing]
}

/// What `tapstone trial` writes.
pub(crate) fn tried() -> Record {
    let mut record = traced();
    record.layers = vec![];
    record.calls = vec![];
    record.apdus = vec![];
    record.findings = vec![];
    record.dropped = None;
    record.command_time = None;
    record.system_calls = vec![];
    record.results = vec![
        row("command, untouched", 0, 10.2, 98e6),
        row("command, probe, with x", 0, 30.0, 30e6),
    ];
    record.trials = trials();
    record
}

#[test]
fn a_trace() {
    insta::assert_snapshot!("trace_80", render(&traced(), &NARROW));
    insta::assert_snapshot!("trace_120", render(&traced(), &WIDE));
}

#[test]
fn a_trace_in_ascii_and_in_colour() {
    let plain = render(&traced(), &Style { unicode: false, ..NARROW });
    assert!(plain.is_ascii());
    insta::assert_snapshot!("trace_80_ascii", plain);
    let coloured = render(&traced(), &Style { colour: true, ..WIDE });
    insta::assert_snapshot!("trace_120_colour", coloured.replace('\x1b', "^"));
}

#[test]
fn a_mean_is_of_the_calls_whose_time_is_known() {
    let mut record = traced();
    record.calls.truncate(1);
    record.calls[0] = Call { count: 20_000, timed: Some(100), ..record.calls[0].clone() };
    let text = render(&record, &WIDE);
    // 12.3 ms of 100 calls.
    assert!(text.contains("20,000") && text.contains("123 µs"), "{text}");
}

/// Of exchanges that were only counted nobody knows what was sent.
#[test]
fn exchanges_are_those_that_were_listed() {
    let mut record = traced();
    let exchanges: u64 = record.apdus.iter().map(|apdu| apdu.count).sum();
    let transmit = record.calls.iter_mut().find(|call| call.function == "SCardTransmit").unwrap();
    transmit.count = exchanges + 1_000;
    let says =
        format!("{exchanges} of {} exchanges in", tapstone_text::thousands(exchanges + 1_000));
    let text = render(&record, &WIDE);
    assert!(text.contains(&says), "{text}");
}

#[test]
fn trials_and_what_became_of_them() {
    insta::assert_snapshot!("trials_80", render(&tried(), &NARROW));
    insta::assert_snapshot!("trials_120", render(&tried(), &WIDE));
}

#[test]
fn all_lines_are_there_when_asked_for() {
    let brief = render(&traced(), &WIDE);
    let all = render(&traced(), &Style { verbose: true, ..WIDE });
    assert!(brief.contains("and 3 more") && !brief.contains("C_GetMechanismList"), "{brief}");
    assert!(all.contains("C_GetMechanismList") && !all.contains("more: --verbose"), "{all}");
    let all = render(&tried(), &Style { verbose: true, ..WIDE });
    assert!(all.contains("line 8: another address"), "{all}");
}

#[test]
fn a_program_that_wastes_nothing_is_told_so() {
    let mut record = traced();
    record.findings.clear();
    assert!(render(&record, &NARROW).contains("Found nothing"));
    assert!(!render(&tried(), &NARROW).contains("Found nothing"));
    record.trials.clear();
    let search = WasteSearch { looked_for: vec![FindingKind::Sleep], unseen: Vec::new() };
    record.search = Some(search);
    assert_eq!(verdict::sentences(&record), ["Found nothing of what was looked for."]);
    record.search.as_mut().unwrap().unseen.push("2 calls had to be dropped".to_owned());
    assert_eq!(verdict::sentences(&record), ["Found nothing in what was seen, which is not all."]);
    // Watched from outside, where less is seen, less is said.
    record.command_time = None;
    record.results.retain(|case| case.operation != "command");
    let outside = render(&record, &NARROW);
    assert!(outside.contains("Found nothing in what was watched"), "{outside}");
    assert!(!outside.contains("no busy wait"), "{outside}");
}

#[test]
fn a_trace_that_is_not_whole_says_so() {
    let mut record = traced();
    record.dropped = Some(1_234);
    assert!(render(&record, &WIDE).contains("! 1,234 events found no room"));
}

#[test]
fn each_row_is_told_once() {
    let text = render(&traced(), &WIDE);
    assert_eq!(text.matches("C_OpenSession").count(), 1, "{text}");
    assert!(!text.contains("/s"), "a command that ran once has no rate: {text}");
    // One of an operation is told by nothing else.
    let mut record = traced();
    record.results.push(row("C_Sign", 32, 1_602.4, 2.49e6));
    assert!(render(&record, &WIDE).contains("1,602/s"));
}
