//! Two records against one another: which figures meet, and what is said of them.
#![allow(clippy::unwrap_used, reason = "tests; clippy.toml reaches only functions marked as such")]

use serde_json::{Value, json};
use tapstone_compare::{
    CompareError, NamedRecord, compare_records, compare_with_reference, side_by_side,
};
use tapstone_measure::compare::Percent;
use tapstone_record::{
    Change, Comparison, Judgement, NoNumber, Provenance, Quantity, Record, Variation,
};
use tapstone_reference::{load, names};

/// A case in a closed loop of one worker, with a rate and its interval of this part to both sides.
fn case(operation: &str, rate: f64, part: f64) -> Value {
    json!({
        "operation": operation, "status": {"outcome": "ok"},
        "concurrency": {"threads": 1, "processes": 1, "hosts": 1}, "load": {"kind": "closed"},
        "completed": 1000,
        "throughput": {
            "estimate": rate, "low": rate * (1.0 - part), "high": rate * (1.0 + part),
            "unit": "operations/s",
        },
        "latency_ns": {
            "mean": {
                "estimate": 1e9 / rate,
                "low": 1e9 / rate * (1.0 - part), "high": 1e9 / rate * (1.0 + part),
            },
            "min": 1, "max": 1_000_000_000,
        },
    })
}

/// The same with some fields in another way.
fn with(mut case: Value, fields: Value) -> Value {
    case.as_object_mut().unwrap().append(&mut fields.as_object().unwrap().clone());
    case
}

fn record(kind: &str, cases: &[Value]) -> Record {
    let record = json!({
        "schema": "tapstone.record/2", "tool": {"name": "tapstone", "version": "0.1.0"},
        "command": [], "started_at": "2026-01-15T09:30:00Z", "environment": {"load": {}},
        "target": {"kind": kind}, "results": cases,
    });
    Record::from_json(&record.to_string(), "a test").unwrap()
}

fn named<'a>(record: &'a Record, path: &'a str) -> NamedRecord<'a> {
    NamedRecord { record, path, sha256: "00" }
}

fn compared(
    baseline: &Record,
    candidate: &Record,
    fail_above: Option<f64>,
) -> Result<Comparison, CompareError> {
    let baseline = named(baseline, "old.json");
    compare_records(baseline, named(candidate, "new.json"), fail_above.map(Percent))
}

/// A token whose rate was 100/s against one with this rate, both within 1 %.
fn token(rate: f64, fail_above: Option<f64>) -> Comparison {
    let baseline = record("token", &[case("rsa2048.sign", 100.0, 0.01)]);
    let candidate = record("token", &[case("rsa2048.sign", rate, 0.01)]);
    compared(&baseline, &candidate, fail_above).unwrap()
}

#[test]
fn tokens_are_compared_by_their_rate() {
    let faster = token(120.0, None);
    let [row] = &faster.cases[..] else { panic!("{faster:?}") };
    assert_eq!((row.quantity, row.verdict), (Quantity::Throughput, Change::Faster));
    assert_eq!((row.baseline.estimate, row.candidate.estimate), (100.0, 120.0));
    assert!((row.ratio.estimate - 1.2).abs() < 1e-12, "{:?}", row.ratio);
    assert_eq!((row.threshold, row.more_samples, faster.threshold), (None, None, None));
    assert_eq!(token(90.0, None).cases[0].verdict, Change::Slower);
    let open = token(100.5, None);
    assert_eq!(open.cases[0].verdict, Change::Inconclusive);
    // The interval reaches 1.42 % down, and the estimate is 0.5 % above 1: some eight times the
    // samples would narrow it as far, and 22 times decide nine times of ten.
    assert!((19_000..23_000).contains(&open.cases[0].more_samples.unwrap()), "{open:?}");
    assert_eq!(open.cases[0].no_number, None);
    let on_the_limit = token(100.0, None);
    assert_eq!(on_the_limit.cases[0].more_samples, None);
    assert_eq!(on_the_limit.cases[0].no_number, Some(NoNumber::OnTheLimit));
}

