//! The schema, the types and the examples agree.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tapstone_record::{EncodedHistogram, Record, SCHEMA_JSON};

use crate::{complaints, examples, token_example};

#[test]
fn examples_satisfy_the_schema_and_survive_reading_and_writing() {
    for (path, text) in examples() {
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(complaints(&value), [""; 0], "{}", path.display());
        let record = Record::from_json(&text, &path).unwrap();
        let again: Value = serde_json::from_str(&record.to_json().unwrap()).unwrap();
        assert_eq!(again, value, "{}", path.display());
    }
}

#[test]
fn examples_use_every_field_of_the_schema() {
    let schema: Value = serde_json::from_str(SCHEMA_JSON).unwrap();
    let mut used = BTreeSet::new();
    for (_, text) in examples() {
        collect_names(&serde_json::from_str(&text).unwrap(), &mut used);
    }
    let types = schema["$defs"].as_object().unwrap().values().chain([&schema]);
    let known = types.filter_map(|definition| definition["properties"].as_object());
    let unused: Vec<_> = known
        .flat_map(|properties| properties.keys())
        .filter(|name| !used.contains(*name))
        .collect();
    assert_eq!(unused, [""; 0]);
}

fn collect_names(value: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                names.insert(name.clone());
                collect_names(value, names);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect_names(item, names)),
        _ => {}
    }
}

#[test]
fn example_histograms_hold_as_many_operations_as_their_rows() {
    let mut seen = 0;
    for (path, text) in examples() {
        for row in Record::from_json(&text, &path).unwrap().results {
            let Some(histogram) = row.histogram.as_ref().map(EncodedHistogram::decode) else {
                continue;
            };
            let histogram = histogram.unwrap();
            let latency = row.latency_ns.unwrap();
            assert_eq!(histogram.len(), row.completed);
            assert!(histogram.equivalent(histogram.max(), latency.max.0));
            assert!(histogram.equivalent(histogram.min(), latency.min.0));
            seen += 1;
        }
    }
    assert!(seen > 0, "an example has a histogram");
}

/// What must not pass: each change breaks one rule of the contract.
#[test]
fn broken_records_fail_the_schema() {
    let (_, text) = token_example();
    let good: Value = serde_json::from_str(&text).unwrap();
    let changes = [
        ("/schema", json!("tapstone.record/3")),
        ("/started_at", json!(1_763_600_000)),
        ("/command", json!("tapstone token")),
        ("/environment/clock/step_ns", json!(-1)),
        ("/target/kind", json!("hsm")),
        ("/results", Value::Null),
        ("/results/0/status", json!("ok")),
        ("/results/0/status/outcome", json!("fine")),
        ("/results/0/throughput/estimate", Value::Null),
        ("/results/0/throughput/unit", json!("signatures")),
        ("/results/0/latency_ns/p50/low", json!("25 us")),
        ("/results/0/failed", json!([])),
        ("/results/0/limited_by", json!("the weather")),
        ("/results/0/stopped_by", json!("boredom")),
        ("/knee/levels/0/rate", json!(1600.0)),
        ("/claims/0/verdict", json!("true")),
    ];
    for (place, value) in changes {
        let mut broken = good.clone();
        *broken.pointer_mut(place).expect(place) = value;
        assert_ne!(complaints(&broken), [""; 0], "{place}");
    }
    for (parent, name) in
        [("", "target"), ("/results/0", "concurrency"), ("/results/0/latency_ns", "p99_9")]
    {
        let mut broken = good.clone();
        broken.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(name).expect(name);
        assert_ne!(complaints(&broken), [""; 0], "{parent}/{name}");
    }
}

#[test]
fn readers_are_tolerant_of_what_they_do_not_know() {
    let (path, text) = &token_example();
    let mut value: Value = serde_json::from_str(text).unwrap();
    let known = Record::from_json(text, path).unwrap();
    value["moon_phase"] = json!("waxing");
    value["results"][0]["latency_ns"]["p99_99"] = Value::Null;
    assert_eq!(complaints(&value), [""; 0]);
    assert_eq!(Record::from_json(&value.to_string(), path).unwrap(), known);
}
