//! Records that version 1 of the format was written in stay readable.

use std::fs;

use serde_json::{Value, json};
use tapstone_record::{Record, RecordError, SCHEMA_JSON};

use crate::{PAGE, examples};

/// What version 1 had for an example of this name.
fn before(name: &str) -> String {
    fs::read_to_string(format!("{}/tests/version-1/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

#[test]
fn each_example_of_version_1_is_read_as_that_of_version_2() {
    for (path, text) in examples() {
        let name = path.file_name().unwrap().to_str().unwrap();
        let old = Record::from_json(&before(name), name).unwrap();
        assert_eq!(old, Record::from_json(&text, name).unwrap(), "{name}");
        let written: Value = serde_json::from_str(&old.to_json().unwrap()).unwrap();
        assert_eq!(written, serde_json::from_str::<Value>(&text).unwrap(), "{name}");
    }
}

/// The names that version 1 alone has, by the table of docs/FORMAT.md.
fn old_names() -> Vec<&'static str> {
    let (_, table) = PAGE.split_once("| version 1 | version 2 |\n").unwrap();
    let rows = table.lines().skip(1).take_while(|line| line.starts_with('|'));
    let old = rows.map(|row| row.split('`').nth(1).unwrap().rsplit('.').next().unwrap());
    old.filter(|name| !SCHEMA_JSON.contains(&format!("\"{name}\": {{"))).collect()
}

#[test]
fn no_page_reads_a_field_by_the_name_that_version_1_had() {
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");
    let names = old_names();
    assert!(names.len() > 20, "{names:?}");
    let mut pages = 0;
    for page in fs::read_dir(docs).unwrap().map(|entry| entry.unwrap().path()) {
        if page.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        let text = fs::read_to_string(&page).unwrap();
        let text = text.split("| version 1 | version 2 |").next().unwrap();
        for name in &names {
            let mut read = vec![format!(".{name}["), format!(".{name}."), format!("[\"{name}\"]")];
            // `off` and `rows` are words of other things, too.
            read.extend(name.contains('_').then(|| format!("`{name}`")));
            let found = read.iter().find(|read| text.contains(read.as_str()));
            assert_eq!(found, None, "{}", page.display());
        }
        pages += 1;
    }
    assert!(pages > 20, "{pages}");
}

#[test]
fn a_field_of_version_1_that_is_malformed_is_named_without_a_line() {
    let mut record: Value = serde_json::from_str(&before("card.json")).unwrap();
    record["results"][0]["completed"] = json!(-1);
    let error = Record::from_json(&record.to_string(), "old.json").unwrap_err();
    assert!(matches!(error, RecordError::Malformed { position: None, .. }), "{error:?}");
    assert!(error.to_string().starts_with("old.json: results[0].completed: "), "{error}");
}

#[test]
fn a_record_of_version_1_that_is_cut_off_is_refused_with_line_and_field() {
    let text = before("token.json");
    for end in (1..text.trim_end().len()).step_by(97) {
        let error = Record::from_json(&text[..end], "cut.json").unwrap_err();
        let RecordError::Malformed { position, field, .. } = &error else {
            panic!("{end}: {error}")
        };
        assert!(position.is_some() && !field.is_empty(), "{end}: {error}");
        assert!(!error.to_string().contains("missing field"), "{end}: {error}");
    }
}

#[test]
fn a_field_of_version_1_that_is_there_twice_is_refused() {
    let text = before("card.json");
    let twice = [
        text.replacen("\"completed\": ", "\"completed\": 7, \"completed\": ", 1),
        text.trim_end().strip_suffix('}').unwrap().to_owned() + ", \"results\": []}",
    ];
    for (text, field) in twice.iter().zip(["completed", "results"]) {
        let error = Record::from_json(text, "old.json").unwrap_err().to_string();
        assert!(error.contains(&format!("duplicate field `{field}`")), "{error}");
        assert!(error.starts_with("old.json:"), "{error}");
    }
}

#[test]
fn what_version_1_did_not_know_is_ignored_wherever_it_is() {
    let text = before("doors.json");
    let known = Record::from_json(&text, "old.json").unwrap();
    let mut record: Value = serde_json::from_str(&text).unwrap();
    record["trials"] = json!([]);
    record["moons"] = json!([{ "own_ns": 3 }]);
    assert_eq!(Record::from_json(&record.to_string(), "old.json").unwrap(), known);
    // Nor does a list where an object was, or a word where a list was, end in a panic.
    for (field, value) in [("results", json!("none")), ("queue", json!([1])), ("knee", json!(7))] {
        let mut record: Value = serde_json::from_str(&text).unwrap();
        record[field] = value;
        let error = Record::from_json(&record.to_string(), "old.json").unwrap_err();
        assert!(error.to_string().contains(field), "{error}");
    }
}