#[test]
fn figures_without_a_spread_are_equal_or_decided() {
    let exact = |rate| {
        let [baseline, candidate] =
            [100.0, rate].map(|rate| record("token", &[case("x", rate, 0.0)]));
        compared(&baseline, &candidate, None).unwrap().cases.remove(0)
    };
    let decided = exact(120.0);
    assert_eq!((decided.verdict, decided.no_number), (Change::Faster, None));
    let equal = exact(100.0);
    assert_eq!(equal.verdict, Change::Inconclusive);
    assert_eq!(equal.no_number, Some(NoNumber::NothingToRepeat));
}

#[test]
fn what_is_decided_by_a_hair_asks_for_no_more_samples() {
    // The interval ends just above 1: as many samples again would decide it nine times of ten.
    let decided = token(101.6, None);
    assert_eq!(decided.cases[0].verdict, Change::Faster);
    assert_eq!((decided.cases[0].more_samples, decided.cases[0].no_number), (None, None));
}

#[test]
fn a_row_holds_the_variation_between_rounds_where_both_sides_do() {
    let varied = |variation: Value| {
        let mut interval = json!({"n": 1000, "method": "m", "level": 0.95});
        if !variation.is_null() {
            interval.as_object_mut().unwrap().insert("variation".to_owned(), variation);
        }
        record("token", &[with(case("x", 100.0, 0.01), json!({"interval": interval}))])
    };
    let of = |one: Value, other: Value| {
        compared(&varied(one), &varied(other), None).unwrap().cases[0].variation
    };
    assert_eq!(of(json!("rounds"), json!("rounds")), Some(Variation::Rounds));
    assert_eq!(of(json!("rounds"), json!("window")), Some(Variation::Window));
    assert_eq!(of(json!("window"), json!("window")), Some(Variation::Window));
    assert_eq!(of(json!("rounds"), Value::Null), None);
}

#[test]
fn cards_and_programs_are_compared_by_their_time() {
    for kind in ["card", "pcsc", "command"] {
        let baseline = record(kind, &[case("x", 100.0, 0.01)]);
        let comparison = compared(&baseline, &record(kind, &[case("x", 50.0, 0.01)]), None);
        let row = &comparison.unwrap().cases[0];
        assert_eq!((row.quantity, row.verdict), (Quantity::Latency, Change::Slower), "{kind}");
        assert!((row.ratio.estimate - 2.0).abs() < 1e-12, "{:?}", row.ratio);
    }
}

#[test]
fn calls_of_a_program_that_failed_in_part_are_compared_and_those_that_failed_are_not() {
    let of = |outcome: &str| {
        let case = with(case("x", 100.0, 0.01), json!({"status": {"outcome": outcome}}));
        let record = record("command", &[case]);
        compared(&record, &record, None).map_or(0, |comparison| comparison.cases.len())
    };
    assert_eq!(["ok", "partial", "failed"].map(of), [1, 1, 0]);
}

#[test]
fn an_open_loop_s_rate_says_nothing_of_the_device() {
    let open = |rate| {
        let load = json!({"load": {"kind": "open", "rate_per_second": 10.0}});
        record("token", &[with(case("x", rate, 0.01), load)])
    };
    let comparison = compared(&open(100.0), &open(50.0), None).unwrap();
    assert_eq!(comparison.cases[0].quantity, Quantity::Latency);
    // Another rate, or a closed loop, is other work.
    let closed = record("token", &[case("x", 100.0, 0.01)]);
    assert!(compared(&open(100.0), &closed, None).is_err());
}

#[test]
fn a_threshold_is_exceeded_by_one_row() {
    let judged = |rate| {
        let comparison = token(rate, Some(5.0));
        let threshold = comparison.threshold.unwrap();
        assert_eq!(threshold.fail_above.0, 0.05);
        (comparison.cases[0].threshold.unwrap(), threshold.exceeded)
    };
    assert_eq!(judged(100.0), (Judgement::Held, false));
    assert_eq!(judged(90.0), (Judgement::Exceeded, true));
    assert_eq!(judged(95.5), (Judgement::Undecided, false));
    // What is decided needs no more samples, whatever its direction.
    assert_eq!(token(100.0, Some(5.0)).cases[0].more_samples, None);
    assert!(token(95.5, Some(5.0)).cases[0].more_samples.is_some());
}

#[test]
fn an_interval_that_is_too_narrow_decides_nothing() {
    let interval =
        json!({"interval": {"n": 1000, "method": "m", "level": 0.95, "reliable": false}});
    let baseline = record("token", &[case("x", 100.0, 0.01)]);
    let candidate = record("token", &[with(case("x", 50.0, 0.01), interval)]);
    for (one, other) in [(&baseline, &candidate), (&candidate, &baseline)] {
        let comparison = compared(one, other, Some(5.0)).unwrap();
        let row = &comparison.cases[0];
        assert_eq!(row.verdict, Change::Inconclusive);
        assert_eq!(row.threshold, Some(Judgement::Undecided));
        assert_eq!((row.more_samples, row.no_number), (None, Some(NoNumber::Unreliable)));
        let doubts = comparison.warnings.iter().filter(|it| it.starts_with("x: the intervals"));
        assert_eq!(doubts.count(), 1, "{:?}", comparison.warnings);
    }
}

#[test]
fn what_has_no_counterpart_is_named_once() {
    let baseline =
        record("token", &[case("both", 1.0, 0.1), case("old", 1.0, 0.1), case("old", 2.0, 0.1)]);
    let failed = with(case("failed", 1.0, 0.1), json!({"status": {"outcome": "failed"}}));
    let wrong =
        json!({"verification": {"eligible": 9, "checked": 9, "wrong": 1, "by": "software"}});
    let wrong = with(case("wrong", 1.0, 0.1), wrong);
    let candidate = [case("new", 1.0, 0.1), case("both", 1.0, 0.1), failed, wrong];
    let candidate = record("token", &candidate);
    let comparison = compared(&baseline, &candidate, None).unwrap();
    assert_eq!(comparison.cases.len(), 1);
    assert_eq!(comparison.only_in_baseline, ["old"]);
    assert_eq!(comparison.only_in_candidate, ["new"]);
    let nothing = record("token", &[case("other", 1.0, 0.1)]);
    let error = compared(&baseline, &nothing, None).unwrap_err().to_string();
    assert!(error.contains("\nhint: "), "{error}");
}

#[test]
fn messages_of_different_length_are_different_work() {
    let of_length =
        |bytes: u64| record("token", &[with(case("x", 1.0, 0.1), json!({"message_bytes": bytes}))]);
    assert!(compared(&of_length(1), &of_length(2), None).is_err());
    assert_eq!(
        compared(&of_length(2), &of_length(2), None).unwrap().cases[0].message_bytes,
        Some(2)
    );
    let untold = record("token", &[case("x", 1.0, 0.1)]);
    for (one, other) in [(&untold, &of_length(2)), (&of_length(2), &untold)] {
        assert_eq!(compared(one, other, None).unwrap().cases[0].message_bytes, None);
    }
}

/// A record in which everything that is compared besides figures is named after a side.
fn described(side: &str, cores: u32, step: u64, quota: Value) -> Record {
    let name = |what: &str| format!("{what} {side}");
    let target = json!({
        "kind": if side == "one" { "card" } else { "pcsc" },
        "module": {"path": name("/m"), "sha256": format!("{side}-0123456789abcdef")},
        "library": {
            "description": "", "manufacturer": "", "cryptoki_version": "3.1",
            "version": name("library version"),
        },
        "tokens": [{
            "slot": {"id": 1, "description": ""}, "label": "label", "manufacturer": name("maker"),
            "model": "model", "serial": "7", "firmware_version": name("firmware"),
            "hardware_version": "1", "flags": [],
        }],
        "card": {"atr": name("3B"), "protocol": "T=1", "name": name("card")},
        "reader": {"name": name("reader"), "driver_version": "1.2"},
        "daemon": {"name": "pcscd", "version": name("version")},
        "program": {"path": name("/p"), "sha256": format!("{side}-fedcba9876543210")},
        "emulated": {"profile": name("profile"), "sha256": "00"},
    });
    let record = json!({
        "schema": "tapstone.record/2", "tool": {"name": "tapstone", "version": name("0.1")},
        "command": [], "started_at": "2026-01-15T09:30:00Z",
        "environment": {
            "load": {}, "cpu": name("cpu"), "virtualisation": "kvm", "cores": cores,
            "cgroup_quota_cores": quota, "kernel": name("linux"),
            "clock": {"step_ns": step, "cost_ns": 20},
        },
        "target": target, "results": [case("x", 1.0, 0.1)],
        "imported": {"format": "jcalgtest", "file": "f", "sha256": "00", "made_by": name("tool"),
            "lines_skipped": 0},
    });
    Record::from_json(&record.to_string(), "a test").unwrap()
}

#[test]
fn what_differs_besides_the_figures_is_said() {
    let one = described("one", 2, 1, Value::Null);
    let two = described("two", 4, 40, json!(1.5));
    let comparison = compared(&one, &two, None).unwrap();
    let expected = [
        "the baseline was no real device: emulated, profile profile one",
        "the candidate was no real device: emulated, profile profile two",
        "the kind of target differs: card and pcsc",
        "the machine differs: cpu one, kvm and cpu two, kvm",
        "the cores differs: 2 and 4 with a quota of 1.5",
        "the kernel differs: linux one and linux two",
        "the clock differs: steps of 1 ns and steps of 40 ns",
        "the module differs: /m one and /m two",
        "the module's SHA-256 differs: one-0123456789ab and two-0123456789ab",
        "the token differs: maker one model (serial 7) and maker two model (serial 7)",
        "the firmware differs: firmware one, library library version one and \
         firmware two, library library version two",
        "the card differs: card one, ATR 3B one, T=1 and card two, ATR 3B two, T=1",
        "the reader differs: reader one, 1.2 and reader two, 1.2",
        "the daemon differs: pcscd version one and pcscd version two",
        "the program differs: /p one (SHA-256 one-fedcba987654…) and \
         /p two (SHA-256 two-fedcba987654…)",
        "the version of Tapstone differs: 0.1 one and 0.1 two",
        "the baseline's figures were made by tool one, not by Tapstone",
        "the candidate's figures were made by tool two, not by Tapstone",
    ];
    assert_eq!(comparison.warnings, expected);
    // Sides are called what their device is.
    assert_eq!(
        (comparison.baseline.name.as_str(), comparison.candidate.name.as_str()),
        ("card one", "card two")
    );
    assert_eq!(comparison.baseline.emulated.as_deref(), Some("profile one"));
    // An emulated device's figures are emulated.
    assert_eq!(comparison.cases[0].baseline_provenance, Some(Provenance::Emulated));
    let same = compared(&one, &one, None).unwrap().warnings;
    assert!(!same.iter().any(|warning| warning.contains("differs")), "{same:?}");
}

#[test]
fn what_is_not_known_of_one_side_is_unknown() {
    let known = described("one", 2, 1, Value::Null);
    let unknown = record("card", &[case("x", 1.0, 0.1)]);
    let comparison = compared(&known, &unknown, None).unwrap();
    for what in ["the card differs: card one", "the firmware differs: firmware one"] {
        let warning = comparison.warnings.iter().find(|warning| warning.starts_with(what));
        assert!(warning.is_some_and(|it| it.ends_with(" and unknown")), "{warning:?}");
    }
    assert_eq!(comparison.candidate.name, "new");
    assert_eq!(comparison.cases[0].candidate_provenance, Some(Provenance::Measured));
}

#[test]
fn a_token_is_called_by_its_label() {
    let mut token = described("one", 2, 1, Value::Null);
    token.target.card = None;
    assert_eq!(compared(&token, &token, None).unwrap().baseline.name, "label");
    token.target.tokens[0].label = "  ".into();
    assert_eq!(compared(&token, &token, None).unwrap().baseline.name, "old", "its file's name");
    let second = token.target.tokens[0].clone();
    token.target.tokens.push(second);
    token.target.tokens[0].label = "label".into();
    assert_eq!(compared(&token, &token, None).unwrap().baseline.name, "old", "which of two?");
}

#[test]
fn calls_of_two_traces_are_set_side_by_side() {
    let trace = |digests: u64| {
        let mut record = record("command", &[case("wall", 1.0, 0.1)]);
        let call = json!({
            "module": "m.so", "layer": "pkcs11 m.so", "function": "C_Digest", "count": digests,
            "total_ns": 10, "self_ns": 10,
        });
        record.calls = serde_json::from_value(json!([call])).unwrap();
        record
    };
    let changes = compared(&trace(3), &trace(5), None).unwrap().calls;
    let [change] = &changes[..] else { panic!("{changes:?}") };
    assert_eq!(change.baseline.unwrap().count, 3);
    assert_eq!(change.candidate.unwrap().count, 5);
}

/// Calls of a short run: that too few were seen for an interval is no doubt about each.
#[test]
fn calls_without_a_verdict_are_no_rows() {
    let interval = json!({"interval": {"n": 9, "method": "m", "level": 0.95, "reliable": false}});
    let mut trace = record(
        "command",
        &[case("wall", 1.0, 0.1), with(case("m.so:C_Digest", 1.0, 0.1), interval)],
    );
    let call = json!({
        "module": "m.so", "layer": "pkcs11 m.so", "function": "C_Digest", "count": 3,
        "total_ns": 10, "self_ns": 10,
    });
    trace.calls = serde_json::from_value(json!([call])).unwrap();
    let name = trace.calls[0].operation();
    trace.results[1].operation = name;
    let comparison = compared(&trace, &trace, None).unwrap();
    assert_eq!(comparison.cases.len(), 1, "{:?}", comparison.cases);
    assert_eq!(comparison.cases[0].operation, "wall");
}

#[test]
fn devices_side_by_side_are_slower_than_the_fastest() {
    let runs = [100.0, 50.0, 80.0].map(|rate| record("token", &[case("x", rate, 0.01)]));
    let other = record("token", &[case("y", 1.0, 0.01)]);
    let records =
        [named(&runs[0], "a"), named(&runs[1], "b"), named(&runs[2], "c"), named(&other, "d")];
    let table = side_by_side(&records).unwrap();
    assert_eq!(table.sides.len(), 4);
    let [row] = &table.cases[..] else { panic!("{:?}", table.cases) };
    let excess: Vec<_> = row.excess.iter().map(|part| part.map(|part| part.0)).collect();
    assert_eq!(excess, [Some(0.0), Some(1.0), Some(0.25), None]);
    assert_eq!(row.quantity, Quantity::Throughput);
    let cards = [100.0, 50.0].map(|rate| record("card", &[case("x", rate, 0.01)]));
    let row = &side_by_side(&[named(&cards[0], "a"), named(&cards[1], "b")]).unwrap().cases[0];
    assert_eq!(row.quantity, Quantity::Latency);
    assert_eq!(row.excess[1].unwrap().0, 1.0);
    // A rate of 0 is no figure, and one alone is beside nothing.
    let none =
        json!({"throughput": {"estimate": 0.0, "low": 0.0, "high": 0.0, "unit": "operations/s"}});
    let still = record("token", &[with(case("x", 100.0, 0.01), none)]);
    assert!(side_by_side(&[named(&runs[0], "a"), named(&still, "e")]).is_err());
    let error = side_by_side(&[named(&runs[0], "a"), named(&other, "d")]).unwrap_err();
    assert!(matches!(error, CompareError::NothingShared { .. }), "{error}");
}

#[test]
fn items_of_a_reference_are_chosen_by_a_part_of_their_name() {
    let references = names().into_iter().map(|name| load(name).unwrap());
    let reference = references.into_iter().find(|it| !it.items().is_empty()).unwrap();
    let items = reference.items();
    let figure = &items[0].figures[0];
    let candidate = record("card", &[case(&figure.operation, 10.0, 0.01)]);
    let compared = |only: Option<&str>| {
        compare_with_reference(&reference, only, named(&candidate, "new.json"), None)
    };
    let all = compared(None).unwrap();
    assert!(all.cases.iter().all(|row| row.operation == figure.operation), "{:?}", all.cases);
    let only = compared(Some(&items[0].name.to_uppercase())).unwrap();
    assert!(only.cases.iter().any(|row| row.item.as_ref() == Some(&items[0].name)));
    let error = compared(Some("no such item")).unwrap_err();
    assert!(matches!(error, CompareError::NoSuchItem { .. }), "{error}");
    assert!(error.to_string().contains(&items[0].name), "{error}");
    // What the candidate has not, and what nobody published.
    let published = items.iter().flat_map(|item| &item.figures).map(|it| &it.operation);
    let other: Vec<_> = published.filter(|name| **name != figure.operation).collect();
    assert!(other.iter().all(|name| all.only_in_baseline.contains(name)), "{all:?}");
    assert!(!all.only_in_baseline.contains(&figure.operation));
    assert_eq!(all.only_in_candidate, [""; 0]);
    assert!(all.warnings[0].starts_with(&format!("the figures of {}", reference.name)));
    // Nobody published an open loop, and not an unknown operation.
    let open = json!({"load": {"kind": "open", "rate_per_second": 10.0}});
    let open = with(case(&figure.operation, 10.0, 0.01), open);
    for case in [open, case("unknown", 1.0, 0.1)] {
        let record = record("card", &[case]);
        assert!(compare_with_reference(&reference, None, named(&record, "r"), None).is_err());
    }
}

#[test]
fn figures_side_by_side_keep_where_they_came_from() {
    let measured = record("card", &[case("x", 100.0, 0.01)]);
    let mut emulated = record("card", &[case("x", 50.0, 0.01)]);
    emulated.target.emulated =
        Some(tapstone_record::Emulated { profile: "plain".into(), sha256: "00".into() });
    let mut imported = record("card", &[case("x", 80.0, 0.01)]);
    imported.imported = Some(tapstone_record::Imported {
        format: "panel-log".into(),
        file: "log.csv".into(),
        sha256: "00".into(),
        made_by: None,
        lines_skipped: 0,
    });
    let sides = [named(&measured, "a"), named(&emulated, "b"), named(&imported, "c")];
    let table = side_by_side(&sides).unwrap();
    let provenance = [Provenance::Measured, Provenance::Emulated, Provenance::Measured];
    assert_eq!(table.cases[0].provenance, provenance.map(Some));
    let told: Vec<_> = table.sides.iter().map(|side| side.emulated.as_deref()).collect();
    assert_eq!(told, [None, Some("plain"), None]);
    let makers: Vec<_> = table.sides.iter().map(|side| side.made_by.as_deref()).collect();
    assert_eq!(makers, [None, None, Some("panel-log")]);
    let two = compared(&imported, &emulated, None).unwrap();
    assert_eq!(two.baseline.made_by.as_deref(), Some("panel-log"));
    assert_eq!(two.cases[0].candidate_provenance, Some(Provenance::Emulated));
}

/// What failed in the candidate is no operation that only the baseline has: it is named with why.
#[test]
fn an_operation_that_failed_in_the_candidate_is_named() {
    let old =
        record("token", &[case("rsa2048.sign", 100.0, 0.01), case("sha256.digest", 9.0, 0.01)]);
    let status = |status: Value| json!({"status": status});
    let wrong = json!({"eligible": 9, "checked": 9, "wrong": 2, "by": "software"});
    for (spoiled, why) in [
        (
            status(json!({"outcome": "failed", "step": "C_Sign", "code": "CKR_DEVICE_ERROR"})),
            "failed: C_Sign: CKR_DEVICE_ERROR",
        ),
        (status(json!({"outcome": "partial"})), "measured in part"),
        (
            status(json!({"outcome": "unsupported", "code": "CKR_MECHANISM_INVALID"})),
            "unsupported: CKR_MECHANISM_INVALID",
        ),
        (json!({"verification": wrong}), "2 results were wrong"),
    ] {
        let spoiled = with(case("rsa2048.sign", 200.0, 0.01), spoiled);
        let new = record("token", &[spoiled.clone(), case("sha256.digest", 9.0, 0.01)]);
        let compared = compared(&old, &new, Some(5.0)).unwrap();
        let [failed] = &compared.not_compared[..] else { panic!("{compared:?}") };
        assert_eq!((failed.operation.as_str(), failed.why.as_str()), ("rsa2048.sign", why));
        assert_eq!((compared.cases.len(), compared.only_in_baseline.len()), (1, 0), "{compared:?}");
        // Alone it leaves nothing to compare, and the error says why.
        let alone = self::compared(&old, &record("token", &[spoiled]), None).unwrap_err();
        assert!(alone.to_string().contains(&format!("rsa2048.sign ({why})")), "{alone}");
    }
}

/// A case whose interval reaches down to zero: no ratio can be made of it.
fn unknown(operation: &str) -> Value {
    let throughput = json!({"throughput": {
        "estimate": 100.0, "low": 0.0, "high": 300.0, "unit": "operations/s",
    }});
    with(case(operation, 100.0, 0.01), throughput)
}

#[test]
fn what_has_no_ratio_is_named_and_no_threshold_holds_for_it() {
    let known = record("token", &[case("x", 100.0, 0.01), case("y", 100.0, 0.01)]);
    let half = record("token", &[unknown("x"), case("y", 100.0, 0.01)]);
    for (one, other) in [(&known, &half), (&half, &known)] {
        let comparison = compared(one, other, Some(5.0)).unwrap();
        assert_eq!(comparison.cases.len(), 1);
        let [failed] = &comparison.not_compared[..] else { panic!("{comparison:?}") };
        assert_eq!(failed.operation, "x");
        assert!(failed.why.contains("reaches down to zero") && failed.why.contains("--rounds 5"));
    }
    let error = compared(&record("token", &[unknown("x")]), &known, None).unwrap_err();
    assert!(error.to_string().contains("x (no ratio"), "{error}");
    assert!(error.to_string().contains("\nhint: "), "{error}");
}

/// A threshold against published figures does not hold for what failed either.
#[test]
fn a_published_operation_that_failed_is_named() {
    let reference = load("jcop-cards").unwrap();
    let item = reference.items().into_iter().next().unwrap();
    let published = |place: usize| case(&item.figures[place].operation, 100.0, 0.01);
    let failed = json!({"status": {"outcome": "failed", "code": "SW_6F00"}});
    let candidate = record("card", &[published(0), with(published(1), failed)]);
    let only = Some(item.name.as_str());
    let compared = compare_with_reference(&reference, only, named(&candidate, "new.json"), None);
    let [lost] = &compared.unwrap().not_compared[..] else { panic!("one is lost") };
    assert_eq!(lost.operation, item.figures[1].operation);
    assert_eq!(lost.why, "failed: SW_6F00");
}
